//! Parquet in and out, and files that lie.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

use crate::command::{run, stderr, stdout};

fn png(shade: u8) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let picture = image::RgbImage::from_pixel(24, 24, image::Rgb([shade, 7, 9]));
    picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Pairs of edits in the form of EditScore's bench: the second record has no second edit, and its
/// source is a path. Two groups of rows.
fn pairs(path: &Path) {
    let schema = "message m {
        optional group key (LIST) { repeated group list { optional binary element (UTF8); } }
        optional binary instruction (UTF8);
        optional group input_image { optional binary bytes; optional binary path (UTF8); }
        optional group output_images (LIST) { repeated group list { optional group element {
            optional binary bytes; optional binary path (UTF8); } } }
        optional binary dimension (UTF8);
    }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = fs::File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    let text = |text: &str| ByteArray::from(text);
    for row in 0..2u8 {
        let mut group = writer.next_row_group().unwrap();
        let mut column = |values: Vec<ByteArray>, defined: &[i16], repeated: Option<&[i16]>| {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&values, Some(defined), repeated).unwrap();
            column.close().unwrap();
        };
        let name = format!("k{row}");
        column(vec![text(&name), text("b")], &[3, 3], Some(&[0, 1]));
        column(vec![text("do it")], &[1], None);
        match row {
            0 => column(vec![png(1).into()], &[2], None),
            _ => column(Vec::new(), &[1], None),
        }
        column(vec![text("source.png")], &[2], None);
        match row {
            0 => column(vec![png(2).into(), png(3).into()], &[4, 4], Some(&[0, 1])),
            _ => column(vec![png(4).into()], &[4], Some(&[0])),
        }
        match row {
            0 => column(vec![text("a.png")], &[4, 3], Some(&[0, 1])),
            _ => column(Vec::new(), &[3], Some(&[0])),
        }
        column(vec![text("overall")], &[1], None);
        group.close().unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn records_are_put_together_and_pictures_unpacked() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    pairs(&at("pairs.parquet"));
    fs::write(at("source.png"), png(5)).unwrap();
    let output = run(folder.path(), &["dataset", "convert", "pairs.parquet", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("recognised as editscore-bench"), "{}", stdout(&output));
    let lines = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(at(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let cases = lines("out/cases.jsonl");
    let bytes = |path: &Value| fs::read(at("out").join(path.as_str().unwrap())).unwrap();
    assert_eq!((&cases[0]["id"], &cases[1]["id"]), (&json!("k0+b"), &json!("k1+b")));
    assert_eq!(bytes(&cases[0]["source"]), png(1));
    assert_eq!(bytes(&cases[1]["source"]), png(5));
    assert_eq!(bytes(&cases[0]["edits"]["second"]), png(3));
    assert_eq!(cases[1]["edits"].as_object().unwrap().len(), 1);
    assert_eq!(lines("out/votes.jsonl").len(), 1);
    assert_eq!(run(folder.path(), &["dataset", "check", "out"]).status.code(), Some(0));
}

#[test]
fn what_is_broken_or_lies_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.parquet");
    pairs(&path);
    let good = fs::read(&path).unwrap();
    let length = good.len();
    let check = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let output = run(
            folder.path(),
            &["dataset", "check", "pairs.parquet", "--preset", "editscore-bench"],
        );
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        (output.status.code(), stderr(&output))
    };
    let (code, told) = check(&good[..length / 2]);
    assert_eq!(code, Some(2));
    assert!(told.contains("pairs.parquet") && told.contains("cut off"), "{told}");
    let mut lying = good.clone();
    lying[length - 8..length - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let (code, told) = check(&lying);
    assert_eq!(code, Some(2));
    assert!(told.contains("metadata"), "{told}");
    // Any byte of the metadata may be wrong: an end or an answer, never a crash.
    let footer = u32::from_le_bytes(good[length - 8..length - 4].try_into().unwrap()) as usize;
    for place in (length - 8 - footer..length - 8).step_by(23) {
        let mut broken = good.clone();
        broken[place] ^= 0x55;
        let (code, told) = check(&broken);
        assert!(matches!(code, Some(0..=2)), "{place}: {code:?} {told}");
    }
}

#[test]
fn judgements_are_written_as_typed_columns() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        json!({"case": "a", "editor": "e", "criterion": "beauty", "outcome": "verdict", "score": 2.5, "values": {"first": 1, "why": "so"}}),
        json!({"case": "b", "editor": "e", "criterion": "beauty", "outcome": "failed", "reason": "no server"}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.path().join("results.jsonl"), text).unwrap();
    let output = run(folder.path(), &["report", "results.jsonl", "--out", "table.parquet"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = fs::File::open(folder.path().join("table.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<Value> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let row = row.unwrap();
            let mut object = serde_json::Map::new();
            for (name, field) in row.get_column_iter() {
                object.insert(name.clone(), field.to_string().into());
            }
            object.into()
        })
        .collect();
    assert_eq!((&rows[0]["score"], &rows[1]["score"]), (&json!("2.5"), &json!("null")));
    assert_eq!(rows[0]["value.first"], "1.0");
    assert_eq!(
        (&rows[0]["value.why"], &rows[1]["outcome"]),
        (&json!("\"so\""), &json!("\"failed\""))
    );
    let output = run(folder.path(), &["report", "results.jsonl", "--format", "parquet"]);
    assert_eq!(output.status.code(), Some(2));
}

//! A file of cases as rows: JSON lines or CSV, with the number of the line that each row stands on.
//!
//! What stands in a file is untrusted: a line may be endless, in another encoding, or no JSON.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::problem::{DataSetError, Problems, shown, shown_json};

/// One record of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// The line on which it starts, from 1.
    pub(super) line: usize,
    pub(super) fields: Map<String, Value>,
}

/// So many rows are in memory at a time: a row takes many times the room of its line.
const PIECE: usize = 4096;

/// Gathers rows, and hands them on in pieces.
struct Rows<'a> {
    piece: Vec<Row>,
    /// How many records there are, also those that cannot be read.
    records: usize,
    take: &'a mut dyn FnMut(Vec<Row>),
}

impl Rows<'_> {
    fn push(&mut self, row: Row) {
        self.piece.push(row);
        if self.piece.len() == PIECE {
            (self.take)(std::mem::take(&mut self.piece));
        }
    }
}

/// A longer line is a mistake, such as a picture inside the JSON.
const LONGEST_LINE: usize = 16 << 20;
/// A table is read at once.
const LARGEST_TABLE: u64 = 256 << 20;
/// More columns, or other fields in all lines together, are a mistake, such as a table on its side.
pub(super) const MOST_COLUMNS: usize = 2000;

/// The kinds of files that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    JsonLines,
    Csv,
}

/// What a file is by the end of its name.
pub(super) fn kind_of(path: &Path) -> Option<Kind> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "jsonl" | "ndjson" | "json" => Some(Kind::JsonLines),
        "csv" | "tsv" => Some(Kind::Csv),
        _ => None,
    }
}

/// Reads every row and hands them to `take` piece by piece, in the file's order; a row that cannot be
/// read is a problem of its line. Returns how many records there are.
pub(super) fn read(
    path: &Path,
    problems: &mut Problems,
    take: &mut dyn FnMut(Vec<Row>),
) -> Result<usize, DataSetError> {
    let fail = |source| DataSetError::Io { path: path.to_owned(), source };
    let not_cases = |what: &str| DataSetError::NotCases { path: path.into(), what: what.into() };
    let kind = kind_of(path)
        .ok_or_else(|| not_cases("its name ends in none of .jsonl, .csv; rename or convert it"))?;
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        // A pipe or a device may never end.
        return Err(not_cases("it is not an ordinary file; copy it to one"));
    }
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(fail)?);
    let start = file.fill_buf().map_err(fail)?;
    if let Some(what) = foreign(start) {
        return Err(not_cases(what));
    }
    if start.starts_with(BOM) {
        file.consume(BOM.len());
    }
    let mut rows = Rows { piece: Vec::new(), records: 0, take };
    match kind {
        Kind::JsonLines => read_json_lines(&mut file, problems, &mut rows).map_err(fail)?,
        Kind::Csv => read_csv(&mut file, problems, &mut rows).map_err(|what| not_cases(&what))?,
    }
    if rows.records == 0 {
        return Err(DataSetError::Empty { path: path.to_owned() });
    }
    (rows.take)(rows.piece);
    Ok(rows.records)
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a file is by its first bytes, if it is certainly not text with a record on each line.
fn foreign(start: &[u8]) -> Option<&'static str> {
    let text = start.strip_prefix(BOM).unwrap_or(start);
    let first = text.trim_ascii_start();
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        Some("it is UTF-16; save it as UTF-8")
    } else if start.starts_with(b"\x1f\x8b") || start.starts_with(b"PK\x03\x04") {
        Some("it is compressed; unpack it first")
    } else if start.starts_with(b"PAR1") {
        Some("it is a Parquet file; export it as JSON lines")
    } else if first.starts_with(b"[") {
        Some("it is one JSON array; write one object a line, e.g. with `jq -c '.[]'`")
    } else if first.starts_with(b"{\n") || first.starts_with(b"{\r\n") {
        Some("its objects go over several lines; write one object a line, e.g. with `jq -c .`")
    } else {
        None
    }
}

fn read_json_lines(
    file: &mut impl BufRead,
    problems: &mut Problems,
    all: &mut Rows<'_>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut line = 0;
    while let Some(whole) = next_line(file, &mut buffer)? {
        line += 1;
        let parsed = if whole {
            parse_line(&buffer)
        } else {
            Err(format!(
                "it is longer than {} MiB; pictures belong into files of their own",
                LONGEST_LINE >> 20
            ))
        };
        match parsed {
            Ok(None) => continue,
            Ok(Some(fields)) => all.push(Row { line, fields }),
            Err(what) => problems.error(line, None, what),
        }
        all.records += 1;
    }
    Ok(())
}

/// Puts the next line into `buffer`, without its end: `None` after the last one, `Some(false)` where
/// the line is too long to be kept.
fn next_line(file: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<Option<bool>> {
    buffer.clear();
    let mut seen = 0usize;
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok((seen > 0).then_some(seen <= LONGEST_LINE));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        seen += taken;
        if seen <= LONGEST_LINE {
            buffer.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        } else {
            *buffer = Vec::new();
        }
        file.consume(taken);
        if end.is_some() {
            return Ok(Some(seen <= LONGEST_LINE));
        }
    }
}

/// The object on a line; `None` for a blank line. The error says what is wrong and what to do.
fn parse_line(line: &[u8]) -> Result<Option<Map<String, Value>>, String> {
    let text = utf8(line)?.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => match serde_json::from_str(text) {
            Ok(Names(None)) => Ok(Some(fields)),
            Ok(Names(Some(name))) => Err(format!("{} is in it twice; remove one", shown(&name))),
            Err(error) => Err(error.to_string()),
        },
        Ok(other) => {
            Err(format!("it holds {}, not a JSON object such as {{\"id\": …}}", shown_json(&other)))
        }
        Err(error) => {
            let what = error.to_string();
            // The parser saw one line and counts it as line 1.
            let what = what.split(" at line ").next().unwrap_or(&what);
            Err(format!("it is not JSON: {what} at column {}", error.column()))
        }
    }
}

/// The first name that an object has twice, at any depth: a parser would silently take the last one.
struct Names(Option<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_unit<E>(self) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<Names, E> {
                Ok(Names(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut twice = None;
                while let Some(Names(found)) = list.next_element()? {
                    twice = twice.or(found);
                }
                Ok(Names(twice))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let (mut seen, mut twice) = (BTreeSet::new(), None);
                while let Some((name, Names(found))) = map.next_entry::<String, Names>()? {
                    twice = twice.or(found);
                    if !seen.insert(name.clone()) {
                        twice.get_or_insert(name);
                    }
                }
                Ok(Names(twice))
            }
        }
        deserializer.deserialize_any(Anything)
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let byte = bytes.get(at).copied().unwrap_or_default();
        format!(
            "byte {} is 0x{byte:02X}, which is not UTF-8; save the file as UTF-8, e.g. with `iconv -f latin1 -t utf-8`",
            at + 1
        )
    })
}

/// Reads a table; every cell becomes a text. The error says why it is no table.
fn read_csv(
    file: &mut impl BufRead,
    problems: &mut Problems,
    all: &mut Rows<'_>,
) -> Result<(), String> {
    let mut bytes = Vec::new();
    file.take(LARGEST_TABLE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_TABLE {
        let most = LARGEST_TABLE >> 20;
        return Err(format!("a table of more than {most} MiB is not read; write JSON lines"));
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter_of(&bytes))
        .flexible(true)
        .from_reader(bytes.as_slice());
    let header = reader.byte_headers().map_err(|error| error.to_string())?.clone();
    if header.len() > MOST_COLUMNS {
        let count = header.len();
        return Err(format!(
            "line 1: it has {count} columns, more than {MOST_COLUMNS}; leave some out"
        ));
    }
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for name in &header {
        let name = utf8(name).map_err(|what| format!("line 1: {what}"))?.trim().to_owned();
        if !known.insert(name.clone()) {
            return Err(format!("line 1: two columns are named {}; rename one", shown(&name)));
        }
        names.push(name);
    }
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| error.to_string())? {
        let line = record.position().map_or(0, |position| line_of(position, &bytes));
        if record.iter().all(|cell| cell.trim_ascii().is_empty()) {
            continue;
        }
        match row_of(&names, &record) {
            Ok(fields) => all.push(Row { line, fields }),
            Err(what) => problems.error(line, None, what),
        }
        all.records += 1;
    }
    Ok(())
}

/// The line on which a record starts. The reader names the one after the record before, which may be
/// blank.
fn line_of(position: &csv::Position, bytes: &[u8]) -> usize {
    let rest = bytes.get(position.byte() as usize..).unwrap_or_default();
    let blank = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() as usize + blank.filter(|byte| **byte == b'\n').count()
}

fn row_of(names: &[String], record: &csv::ByteRecord) -> Result<Map<String, Value>, String> {
    if record.len() != names.len() {
        return Err(format!(
            "it has {} columns where the first line names {}; look for a quote that is left open, or a comma that needs quotes around it",
            record.len(),
            names.len()
        ));
    }
    let mut fields = Map::new();
    for (name, cell) in names.iter().zip(record) {
        if cell.len() > LONGEST_LINE {
            return Err(format!(
                "the column {} is longer than {} MiB",
                shown(name),
                LONGEST_LINE >> 20
            ));
        }
        let text = utf8(cell).map_err(|what| format!("in the column {}, {what}", shown(name)))?;
        if !text.trim().is_empty() {
            fields.insert(name.clone(), Value::String(text.trim().to_owned()));
        }
    }
    Ok(fields)
}

/// Spreadsheets of some countries write semicolons; the header says which.
fn delimiter_of(start: &[u8]) -> u8 {
    let header = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    let count = |delimiter: u8| header.iter().filter(|byte| **byte == delimiter).count();
    let mut best = b',';
    for other in [b';', b'\t'] {
        if count(other) > count(best) {
            best = other;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct All {
        rows: Vec<Row>,
        records: usize,
    }

    fn rows(name: &str, bytes: &[u8]) -> (Result<All, DataSetError>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut problems = Problems::default();
        let mut rows = Vec::new();
        let records = read(&path, &mut problems, &mut |mut piece| rows.append(&mut piece));
        let all = records.map(|records| All { rows, records });
        (all, problems.kept().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn marks_of_other_systems_do_not_matter() {
        let (rows, problems) =
            rows("a.jsonl", b"\xef\xbb\xbf{\"id\":\"a\"}\r\n\r\n  \n{\"id\":\"b\"}");
        let rows = rows.unwrap();
        assert_eq!(rows.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(rows.records, 2);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn a_bad_line_is_named_and_the_rest_is_read() {
        let mut text = "{\"id\":1}\n".repeat(511).into_bytes();
        text.extend(b"{\"id\": oops}\n{\"name\": \"caf\xe9\"}\n[1]\n{\"id\":2}\n");
        text.extend(b"{\"id\":3, \"type\":\"x\", \"id\":4}\n");
        text.extend(
            b"{\"id\":5, \"edits\":{\"e\":\"1.png\",\"e\":\"2.png\"}, \"boxes\":[[1,2.5,-3,4]]}\n",
        );
        let (rows, problems) = rows("a.jsonl", &text);
        assert_eq!(rows.unwrap().rows.len(), 512);
        assert_eq!(problems.len(), 5);
        assert!(problems[4].contains("line 517: \"e\" is in it twice"), "{problems:?}");
        assert!(problems[3].contains("line 516") && problems[3].contains("twice"), "{problems:?}");
        assert!(problems[0].starts_with("line 512: it is not JSON: expected value at column 8"));
        assert!(problems[1].contains("line 513") && problems[1].contains("0xE9"), "{problems:?}");
        assert!(problems[2].contains("not a JSON object"), "{problems:?}");
    }

    #[test]
    fn a_table_has_a_bounded_number_of_columns() {
        let wide = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("column{n}")).collect();
            format!("{}\n{}\n", names.join(","), vec!["x"; count].join(","))
        };
        let (read, _) = rows("a.csv", wide(MOST_COLUMNS).as_bytes());
        assert_eq!(read.unwrap().rows.len(), 1);
        let started = std::time::Instant::now();
        let (read, _) = rows("a.csv", wide(100_000).as_bytes());
        let error = read.unwrap_err().to_string();
        assert!(error.contains("100000 columns") && error.contains("2000"), "{error}");
        assert!(started.elapsed().as_secs() < 30, "it took {:?}", started.elapsed());
    }

    #[test]
    fn an_endless_line_is_skipped_without_being_kept() {
        let mut text = b"{\"id\":\"a\"}\n{\"id\":\"".to_vec();
        text.resize(LONGEST_LINE + 100, b'x');
        text.extend(b"\"}\n{\"id\":\"c\"}\n");
        let (rows, problems) = rows("a.jsonl", &text);
        assert_eq!(rows.unwrap().rows.iter().map(|row| row.line).collect::<Vec<_>>(), [1, 3]);
        assert!(problems[0].contains("line 2") && problems[0].contains("16 MiB"), "{problems:?}");
    }

    #[test]
    fn what_is_no_file_of_cases_is_recognised() {
        for (name, bytes, hint) in [
            ("a.jsonl", &b""[..], "empty"),
            ("a.jsonl", b"\n \n", "empty"),
            ("a.jsonl", b"[{\"id\":1}]", "array"),
            ("a.jsonl", b"{\n  \"id\": 1\n}", "one object a line"),
            ("a.jsonl", b"\xff\xfe{\0", "UTF-16"),
            ("a.jsonl", b"\x1f\x8b\x08", "unpack"),
            ("a.csv", b"id,source\n", "empty"),
            ("a.csv", b"id,id\n1,2\n", "two columns"),
            ("a.parquet", b"PAR1", ".jsonl"),
        ] {
            let error = rows(name, bytes).0.unwrap_err().to_string();
            assert!(error.contains(hint), "{name}: {error}");
        }
    }

    #[test]
    fn tables_of_every_delimiter_give_rows_with_their_lines() {
        for text in [
            "id,source\na,\"x, y; z\"\n\nb,\"two\nlines\"\nc,d\n",
            "id;source\na;\"x, y; z\"\n\nb;\"two\nlines\"\nc;d\n",
            "id\tsource\r\na\t\"x, y; z\"\r\n\r\nb\t\"two\nlines\"\r\nc\td\r\n",
        ] {
            let (rows, problems) = rows("a.csv", text.as_bytes());
            let rows = rows.unwrap().rows;
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 4, 6], "{text}");
            assert_eq!(rows[0].fields["source"], "x, y; z");
        }
        let (_, problems) = rows("a.csv", b"id,source\na\nb,\xe9\n");
        assert!(problems[0].contains("line 2: it has 1 columns"), "{problems:?}");
        assert!(problems[1].contains("line 3: in the column \"source\""), "{problems:?}");
    }

    proptest! {
        #[test]
        fn no_line_breaks_the_parser(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_line(&line);
        }

        #[test]
        fn no_text_breaks_the_parser(line in "[\\PC{}\\[\\]\",:0-9]{0,60}") {
            let _ = parse_line(line.as_bytes());
        }
    }
}

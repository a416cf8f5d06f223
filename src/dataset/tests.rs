use std::fs;
use std::path::{Path, PathBuf};

use deeplook_tools::PixelBox;
use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;

/// A folder with files; names that end in `.png` become pictures of 64×48 pixels.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.add(name, text);
        }
        folder
    }

    fn add(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if text.is_empty() {
            let shade = name.bytes().fold(7u8, u8::wrapping_add);
            let pixels = RgbImage::from_pixel(64, 48, Rgb([shade, 9, 9]));
            pixels.save_with_format(&path, image::ImageFormat::Png).unwrap();
        } else {
            fs::write(&path, text).unwrap();
        }
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn open(&self, name: &str) -> DataSet {
        self.open_with(name, LoadOptions::default()).unwrap()
    }

    fn open_with(&self, name: &str, options: LoadOptions) -> Result<DataSet, String> {
        DataSet::open(&self.path(name), &options).map_err(|error| error.to_string())
    }

    fn with_edits(&self, edits: &str, by: Option<MatchBy>) -> Result<DataSet, String> {
        let edits = Some(self.path(edits));
        self.open_with("cases.jsonl", LoadOptions { edits, match_by: by, ..LoadOptions::default() })
    }
}

fn problems(set: &DataSet) -> Vec<String> {
    set.problems.kept().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn assert_told(set: &DataSet, parts: &[&[&str]]) {
    let told = problems(set);
    assert_eq!(told.len(), parts.len(), "{told:#?}");
    for (told, parts) in told.iter().zip(parts) {
        assert!(parts.iter().all(|part| told.contains(part)), "{told} lacks one of {parts:?}");
    }
}

const CASES: &str = r#"{"id": "a", "source": "in/one.png", "instruction": "do"}
{"id": "b", "source": "in/two.png", "instruction": "do"}
"#;

fn two_cases(more: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(&[("cases.jsonl", CASES), ("in/one.png", ""), ("in/two.png", "")]);
    more.iter().for_each(|(name, text)| drop(folder.add(name, text)));
    folder
}

#[test]
fn a_case_needs_a_source_and_an_instruction_and_nothing_else() {
    let folder = Folder::new(&[
        (
            "cases.jsonl",
            r#"{"id": 7, "source": "a.png", "instruction": "do", "edited": "b.png"}
{"id": "full", "source": "a.png", "instruction": "do", "type": "change_count", "target": ["cup", "mug"], "boxes": [[1, 2, 30, 40]], "reference": "b.png", "edits": {"x": "b.png", "y": null}, "note": 1}
"#,
        ),
        ("a.png", ""),
        ("b.png", ""),
    ]);
    for name in ["cases.jsonl", ""] {
        let set = folder.open(name);
        assert_told(&set, &[]);
        let [first, second] = &set.cases[..] else { panic!("{:?}", set.cases) };
        assert_eq!((first.case.id.as_str(), first.line), ("7", 1));
        assert_eq!(first.edits().keys().collect::<Vec<_>>(), ["edited"]);
        assert_eq!(second.case.facts.text("type").as_deref(), Some("Change Count"));
        assert_eq!(second.case.facts.text("target").as_deref(), Some("cup, mug"));
        assert_eq!(second.case.targets(), [PixelBox::new(1.0, 2.0, 30.0, 40.0)]);
        assert_eq!(set.unused_fields, ["note"]);
        assert_eq!(second.case.facts.text("note").as_deref(), Some("1"));
        let loaded = second.load("x").unwrap();
        assert_eq!((loaded.id.as_str(), loaded.editor.as_deref()), ("full", Some("x")));
        assert!(loaded.reference().is_some());
        assert!(second.load("z").unwrap_err().to_string().contains("there is none by \"z\""));
    }
}

#[test]
fn every_problem_is_collected_with_its_line() {
    let folder = Folder::new(&[
        (
            "cases.jsonl",
            r#"{"id": "a", "source": "a.png", "instruction": "do", "edits": {"x": "gone.png"}}
{"id": "a", "source": "a.png", "instruction": "do"}

{"id": "c", "source": "../a.png", "instruction": "do"}
{"id": "d", "source": "a.png", "instruction": " "}
{"id": "e", "source": "a.png", "instruction": "do", "boxes": [[9, 9, 1, 20]], "refrence": "b.png"}
{"id": "f", "source": "a.png", "instruction": "do", "boxes": "here"}
{"source": "a.png", "instruction": "do"}
{"id": "h", "source": 4, "instruction": "do"}
{"id": "i", "source": "/etc/hostname", "instruction": "do", "edits": ["b.png"]}
{"id": "j\u0007", "source": "a.png", "instruction": "do"}
"#,
        ),
        ("a.png", ""),
    ]);
    let set = folder.open("cases.jsonl");
    assert_told(
        &set,
        &[
            &["line 1: case \"a\"", "edit by \"x\"", "\"gone.png\""],
            &["line 2: case \"a\"", "line 1 already"],
            &["line 4: case \"c\"", "goes up"],
            &["line 5", "\"instruction\" is empty"],
            &["line 6", "box 1", "x2 must be more than x1"],
            &["line 6", "\"refrence\"", "did you mean \"reference\"?"],
            &["line 7", "\"here\"", "no box"],
            &["line 8", "\"id\" is empty or absent"],
            &["line 9", "\"source\" is 4", "not a text"],
            &["line 10", "\"edits\" must be {"],
            &["line 11", "control characters"],
        ],
    );
    assert_eq!((set.problems.errors(), set.problems.warnings()), (10, 1));
    assert_eq!(set.records, 10);
    let kept: Vec<&str> = set.cases.iter().map(|entry| entry.case.id.as_str()).collect();
    assert_eq!(kept, ["a", "c", "e", "f"], "what has a name is kept, to be counted as missing");
    assert!(matches!(set.cases[1].case.source, PictureFile::Unreadable(_)));
    assert!(set.cases[1].load("x").is_err());
}

#[test]
fn a_table_is_the_same_as_lines() {
    let folder = Folder::new(&[
        (
            "cases.csv",
            "id,source,instruction,edited,editor,boxes,type\n\
             a,a.png,\"do, please\",b.png,x,\"1,2,30,40;5,6,7,9\",\n\
             b,a.png,do,b.png,x,\"[[1,2,30,40]]\",Change Color\n",
        ),
        ("a.png", ""),
        ("b.png", ""),
    ]);
    let set = folder.open("");
    assert_told(&set, &[]);
    assert_eq!(set.cases[0].case.instruction, "do, please");
    assert_eq!((set.cases[0].case.targets().len(), set.cases[1].case.targets().len()), (2, 1));
    assert_eq!((set.cases[0].line, set.cases[0].case.facts.text("type").as_deref()), (2, None));
    assert_eq!(set.editors[0].found, 2);
}

#[test]
fn dlebench_is_read_as_it_is() {
    let line = |image: &str, more: &str| {
        format!(
            r#"{{"image": "{image}", "reference_image": "{image}", "edit_operation": "do", "prompt_clean": "a room"{more}}}"#
        )
    };
    let text = [
        line("one.png", r#", "instruction_type": "Change Color", "target_object": "cup", "bbox": [30, 20, 60, 40]"#),
        line("two.png", r#", "bbox": [[40, 30, 50, 45]]"#),
        line("one.png", r#", "bbox": "[1, 2, 5, 9]""#),
    ]
    .join("\n");
    let folder = Folder::new(&[("data.jsonl", &text)]);
    for name in ["one", "two"] {
        folder.add(&format!("Source_Images/{name}.png"), "");
        folder.add(&format!("Reference_Images/{name}.png"), "");
    }
    let set = folder.open("");
    assert_told(&set, &[]);
    let ids: Vec<&str> = set.cases.iter().map(|entry| entry.case.id.as_str()).collect();
    assert_eq!(ids, ["one-1", "two", "one-2"]);
    assert_eq!(set.cases[0].case.targets(), [PixelBox::new(30.0, 20.0, 60.0, 40.0)]);
    let reference = set.cases[1].case.reference().unwrap().path().unwrap();
    assert!(reference.ends_with("Reference_Images/two.png"), "{}", reference.display());

    let clear = text
        .replace("[30, 20, 60, 40]", "[30, 20, 10, 10]")
        .replace("[[40, 30, 50, 45]]", "[[3, 3, 9, 9]]");
    fs::write(folder.path("data.jsonl"), clear).unwrap();
    assert_eq!(folder.open("").cases[0].case.targets(), [PixelBox::new(30.0, 20.0, 40.0, 30.0)]);

    let unclear = text
        .replace("[30, 20, 60, 40]", "[3, 3, 9, 9]")
        .replace("[[40, 30, 50, 45]]", "[[3, 3, 9, 9]]");
    fs::write(folder.path("data.jsonl"), unclear).unwrap();
    let error = folder.open_with("", LoadOptions::default()).unwrap_err();
    assert!(error.contains("\"bbox\"") && error.contains("--map boxes=bbox:xyxy"), "{error}");
    let mapping = Mapping::parse(&["boxes=bbox:xywh"]).unwrap();
    let set = folder.open_with("", LoadOptions { mapping, ..LoadOptions::default() }).unwrap();
    assert_eq!(set.cases[0].case.targets(), [PixelBox::new(3.0, 3.0, 12.0, 12.0)]);
}

#[test]
fn a_folder_without_one_clear_data_set_is_refused() {
    let folder = Folder::new(&[("notes.txt", "x")]);
    assert!(folder.open_with("", LoadOptions::default()).unwrap_err().contains("cases.jsonl"));
    assert!(
        folder.open_with("none", LoadOptions::default()).unwrap_err().contains("check the path")
    );
    folder.add("cases.jsonl", CASES);
    folder.add("data.jsonl", CASES);
    let error = folder.open_with("", LoadOptions::default()).unwrap_err();
    assert!(error.contains("cases.jsonl and data.jsonl"), "{error}");
}

fn states(set: &DataSet, editor: &str) -> Vec<String> {
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    set.cases
        .iter()
        .map(|entry| match &entry.edits()[editor] {
            PictureFile::Found(path) => name(path),
            PictureFile::Missing(_) => "missing".to_owned(),
            PictureFile::Unreadable(_) => "unreadable".to_owned(),
            PictureFile::Ambiguous(_) => "ambiguous".to_owned(),
        })
        .collect()
}

#[test]
fn outputs_are_found_by_id_or_source_name_whatever_their_extension() {
    let folder = two_cases(&[
        ("out/red/A.PNG", ""),
        ("out/red/TWO.jpeg", "no picture"),
        ("out/blue/color/a.webp", ""),
        ("out/blue/b.png", ""),
        ("out/blue/two.bmp", ""),
        ("out/blue/other.png", ""),
        ("out/blue/notes.txt", "x"),
        ("out/blue/._a.png", "x"),
        ("out/empty/readme.md", "x"),
        ("out/overview.png", ""),
    ]);
    let set = folder.with_edits("out", None).unwrap();
    assert_eq!(states(&set, "red"), ["A.PNG", "unreadable"]);
    assert_eq!(states(&set, "blue"), ["a.webp", "ambiguous"]);
    assert_eq!(set.editors.iter().map(|e| e.editor.as_str()).collect::<Vec<_>>(), ["blue", "red"]);
    assert_eq!(set.editors[0].extra_names, ["other.png"]);
    assert_told(
        &set,
        &[&["line 2", "\"blue\"", "b.png", "two.bmp"], &["line 2", "\"red\"", "TWO.jpeg"]],
    );

    let set = folder.with_edits("out", Some(MatchBy::Id)).unwrap();
    assert_eq!(states(&set, "blue"), ["a.webp", "b.png"]);
    assert_eq!(states(&set, "red"), ["A.PNG", "missing"]);
    let set = folder.with_edits("out/red", None).unwrap();
    assert_eq!(set.editors[0].editor, "red");
}

#[test]
fn the_same_content_twice_is_still_ambiguous() {
    let folder = two_cases(&[
        ("out/a.png", ""),
        ("out/a.jpg", ""),
        ("out/x/b.png", ""),
        ("out/y/b.png", ""),
    ]);
    fs::copy(folder.path("out/a.png"), folder.path("out/a.jpg")).unwrap();
    let set = folder.with_edits("out", None).unwrap();
    assert_eq!(states(&set, "out"), ["ambiguous", "ambiguous"]);
    assert_eq!((set.editors[0].ambiguous, set.editors[0].extra), (2, 0));
    assert_eq!(set.problems.errors(), 2);
}

#[test]
fn one_file_for_two_cases_is_never_given_to_both() {
    let text = CASES.replace("two.png", "one.png");
    let folder = Folder::new(&[("cases.jsonl", &text), ("in/one.png", ""), ("out/one.png", "")]);
    let set = folder.with_edits("out", None).unwrap();
    assert_eq!(states(&set, "out"), ["ambiguous", "ambiguous"]);
    assert!(problems(&set)[0].contains("name the outputs by id"), "{:?}", problems(&set));
    folder.add("out/a.png", "");
    assert_eq!(states(&folder.with_edits("out", None).unwrap(), "out"), ["a.png", "one.png"]);
}

#[test]
fn a_wrong_folder_is_noticed_at_once() {
    let folder = two_cases(&[("out/x.png", ""), ("out/y.png", ""), ("none/readme.md", "x")]);
    let error = folder.with_edits("out", None).unwrap_err();
    for part in ["\"a.png\"", "\"b.png\"", "\"x.png\"", "\"y.png\""] {
        assert!(error.contains(part), "{error}");
    }
    assert!(folder.with_edits("none", None).unwrap_err().contains("no pictures"));
    assert!(folder.with_edits("absent", None).unwrap_err().contains("check the path"));
    let folder = two_cases(&[("out/good/a.png", ""), ("out/odd/x.png", "")]);
    assert!(folder.with_edits("out", None).unwrap_err().contains("\"odd\""));
}

#[test]
fn the_folder_replaces_what_the_file_names() {
    let text = r#"{"id": "a", "source": "a.png", "instruction": "do", "edits": {"x": "gone.png"}}"#;
    let folder = Folder::new(&[("cases.jsonl", text), ("a.png", ""), ("out/a.png", "")]);
    let set = folder.with_edits("out", None).unwrap();
    assert_eq!(set.cases[0].edits().keys().collect::<Vec<_>>(), ["out"]);
    assert_told(&set, &[]);
}

#[test]
fn many_cases_may_share_one_picture() {
    let line = r#"{"source": "a.png", "instruction": "do", "edited": "a.png"}"#;
    let folder =
        Folder::new(&[("cases.jsonl", &format!("{line}\n").repeat(20_000)), ("a.png", "")]);
    let started = std::time::Instant::now();
    let set = folder.open("");
    assert_eq!((set.cases.len(), set.cases[19_999].case.id.as_str()), (20_000, "a-20000"));
    // Counting from 1 for each of them took minutes.
    assert!(started.elapsed().as_secs() < 300, "it took {:?}", started.elapsed());
}

#[test]
fn a_file_has_a_bounded_number_of_fields() {
    let fields: Vec<String> = (0..5000).map(|n| format!("\"f{n}\": 1")).collect();
    let line =
        format!("{{\"source\": \"a.png\", \"instruction\": \"do\", {}}}\n", fields.join(", "));
    let folder = Folder::new(&[("cases.jsonl", &line), ("a.png", "")]);
    let error = folder.open_with("", LoadOptions::default()).unwrap_err();
    assert!(error.contains("more than 2000 different fields"), "{error}");
}

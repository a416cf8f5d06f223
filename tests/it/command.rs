//! The command as a user types it: what it prints, what it writes, how it exits.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use deeplook::dataset::draw;
use serde_json::Value;
use tempfile::TempDir;

/// `deeplook` with nothing of the user's environment that could matter.
pub(crate) fn deeplook(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deeplook"));
    command.current_dir(folder).stdin(Stdio::null());
    for name in
        ["DEEPLOOK_MODEL", "HF_ENDPOINT", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ORT_DYLIB_PATH"]
    {
        command.env_remove(name);
    }
    // Neither what this machine has fetched nor the network.
    command.env("DEEPLOOK_CACHE", folder.join("cache")).env("DEEPLOOK_OFFLINE", "1");
    command
}

pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    deeplook(folder).args(args).output().unwrap()
}

#[track_caller]
pub(crate) fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

/// A folder with a drawn pair: `source.png`, `edited.png` and `reference.png`.
pub(crate) fn pair() -> (TempDir, draw::DrawnCase) {
    let case = draw::case(5, 0).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, picture: &deeplook::tools::Picture| {
        fs::write(folder.path().join(name), picture.to_png()).unwrap();
    };
    save("source.png", &case.source);
    save("reference.png", &case.reference);
    let perfect = case.edits.iter().find(|edit| edit.editor == draw::Editor::Perfect).unwrap();
    save("edited.png", &perfect.picture);
    (folder, case)
}

#[test]
fn localize_differences_finds_the_edit_and_writes_crops() {
    let (folder, case) = pair();
    let args =
        ["tool", "localize_differences", "source.png", "edited.png", "--out", "crops", "--json"];
    let printed = json(&run(folder.path(), &args));
    let found: deeplook::tools::PixelBox =
        serde_json::from_value(printed["data"]["regions"][0]["bbox"].clone()).unwrap();
    let overlap = case.boxes.iter().map(|target| target.intersection(&found).area()).sum::<f64>();
    assert!(overlap > 0.0, "{found} does not touch {:?}", case.boxes);
    for image in printed["images"].as_array().unwrap() {
        let path = folder.path().join(image["path"].as_str().unwrap());
        assert!(deeplook::tools::Picture::load(&path).is_ok(), "{}", path.display());
    }
    assert!(printed["text"].as_str().unwrap().contains("region"));
}

#[test]
fn zoom_needs_no_more_than_a_box() {
    let (folder, _) = pair();
    let args = ["tool", "zoom_in", "source.png", "--args", r#"{"bbox":[10,20,60,80]}"#, "--json"];
    let printed = json(&run(folder.path(), &args));
    assert_eq!(printed["data"]["source"], "Original Image");
    let path = printed["images"][0]["path"].as_str().unwrap();
    assert!(
        Path::new(path).is_file(),
        "without --out the picture is in a temporary folder: {path}"
    );
}

#[test]
fn the_same_command_twice_gives_the_same_bytes() {
    let (folder, _) = pair();
    let files = |out: &str| {
        stdout(&run(
            folder.path(),
            &["tool", "localize_differences", "source.png", "edited.png", "--out", out],
        ));
        let mut files: Vec<_> =
            fs::read_dir(folder.path().join(out)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(files("one"), files("two"));
}

#[test]
fn mistakes_are_explained_and_exit_with_two() {
    let (folder, _) = pair();
    fs::write(folder.path().join("empty.png"), b"").unwrap();
    let judge =
        |more: &[&'static str]| [&["judge", "source.png", "edited.png", "-i", "x"], more].concat();
    let endless = "[".repeat(100_000);
    for (args, hint) in [
        (vec!["tool", "sharpen", "source.png"], "zoom_in"),
        (vec!["tool", "zoom_in"], "no picture given"),
        (vec!["tool", "zoom_in", "absent.png", "--args", "{}"], "absent.png"),
        (vec!["tool", "zoom_in", "empty.png", "--args", "{}"], "empty"),
        (vec!["tool", "zoom_in", "source.png", "--args", "nonsense"], "--args is not JSON"),
        (vec!["tool", "zoom_in", "source.png", "--args", "[1]"], "JSON object"),
        (vec!["tool", "zoom_in", "source.png", "--args", &endless], "…"),
        (vec!["tool", "zoom_in", "source.png", "--args", "{}"], "bbox"),
        (vec!["tool", "localize_differences", "source.png"], "Edited Image"),
        (vec!["dataset", "make", "--out", "d", "--cases", "0"], "cases"),
        (vec!["dataset", "make", "--out", ".", "--cases", "1"], "not empty"),
        (vec!["judge", "source.png", "absent.png", "-i", "x"], "absent.png"),
        (vec!["judge", "source.png", "edited.png", "-i", " "], "instruction"),
        (judge(&["--mode", "oracle"]), "--box"),
        (judge(&["--box", "9,9,1,1"]), "box 1 is [9, 9, 1, 1]"),
        (judge(&["--box", "9,9,10,10"]), "less than 4 pixels"),
        (judge(&["--box", "9,9,99999,20"]), "not inside"),
        (judge(&["--box", "1,2,3"]), "x1,y1,x2,y2"),
        (judge(&["--criterion", "beauty"]), "beauty"),
        (judge(&["--model", "m", "--param", "temperature"]), "KEY=VALUE"),
        (judge(&["--param", "seed=1"]), "drop them"),
        (judge(&["--model", "m", "--base-url", "http://"]), "names no server"),
        (judge(&["--model", "m", "--base-url", "localhost:1/v1"]), "write http://localhost:1/v1"),
        (judge(&["--model", "m", "--prices", "source.png"]), "source.png"),
    ] {
        let output = run(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(output.stderr.len() < 2000, "{args:?}");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "nothing half-written: {left:?}");
}

#[test]
fn dataset_make_writes_what_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&run(
        folder.path(),
        &["dataset", "make", "--out", "scenes", "--cases", "1", "--seed", "9"],
    ));
    let scenes = folder.path().join("scenes");
    let line = fs::read_to_string(scenes.join("cases.jsonl")).unwrap();
    let case: Value = serde_json::from_str(line.trim()).unwrap();
    for key in ["id", "source", "reference", "instruction", "type", "target", "boxes", "edits"] {
        assert!(!case[key].is_null(), "{key}");
    }
    let paths =
        case["edits"].as_object().unwrap().values().chain([&case["source"], &case["reference"]]);
    for path in paths {
        assert!(scenes.join(path.as_str().unwrap()).is_file(), "{path}");
    }
    let labels = fs::read_to_string(scenes.join("labels.jsonl")).unwrap();
    assert_eq!(labels.lines().count(), 2 * case["edits"].as_object().unwrap().len());
}

#[test]
fn completions_and_help_are_there() {
    let folder = tempfile::tempdir().unwrap();
    assert!(stdout(&run(folder.path(), &["completions", "bash"])).contains("deeplook"));
    for command in ["tool", "judge", "dataset make", "demo", "prompts"] {
        let args: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = stdout(&run(folder.path(), &args));
        assert!(help.contains("Example") || help.contains("Commands"), "{command}: {help}");
    }
}

#[test]
fn pictures_of_absurd_shapes_are_compared_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let save = |name: &str, width: u32, height: u32, shade: u8| {
        let pixels = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x * 7) as u8, (y * 13) as u8, shade])
        });
        pixels.save(folder.path().join(name)).unwrap();
    };
    let shapes = [
        ("a.png", 6000, 3, 0),
        ("b.png", 6000, 3, 90),
        ("c.png", 1, 3000, 9),
        ("d.png", 1, 1, 5),
        ("e.png", 64, 48, 7),
    ];
    for (name, width, height, shade) in shapes {
        save(name, width, height, shade);
    }
    for (first, ..) in shapes {
        for (second, ..) in shapes {
            let output =
                run(folder.path(), &["tool", "localize_differences", first, second, "--out", "o"]);
            assert_eq!(output.status.code(), Some(0), "{first} {second}: {}", stderr(&output));
        }
    }
}

#[test]
fn the_demo_takes_away_nothing_of_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "mine").unwrap();
    fs::write(folder.path().join("index.html"), "about <!-- deeplook demo -->").unwrap();
    let output = run(folder.path(), &["demo", "--out", "."]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
}

//! `deeplook dataset check` and `stats` as a user meets them.

use std::fs;
use std::path::Path;

use deeplook::dataset::draw;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command::{json, run, stderr, stdout};

/// A folder with cases in `scenes/`: small pictures, one box each, and two editors, of which one
/// does nothing.
fn scenes(cases: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for at in 0..cases {
        let id = format!("case-{at}");
        let save = |part: &str, shade: u8| {
            let name = format!("{part}/{id}.png");
            let path = folder.path().join("scenes").join(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let pixels = image::RgbImage::from_pixel(64, 48, image::Rgb([shade, at as u8, 9]));
            pixels.save(path).unwrap();
            name
        };
        let kind = draw::Kind::ALL[at % 7].name();
        lines.push(json!({
            "id": id, "source": save("sources", 1), "reference": save("references", 2),
            "instruction": "Change the color of the cup to red", "type": kind, "target": "cup", "boxes": [[5, 5, 10, 9]],
            "edits": {"perfect": save("edits/perfect", 3), "no-op": save("edits/no-op", 1)},
        }));
    }
    write_lines(folder.path(), &lines);
    folder
}

fn lines(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("scenes/cases.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn write_lines(folder: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("scenes/cases.jsonl"), text).unwrap();
}

/// The problems that `check --json` finds, and its exit code.
fn check(folder: &Path, more: &[&str]) -> (Vec<Value>, Option<i32>) {
    let args = [&["dataset", "check", "scenes", "--json"], more].concat();
    let output = run(folder, &args);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (printed["problems"].as_array().cloned().unwrap_or_default(), output.status.code())
}

#[test]
fn a_cause_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["dataset", "check", "no-such-folder"]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("no-such-folder") && told.contains("check the path"), "{told}");
    assert_eq!(told.matches("os error").count(), 1, "{told}");
}

#[test]
fn an_editor_that_does_nothing_is_a_warning() {
    let folder = scenes(7);
    let (problems, code) = check(folder.path(), &[]);
    assert_eq!((problems.len(), code), (7, Some(0)), "{problems:#?}");
    for problem in &problems {
        let message = problem["message"].as_str().unwrap();
        assert_eq!(problem["severity"], "warning", "{problem}");
        assert!(message.contains("the editor did nothing"), "{problem}");
    }
    let text = stdout(&run(folder.path(), &["dataset", "check", "scenes/cases.jsonl"]));
    assert!(text.contains("7 cases") && text.contains("perfect"), "{text}");
    assert_eq!(check(folder.path(), &["--strict"]).1, Some(1));
}

#[test]
fn a_drawn_set_has_no_errors() {
    let folder = tempfile::tempdir().unwrap();
    draw::make(&folder.path().join("scenes"), 1, 3, &|| ()).unwrap();
    let (problems, code) = check(folder.path(), &[]);
    assert_eq!(code, Some(0), "{problems:#?}");
}

#[test]
fn everything_that_is_wrong_is_told_with_its_line() {
    let folder = scenes(7);
    let scenes = folder.path().join("scenes");
    let mut cases = lines(folder.path());
    let file = |case: &Value, editor: &str| scenes.join(case["edits"][editor].as_str().unwrap());
    let source = |case: &Value| scenes.join(case["source"].as_str().unwrap());
    fs::remove_file(source(&cases[0])).unwrap();
    fs::copy(source(&cases[1]), file(&cases[1], "perfect")).unwrap();
    fs::write(file(&cases[2], "perfect"), b"\x89PNG\r\n\x1a\n cut off").unwrap();
    cases[3]["boxes"] = json!([[5, 5, 99999, 20]]);
    cases[4]["id"] = cases[3]["id"].clone();
    cases[5]["reference"] = cases[5]["edits"]["no-op"].clone();
    cases[6]["source"] = json!("../../escape.png");
    write_lines(folder.path(), &cases);
    let mut text = fs::read(scenes.join("cases.jsonl")).unwrap();
    text.extend(b"{\"id\": oops}\n");
    fs::write(scenes.join("cases.jsonl"), text).unwrap();

    let (problems, code) = check(folder.path(), &[]);
    assert_eq!(code, Some(1));
    for (line, severity, part) in [
        (1, "error", "there is no file"),
        (2, "warning", "the same file, byte for byte, as the source"),
        (3, "error", "edit by \"perfect\": cannot read the picture"),
        (4, "error", "it is not inside"),
        (5, "error", "line 4 already"),
        (6, "warning", "as the reference"),
        (7, "error", "goes up"),
        (8, "error", "not JSON"),
    ] {
        let fits = |problem: &&Value| {
            problem["line"] == line
                && problem["severity"] == severity
                && problem["message"].as_str().unwrap().contains(part)
        };
        assert!(problems.iter().any(|problem| fits(&problem)), "{line} {part}: {problems:#?}");
    }
    let output = run(folder.path(), &["dataset", "check", "scenes"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("line 8: it is not JSON") && text.contains("errors"), "{text}");
}

#[test]
fn what_cannot_be_read_at_all_exits_with_two() {
    let folder = scenes(1);
    fs::write(folder.path().join("empty.jsonl"), "\n").unwrap();
    fs::write(folder.path().join("other.jsonl"), "{\"picture\": \"a\", \"text\": \"b\"}\n")
        .unwrap();
    fs::create_dir(folder.path().join("outputs")).unwrap();
    fs::copy(
        folder.path().join("scenes").join(lines(folder.path())[0]["source"].as_str().unwrap()),
        folder.path().join("outputs/\u{1b}[31mred.png"),
    )
    .unwrap();
    for (args, hint) in [
        (vec!["absent"], "check the path"),
        (vec!["."], "cases.jsonl"),
        (vec!["empty.jsonl"], "no cases"),
        (vec!["other.jsonl"], "seen: \"picture\", \"text\""),
        (vec!["scenes", "--map", "nonsense"], "field=name"),
        (vec!["scenes", "--map", "instruction=words"], "no case has a field of this name"),
        (vec!["scenes", "--edits", "outputs"], "expected names such as"),
    ] {
        for verb in ["check", "stats"] {
            let args = [&["dataset", verb], &args[..]].concat();
            let output = run(folder.path(), &args);
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
            assert!(!stderr(&output).contains('\u{1b}'), "{args:?}: {}", stderr(&output));
            assert!(output.stdout.is_empty(), "{args:?}");
        }
    }
}

#[test]
fn outputs_in_a_folder_are_counted_by_editor() {
    let folder = scenes(3);
    let outputs = folder.path().join("outputs/mine");
    fs::create_dir_all(&outputs).unwrap();
    let cases = lines(folder.path());
    let picture = folder.path().join("scenes").join(cases[0]["source"].as_str().unwrap());
    let id = |at: usize| cases[at]["id"].as_str().unwrap().to_owned();
    fs::copy(&picture, outputs.join(format!("{}.PNG", id(0).to_uppercase()))).unwrap();
    fs::write(outputs.join(format!("{}.jpg", id(1))), "no picture").unwrap();
    fs::copy(&picture, outputs.join("stray.png")).unwrap();
    let args = ["dataset", "stats", "scenes", "--edits", "outputs", "--json"];
    let stats = json(&run(folder.path(), &args));
    let mine = &stats["editors"][0];
    assert_eq!(mine["editor"], "mine");
    for (what, count) in
        [("found", 1), ("missing", 1), ("unreadable", 1), ("ambiguous", 0), ("extra", 1)]
    {
        assert_eq!(mine[what], count, "{what}: {mine}");
    }
    let (problems, code) = check(folder.path(), &["--edits", "outputs/mine"]);
    assert_eq!(code, Some(1));
    let missing = problems.iter().find(|problem| problem["line"] == 3).unwrap();
    assert_eq!(missing["severity"], "warning", "an editor may refuse: {missing}");
}

#[test]
fn stats_are_a_table_and_a_plot() {
    let folder = scenes(14);
    let args = ["dataset", "stats", "scenes", "--out"];
    for name in ["stats.svg", "stats.html"] {
        let text = stdout(&run(folder.path(), &[&args[..], &[name]].concat()));
        for part in ["Change OCR", "median area", "█", name, "14 cases"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let plot = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(plot.contains("<svg") && plot.contains("Change OCR"), "{plot}");
    }
    let stats = json(&run(folder.path(), &["dataset", "stats", "scenes", "--json"]));
    assert_eq!(stats["types"].as_array().unwrap().len(), 7);
    let boxes: usize =
        lines(folder.path()).iter().map(|case| case["boxes"].as_array().unwrap().len()).sum();
    assert_eq!(stats["areas"]["count"], boxes);
    let median = stats["areas"]["median"].as_f64().unwrap();
    assert!((median - 100.0 * 20.0 / (64.0 * 48.0)).abs() < 1e-9, "{median} %");
    let output = run(folder.path(), &[&args[..], &["stats.pdf"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(".svg or .html"), "{}", stderr(&output));
}

#[test]
fn unknown_columns_are_facts_that_choose_cases_and_reach_the_results() {
    let folder = scenes(3);
    let mut all = lines(folder.path());
    for (line, law) in all.iter_mut().zip(["Reflection", "Global", "Reflection"]) {
        line["law"] = json!(law);
    }
    write_lines(folder.path(), &all);
    let eval =
        ["eval", "scenes", "--mode", "plain", "--run", "run", "--editor", "perfect", "--quiet"];
    let output = run(folder.path(), &[&eval[..], &["--where", "law=reflection"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let results = fs::read_to_string(folder.path().join("run/results.jsonl")).unwrap();
    let results: Vec<Value> = results.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let mut cases: Vec<&str> = results.iter().filter_map(|line| line["case"].as_str()).collect();
    cases.sort_unstable();
    assert_eq!(cases, ["case-0", "case-0", "case-2", "case-2"]);
    assert_eq!(results[0]["facts"], json!({ "law": "Reflection", "target": "cup" }));

    let output = run(folder.path(), &[&eval[..], &["--where", "law=Refraction"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("\"law\" is Global, Reflection"), "{told}");
}

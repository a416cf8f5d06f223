//! What servers, data sets, traces and results say is text on a terminal and nothing else.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, stderr};
use super::judging::files;
use super::runs::{data, eval};
use super::wire::server::{Server, Step, answer, completion};

/// Renames the window, erases the screen, goes back in the line, and turns the direction of reading.
const EVIL: &str =
    "x\u{1b}]0;evil\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}\r\u{8}y";

fn reply(request: &Value) -> Value {
    if !request["messages"].to_string().contains("Perfect Consistency") {
        let refusal = json!({"role": "assistant", "content": null, "refusal": EVIL});
        return completion(&refusal, EVIL);
    }
    let content = format!("{EVIL}<Start Final Answer>Single Anomaly</Start Final Answer>");
    completion(&json!({"role": "assistant", "content": content}), EVIL)
}

/// A data set with hostile names.
fn hostile_data() -> TempDir {
    let folder = data(3);
    let path = folder.path().join("set/cases.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let evil = serde_json::to_string(EVIL).unwrap();
    let lines = lines
        .replace("\"good\"", &evil)
        .replace("\"Change Color\"", &evil)
        .replace("\"make it", &format!("\"{} make it", evil.trim_matches('"')));
    fs::write(path, lines).unwrap();
    folder
}

/// A run over such a data set, with a server that is no better.
fn hostile_run(folder: &Path, name: &str) -> Output {
    let server = Server::start(vec![Step::Reply(reply)]);
    let mut command = eval(folder, &server, &["--run", name, "--no-cache"]);
    command.args(["--param", &format!("user={EVIL}")]);
    command.env("CLICOLOR_FORCE", "1").env("RUST_LOG", "trace").output().unwrap()
}

/// Nothing that a terminal would obey but colours of ours.
#[track_caller]
fn is_plain(what: &str, output: &Output) -> String {
    let mut all = output.stdout.clone();
    all.extend(&output.stderr);
    let text = String::from_utf8(all).unwrap();
    let mut left = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        left.push_str(before);
        let code = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        assert!(code.starts_with('m'), "{what}: {after:?}");
        rest = &code[1..];
    }
    left.push_str(rest);
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let obeyed =
        |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c) || c == '\u{2028}';
    let found: Vec<char> = left.chars().filter(|c| obeyed(*c)).collect();
    assert!(found.is_empty(), "{what} prints {found:?}: {left:?}");
    left
}

#[test]
fn nothing_from_elsewhere_steers_the_terminal() {
    let folder = hostile_data();
    for name in ["a", "b"] {
        let output = hostile_run(folder.path(), name);
        let shown = is_plain("eval", &output);
        assert!(shown.contains("12 of 12 judgements"), "{shown}");
        assert!(shown.contains("[U+202E]"), "it is spelled out: {shown}");
    }
    let labels = json!({"case": "c0", "editor": EVIL, "criterion": "vc", "annotator": EVIL,
                        "label": "Single Anomaly", "type": EVIL});
    fs::write(folder.path().join("labels.jsonl"), format!("{labels}\n")).unwrap();
    let trace = files(&folder.path().join("a"))
        .into_iter()
        .find(|path| path.ends_with("events.jsonl"))
        .unwrap();
    let trace = trace.parent().unwrap().to_str().unwrap().to_owned();
    let commands: [&[&str]; 21] = [
        &["run", "status", "a"],
        &["run", "status", "a", "--json"],
        &["run", "rebuild", "a"],
        &["run", "merge", "a", "b", "--into", "c"],
        &["report", "a", "b"],
        &["report", "a", "--format", "csv"],
        &["report", "a", "--format", "latex"],
        &["report", "a", "--format", "json"],
        &["report", "a", "--format", "html"],
        &["report", "a", "--min-coverage", "99%"],
        &["agree", "a", "b", "--labels", "labels.jsonl"],
        &["agree", "a", "--labels", "labels.jsonl", "--json"],
        &["compare", "a", "b"],
        &["compare", "a", "b", "--json"],
        &["replay", "a"],
        &["replay", "a", "--json"],
        &["trace", "show", &trace],
        &["trace", "export", &trace],
        &["dataset", "check", "set"],
        &["dataset", "stats", "set"],
        &["prompts", "diff", "--runs", "a", "b"],
    ];
    for args in commands {
        let mut command = deeplook(folder.path());
        let output = command.args(args).env("CLICOLOR_FORCE", "1").output().unwrap();
        let shown = is_plain(&args.join(" "), &output);
        assert!(!shown.contains("panicked") && shown.len() > 20, "{args:?}: {shown}");
    }
    // Not only what we made: fields that were changed afterwards.
    for (file, from) in [("results.jsonl", "\"Single Anomaly\""), ("results.jsonl", "\"vc\"")] {
        let path = folder.path().join("b").join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(from, &serde_json::to_string(EVIL).unwrap())).unwrap();
        for args in [
            &["report", "b"][..],
            &["run", "status", "b"],
            &["compare", "a", "b"],
            &["replay", "b"],
        ] {
            let mut command = deeplook(folder.path());
            let output = command.args(args).env("CLICOLOR_FORCE", "1").output().unwrap();
            is_plain(&args.join(" "), &output);
        }
    }
    for args in [
        &["report", EVIL][..],
        &["replay", EVIL],
        &["nothing", EVIL],
        &["judge", EVIL, "--mode", EVIL],
    ] {
        let output =
            deeplook(folder.path()).args(args).env("CLICOLOR_FORCE", "1").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        is_plain("an error", &output);
    }
}

#[test]
fn errors_of_servers_are_text() {
    let folder = data(1);
    let server = Server::start(vec![answer(400, &json!({"error": {"message": EVIL}}))]);
    let mut command = eval(folder.path(), &server, &["--no-cache"]);
    let output = command.env("CLICOLOR_FORCE", "1").output().unwrap();
    let shown = is_plain("eval", &output);
    assert!(shown.contains("evil"), "{shown}");
    assert!(stderr(&output).len() > 10);
}

#[test]
fn json_keeps_what_was_said() {
    let folder = hostile_data();
    hostile_run(folder.path(), "a");
    let mut command = deeplook(folder.path());
    let output = command.args(["report", "a", "--format", "json"]).output().unwrap();
    is_plain("JSON", &output);
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(read.to_string().contains(&serde_json::to_string(EVIL).unwrap()), "the same value");
}

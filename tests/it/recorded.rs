//! Judging again from recorded traces: other words on what was seen, and no tool runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use deeplook::trace::{Bundle, ToolAnswer, What};
use serde_json::{Value, json};

use super::command::{deeplook, json as printed, run as typed, stderr, stdout};
use super::runs::{data, exit, judged, lines, policy};
use super::wire::server::{Server, Step, answer, completion};

fn call(name: &str, arguments: &Value) -> Value {
    let function = json!({ "name": name, "arguments": arguments.to_string() });
    let call = json!({ "id": "call_a", "type": "function", "function": function });
    let message = json!({ "role": "assistant", "content": "I look first.", "tool_calls": [call] });
    completion(&message, "tool_calls")
}

fn observations(request: &Value) -> Vec<&Value> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] == "tool").collect()
}

/// A model that looks once and then answers by what the whole conversation says.
fn looks_once(request: &Value) -> Value {
    match observations(request).is_empty() {
        true => call("zoom_in", &json!({ "target_image": "Edited Image", "bbox": [4, 4, 20, 20] })),
        false => policy(request),
    }
}

/// A model that wants to look elsewhere whatever it has seen, until it is told that it cannot.
fn looks_on(request: &Value) -> Value {
    match request["messages"].to_string().contains("No tool can be used here") {
        true => policy(request),
        false => {
            call("zoom_in", &json!({ "target_image": "Original Image", "bbox": [0, 0, 9, 9] }))
        }
    }
}

fn command(folder: &Path, server: &Server, more: &[&str]) -> Command {
    let mut command = deeplook(folder);
    command.args(["eval", "--model", "some-model", "--base-url", &server.base_url]).args(more);
    command
}

fn eval(folder: &Path, server: &Server, more: &[&str]) -> Output {
    command(folder, server, more).output().unwrap()
}

/// A pack that says something else in every prompt.
fn other_words(folder: &Path) {
    stdout(&typed(folder, &["prompts", "new", "other"]));
    for file in ["if.j2", "vc.j2"] {
        let path = folder.join("other").join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("Take your time with this one.\n{text}")).unwrap();
    }
}

fn bundles(folder: &Path, run: &str) -> Vec<Bundle> {
    let all = lines(&folder.join(run));
    let trace = |line: &Value| folder.join(run).join(line["trace"].as_str().unwrap());
    all.values().map(|line| Bundle::read(&trace(line)).unwrap()).collect()
}

#[test]
fn only_answers_are_asked_for_and_the_same_words_get_the_same_answer() {
    let folder = data(2);
    let folder = folder.path();
    let server = Server::start(vec![Step::Reply(looks_once)]);
    stdout(&eval(folder, &server, &["set", "--run", "base"]));
    assert_eq!((lines(&folder.join("base")).len(), server.arrived().len()), (8, 16));

    // With the same words it is the same question, byte by byte: the kept reply answers it.
    stdout(&eval(folder, &server, &["--from-traces", "base", "--run", "same"]));
    assert_eq!(server.arrived().len(), 16);
    assert_eq!(judged(&folder.join("base")), judged(&folder.join("same")));

    let plan = ["--from-traces", "base", "--run", "other-run", "--prompts", "other", "--no-cache"];
    other_words(folder);
    let shown = printed(&eval(folder, &server, &[&plan[..], &["--plan", "--json"]].concat()));
    assert_eq!((&shown["judgements"], &shown["calls"]), (&json!(8), &json!(8)));
    assert!(!folder.join("other-run").exists());
    stdout(&eval(folder, &server, &plan));
    let asked = server.arrived();
    assert_eq!(asked.len(), 24, "one question for each judgement");
    for question in &asked[16..] {
        let question = question.json();
        assert!(question.to_string().contains("Take your time with this one."));
        assert_eq!(observations(&question).len(), 1);
    }
    let (before, after) = (bundles(folder, "base"), bundles(folder, "other-run"));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(after.manifest.parent.as_ref(), Some(&before.digest));
        assert_eq!(after.manifest.tools, before.manifest.tools);
        assert_ne!(after.manifest.pack.hash, before.manifest.pack.hash);
        let seen = |bundle: &Bundle| -> Vec<ToolAnswer> {
            let all = bundle.events.iter().filter_map(|event| match &event.event {
                What::Observed(observed) => Some(observed.answer.clone()),
                _ => None,
            });
            all.collect()
        };
        assert_eq!((seen(before).len(), seen(before)), (1, seen(after)));
    }
    for line in lines(&folder.join("other-run")).values() {
        assert_eq!((&line["turns"], &line["cached"]), (&json!(2), &json!(1)), "{line}");
    }
    for run in ["same", "other-run"] {
        let replayed = typed(folder, &["replay", run, "--strict"]);
        assert_eq!(exit(&replayed), Some(0), "{}", String::from_utf8_lossy(&replayed.stdout));
    }

    // The same command has nothing left to do, and the base is as it was.
    stdout(&eval(folder, &server, &plan));
    assert_eq!(server.arrived().len(), 24);
    let diff = ["prompts", "diff", "--runs", "same", "other-run"];
    let shown = stdout(&typed(folder, &diff));
    let flips = lines(&folder.join("same"))
        .iter()
        .filter(|(key, line)| line["label"] != lines(&folder.join("other-run"))[*key]["label"])
        .count();
    assert!(shown.contains("Take your time with this one."), "{shown}");
    assert!(shown.contains(&format!("{flips} flips")), "{shown}");
    assert!(!shown.contains("not only the prompts"), "{shown}");
    let all = printed(&typed(folder, &[&diff[..], &["--json"]].concat()));
    assert_eq!(all["runs"]["flips"].as_array().unwrap().len(), flips);
    let wrong = ["prompts", "diff", "dlebench/v1", "dlebench/v1", "--runs", "same", "other-run"];
    assert_eq!(exit(&typed(folder, &wrong)), Some(2), "these are not the prompts of the run");
}

#[test]
fn whoever_wants_to_look_again_is_refused_and_can_still_answer() {
    let folder = data(1);
    let folder = folder.path();
    let first = Server::start(vec![Step::Reply(looks_once)]);
    stdout(&eval(folder, &first, &["set", "--run", "base"]));
    let server = Server::start(vec![Step::Reply(looks_on)]);
    stdout(&eval(folder, &server, &["--from-traces", "base", "--run", "again"]));
    assert_eq!(server.arrived().len(), 8, "a call, and an answer");
    for (bundle, line) in bundles(folder, "again").iter().zip(lines(&folder.join("again")).values())
    {
        assert_eq!(line["outcome"], "verdict");
        let refused = bundle.events.iter().filter(|event| {
            matches!(&event.event, What::Observed(observed)
                if matches!(&observed.answer, ToolAnswer::Refused { text } if text.contains("No tool")))
        });
        assert_eq!(refused.count(), 1);
    }
    let replayed = typed(folder, &["replay", "again", "--strict"]);
    assert_eq!(exit(&replayed), Some(0), "{}", String::from_utf8_lossy(&replayed.stdout));
}

#[test]
fn what_was_not_seen_is_missing_and_said() {
    let folder = data(2);
    let folder = folder.path();
    let mut steps = vec![Step::Reply(looks_once); 6];
    steps.push(answer(400, &json!({ "error": { "message": "not today" } })));
    steps.push(Step::Reply(looks_once));
    let server = Server::start(steps);
    stdout(&eval(folder, &server, &["set", "--run", "base", "--concurrency", "1"]));
    let broken = lines(&folder.join("base"));
    let failed: Vec<&String> =
        broken.iter().filter(|(_, line)| line["outcome"] == "failed").map(|(key, _)| key).collect();
    assert_eq!(failed.len(), 1);
    fs::remove_file(folder.join("set/0-good.png")).unwrap();
    stdout(&eval(folder, &server, &["--from-traces", "base", "--run", "again"]));
    let again = lines(&folder.join("again"));
    assert_eq!(again.len(), 8);
    for (key, line) in &again {
        let outcome = if failed.contains(&key) { "missing" } else { "verdict" };
        assert_eq!(line["outcome"], outcome, "{line}");
    }
    let reason = again[failed[0]]["reason"].as_str().unwrap();
    assert!(reason.contains("ended as failed") && reason.contains("not today"), "{reason}");

    // A trace that cannot be read is named, and its judgement is missing.
    let (key, line) = broken.iter().find(|(_, line)| line["outcome"] == "verdict").unwrap();
    let manifest = folder.join("base").join(line["trace"].as_str().unwrap()).join("manifest.json");
    let whole = fs::read(&manifest).unwrap();
    fs::write(&manifest, "{}").unwrap();
    let output = eval(folder, &server, &["--from-traces", "base", "--run", "torn"]);
    assert!(stderr(&output).contains("1 of its traces cannot be used"), "{}", stderr(&output));
    let torn = lines(&folder.join("torn"));
    assert_eq!((torn.len(), &torn[key]["outcome"]), (8, &json!("missing")));
    fs::write(&manifest, whole).unwrap();

    // Half a run: what it has is judged, and what it has not is said.
    let text = fs::read_to_string(folder.join("base/results.jsonl")).unwrap();
    let (half, _) = text.split_at(text.lines().take(3).map(|line| line.len() + 1).sum());
    fs::write(folder.join("base/results.jsonl"), half).unwrap();
    let output = eval(folder, &server, &["--from-traces", "base", "--run", "half"]);
    assert!(stderr(&output).contains("not finished: 5"), "{}", stderr(&output));

    for (more, said) in [
        (&["--from-traces", "base", "--run", "base"][..], "a folder of its own"),
        (&["--from-traces", "base", "--run", "x", "--mode", "plain"], "--mode tool"),
        (&["--from-traces", "base", "--run", "x", "--dialect", "native"], "--dialect tags"),
        (&["--from-traces", "base", "--run", "x", "--max-turns", "3"], "cannot be used with"),
        (&["--from-traces", "nowhere", "--run", "x"], "nowhere"),
        (&["--run", "x"], "<DATASET>"),
        (&["set", "--run", "again", "--allow-partial"], "from_traces"),
    ] {
        let output = eval(folder, &server, more);
        assert_eq!(exit(&output), Some(2), "{more:?}");
        assert!(stderr(&output).contains(said), "{more:?}: {}", stderr(&output));
        assert!(!folder.join("x").exists(), "nothing is written");
    }
}

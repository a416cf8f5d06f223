//! Lines of `results.jsonl` are input like any other: what cannot be true is named, and no number is
//! made of it. Where they are made from traces, one that cannot be read does not end the others.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::command::{deeplook, run as command, stderr, stdout};
use super::judging::files;
use super::received::finished;
use super::runs::{data, eval, exit, judged, lines, policy, run};
use super::wire::server::{Server, Step};

/// Changes the line in this place of a run's results.
fn forge(run: &Path, place: usize, change: &Value) {
    let path = run.join("results.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[place].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
}

/// What cannot be true, and a word of how it is told.
fn forgeries() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"paid": -1000}), "paid is -1000"),
        (json!({"cost": -5}), "cost is -5"),
        (json!({"cost": 1e308}), "cost is"),
        (json!({"score": 12.5}), "its score is 12.5"),
        (json!({"score": -3}), "score is -3"),
        (json!({"outcome": "failed"}), "no verdict"),
        (json!({"label": "Excellent"}), "no label of"),
        (json!({"seconds": -1}), "seconds is -1"),
        (json!({"usage": {"prompt_tokens": 18_000_000_000_000_000_000_u64}}), "tokens"),
        (json!({"usage": {"prompt_tokens": -7}}), "-7"),
        (json!({"turns": 1, "cached": 9}), "kept"),
        (json!({"repeat": 4_000_000_000_u32}), "repetition"),
    ]
}

#[test]
fn what_cannot_be_true_is_named_and_taken_from_the_trace_or_judged_again() {
    let folder = data(2);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &["--no-cache"]));
    let at = folder.path().join("run");
    let truth = judged(&at);
    let label = json!({"case": "c0", "editor": "good", "criterion": "if", "annotator": "a",
                       "label": "Wrong Action"});
    fs::write(folder.path().join("labels.jsonl"), format!("{label}\n")).unwrap();
    let sound = fs::read(at.join("results.jsonl")).unwrap();
    for (forgery, word) in forgeries() {
        fs::write(at.join("results.jsonl"), &sound).unwrap();
        forge(&at, 2, &forgery);
        for args in [
            &["report", "run"][..],
            &["agree", "run", "--labels", "labels.jsonl"],
            &["compare", "run", "run"],
        ] {
            let output = command(folder.path(), args);
            let told = stderr(&output);
            assert_eq!(exit(&output), Some(2), "{args:?}, {forgery}: {told}");
            assert!(told.contains("line 3") && told.contains(word), "{args:?}, {forgery}: {told}");
        }
        let status = stdout(&command(folder.path(), &["run", "status", "run"]));
        assert!(status.contains("line 3") && status.contains(word), "{forgery}: {status}");
        let pages = command(folder.path(), &["view", "run", "--out", "pages"]);
        stdout(&pages);
        let pages = files(&folder.path().join("pages"));
        let named = |page: &PathBuf| {
            let page = fs::read(page).unwrap();
            String::from_utf8_lossy(&page).contains("results.jsonl, line 3")
        };
        assert!(pages.iter().any(named), "{forgery}");
        fs::remove_dir_all(folder.path().join("pages")).unwrap();

        let output = command(folder.path(), &["run", "merge", "run", "--into", "merged"]);
        let told = stderr(&output);
        assert!(told.contains("line 3") && told.contains(word), "{forgery}: {told}");
        assert_eq!(judged(&folder.path().join("merged")), truth, "{forgery}");
        fs::remove_dir_all(folder.path().join("merged")).unwrap();

        // The trace is there, so that nobody is asked again.
        forge(&at, 2, &forgery);
        let asked = server.arrived().len();
        let output = run(folder.path(), &server, &["--no-cache"]);
        stdout(&output);
        let told = stderr(&output);
        assert!(told.contains("line 3") && told.contains(word), "{forgery}: {told}");
        assert_eq!((judged(&at), server.arrived().len()), (truth.clone(), asked), "{forgery}");
    }
    // Without its trace it is judged again.
    fs::write(at.join("results.jsonl"), &sound).unwrap();
    let trace = lines(&at).into_values().nth(2).unwrap()["trace"].as_str().unwrap().to_owned();
    let text = fs::read_to_string(at.join("results.jsonl")).unwrap();
    let place = text.lines().position(|line| line.contains(&trace)).unwrap();
    forge(&at, place, &json!({"paid": -1000}));
    fs::remove_dir_all(at.join(trace)).unwrap();
    let asked = server.arrived().len();
    stdout(&run(folder.path(), &server, &["--no-cache"]));
    assert_eq!((judged(&at), server.arrived().len()), (truth, asked + 1));
}

#[test]
fn a_forged_payment_does_not_raise_the_limit() {
    let folder = data(6);
    fs::write(
        folder.path().join("prices.toml"),
        "[model]\nsome-model = { input = 100000, output = 0 }\n",
    )
    .unwrap();
    let server = Server::start(vec![Step::Reply(policy)]);
    let limited =
        ["--no-cache", "--prices", "prices.toml", "--max-cost", "3", "--concurrency", "1"];
    let output = run(folder.path(), &server, &limited);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    let asked = server.arrived().len();
    assert!((3..6).contains(&asked), "a dollar each: {asked}");
    forge(&folder.path().join("run"), 0, &json!({"paid": -1000, "cost": -1000}));
    let output = run(folder.path(), &server, &limited);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    assert_eq!(server.arrived().len(), asked, "the limit was reached before");
}

#[test]
fn a_trace_that_tells_of_impossible_money_is_not_believed() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    fs::write(
        folder.path().join("prices.toml"),
        "[model]\nsome-model = { input = 1, output = 1 }\n",
    )
    .unwrap();
    let args = ["--no-cache", "--prices", "prices.toml", "--criterion", "if"];
    stdout(&eval(folder.path(), &server, &args).output().unwrap());
    let at = folder.path().join("run");
    let trace = lines(&at).into_values().next().unwrap()["trace"].as_str().unwrap().to_owned();
    let manifest = at.join(&trace).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["model"]["price"]["input"] = json!(-1e9);
    fs::write(&manifest, value.to_string()).unwrap();
    fs::remove_file(at.join("results.jsonl")).unwrap();
    let status = deeplook(folder.path()).args(["run", "status", "run"]).output().unwrap();
    let status = stdout(&status);
    assert!(status.contains("cost is -") && status.contains("1 of 2"), "{status}");
    let report = stdout(&command(folder.path(), &["report", "run", "--format", "json"]));
    assert!(report.contains("cost is -") && !report.contains("-1000"), "{report}");
}

#[test]
fn a_trace_that_cannot_be_read_does_not_end_a_report() {
    let (folder, bundle) = finished();
    let folder = folder.path();
    fs::remove_file(folder.join("run/results.jsonl")).unwrap();
    fs::write(bundle.join("events.jsonl"), "{}\n").unwrap();
    let shown = stdout(&command(folder, &["report", "run"]));
    assert!(shown.contains("cannot be read"), "{shown}");
    fs::write(bundle.join("manifest.json"), "{}\n").unwrap();
    let output = command(folder, &["report", "run"]);
    assert_eq!(output.status.code(), Some(2), "what is left out is an error");
    assert!(String::from_utf8_lossy(&output.stdout).contains("some-model"));
    assert!(stderr(&output).contains("left out"), "{}", stderr(&output));
}

#[test]
fn a_trace_that_cannot_be_read_does_not_end_a_comparison() {
    let (folder, bundle) = finished();
    let folder = folder.path();
    let all = lines(&folder.join("run"));
    let labels: String = all
        .values()
        .map(|line| {
            let label = json!({ "case": line["case"], "editor": line["editor"], "annotator": "a",
                                "criterion": line["criterion"], "label": line["label"] });
            format!("{label}\n")
        })
        .collect();
    fs::write(folder.join("labels.jsonl"), labels).unwrap();
    let experiment = json!({ "name": "x", "labels": "labels.jsonl", "baseline": 0, "edits": 2,
                             "cells": [{ "name": "a", "run": "run" }] });
    fs::write(folder.join("experiment.json"), experiment.to_string()).unwrap();
    fs::remove_file(folder.join("run/results.jsonl")).unwrap();
    fs::write(bundle.join("manifest.json"), "{}\n").unwrap();
    for args in [
        &["compare", "run", "run"][..],
        &["agree", "run", "--labels", "labels.jsonl"],
        &["experiment", "report", "."],
        &["eval", "--from-traces", "run", "--mode", "plain", "--run", "new"],
    ] {
        let output = command(folder, args);
        assert_ne!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("cannot be read"), "{args:?}: {said}");
    }
}

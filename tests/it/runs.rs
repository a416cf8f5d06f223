//! Runs over a data set: everything is there once, whatever happens on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, json as printed, run as command, stderr, stdout};
use super::wire::server::{Server, Step, answer, completion, text};

/// A folder with `cases` small cases of two editors in `set/`.
pub(crate) fn data(cases: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    fs::create_dir(&set).unwrap();
    let mut lines = String::new();
    for case in 0..cases {
        for name in ["source", "good", "bad"] {
            let shade = name.len() as u8 * 20;
            let pixels = image::RgbImage::from_fn(40, 32, |x, y| {
                image::Rgb([(x * 5) as u8, (y * 7) as u8, shade + case as u8])
            });
            pixels.save(set.join(format!("{case}-{name}.png"))).unwrap();
        }
        let line = json!({
            "id": format!("c{case}"), "source": format!("{case}-source.png"),
            "instruction": format!("make it number {case}"), "type": "Change Color",
            "target": "it", "boxes": [[4, 4, 20, 20]],
            "edits": { "good": format!("{case}-good.png"), "bad": format!("{case}-bad.png") },
        });
        lines.push_str(&format!("{line}\n"));
    }
    fs::write(set.join("cases.jsonl"), lines).unwrap();
    folder
}

/// A model whose label depends on the request alone.
pub(crate) fn policy(request: &Value) -> Value {
    let text = request["messages"].to_string();
    let consistency = text.contains("Perfect Consistency");
    let labels = match consistency {
        true => ["Perfect Consistency", "Single Anomaly", "Multiple Anomalies"],
        false => ["Flawless Execution", "Over Modification", "Wrong Action"],
    };
    let sum: usize = text.bytes().map(usize::from).sum();
    let content = format!("<Start Final Answer>{}</Start Final Answer>", labels[sum % 3]);
    completion(&json!({ "role": "assistant", "content": content }), "stop")
}

pub(crate) fn eval(folder: &Path, server: &Server, more: &[&str]) -> Command {
    let mut command = deeplook(folder);
    command.args(["eval", "set", "--mode", "plain", "--model", "some-model"]);
    if !more.contains(&"--run") {
        command.args(["--run", "run"]);
    }
    command.args(["--base-url", &server.base_url]).args(more);
    command
}

pub(crate) fn run(folder: &Path, server: &Server, more: &[&str]) -> Output {
    eval(folder, server, more).output().unwrap()
}

/// The lines of a run by judgement; there is one for each.
pub(crate) fn lines(run: &Path) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let key =
            ["case", "editor", "criterion", "mode", "repeat"].map(|key| line[key].to_string());
        assert!(lines.insert(key.join(" "), line).is_none(), "{key:?} is there twice");
    }
    lines
}

/// The same without what depends on the time and the way.
pub(crate) fn judged(run: &Path) -> BTreeMap<String, Value> {
    let mut lines = lines(run);
    for line in lines.values_mut() {
        for key in ["trace", "digest", "seconds", "at", "paid", "cached"] {
            line.as_object_mut().unwrap().remove(key);
        }
    }
    lines
}

pub(crate) fn exit(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_data_set_is_judged_once_and_the_same_command_goes_on() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    let output = run(folder.path(), &server, &[]);
    let shown = stdout(&output);
    assert!(shown.contains("12 of 12 judgements have an outcome: 12 verdict"), "{shown}");
    assert!(shown.contains("100 %") && shown.contains("deeplook report run"), "{shown}");
    let all = lines(&folder.path().join("run"));
    assert_eq!((all.len(), server.arrived().len()), (12, 12));
    let keys = [
        "case",
        "editor",
        "type",
        "criterion",
        "mode",
        "repeat",
        "model",
        "outcome",
        "label",
        "score",
        "reason",
        "turns",
        "usage",
        "cost",
        "trace",
        "digest",
    ];
    for line in all.values() {
        for key in keys {
            assert!(line.get(key).is_some(), "{key} is not in {line}");
        }
        let trace = folder.path().join("run").join(line["trace"].as_str().unwrap());
        assert!(trace.join("manifest.json").is_file(), "{}", trace.display());
    }

    // Again: nothing is asked, nothing changes. More repeats: only those are asked.
    let before = fs::read(folder.path().join("run/results.jsonl")).unwrap();
    stdout(&run(folder.path(), &server, &[]));
    assert_eq!(server.arrived().len(), 12);
    assert_eq!(before, fs::read(folder.path().join("run/results.jsonl")).unwrap());
    stdout(&run(folder.path(), &server, &["--repeats", "2"]));
    assert_eq!((lines(&folder.path().join("run")).len(), server.arrived().len()), (24, 24));

    // Another run asks nobody: the replies were kept, each for its repeat.
    stdout(&run(folder.path(), &server, &["--repeats", "2", "--run", "second"]));
    assert_eq!(server.arrived().len(), 24);
    assert_eq!(judged(&folder.path().join("run")), judged(&folder.path().join("second")));
    let kept = lines(&folder.path().join("second"));
    assert!(kept.values().all(|line| line["cached"] == 1), "{kept:?}");
    let said = "24 replies were kept from before";
    let again = run(folder.path(), &server, &["--repeats", "2", "--run", "second"]);
    assert!(stdout(&again).contains(said), "{}", stdout(&again));
    let report = stdout(&command(folder.path(), &["report", "second"]));
    assert!(report.contains("12 replies kept from before"), "by each criterion: {report}");
    let status = ["run", "status", "second"];
    assert!(stdout(&command(folder.path(), &status)).contains(said));
    assert_eq!(
        printed(&command(folder.path(), &[&status[..], &["--json"]].concat()))["cached"],
        24
    );
    stdout(&run(folder.path(), &server, &["--run", "third", "--no-cache"]));
    assert_eq!(server.arrived().len(), 36);
}

#[test]
fn lines_are_made_again_from_their_traces() {
    let folder = data(2);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let path = folder.path().join("run/results.jsonl");
    let before = judged(&folder.path().join("run"));
    let text = fs::read_to_string(&path).unwrap();

    // Cut in the last line, garbled in the middle, without its last lines, gone altogether.
    let garbled = text.replacen("\"case\"", "\"ca\u{0}\"", 2);
    let half: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    for damaged in [&text[..text.len() - 30], &garbled, &half, ""] {
        fs::write(&path, damaged).unwrap();
        stdout(&run(folder.path(), &server, &[]));
        assert_eq!(before, judged(&folder.path().join("run")));
    }
    fs::remove_file(&path).unwrap();
    let rebuilt = deeplook(folder.path()).args(["run", "rebuild", "run"]).output().unwrap();
    assert!(stdout(&rebuilt).contains("made 8 lines"), "{rebuilt:?}");
    assert_eq!(before, judged(&folder.path().join("run")));
    assert_eq!(server.arrived().len(), 8, "nobody was asked again");
}

#[test]
fn other_settings_and_changed_cases_are_not_mixed_in() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let other = ["--param", "temperature=0.5"];
    let refused = run(folder.path(), &server, &other);
    assert_eq!(exit(&refused), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("model.params.temperature: null before, 0.5 now"), "{said}");
    assert!(said.contains("--new-run") && said.contains("--mix"), "{said}");
    for _ in 0..2 {
        // The second time it goes on in the same one.
        stdout(&run(folder.path(), &server, &[&other[..], &["--new-run"]].concat()));
    }
    assert_eq!(lines(&folder.path().join("run-2")).len(), 4);
    assert!(!folder.path().join("run-3").exists());
    assert_eq!(server.arrived().len(), 8);

    let cases = folder.path().join("set/cases.jsonl");
    let text = fs::read_to_string(&cases).unwrap();
    fs::write(&cases, text.replace("make it number 0", "make it blue")).unwrap();
    let refused = run(folder.path(), &server, &[]);
    assert_eq!(exit(&refused), Some(2));
    assert!(stderr(&refused).contains("--redo-changed"), "{}", stderr(&refused));
    fs::write(&cases, &text).unwrap();
    fs::copy(folder.path().join("set/0-bad.png"), folder.path().join("set/0-good.png")).unwrap();
    let refused = run(folder.path(), &server, &[]);
    assert!(stderr(&refused).contains("the edited picture"), "{}", stderr(&refused));
    stdout(&run(folder.path(), &server, &["--redo-changed"]));
    stdout(&run(folder.path(), &server, &[]));
    assert_eq!(lines(&folder.path().join("run")).len(), 4);
    // Both editors have the same picture now, and so the replies of one were kept.
    assert_eq!(server.arrived().len(), 8);
}

#[test]
fn failures_are_outcomes_and_only_they_are_tried_again() {
    let folder = data(2);
    let refusal = || answer(401, &json!({"error": {"message": "bad key"}}));
    let server = Server::start(vec![
        Step::Reply(policy),
        refusal(),
        Step::Reply(policy),
        refusal(),
        Step::Reply(policy),
    ]);
    fs::write(folder.path().join("set/1-bad.png"), "no picture").unwrap();
    let one = ["--concurrency", "1", "--allow-partial"];
    let output = run(folder.path(), &server, &one);
    assert_eq!(exit(&output), Some(0), "{}", stderr(&output));
    let count = |outcome: &str| {
        let all = lines(&folder.path().join("run"));
        assert_eq!(all.len(), 8);
        all.values().filter(|line| line["outcome"] == outcome).count()
    };
    assert_eq!((count("verdict"), count("failed"), count("missing")), (4, 2, 2));
    for line in lines(&folder.path().join("run")).values() {
        let number = line["score"].is_number();
        assert_eq!(number, line["outcome"] == "verdict", "{line}");
        assert_eq!(line["reason"].is_string(), !number, "{line}");
    }
    let gate = run(folder.path(), &server, &[&one[..], &["--min-coverage", "0.6"]].concat());
    assert_eq!(exit(&gate), Some(1), "{}", stderr(&gate));
    let arrived = server.arrived().len();
    stdout(&run(folder.path(), &server, &[&one[..], &["--retry", "failed"]].concat()));
    assert_eq!((count("verdict"), count("missing"), server.arrived().len()), (6, 2, arrived + 2));
    let traces = fs::read_dir(folder.path().join("run/judgements")).unwrap().count();
    assert_eq!(traces, 10, "the old traces stay");

    fs::copy(folder.path().join("set/1-good.png"), folder.path().join("set/1-bad.png")).unwrap();
    stdout(&run(folder.path(), &server, &["--retry", "missing,abstained"]));
    assert_eq!(count("verdict"), 8);
    // A rebuild sees the same, old failures or not.
    let before = judged(&folder.path().join("run"));
    stdout(&deeplook(folder.path()).args(["run", "rebuild", "run"]).output().unwrap());
    assert_eq!(before, judged(&folder.path().join("run")));
}

#[test]
fn limits_stop_cleanly_and_the_rest_follows() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    let output = run(folder.path(), &server, &["--max-calls", "5", "--concurrency", "3"]);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    assert_eq!(server.arrived().len(), 5, "never more than allowed");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("5 of 5 model calls") && shown.contains("goes on"), "{shown}");
    let again = run(folder.path(), &server, &["--max-calls", "5"]);
    assert_eq!(
        (exit(&again), server.arrived().len()),
        (Some(1), 5),
        "the run's limit, not the day's"
    );
    let status = deeplook(folder.path()).args(["run", "status", "run", "--json"]).output().unwrap();
    assert_eq!(printed(&status)["calls"], 5, "who found the limit reached was not asked");
    stdout(&run(folder.path(), &server, &[]));
    assert_eq!((lines(&folder.path().join("run")).len(), server.arrived().len()), (12, 12));

    fs::write(
        folder.path().join("prices.toml"),
        "[model]\nsome-model = { input = 1000.0, output = 1000.0 }",
    )
    .unwrap();
    // A call is 12 tokens, or 1.2 cents.
    let money = ["--run", "dear", "--no-cache", "--prices", "prices.toml", "--concurrency", "1"];
    let output = run(folder.path(), &server, &[&money[..], &["--max-cost", "0.04"]].concat());
    assert_eq!((exit(&output), server.arrived().len()), (Some(1), 16), "{}", stderr(&output));
    let unpriced = run(folder.path(), &server, &["--run", "x", "--max-cost", "1"]);
    assert_eq!(exit(&unpriced), Some(2));
    assert!(stderr(&unpriced).contains("--prices"), "{}", stderr(&unpriced));
}

#[test]
fn a_plan_counts_and_asks_nobody() {
    let folder = data(3);
    let mut command = deeplook(folder.path());
    // A server that wants a key, and there is none.
    command.args(["eval", "set", "--model", "gpt-5.1", "--mode", "tool,plain", "--repeats", "2"]);
    let plan = printed(&command.args(["--plan", "--json"]).output().unwrap());
    assert_eq!(plan["judgements"], 48);
    assert!(plan["pictures"].as_u64().unwrap() >= 96, "{plan}");
    assert!(plan["prompt_tokens"].as_u64().unwrap() > 48 * 500, "{plan}");
    assert!(plan["cost"].as_f64().unwrap() > 0.0, "{plan}");
    assert!(!folder.path().join("traces").exists(), "a plan writes nothing");
}

#[test]
fn everything_failing_stops_the_run() {
    let folder = data(12);
    let server = Server::start(vec![answer(401, &json!({"error": {"message": "no such key"}}))]);
    let output = run(folder.path(), &server, &["--concurrency", "2"]);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("no such key") && shown.contains("--retry failed"), "{shown}");
    assert!((5..20).contains(&lines(&folder.path().join("run")).len()), "there was never a reply");
    let output = run(folder.path(), &server, &["--keep-going"]);
    assert_eq!((exit(&output), lines(&folder.path().join("run")).len()), (Some(1), 48));

    let refused = answer(401, &json!({"error": {"message": "no money left"}}));
    let server = Server::start(vec![Step::Reply(policy), refused]);
    let output =
        run(folder.path(), &server, &["--run", "later", "--no-cache", "--concurrency", "1"]);
    assert_eq!(exit(&output), Some(1), "{}", stderr(&output));
    assert!(
        (21..40).contains(&lines(&folder.path().join("later")).len()),
        "more patient after one"
    );
}

#[test]
fn events_and_logs_are_for_machines_and_hold_no_secret() {
    let folder = data(2);
    let server = Server::start(vec![text(503, "soon"), Step::Reply(policy)]);
    let mut command = eval(folder.path(), &server, &["--json", "--log", "log.jsonl"]);
    let output =
        command.env("OPENAI_API_KEY", "sk-hidden").env("RUST_LOG", "trace").output().unwrap();
    let events: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 9);
    assert!(events[..8].iter().all(|event| event["event"] == "judged"), "{events:?}");
    assert_eq!((&events[8]["event"], &events[8]["coverage"]), (&json!("summary"), &json!(1.0)));
    let log = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let spans: BTreeSet<&str> = entries
        .iter()
        .filter_map(|entry| entry["spans"].as_array())
        .flatten()
        .filter_map(|span| span["name"].as_str())
        .collect();
    assert!(spans.contains("judgement") && spans.contains("model_call"), "{spans:?}");
    assert!(log.contains("soon"), "the failed attempt");
    for (name, text) in [("log", log), ("stderr", stderr(&output))] {
        assert!(!text.contains("sk-hidden"), "the key is in the {name}");
    }
    let record = fs::read_to_string(folder.path().join("run/run.json")).unwrap();
    assert!(!record.contains("sk-hidden"));
}

#[test]
fn shards_merge_to_the_same_run() {
    let folder = data(6);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let whole = judged(&folder.path().join("run"));
    for of in [1, 3, 7] {
        let mut parts = Vec::new();
        for part in 1..=of {
            let (shard, name) = (format!("{part}/{of}"), format!("part-{part}-{of}"));
            stdout(&run(folder.path(), &server, &["--shard", &shard, "--run", &name]));
            parts.push(name);
        }
        let into = format!("whole-{of}");
        let merge = |parts: &[String], more: &[&str]| {
            let mut command = deeplook(folder.path());
            command.args(["run", "merge", "--into", &into]).args(parts).args(more).output().unwrap()
        };
        if of == 3 {
            let some = merge(&parts[..2], &[]);
            assert_eq!(exit(&some), Some(1), "{}", stderr(&some));
            assert!(String::from_utf8_lossy(&some.stdout).contains("missing: case"), "{some:?}");
        }
        stdout(&merge(&parts, &[]));
        assert_eq!(whole, judged(&folder.path().join(&into)), "{of}");
        // What was merged can be gone on with, and made again from its traces.
        stdout(&run(folder.path(), &server, &["--run", &into]));
        stdout(&deeplook(folder.path()).args(["run", "rebuild", &into]).output().unwrap());
        assert_eq!(whole, judged(&folder.path().join(&into)), "{of}");
    }
    assert_eq!(server.arrived().len(), 24);
    let other = ["--run", "hot", "--shard", "1/3", "--param", "temperature=1"];
    stdout(&run(folder.path(), &server, &other));
    let merge = |parts: [&str; 2]| {
        let mut command = deeplook(folder.path());
        command.args(["run", "merge", "--into", "both"]).args(parts).output().unwrap()
    };
    let refused = merge(["part-2-3", "hot"]);
    assert_eq!(exit(&refused), Some(2));
    assert!(stderr(&refused).contains("temperature"), "{}", stderr(&refused));
    let refused = merge(["run", "whole-3"]);
    assert!(stderr(&refused).contains("--keep-first"), "{}", stderr(&refused));
    assert!(!folder.path().join("both").exists(), "nothing half-written");
}

#[test]
fn the_status_tells_what_is_done_and_open() {
    let folder = data(2);
    let server = Server::start(vec![Step::Reply(policy)]);
    run(folder.path(), &server, &["--max-calls", "3", "--concurrency", "1"]);
    let status = |more: &[&str]| {
        deeplook(folder.path()).args(["run", "status", "run"]).args(more).output().unwrap()
    };
    let told = printed(&status(&["--json"]));
    assert_eq!(
        (&told["planned"], &told["done"], &told["calls"]),
        (&json!(8), &json!(3), &json!(3))
    );
    assert_eq!((&told["running"], &told["outcomes"]["verdict"]), (&Value::Null, &json!(3)));
    let shown = stdout(&status(&[]));
    assert!(shown.contains("3 of 8 judgements") && shown.contains("open: case"), "{shown}");
    let nothing = deeplook(folder.path()).args(["run", "status", "set"]).output().unwrap();
    assert_eq!(exit(&nothing), Some(2));
    assert!(stderr(&nothing).contains("run.json"), "{}", stderr(&nothing));
}

#[test]
fn mistakes_in_a_run_are_explained() {
    let folder = data(2);
    let boxless = folder.path().join("boxless");
    fs::create_dir(&boxless).unwrap();
    fs::copy(folder.path().join("set/0-good.png"), boxless.join("a.png")).unwrap();
    let line = r#"{"id": "a", "source": "a.png", "instruction": "x", "edited": "a.png"}"#;
    fs::write(boxless.join("cases.jsonl"), format!("{line}\n")).unwrap();
    for (args, hint) in [
        (vec!["eval", "nowhere"], "nowhere"),
        (vec!["eval", "set", "--editor", "nobody"], "bad, good"),
        (vec!["eval", "set", "--case", "c9"], "c0, c1"),
        (vec!["eval", "set", "--run", "set"], "not a run"),
        (vec!["eval", "set", "--shard", "4/3"], "I/N"),
        (vec!["eval", "set", "--criterion", "beauty"], "beauty"),
        (vec!["eval", "set", "--max-cost=-1"], "over 0"),
        (vec!["eval", "set", "--min-coverage", "95"], "from 0 to 1"),
        (vec!["eval", "set", "--log", "set/cases.jsonl/log"], "cannot write the log"),
        (vec!["eval", "boxless", "--mode", "oracle"], "boxes"),
        (vec!["run", "merge", "set", "--into", "x"], "run.json"),
        (vec!["run", "rebuild", "set"], "judgements"),
    ] {
        let output = deeplook(folder.path()).args(&args).output().unwrap();
        assert_eq!(exit(&output), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{args:?}: {}", stderr(&output));
    }
    assert!(!folder.path().join("traces").exists(), "nothing half-written");
}

#[test]
fn what_is_tried_again_is_asked_again() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(babble)]);
    let output = run(folder.path(), &server, &[]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("4 abstained: "), "{shown}");
    let asked = server.arrived().len();
    let again = run(folder.path(), &server, &["--retry", "abstained"]);
    assert_eq!(exit(&again), Some(1), "no verdict at all: {}", stderr(&again));
    assert_eq!(server.arrived().len(), 2 * asked, "kept replies would say the same again");
    let status = ["run", "status", "run", "--json"];
    let status = printed(&deeplook(folder.path()).args(status).output().unwrap());
    assert_eq!(status["calls"], 2 * asked, "what was judged again was asked too");
    assert_eq!(status["without_verdict"][0]["judgements"], 4, "{status}");
}

fn babble(_: &Value) -> Value {
    json!({ "choices": [{ "message": { "role": "assistant", "content": "Well." }, "finish_reason": "stop" }] })
}

#[test]
fn a_report_counts_what_is_not_judged_yet() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    run(folder.path(), &server, &["--max-calls", "3", "--concurrency", "1"]);
    let report = |more: &[&str]| {
        deeplook(folder.path()).args(["report", "run"]).args(more).output().unwrap()
    };
    let gate = report(&["--min-coverage", "50%"]);
    assert_eq!(exit(&gate), Some(1), "{}", stderr(&gate));
    let shown = stdout(&report(&[]));
    assert!(shown.contains("not judged yet"), "{shown}");
    stdout(&run(folder.path(), &server, &[]));
    assert_eq!(exit(&report(&["--min-coverage", "100%"])), Some(0));
}

#[test]
fn another_part_goes_into_another_folder() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &["--shard", "1/3"]));
    let other = run(folder.path(), &server, &["--shard", "2/3"]);
    assert_eq!(exit(&other), Some(2));
    assert!(stderr(&other).contains("part 1/3"), "{}", stderr(&other));
    stdout(&run(folder.path(), &server, &["--shard", "2/3", "--mix"]));
    let twice = ["run", "merge", "run", "./run", "--into", "whole"];
    let twice = deeplook(folder.path()).args(twice).output().unwrap();
    assert_eq!(exit(&twice), Some(2));
    assert!(stderr(&twice).contains("named twice"), "{}", stderr(&twice));
}

#[test]
fn parts_can_be_merged_one_after_the_other_and_keep_their_traces() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    for part in ["1/3", "2/3", "3/3"] {
        let into = format!("part-{}", &part[..1]);
        stdout(&run(folder.path(), &server, &["--shard", part, "--run", &into]));
    }
    let merge =
        |more: &[&str]| deeplook(folder.path()).args(["run", "merge"]).args(more).output().unwrap();
    // As a merge leaves it that was killed at its beginning.
    fs::create_dir(folder.path().join("whole")).unwrap();
    for name in [".lock", ".run.json.1-0.part"] {
        fs::write(folder.path().join("whole").join(name), "").unwrap();
    }
    assert_eq!(exit(&merge(&["part-1", "--into", "whole"])), Some(1), "the rest is missing");
    merge(&["part-2", "--into", "whole"]);
    let last = merge(&["part-3", "--into", "whole"]);
    assert!(stdout(&last).contains("12 judgements") && !stdout(&last).contains("missing"));

    // The same judgements from elsewhere: the first ones stay, line and trace.
    stdout(&run(folder.path(), &server, &["--run", "other", "--no-cache"]));
    let refused = merge(&["other", "--into", "whole"]);
    assert!(stderr(&refused).contains("--keep-first"), "{}", stderr(&refused));
    let before = lines(&folder.path().join("whole"));
    stdout(&merge(&["other", "--into", "whole", "--keep-first"]));
    assert_eq!(lines(&folder.path().join("whole")), before);
    let replay = ["replay", "whole", "--tools", "recorded"];
    stdout(&deeplook(folder.path()).args(replay).output().unwrap());
}

#[test]
fn lines_and_locks_from_elsewhere_lead_nowhere() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let file = folder.path().join("run/results.jsonl");
    let good = judged(&folder.path().join("run"));
    let text = fs::read_to_string(&file).unwrap();
    let first = text.lines().next().unwrap();
    let trace = serde_json::from_str::<Value>(first).unwrap()["trace"].to_string();
    fs::write(&file, text.replacen(&trace, "\"judgements/../../outside\"", 1)).unwrap();
    fs::create_dir(folder.path().join("outside")).unwrap();
    let args = ["run", "merge", "run", "--into", "deep/whole"];
    stdout(&deeplook(folder.path()).args(args).output().unwrap());
    assert!(!folder.path().join("deep/outside").exists());
    assert_eq!(judged(&folder.path().join("deep/whole")), good);

    #[cfg(unix)]
    {
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::remove_file(folder.path().join("run/.lock")).unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("run/.lock")).unwrap();
        let output = deeplook(folder.path()).args(["run", "rebuild", "run"]).output().unwrap();
        assert_eq!(exit(&output), Some(2), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }
}

#[test]
fn a_rebuild_names_what_it_loses_and_keeps_the_old_file() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let at = |name: &str| folder.path().join("run").join(name);
    let before = fs::read(at("results.jsonl")).unwrap();
    let broken = fs::read_dir(at("judgements")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(broken.join("manifest.json")).unwrap();
    let output = deeplook(folder.path()).args(["run", "rebuild", "run"]).output().unwrap();
    assert_eq!(exit(&output), Some(1));
    assert!(stderr(&output).contains("lost") && stderr(&output).contains("case"), "{output:?}");
    assert_eq!(fs::read(at("results.jsonl.damaged")).unwrap(), before);
    assert_eq!(lines(&folder.path().join("run")).len(), 3);
}

#[test]
fn money_that_cannot_be_counted_is_not_spent() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(uncounted)]);
    let prices = "[model]\nsome-model = { input = 1000.0, output = 1000.0 }";
    fs::write(folder.path().join("prices.toml"), prices).unwrap();
    let limited = ["--prices", "prices.toml", "--max-cost", "5", "--concurrency", "1"];
    let output = run(folder.path(), &server, &limited);
    assert_eq!((exit(&output), server.arrived().len()), (Some(1), 1), "{}", stderr(&output));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("does not count tokens") && shown.contains("--max-calls"), "{shown}");

    // Started again, it still does not know what was spent.
    let again = run(folder.path(), &server, &limited);
    assert_eq!((exit(&again), server.arrived().len()), (Some(1), 1), "{}", stderr(&again));
    let shown = String::from_utf8_lossy(&again.stdout);
    assert!(shown.contains("does not count tokens"), "{shown}");
}

fn uncounted(request: &Value) -> Value {
    let mut reply = policy(request);
    reply.as_object_mut().unwrap().remove("usage");
    reply
}

#[test]
fn a_reference_that_comes_later_is_noticed() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let file = folder.path().join("set/cases.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let added = text.replacen('{', "{\"reference\": \"0-good.png\", ", 1);
    fs::write(&file, added).unwrap();
    let output = run(folder.path(), &server, &[]);
    assert_eq!(exit(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("the reference"), "{}", stderr(&output));
    stdout(&run(folder.path(), &server, &["--redo-changed"]));
}

#[test]
fn a_run_of_the_first_format_is_read_and_not_gone_on_with() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &["--editor", "good"]));
    let path = folder.path().join("run/run.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(record["format"], 2);
    record["format"] = json!(1);
    record["planned"]["facts"] = json!({});
    record["planned"]["types"] = json!({ "c0": "Change Color" });
    fs::write(&path, record.to_string()).unwrap();

    let read = |args: &[&str]| stdout(&command(folder.path(), args));
    assert!(read(&["run", "status", "run"]).contains("2 of 2 judgements"));
    assert!(read(&["report", "run"]).contains("Change Color"));
    read(&["view", "run", "--out", "pages"]);
    read(&["run", "merge", "run", "--into", "whole"]);
    for old in ["run", "whole"] {
        let refused = run(folder.path(), &server, &["--run", old]);
        let said = stderr(&refused);
        assert_eq!(exit(&refused), Some(2), "{said}");
        assert!(said.contains("older deeplook") && said.contains("--new-run"), "{said}");
    }
    let arrived = server.arrived().len();
    stdout(&run(folder.path(), &server, &["--new-run"]));
    assert_eq!(lines(&folder.path().join("run-2")).len(), 4);
    assert_eq!(server.arrived().len(), arrived + 2, "what was asked before was kept");
}

#[test]
fn a_judgement_of_its_own_does_not_go_into_a_run() {
    let folder = data(1);
    let server = Server::start(vec![Step::Reply(policy)]);
    stdout(&run(folder.path(), &server, &[]));
    let judge = ["judge", "set/0-source.png", "set/0-good.png", "-i", "make it blue", "--trace"];
    let refused = command(folder.path(), &[&judge[..], &["run"]].concat());
    let said = stderr(&refused);
    assert_eq!(exit(&refused), Some(2), "{said}");
    assert!(said.contains("the folder of a run") && said.contains("--trace"), "{said}");
    assert_eq!(fs::read_dir(folder.path().join("run/judgements")).unwrap().count(), 4);
    for _ in 0..2 {
        stdout(&command(folder.path(), &[&judge[..], &["own"]].concat()));
    }
}

//! Runs through the library: a specification is a value, and whoever has one needs no command.

use std::collections::BTreeMap;
use std::path::Path;

use deeplook::Mode;
use deeplook::run::{
    Access, End, IfOtherSettings, JudgementKey, Progress, Run, RunError, RunSpec, RunSummary, Stop,
};
use deeplook::trace::{Memory, OutcomeName};
use serde_json::{Value, json};

use super::runs::{data, policy};
use super::wire::server::{Server, Step};

/// Every edit of `folder` in the plain mode, asked of `server`.
fn spec(folder: &Path, server: &Server) -> RunSpec {
    let mut spec = RunSpec::of(folder.join("set"));
    spec.modes = [Mode::Plain].into();
    spec.judge.model = "some-model".to_owned();
    spec.judge.base_url = Some(server.base_url.clone());
    spec.keep.folder = Some(folder.join("run"));
    spec.keep.replies_mb = 0;
    spec
}

/// The lines without what depends on the time and the way.
fn judged(summary: &RunSummary) -> BTreeMap<JudgementKey, Value> {
    let line = |(key, line): (&JudgementKey, &deeplook::trace::ResultLine)| {
        let mut line = json!(line);
        for key in ["trace", "digest", "seconds", "at"] {
            line.as_object_mut().unwrap().remove(key);
        }
        (key.clone(), line)
    };
    summary.lines.iter().map(line).collect()
}

#[test]
fn a_specification_is_a_value() {
    let mut spec = RunSpec::of("scenes");
    spec.criteria = vec!["vc".to_owned()];
    spec.modes = [Mode::Oracle, Mode::Plain].into();
    spec.repeats = 3;
    spec.data.map = serde_json::from_value(json!({ "boxes": "bbox:xywh" })).unwrap();
    spec.select.only = Some([("a".to_owned(), "x".to_owned())].into());
    spec.select.shard = Some("2/8".parse().unwrap());
    spec.select.conditions = vec!["type=Change Color".parse().unwrap()];
    spec.judge.params = [("temperature".to_owned(), json!(0.5))].into();
    spec.budget.cost = Some(20.0);
    spec.again.outcomes = [OutcomeName::Failed].into();
    spec.keep.if_other_settings = IfOtherSettings::NewRun;
    for spec in [spec, RunSpec::default()] {
        let json: RunSpec = serde_json::from_value(json!(spec)).unwrap();
        assert_eq!(json, spec);
        let toml: RunSpec = toml::Value::try_from(&spec).unwrap().try_into().unwrap();
        assert_eq!(toml, spec);
    }
    let slip = toml::from_str::<RunSpec>("repeat = 3").unwrap_err();
    assert!(slip.to_string().contains("unknown field"), "{slip}");
}

#[test]
fn a_specification_holds_no_key() {
    let (shown, access) = Access::of_url("https://me:hunter22@example.org/v1");
    assert_eq!(shown, "https://example.org/v1");
    assert!(access.base_url.is_some() && !format!("{access:?}").contains("hunter22"));
    for (field, value, said) in [
        ("base_url", json!("https://me:hunter22@example.org/v1"), "base_url"),
        ("params", json!({ "api_key": "hunter22" }), "api_key"),
    ] {
        let judge = json!({ "model": "m", field: value });
        let spec = json!({ "data": { "path": "nowhere" }, "judge": judge });
        let error = Run::new(serde_json::from_value(spec).unwrap()).run().unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains("hunter22"), "{error}");
    }
}

#[test]
fn a_batch_tells_how_it_goes_keeps_its_limit_and_goes_on() {
    let folder = data(3);
    let server = Server::start(vec![Step::Reply(policy)]);
    let mut spec = spec(folder.path(), &server);
    spec.budget.calls = Some(5);
    let (mut told, mut there) = (Vec::new(), None);
    let run = Run::new(spec.clone()).progress(|progress| match progress {
        Progress::Begins(beginning) => there = Some((beginning.to_do, beginning.there)),
        Progress::Judged(line, tally) => told.push((line.case.clone(), tally.done, tally.total)),
        _ => {}
    });
    let summary = run.run().unwrap();
    assert_eq!((summary.end, summary.done, summary.planned), (End::Limit, 5, 12));
    assert_eq!((there, told.len(), server.arrived().len()), (Some((12, 0)), 5, 5));
    assert!(told.iter().all(|(_, _, total)| *total == 12), "{told:?}");

    spec.budget.calls = None;
    let summary = Run::new(spec.clone()).run().unwrap();
    assert_eq!((summary.end, summary.done, server.arrived().len()), (End::Done, 12, 12));
    assert!(summary.is_finished() && summary.lines.len() == 12);

    // Other settings are a choice of its own, and the words name no option of a command.
    spec.judge.params = [("seed".to_owned(), json!(7))].into();
    let refused = Run::new(spec.clone()).run().unwrap_err();
    assert!(matches!(refused, RunError::OtherSettings { .. }), "{refused}");
    assert!(!refused.to_string().contains("--"), "{refused}");
    spec.keep.if_other_settings = IfOtherSettings::NewRun;
    let beside = Run::new(spec.clone()).check().unwrap();
    assert_eq!(beside, Some(folder.path().join("run-2")));
    assert!(!folder.path().join("run-2").exists(), "a check writes nothing");
    let forecast = Run::new(spec).forecast().unwrap();
    assert_eq!((forecast.total.judgements, server.arrived().len()), (12, 12));
}

#[test]
fn two_equal_specifications_give_equal_runs_and_memory_leaves_no_file() {
    let folder = data(2);
    let server = Server::start(vec![Step::Reply(policy)]);
    let spec = spec(folder.path(), &server);
    let in_memory = || Run::new(spec.clone()).sink(Memory).run().unwrap();
    let (one, two) = (in_memory(), in_memory());
    assert_eq!((one.run.as_ref(), one.lines.len()), (None, 8));
    assert_eq!(judged(&one), judged(&two));
    assert!(!folder.path().join("run").exists());
    assert!(one.lines.values().all(|line| line.trace.is_none() && line.score.is_some()));
    // In a folder it is the same, but for where the traces are.
    assert_eq!(judged(&Run::new(spec).run().unwrap()), judged(&one));
}

#[test]
fn the_offline_judge_runs_a_batch_too() {
    let folder = data(1);
    let mut spec = RunSpec::of(folder.path().join("set"));
    spec.modes = [Mode::Oracle].into();
    let summary = Run::new(spec).sink(Memory).run().unwrap();
    assert_eq!((summary.end, summary.done, summary.cost), (End::Done, 4, Some(0.0)));
}

#[test]
fn whoever_asks_it_to_stop_is_heard() {
    let folder = data(12);
    let server = Server::start(vec![Step::Reply(policy)]);
    let mut spec = spec(folder.path(), &server);
    spec.pace.concurrency = 1;
    let stop = Stop::default();
    let run = Run::new(spec.clone()).stop(stop.clone()).progress(|progress| {
        if let Progress::Judged(..) = progress {
            stop.ask();
        }
    });
    let summary = run.run().unwrap();
    assert_eq!(summary.end, End::Interrupted);
    assert!((1..48).contains(&summary.done), "{}", summary.done);
    assert_eq!(Run::new(spec).run().unwrap().done, 48, "it goes on");
}

#[test]
fn what_cannot_be_is_named() {
    for (spec, field) in [
        (json!({}), "data"),
        (json!({ "data": { "path": "x" }, "repeats": 0 }), "repeats"),
        (json!({ "data": { "path": "x" }, "modes": [] }), "modes"),
        (json!({ "data": { "path": "x" }, "pace": { "concurrency": 0 } }), "concurrency"),
        (json!({ "data": { "path": "x" }, "budget": { "cost": -1.0 } }), "budget.cost"),
        (json!({ "data": { "path": "x" }, "again": { "outcomes": ["verdict"] } }), "again"),
        (json!({ "data": { "from_traces": "x" }, "judge": { "max_turns": 3 } }), "from_traces"),
        (json!({ "data": { "path": "x" }, "judge": { "max_turns": 101 } }), "max_turns"),
        (json!({ "data": { "path": "x" }, "judge": { "profile": "openai" } }), "offline judge"),
    ] {
        let read: RunSpec = serde_json::from_value(spec.clone()).unwrap();
        let error = Run::new(read).run().unwrap_err().to_string();
        assert!(error.contains(field) && !error.contains("--"), "{spec}: {error}");
    }
}

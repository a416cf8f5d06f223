//! A long run against a server that fails in every way that servers fail: each judgement ends as it
//! would have without, or has failed for the true reason.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use deeplook::dataset::draw;
use deeplook::judge::JudgeSettings;
use deeplook::message::{Dialect, Wire};
use deeplook::model::{OpenAi, OpenAiSettings, Profile, RetryPolicy, Rules};
use deeplook::prompt::{self, Mode, Pack};
use deeplook::tools::{Picture, Toolbox};
use deeplook::trace::{Bundle, ModelRecord, What};
use deeplook::{EditCase, Judge, Judged, Outcome, RunFolder};
use serde_json::{Value, json};

use super::wire::server::{Server, Step, answer, completion, text};

const JUDGEMENTS: usize = 40;
/// Long enough for a busy machine, short enough for a test.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// What a server says on a wire: a text, or a call of a tool.
fn reply_on(wire: Wire, text: Option<&str>, finish: [&str; 3]) -> Value {
    let name = "localize_differences";
    match wire {
        Wire::Chat => {
            let message = match text {
                Some(text) => json!({ "role": "assistant", "content": text }),
                None => {
                    let function = json!({ "name": name, "arguments": "{}" });
                    let call = json!({ "id": "call_1", "type": "function", "function": function });
                    json!({ "role": "assistant", "content": "I look.", "tool_calls": [call] })
                }
            };
            completion(&message, finish[0])
        }
        Wire::Responses => {
            let item = match text {
                Some(text) => json!({ "type": "message", "role": "assistant",
                                      "content": [{ "type": "output_text", "text": text }] }),
                None => json!({ "type": "function_call", "call_id": "call_1", "name": name,
                                "arguments": "{}" }),
            };
            let details = match finish[1] {
                "completed" => Value::Null,
                reason => json!({ "reason": reason }),
            };
            json!({ "id": "r", "status": "completed", "output": [item], "incomplete_details": details })
        }
        Wire::Messages => {
            let block = match text {
                Some(text) => json!({ "type": "text", "text": text }),
                None => json!({ "type": "tool_use", "id": "call_1", "name": name, "input": {} }),
            };
            json!({ "id": "m", "type": "message", "content": [block], "stop_reason": finish[2] })
        }
    }
}

const ENDED: [&str; 3] = ["stop", "completed", "end_turn"];
const CUT: [&str; 3] = ["length", "max_output_tokens", "max_tokens"];

/// A model that looks once and then answers with a label that depends on the task alone.
fn policy(request: &Value) -> Value {
    let (wire, rules, said) = match (request.get("input"), request.get("system")) {
        (Some(input), _) => (Wire::Responses, &request["instructions"], input),
        (None, Some(system)) => (Wire::Messages, system, &request["messages"]),
        (None, None) => (Wire::Chat, &request["messages"][0]["content"], &request["messages"]),
    };
    let looked = ["\"role\":\"tool\"", "function_call_output", "tool_result"];
    let looked = looked.iter().any(|sign| said.to_string().contains(sign));
    if request.get("tools").is_some() && !looked {
        return reply_on(wire, None, ENDED);
    }
    let labels = match rules.to_string().contains("criterion, Visual Consistency") {
        true => ["Perfect Consistency", "Single Anomaly", "Multiple Anomalies", "Scene Collapse"],
        false => {
            ["Flawless Execution", "Over Modification", "Wrong Action", "Localization Failure"]
        }
    };
    let first = usize::from(wire == Wire::Chat);
    let mut task = DefaultHasher::new();
    said[first].to_string().hash(&mut task);
    let label = labels[task.finish() as usize % labels.len()];
    let text = format!("<Start Final Answer>{label}</Start Final Answer>");
    reply_on(wire, Some(&text), ENDED)
}

/// What goes wrong, and the words by which the trace must tell of it; no words where the server
/// has answered and only the loop can notice.
fn faults(wire: Wire) -> Vec<(Step, &'static str)> {
    let busy = || answer(429, &json!({"error": {"message": "slow down", "code": 429}}));
    let says = |text: &str, finish| answer(200, &reply_on(wire, Some(text), finish));
    vec![
        (busy(), "slow down"),
        (busy().with("Retry-After", "0.02"), "slow down"),
        (busy().with("retry-after-ms", "20"), "slow down"),
        (answer(500, &json!({"error": {"message": "oops"}})), "oops"),
        (answer(503, &json!({"error": {"code": 503, "message": "loading"}})), "loading"),
        (text(502, "<html><h1>Bad Gateway</h1></html>"), "Bad Gateway"),
        (text(504, ""), "no explanation"),
        (Step::Reset, "broke"),
        (Step::Truncated(r#"{"choices": [{"mes"#.to_owned()), "broke off"),
        (text(200, r#"{"choices": [{"mess"#), "not whole JSON"),
        (text(200, "hello"), "not whole JSON"),
        (answer(200, &json!({"choices": [], "output": null, "content": null})), "no message"),
        (answer(200, &json!({"error": {"code": 502, "message": "upstream"}})), "upstream"),
        (answer(529, &json!({"type": "error", "error": {"message": "Overloaded"}})), "Overloaded"),
        (says("", ENDED), "empty reply"),
        (says(" ", ENDED), "empty reply"),
        (says("<Start Thinking>First I", CUT), ""),
    ]
}

/// The steps of the server, and the words of the faults among them in order.
fn schedule(wire: Wire) -> (Vec<Step>, Vec<&'static str>) {
    let mut steps = Vec::new();
    let mut add = |step: Step, words: &'static str| steps.push((step, words));
    for round in 0..5 {
        for (number, (fault, words)) in faults(wire).into_iter().enumerate() {
            add(fault, words);
            // Some come alone, some in pairs, and in every round other ones.
            if (number + round) % 2 == 0 {
                add(Step::Reply(policy), "");
            }
        }
        // What no patience helps against.
        match round {
            0 => (0..4).for_each(|_| add(text(503, "down for good"), "down for good")),
            1 => add(answer(401, &json!({"error": {"message": "bad key"}})), "bad key"),
            2 => add(text(429, "tomorrow").with("Retry-After", "3600"), "tomorrow"),
            3 => add(Step::Hang(2 * TIMEOUT), "within"),
            _ => add(Step::Stall(2 * TIMEOUT), "within"),
        }
    }
    let words = steps.iter().map(|(_, words)| *words).filter(|words| !words.is_empty()).collect();
    (steps.into_iter().map(|(step, _)| step).collect(), words)
}

fn cases() -> Vec<EditCase> {
    let small = |picture: &Picture| picture.resized(picture.size().with_long_side(256));
    let drawn = draw::case(3, 1).unwrap();
    let edits = drawn.edits.iter().cycle().take(JUDGEMENTS / 4).enumerate();
    edits
        .map(|(number, edit)| {
            let instruction = format!("{} ({number})", drawn.instruction);
            EditCase::new(small(&drawn.source), small(&edit.picture), instruction)
        })
        .collect()
}

/// Judges every case by both criteria in two modes, one after the other.
fn judge_all(wire: Wire, cases: &[EditCase], steps: Vec<Step>, run: &RunFolder) -> Vec<Judged> {
    let server = Server::start(steps);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut all = Vec::new();
    for mode in [Mode::Tool, Mode::Plain] {
        let profile = Profile::named("openai").unwrap();
        let profile = Profile { dialect: Dialect::Native, wire, ..profile };
        let model = OpenAi::new(OpenAiSettings {
            base_url: Some(server.base_url.clone()),
            timeout: TIMEOUT,
            retry: RetryPolicy {
                max_attempts: 4,
                base_delay: Duration::from_millis(2),
                max_delay: Duration::from_secs(2),
                seed: Some(1),
            },
            ..OpenAiSettings::new("some-model".to_owned(), profile)
        });
        let record = ModelRecord { id: "some-model".to_owned(), ..Rules::record(Dialect::Native) };
        let pack = Pack::embedded(prompt::DEFAULT).unwrap();
        let settings = JudgeSettings { mode, ..JudgeSettings::default() };
        let judge = Judge::new(model.unwrap(), record, pack, Toolbox::standard(), settings);
        for case in cases {
            for criterion in ["if", "vc"] {
                all.push(runtime.block_on(judge.judge(case, criterion, run, &|_| ())).unwrap());
            }
        }
    }
    all
}

#[test]
fn a_run_with_many_faults_ends_with_the_same_labels_or_the_true_reasons() {
    ends_well(Wire::Chat);
}

#[test]
fn so_does_one_on_responses() {
    ends_well(Wire::Responses);
}

#[test]
fn so_does_one_on_messages() {
    ends_well(Wire::Messages);
}

fn ends_well(wire: Wire) {
    let cases = cases();
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| RunFolder::new(folder.path().join(name));
    let without = judge_all(wire, &cases, vec![Step::Reply(policy)], &run("without"));
    let (mut steps, words) = schedule(wire);
    steps.push(Step::Reply(policy));
    let with = judge_all(wire, &cases, steps, &run("with"));
    assert_eq!((with.len(), without.len()), (JUDGEMENTS, JUDGEMENTS));

    let mut told = Vec::new();
    let mut failures = Vec::new();
    for (with, without) in with.iter().zip(&without) {
        let bundle = Bundle::read(&with.kept.as_ref().unwrap().folder).unwrap();
        assert!(bundle.complete);
        let attempts: Vec<String> = bundle
            .events
            .into_iter()
            .filter_map(|event| match event.event {
                What::AttemptFailed(failed) => Some(failed.attempt.error),
                _ => None,
            })
            .collect();
        match with.judgement.outcome.as_ref().unwrap() {
            Outcome::Failed { reason } => {
                let last = attempts.last().unwrap();
                assert!(reason.contains(last.as_str()), "{reason} is not because of {last}");
                failures.push(reason.clone());
            }
            outcome => assert_eq!(Some(outcome), without.judgement.outcome.as_ref()),
        }
        assert!(without.judgement.label().is_some());
        told.extend(attempts);
    }
    // Every fault that happened is told, in the order in which it happened, and nothing else.
    assert_eq!(told.len(), words.len());
    for (error, words) in told.iter().zip(&words) {
        assert!(error.contains(words), "{error:?} does not tell of {words:?}");
    }
    for reason in ["down for good", "bad key", "3600 s"] {
        assert_eq!(
            failures.iter().filter(|failure| failure.contains(reason)).count(),
            1,
            "{failures:?}"
        );
    }
    assert_eq!(failures.len(), 3, "{failures:?}");
}

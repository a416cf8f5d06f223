//! Refusals that people can act on, servers that are not there, and `deeplook doctor`.

use std::fs;
use std::time::{Duration, Instant};

use deeplook::message::Wire;
use deeplook::model::{ModelError, OpenAi};
use serde_json::{Value, json};

use super::super::command::{deeplook, pair, stderr};
use super::server::{Arrived, Server, Step, answer, says, text};
use super::{KEY, ask, ask_with, hello, run, settings};

#[test]
fn known_refusals_say_what_to_type() {
    for (message, typed) in [
        (
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use \
             function tools, use /v1/responses or set reasoning_effort to 'none'.",
            "--wire responses",
        ),
        (
            "Invalid value at 'tools[0]': Proto field is not repeating, cannot start list.",
            "--dialect tags",
        ),
        ("Invalid JSON payload received. Unknown name \"top_k\": Cannot find field.", "--param"),
        ("Unsupported parameter: 'temperature' is not supported with this model.", "--temperature"),
        ("image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes", "max_image_side"),
        (
            "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            "--max-turns",
        ),
        ("At most 4 image(s) may be provided in one prompt.", "--max-turns"),
        ("models/gemini-3-pro-preview is not found for API version v1main", "--model"),
        ("The model `gpt-4-vision` has been deprecated", "--model"),
        (
            "This model is only supported in v1/responses and not in v1/chat/completions.",
            "--wire responses",
        ),
    ] {
        let asked = ask(vec![answer(400, &json!({"error": {"message": message, "code": 400}}))]);
        let error = asked.error();
        assert!(matches!(error, ModelError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains(typed), "{typed}: {error}");
        assert_eq!(asked.failures.len(), 1, "asking again is no use");
    }
}

#[test]
fn a_redirect_takes_no_key_to_another_server() {
    let other = Server::start(vec![says(&json!({"role": "assistant", "content": "Fine."}))]);
    for wire in [Wire::Chat, Wire::Responses, Wire::Messages] {
        let to = format!("{}/elsewhere", other.base_url);
        let asked = ask_with(vec![text(307, "").with("Location", &to)], &hello(), |settings| {
            settings.profile.wire = wire;
        });
        assert!(asked.error().to_string().contains("--base-url"), "{:?}", asked.error());
    }
    assert!(other.arrived().is_empty(), "nothing was sent on");
}

#[test]
fn a_key_that_a_server_repeats_is_masked_on_every_wire() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Messages] {
        let said = format!("your key is {KEY}, or {}***{}", &KEY[..8], &KEY[KEY.len() - 4..]);
        let body = json!({
            "id": KEY, "service_tier": KEY,
            "choices": [{"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}],
            "output": [{"type": "message", "content": [{"type": "output_text", "text": said}]}],
            "content": [{"type": "text", "text": said}],
        });
        let script = vec![answer(200, &body).with("x-request-id", &format!("req {KEY}"))];
        let asked = ask_with(script, &hello(), |settings| settings.profile.wire = wire);
        let reply = asked.reply();
        assert!(reply.said.text.contains("your key is …"), "{}", reply.said.text);
        assert_eq!(reply.served.request_id.as_deref(), Some("req …"));
    }
}

#[test]
fn nobody_there_stops_at_once_and_nothing_has_failed() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}/v1");
    let started = Instant::now();
    let (outcome, failures) = run(&OpenAi::new(settings(&url)).unwrap(), &hello());
    assert!(matches!(outcome, Err(ModelError::Unreachable(_))), "{outcome:?}");
    assert!(failures.len() <= 3 && started.elapsed() < Duration::from_secs(5));

    let (folder, case) = pair();
    let case = json!({"id": "a", "source": "source.png", "instruction": case.instruction,
                      "edits": {"ed": "edited.png"}});
    fs::write(folder.path().join("cases.jsonl"), format!("{case}\n")).unwrap();
    let model = ["--model", "some-model", "--base-url", &url];
    let judged = ["judge", "source.png", "edited.png", "-i", "Remove it"];
    let evaluated = ["eval", "cases.jsonl", "--run", "run"];
    for command in [&judged[..], &evaluated] {
        let output = deeplook(folder.path()).args(command).args(model).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot connect"), "{}", stderr(&output));
    }
    let lines = fs::read_to_string(folder.path().join("run/results.jsonl")).unwrap_or_default();
    assert_eq!(lines, "", "nothing is recorded as failed");
}

#[test]
fn a_run_without_a_verdict_is_no_success() {
    let (folder, case) = pair();
    let case = json!({"id": "a", "source": "source.png", "instruction": case.instruction,
                      "edits": {"ed": "edited.png"}});
    fs::write(folder.path().join("cases.jsonl"), format!("{case}\n")).unwrap();
    let server = Server::start(vec![text(401, "who are you?")]);
    let output = deeplook(folder.path())
        .args(["eval", "cases.jsonl", "--run", "run", "--criterion", "if", "--mode", "plain"])
        .args(["--model", "some-model", "--base-url", &server.base_url])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// Takes pictures, and tools too unless it is an old server.
fn sees(arrived: &Arrived, takes_tools: bool) -> (u16, Value) {
    let body = arrived.json();
    let said = body["messages"].to_string();
    let shown = said.contains("data:image/png;base64,");
    let message = match body.get("tools") {
        Some(_) if !takes_tools => {
            return (400, json!({"error": {"message": "this model does not support tools"}}));
        }
        Some(tools) => {
            let name = &tools[0]["function"]["name"];
            let arguments = if shown { "{\"colour\": \"red\"}" } else { "{\"colour\": \"blue\"}" };
            json!({"role": "assistant", "content": null, "tool_calls": [{
                "id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]})
        }
        None => json!({"role": "assistant", "content": if shown { "Red." } else { "Blue." }}),
    };
    (200, super::server::completion(&message, "stop"))
}

#[test]
fn the_doctor_says_what_works_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let examine = |step: Step| {
        let server = Server::start(vec![step]);
        let output = deeplook(folder.path())
            .args(["doctor", "--model", "gpt-4.1", "--profile", "openai", "--json"])
            .args(["--base-url", &server.base_url])
            .output()
            .unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), found)
    };
    let (code, found) = examine(Step::Answering(|arrived| sees(arrived, true)));
    assert_eq!((code, &found["ready"]), (Some(0), &json!(true)), "{found}");
    assert_eq!((&found["picture"], &found["tools"]), (&json!("works"), &json!("works")));
    assert_eq!((&found["wire"], &found["usage"]["prompt_tokens"]), (&json!("chat"), &json!(10)));

    let (code, found) = examine(Step::Answering(|arrived| sees(arrived, false)));
    assert_eq!((code, &found["tools"]), (Some(1), &json!("refused")), "{found}");
    assert_eq!(found["options"], "--profile openai --dialect tags");
    assert!(found["problems"][0].as_str().unwrap().contains("--dialect tags"), "{found}");

    let (code, found) = examine(text(401, "who are you?"));
    assert_eq!((code, &found["options"]), (Some(1), &Value::Null), "{found}");

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = deeplook(folder.path())
        .args(["doctor", "--model", "m", "--base-url", &format!("http://{nobody}")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

//! What is not asked for again, and what the user is told to do.

use deeplook::model::openai::OpenAi;
use deeplook::model::profile::Profile;
use deeplook::model::{ModelError, Secret};
use serde_json::{Value, json};

use super::server::{Step, answer, completion, says, text};
use super::{KEY, ask, ask_with, hello, settings};

/// Asks once and returns the error; there must have been one attempt only.
#[track_caller]
fn refused(step: Step) -> ModelError {
    let asked = ask(vec![step, says(&json!({"role": "assistant", "content": "Fine."}))]);
    assert_eq!(asked.failures.len(), 1, "{:?}", asked.failures);
    assert_eq!(asked.failures[0].retry_after_ms, None);
    assert!(asked.failures[0].error.chars().count() <= 500);
    asked.error().clone()
}

fn error(status: u16, message: &str, code: Value) -> Step {
    answer(status, &json!({"error": {"message": message, "type": "some_error", "code": code}}))
}

#[test]
fn refusals_say_what_to_do() {
    for (step, advice) in [
        (
            error(401, &format!("Incorrect API key: {KEY}"), json!("invalid_api_key")),
            "OPENAI_API_KEY",
        ),
        (error(403, "Not for you", json!(403)), "OPENAI_API_KEY"),
        (
            answer(400, &json!([{"error": {"code": 400, "message": "API key not valid."}}])),
            "OPENAI_API_KEY",
        ),
        (
            error(404, "The model does not exist", json!("model_not_found")),
            "no model \"some-model\"",
        ),
        (text(404, "404 page not found"), "--base-url"),
        (error(402, "Insufficient credits", json!(402)), "add credit"),
        (error(429, "You exceeded your quota", json!("insufficient_quota")), "add credit"),
        (error(413, "Payload Too Large", Value::Null), "smaller or JPEG pictures"),
        (error(400, "maximum context length is 4096 tokens", json!(400)), "fewer turns"),
        (
            answer(
                400,
                &json!({"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error"}}),
            ),
            "longer context",
        ),
        (
            error(400, "At most 1 image(s) may be provided in one prompt.", json!(400)),
            "--limit-mm-per-prompt",
        ),
        (
            error(500, "image input is not supported - hint: provide the mmproj", json!(500)),
            "does not take pictures",
        ),
        (
            error(400, "\"auto\" tool choice requires --enable-auto-tool-choice", json!(400)),
            "--dialect tags",
        ),
        (error(400, "registry/model does not support tools", Value::Null), "--dialect tags"),
        (error(422, "temperature is wrong", Value::Null), "temperature is wrong"),
        (answer(200, &json!({"error": {"code": 401, "message": "No key"}})), "OPENAI_API_KEY"),
        (text(301, "").with("Location", "https://elsewhere.org/v1"), "elsewhere.org"),
    ] {
        let error = refused(step);
        assert!(matches!(error, ModelError::Refused(_)), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
        assert!(!error.to_string().contains(KEY), "{error}");
    }
}

#[test]
fn filters_are_told_apart() {
    let message = json!({"role": "assistant", "content": "The pic"});
    for step in [
        error(400, "flagged by our content management policy", json!("content_filter")),
        error(403, "Your input was flagged", json!(403)),
        answer(200, &completion(&message, "content_filter")),
        answer(200, &completion(&json!({"role": "assistant", "content": null}), "SAFETY")),
    ] {
        let error = refused(step);
        assert!(matches!(error, ModelError::Filtered(_)), "{error:?}");
    }
}

#[test]
fn long_errors_are_cut_and_secrets_are_cut_out_first() {
    let long = format!("{}{KEY}{}", "x".repeat(490), "y".repeat(5000));
    let error = refused(error(400, &long, Value::Null)).to_string();
    assert!(!error.contains("sk-secret") && error.len() < 800, "{error}");
}

#[test]
fn a_missing_key_is_named() {
    let asked =
        ask_with(vec![error(401, "No key", Value::Null)], &hello(), |settings| settings.key = None);
    assert!(asked.error().to_string().contains("set the environment variable OPENAI_API_KEY"));
    assert!(!asked.server.arrived()[0].head.to_lowercase().contains("authorization"));

    let mut settings = settings("");
    settings.base_url = None;
    settings.key = None;
    settings.profile = Profile::named("gemini").unwrap();
    let error = OpenAi::new(settings).unwrap_err().to_string();
    assert!(error.contains("GEMINI_API_KEY"), "{error}");
}

#[test]
fn bad_settings_are_refused_at_once() {
    let new = |change: &dyn Fn(&mut deeplook::model::openai::OpenAiSettings)| {
        let mut settings = settings("http://localhost:1/v1");
        change(&mut settings);
        OpenAi::new(settings).map(drop).unwrap_err().to_string()
    };
    assert!(new(&|s| s.base_url = Some("localhost:8000/v1".to_owned())).contains("write http://"));
    assert!(new(&|s| s.model = " ".to_owned()).contains("--model"));
    assert!(new(&|s| s.key = Secret::new("a\nb")).contains("OPENAI_API_KEY"));
    for name in ["messages", "model", "tools", "tool_choice", "stream"] {
        let error = new(&|s| drop(s.params.insert(name.to_owned(), json!(1))));
        assert!(error.contains(name), "{error}");
    }
    let error = new(&|s| {
        s.base_url = None;
        s.profile = Profile::default();
    });
    assert!(error.contains("--base-url"), "{error}");
}

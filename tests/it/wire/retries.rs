//! What is asked for again, when, and for how long.

use std::time::{Duration, Instant, SystemTime};

use deeplook::message::Dialect;
use deeplook::model::ModelError;
use serde_json::json;

use super::server::{Step, answer, completion, says, text};
use super::{ask, ask_with, hello, looking};

fn good() -> Step {
    says(&json!({"role": "assistant", "content": "Fine."}))
}

fn busy() -> Step {
    answer(429, &json!({"error": {"message": "Slow down", "type": "rate_limit", "code": null}}))
}

/// Failures that pass: each is reported once and asked again, with the same body.
#[test]
fn what_passes_is_asked_again() {
    let faults: Vec<(&str, Option<u16>, &str, Step)> = vec![
        ("429", Some(429), "Slow down", busy()),
        ("500", Some(500), "oops", answer(500, &json!({"error": {"message": "oops"}}))),
        (
            "html",
            Some(502),
            "Bad Gateway",
            text(502, "<html><body><h1>Bad Gateway</h1></body></html>"),
        ),
        ("no body", Some(503), "no explanation", text(503, "")),
        (
            "integer code",
            Some(503),
            "loading",
            answer(503, &json!({"error": {"code": 503, "message": "loading"}})),
        ),
        (
            "array",
            Some(503),
            "overloaded",
            answer(503, &json!([{"error": {"code": 503, "message": "overloaded"}}])),
        ),
        ("string error", Some(500), "it broke", answer(500, &json!({"error": "it broke"}))),
        ("detail", Some(500), "in detail", answer(500, &json!({"detail": "in detail"}))),
        (
            "error with 200",
            Some(200),
            "upstream",
            answer(200, &json!({"error": {"code": 502, "message": "upstream"}})),
        ),
        (
            "error in the choice",
            Some(200),
            "upstream",
            answer(200, &json!({"choices": [{"error": {"message": "upstream"}}]})),
        ),
        ("no choices", Some(200), "no message", answer(200, &json!({"choices": []}))),
        ("no choices at all", Some(200), "no message", answer(200, &json!({}))),
        ("half a JSON", Some(200), "not whole JSON", text(200, r#"{"choices": [{"mess"#)),
        ("no JSON", Some(200), "not whole JSON", text(200, "hello")),
        ("empty body", Some(200), "not whole JSON", text(200, "")),
        (
            "null content",
            Some(200),
            "empty reply",
            says(&json!({"role": "assistant", "content": null})),
        ),
        (
            "blank content",
            Some(200),
            "empty reply",
            says(&json!({"role": "assistant", "content": " \n"})),
        ),
        (
            "no calls either",
            Some(200),
            "empty reply",
            says(&json!({"role": "assistant", "content": "", "tool_calls": []})),
        ),
        ("truncated", None, "broke off", Step::Truncated(r#"{"choices": ["#.to_owned())),
        ("reset", None, "broke", Step::Reset),
        (
            "bad grammar",
            Some(500),
            "Failed to parse input",
            answer(
                500,
                &json!({"error": {"code": 500, "message": "Failed to parse input at pos 3"}}),
            ),
        ),
    ];
    for (name, status, words, step) in faults {
        let asked = ask_with(vec![step, good()], &looking(Dialect::Native), |_| {});
        assert_eq!(asked.reply().message["content"], "Fine.", "{name}");
        let [failure] = &asked.failures[..] else { panic!("{name}: {:?}", asked.failures) };
        assert_eq!((failure.attempt, failure.status), (1, status), "{name}");
        assert!(failure.error.contains(words), "{name}: {}", failure.error);
        assert!(failure.retry_after_ms.is_some(), "{name}");
        if let [first, second] = &asked.server.arrived()[..] {
            assert_eq!(first.body, second.body, "{name}");
        }
    }
}

#[test]
fn the_server_says_how_long_to_wait() {
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(2));
    let gemini = json!([{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]}}]);
    let openai = json!({"error": {"message": "Rate limit. Please try again in 300ms.", "code": "rate_limit_exceeded"}});
    for (name, step, at_least, at_most) in [
        ("seconds", busy().with("Retry-After", "1"), 1000, 1300),
        ("fraction", busy().with("Retry-After", "0.3"), 300, 400),
        ("milliseconds", busy().with("retry-after-ms", "300"), 300, 400),
        ("date", busy().with("Retry-After", &soon), 0, 2600),
        ("with 503", text(503, "wait").with("Retry-After", "0.3"), 300, 400),
        ("gemini", answer(429, &gemini), 300, 400),
        ("openai", answer(429, &openai), 300, 400),
    ] {
        let start = Instant::now();
        let asked = ask(vec![step, good()]);
        asked.reply();
        let wait = asked.failures[0].retry_after_ms.unwrap();
        assert!((at_least..=at_most).contains(&wait), "{name}: {wait}");
        assert!(start.elapsed() >= Duration::from_millis(wait), "{name}");
    }
}

#[test]
fn an_unreasonable_wait_is_not_obeyed() {
    let start = Instant::now();
    let asked = ask(vec![busy().with("Retry-After", "3600")]);
    let error = asked.error().to_string();
    assert!(matches!(asked.error(), ModelError::Server(_)));
    assert!(error.contains("3600 s") && error.contains("Slow down"), "{error}");
    assert_eq!(asked.failures.len(), 1);
    assert_eq!(asked.failures[0].retry_after_ms, None);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn attempts_are_bounded() {
    let asked = ask(vec![busy()]);
    let error = asked.error().to_string();
    assert!(error.contains("Slow down") && error.contains("4 times"), "{error}");
    let attempts: Vec<u32> = asked.failures.iter().map(|failure| failure.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert!(asked.failures[..3].iter().all(|failure| failure.retry_after_ms.is_some()));
    assert_eq!(asked.failures[3].retry_after_ms, None);
    assert_eq!(asked.server.arrived().len(), 4);
}

#[test]
fn empty_replies_are_asked_for_again_only_three_times() {
    let empty = completion(&json!({"role": "assistant", "content": ""}), "length");
    let asked = ask(vec![answer(200, &empty)]);
    assert_eq!(asked.failures.len(), 3);
    assert!(asked.error().to_string().contains("max_tokens"), "{:?}", asked.error());
}

#[test]
fn a_server_that_hangs_is_left() {
    for step in [Step::Hang(Duration::from_secs(5)), Step::Stall(Duration::from_secs(5))] {
        let asked = ask_with(vec![step, good()], &hello(), |settings| {
            settings.timeout = Duration::from_millis(500);
        });
        asked.reply();
        assert!(asked.failures[0].error.contains("within 0.5 s"), "{:?}", asked.failures);
    }

    let script = vec![Step::Hang(Duration::from_secs(5))];
    let asked =
        ask_with(script, &hello(), |settings| settings.timeout = Duration::from_millis(100));
    assert!(asked.error().to_string().contains("--timeout"), "{:?}", asked.error());
    assert_eq!(asked.failures.len(), 3);
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = super::settings(&format!("http://me:hunter2@{address}/v1"));
    settings.retry.max_attempts = 2;
    let model = deeplook::model::openai::OpenAi::new(settings).unwrap();
    assert_eq!(model.base_url(), format!("http://{address}/v1"));
    let (outcome, failures) = super::run(&model, &hello());
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains(&format!("cannot connect to http://{address}/v1")), "{error}");
    assert!(error.contains("refused"), "{error}");
    assert_eq!(failures.len(), 2);
    assert!(!format!("{model:?} {error} {failures:?}").contains("hunter2"));
}

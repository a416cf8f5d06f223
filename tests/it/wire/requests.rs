//! What is sent.

use std::sync::Arc;

use deeplook::message::{Dialect, Message, Request, ToolChoice};
use deeplook::model::profile::Profile;
use deeplook::wire::{Renderer, unserved};
use serde_json::{Value, json};

use super::server::says;
use super::{ask_with, hello, looking, observation, picture, schema, user};

fn bytes(renderer: &Renderer, request: &Request) -> Vec<u8> {
    let bytes = serde_json::to_vec(&renderer.body(request).unwrap()).unwrap();
    schema::check(&serde_json::from_slice(&bytes).unwrap());
    bytes
}

fn body(profile: &str, request: &Request) -> Value {
    let renderer = renderer(profile);
    serde_json::from_slice(&bytes(&renderer, request)).unwrap()
}

fn renderer(profile: &str) -> Renderer {
    Renderer::new("some-model", Profile::named(profile).unwrap().habits(), Default::default())
        .unwrap()
}

fn said(message: Value) -> Arc<Message> {
    Arc::new(Message::Assistant(Box::new(unserved(message))))
}

/// A conversation after one turn in which one tool was called in each form.
fn second_turn(dialect: Dialect) -> Request {
    let mut request = looking(dialect);
    request.messages.push(said(json!({
        "role": "assistant", "content": "<tool_call>…</tool_call>",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "zoom_in", "arguments": "{}"}}],
    })));
    request.messages.push(Arc::new(Message::Observations {
        observations: vec![
            observation("", Dialect::Tags, "tags", vec![picture("Crop 1")]),
            observation("a", Dialect::Native, "native", vec![picture("Crop 2")]),
        ],
        closing: "Go on.".to_owned(),
    }));
    request
}

fn kinds(message: &Value) -> Vec<String> {
    let parts = message["content"].as_array().unwrap();
    parts.iter().map(|part| part["text"].as_str().unwrap_or("(picture)").to_owned()).collect()
}

#[test]
fn the_first_request() {
    let body = body("openai", &looking(Dialect::Native));
    assert_eq!(body["messages"][0], json!({"role": "system", "content": "Judge."}));
    assert_eq!(
        kinds(&body["messages"][1]),
        ["Compare \"these\".", "Original Image:", "(picture)", "Edited Image:", "(picture)",]
    );
    let url = body["messages"][1]["content"][2]["image_url"]["url"].as_str().unwrap();
    assert_eq!(url, "data:image/png;base64,bm90IHJlYWxseSBhIHBpY3R1cmU6IE9yaWdpbmFsIEltYWdl");
    assert_eq!(body["tools"].as_array().unwrap().len(), looking(Dialect::Native).tools.len());
    assert!(body.get("tool_choice").is_none());
}

#[test]
fn tools_are_declared_in_the_native_dialect_only() {
    assert!(body("openai", &looking(Dialect::Tags)).get("tools").is_none());
    assert!(body("openai", &hello()).get("tools").is_none());
}

#[test]
fn on_the_last_turn_tools_may_not_be_chosen() {
    let mut last = looking(Dialect::Native);
    last.tool_choice = ToolChoice::None;
    let kept = body("openai", &last);
    assert_eq!(kept["tool_choice"], "none");
    assert!(kept.get("tools").is_some());
    let dropped = body("ollama", &last);
    assert!(dropped.get("tool_choice").is_none() && dropped.get("tools").is_none());
    last.dialect = Dialect::Tags;
    assert!(body("openai", &last).get("tool_choice").is_none());
}

#[test]
fn tools_answer_first_and_pictures_follow_in_one_message() {
    for dialect in [Dialect::Native, Dialect::Tags] {
        let body = body("openai", &second_turn(dialect));
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 5);
        assert_eq!(
            messages[3],
            json!({"role": "tool", "tool_call_id": "a", "content": "Saw native."})
        );
        assert_eq!(
            kinds(&messages[4]),
            ["Saw tags.", "Crop 1:", "(picture)", "Crop 2:", "(picture)", "Go on.",]
        );
    }
}

#[test]
fn user_messages_in_a_row_are_merged_where_roles_must_alternate() {
    let mut request = second_turn(Dialect::Tags);
    request.messages.push(user("Once more."));
    assert_eq!(body("openai", &request)["messages"].as_array().unwrap().len(), 6);
    let merged = body("llamacpp", &request);
    assert_eq!(merged["messages"].as_array().unwrap().len(), 5);
    assert_eq!(kinds(&merged["messages"][4]).last().unwrap(), "Once more.");
    // Text alone stays a plain string.
    let mut request = hello();
    request.messages.push(user("Once more."));
    assert_eq!(body("vllm", &request)["messages"][1]["content"], "Hello?\n\nOnce more.");
}

#[test]
fn the_beginning_never_changes() {
    for (profile, dialect) in
        [("openai", Dialect::Native), ("llamacpp", Dialect::Tags), ("vllm", Dialect::Native)]
    {
        let renderer = renderer(profile);
        let second = second_turn(dialect);
        let mut third = second.clone();
        third.messages.push(said(json!({"role": "assistant", "content": "Hm."})));
        third.messages.push(user("Answer now."));
        third.tool_choice = ToolChoice::None;
        let first = Request { messages: second.messages[..2].to_vec(), ..second.clone() };
        let turns = [first, second, third].map(|request| bytes(&renderer, &request));
        for pair in turns.windows(2) {
            let before = pair[0].strip_suffix(b"]}").unwrap();
            assert!(pair[1].starts_with(before), "{profile}");
        }
    }
}

#[test]
fn parameters_are_added_under_the_names_of_the_server() {
    let good = says(&json!({"role": "assistant", "content": "Fine."}));
    for (profile, name) in [("openai", "max_completion_tokens"), ("vllm", "max_tokens")] {
        let asked = ask_with(vec![good.clone()], &hello(), |settings| {
            settings.profile = Profile::named(profile).unwrap();
            settings.params =
                [("temperature", json!(0.5)), ("seed", json!(7)), ("max_tokens", json!(99))]
                    .map(|(name, value)| (name.to_owned(), value))
                    .into();
        });
        let arrived = &asked.server.arrived()[0];
        let body = arrived.json();
        schema::check(&body);
        assert_eq!(
            (&body["temperature"], &body["seed"], &body[name]),
            (&json!(0.5), &json!(7), &json!(99))
        );
        assert!(body.get("stream").is_none());
        assert!(arrived.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", arrived.head);
        assert!(arrived.head.contains("authorization: Bearer sk-secret"), "{}", arrived.head);
    }
}

#[test]
fn a_trailing_slash_and_proxies_do_not_matter() {
    let good = says(&json!({"role": "assistant", "content": "Fine."}));
    let asked = ask_with(vec![good], &hello(), |settings| {
        settings.base_url = settings.base_url.take().map(|url| url + "//");
    });
    assert!(asked.server.arrived()[0].head.starts_with("POST /v1/chat/completions HTTP/1.1"));
}

//! What is read from replies, and how they go back.

use std::sync::Arc;

use deeplook::message::{Dialect, Message, Reply, Request, Usage};
use deeplook::wire::unserved;
use serde_json::{Value, json};

use super::server::{answer, completion, says};
use super::{Asked, ask, ask_with, looking, observation, schema, user};

/// Lets a server say `message`, answers every native call of the reply, and returns the reply
/// and the body of the next request.
fn there_and_back(message: &Value) -> (Asked, Value) {
    let asked = ask_with(vec![says(message)], &looking(Dialect::Native), |_| {});
    let mut request = looking(Dialect::Native);
    follow(&mut request, asked.reply());
    let next =
        ask_with(vec![says(&json!({"role": "assistant", "content": "Fine."}))], &request, |_| {});
    let body = next.server.arrived()[0].json();
    schema::check(&body);
    (asked, body)
}

fn follow(request: &mut Request, reply: &Reply) {
    request.messages.push(Arc::new(Message::Assistant(Box::new(reply.clone()))));
    let calls = &reply.said.calls;
    let observations =
        calls.iter().map(|call| observation(&call.id, Dialect::Native, "it", Vec::new())).collect();
    let closing = "Go on.".to_owned();
    request.messages.push(Arc::new(Message::Observations { observations, closing }));
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "zoom_in", "arguments": "{}"}})
}

#[test]
fn replies_carry_what_the_server_told() {
    let asked = ask(vec![says(&json!({"role": "assistant", "content": "Fine."}))]);
    let reply = asked.reply();
    assert_eq!(reply.message, json!({"role": "assistant", "content": "Fine."}));
    assert_eq!(reply.finish_reason.as_deref(), Some("stop"));
    assert_eq!(reply.served.model.as_deref(), Some("served-model"));
    let usage = Usage {
        prompt_tokens: Some(10),
        cached_tokens: Some(8),
        completion_tokens: Some(2),
        ..Usage::default()
    };
    assert_eq!((reply.usage, &reply.repairs), (usage, &Vec::new()));
    assert!(asked.failures.is_empty());
}

#[test]
fn usage_is_unknown_where_it_is_not_told() {
    let message = json!({"role": "assistant", "content": "Fine."});
    for (usage, expected) in [
        (Value::Null, [None, None, None]),
        (json!({"prompt_tokens": 7, "prompt_cache_hit_tokens": 3}), [Some(7), Some(3), None]),
        (
            json!({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 109}),
            [Some(7), None, Some(102)],
        ),
    ] {
        let mut body = completion(&message, "stop");
        body["usage"] = usage;
        let asked = ask(vec![answer(200, &body)]);
        let usage = asked.reply().usage;
        assert_eq!([usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens], expected);
    }
}

#[test]
fn a_reply_cut_short_is_a_reply() {
    let body = completion(&json!({"role": "assistant", "content": "I think that"}), "length");
    let asked = ask(vec![answer(200, &body)]);
    assert_eq!(asked.reply().finish_reason.as_deref(), Some("length"));
}

#[test]
fn unknown_finish_reasons_and_list_content_are_taken() {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "Fine."}]});
    let asked = ask(vec![answer(200, &completion(&message, "eos_token"))]);
    assert_eq!(asked.reply().message, message);
}

#[test]
fn a_refusal_is_a_reply() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I will not."});
    assert_eq!(ask(vec![says(&message)]).reply().message, message);
}

#[test]
fn what_the_server_needs_goes_back_unchanged() {
    let message = json!({
        "role": "assistant", "content": null, "reasoning_content": "Hm.", "unknown": {"deep": [1, 2.5]},
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "zoom_in", "arguments": "{\"x\": 1}"},
             "extra_content": {"google": {"thought_signature": "c2lnbmF0dXJl=="}}},
            call("b"),
        ],
    });
    let (asked, body) = there_and_back(&message);
    assert_eq!(asked.reply().repairs, Vec::<String>::new());
    assert_eq!(asked.reply().message, message);
    assert_eq!(body["messages"][2], message);
    assert_eq!(
        (&body["messages"][3]["tool_call_id"], &body["messages"][4]["tool_call_id"]),
        (&json!("a"), &json!("b"))
    );
}

#[test]
fn an_empty_list_of_calls_is_dropped() {
    for empty in [json!([]), Value::Null] {
        let message = json!({"role": "assistant", "content": "Fine.", "tool_calls": empty});
        let (asked, body) = there_and_back(&message);
        assert_eq!(asked.reply().repairs.len(), 1);
        assert_eq!(body["messages"][2], json!({"role": "assistant", "content": "Fine."}));
    }
}

#[test]
fn calls_are_repaired_in_call_and_answer_alike() {
    let message = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "", "function": {"name": "zoom_in", "arguments": {"box": [1, 2, 3, 4]}}},
        call("same"), call("same"),
        {"type": "function", "function": {"name": "zoom_in"}},
    ]});
    let (asked, body) = there_and_back(&message);
    assert_eq!(
        asked.reply().repairs,
        [
            "call 1: added the type",
            "call 1: made the arguments a string",
            "call 1: replaced an empty id",
            "call 3: replaced a repeated id",
            "call 4: made the arguments a string",
            "call 4: replaced an empty id",
        ]
    );
    let calls = body["messages"][2]["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["function"]["arguments"], "{\"box\":[1,2,3,4]}");
    assert_eq!(calls[1]["id"], "same");
    for (place, call) in calls.iter().enumerate() {
        assert_eq!(body["messages"][3 + place]["tool_call_id"], call["id"]);
    }
}

#[test]
fn ids_are_new_in_the_whole_conversation() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call("call_0")]});
    let mut request = looking(Dialect::Native);
    follow(&mut request, &unserved(message.clone()));
    let asked = ask_with(vec![says(&message)], &request, |_| {});
    assert_eq!(asked.reply().repairs, ["call 1: replaced a repeated id"]);
    follow(&mut request, asked.reply());
    let asked = ask_with(vec![says(&message)], &request, |_| {});
    schema::check(&asked.server.arrived()[0].json());
}

#[test]
fn a_call_that_nobody_answered_is_answered() {
    let mut request = looking(Dialect::Tags);
    let message =
        json!({"role": "assistant", "content": "x", "tool_calls": [call("a"), call("b")]});
    request.messages.push(Arc::new(Message::Assistant(Box::new(unserved(message)))));
    request.messages.push(user("Answer now."));
    let asked =
        ask_with(vec![says(&json!({"role": "assistant", "content": "Fine."}))], &request, |_| {});
    schema::check(&asked.server.arrived()[0].json());
}

#[test]
fn calls_count_by_their_presence() {
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call("a")]});
    let asked = ask(vec![says(&message)]);
    assert_eq!(asked.reply().finish_reason.as_deref(), Some("stop"));
    assert_eq!(asked.reply().message, message);
}

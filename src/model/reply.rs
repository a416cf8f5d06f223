//! From the JSON of a chat completion to a [`Reply`], with exactly the repairs that make the message
//! fit to be sent back.

use std::collections::HashSet;

use deeplook_tools::scene::cut;
use serde_json::{Value, json};

use crate::message::{Reply, Usage};

/// Why a body with status 200 is no reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NoReply {
    /// Not JSON, or only half of it.
    Malformed(String),
    /// An error object after all.
    Error(Value),
    /// No choice, or one without a message.
    NoChoice,
    /// A message that says nothing, calls nothing and refuses nothing; with the finish reason.
    Empty(Option<String>),
    /// A filter stepped in; with the finish reason.
    Filtered(String),
}

/// Reads a body with status 200. `taken` are the call ids that the conversation has already.
pub(super) fn read(body: &[u8], taken: &HashSet<String>) -> Result<Reply, NoReply> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| malformed(body, &error))?;
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(NoReply::Error(error.clone()));
    }
    let usage = usage(&body);
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    let choice = body.pointer_mut("/choices/0").ok_or(NoReply::NoChoice)?;
    if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
        return Err(NoReply::Error(error.clone()));
    }
    let finish_reason = choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned);
    if let Some(reason) = finish_reason.as_deref().filter(|reason| is_filter(reason)) {
        return Err(NoReply::Filtered(reason.to_owned()));
    }
    let mut message = match choice.get_mut("message").map(Value::take) {
        Some(message @ Value::Object(_)) => message,
        _ => return Err(NoReply::NoChoice),
    };
    if is_empty(&message) {
        return Err(NoReply::Empty(finish_reason));
    }
    let repairs = repair(&mut message, taken);
    Ok(Reply { message, repairs, finish_reason, usage, model })
}

/// What is wrong with a body. A web page or a stream of events is better told by how it begins.
fn malformed(body: &[u8], error: &serde_json::Error) -> NoReply {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let text = text.trim_start();
    NoReply::Malformed(if text.is_empty() || text.starts_with('{') {
        error.to_string()
    } else {
        format!("it begins with {:?}; is this a chat server?", cut(text, 60))
    })
}

/// The words of OpenAI, Gemini and others for "a filter stopped this".
fn is_filter(finish_reason: &str) -> bool {
    let reason = finish_reason.to_ascii_lowercase();
    reason.starts_with("content_filter")
        || [
            "safety",
            "prohibited_content",
            "blocklist",
            "recitation",
            "spii",
            "image_safety",
            "sensitive",
        ]
        .contains(&reason.as_str())
}

fn is_empty(message: &Value) -> bool {
    let blank = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(_) | None => true,
    };
    ["content", "tool_calls", "function_call", "refusal"].iter().all(|key| blank(message.get(key)))
}

/// The repairs without which servers refuse the message when it goes back to them.
fn repair(message: &mut Value, taken: &HashSet<String>) -> Vec<String> {
    let mut repairs = Vec::new();
    let Some(fields) = message.as_object_mut() else { return repairs };
    match fields.get("tool_calls") {
        Some(Value::Null) => {
            fields.remove("tool_calls");
            repairs.push("dropped tool_calls: null".to_owned());
        }
        Some(Value::Array(calls)) if calls.is_empty() => {
            fields.remove("tool_calls");
            repairs.push("dropped an empty tool_calls".to_owned());
        }
        _ => {}
    }
    let Some(calls) = fields.get_mut("tool_calls").and_then(Value::as_array_mut) else {
        return repairs;
    };
    let mut seen = HashSet::new();
    for (place, call) in calls.iter_mut().enumerate() {
        let number = place + 1;
        let Some(call) = call.as_object_mut() else { continue };
        if call.get("type").is_none_or(|kind| kind.as_str().is_none_or(str::is_empty)) {
            call.insert("type".to_owned(), json!("function"));
            repairs.push(format!("call {number}: added the type"));
        }
        if let Some(function) = call.get_mut("function").and_then(Value::as_object_mut) {
            let text = match function.get("arguments") {
                Some(Value::String(_)) => None,
                None | Some(Value::Null) => Some("{}".to_owned()),
                Some(arguments) => Some(arguments.to_string()),
            };
            if let Some(text) = text {
                function.insert("arguments".to_owned(), Value::String(text));
                repairs.push(format!("call {number}: made the arguments a string"));
            }
        }
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        if id.is_empty() || taken.contains(id) || seen.contains(id) {
            let problem = if id.is_empty() { "an empty" } else { "a repeated" };
            repairs.push(format!("call {number}: replaced {problem} id"));
            let new = free_id(place, taken, &seen);
            call.insert("id".to_owned(), Value::String(new));
        }
        seen.extend(call.get("id").and_then(Value::as_str).map(str::to_owned));
    }
    repairs
}

/// An id that nothing else has; the same for the same conversation.
fn free_id(place: usize, taken: &HashSet<String>, seen: &HashSet<String>) -> String {
    let mut number = taken.len() + place;
    loop {
        number += 1;
        let id = format!("call_{number}");
        if !taken.contains(&id) && !seen.contains(&id) {
            return id;
        }
    }
}

/// Tokens, in the several places where servers put them.
fn usage(body: &Value) -> Usage {
    let count = |paths: &[&str]| paths.iter().find_map(|path| body.pointer(path)?.as_u64());
    let prompt_tokens = count(&["/usage/prompt_tokens"]);
    let completion_tokens = count(&["/usage/completion_tokens"]);
    // Gemini and xAI count thinking in the total only.
    let with_thinking = count(&["/usage/total_tokens"])
        .zip(prompt_tokens)
        .and_then(|(total, prompt)| total.checked_sub(prompt));
    Usage {
        prompt_tokens,
        cached_tokens: count(&[
            "/usage/prompt_tokens_details/cached_tokens",
            "/usage/prompt_cache_hit_tokens",
            "/usage/cached_tokens",
            "/usage/cache_read_input_tokens",
            "/timings/cache_n",
        ]),
        completion_tokens: completion_tokens.max(completion_tokens.and(with_thinking)),
    }
}

//! What a chat completion says, with exactly the repairs that make its message fit to be sent back.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::ids::Ids;
use super::super::{NoReply, Received, has_words};
use crate::message::{Said, ServerCall, Usage};

/// Reads a completion.
pub(in super::super) fn read(body: &mut Value, taken: &HashSet<&str>) -> Result<Received, NoReply> {
    let usage = usage(body);
    let choice = body.pointer_mut("/choices/0").ok_or(NoReply::NoMessage)?;
    if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
        return Err(NoReply::Error(error.clone()));
    }
    let finish_reason = choice.get("finish_reason").and_then(Value::as_str).map(str::to_owned);
    if let Some(reason) = finish_reason.as_deref().filter(|reason| is_filter(reason)) {
        return Err(NoReply::Filtered(reason.to_owned()));
    }
    let mut message = match choice.get_mut("message").map(Value::take) {
        Some(message @ Value::Object(_)) => message,
        _ => return Err(NoReply::NoMessage),
    };
    let repairs = repair(&mut message, taken);
    Ok(Received { message, repairs, finish_reason, usage })
}

/// What an assistant message says.
pub(in super::super) fn said(message: &Value) -> Said {
    let content = message.get("content");
    let fields = ["reasoning_content", "reasoning"].iter().filter_map(|key| message.get(*key));
    let fields = fields.map(|field| text_of(field, TEXT));
    let parts = content.map(|content| text_of(content, REASONING));
    let refusal = message.get("refusal").and_then(Value::as_str).filter(|text| !text.is_empty());
    Said {
        thought: fields.chain(parts).find(|text| has_words(text)),
        text: content.map(|content| text_of(content, TEXT)).unwrap_or_default(),
        calls: calls(message),
        refusal: refusal.map(str::to_owned),
    }
}

/// The calls in `tool_calls`, or in the legacy `function_call`.
fn calls(message: &Value) -> Vec<ServerCall> {
    let listed = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let legacy = message.get("function_call").filter(|call| listed.is_empty() && call.is_object());
    let read = |call: &Value| {
        let function = call.get("function").unwrap_or(call);
        let text =
            |of: &Value, key| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = ["parameters", "arguments", "args", "params", "input"]
            .iter()
            .find_map(|key| function.get(key));
        let arguments = arguments.cloned().unwrap_or_default();
        ServerCall { id: text(call, "id"), name: text(function, "name"), arguments }
    };
    listed.iter().chain(legacy).map(read).collect()
}

/// The types of the parts of a message that are text, and that are the model's reasoning.
const TEXT: &[&str] = &["text", "output_text"];
const REASONING: &[&str] = &["thinking", "reasoning", "reasoning_text"];

/// The text of a `content`: a string, or a list of strings and typed parts.
fn text_of(content: &Value, types: &[&str]) -> String {
    let part = |part: &Value| match part {
        Value::String(text) if types == TEXT => Some(text.clone()),
        Value::Object(object) => {
            let kind = object.get("type").and_then(Value::as_str).unwrap_or("text");
            let text = ["text", "thinking", "reasoning"].iter().find_map(|key| object.get(*key))?;
            types.contains(&kind).then(|| text_of(text, TEXT))
        }
        _ => None,
    };
    match content {
        Value::Array(parts) => parts.iter().filter_map(part).collect::<Vec<_>>().join("\n"),
        one => part(one).unwrap_or_default(),
    }
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

/// The repairs without which servers refuse the message when it goes back to them.
fn repair(message: &mut Value, taken: &HashSet<&str>) -> Vec<String> {
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
    let mut ids = Ids::after(taken);
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
        if let Some((new, repair)) = ids.take(place, id) {
            call.insert("id".to_owned(), Value::String(new));
            repairs.push(repair);
        }
    }
    repairs
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
        reasoning_tokens: count(&["/usage/completion_tokens_details/reasoning_tokens"]),
        cache_write_tokens: count(&["/usage/prompt_tokens_details/cache_write_tokens"]),
    }
}

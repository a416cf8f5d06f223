//! OpenAI's Responses. A message is the list of items that the server put out: all of them go back.

use std::collections::{BTreeMap, HashSet};

use deeplook_tools::ToolSpec;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::ids::Ids;
use super::pictures::Around;
use super::turns::{Piece, Shape, Turn};
use super::{Body, NoReply, Received, has_words, items, joined, refuse, rename, text};
use crate::message::{Said, ServerCall, Usage, Wire};

pub(super) const SHAPE: Shape = Shape { merged: false, pictures_in_answers: true };

pub(super) fn name(params: &mut BTreeMap<String, Value>) -> Result<(), String> {
    refuse(params, "seed", Wire::Responses)?;
    for name in ["max_tokens", "max_completion_tokens"] {
        rename(params, name, "max_output_tokens");
    }
    if let Some(effort) = params.remove("reasoning_effort") {
        let reasoning = params.entry("reasoning".to_owned()).or_insert_with(|| json!({}));
        match reasoning.as_object_mut() {
            Some(fields) => drop(fields.insert("effort".to_owned(), effort)),
            None => return Err("the parameter \"reasoning\" must be an object".to_owned()),
        }
    }
    Ok(())
}

pub(super) fn picture(detail: Option<String>) -> Around {
    let after = detail.map(|detail| format!(r#"","detail":{}}}"#, json!(detail)));
    let after = after.unwrap_or_else(|| r#""}"#.to_owned());
    Box::new(move |media| {
        (format!(r#"{{"type":"input_image","image_url":"data:{media};base64,"#), after.clone())
    })
}

/// Writes all that is not the same on every wire. Nothing is kept on the server: whatever it needs
/// is in the request.
pub(super) fn write<M: SerializeMap>(body: &Body<'_>, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("store", &false)?;
    if body.renderer.habits.reasons && !body.renderer.params.contains_key("include") {
        map.serialize_entry("include", &["reasoning.encrypted_content"])?;
    }
    let rules = body.turns.iter().filter_map(|turn| match turn {
        Turn::System(text) => Some(*text),
        _ => None,
    });
    let rules = joined(rules);
    if !rules.is_empty() {
        map.serialize_entry("instructions", &rules)?;
    }
    if !body.tools.is_empty() {
        let tools: Vec<Declared<'_>> = body.tools.iter().map(Declared).collect();
        map.serialize_entry("tools", &tools)?;
    }
    map.serialize_entry("input", &Input(&body.turns))?;
    if !body.may_choose {
        map.serialize_entry("tool_choice", "none")?;
    }
    Ok(())
}

struct Declared<'a>(&'a ToolSpec);

impl Serialize for Declared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolSpec { name, description, parameters } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("description", description)?;
        map.serialize_entry("parameters", parameters)?;
        map.serialize_entry("strict", &false)?;
        map.end()
    }
}

/// The conversation as a list of items.
struct Input<'b, 'a>(&'b [Turn<'a>]);

impl Serialize for Input<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items = self.0.iter().flat_map(|turn| match turn {
            Turn::System(_) => Vec::new(),
            Turn::Assistant(reply) if reply.wire == Wire::Responses => {
                items(&reply.message).iter().map(Item::Own).collect()
            }
            Turn::Assistant(reply) => own_form(&reply.said).into_iter().map(Item::Made).collect(),
            Turn::User(pieces) => vec![Item::User(pieces)],
            Turn::Answer { id, pieces } => vec![Item::Answer(id, pieces)],
        });
        serializer.collect_seq(items)
    }
}

enum Item<'b, 'a> {
    Own(&'b Value),
    Made(Value),
    User(&'b [Piece<'a>]),
    Answer(&'b str, &'b [Piece<'a>]),
}

impl Serialize for Item<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Own(value) => return value.serialize(serializer),
            Self::Made(value) => return value.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Self::User(pieces) => {
                map.serialize_entry("type", "message")?;
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", &Parts(pieces))?;
            }
            Self::Answer(id, pieces) => {
                map.serialize_entry("type", "function_call_output")?;
                map.serialize_entry("call_id", id)?;
                match pieces {
                    [Piece::Text(text)] => map.serialize_entry("output", text)?,
                    pieces => map.serialize_entry("output", &Parts(pieces))?,
                }
            }
            Self::Own(_) | Self::Made(_) => {}
        }
        map.end()
    }
}

struct Parts<'b, 'a>(&'b [Piece<'a>]);

impl Serialize for Parts<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Part))
    }
}

struct Part<'b, 'a>(&'b Piece<'a>);

impl Serialize for Part<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Piece::Picture(rendered) => rendered.serialize(serializer),
            Piece::Text(text) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "input_text")?;
                map.serialize_entry("text", text)?;
                map.end()
            }
        }
    }
}

/// What a model said on another wire, in the form of this one.
fn own_form(said: &Said) -> Vec<Value> {
    let words = (!said.text.is_empty())
        .then(|| json!({ "type": "message", "role": "assistant", "content": said.text }));
    let calls = said.calls.iter().map(|call| {
        let arguments = match &call.arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments })
    });
    words.into_iter().chain(calls).collect()
}

/// Reads a response.
pub(super) fn read(body: &mut Value, taken: &HashSet<&str>) -> Result<Received, NoReply> {
    let usage = usage(body);
    let status = text(body, "status").to_owned();
    if matches!(status.as_str(), "failed" | "cancelled") {
        return Err(NoReply::Error(body.take()));
    }
    let reason = body.pointer("/incomplete_details/reason").and_then(Value::as_str);
    if let Some(reason @ "content_filter") = reason {
        return Err(NoReply::Filtered(reason.to_owned()));
    }
    let finish_reason = reason.map(str::to_owned).or(Some(status).filter(|word| !word.is_empty()));
    let mut message = match body.get_mut("output").map(Value::take) {
        Some(message @ Value::Array(_)) => message,
        _ => return Err(NoReply::NoMessage),
    };
    let repairs = repair(&mut message, taken);
    Ok(Received { message, repairs, finish_reason, usage })
}

/// The repairs without which servers refuse the items when they go back to them.
fn repair(output: &mut Value, taken: &HashSet<&str>) -> Vec<String> {
    let mut repairs = Vec::new();
    let mut ids = Ids::after(taken);
    let calls = output.as_array_mut().into_iter().flatten();
    let calls = calls.filter(|item| text(item, "type") == "function_call");
    for (place, call) in calls.enumerate() {
        if !call.get("arguments").is_some_and(Value::is_string) {
            let given = call.get("arguments").filter(|arguments| arguments.is_object());
            let arguments = given.map_or_else(|| "{}".to_owned(), Value::to_string);
            call["arguments"] = Value::String(arguments);
            repairs.push(format!("call {}: made the arguments a string", place + 1));
        }
        if let Some((new, repair)) = ids.take(place, text(call, "call_id")) {
            call["call_id"] = Value::String(new);
            repairs.push(repair);
        }
    }
    repairs
}

/// What the items of a response say.
pub(super) fn said(output: &Value) -> Said {
    let of_kind =
        |kind: &'static str| items(output).iter().filter(move |item| text(item, "type") == kind);
    let parts = |kind: &'static str| {
        let parts = of_kind("message").flat_map(|item| item.get("content"));
        parts.flat_map(items).filter(move |part| text(part, "type") == kind)
    };
    let thoughts = of_kind("reasoning").flat_map(|item| {
        let lists = ["summary", "content"].into_iter().filter_map(|key| item.get(key));
        lists.flat_map(items).map(|part| text(part, "text"))
    });
    let calls = of_kind("function_call").map(|call| ServerCall {
        id: text(call, "call_id").to_owned(),
        name: text(call, "name").to_owned(),
        arguments: call.get("arguments").cloned().unwrap_or_default(),
    });
    Said {
        thought: Some(joined(thoughts)).filter(|thought| has_words(thought)),
        text: joined(parts("output_text").map(|part| text(part, "text"))),
        calls: calls.collect(),
        refusal: Some(joined(parts("refusal").map(|part| text(part, "refusal"))))
            .filter(|refusal| !refusal.is_empty()),
    }
}

fn usage(body: &Value) -> Usage {
    let count = |path: &str| body.pointer(path).and_then(Value::as_u64);
    Usage {
        prompt_tokens: count("/usage/input_tokens"),
        cached_tokens: count("/usage/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/usage/input_tokens_details/cache_write_tokens"),
        completion_tokens: count("/usage/output_tokens"),
        reasoning_tokens: count("/usage/output_tokens_details/reasoning_tokens"),
    }
}

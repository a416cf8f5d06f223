//! Anthropic's Messages. A message is the list of blocks that the server put out: all of them go
//! back, thinking with its signature too.

use std::collections::{BTreeMap, HashSet};

use deeplook_tools::ToolSpec;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use super::ids::Ids;
use super::pictures::Around;
use super::turns::{Piece, Shape, Turn};
use super::{Body, Habits, NoReply, Received, has_words, items, joined, refuse, rename, text};
use crate::message::{Reply, Said, ServerCall, Usage, Wire};

pub(super) const SHAPE: Shape = Shape { merged: true, pictures_in_answers: true };

pub(super) fn name(params: &mut BTreeMap<String, Value>, habits: &Habits) -> Result<(), String> {
    refuse(params, "seed", Wire::Messages)?;
    rename(params, "max_completion_tokens", "max_tokens");
    params.entry("max_tokens".to_owned()).or_insert_with(|| json!(habits.max_tokens));
    if let Some(effort) = params.remove("reasoning_effort") {
        let config = params.entry("output_config".to_owned()).or_insert_with(|| json!({}));
        match config.as_object_mut() {
            Some(fields) => drop(fields.insert("effort".to_owned(), effort)),
            None => return Err("the parameter \"output_config\" must be an object".to_owned()),
        }
    }
    Ok(())
}

pub(super) fn picture() -> Around {
    Box::new(|media| {
        let source = format!(r#""source":{{"type":"base64","media_type":"{media}","data":""#);
        (format!(r#"{{"type":"image",{source}"#), r#""}}"#.to_owned())
    })
}

/// Writes all that is not the same on every wire. What the server is to keep for the next turn ends
/// at a mark, of which it takes four: after the tools, the rules, the task and the last message.
pub(super) fn write<M: SerializeMap>(body: &Body<'_>, map: &mut M) -> Result<(), M::Error> {
    if let Some((last, others)) = body.tools.split_last() {
        let mut tools: Vec<Declared<'_>> =
            others.iter().map(|tool| Declared { tool, marked: false }).collect();
        tools.push(Declared { tool: last, marked: true });
        map.serialize_entry("tools", &tools)?;
    }
    let rules = body.turns.iter().filter_map(|turn| match turn {
        Turn::System(text) => Some(*text),
        _ => None,
    });
    let rules = joined(rules);
    if !rules.is_empty() {
        map.serialize_entry("system", &[Block::text(&rules, true)])?;
    }
    map.serialize_entry("messages", &lines(&body.turns))?;
    if !body.may_choose {
        map.serialize_entry("tool_choice", &json!({ "type": "none" }))?;
    }
    Ok(())
}

struct Declared<'a> {
    tool: &'a ToolSpec,
    marked: bool,
}

impl Serialize for Declared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolSpec { name, description, parameters } = self.tool;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("description", description)?;
        map.serialize_entry("input_schema", parameters)?;
        mark(&mut map, self.marked)?;
        map.end()
    }
}

fn mark<M: SerializeMap>(map: &mut M, marked: bool) -> Result<(), M::Error> {
    match marked {
        true => map.serialize_entry("cache_control", &json!({ "type": "ephemeral" })),
        false => Ok(()),
    }
}

/// A message; the roles take turns.
enum Line<'b, 'a> {
    User(Vec<Block<'b, 'a>>),
    Assistant(&'b Reply),
}

struct Block<'b, 'a> {
    what: What<'b, 'a>,
    marked: bool,
}

enum What<'b, 'a> {
    Text(&'b str),
    Picture(&'b Piece<'a>),
    Answer(&'b str, &'b [Piece<'a>]),
}

impl<'b, 'a> Block<'b, 'a> {
    fn text(text: &'b str, marked: bool) -> Self {
        Self { what: What::Text(text), marked }
    }

    fn of(piece: &'b Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::text(text, false),
            picture => Self { what: What::Picture(picture), marked: false },
        }
    }
}

fn lines<'b, 'a>(turns: &'b [Turn<'a>]) -> Vec<Line<'b, 'a>> {
    let mut lines: Vec<Line<'b, 'a>> = Vec::new();
    for turn in turns {
        let mut blocks = match turn {
            Turn::System(_) => continue,
            Turn::Assistant(reply) => {
                lines.push(Line::Assistant(reply));
                continue;
            }
            Turn::User(pieces) => pieces.iter().map(Block::of).collect(),
            Turn::Answer { id, pieces } => {
                vec![Block { what: What::Answer(id, pieces), marked: false }]
            }
        };
        match lines.last_mut() {
            Some(Line::User(said)) => said.append(&mut blocks),
            _ => lines.push(Line::User(blocks)),
        }
    }
    let ours = |line: &Line<'_, '_>| matches!(line, Line::User(_));
    let places = [lines.iter().position(ours), lines.iter().rposition(ours)];
    for place in places.into_iter().flatten() {
        if let Line::User(blocks) = &mut lines[place] {
            // The JSON of a picture is only copied.
            let last = blocks.iter_mut().rfind(|block| !matches!(block.what, What::Picture(_)));
            if let Some(block) = last {
                block.marked = true;
            }
        }
    }
    lines
}

impl Serialize for Line<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            Self::User(blocks) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", blocks)?;
            }
            Self::Assistant(reply) => {
                map.serialize_entry("role", "assistant")?;
                match reply.wire {
                    Wire::Messages => map.serialize_entry("content", &reply.message)?,
                    _ => map.serialize_entry("content", &own_form(&reply.said))?,
                }
            }
        }
        map.end()
    }
}

impl Serialize for Block<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let What::Picture(Piece::Picture(rendered)) = self.what {
            return rendered.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match &self.what {
            What::Text(text) | What::Picture(Piece::Text(text)) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            What::Answer(id, pieces) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", id)?;
                let blocks: Vec<Block<'_, '_>> = pieces.iter().map(Block::of).collect();
                map.serialize_entry("content", &blocks)?;
            }
            What::Picture(Piece::Picture(_)) => {}
        }
        mark(&mut map, self.marked)?;
        map.end()
    }
}

/// What a model said on another wire, in the form of this one.
fn own_form(said: &Said) -> Vec<Value> {
    let words =
        (!said.text.trim().is_empty()).then(|| json!({ "type": "text", "text": said.text }));
    let calls = said.calls.iter().map(|call| {
        let input = match &call.arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => other.clone(),
        };
        let input = if input.is_object() { input } else { json!({}) };
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    });
    words.into_iter().chain(calls).collect()
}

/// Reads a message.
pub(super) fn read(body: &mut Value, taken: &HashSet<&str>) -> Result<Received, NoReply> {
    let usage = usage(body);
    let finish_reason = body.get("stop_reason").and_then(Value::as_str).map(str::to_owned);
    if let Some(reason @ "refusal") = finish_reason.as_deref() {
        return Err(NoReply::Filtered(reason.to_owned()));
    }
    let mut message = match body.get_mut("content").map(Value::take) {
        Some(message @ Value::Array(_)) => message,
        _ => return Err(NoReply::NoMessage),
    };
    let repairs = repair(&mut message, taken);
    Ok(Received { message, repairs, finish_reason, usage })
}

/// The repairs without which servers refuse the blocks when they go back to them.
fn repair(content: &mut Value, taken: &HashSet<&str>) -> Vec<String> {
    let mut repairs = Vec::new();
    let mut ids = Ids::after(taken);
    if let Some(blocks) = content.as_array_mut() {
        let is_empty =
            |block: &Value| text(block, "type") == "text" && text(block, "text").trim().is_empty();
        if blocks.iter().any(is_empty) {
            blocks.retain(|block| !is_empty(block));
            repairs.push("dropped an empty text".to_owned());
        }
    }
    let calls = content.as_array_mut().into_iter().flatten();
    let calls = calls.filter(|block| text(block, "type") == "tool_use");
    for (place, call) in calls.enumerate() {
        if !call.get("input").is_some_and(Value::is_object) {
            let written = call.get("input").and_then(Value::as_str);
            let written = written.and_then(|text| serde_json::from_str::<Value>(text).ok());
            call["input"] = written.filter(Value::is_object).unwrap_or_else(|| json!({}));
            repairs.push(format!("call {}: made the input an object", place + 1));
        }
        if let Some((new, repair)) = ids.take(place, text(call, "id")) {
            call["id"] = Value::String(new);
            repairs.push(repair);
        }
    }
    repairs
}

/// What the blocks of a message say.
pub(super) fn said(content: &Value) -> Said {
    let of_kind =
        |kind: &'static str| items(content).iter().filter(move |block| text(block, "type") == kind);
    let calls = of_kind("tool_use").map(|call| ServerCall {
        id: text(call, "id").to_owned(),
        name: text(call, "name").to_owned(),
        arguments: call.get("input").cloned().unwrap_or_default(),
    });
    Said {
        thought: Some(joined(of_kind("thinking").map(|block| text(block, "thinking"))))
            .filter(|thought| has_words(thought)),
        text: joined(of_kind("text").map(|block| text(block, "text"))),
        calls: calls.collect(),
        refusal: None,
    }
}

/// What was kept and what is kept for later are not among the server's `input_tokens`.
fn usage(body: &Value) -> Usage {
    let count = |key: &str| body.pointer(key).and_then(Value::as_u64);
    let cached_tokens = count("/usage/cache_read_input_tokens");
    let cache_write_tokens = count("/usage/cache_creation_input_tokens");
    let besides = cached_tokens.unwrap_or(0).saturating_add(cache_write_tokens.unwrap_or(0));
    Usage {
        prompt_tokens: count("/usage/input_tokens").map(|n| n.saturating_add(besides)),
        cached_tokens,
        cache_write_tokens,
        completion_tokens: count("/usage/output_tokens"),
        reasoning_tokens: count("/usage/output_tokens_details/thinking_tokens"),
    }
}

//! OpenAI's chat completions.

mod reply;

use std::collections::BTreeMap;

use deeplook_tools::ToolSpec;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

pub(super) use self::reply::{read, said};
use super::pictures::Around;
use super::turns::{Piece, Shape, Turn};
use super::{Body, Habits, rename};
use crate::message::{Reply, Said, Wire};

/// Pictures in an answer are refused by vLLM, LM Studio and DeepSeek, and overlooked by others.
pub(super) fn shape(habits: &Habits) -> Shape {
    Shape { merged: habits.alternate_roles, pictures_in_answers: false }
}

pub(super) fn name(params: &mut BTreeMap<String, Value>, habits: &Habits) {
    rename(params, "max_tokens", &habits.max_tokens_param);
}

pub(super) fn picture(detail: Option<String>) -> Around {
    let after = detail.map(|detail| format!(r#"","detail":{}}}}}"#, json!(detail)));
    let after = after.unwrap_or_else(|| r#""}}"#.to_owned());
    Box::new(move |media| {
        let before = format!(r#"{{"type":"image_url","image_url":{{"url":"data:{media};base64,"#);
        (before, after.clone())
    })
}

/// Writes all that is not the same on every wire.
pub(super) fn write<M: SerializeMap>(body: &Body<'_>, map: &mut M) -> Result<(), M::Error> {
    if !body.tools.is_empty() {
        let tools: Vec<Declared<'_>> = body.tools.iter().map(Declared).collect();
        map.serialize_entry("tools", &tools)?;
    }
    let lines: Vec<Line<'_, '_>> = body.turns.iter().map(Line).collect();
    map.serialize_entry("messages", &lines)?;
    if !body.may_choose {
        map.serialize_entry("tool_choice", "none")?;
    }
    Ok(())
}

struct Declared<'a>(&'a ToolSpec);

impl Serialize for Declared<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", self.0)?;
        map.end()
    }
}

/// A message.
struct Line<'b, 'a>(&'b Turn<'a>);

impl Serialize for Line<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self.0 {
            Turn::Assistant(Reply { wire: Wire::Chat, message, .. }) => {
                return message.serialize(serializer);
            }
            Turn::Assistant(reply) => return own_form(&reply.said).serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self.0 {
            Turn::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Turn::User(pieces) => {
                map.serialize_entry("role", "user")?;
                map.serialize_entry("content", &Content(pieces))?;
            }
            Turn::Answer { id, pieces } => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", id)?;
                map.serialize_entry("content", &Content(pieces))?;
            }
            Turn::Assistant(_) => {}
        }
        map.end()
    }
}

/// What a model said on another wire, in the form of this one.
fn own_form(said: &Said) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if !said.calls.is_empty() {
        let calls = said.calls.iter().map(|call| {
            let arguments = match &call.arguments {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        message["tool_calls"] = calls.collect();
    }
    message
}

/// Texts and pictures in order.
struct Content<'p, 'a>(&'p [Piece<'a>]);

impl Serialize for Content<'_, '_> {
    /// Text alone is a string, which more servers understand than a list of texts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => Some((*text).to_owned()),
            Piece::Picture(_) => None,
        };
        match self.0.iter().map(text).collect::<Option<Vec<String>>>() {
            Some(texts) => serializer.serialize_str(&texts.join("\n\n")),
            None => serializer.collect_seq(self.0.iter().map(Part)),
        }
    }
}

/// A piece of a message as an object.
struct Part<'p, 'a>(&'p Piece<'a>);

impl Serialize for Part<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Piece::Picture(rendered) => rendered.serialize(serializer),
            Piece::Text(text) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
                map.end()
            }
        }
    }
}

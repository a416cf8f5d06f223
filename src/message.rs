//! The conversation with a judge's model, typed.
//!
//! Only `wire` renders it for a server. The offline judge reads [`Observation::data`] and
//! the task's data, never our own prose.

mod reply;

use std::fmt;
use std::sync::Arc;

use deeplook_tools::{Size, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::reply::{Reply, Said, Served, ServerCall, Usage, Wire};
use crate::hash::Hash;

/// A picture exactly as it is sent to a model.
#[derive(Clone, PartialEq, Eq)]
pub struct SentPicture {
    /// The name by which the model refers to it, e.g. "Edited Image" or "Crop 2".
    pub name: String,
    /// What it is, for the model: "Crop 2: left …, right …".
    pub caption: String,
    /// The size in pixels as sent.
    pub size: Size,
    /// The encoding of `bytes`.
    pub media: MediaType,
    /// The encoded picture.
    pub bytes: Arc<[u8]>,
    /// The hash of `bytes`, by which the trace names them.
    pub hash: Hash,
}

impl fmt::Debug for SentPicture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {} bytes of {})", self.name, self.size, self.bytes.len(), self.media)
    }
}

/// How a picture is encoded: the two forms that every server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MediaType {
    /// Lossless.
    Png,
    /// Lossy, smaller.
    Jpeg,
}

impl MediaType {
    /// The extension of a file.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        })
    }
}

/// A piece of a message from us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture; its caption is sent before it.
    Picture(Arc<SentPicture>),
}

/// One message of the conversation. Messages are only ever appended, so that a server can keep what
/// it computed for the beginning.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Who the model is and by which rules it judges.
    System(String),
    /// What we say: the task, a correction, a last call for an answer.
    User {
        /// Text and pictures in order.
        parts: Vec<Part>,
        /// The same for machines; `Null` where there is nothing to decide from.
        data: Value,
    },
    /// What the model said, with the server's own message in it, so that whatever the server needs
    /// back (signatures, unknown fields) goes back to it.
    Assistant(Box<Reply>),
    /// What the tools saw, in the order of the calls, and the text that closes the turn.
    Observations {
        /// One for each call.
        observations: Vec<Observation>,
        /// A short reminder of the form of the answer, or the call for it.
        closing: String,
    },
}

/// The answer to one tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// What was called.
    pub call: ToolCall,
    /// For the model.
    pub text: String,
    /// For machines; boxes are in pixels of the source picture.
    pub data: Value,
    /// New pictures.
    pub pictures: Vec<Arc<SentPicture>>,
}

/// A tool that the model wants to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The server's id of the call in the native form; empty in the tags form.
    pub id: String,
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: Value,
    /// The form in which it came and must be answered.
    pub form: Dialect,
}

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// The server's function calling.
    Native,
    /// `<tool_call>` tags in the text.
    Tags,
}

/// Whether the model may call tools in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// It decides.
    Auto,
    /// The tools stay declared, so that the beginning of the request does not change, but may not
    /// be chosen.
    None,
}

/// One question to a model: the whole conversation so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The conversation; the last message is ours.
    pub messages: Vec<Arc<Message>>,
    /// The tools of this judgement; empty where the mode has none.
    pub tools: Arc<[ToolSpec]>,
    /// Whether they may be used now.
    pub tool_choice: ToolChoice,
    /// In which form. In the tags dialect the prompt itself tells of the tools, and none are
    /// declared to the server.
    pub dialect: Dialect,
}

impl Request {
    /// Stands for all that the model gets: every message, picture, tool and choice.
    pub fn digest(&self) -> Hash {
        let messages: Vec<Value> =
            self.messages.iter().map(|message| seen_by_model(message)).collect();
        let request = json!({
            "messages": messages,
            "tools": &*self.tools,
            "tool_choice": self.tool_choice,
            "dialect": self.dialect,
        });
        Hash::of(request.to_string().as_bytes())
    }

    /// Stands for the rules and the task: what all questions of a deliberation begin with.
    pub fn opening(&self) -> Hash {
        let task = self.messages.iter().position(|m| matches!(**m, Message::User { .. }));
        let opening = self.messages.iter().take(task.map_or(0, |at| at + 1));
        let opening: Vec<Value> = opening.map(|message| seen_by_model(message)).collect();
        Hash::of(Value::Array(opening).to_string().as_bytes())
    }
}

/// A message without what only machines read, and with pictures by their hash.
fn seen_by_model(message: &Message) -> Value {
    let picture = |sent: &SentPicture| json!({ "caption": sent.caption, "picture": sent.hash });
    match message {
        Message::System(text) => json!({ "system": text }),
        Message::User { parts, .. } => {
            let part = |part: &Part| match part {
                Part::Text(text) => json!(text),
                Part::Picture(sent) => picture(sent),
            };
            json!({ "user": parts.iter().map(part).collect::<Vec<_>>() })
        }
        Message::Assistant(reply) => json!({ "assistant": reply.message }),
        Message::Observations { observations, closing } => {
            let observation = |o: &Observation| {
                let pictures: Vec<Value> = o.pictures.iter().map(|sent| picture(sent)).collect();
                json!({ "call": o.call, "text": o.text, "pictures": pictures })
            };
            let observations: Vec<Value> = observations.iter().map(observation).collect();
            json!({ "observations": observations, "closing": closing })
        }
    }
}

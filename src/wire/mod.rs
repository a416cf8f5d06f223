//! The wires: the only place that knows the JSON of servers.
//!
//! A wire turns a [`Request`] into the body of an HTTP request, the body of a response into a
//! [`Reply`], and the server's own message, as a trace keeps it, into what it says. Rendering is a
//! pure function of the request: what was rendered for one turn is, byte for byte, the beginning of
//! what is rendered for the next. Only pictures are worth remembering between turns; their JSON is
//! made once and copied from then on.

mod chat;
mod ids;
mod messages;
mod pictures;
mod responses;
mod turns;

use std::collections::{BTreeMap, HashSet};

use deeplook_tools::ToolSpec;
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::pictures::Pictures;
use self::turns::{Turn, turns};
use crate::hash::Hash;
use crate::message::{Dialect, Reply, Request, Said, Served, ToolChoice, Usage, Wire};

/// Parameters of a request that are not ours to set: those that the conversation itself decides,
/// and those that would change the form of the reply.
const RESERVED: [&str; 12] = [
    "messages",
    "input",
    "system",
    "instructions",
    "model",
    "tools",
    "tool_choice",
    "stream",
    "store",
    "n",
    "functions",
    "function_call",
];

/// What servers of one wire differ in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Habits {
    /// The form of requests and replies.
    pub wire: Wire,
    /// The server's name for the parameter `max_tokens`, on the wire `chat`.
    pub max_tokens_param: String,
    /// The longest reply where nobody says otherwise, on the wire `messages`, which must have one.
    pub max_tokens: u64,
    /// What happens to the declared tools when they may no longer be used.
    pub last_turn_tools: LastTurnTools,
    /// Whether user messages in a row must be merged into one.
    pub alternate_roles: bool,
    /// In how much detail the server looks at pictures, if that can be said.
    pub detail: Option<String>,
    /// Whether the server takes a name for what begins alike, so that it finds it again.
    pub prompt_cache_key: bool,
    /// Whether the model's reasoning is sent back to it, encrypted, on the wire `responses`.
    pub reasons: bool,
}

/// What happens to declared tools on the last turn, when none may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastTurnTools {
    /// They stay, with `tool_choice: "none"`: the beginning of the request does not change.
    Keep,
    /// They are left out, because the server ignores `tool_choice`.
    Drop,
}

/// Renders requests for one model.
#[derive(Debug)]
pub struct Renderer {
    model: String,
    habits: Habits,
    params: BTreeMap<String, Value>,
    pictures: Pictures,
}

impl Renderer {
    /// A renderer that adds `params` to every request, under the names that the wire has for them.
    pub fn new(
        model: &str,
        habits: Habits,
        mut params: BTreeMap<String, Value>,
    ) -> Result<Self, String> {
        if let Some(name) = RESERVED.into_iter().find(|name| params.contains_key(*name)) {
            return Err(format!("the parameter {name:?} is set by the judge itself: leave it out"));
        }
        match habits.wire {
            Wire::Chat => chat::name(&mut params, &habits),
            Wire::Responses => responses::name(&mut params)?,
            Wire::Messages => messages::name(&mut params, &habits)?,
        }
        let pictures = Pictures::new(match habits.wire {
            Wire::Chat => chat::picture(habits.detail.clone()),
            Wire::Responses => responses::picture(habits.detail.clone()),
            Wire::Messages => messages::picture(),
        });
        Ok(Self { model: model.to_owned(), habits, params, pictures })
    }

    /// The body for `request`. Fails only if a picture's JSON cannot be made, which is a bug.
    pub fn body<'a>(&'a self, request: &'a Request) -> Result<Body<'a>, serde_json::Error> {
        let shape = match self.habits.wire {
            Wire::Chat => chat::shape(&self.habits),
            Wire::Responses => responses::SHAPE,
            Wire::Messages => messages::SHAPE,
        };
        let native = request.dialect == Dialect::Native && !request.tools.is_empty();
        let (tools, chosen): (&[ToolSpec], _) =
            match (request.tool_choice, self.habits.last_turn_tools) {
                _ if !native => (&[], true),
                (ToolChoice::Auto, _) => (&request.tools, true),
                (ToolChoice::None, LastTurnTools::Keep) => (&request.tools, false),
                (ToolChoice::None, LastTurnTools::Drop) => (&[], true),
            };
        let cache_key = self.habits.prompt_cache_key.then(|| request.opening());
        let turns = turns(request, &self.pictures, shape)?;
        Ok(Body { renderer: self, tools, turns, may_choose: chosen, cache_key })
    }
}

/// A request's body, to be serialised once.
pub struct Body<'a> {
    renderer: &'a Renderer,
    tools: &'a [ToolSpec],
    turns: Vec<Turn<'a>>,
    /// Whether one of the tools may be chosen now.
    may_choose: bool,
    /// Stands for the beginning, which all turns of a judgement share.
    cache_key: Option<Hash>,
}

impl Serialize for Body<'_> {
    /// What changes between turns comes last.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &self.renderer.model)?;
        for (name, value) in &self.renderer.params {
            map.serialize_entry(name, value)?;
        }
        if let Some(key) = &self.cache_key {
            map.serialize_entry("prompt_cache_key", &key.as_str()[..32])?;
        }
        match self.renderer.habits.wire {
            Wire::Chat => chat::write(self, &mut map)?,
            Wire::Responses => responses::write(self, &mut map)?,
            Wire::Messages => messages::write(self, &mut map)?,
        }
        map.end()
    }
}

/// Why a body with status 200 is no reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoReply {
    /// Not JSON, or only half of it.
    Malformed(String),
    /// An error object after all.
    Error(Value),
    /// No message.
    NoMessage,
    /// A message that says nothing, calls nothing and refuses nothing; with the finish reason.
    Empty(Option<String>),
    /// A filter stepped in; with the finish reason.
    Filtered(String),
}

/// Where a wire is, below the base URL.
pub(crate) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => "/chat/completions",
        Wire::Responses => "/responses",
        Wire::Messages => "/messages",
    }
}

/// Reads a body with status 200. `taken` are the call ids that the conversation has already.
pub(crate) fn read(wire: Wire, body: &[u8], taken: &HashSet<&str>) -> Result<Reply, NoReply> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| malformed(body, &error))?;
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        return Err(NoReply::Error(error.clone()));
    }
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    let served = Served {
        model: text("model"),
        id: text("id"),
        system_fingerprint: text("system_fingerprint"),
        service_tier: text("service_tier"),
        request_id: None,
    };
    let Received { message, repairs, finish_reason, usage } = match wire {
        Wire::Chat => chat::read(&mut body, taken),
        Wire::Responses => responses::read(&mut body, taken),
        Wire::Messages => messages::read(&mut body, taken),
    }?;
    let said = said(wire, &message);
    if said.text.trim().is_empty() && said.calls.is_empty() && said.refusal.is_none() {
        return Err(NoReply::Empty(finish_reason));
    }
    Ok(Reply { said, message, wire, repairs, finish_reason, usage, served })
}

/// What a body holds besides what all wires have in the same place.
struct Received {
    message: Value,
    repairs: Vec<String>,
    finish_reason: Option<String>,
    usage: Usage,
}

/// What a server's own message says. Never fails: whatever is missing or has another type than
/// expected is absent.
pub fn said(wire: Wire, message: &Value) -> Said {
    match wire {
        Wire::Chat => chat::said(message),
        Wire::Responses => responses::said(message),
        Wire::Messages => messages::said(message),
    }
}

/// A reply that is nothing but a message in the form of chat completions: what a model says that
/// has no server.
pub fn unserved(message: Value) -> Reply {
    Reply {
        said: said(Wire::Chat, &message),
        message,
        wire: Wire::Chat,
        repairs: Vec::new(),
        finish_reason: None,
        usage: Usage::default(),
        served: Served::default(),
    }
}

/// What is wrong with a body. A web page or a stream of events is better told by how it begins.
fn malformed(body: &[u8], error: &serde_json::Error) -> NoReply {
    let text = String::from_utf8_lossy(&body[..body.len().min(200)]);
    let text = text.trim_start();
    NoReply::Malformed(if text.is_empty() || text.starts_with('{') {
        error.to_string()
    } else {
        format!("it begins with {:?}; is this a chat server?", deeplook_tools::scene::cut(text, 60))
    })
}

/// Moves a parameter under the name that a wire has for it, unless that is given too.
fn rename(params: &mut BTreeMap<String, Value>, from: &str, to: &str) {
    if let Some(value) = params.remove(from) {
        params.entry(to.to_owned()).or_insert(value);
    }
}

/// Refuses a parameter that a wire does not know: its servers refuse every request with it.
fn refuse(params: &BTreeMap<String, Value>, name: &str, wire: Wire) -> Result<(), String> {
    match params.contains_key(name) {
        true => Err(format!("the wire `{wire}` has no parameter {name:?}: leave it out")),
        false => Ok(()),
    }
}

/// The text under a key of an object, empty where there is none.
fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Texts in a row, without those that say nothing.
fn joined<'v>(texts: impl Iterator<Item = &'v str>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The items of a list that is to be there.
fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn has_words(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

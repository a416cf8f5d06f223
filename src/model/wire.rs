//! From a [`Request`] to the JSON of OpenAI's chat completions.
//!
//! Rendering is a pure function of the request: what was rendered for one turn is, byte for byte,
//! the beginning of what is rendered for the next. Only pictures are worth remembering between
//! turns; their JSON is made once and copied from then on.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deeplook_tools::ToolSpec;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::parameters::refuse_secrets;
use super::profile::{LastTurnTools, Profile};
use crate::hash::Hash;
use crate::message::{Dialect, Message, Observation, Part, Request, SentPicture, ToolChoice};

/// Parameters of a request that are not ours to set: those that the conversation itself decides,
/// and those that would change the form of the reply.
const RESERVED: [&str; 8] =
    ["messages", "model", "tools", "tool_choice", "stream", "n", "functions", "function_call"];

/// Renders requests for one model.
#[derive(Debug)]
pub struct Renderer {
    model: String,
    profile: Profile,
    params: BTreeMap<String, Value>,
    pictures: Pictures,
}

impl Renderer {
    /// A renderer that adds `params` to every request; `max_tokens` gets the profile's name for it.
    pub fn new(
        model: &str,
        profile: Profile,
        mut params: BTreeMap<String, Value>,
    ) -> Result<Self, String> {
        if let Some(name) = RESERVED.into_iter().find(|name| params.contains_key(*name)) {
            return Err(format!("the parameter {name:?} is set by the judge itself: leave it out"));
        }
        refuse_secrets(&params)?;
        if let Some(limit) = params.remove("max_tokens") {
            params.entry(profile.max_tokens_param.clone()).or_insert(limit);
        }
        Ok(Self { model: model.to_owned(), profile, params, pictures: Pictures::default() })
    }

    /// The body for `request`. Fails only if a picture's JSON cannot be made, which is a bug.
    pub fn body<'a>(&'a self, request: &'a Request) -> Result<Body<'a>, serde_json::Error> {
        let declared = request.dialect == Dialect::Native && !request.tools.is_empty();
        let (tools, choice): (&[ToolSpec], _) =
            match (request.tool_choice, self.profile.last_turn_tools) {
                _ if !declared => (&[], None),
                (ToolChoice::Auto, _) => (&request.tools, None),
                (ToolChoice::None, LastTurnTools::Keep) => (&request.tools, Some("none")),
                (ToolChoice::None, LastTurnTools::Drop) => (&[], None),
            };
        let mut lines =
            Lines { pictures: &self.pictures, lines: Vec::new(), unanswered: Vec::new() };
        for message in &request.messages {
            lines.push(message, self.profile.alternate_roles)?;
        }
        lines.answer_the_rest();
        Ok(Body { renderer: self, tools, messages: lines.lines, choice })
    }
}

/// A request's body, to be serialised once.
pub struct Body<'a> {
    renderer: &'a Renderer,
    tools: &'a [ToolSpec],
    messages: Vec<Line<'a>>,
    choice: Option<&'static str>,
}

impl Serialize for Body<'_> {
    /// What changes between turns comes last.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &self.renderer.model)?;
        for (name, value) in &self.renderer.params {
            map.serialize_entry(name, value)?;
        }
        if !self.tools.is_empty() {
            let tools: Vec<Declared<'_>> = self.tools.iter().map(Declared).collect();
            map.serialize_entry("tools", &tools)?;
        }
        map.serialize_entry("messages", &self.messages)?;
        if let Some(choice) = self.choice {
            map.serialize_entry("tool_choice", choice)?;
        }
        map.end()
    }
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

/// A message on the wire.
#[derive(serde::Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Line<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
    #[serde(untagged)]
    Assistant(&'a Value),
}

/// Texts and pictures in order.
struct Content<'a>(Vec<Piece<'a>>);

impl<'a> Serialize for Content<'a> {
    /// Text alone is a string, which more servers understand than a list of texts.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = |piece: &Piece<'a>| match piece {
            Piece::Text { text } => Some(*text),
            Piece::Picture(_) => None,
        };
        match self.0.iter().map(text).collect::<Option<Vec<&str>>>() {
            Some(texts) => serializer.serialize_str(&texts.join("\n\n")),
            None => self.0.serialize(serializer),
        }
    }
}

#[derive(serde::Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Piece<'a> {
    Text {
        text: &'a str,
    },
    #[serde(untagged)]
    Picture(Rendered),
}

/// JSON that is only copied. An `Arc` of the value itself would cost one more copy.
#[derive(Clone)]
struct Rendered(Arc<Box<RawValue>>);

impl Serialize for Rendered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The messages so far.
struct Lines<'a, 'p> {
    pictures: &'p Pictures,
    lines: Vec<Line<'a>>,
    /// The ids of the last assistant message's calls that have no answer yet: a server refuses a
    /// conversation in which one is missing.
    unanswered: Vec<&'a str>,
}

impl<'a> Lines<'a, '_> {
    fn push(&mut self, message: &'a Message, merge: bool) -> Result<(), serde_json::Error> {
        match message {
            Message::System(text) => self.lines.push(Line::System { content: text }),
            Message::User { parts, .. } => {
                self.answer_the_rest();
                let mut pieces = Vec::with_capacity(2 * parts.len());
                for part in parts {
                    match part {
                        Part::Text(text) => pieces.extend(piece(text)),
                        Part::Picture(picture) => self.show(picture, &mut pieces)?,
                    }
                }
                self.say(pieces, merge);
            }
            Message::Assistant(raw) => {
                self.answer_the_rest();
                self.unanswered = call_ids(raw).collect();
                self.lines.push(Line::Assistant(raw));
            }
            Message::Observations { observations, closing } => {
                self.observe(observations, closing, merge)?;
            }
        }
        Ok(())
    }

    /// First a text for every call of the server's own form, then everything else in one message.
    fn observe(
        &mut self,
        observations: &'a [Observation],
        closing: &'a str,
        merge: bool,
    ) -> Result<(), serde_json::Error> {
        let mut pieces = Vec::new();
        for Observation { call, text, pictures, .. } in observations {
            match self.unanswered.iter().position(|id| *id == call.id) {
                Some(place) if call.form == Dialect::Native => {
                    let tool_call_id = self.unanswered.remove(place);
                    let content = if text.is_empty() { "Done." } else { text };
                    self.lines.push(Line::Tool { tool_call_id, content });
                }
                _ => pieces.extend(piece(text)),
            }
            for picture in pictures {
                self.show(picture, &mut pieces)?;
            }
        }
        self.answer_the_rest();
        pieces.extend(piece(closing));
        self.say(pieces, merge);
        Ok(())
    }

    fn answer_the_rest(&mut self) {
        for tool_call_id in self.unanswered.drain(..) {
            self.lines.push(Line::Tool { tool_call_id, content: "This call was not carried out." });
        }
    }

    fn show(
        &self,
        picture: &'a Arc<SentPicture>,
        pieces: &mut Vec<Piece<'a>>,
    ) -> Result<(), serde_json::Error> {
        pieces.extend(piece(&picture.caption));
        pieces.push(Piece::Picture(self.pictures.rendered(picture)?));
        Ok(())
    }

    fn say(&mut self, mut pieces: Vec<Piece<'a>>, merge: bool) {
        match self.lines.last_mut() {
            _ if pieces.is_empty() => {}
            Some(Line::User { content }) if merge => content.0.append(&mut pieces),
            _ => self.lines.push(Line::User { content: Content(pieces) }),
        }
    }
}

/// A text, unless it is empty: servers refuse empty ones.
fn piece(text: &str) -> Option<Piece<'_>> {
    (!text.is_empty()).then_some(Piece::Text { text })
}

/// The ids of the calls in an assistant message.
pub(super) fn call_ids(message: &Value) -> impl Iterator<Item = &str> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten().filter_map(|call| call.get("id")?.as_str())
}

/// The JSON of pictures, remembered as long as the pictures themselves.
#[derive(Default)]
struct Pictures(Mutex<HashMap<Hash, (Weak<SentPicture>, Rendered)>>);

impl Pictures {
    fn rendered(&self, picture: &Arc<SentPicture>) -> Result<Rendered, serde_json::Error> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, rendered)) = lock().get_mut(&picture.hash) {
            if owner.strong_count() == 0 {
                *owner = Arc::downgrade(picture);
            }
            return Ok(rendered.clone());
        }
        let rendered = Rendered(Arc::new(render(picture)?));
        let mut known = lock();
        known.retain(|_, (owner, _)| owner.strong_count() > 0);
        known.insert(picture.hash.clone(), (Arc::downgrade(picture), rendered.clone()));
        Ok(rendered)
    }
}

impl fmt::Debug for Pictures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "{count} pictures")
    }
}

fn render(picture: &SentPicture) -> Result<Box<RawValue>, serde_json::Error> {
    let mut json = String::with_capacity(picture.bytes.len().div_ceil(3) * 4 + 100);
    json.push_str(r#"{"type":"image_url","image_url":{"url":"data:"#);
    json.push_str(&picture.media.to_string());
    json.push_str(";base64,");
    STANDARD.encode_string(&picture.bytes, &mut json);
    json.push_str(r#""}}"#);
    RawValue::from_string(json)
}

#[cfg(test)]
mod tests {
    use deeplook_tools::Size;

    use super::*;
    use crate::message::MediaType;

    fn picture(text: &str) -> Arc<SentPicture> {
        Arc::new(SentPicture {
            name: text.to_owned(),
            caption: String::new(),
            size: Size::new(1, 1),
            media: MediaType::Jpeg,
            bytes: text.as_bytes().into(),
            hash: Hash::of(text.as_bytes()),
        })
    }

    #[test]
    fn pictures_are_rendered_once_and_forgotten_with_their_judgement() {
        let pictures = Pictures::default();
        let first = picture("a");
        let rendered = pictures.rendered(&first).unwrap();
        assert_eq!(
            rendered.0.get(),
            r#"{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,YQ=="}}"#
        );
        assert!(Arc::ptr_eq(&rendered.0, &pictures.rendered(&picture("a")).unwrap().0));
        drop(first);
        let second = picture("b");
        pictures.rendered(&second).unwrap();
        assert_eq!(format!("{pictures:?}"), "1 pictures");
    }
}

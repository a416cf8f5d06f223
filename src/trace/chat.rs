//! A trace as the conversation that it was, in the chat format that other programs read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::events::{StoredMessage, StoredPart, StoredPicture, ToolAnswer};
use super::reader::Bundle;
use super::reducer::{TurnAccount, reduce};
use crate::message::{Message, Observation, Part, Request, SentPicture, ToolChoice, Wire};
use crate::model::Profile;
use crate::wire::{Habits, Renderer};

/// How the pictures of an exported conversation are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatPictures {
    /// As data URLs, exactly as a server gets them.
    Inline,
    /// As the paths of their blobs.
    Paths,
}

/// The conversations of a bundle, one for each part: `messages`, the `tools` that were declared, and
/// what came of it. A part that the model never answered is left out.
pub fn conversations(bundle: &Bundle, pictures: ChatPictures) -> Result<Vec<Value>, String> {
    let manifest = &bundle.manifest;
    let profile: Option<Profile> = serde_json::from_value(manifest.model.profile.clone()).ok();
    let profile = match profile {
        Some(profile) => profile,
        None => Profile::named("openai").map_err(|error| error.to_string())?,
    };
    let account = reduce(manifest, &bundle.events);
    // Whatever the wire was, chat completions are what other programs read.
    let habits = Habits { wire: Wire::Chat, ..profile.habits() };
    let renderer = Renderer::new(&manifest.model.id, habits, Default::default())?;
    let mut all = Vec::new();
    for (part, record) in manifest.parts.iter().enumerate() {
        let Told { messages, pictures: shown } = told(bundle, &account.turns[part], pictures)?;
        let outcome = account.judgement.parts[part].outcome.as_ref();
        if !messages.iter().any(|message| matches!(**message, Message::Assistant(_))) {
            continue;
        }
        let request = Request {
            messages,
            tools: manifest.tools.specs.clone().into(),
            tool_choice: ToolChoice::Auto,
            dialect: manifest.model.dialect,
        };
        let body = renderer.body(&request).map_err(|error| error.to_string())?;
        let mut body = serde_json::to_value(body).map_err(|error| error.to_string())?;
        if pictures == ChatPictures::Paths {
            name_pictures(&mut body["messages"], &mut shown.iter());
        }
        let mut line = json!({
            "messages": body["messages"],
            "metadata": {
                "case": manifest.case.id, "editor": manifest.case.editor,
                "criterion": manifest.criterion, "mode": manifest.mode, "part": record.name,
                "model": manifest.model.id, "outcome": outcome, "digest": bundle.digest,
            },
        });
        if let Some(tools) = body.get("tools") {
            line["tools"] = tools.clone();
        }
        all.push(line);
    }
    Ok(all)
}

/// What was said in a part.
struct Told {
    messages: Vec<Arc<Message>>,
    /// The paths of the pictures, in the order in which they were sent.
    pictures: Vec<String>,
}

fn told(
    bundle: &Bundle,
    turns: &BTreeMap<u32, TurnAccount<'_>>,
    pictures: ChatPictures,
) -> Result<Told, String> {
    let store = bundle.blobs();
    let mut told = Told { messages: Vec::new(), pictures: Vec::new() };
    let sent = |picture: &StoredPicture, shown: &mut Vec<String>| {
        let StoredPicture { name, caption, blob, media, size } = picture.clone();
        let path = store.find(&blob).map_err(|error| error.to_string())?;
        let bytes: Arc<[u8]> = match pictures {
            ChatPictures::Inline => store.get(&blob).map_err(|error| error.to_string())?.into(),
            ChatPictures::Paths => Arc::default(),
        };
        shown.push(path.to_string_lossy().into_owned());
        Ok::<_, String>(Arc::new(SentPicture { name, caption, size, media, bytes, hash: blob }))
    };
    let mut before = TurnAccount::default();
    for turn in turns.values() {
        for message in turn.asked.map_or(&[][..], |asked| &asked.messages) {
            let message = match message {
                StoredMessage::System(text) => Message::System(text.clone()),
                StoredMessage::User { parts, data } => {
                    let mut said = Vec::new();
                    for part in parts {
                        said.push(match part {
                            StoredPart::Text(text) => Part::Text(text.clone()),
                            StoredPart::Picture(picture) => {
                                Part::Picture(sent(picture, &mut told.pictures)?)
                            }
                        });
                    }
                    Message::User { parts: said, data: data.clone() }
                }
                StoredMessage::Reply => match before.replied {
                    Some(replied) => Message::Assistant(Box::new(replied.reply.clone())),
                    None => continue,
                },
                StoredMessage::Observations { closing } => {
                    let mut observations = Vec::new();
                    for look in &before.looks {
                        let (text, seen) = match &look.answer {
                            ToolAnswer::Refused { text } => (text, &[][..]),
                            ToolAnswer::Saw { text, pictures, .. } => (text, pictures.as_slice()),
                        };
                        let shown = seen.iter().filter_map(|seen| seen.sent.as_ref());
                        let shown = shown.map(|picture| sent(picture, &mut told.pictures));
                        observations.push(Observation {
                            call: look.call.clone(),
                            text: text.clone(),
                            data: Value::Null,
                            pictures: shown.collect::<Result<_, _>>()?,
                        });
                    }
                    Message::Observations { observations, closing: closing.clone() }
                }
            };
            told.messages.push(Arc::new(message));
        }
        before = turn.clone();
    }
    // The last reply was never sent back.
    let last = before.replied.map(|replied| Box::new(replied.reply.clone()));
    told.messages.extend(last.map(|reply| Arc::new(Message::Assistant(reply))));
    Ok(told)
}

/// Puts paths in the places of data URLs.
fn name_pictures(value: &mut Value, paths: &mut std::slice::Iter<'_, String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| name_pictures(item, paths)),
        Value::Object(fields) => {
            if let Some(url) = fields.get_mut("image_url").and_then(|image| image.get_mut("url")) {
                if let Some(path) = paths.next() {
                    *url = json!(path);
                }
                return;
            }
            fields.values_mut().for_each(|field| name_pictures(field, paths));
        }
        _ => {}
    }
}

//! A conversation in the order in which every wire wants it: each call is answered before anything
//! else is said.

use std::sync::Arc;

use super::pictures::{Pictures, Rendered};
use crate::message::{Dialect, Message, Observation, Part, Reply, Request, SentPicture};

/// A piece of a conversation.
pub(super) enum Turn<'a> {
    /// The rules.
    System(&'a str),
    /// What we say.
    User(Vec<Piece<'a>>),
    /// What the model said.
    Assistant(&'a Reply),
    /// The answer to one of its calls.
    Answer {
        id: &'a str,
        /// At least one text.
        pieces: Vec<Piece<'a>>,
    },
}

/// A text that is not empty, or a picture.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Picture(Rendered),
}

/// How a server wants its conversations.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// What we say in a row is one message.
    pub merged: bool,
    /// Pictures stand in the answer to the call that made them, and not in a message after all
    /// answers.
    pub pictures_in_answers: bool,
}

/// The conversation of `request`.
pub(super) fn turns<'a>(
    request: &'a Request,
    pictures: &Pictures,
    shape: Shape,
) -> Result<Vec<Turn<'a>>, serde_json::Error> {
    let mut turns = Turns { pictures, shape, turns: Vec::new(), unanswered: Vec::new() };
    for message in &request.messages {
        turns.push(message)?;
    }
    turns.answer_the_rest();
    Ok(turns.turns)
}

/// The conversation so far.
struct Turns<'a, 'p> {
    pictures: &'p Pictures,
    shape: Shape,
    turns: Vec<Turn<'a>>,
    /// The ids of the last reply's calls that have no answer yet: a server refuses a conversation in
    /// which one is missing.
    unanswered: Vec<&'a str>,
}

impl<'a> Turns<'a, '_> {
    fn push(&mut self, message: &'a Message) -> Result<(), serde_json::Error> {
        match message {
            Message::System(text) => self.turns.push(Turn::System(text)),
            Message::User { parts, .. } => {
                self.answer_the_rest();
                let mut pieces = Vec::with_capacity(2 * parts.len());
                for part in parts {
                    match part {
                        Part::Text(text) => pieces.extend(piece(text)),
                        Part::Picture(picture) => self.show(picture, &mut pieces)?,
                    }
                }
                self.say(pieces);
            }
            Message::Assistant(reply) => {
                self.answer_the_rest();
                let ids = reply.said.calls.iter().map(|call| call.id.as_str());
                self.unanswered = ids.filter(|id| !id.is_empty()).collect();
                self.turns.push(Turn::Assistant(reply));
            }
            Message::Observations { observations, closing } => {
                self.observe(observations, closing)?
            }
        }
        Ok(())
    }

    /// First an answer to every call of the server's own form, then everything else in one message.
    fn observe(
        &mut self,
        observations: &'a [Observation],
        closing: &'a str,
    ) -> Result<(), serde_json::Error> {
        let mut said = Vec::new();
        for Observation { call, text, pictures, .. } in observations {
            let asked = self.unanswered.iter().position(|id| *id == call.id);
            let Some(place) = asked.filter(|_| call.form == Dialect::Native) else {
                said.extend(piece(text));
                self.show_all(pictures, &mut said)?;
                continue;
            };
            let id = self.unanswered.remove(place);
            let mut pieces = vec![piece(text).unwrap_or(Piece::Text("Done."))];
            let place = if self.shape.pictures_in_answers { &mut pieces } else { &mut said };
            self.show_all(pictures, place)?;
            self.turns.push(Turn::Answer { id, pieces });
        }
        self.answer_the_rest();
        said.extend(piece(closing));
        self.say(said);
        Ok(())
    }

    fn answer_the_rest(&mut self) {
        for id in self.unanswered.drain(..) {
            let pieces = vec![Piece::Text("This call was not carried out.")];
            self.turns.push(Turn::Answer { id, pieces });
        }
    }

    fn show_all(
        &self,
        pictures: &'a [Arc<SentPicture>],
        pieces: &mut Vec<Piece<'a>>,
    ) -> Result<(), serde_json::Error> {
        pictures.iter().try_for_each(|picture| self.show(picture, pieces))
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

    fn say(&mut self, mut pieces: Vec<Piece<'a>>) {
        match self.turns.last_mut() {
            _ if pieces.is_empty() => {}
            Some(Turn::User(said)) if self.shape.merged => said.append(&mut pieces),
            _ => self.turns.push(Turn::User(pieces)),
        }
    }
}

/// A text, unless it is empty: servers refuse empty ones.
fn piece(text: &str) -> Option<Piece<'_>> {
    (!text.is_empty()).then_some(Piece::Text(text))
}

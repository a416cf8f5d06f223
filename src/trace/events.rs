//! What happens in a judgement; `stored` has the lines of its file.

use deeplook_tools::Size;
use deeplook_tools::scene::Panel;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::stored;
use crate::hash::Hash;
use crate::message::{MediaType, Message, Part, Reply, SentPicture, ToolCall, ToolChoice, Usage};
use crate::model::FailedAttempt;
use crate::verdict::Outcome;

/// Something that happened in a judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Counted from 0 without a gap.
    pub seq: u64,
    /// Milliseconds since 1970, by the clock of the machine that judged.
    pub at: u64,
    /// What happened.
    pub event: What,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match stored::Event::of(self.clone()) {
            Some(stored) => stored.serialize(serializer),
            None => Err(S::Error::custom("what only a newer version knows is not written")),
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The model was asked.
    Asked(Asked),
    /// An attempt to reach the model came to nothing.
    AttemptFailed(AttemptFailed),
    /// The model replied.
    Replied(Replied),
    /// A tool was called.
    Observed(Observed),
    /// The model cannot be asked, or a tool is broken: this part fails.
    GaveUp(GaveUp),
    /// A part of the judgement ended.
    Decided(Decided),
    /// The judgement ended. Always the last event of a complete trace.
    Finished(Finished),
    /// Something that only a newer version of deeplook knows.
    Unknown(Unknown),
}

impl What {
    /// The kind of the event, as the trace writes it.
    pub fn kind(&self) -> &str {
        match self {
            Self::Asked(_) => "asked",
            Self::AttemptFailed(_) => "attempt_failed",
            Self::Replied(_) => "replied",
            Self::Observed(_) => "observed",
            Self::GaveUp(_) => "gave_up",
            Self::Decided(_) => "decided",
            Self::Finished(_) => "finished",
            Self::Unknown(unknown) => &unknown.kind,
        }
    }
}

/// The model was asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Asked")]
pub struct Asked {
    /// Which part of the judgement, as in the manifest.
    pub part: usize,
    /// Counted from 1.
    pub turn: u32,
    /// What is new in the conversation since the question before.
    pub messages: Vec<StoredMessage>,
    /// Whether tools may be called.
    pub tool_choice: ToolChoice,
    /// Stands for the whole request: all messages so far, the tools, the dialect.
    pub digest: Hash,
}

impl Asked {
    /// The pictures that are new with it: their names and blobs.
    pub fn pictures(&self) -> impl Iterator<Item = (&String, &Hash)> {
        let parts = self.messages.iter().flat_map(|message| match message {
            StoredMessage::User { parts, .. } => parts.as_slice(),
            _ => &[],
        });
        parts.filter_map(|part| match part {
            StoredPart::Picture(picture) => Some((&picture.name, &picture.blob)),
            StoredPart::Text(_) => None,
        })
    }
}

/// A message of ours, or the place of one that other events hold.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredMessage {
    /// The rules of the judgement.
    System(String),
    /// What we say.
    User {
        /// Text and pictures in order.
        parts: Vec<StoredPart>,
        /// The same for machines.
        data: Value,
    },
    /// The reply of the turn before, as its event has it.
    Reply,
    /// The observations of the turn before, as their events have them, and the closing text.
    Observations {
        /// The text that closes the turn.
        closing: String,
    },
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum StoredPart {
    /// Text.
    Text(String),
    /// A picture as it was sent.
    Picture(StoredPicture),
}

/// A picture as it was sent to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPicture {
    /// Its name.
    pub name: String,
    /// What the model is told about it.
    pub caption: String,
    /// The exact bytes.
    pub blob: Hash,
    /// Their encoding.
    pub media: MediaType,
    /// Its size as sent.
    pub size: Size,
}

impl From<&SentPicture> for StoredPicture {
    fn from(sent: &SentPicture) -> Self {
        Self {
            name: sent.name.clone(),
            caption: sent.caption.clone(),
            blob: sent.hash.clone(),
            media: sent.media,
            size: sent.size,
        }
    }
}

impl From<&Message> for StoredMessage {
    fn from(message: &Message) -> Self {
        match message {
            Message::System(text) => Self::System(text.clone()),
            Message::User { parts, data } => {
                let stored = |part: &Part| match part {
                    Part::Text(text) => StoredPart::Text(text.clone()),
                    Part::Picture(sent) => StoredPart::Picture(sent.as_ref().into()),
                };
                Self::User { parts: parts.iter().map(stored).collect(), data: data.clone() }
            }
            Message::Assistant(_) => Self::Reply,
            Message::Observations { closing, .. } => {
                Self::Observations { closing: closing.clone() }
            }
        }
    }
}

/// An attempt to reach the model came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptFailed {
    /// Which part of the judgement.
    pub part: usize,
    /// Which turn.
    pub turn: u32,
    /// What happened.
    pub attempt: FailedAttempt,
}

/// The model replied.
#[derive(Debug, Clone, PartialEq)]
pub struct Replied {
    /// Which part of the judgement.
    pub part: usize,
    /// Which turn.
    pub turn: u32,
    /// What it said.
    pub reply: Reply,
    /// How long it took, attempts included.
    pub elapsed_ms: u64,
    /// Whether the reply was kept from before: nobody was asked, and nothing was paid.
    pub cached: bool,
}

/// A tool was called.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Observed")]
pub struct Observed {
    /// Which part of the judgement.
    pub part: usize,
    /// Which turn.
    pub turn: u32,
    /// What was called.
    pub call: ToolCall,
    /// What came of it.
    pub answer: ToolAnswer,
    /// How long it took.
    pub elapsed_ms: u64,
}

impl Observed {
    /// The pictures that it brought: their names and blobs.
    pub fn pictures(&self) -> impl Iterator<Item = (&String, &Hash)> {
        let pictures = match &self.answer {
            ToolAnswer::Saw { pictures, .. } => pictures.as_slice(),
            ToolAnswer::Refused { .. } => &[],
        };
        pictures.iter().map(|picture| (&picture.name, &picture.blob))
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::ToolAnswer")]
pub enum ToolAnswer {
    /// The tool looked.
    Saw {
        /// For the model.
        text: String,
        /// For machines.
        data: Value,
        /// New pictures.
        pictures: Vec<Seen>,
    },
    /// The call could not be done, or came after a limit; the model was told why.
    Refused {
        /// For the model.
        text: String,
    },
}

/// A picture that a tool made.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Seen")]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// The picture as the tool made it, as a PNG.
    pub blob: Hash,
    /// Which places of the source pictures it shows.
    pub panels: Vec<Panel>,
    /// How it was sent to the model; absent where there was no room for it.
    pub sent: Option<StoredPicture>,
}

/// A part fails for a reason outside of the deliberation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::GaveUp")]
pub struct GaveUp {
    /// Which part of the judgement.
    pub part: usize,
    /// Which turn.
    pub turn: u32,
    /// Why; it becomes the reason of the outcome.
    pub reason: String,
}

/// A part of the judgement ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Decided")]
pub struct Decided {
    /// Which part.
    pub part: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// The last thought before the end.
    pub reasoning: Option<String>,
    /// Pictures that the judge named as what the answer rests on.
    pub evidence: Vec<String>,
    /// Names that it gave and that no picture has.
    pub unknown_evidence: Vec<String>,
    /// How often the model was asked.
    pub turns: u32,
    /// Tokens of all replies.
    pub usage: Usage,
}

/// The judgement ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Finished")]
pub struct Finished {
    /// How: the worst of its parts.
    pub outcome: Outcome,
}

/// An event of a kind that came after this program.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    /// Its kind, as the trace writes it.
    pub kind: String,
    /// What it holds.
    pub content: Value,
}

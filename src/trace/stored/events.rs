//! `events.jsonl`: one JSON object a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::{FailedAttempt, Media, Outcome, ToolCall, ToolChoice, Usage};
use super::pixels::{Panel, Size};
use super::reply::Reply;
use super::{Form, both_ways, forms};
use crate::hash::Hash;
use crate::trace::events;

/// Something that happened in a judgement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) at: u64,
    pub(crate) event: What,
}

impl Event {
    /// What is stored of it; `None` for what only a newer version knows, which nobody writes here.
    pub(crate) fn of(events::Event { seq, at, event }: events::Event) -> Option<Self> {
        Some(Self { seq, at, event: What::of(event)? })
    }
}

/// One line of `events.jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(crate) struct Line<W = What> {
    /// Counted from 0 without a gap.
    pub(crate) seq: u64,
    /// Milliseconds since 1970, by the clock of the machine that judged.
    pub(crate) at: u64,
    /// What happened.
    pub(crate) event: W,
    /// Over the event and everything before it, the manifest first: one edited line shows.
    pub(crate) seal: Hash,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
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
}

/// The kinds of events that this program knows.
pub(crate) const KINDS: [&str; 7] =
    ["asked", "attempt_failed", "replied", "observed", "gave_up", "decided", "finished"];

impl What {
    fn of(it: events::What) -> Option<Self> {
        Some(match it {
            events::What::Asked(it) => Self::Asked(Form::of(it)),
            events::What::AttemptFailed(it) => Self::AttemptFailed(Form::of(it)),
            events::What::Replied(it) => Self::Replied(Form::of(it)),
            events::What::Observed(it) => Self::Observed(Form::of(it)),
            events::What::GaveUp(it) => Self::GaveUp(Form::of(it)),
            events::What::Decided(it) => Self::Decided(Form::of(it)),
            events::What::Finished(it) => Self::Finished(Form::of(it)),
            events::What::Unknown(_) => return None,
        })
    }

    pub(crate) fn back(self) -> events::What {
        match self {
            Self::Asked(it) => events::What::Asked(it.back()),
            Self::AttemptFailed(it) => events::What::AttemptFailed(it.back()),
            Self::Replied(it) => events::What::Replied(it.back()),
            Self::Observed(it) => events::What::Observed(it.back()),
            Self::GaveUp(it) => events::What::GaveUp(it.back()),
            Self::Decided(it) => events::What::Decided(it.back()),
            Self::Finished(it) => events::What::Finished(it.back()),
        }
    }
}

forms! {
    /// The model was asked.
    struct Asked of events::Asked {
        /// Which part of the judgement, as in the manifest.
        part: usize,
        /// Counted from 1.
        turn: u32,
        /// What is new in the conversation since the question before.
        messages: Vec<Message>,
        /// Whether tools may be called.
        tool_choice: ToolChoice,
        /// Stands for the whole request: all messages so far, the tools, the dialect.
        digest: Hash,
    }

    /// A picture as it was sent to the model.
    struct Picture of events::StoredPicture {
        /// Its name.
        name: String,
        /// What the model is told about it.
        caption: String,
        /// The exact bytes.
        blob: Hash,
        /// Their encoding.
        media: Media,
        /// Its size as sent.
        size: Size,
    }

    /// An attempt to reach the model came to nothing.
    struct AttemptFailed of events::AttemptFailed {
        /// Which part of the judgement.
        part: usize,
        /// Which turn.
        turn: u32,
        /// What happened.
        attempt: FailedAttempt,
    }

    /// The model replied.
    struct Replied of events::Replied {
        /// Which part of the judgement.
        part: usize,
        /// Which turn.
        turn: u32,
        /// What it said.
        reply: Reply,
        /// How long it took, attempts included.
        elapsed_ms: u64,
        /// Whether the reply was kept from before: nobody was asked, and nothing was paid.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
    }

    /// A tool was called.
    struct Observed of events::Observed {
        /// Which part of the judgement.
        part: usize,
        /// Which turn.
        turn: u32,
        /// What was called.
        call: ToolCall,
        /// What came of it.
        answer: ToolAnswer,
        /// How long it took.
        elapsed_ms: u64,
    }

    /// A picture that a tool made.
    struct Seen of events::Seen {
        /// Its name.
        name: String,
        /// The picture as the tool made it, as a PNG.
        blob: Hash,
        /// Which places of the source pictures it shows.
        panels: Vec<Panel>,
        /// How it was sent to the model; absent where there was no room for it.
        sent: Option<Picture>,
    }

    /// A part fails for a reason outside of the deliberation.
    struct GaveUp of events::GaveUp {
        /// Which part of the judgement.
        part: usize,
        /// Which turn.
        turn: u32,
        /// Why; it becomes the reason of the outcome.
        reason: String,
    }

    /// A part of the judgement ended.
    struct Decided of events::Decided {
        /// Which part.
        part: usize,
        /// How it ended.
        outcome: Outcome,
        /// The last thought before the end.
        reasoning: Option<String>,
        /// Pictures that the judge named as what the answer rests on.
        evidence: Vec<String>,
        /// Names that it gave and that no picture has.
        unknown_evidence: Vec<String>,
        /// How often the model was asked.
        turns: u32,
        /// Tokens of all replies.
        usage: Usage,
    }

    /// The judgement ended.
    struct Finished of events::Finished {
        /// How: what its parts come to together.
        outcome: Outcome,
    }
}

/// A message of ours, or the place of one that other events hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// The rules of the judgement.
    System(String),
    /// What we say.
    User {
        /// Text and pictures in order.
        parts: Vec<Piece>,
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

impl Form<events::StoredMessage> for Message {
    fn of(it: events::StoredMessage) -> Self {
        match it {
            events::StoredMessage::System(text) => Self::System(text),
            events::StoredMessage::User { parts, data } => {
                Self::User { parts: Form::of(parts), data }
            }
            events::StoredMessage::Reply => Self::Reply,
            events::StoredMessage::Observations { closing } => Self::Observations { closing },
        }
    }

    fn back(self) -> events::StoredMessage {
        match self {
            Self::System(text) => events::StoredMessage::System(text),
            Self::User { parts, data } => events::StoredMessage::User { parts: parts.back(), data },
            Self::Reply => events::StoredMessage::Reply,
            Self::Observations { closing } => events::StoredMessage::Observations { closing },
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Piece {
    /// Text.
    Text(String),
    /// A picture as it was sent.
    Picture(Picture),
}

impl Form<events::StoredPart> for Piece {
    fn of(it: events::StoredPart) -> Self {
        match it {
            events::StoredPart::Text(text) => Self::Text(text),
            events::StoredPart::Picture(picture) => Self::Picture(Form::of(picture)),
        }
    }

    fn back(self) -> events::StoredPart {
        match self {
            Self::Text(text) => events::StoredPart::Text(text),
            Self::Picture(picture) => events::StoredPart::Picture(picture.back()),
        }
    }
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolAnswer {
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

impl Form<events::ToolAnswer> for ToolAnswer {
    fn of(it: events::ToolAnswer) -> Self {
        match it {
            events::ToolAnswer::Saw { text, data, pictures } => {
                Self::Saw { text, data, pictures: Form::of(pictures) }
            }
            events::ToolAnswer::Refused { text } => Self::Refused { text },
        }
    }

    fn back(self) -> events::ToolAnswer {
        match self {
            Self::Saw { text, data, pictures } => {
                events::ToolAnswer::Saw { text, data, pictures: pictures.back() }
            }
            Self::Refused { text } => events::ToolAnswer::Refused { text },
        }
    }
}
both_ways!(ToolAnswer, events::ToolAnswer);

//! The conversation of a judgement, part by part and turn by turn, for a page.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::index::level;
use super::pictures::PictureNames;
use crate::answer::AnswerForm;
use crate::dialect::{self, ThoughtSource};
use crate::message::ToolChoice;
use crate::trace::{
    Account, AttemptFailed, Observed, PartJudgement, Replied, StoredMessage, StoredPart,
    StoredPicture, ToolAnswer, TurnAccount,
};
use crate::transcript::usage_text;
use crate::verdict::Outcome;
use crate::visible::{honest_json, visible};

/// How something ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct OutcomeView {
    /// A label, or the name of the outcome.
    pub(super) text: String,
    /// The class of its colour.
    pub(super) style: String,
    pub(super) score: Option<String>,
    pub(super) reason: Option<String>,
}

/// A part: the whole picture, or one target.
#[derive(Debug, Serialize)]
pub(super) struct PartView {
    name: String,
    outcome: OutcomeView,
    reasoning: Option<String>,
    evidence: Vec<EvidenceView>,
    unknown_evidence: Vec<String>,
    turns: Vec<TurnView>,
}

#[derive(Debug, Serialize)]
struct EvidenceView {
    name: String,
    /// Of the picture on the page.
    picture: Option<PictureView>,
}

/// What was asked, said and seen in one turn.
#[derive(Debug, Default, Serialize)]
struct TurnView {
    number: u32,
    /// What we said, in order.
    said: Vec<SaidView>,
    no_tools: bool,
    attempts: Vec<AttemptView>,
    reply: Option<ReplyView>,
    looks: Vec<LookView>,
    /// Calls that no event answers: the trace ends here.
    unanswered: Vec<CallView>,
    /// Why it was the last turn of a part that failed.
    gave_up: Option<String>,
}

#[derive(Debug, Serialize)]
struct SaidView {
    /// `system`, `user` or `closing`.
    kind: &'static str,
    text: Option<String>,
    picture: Option<PictureView>,
}

#[derive(Debug, Serialize)]
struct AttemptView {
    number: u32,
    status: Option<u16>,
    error: String,
    wait: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReplyView {
    thought: Option<String>,
    /// The thought is the server's reasoning, not text of the reply.
    is_reasoning: bool,
    answer: Option<String>,
    problems: Vec<String>,
    repairs: Vec<String>,
    model: Option<String>,
    finish_reason: Option<String>,
    usage: String,
    seconds: String,
    /// As the server sent it.
    raw: String,
}

#[derive(Debug, Serialize)]
struct CallView {
    name: String,
    arguments: String,
}

#[derive(Debug, Serialize)]
struct LookView {
    call: CallView,
    refused: bool,
    text: String,
    pictures: Vec<PictureView>,
    seconds: String,
}

/// A picture on the page.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PictureView {
    /// The anchor.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) caption: String,
    pub(super) width: u32,
    pub(super) height: u32,
    /// Its file in `blobs/`; absent where there is a problem.
    pub(super) file: Option<String>,
    pub(super) problem: Option<String>,
    /// The model did not get it.
    pub(super) unsent: bool,
    pub(super) is_evidence: bool,
}

impl OutcomeView {
    /// Something that is no outcome.
    pub(super) fn named(name: &str) -> Self {
        Self { text: name.to_owned(), style: "no-level".to_owned(), ..Self::default() }
    }

    pub(super) fn of(outcome: Option<&Outcome>) -> Self {
        let Some(outcome) = outcome else { return Self::named("interrupted") };
        Self {
            text: match outcome.verdict() {
                Some(verdict) => visible(&verdict.in_words()),
                None => outcome.name().to_owned(),
            },
            style: outcome
                .score()
                .map_or("no-level".to_owned(), |score| format!("level-{}", level(score))),
            score: outcome.score().map(|score| format!("{score:.0}")),
            reason: outcome.reason().map(visible),
        }
    }
}

/// Makes the views of the parts.
pub(super) struct Conversation<'a> {
    pub(super) pictures: &'a dyn PictureNames,
    pub(super) form: &'a AnswerForm,
}

impl Conversation<'_> {
    /// All parts with all turns.
    pub(super) fn parts(&self, account: &Account<'_>) -> Vec<PartView> {
        let parts = account.judgement.parts.iter().zip(&account.turns).enumerate();
        parts
            .map(|(number, (part, turns))| {
                let turns = turns.iter().map(|(number, turn)| self.turn(*number, turn));
                part_view(number, part, turns.collect())
            })
            .collect()
    }

    fn turn(&self, number: u32, turn: &TurnAccount<'_>) -> TurnView {
        let mut view = TurnView { number, ..TurnView::default() };
        if let Some(asked) = turn.asked {
            view.no_tools = asked.tool_choice == ToolChoice::None;
            view.said = asked.messages.iter().flat_map(|m| self.said(m)).collect();
        }
        view.attempts = turn.attempts.iter().map(|failed| attempt(failed)).collect();
        if let Some(replied) = turn.replied {
            self.reply(replied, &mut view);
        }
        // Calls are answered in their order.
        let answered = turn.looks.len().min(view.unanswered.len());
        view.unanswered.drain(..answered);
        view.looks = turn.looks.iter().map(|observed| self.look(observed)).collect();
        view.gave_up = turn.gave_up.map(|gave_up| visible(&gave_up.reason));
        view
    }

    fn said(&self, message: &StoredMessage) -> Vec<SaidView> {
        let text = |kind, text: &str| SaidView { kind, text: Some(visible(text)), picture: None };
        match message {
            StoredMessage::System(said) => vec![text("system", said)],
            StoredMessage::User { parts, .. } => {
                let part = |part: &StoredPart| match part {
                    StoredPart::Text(said) => text("user", said),
                    StoredPart::Picture(sent) => {
                        let picture = Some(self.sent(sent));
                        SaidView { kind: "user", text: None, picture }
                    }
                };
                parts.iter().map(part).collect()
            }
            StoredMessage::Reply => Vec::new(),
            StoredMessage::Observations { closing } if closing.is_empty() => Vec::new(),
            StoredMessage::Observations { closing } => vec![text("closing", closing)],
        }
    }

    fn sent(&self, sent: &StoredPicture) -> PictureView {
        let (file, problem) = match self.pictures.file_name(&sent.blob) {
            Ok(file) => (Some(file), None),
            Err(problem) => (None, Some(problem)),
        };
        PictureView {
            id: String::new(),
            name: visible(&sent.name),
            caption: visible(&sent.caption),
            width: sent.size.width,
            height: sent.size.height,
            file,
            problem,
            unsent: false,
            is_evidence: false,
        }
    }

    fn reply(&self, replied: &Replied, view: &mut TurnView) {
        let reply = &replied.reply;
        let reading = dialect::read(&reply.said, self.form);
        view.unanswered =
            reading.calls.iter().map(|call| call_view(&call.name, &call.arguments)).collect();
        view.reply = Some(ReplyView {
            thought: reading.thought.as_deref().map(visible),
            is_reasoning: reading.thought_source == ThoughtSource::Reasoning,
            answer: reading.answer.map(|answer| visible(&answer.to_string())),
            problems: reading.problems.iter().map(|problem| visible(problem)).collect(),
            repairs: reply.repairs.iter().map(|repair| visible(repair)).collect(),
            model: reply.served.model.as_deref().map(visible),
            finish_reason: reply.finish_reason.as_deref().map(visible),
            usage: usage_text(reply.usage),
            seconds: seconds(replied.elapsed_ms),
            raw: pretty(&reply.message),
        });
    }

    fn look(&self, observed: &Observed) -> LookView {
        let (refused, text, pictures) = match &observed.answer {
            ToolAnswer::Refused { text } => (true, text, Vec::new()),
            ToolAnswer::Saw { text, pictures, .. } => {
                let shown = pictures.iter().map(|seen| match &seen.sent {
                    Some(sent) => self.sent(sent),
                    None => {
                        let made = StoredPicture {
                            name: seen.name.clone(),
                            caption: String::new(),
                            blob: seen.blob.clone(),
                            media: crate::message::MediaType::Png,
                            size: panels_size(&seen.panels),
                        };
                        PictureView { unsent: true, ..self.sent(&made) }
                    }
                });
                (false, text, shown.collect())
            }
        };
        LookView {
            call: call_view(&observed.call.name, &observed.call.arguments),
            refused,
            text: visible(text),
            pictures,
            seconds: seconds(observed.elapsed_ms),
        }
    }
}

/// The size of a picture that a tool made, from the places on it.
fn panels_size(panels: &[deeplook_tools::scene::Panel]) -> deeplook_tools::Size {
    let right = panels.iter().map(|panel| panel.area.x2).fold(1.0, f64::max);
    let bottom = panels.iter().map(|panel| panel.area.y2).fold(1.0, f64::max);
    deeplook_tools::Size { width: right as u32, height: bottom as u32 }
}

/// Gives the pictures their anchors and ties the evidence to them.
fn part_view(number: usize, part: &PartJudgement, mut turns: Vec<TurnView>) -> PartView {
    let evidence: Vec<String> = part.evidence.iter().map(|name| visible(name)).collect();
    let mut named: BTreeMap<String, PictureView> = BTreeMap::new();
    let mut count = 0;
    for turn in &mut turns {
        let said = turn.said.iter_mut().filter_map(|said| said.picture.as_mut());
        let seen = turn.looks.iter_mut().flat_map(|look| &mut look.pictures);
        for picture in said.chain(seen) {
            count += 1;
            picture.id = format!("p{number}-{count}");
            picture.is_evidence = evidence.contains(&picture.name);
            named.entry(picture.name.clone()).or_insert_with(|| picture.clone());
        }
    }
    PartView {
        name: visible(&part.name),
        outcome: OutcomeView::of(part.outcome.as_ref()),
        reasoning: part.reasoning.as_deref().map(visible),
        evidence: evidence
            .into_iter()
            .map(|name| EvidenceView { picture: named.get(&name).cloned(), name })
            .collect(),
        unknown_evidence: part.unknown_evidence.iter().map(|name| visible(name)).collect(),
        turns,
    }
}

fn attempt(failed: &AttemptFailed) -> AttemptView {
    let attempt = &failed.attempt;
    AttemptView {
        number: attempt.attempt,
        status: attempt.status,
        error: visible(&attempt.error),
        wait: attempt.retry_after_ms.map(seconds),
    }
}

fn call_view(name: &str, arguments: &Value) -> CallView {
    CallView { name: visible(name), arguments: honest_json(&arguments.to_string()) }
}

/// A value as JSON for people.
pub(super) fn pretty(value: &Value) -> String {
    honest_json(&format!("{value:#}"))
}

pub(super) fn seconds(milliseconds: u64) -> String {
    match milliseconds {
        ms if ms < 1000 => format!("{ms} ms"),
        ms => format!("{:.1} s", ms as f64 / 1000.0),
    }
}

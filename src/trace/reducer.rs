//! From events to what they tell: the one place that interprets a trace.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::events::{Asked, AttemptFailed, Event, GaveUp, Observed, Replied, ToolAnswer, What};
use super::manifest::Manifest;
use crate::message::Usage;
use crate::verdict::Outcome;

/// What a trace tells. Whatever shows, counts, exports or takes over a judgement reads this.
#[derive(Debug, Clone)]
pub struct Account<'a> {
    /// What it was about.
    pub manifest: &'a Manifest,
    /// What it amounts to.
    pub judgement: Judgement,
    /// What happened in each part of the manifest, by turn.
    pub turns: Vec<BTreeMap<u32, TurnAccount<'a>>>,
    /// All replies, in the order in which they came.
    pub replies: Vec<&'a Replied>,
    /// All calls of tools that looked, likewise.
    pub looks: Vec<&'a Observed>,
    /// When it began and when it ended, in milliseconds since 1970; absent where nothing happened.
    pub span: Option<(u64, u64)>,
}

/// A question and what came of it.
#[derive(Debug, Clone, Default)]
pub struct TurnAccount<'a> {
    /// The question.
    pub asked: Option<&'a Asked>,
    /// Attempts to ask it that came to nothing.
    pub attempts: Vec<&'a AttemptFailed>,
    /// The reply.
    pub replied: Option<&'a Replied>,
    /// The calls of tools, in their order, also refused ones.
    pub looks: Vec<&'a Observed>,
    /// Why it ended here, where that was decided outside of the deliberation.
    pub gave_up: Option<&'a GaveUp>,
}

/// What a trace amounts to. Everything that shows a judgement shows this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The criterion.
    pub criterion: String,
    /// How it ended; absent for a trace that was interrupted.
    pub outcome: Option<Outcome>,
    /// One for the whole picture, or one for each target.
    pub parts: Vec<PartJudgement>,
    /// How often the model was asked, over all parts.
    pub turns: u32,
    /// How often tools looked; calls that were refused do not count.
    pub tool_calls: u32,
    /// Tokens, over all parts.
    pub usage: Usage,
    /// What all replies cost in US dollars; absent where a price or a count of tokens is not known.
    pub cost: Option<f64>,
    /// Kinds of events in it that only a newer deeplook knows.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unknown: BTreeSet<String>,
}

/// What a part of a judgement amounts to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartJudgement {
    /// "whole picture", "target 2 of 3".
    pub name: String,
    /// How it ended; absent if it was interrupted.
    pub outcome: Option<Outcome>,
    /// The last thought before the end.
    pub reasoning: Option<String>,
    /// Pictures that the answer rests on.
    pub evidence: Vec<String>,
    /// Names that were given as evidence and that no picture has.
    pub unknown_evidence: Vec<String>,
}

impl Judgement {
    /// The label, if there is a verdict.
    pub fn label(&self) -> Option<&str> {
        self.outcome.as_ref().and_then(Outcome::label)
    }

    /// The part that decided: the worst one.
    pub fn deciding_part(&self) -> Option<&PartJudgement> {
        self.parts.iter().find(|part| part.outcome.is_some() && part.outcome == self.outcome)
    }
}

/// Reads out of events what they tell.
pub fn reduce<'a>(manifest: &'a Manifest, events: &'a [Event]) -> Account<'a> {
    let mut account = Account::blank(manifest);
    account.span = events.first().zip(events.last()).map(|(first, last)| (first.at, last.at));
    for event in events {
        account.take(&event.event);
    }
    account
}

impl<'a> Account<'a> {
    /// Of a judgement in which nothing happened yet.
    fn blank(manifest: &'a Manifest) -> Self {
        let blank = |name: &str| PartJudgement {
            name: name.to_owned(),
            outcome: None,
            reasoning: None,
            evidence: Vec::new(),
            unknown_evidence: Vec::new(),
        };
        let judgement = Judgement {
            criterion: manifest.criterion.clone(),
            outcome: None,
            parts: manifest.parts.iter().map(|part| blank(&part.name)).collect(),
            turns: 0,
            tool_calls: 0,
            usage: Usage::default(),
            cost: manifest.model.price.as_ref().map(|_| 0.0),
            unknown: BTreeSet::new(),
        };
        let turns = vec![BTreeMap::new(); manifest.parts.len()];
        let (replies, looks) = (Vec::new(), Vec::new());
        Self { manifest, judgement, turns, replies, looks, span: None }
    }

    fn take(&mut self, what: &'a What) {
        let judgement = &mut self.judgement;
        match what {
            What::Asked(asked) => {
                judgement.turns += 1;
                self.turn(asked.part, asked.turn, |turn| turn.asked = Some(asked));
            }
            What::AttemptFailed(failed) => {
                self.turn(failed.part, failed.turn, |turn| turn.attempts.push(failed));
            }
            What::Replied(replied) => {
                let usage = replied.reply.usage;
                judgement.usage = judgement.usage.plus(usage);
                let cost = self.manifest.model.price.as_ref().and_then(|price| price.cost(usage));
                judgement.cost = judgement.cost.zip(cost).map(|(sum, cost)| sum + cost);
                self.replies.push(replied);
                self.turn(replied.part, replied.turn, |turn| turn.replied = Some(replied));
            }
            What::Observed(observed) => {
                if matches!(observed.answer, ToolAnswer::Saw { .. }) {
                    judgement.tool_calls += 1;
                    self.looks.push(observed);
                }
                self.turn(observed.part, observed.turn, |turn| turn.looks.push(observed));
            }
            What::GaveUp(gave_up) => {
                self.turn(gave_up.part, gave_up.turn, |turn| turn.gave_up = Some(gave_up));
            }
            What::Decided(decided) => {
                if let Some(part) = judgement.parts.get_mut(decided.part) {
                    part.outcome = Some(decided.outcome.clone());
                    part.reasoning = decided.reasoning.clone();
                    part.evidence = decided.evidence.clone();
                    part.unknown_evidence = decided.unknown_evidence.clone();
                }
            }
            What::Finished(finished) => judgement.outcome = Some(finished.outcome.clone()),
            What::Unknown(unknown) => drop(judgement.unknown.insert(unknown.kind.clone())),
        }
    }

    /// Changes a turn; a part that the manifest does not know is nowhere shown.
    fn turn(&mut self, part: usize, number: u32, change: impl FnOnce(&mut TurnAccount<'a>)) {
        if let Some(turns) = self.turns.get_mut(part) {
            change(turns.entry(number).or_default());
        }
    }

    /// What was paid for it: replies that were kept from before cost nothing again.
    pub fn paid(&self) -> Option<f64> {
        let price = self.manifest.model.price.as_ref();
        let paid = self.replies.iter().map(|replied| match (replied.cached, price) {
            (true, _) => Some(0.0),
            (false, price) => price?.cost(replied.reply.usage),
        });
        paid.sum()
    }
}

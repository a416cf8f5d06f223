//! From events to a judgement: the one place that interprets a trace.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::events::{Event, Replied, ToolAnswer, What};
use super::manifest::Manifest;
use crate::message::Usage;
use crate::verdict::Outcome;

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

/// Reads a judgement out of its events.
pub fn reduce(manifest: &Manifest, events: &[Event]) -> Judgement {
    let blank = |name: &str| PartJudgement {
        name: name.to_owned(),
        outcome: None,
        reasoning: None,
        evidence: Vec::new(),
        unknown_evidence: Vec::new(),
    };
    let price = manifest.model.price.as_ref();
    let mut judgement = Judgement {
        criterion: manifest.criterion.clone(),
        outcome: None,
        parts: manifest.parts.iter().map(|part| blank(&part.name)).collect(),
        turns: 0,
        tool_calls: 0,
        usage: Usage::default(),
        cost: price.map(|_| 0.0),
        unknown: BTreeSet::new(),
    };
    for event in events {
        match &event.event {
            What::Asked(_) => judgement.turns += 1,
            What::Replied(Replied { reply, .. }) => {
                judgement.usage = judgement.usage.plus(reply.usage);
                let cost = price.and_then(|price| price.cost(reply.usage));
                judgement.cost = judgement.cost.zip(cost).map(|(sum, cost)| sum + cost);
            }
            What::Observed(observed) => {
                let looked = matches!(observed.answer, ToolAnswer::Saw { .. });
                judgement.tool_calls += u32::from(looked);
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
            What::AttemptFailed(_) | What::GaveUp(_) => {}
        }
    }
    judgement
}

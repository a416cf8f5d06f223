//! How a judgement can end. A failed judgement is never a number.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{Answered, values_in_words};

/// What a judge found, and what that is worth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// One of the criterion's labels; absent where the answer has several keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What was answered for each key of the criterion; empty where the answer is a label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Value>,
    /// What it is worth, on the criterion's scale.
    pub score: f64,
}

impl Verdict {
    /// An answer and what it is worth.
    pub fn of(answer: Answered, score: f64) -> Self {
        match answer {
            Answered::Label(label) => Self::of_label(label, score),
            Answered::Values(values) => Self { label: None, values, score },
        }
    }

    /// A label and what it is worth.
    pub fn of_label(label: impl Into<String>, score: f64) -> Self {
        Self { label: Some(label.into()), values: BTreeMap::new(), score }
    }

    /// The label, or what was answered for each key; the score, where there is neither.
    pub fn in_words(&self) -> String {
        match &self.label {
            Some(label) => label.clone(),
            None if self.values.is_empty() => format!("{:.2}", self.score),
            None => values_in_words(&self.values),
        }
    }
}

/// How the parts of a judgement become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Combine {
    /// The worst part decides.
    #[default]
    Worst,
    /// The mean of the parts' scores.
    Mean,
    /// The same, and reports count parts instead of judgements.
    Pooled,
}

/// The end of a judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// The judge gave an answer.
    Verdict(Verdict),
    /// The model would not, or could not, answer in the form asked.
    Abstained {
        /// Why.
        reason: String,
    },
    /// The server, a budget or a filter prevented an answer.
    Failed {
        /// Why.
        reason: String,
    },
    /// There was nothing to judge: no edited picture, or one that cannot be read.
    Missing {
        /// Why.
        reason: String,
    },
}

impl Outcome {
    /// `verdict`, `abstained`, `failed` or `missing`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Verdict(_) => "verdict",
            Self::Abstained { .. } => "abstained",
            Self::Failed { .. } => "failed",
            Self::Missing { .. } => "missing",
        }
    }

    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<&Verdict> {
        match self {
            Self::Verdict(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// The label, if there is a verdict that has one.
    pub fn label(&self) -> Option<&str> {
        self.verdict()?.label.as_deref()
    }

    /// The score, if there is a verdict.
    pub fn score(&self) -> Option<f64> {
        self.verdict().map(|verdict| verdict.score)
    }

    /// Why there is no verdict.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Verdict(_) => None,
            Self::Abstained { reason } | Self::Failed { reason } | Self::Missing { reason } => {
                Some(reason)
            }
        }
    }

    /// The outcome of a whole whose parts each have one; `None` without parts. A part without a
    /// verdict leaves the whole without one: it might have been the worst, and a mean without it is
    /// another mean.
    pub fn combined(parts: impl IntoIterator<Item = Self>, how: Combine) -> Option<Self> {
        let parts: Vec<Self> = parts.into_iter().collect();
        let scores: Option<Vec<f64>> = parts.iter().map(Self::score).collect();
        match (how, scores) {
            (Combine::Mean | Combine::Pooled, Some(scores)) if scores.len() > 1 => {
                let score = scores.iter().sum::<f64>() / scores.len() as f64;
                Some(Self::Verdict(Verdict { label: None, values: BTreeMap::new(), score }))
            }
            _ => parts.into_iter().reduce(Self::worse),
        }
    }

    /// The worse of two; among those without a verdict, the one that says most about us.
    fn worse(self, other: Self) -> Self {
        let rank = |outcome: &Self| match outcome {
            Self::Verdict(_) => 0,
            Self::Missing { .. } => 1,
            Self::Abstained { .. } => 2,
            Self::Failed { .. } => 3,
        };
        match rank(&self).cmp(&rank(&other)) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal if other.score() < self.score() => other,
            std::cmp::Ordering::Equal => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(score: f64) -> Outcome {
        Outcome::Verdict(Verdict::of_label(format!("label {score}"), score))
    }

    fn worst<const N: usize>(parts: [Outcome; N]) -> Option<Outcome> {
        Outcome::combined(parts, Combine::Worst)
    }

    #[test]
    fn the_worst_part_decides_and_a_part_without_a_verdict_leaves_none() {
        assert_eq!(worst([verdict(100.0), verdict(0.0), verdict(66.0)]), Some(verdict(0.0)));
        let abstained = Outcome::Abstained { reason: "no answer".into() };
        let failed = Outcome::Failed { reason: "server".into() };
        assert_eq!(worst([verdict(0.0), abstained.clone()]), Some(abstained.clone()));
        assert_eq!(worst([failed.clone(), abstained]), Some(failed));
        assert_eq!(worst([]), None);
    }

    #[test]
    fn a_mean_is_of_all_parts_or_there_is_none() {
        for how in [Combine::Mean, Combine::Pooled] {
            let combined = |parts: Vec<Outcome>| Outcome::combined(parts, how);
            let mean = combined(vec![verdict(100.0), verdict(0.0), verdict(50.0)]).unwrap();
            assert_eq!((mean.score(), mean.label()), (Some(50.0), None));
            assert_eq!(combined(vec![verdict(100.0)]), Some(verdict(100.0)), "one part is itself");
            let failed = Outcome::Failed { reason: "server".into() };
            assert_eq!(combined(vec![verdict(100.0), failed.clone()]), Some(failed));
            assert_eq!(combined(Vec::new()), None);
        }
    }
}

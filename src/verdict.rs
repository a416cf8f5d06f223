//! How a judgement can end. A failed judgement is never a number.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of a judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum Outcome {
    /// The judge gave a label.
    Verdict {
        /// One of the criterion's labels.
        label: String,
        /// What the label is worth, 0 to 100.
        score: f64,
    },
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
            Self::Verdict { .. } => "verdict",
            Self::Abstained { .. } => "abstained",
            Self::Failed { .. } => "failed",
            Self::Missing { .. } => "missing",
        }
    }

    /// The label, if there is a verdict.
    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Verdict { label, .. } => Some(label),
            _ => None,
        }
    }

    /// The score, if there is a verdict.
    pub fn score(&self) -> Option<f64> {
        match self {
            Self::Verdict { score, .. } => Some(*score),
            _ => None,
        }
    }

    /// Why there is no verdict.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Verdict { .. } => None,
            Self::Abstained { reason } | Self::Failed { reason } | Self::Missing { reason } => {
                Some(reason)
            }
        }
    }

    /// The outcome of a whole whose parts each have one: the worst verdict. A part without a
    /// verdict leaves the whole without one, since it might have been worse still.
    pub fn worst(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        // Later in this order wins; among verdicts the lower score does.
        let rank = |outcome: &Self| match outcome {
            Self::Verdict { .. } => 0,
            Self::Missing { .. } => 1,
            Self::Abstained { .. } => 2,
            Self::Failed { .. } => 3,
        };
        parts.into_iter().reduce(|a, b| match rank(&a).cmp(&rank(&b)) {
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Equal if b.score() < a.score() => b,
            std::cmp::Ordering::Equal => a,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(score: f64) -> Outcome {
        Outcome::Verdict { label: format!("label {score}"), score }
    }

    #[test]
    fn the_worst_part_decides_and_a_part_without_a_verdict_leaves_none() {
        assert_eq!(
            Outcome::worst([verdict(100.0), verdict(0.0), verdict(66.0)]),
            Some(verdict(0.0))
        );
        let abstained = Outcome::Abstained { reason: "no answer".into() };
        let failed = Outcome::Failed { reason: "server".into() };
        assert_eq!(Outcome::worst([verdict(0.0), abstained.clone()]), Some(abstained.clone()));
        assert_eq!(Outcome::worst([failed.clone(), abstained]), Some(failed));
        assert_eq!(Outcome::worst([]), None);
    }
}

//! Score files of others: what their mean hides. A reply that could not be read and was scored all the
//! same, items that are missing or stand twice, one rater under several names.
//!
//! `forms` reads what others write into [`Score`]s; everything else is the same for all of them.

mod checks;
mod forms;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use self::forms::read;
use crate::stats::Coverage;

/// One number that somebody gave, or should have given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Score {
    /// What was scored.
    pub(crate) item: String,
    /// By what.
    pub(crate) metric: String,
    /// The number that the file has, if it has one.
    pub(crate) value: Option<f64>,
    /// What the judge wrote.
    pub(crate) reply: Reply,
    /// What went wrong, where the file says so.
    pub(crate) error: Option<String>,
    /// The line or record.
    pub(crate) place: usize,
}

/// What a file keeps of a judge's words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Reply {
    /// Nothing: whether an answer could be read cannot be told.
    #[default]
    NotKept,
    /// The reasons it gave.
    Reasons(String),
    /// All of it: the score must stand in it.
    Whole(String),
}

/// A file of scores.
#[derive(Debug, Default)]
pub(crate) struct Scores {
    /// What it looks like.
    pub(crate) form: &'static str,
    /// The lowest and the highest score that there is.
    pub(crate) scale: Option<[f64; 2]>,
    pub(crate) scores: Vec<Score>,
    /// The ratings of each rater by item, where it is people who rated.
    pub(crate) raters: BTreeMap<String, BTreeMap<String, String>>,
    /// Lines that are no records.
    pub(crate) unreadable: Vec<String>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Audit {
    /// What the file looks like.
    pub(crate) form: &'static str,
    pub(crate) items: usize,
    /// The lowest and the highest score that there is, where it is known.
    pub(crate) scale: Option<[f64; 2]>,
    pub(crate) metrics: Vec<MetricAudit>,
    pub(crate) findings: Vec<Finding>,
    /// What could not be looked at.
    pub(crate) notes: Vec<String>,
    /// Whether the numbers can be trusted, as far as the file tells.
    pub(crate) trusted: bool,
}

/// One metric: its mean as the file has it, and what is known of it.
#[derive(Debug, Serialize)]
pub(crate) struct MetricAudit {
    pub(crate) metric: String,
    /// The mean over all numbers in the file.
    pub(crate) mean: Option<f64>,
    /// Scores that rest on an answer, of all that there should be.
    pub(crate) coverage: Coverage,
    /// The mean over these.
    pub(crate) mean_of_answers: Option<f64>,
    /// What the mean over all could be at least and at most, whatever the missing answers are.
    pub(crate) bounds: Option<[f64; 2]>,
}

/// Something that makes a number worth less than it looks.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: FindingKind,
    /// How often.
    pub(crate) count: usize,
    /// What it is, and what it does to the mean.
    pub(crate) message: String,
    /// The first of them.
    pub(crate) examples: Vec<String>,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingKind {
    /// No answer, and the lowest score.
    FailureScoredLowest,
    /// No answer, and some score.
    FailureScoredAnyhow,
    /// The reply says another score.
    OtherThanReply,
    /// Not on the scale.
    OffScale,
    /// No score.
    MissingScore,
    /// An item that should be there and is not.
    MissingItem,
    /// The same item twice, with the same score.
    Duplicate,
    /// The same item twice, with another score.
    Contradiction,
    /// Two raters who always say the same.
    RepeatedRater,
    /// A part of the score failed and was left out.
    PartLeftOut,
    /// No record.
    Unreadable,
}

impl Audit {
    /// Looks through scores; `expected` are the items that there should be, where somebody says so.
    pub(crate) fn of(file: &Scores, expected: Option<&[String]>) -> Self {
        let checked = checks::check(file, expected);
        let mut metrics: BTreeMap<&str, Vec<(&Score, bool)>> = BTreeMap::new();
        for (score, good) in file.scores.iter().zip(&checked.good) {
            metrics.entry(&score.metric).or_default().push((score, *good));
        }
        let metrics = metrics
            .into_iter()
            .map(|(metric, scores)| metric_of(metric, &scores, checked.absent, file.scale))
            .collect();
        Self {
            form: file.form,
            items: checked.items,
            scale: file.scale,
            metrics,
            trusted: checked.findings.is_empty(),
            findings: checked.findings,
            notes: checked.notes,
        }
    }
}

fn metric_of(
    metric: &str,
    scores: &[(&Score, bool)],
    absent: usize,
    scale: Option<[f64; 2]>,
) -> MetricAudit {
    let given: Vec<f64> = scores.iter().filter_map(|(score, _)| score.value).collect();
    let good: Vec<f64> =
        scores.iter().filter(|(_, good)| *good).filter_map(|(score, _)| score.value).collect();
    let all = scores.len() + absent;
    let mean = |numbers: &[f64]| crate::stats::mean(numbers).ok();
    let bounds = scale.filter(|_| all > 0).map(|ends| {
        let unknown = (all - good.len()) as f64;
        ends.map(|end| (good.iter().sum::<f64>() + unknown * end) / all as f64)
    });
    MetricAudit {
        metric: metric.to_owned(),
        mean: mean(&given),
        coverage: Coverage { answered: good.len(), all },
        mean_of_answers: mean(&good),
        bounds,
    }
}

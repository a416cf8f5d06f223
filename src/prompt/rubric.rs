//! What a pack says about judging, without its words: criteria, composite scores, how to report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::criterion::{Criterion, Skip};
use super::error::PromptError;
use super::parse;
use super::report::ReportHints;
use super::score::Composite;
use super::source::Files;
use crate::case::Facts;
use crate::verdict::Verdict;

/// The criteria of a pack and what belongs to them: all that an analysis needs to know of it.
#[derive(Debug, Clone, Serialize)]
pub struct Rubric {
    /// The variant of the pack, where one was chosen.
    pub variant: Option<String>,
    /// By picture of a case: the name that a model reads.
    pub pictures: BTreeMap<String, String>,
    /// In the pack's order.
    pub criteria: Vec<Criterion>,
    /// In the pack's order.
    pub composites: Vec<Composite>,
    /// How reports show the scores.
    pub report: ReportHints,
}

impl Rubric {
    /// The rubric of a pack of these files, in this variant; templates are not looked at.
    pub fn of(files: &Files, variant: Option<&str>) -> Result<Self, PromptError> {
        parse::rubric(files, variant).map_err(PromptError::Wrong)
    }

    /// The criterion of this id.
    pub fn criterion(&self, id: &str) -> Option<&Criterion> {
        self.criteria.iter().find(|criterion| criterion.id == id)
    }

    /// The composites of a case of which this is known, each with its score; `None` where one of its
    /// criteria has none.
    pub fn composites_of<'a>(
        &'a self,
        facts: &Facts,
        score: impl Fn(&str) -> Option<f64>,
    ) -> Vec<(&'a Composite, Option<f64>)> {
        let applying = self.composites.iter().filter_map(|one| Some((one, one.formula(facts)?)));
        applying
            .map(|(one, formula)| (one, formula.worth(&one.scale, &self.criteria, &score)))
            .collect()
    }

    /// How many criteria decide, one after the other, whether this one is asked.
    pub fn deciders(&self, id: &str) -> usize {
        let decider = |id: &str| Some(self.criterion(id)?.skip.as_ref()?.criterion.as_str());
        // A circle cannot be: a pack with one is refused.
        std::iter::successors(decider(id), |id| decider(id)).take(self.criteria.len()).count()
    }
}

impl Skip {
    /// The verdict where the other criterion, worth this, has decided.
    pub fn decided_by(&self, other: f64) -> Option<Verdict> {
        (other <= self.at_most).then(|| Verdict {
            label: None,
            values: BTreeMap::new(),
            score: self.worth,
        })
    }
}

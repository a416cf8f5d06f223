//! What has a score in every cell of a report: the criteria that were judged, and the composites over
//! them.

use serde::Serialize;

use super::judged::JudgedResult;
use super::model::{self, CompositeName, CriterionName};
use super::scores::{self, EditorScores};
use crate::prompt::{Composite, CompositeFunction, Formula, Rubric, Scale};

/// A criterion, or a composite score.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// What was judged.
    Criterion(CriterionName),
    /// A composite that is made case by case, as products must be, and what differs between cases.
    PerCase(Composite),
    /// A composite that is the mean of the criteria's own scores, which may rest on other cases: the
    /// places of its criteria among the columns.
    OfScores(Composite, Vec<usize>),
}

impl Column {
    /// All columns: the criteria first, then the composites, with the formulas whose criteria were all
    /// judged.
    pub(super) fn all(criteria: &[CriterionName], rubric: &Rubric) -> Vec<Self> {
        let mut columns: Vec<Self> = criteria.iter().cloned().map(Self::Criterion).collect();
        for composite in &rubric.composites {
            let place = |id: &String| criteria.iter().position(|known| known.id == *id);
            let places = |one: &Formula| one.of.iter().map(place).collect::<Option<Vec<usize>>>();
            let mut judged = composite.clone();
            judged.formulas.retain(|one| places(one).is_some());
            let mean_of_all = match judged.formulas.as_slice() {
                [] => continue,
                [one] if one.function == CompositeFunction::Mean && one.applies.is_empty() => {
                    places(one)
                }
                _ => None,
            };
            columns.push(match mean_of_all {
                Some(places) => Self::OfScores(judged, places),
                None => Self::PerCase(judged),
            });
        }
        columns
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::Criterion(criterion) => &criterion.id,
            Self::PerCase(composite) | Self::OfScores(composite, _) => &composite.id,
        }
    }

    pub(super) fn scale(&self) -> Scale {
        match self {
            Self::Criterion(criterion) => criterion.scale,
            Self::PerCase(composite) | Self::OfScores(composite, _) => composite.scale,
        }
    }

    /// The name of a composite, and what it is made of in words.
    pub(super) fn composite_name(&self) -> Option<CompositeName> {
        let (Self::PerCase(composite) | Self::OfScores(composite, _)) = self else { return None };
        let formula = |one: &Formula| match one.applies.as_slice() {
            [] => one.to_string(),
            applies => {
                let values: Vec<&str> = applies.iter().map(|one| one.value.as_str()).collect();
                format!("{one} ({})", values.join(", "))
            }
        };
        let formulas: Vec<String> = composite.formulas.iter().map(formula).collect();
        let each = if matches!(self, Self::PerCase(_)) { "case by case " } else { "" };
        let made_of = format!("{each}{}", formulas.join("; "));
        Some(CompositeName {
            id: composite.id.clone(),
            name: composite.name.clone(),
            made_of,
            scale: composite.scale,
        })
    }
}

/// The same scores by another fact.
#[derive(Debug, Clone, Serialize)]
pub struct Grouping {
    /// The fact.
    pub by: String,
    /// Its values, in the pack's order.
    pub types: Vec<String>,
    /// The scores of each editor, in the order of the group's editors.
    pub editors: Vec<EditorScores>,
}

impl Grouping {
    /// The groupings that the pack wants besides `by`, where the cases have more than one value.
    pub(super) fn all(
        lines: &[JudgedResult<'_>],
        columns: &[Column],
        by: &str,
        order: &[EditorScores],
        rubric: &Rubric,
    ) -> Vec<Self> {
        let facts = rubric.report.also.iter().chain(&rubric.report.group);
        let mut all = Vec::new();
        for fact in facts.filter(|fact| *fact != by) {
            let types = model::values(lines, fact, rubric);
            if types.len() < 2 {
                continue;
            }
            let mut editors = scores::editors(lines, columns, fact, &types, rubric);
            let place = |one: &EditorScores| order.iter().position(|e| e.editor == one.editor);
            editors.sort_by_key(place);
            all.push(Self { by: fact.clone(), types, editors });
        }
        all
    }
}

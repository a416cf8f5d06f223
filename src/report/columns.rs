//! What has a score in every cell of a report: the criteria that were judged, and the composites over
//! them.

use serde::Serialize;

use super::judged::Judged;
use super::model::{self, CompositeName, CriterionName};
use super::scores::{self, EditorScores};
use crate::prompt::{Composite, CompositeFunction, Rubric, Scale};

/// A criterion, or a composite score.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// What was judged.
    Criterion(CriterionName),
    /// A composite that is made case by case, as products must be.
    PerCase(Composite),
    /// A composite that is the mean of the criteria's own scores, which may rest on other cases: the
    /// places of its criteria among the columns.
    OfScores(Composite, Vec<usize>),
}

impl Column {
    /// All columns: the criteria first, then the composites whose criteria were all judged.
    pub(super) fn all(criteria: &[CriterionName], rubric: &Rubric) -> Vec<Self> {
        let mut columns: Vec<Self> = criteria.iter().cloned().map(Self::Criterion).collect();
        for composite in &rubric.composites {
            let place = |id: &String| criteria.iter().position(|known| known.id == *id);
            let Some(places) = composite.of.iter().map(place).collect::<Option<Vec<_>>>() else {
                continue;
            };
            columns.push(match composite.function {
                CompositeFunction::Mean => Self::OfScores(composite.clone(), places),
                CompositeFunction::Product { .. } => Self::PerCase(composite.clone()),
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
        let of: Vec<String> = composite.of.iter().map(|id| id.to_uppercase()).collect();
        let made_of = match composite.function {
            CompositeFunction::Mean => format!("the mean of {}", of.join(" and ")),
            CompositeFunction::Product { root: 0 | 1 } => {
                format!("case by case {}", of.join(" · "))
            }
            CompositeFunction::Product { root: 2 } => {
                format!("case by case the square root of {}", of.join(" · "))
            }
            CompositeFunction::Product { root } => {
                format!("case by case the {root}th root of {}", of.join(" · "))
                    .replace("3th", "3rd")
            }
        };
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
        lines: &[Judged<'_>],
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

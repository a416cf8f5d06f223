//! The cases of one editor, each with what every column says of it: what is resampled.

use std::collections::BTreeMap;

use super::columns::Column;
use super::judged::JudgedResult;
use crate::prompt::{Composite, Formula, Rubric};
use crate::stats::{Bootstrap, Interval};

/// What the repetitions of one case say in one column.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeats {
    /// What was to be judged: repetitions, or where parts are pooled all parts of them.
    pub judgements: usize,
    /// How much of it has a verdict.
    pub verdicts: usize,
    /// The sum of their scores.
    pub sum: f64,
}

impl Repeats {
    fn add(&mut self, score: Option<f64>) {
        self.judgements += 1;
        if let Some(score) = score {
            self.verdicts += 1;
            self.sum += score;
        }
    }
}

/// One case: what each column says of it. A mean of scores says nothing of single cases.
type Case = Vec<Repeats>;

/// The cases of one editor.
#[derive(Debug)]
pub(super) struct Cases {
    by_type: Vec<Vec<Case>>,
    /// By column: whether everything counts once, whichever case it belongs to.
    pooled: Vec<bool>,
    /// The types in the order in which their cases are drawn: those with one case come last, and are
    /// drawn together, since a single case cannot be drawn otherwise than it is.
    order: Vec<usize>,
}

impl Cases {
    pub(super) fn of(
        lines: &[&JudgedResult<'_>],
        columns: &[Column],
        by: &str,
        types: &[String],
        rubric: &Rubric,
    ) -> Self {
        let mut cases: Vec<BTreeMap<&str, Case>> = vec![BTreeMap::new(); types.len()];
        let place = |judged: &JudgedResult<'_>| {
            let kind = judged.fact(by);
            types.iter().position(|one| *one == kind)
        };
        for judged in lines {
            let column = columns.iter().position(|column| match column {
                Column::Criterion(criterion) => criterion.id == judged.criterion,
                _ => false,
            });
            let (Some(column), Some(kind)) = (column, place(judged)) else { continue };
            let case = cases[kind]
                .entry(&judged.line.case)
                .or_insert_with(|| vec![Repeats::default(); columns.len()]);
            for unit in &judged.units {
                case[column].add(unit.score);
            }
        }
        for (at, column) in columns.iter().enumerate() {
            let Column::PerCase(composite) = column else { continue };
            for (case, (judged, score)) in composites(lines, composite, rubric) {
                let Some(kind) = place(judged) else { continue };
                if let Some(case) = cases[kind].get_mut(case.0) {
                    case[at].add(score);
                }
            }
        }
        let by_type: Vec<Vec<Case>> =
            cases.into_iter().map(|cases| cases.into_values().collect()).collect();
        let mut order: Vec<usize> = (0..types.len()).collect();
        order.sort_by_key(|kind| by_type[*kind].len() < 2);
        let pooled = |column: &Column| match column {
            Column::Criterion(criterion) => criterion.pooled,
            _ => false,
        };
        Self { by_type, pooled: columns.iter().map(pooled).collect(), order }
    }

    /// How many cases.
    pub(super) fn count(&self) -> usize {
        self.by_type.iter().map(Vec::len).sum()
    }

    /// Whether everything counts once in this column, whichever case it belongs to.
    pub(super) fn pooled(&self, column: usize) -> bool {
        self.pooled[column]
    }

    /// What a column says of the cases of one type.
    pub(super) fn in_type(
        &self,
        column: usize,
        kind: usize,
    ) -> impl Iterator<Item = &Repeats> + Clone {
        self.by_type[kind].iter().map(move |case| &case[column])
    }

    /// What a column says of all cases.
    pub(super) fn all(&self, column: usize) -> impl Iterator<Item = &Repeats> + Clone {
        self.by_type.iter().flatten().map(move |case| &case[column])
    }

    /// The intervals of all `numbers` if other cases of the same types had been drawn. A case is drawn
    /// with all that is said of it.
    pub(super) fn intervals(
        &self,
        numbers: impl Fn(&Self, &[u32]) -> Vec<Option<f64>> + Sync,
    ) -> Vec<Option<Interval>> {
        let sizes = || self.order.iter().map(|kind| self.by_type[*kind].len());
        let mut strata: Vec<usize> = sizes().filter(|size| *size > 1).collect();
        strata.push(sizes().filter(|size| *size == 1).sum());
        strata.retain(|size| *size > 0);
        Bootstrap::default().stratified(&strata, |drawn| numbers(self, drawn))
    }

    /// The mean of each type and of all cases in a column, if each case had been drawn so often.
    pub(super) fn drawn(&self, column: usize, drawn: &[u32]) -> (Vec<Option<f64>>, Option<f64>) {
        let mut cells = vec![None; self.by_type.len()];
        let (mut all, mut rest) = (Weighted::default(), drawn);
        for kind in &self.order {
            let cases = &self.by_type[*kind];
            let (here, behind) = rest.split_at(cases.len());
            rest = behind;
            let mut sum = Weighted::default();
            for (case, times) in cases.iter().zip(here) {
                sum.add(&case[column], f64::from(*times), self.pooled[column]);
            }
            cells[*kind] = sum.mean();
            all.total += sum.total;
            all.weight += sum.weight;
        }
        (cells, all.mean())
    }
}

/// What a composite is worth in each repetition of each case that it applies to, with one of the
/// judgements that it is made of.
fn composites<'a>(
    lines: &'a [&'a JudgedResult<'a>],
    composite: &Composite,
    rubric: &Rubric,
) -> BTreeMap<(&'a str, u32), (&'a JudgedResult<'a>, Option<f64>)> {
    let mut by_case: BTreeMap<(&str, u32), (&Formula, Vec<&JudgedResult<'_>>)> = BTreeMap::new();
    for judged in lines {
        let applies = |one: &&Formula| judged.line.meets(&one.applies);
        let Some(formula) = composite.formulas.iter().find(applies) else { continue };
        if formula.of.contains(&judged.criterion) {
            let case = (judged.line.case.as_str(), judged.line.repeat);
            by_case.entry(case).or_insert((formula, Vec::new())).1.push(judged);
        }
    }
    let worth = |formula: &Formula, judged: &[&JudgedResult<'_>]| {
        let score = |id: &str| judged.iter().find(|one| one.criterion == id)?.score;
        formula.worth(&composite.scale, &rubric.criteria, score)
    };
    by_case
        .into_iter()
        .filter_map(|(case, (formula, judged))| {
            Some((case, (*judged.first()?, worth(formula, &judged))))
        })
        .collect()
}

#[derive(Default)]
struct Weighted {
    total: f64,
    weight: f64,
}

impl Weighted {
    fn add(&mut self, case: &Repeats, times: f64, pooled: bool) {
        if case.verdicts == 0 {
            return;
        }
        let count = case.verdicts as f64;
        let (sum, weight) = if pooled { (case.sum, count) } else { (case.sum / count, 1.0) };
        self.total += sum * times;
        self.weight += weight * times;
    }

    fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.total / self.weight)
    }
}

//! Scores per editor, criterion and type, with their bounds and intervals.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;

use super::judged::Judged;
use super::model::{Count, CriterionName, PrintedInterval, Score, TypeCount};
use super::points::Points;
use crate::stats::{Bootstrap, Interval};

/// All scores of one editor.
#[derive(Debug, Clone, Serialize)]
pub struct EditorScores {
    /// Who edited.
    pub editor: String,
    /// The mean of the criteria's averages; no score where one of them has none.
    pub overall: Score,
    /// The same for each type, in the group's order.
    pub overall_types: Vec<Score>,
    /// In the group's order.
    pub criteria: Vec<CriterionScores>,
}

/// The scores of one editor by one criterion.
#[derive(Debug, Clone, Serialize)]
pub struct CriterionScores {
    /// The criterion's id.
    pub criterion: String,
    /// The plain mean of the types that have a score.
    pub average: Score,
    /// The mean over all cases: types weigh as many cases as they have.
    pub weighted: Score,
    /// Each type, in the group's order.
    pub types: Vec<TypeScores>,
    /// How often each label was given, the worst first: what goes wrong.
    pub labels: Vec<Count>,
}

/// The scores of one editor by one criterion in one type.
#[derive(Debug, Clone, Serialize)]
pub struct TypeScores {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The score.
    pub score: Score,
    /// How often each label was given, the worst first.
    pub labels: Vec<Count>,
    /// Which lines of the run.
    #[serde(skip)]
    pub lines: Vec<usize>,
}

impl TypeScores {
    /// An empty one.
    fn new(kind: &str, criterion: &CriterionName) -> Self {
        Self {
            kind: kind.to_owned(),
            score: Score::default(),
            labels: no_labels(criterion),
            lines: Vec::new(),
        }
    }
}

fn no_labels(criterion: &CriterionName) -> Vec<Count> {
    criterion.labels.iter().map(|l| Count { name: l.name.clone(), count: 0 }).collect()
}

/// What the repetitions of one case by one criterion say.
#[derive(Debug, Clone, Copy, Default)]
struct Repeats {
    judgements: usize,
    verdicts: usize,
    sum: f64,
}

impl Repeats {
    fn mean(&self) -> Option<f64> {
        (self.verdicts > 0).then(|| self.sum / self.verdicts as f64)
    }

    /// The mean if what has no verdict were worth `filler`.
    fn filled(&self, filler: f64) -> Option<f64> {
        let missing = (self.judgements - self.verdicts) as f64;
        (self.judgements > 0).then(|| (self.sum + missing * filler) / self.judgements as f64)
    }
}

/// One case: what each criterion says of it.
type Case = Vec<Repeats>;

/// The scores of all editors, the best first.
pub(super) fn editors(
    lines: &[Judged<'_>],
    criteria: &[CriterionName],
    types: &[String],
) -> Vec<EditorScores> {
    let mut by_editor: BTreeMap<&str, Vec<&Judged<'_>>> = BTreeMap::new();
    for judged in lines {
        by_editor.entry(judged.editor).or_default().push(judged);
    }
    let by_editor: Vec<_> = by_editor.into_iter().collect();
    let mut editors: Vec<EditorScores> = by_editor
        .par_iter()
        .map(|(editor, lines)| scores_of(editor, lines, criteria, types))
        .collect();
    let rank = |editor: &EditorScores| {
        let one = editor.criteria.first().and_then(|scores| scores.average.score);
        std::cmp::Reverse((editor.overall.score, one))
    };
    editors.sort_by_key(rank);
    editors
}

fn scores_of(
    editor: &str,
    lines: &[&Judged<'_>],
    criteria: &[CriterionName],
    types: &[String],
) -> EditorScores {
    let mut cells: Vec<Vec<TypeScores>> = criteria
        .iter()
        .map(|criterion| types.iter().map(|kind| TypeScores::new(kind, criterion)).collect())
        .collect();
    let mut cases: Vec<BTreeMap<&str, Case>> = vec![BTreeMap::new(); types.len()];
    for judged in lines {
        let criterion = criteria.iter().position(|one| one.id == judged.criterion);
        let kind = types.iter().position(|one| one == judged.kind);
        let (Some(criterion), Some(kind)) = (criterion, kind) else { continue };
        let cell = &mut cells[criterion][kind];
        cell.lines.push(judged.index);
        let case = cases[kind]
            .entry(&judged.line.case)
            .or_insert_with(|| vec![Repeats::default(); criteria.len()]);
        let repeats = &mut case[criterion];
        repeats.judgements += 1;
        if let Some(label) = &judged.label {
            repeats.verdicts += 1;
            repeats.sum += label.score;
            if let Some(count) = cell.labels.iter_mut().find(|count| count.name == label.name) {
                count.count += 1;
            }
        }
    }
    let cases = Cases::new(cases);
    let mut intervals = cases.intervals(criteria.len()).into_iter();
    let mut with_interval = |mut score: Score| {
        let interval = intervals.next().flatten().filter(|_| score.score.is_some());
        score.interval = interval.map(|Interval { low, high }| PrintedInterval {
            low: Points::of(low),
            high: Points::of(high),
        });
        score
    };
    // In the order of `Cases::numbers`.
    let mut scores = Vec::new();
    for (place, mut types) in cells.into_iter().enumerate() {
        let mut labels = no_labels(&criteria[place]);
        for (cell, cases) in types.iter_mut().zip(&cases.by_type) {
            cell.score = with_interval(mean_of(cases.iter().map(|case| &case[place])));
            for (sum, count) in labels.iter_mut().zip(&cell.labels) {
                sum.count += count.count;
            }
        }
        let all = cases.by_type.iter().flatten();
        let weighted = with_interval(mean_of(all.map(|case| &case[place])));
        let average = with_interval(average_of(types.iter().map(|cell| &cell.score)));
        let criterion = criteria[place].id.clone();
        scores.push(CriterionScores { criterion, average, weighted, types, labels });
    }
    let overall = with_interval(overall_of(scores.iter().map(|scores| &scores.average)));
    let of_type = |kind: usize| overall_of(scores.iter().map(|scores| &scores.types[kind].score));
    let overall_types = (0..types.len()).map(|kind| with_interval(of_type(kind))).collect();
    EditorScores { editor: editor.to_owned(), overall, overall_types, criteria: scores }
}

/// The score of some cases: the mean of each case's own mean.
fn mean_of<'a>(cases: impl Iterator<Item = &'a Repeats> + Clone) -> Score {
    let judged = cases.filter(|case| case.judgements > 0);
    let exact = mean(judged.clone().filter_map(Repeats::mean));
    let filled = |filler| mean(judged.clone().filter_map(|case| case.filled(filler)));
    let n = judged.clone().map(|case| case.judgements).sum();
    let verdicts = judged.clone().map(|case| case.verdicts).sum();
    Score {
        cases: judged.clone().count(),
        n,
        verdicts,
        coverage: coverage(verdicts, n),
        score: exact.map(Points::of),
        exact,
        interval: None,
        worst: filled(0.0).map(Points::of),
        best: filled(100.0).map(Points::of),
        types: None,
    }
}

/// The plain mean of types. One without a verdict is not in it, but in the bounds.
fn average_of<'a>(types: impl Iterator<Item = &'a Score> + Clone) -> Score {
    let n = types.clone().map(|score| score.n).sum();
    let verdicts = types.clone().map(|score| score.verdicts).sum();
    let of = types.clone().count();
    Score {
        cases: types.clone().map(|score| score.cases).sum(),
        n,
        verdicts,
        coverage: coverage(verdicts, n),
        score: Points::mean(types.clone().filter_map(|score| score.score)),
        exact: mean(types.clone().filter_map(|score| score.exact)),
        interval: None,
        worst: Points::mean(types.clone().map(|score| score.worst.unwrap_or(Points::WORST))),
        best: Points::mean(types.clone().map(|score| score.best.unwrap_or(Points::BEST))),
        types: Some(TypeCount { scored: types.filter(|score| score.score.is_some()).count(), of }),
    }
}

/// The mean of all criteria, if all of them have a score and there are several.
fn overall_of<'a>(criteria: impl Iterator<Item = &'a Score> + Clone) -> Score {
    let mut overall = average_of(criteria.clone());
    overall.types = None;
    // The same edits, seen by each criterion.
    overall.cases = criteria.clone().map(|score| score.cases).max().unwrap_or(0);
    if criteria.clone().count() < 2 || criteria.clone().any(|score| score.score.is_none()) {
        (overall.score, overall.exact) = (None, None);
    }
    if overall.n == 0 {
        (overall.worst, overall.best) = (None, None);
    }
    overall
}

fn coverage(verdicts: usize, n: usize) -> Option<f64> {
    (n > 0).then(|| verdicts as f64 / n as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The cases of one editor.
struct Cases {
    by_type: Vec<Vec<Case>>,
}

impl Cases {
    fn new(by_type: Vec<BTreeMap<&str, Case>>) -> Self {
        Self { by_type: by_type.into_iter().map(|cases| cases.into_values().collect()).collect() }
    }

    /// The intervals of all scores if other cases of the same types had been drawn. A case is drawn
    /// with all that is said of it.
    fn intervals(&self, criteria: usize) -> Vec<Option<Interval>> {
        let strata: Vec<usize> = self.by_type.iter().map(Vec::len).collect();
        Bootstrap::default().stratified(&strata, |drawn| self.numbers(drawn, criteria))
    }

    /// The scores if each case had been drawn so often: by criterion those of the types, the weighted
    /// one and the average; then the overall one, and it for each type.
    fn numbers(&self, drawn: &[u32], criteria: usize) -> Vec<Option<f64>> {
        let mut numbers = Vec::with_capacity((criteria + 1) * (self.by_type.len() + 2));
        let mut averages = Vec::new();
        let mut by_type: Vec<Vec<Option<f64>>> = vec![Vec::new(); self.by_type.len()];
        for place in 0..criteria {
            let mut rest = drawn;
            let (mut all, mut average) = (Weighted::default(), Weighted::default());
            for (kind, cases) in self.by_type.iter().enumerate() {
                let (here, behind) = rest.split_at(cases.len());
                rest = behind;
                let mut sum = Weighted::default();
                let mut scored = 0;
                for (case, times) in cases.iter().zip(here) {
                    if let Some(mean) = case[place].mean() {
                        sum.add(mean, *times);
                        scored += 1;
                    }
                }
                // One case cannot tell how much others would differ, and hides it in every average.
                let mean = sum.mean().filter(|_| scored > 1);
                numbers.push(mean);
                by_type[kind].push(mean);
                all.total += if scored == 1 { f64::NAN } else { sum.total };
                all.count += sum.count;
                if scored > 0 {
                    average.add(mean.unwrap_or(f64::NAN), 1);
                }
            }
            numbers.push(all.mean());
            averages.push(average.mean());
            numbers.push(average.mean());
        }
        numbers.push(mean_of_all(&averages));
        numbers.extend(by_type.iter().map(|criteria| mean_of_all(criteria)));
        numbers
    }
}

#[derive(Default)]
struct Weighted {
    total: f64,
    count: u32,
}

impl Weighted {
    fn add(&mut self, value: f64, times: u32) {
        self.total += value * f64::from(times);
        self.count += times;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.total / f64::from(self.count)).filter(|mean| mean.is_finite())
    }
}

/// The mean of all values, if all are there.
fn mean_of_all(values: &[Option<f64>]) -> Option<f64> {
    let sum = values.iter().copied().sum::<Option<f64>>()?;
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

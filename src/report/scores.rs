//! Scores per editor, column and group of cases, with their bounds and intervals.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::cases::{Cases, Repeats};
use super::columns::Column;
use super::judged::JudgedResult;
use super::model::{Count, CriterionName, PrintedInterval, Score, TypeCount};
use super::points::Points;
use crate::prompt::{Average, Rubric, Scale};
use crate::stats::Interval;

/// All scores of one editor.
#[derive(Debug, Clone, Serialize)]
pub struct EditorScores {
    /// Who edited.
    pub editor: String,
    /// The pack's headline: a composite, or the only criterion there is; no score without one.
    pub overall: Score,
    /// The same for each type, in the group's order.
    pub overall_types: Vec<Score>,
    /// In the group's order.
    pub criteria: Vec<CriterionScores>,
    /// The composites, in the group's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub composites: Vec<CriterionScores>,
}

impl EditorScores {
    /// Verdicts of all judgements, by whichever criterion.
    pub(super) fn coverage(&self) -> Option<f64> {
        let all = || self.criteria.iter().map(|scores| &scores.weighted);
        coverage(all().map(|score| score.verdicts).sum(), all().map(|score| score.n).sum())
    }
}

/// The scores of one editor by one criterion, or of one composite.
#[derive(Debug, Clone, Serialize)]
pub struct CriterionScores {
    /// Its id.
    pub criterion: String,
    /// The mean that the pack wants: of the types that have a score, or of all cases.
    pub average: Score,
    /// The mean over all cases: types weigh as many cases as they have.
    pub weighted: Score,
    /// Where parts are pooled: the mean over the cases' own means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_case: Option<Score>,
    /// Each type, in the group's order.
    pub types: Vec<TypeScores>,
    /// How often each label was given, the worst first: what goes wrong.
    pub labels: Vec<Count>,
    /// Of an answer with several keys: what each is worth on the mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<KeyMean>,
}

/// The mean worth of one key of an answer, before any gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyMean {
    /// Its name.
    pub key: String,
    /// How many values count.
    pub n: usize,
    /// Their mean, from 0 to 1; absent where none counts.
    pub mean: Option<f64>,
}

/// The scores of one editor by one criterion in one type.
#[derive(Debug, Clone, Serialize)]
pub struct TypeScores {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The score.
    pub score: Score,
    /// Where parts are pooled: the mean over the cases' own means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_case: Option<Score>,
    /// How often each label was given, the worst first.
    pub labels: Vec<Count>,
    /// Which lines of the run.
    #[serde(skip)]
    pub lines: Vec<usize>,
}

/// The scores of all editors, the best first.
pub(super) fn editors(
    lines: &[JudgedResult<'_>],
    columns: &[Column],
    by: &str,
    types: &[String],
    rubric: &Rubric,
) -> Vec<EditorScores> {
    let mut by_editor: BTreeMap<&str, Vec<&JudgedResult<'_>>> = BTreeMap::new();
    for judged in lines {
        by_editor.entry(judged.editor).or_default().push(judged);
    }
    let asked = asked(lines, columns, by, types);
    let table =
        ScoreTable { columns, by, types, rubric, asked, levels: levels(lines, by, types, rubric) };
    let by_editor: Vec<_> = by_editor.into_iter().collect();
    let mut editors: Vec<EditorScores> =
        by_editor.par_iter().map(|(editor, lines)| table.scores_of(editor, lines)).collect();
    let rank = |editor: &EditorScores| {
        let one = editor.criteria.first().and_then(|scores| scores.average.score);
        std::cmp::Reverse((editor.overall.score, one))
    };
    editors.sort_by_key(rank);
    editors
}

/// By column and type: whether anything of it was to be judged. What a criterion does not apply to is
/// no gap in its coverage.
fn asked(
    lines: &[JudgedResult<'_>],
    columns: &[Column],
    by: &str,
    types: &[String],
) -> Vec<Vec<bool>> {
    let judged: BTreeSet<(&str, String)> =
        lines.iter().map(|one| (one.criterion.as_str(), one.fact(by).into_owned())).collect();
    let is_asked = |id: &str, kind: &String| judged.contains(&(id, kind.clone()));
    let of = |column: &Column, kind: &String| match column {
        Column::Criterion(criterion) => is_asked(&criterion.id, kind),
        Column::PerCase(composite) | Column::OfScores(composite, _) => {
            composite.formulas.iter().any(|one| one.of.iter().all(|id| is_asked(id, kind)))
        }
    };
    columns.iter().map(|column| types.iter().map(|kind| of(column, kind)).collect()).collect()
}

/// The places of the types within each value of the fact that the pack averages within.
fn levels(
    lines: &[JudgedResult<'_>],
    by: &str,
    types: &[String],
    rubric: &Rubric,
) -> Vec<Vec<usize>> {
    let all = || vec![(0..types.len()).collect()];
    let Some(within) = rubric.report.within.as_deref().filter(|within| *within != by) else {
        return all();
    };
    let mut levels: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for judged in lines {
        let kind = judged.fact(by);
        if let Some(place) = types.iter().position(|one| *one == kind) {
            levels.entry(judged.fact(within).into_owned()).or_default().insert(place);
        }
    }
    levels.into_values().map(|places| places.into_iter().collect()).collect()
}

/// What all editors of a group share.
struct ScoreTable<'a> {
    columns: &'a [Column],
    by: &'a str,
    types: &'a [String],
    rubric: &'a Rubric,
    asked: Vec<Vec<bool>>,
    levels: Vec<Vec<usize>>,
}

impl ScoreTable<'_> {
    fn scores_of(&self, editor: &str, lines: &[&JudgedResult<'_>]) -> EditorScores {
        let cases = Cases::of(lines, self.columns, self.by, self.types, self.rubric);
        let deviations = self.deviations(lines);
        let intervals = cases.intervals(|cases, drawn| self.numbers(cases, drawn));
        let mut place = 0;
        let mut finished = |mut score: Score, decimals: usize| {
            let interval = intervals.get(place).copied().flatten();
            // One case cannot tell how much others would differ.
            let interval = interval.filter(|_| score.score.is_some() && score.cases > 1);
            score.interval = interval.map(|Interval { low, high }| PrintedInterval {
                low: Points::of(low, decimals),
                high: Points::of(high, decimals),
            });
            score.deviation = deviations.get(place).copied().flatten();
            place += 1;
            score
        };
        // In the order of `Self::numbers`.
        let mut all: Vec<CriterionScores> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let scale = column.scale();
            let mut finish = |score| finished(score, scale.decimals);
            let scores = match column {
                Column::OfScores(_, of) => {
                    let parts = of.iter().map(|place| &all[*place]);
                    let average = finish(mean_of_scores(parts.clone().map(|one| &one.average)));
                    let cell = |kind: usize| {
                        let scores = parts.clone().map(|one| &one.types[kind].score);
                        mean_of_scores(scores)
                    };
                    let cells: Vec<Score> =
                        (0..self.types.len()).map(cell).map(&mut finish).collect();
                    let weighted = mean_of_scores(parts.clone().map(|one| &one.weighted));
                    self.composite(column, average, weighted, cells)
                }
                Column::Criterion(_) | Column::PerCase(_) => {
                    let cells: Vec<Score> = (0..self.types.len())
                        .map(|kind| {
                            finish(mean_of(cases.in_type(at, kind), scale, cases.pooled(at)))
                        })
                        .collect();
                    let weighted = finish(mean_of(cases.all(at), scale, cases.pooled(at)));
                    let average = finish(match self.rubric.report.average {
                        Average::Groups => self.average_of(at, &cells, scale),
                        Average::Cases => mean_of(cases.all(at), scale, cases.pooled(at)),
                    });
                    self.composite(column, average, weighted, cells)
                }
            };
            all.push(scores);
        }
        self.add_counts(&mut all, lines);
        self.add_per_case(&mut all, &cases);
        let composites = all.split_off(
            self.columns.iter().filter(|column| matches!(column, Column::Criterion(_))).count(),
        );
        let headline = self.headline(&all, &composites);
        let (overall, overall_types) = match headline {
            Some(scores) => {
                let types = scores.types.iter().map(|cell| cell.score.clone()).collect();
                (scores.average.clone(), types)
            }
            None => {
                let no_score = |score: Score| Score { score: None, exact: None, ..score };
                let of = |kind: usize| {
                    no_score(mean_of_scores(all.iter().map(|one| &one.types[kind].score)))
                };
                let whole = no_score(mean_of_scores(all.iter().map(|one| &one.average)));
                (whole, (0..self.types.len()).map(of).collect())
            }
        };
        EditorScores {
            editor: editor.to_owned(),
            overall,
            overall_types,
            criteria: all,
            composites,
        }
    }

    /// What stands first: what the pack says, else its first composite.
    fn headline<'a>(
        &self,
        criteria: &'a [CriterionScores],
        composites: &'a [CriterionScores],
    ) -> Option<&'a CriterionScores> {
        let named = self.rubric.report.headline.as_deref();
        let named = named
            .and_then(|id| criteria.iter().chain(composites).find(|scores| scores.criterion == id));
        named.or(composites.first())
    }

    fn composite(
        &self,
        column: &Column,
        average: Score,
        weighted: Score,
        cells: Vec<Score>,
    ) -> CriterionScores {
        let cell = |(kind, score): (&String, Score)| TypeScores {
            kind: kind.clone(),
            score,
            per_case: None,
            labels: no_labels(column),
            lines: Vec::new(),
        };
        CriterionScores {
            criterion: column.id().to_owned(),
            average,
            weighted,
            per_case: None,
            types: self.types.iter().zip(cells).map(cell).collect(),
            labels: no_labels(column),
            keys: Vec::new(),
        }
    }

    /// Which lines and labels stand behind each cell.
    fn add_counts(&self, all: &mut [CriterionScores], lines: &[&JudgedResult<'_>]) {
        let mut keys: Vec<BTreeMap<&str, (usize, f64)>> = vec![BTreeMap::new(); all.len()];
        for judged in lines {
            let at = self.columns.iter().position(|column| column.id() == judged.criterion);
            let kind = judged.fact(self.by);
            let kind = self.types.iter().position(|one| *one == kind);
            let (Some(at), Some(kind)) = (at, kind) else { continue };
            let scores = &mut all[at];
            scores.types[kind].lines.push(judged.index);
            for label in judged.units.iter().filter_map(|unit| unit.label.as_ref()) {
                for counts in [&mut scores.types[kind].labels, &mut scores.labels] {
                    if let Some(count) = counts.iter_mut().find(|count| count.name == label.name) {
                        count.count += 1;
                    }
                }
            }
            let known = self.rubric.criterion(&judged.criterion).map_or(&[][..], |c| c.keys());
            for key in known {
                let sum = keys[at].entry(&key.name).or_default();
                let given = judged.line.values.get(&key.name);
                if let Some(worth) = given.and_then(|given| key.worth_of(given)) {
                    *sum = (sum.0 + 1, sum.1 + worth);
                }
            }
        }
        for (scores, keys) in all.iter_mut().zip(keys) {
            let mean = |(key, (n, sum)): (&str, (usize, f64))| KeyMean {
                key: key.to_owned(),
                n,
                mean: (n > 0).then(|| sum / n as f64),
            };
            scores.keys = keys.into_iter().map(mean).collect();
        }
    }

    /// Where parts are pooled, what the means are if every case counts once.
    fn add_per_case(&self, all: &mut [CriterionScores], cases: &Cases) {
        for (at, column) in self.columns.iter().enumerate() {
            if !cases.pooled(at) {
                continue;
            }
            let scale = column.scale();
            all[at].per_case = Some(mean_of(cases.all(at), scale, false));
            for (kind, cell) in all[at].types.iter_mut().enumerate() {
                cell.per_case = Some(mean_of(cases.in_type(at, kind), scale, false));
            }
        }
    }

    /// The plain mean of the types. One without a verdict is not in it, but in the bounds.
    fn average_of(&self, at: usize, cells: &[Score], scale: Scale) -> Score {
        let asked = || (0..cells.len()).filter(|kind| self.asked[at][*kind]);
        let scores = || asked().map(|kind| &cells[kind]);
        let n = scores().map(|score| score.n).sum();
        let verdicts = scores().map(|score| score.verdicts).sum();
        let of_levels = |of: &dyn Fn(&Score) -> Option<Points>| {
            Points::mean(self.levels.iter().filter_map(|level| {
                Points::mean(
                    asked().filter(|kind| level.contains(kind)).filter_map(|kind| of(&cells[kind])),
                )
            }))
        };
        let exact = mean(self.levels.iter().filter_map(|level| {
            let inside = asked().filter(|kind| level.contains(kind));
            mean(inside.filter_map(|kind| cells[kind].exact))
        }));
        let (worst, best) = (Points::of(scale.lowest, scale.decimals), best(scale));
        Score {
            cases: scores().map(|score| score.cases).sum(),
            n,
            verdicts,
            coverage: coverage(verdicts, n),
            score: of_levels(&|score| score.score),
            exact,
            worst: of_levels(&|score| Some(score.worst.unwrap_or(worst))),
            best: best.and_then(|best| of_levels(&|score| Some(score.best.unwrap_or(best)))),
            types: Some(TypeCount {
                scored: scores().filter(|score| score.score.is_some()).count(),
                of: asked().count(),
            }),
            ..Score::default()
        }
    }

    /// The scores if each case had been drawn so often: by column those of the types, the mean over
    /// cases and the average; of a mean of scores the average, and that for each type.
    fn numbers(&self, cases: &Cases, drawn: &[u32]) -> Vec<Option<f64>> {
        let mut numbers = Vec::new();
        let mut averages: Vec<Option<f64>> = Vec::new();
        let mut by_type: Vec<Vec<Option<f64>>> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let (cells, average) = match column {
                Column::OfScores(_, of) => {
                    let average = mean_of_all(of.iter().map(|place| averages[*place]));
                    numbers.push(average);
                    let cell =
                        |kind: usize| mean_of_all(of.iter().map(|place| by_type[*place][kind]));
                    let cells: Vec<_> = (0..self.types.len()).map(cell).collect();
                    numbers.extend(&cells);
                    (cells, average)
                }
                Column::Criterion(_) | Column::PerCase(_) => {
                    let (cells, weighted) = cases.drawn(at, drawn);
                    let average = match self.rubric.report.average {
                        Average::Cases => weighted,
                        Average::Groups => mean(self.levels.iter().filter_map(|level| {
                            mean(level.iter().filter_map(|kind| cells[*kind]))
                        })),
                    };
                    numbers.extend(&cells);
                    numbers.extend([weighted, average]);
                    (cells, average)
                }
            };
            averages.push(average);
            by_type.push(cells);
        }
        numbers
    }

    /// The sample deviation of every number over the repetitions.
    fn deviations(&self, lines: &[&JudgedResult<'_>]) -> Vec<Option<f64>> {
        let repeats: BTreeSet<u32> = lines.iter().map(|judged| judged.line.repeat).collect();
        if repeats.len() < 2 {
            return Vec::new();
        }
        let of = |repeat: u32| {
            let own: Vec<&JudgedResult<'_>> =
                lines.iter().filter(|judged| judged.line.repeat == repeat).copied().collect();
            let cases = Cases::of(&own, self.columns, self.by, self.types, self.rubric);
            let once = vec![1; cases.count()];
            self.numbers(&cases, &once)
        };
        let each: Vec<Vec<Option<f64>>> = repeats.into_iter().map(of).collect();
        let deviation = |place: usize| {
            let values: Vec<f64> = each.iter().filter_map(|one| one[place]).collect();
            let mean = mean(values.iter().copied()).filter(|_| values.len() > 1)?;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            Some((squares / (values.len() - 1) as f64).sqrt())
        };
        (0..each[0].len()).map(deviation).collect()
    }
}

fn no_labels(column: &Column) -> Vec<Count> {
    let Column::Criterion(CriterionName { labels, .. }) = column else { return Vec::new() };
    labels.iter().map(|label| Count { name: label.name.clone(), count: 0 }).collect()
}

fn best(scale: Scale) -> Option<Points> {
    scale.highest.map(|highest| Points::of(highest, scale.decimals))
}

/// The score of some cases: the mean of each case's own mean, or of all that is pooled.
fn mean_of<'a>(
    cases: impl Iterator<Item = &'a Repeats> + Clone,
    scale: Scale,
    pooled: bool,
) -> Score {
    let judged = cases.filter(|case| case.judgements > 0);
    let of = |share: &dyn Fn(&Repeats) -> Option<(f64, usize)>| {
        let (total, count) =
            judged.clone().filter_map(share).fold((0.0, 0), |(total, count), (sum, weight)| {
                match pooled {
                    true => (total + sum, count + weight),
                    false => (total + sum / weight as f64, count + 1),
                }
            });
        (count > 0).then(|| total / count as f64)
    };
    let exact = of(&|case| (case.verdicts > 0).then_some((case.sum, case.verdicts)));
    let filled = |filler: f64| {
        of(&|case| {
            Some((case.sum + (case.judgements - case.verdicts) as f64 * filler, case.judgements))
        })
    };
    let n = judged.clone().map(|case| case.judgements).sum();
    let verdicts = judged.clone().map(|case| case.verdicts).sum();
    let printed = |value: f64| Points::of(value, scale.decimals);
    Score {
        cases: judged.clone().count(),
        n,
        verdicts,
        coverage: coverage(verdicts, n),
        score: exact.map(printed),
        exact,
        worst: filled(scale.lowest).map(printed),
        best: scale.highest.and_then(filled).map(printed),
        ..Score::default()
    }
}

/// The mean of several scores, if there are several and all of them are there.
fn mean_of_scores<'a>(scores: impl Iterator<Item = &'a Score> + Clone) -> Score {
    let n = scores.clone().map(|score| score.n).sum();
    let verdicts = scores.clone().map(|score| score.verdicts).sum();
    let all = scores.clone().count() > 1 && scores.clone().all(|score| score.score.is_some());
    let bound = |of: fn(&Score) -> Option<Points>| {
        let known: Option<Vec<Points>> = scores.clone().map(of).collect();
        known.and_then(Points::mean)
    };
    Score {
        // The same edits, seen by each criterion.
        cases: scores.clone().map(|score| score.cases).max().unwrap_or(0),
        n,
        verdicts,
        coverage: coverage(verdicts, n),
        score: Points::mean(scores.clone().filter_map(|score| score.score)).filter(|_| all),
        exact: mean(scores.clone().filter_map(|score| score.exact)).filter(|_| all),
        worst: bound(|score| score.worst),
        best: bound(|score| score.best),
        ..Score::default()
    }
}

fn coverage(verdicts: usize, n: usize) -> Option<f64> {
    (n > 0).then(|| verdicts as f64 / n as f64)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The mean of all values, if all are there.
fn mean_of_all(values: impl Iterator<Item = Option<f64>> + Clone) -> Option<f64> {
    let count = values.clone().count();
    let sum = values.sum::<Option<f64>>()?;
    (count > 0).then(|| sum / count as f64)
}

//! What an experiment says: how each cell did, and whether it differs from the baseline by more than
//! luck.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::prompt::Pack;
use crate::stats::{self, Bootstrap, Coverage, Interval, Sum};
use crate::trace::{OutcomeName, ResultLine};

/// How often an experiment without any difference may call one: over all comparisons together.
pub const FALSE_ALARMS: f64 = 0.05;

/// An edit under a criterion: case, editor, criterion.
pub type Unit = (String, String, String);

/// What is right, by edit and criterion.
pub type Truth = BTreeMap<Unit, String>;

/// The results of one cell.
#[derive(Debug, Clone)]
pub struct CellLines {
    /// The cell's name.
    pub name: String,
    /// Its judgements.
    pub lines: Vec<ResultLine>,
}

/// How a cell did under one criterion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellScore {
    /// The cell's name.
    pub cell: String,
    /// The criterion.
    pub criterion: String,
    /// Judgements with a verdict, of all.
    pub coverage: Coverage,
    /// The part of the verdicts that is right, where the truth is known.
    pub agreement: Option<Estimate>,
    /// How many labels a verdict is off on average.
    pub off_by: Option<f64>,
    /// US dollars a judgement; absent where one is not known.
    pub cost: Option<f64>,
    /// Questions a judgement.
    pub turns: Option<f64>,
    /// Tokens a judgement; absent where they were not counted.
    pub tokens: Option<f64>,
}

/// A number and how far it would move with other cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// 95 % of resamples lie in it; absent with fewer than two cases.
    pub interval: Option<Interval>,
    /// Over how many edits.
    pub edits: usize,
}

/// A cell against the baseline under one criterion, over the edits on which both have a verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The cell's name.
    pub cell: String,
    /// The criterion.
    pub criterion: String,
    /// By how much more of its verdicts are right; absent where there is nothing to compare.
    pub difference: Option<Estimate>,
    /// How often luck alone would do at least as much.
    pub p: Option<f64>,
    /// The same, corrected for the number of comparisons (Holm).
    pub corrected_p: Option<f64>,
    /// What follows.
    pub finding: Finding,
    /// Types on which it is worse, by more than resampling explains; not corrected.
    pub worse_on: Vec<TypeDifference>,
    /// Types on which it is better, likewise.
    pub better_on: Vec<TypeDifference>,
    /// Edits whose label is another one.
    pub flips: Vec<Flip>,
}

/// Better, worse, or nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// More verdicts are right, beyond luck.
    Better,
    /// Fewer verdicts are right, beyond luck.
    Worse,
    /// It may be luck.
    NoEvidence,
}

impl Finding {
    /// In words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoEvidence => "no evidence either way",
        }
    }
}

/// A difference on one type of instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeDifference {
    /// The type.
    pub kind: String,
    /// By how much more is right.
    pub difference: Estimate,
}

/// An edit that got another label than from the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flip {
    /// The case.
    pub case: String,
    /// Who edited.
    pub editor: String,
    /// The baseline's label.
    pub before: String,
    /// The cell's label.
    pub after: String,
    /// What is right, where it is known.
    pub truth: Option<String>,
    /// The baseline's trace.
    pub before_trace: Option<String>,
    /// The cell's trace.
    pub after_trace: Option<String>,
}

/// All that an experiment says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The name of the baseline.
    pub baseline: String,
    /// How each cell did.
    pub scores: Vec<CellScore>,
    /// Every other cell against the baseline.
    pub comparisons: Vec<Comparison>,
}

/// Compares the cells; `baseline` is the number of one of them. Labels and their ranks are those of
/// `pack`.
pub fn analyse(cells: &[CellLines], baseline: usize, truth: &Truth, pack: &Pack) -> Analysis {
    let by_cell: Vec<BTreeMap<Unit, Verdicts<'_>>> =
        cells.iter().map(|cell| verdicts(&cell.lines)).collect();
    let mut criteria: Vec<&str> = Vec::new();
    for criterion in pack.criteria() {
        let judged = |line: &ResultLine| line.criterion == criterion.id;
        if cells.iter().any(|cell| cell.lines.iter().any(judged)) {
            criteria.push(&criterion.id);
        }
    }
    let mut scores = Vec::new();
    let mut comparisons = Vec::new();
    for criterion in criteria {
        for (number, cell) in cells.iter().enumerate() {
            scores.push(score(cell, criterion, &by_cell[number], truth, pack));
            if let Some(before) = by_cell.get(baseline).filter(|_| number != baseline) {
                comparisons.push(compare(cell, criterion, before, &by_cell[number], truth));
            }
        }
    }
    correct(&mut comparisons);
    let baseline = cells.get(baseline).map_or(String::new(), |cell| cell.name.clone());
    Analysis { baseline, scores, comparisons }
}

/// The verdicts on one edit, one for each repetition that has one.
#[derive(Debug, Default)]
struct Verdicts<'a> {
    lines: Vec<&'a ResultLine>,
}

impl<'a> Verdicts<'a> {
    /// The part that says `label`.
    fn agreement(&self, label: &str) -> f64 {
        let right = self.labels().filter(|given| *given == label).count();
        right as f64 / self.lines.len() as f64
    }

    fn labels(&self) -> impl Iterator<Item = &'a str> {
        self.lines.iter().filter_map(|line| line.label.as_deref())
    }

    /// The first verdict with the most frequent label; of equally frequent ones, the first.
    fn usual(&self) -> Option<&'a ResultLine> {
        let count = |line: &ResultLine| {
            self.labels().filter(|label| Some(*label) == line.label.as_deref()).count()
        };
        self.lines.iter().rev().max_by_key(|line| count(line)).copied()
    }
}

fn unit(line: &ResultLine) -> Unit {
    (line.case.clone(), line.editor.clone().unwrap_or_default(), line.criterion.clone())
}

fn verdicts(lines: &[ResultLine]) -> BTreeMap<Unit, Verdicts<'_>> {
    let mut all: BTreeMap<Unit, Verdicts<'_>> = BTreeMap::new();
    let given = lines.iter().filter(|line| line.label.is_some());
    for line in given.filter(|line| line.outcome() == Some(OutcomeName::Verdict)) {
        all.entry(unit(line)).or_default().lines.push(line);
    }
    all
}

fn score(
    cell: &CellLines,
    criterion: &str,
    judged: &BTreeMap<Unit, Verdicts<'_>>,
    truth: &Truth,
    pack: &Pack,
) -> CellScore {
    let lines: Vec<&ResultLine> =
        cell.lines.iter().filter(|line| line.criterion == criterion).collect();
    let answered =
        lines.iter().filter(|line| line.outcome() == Some(OutcomeName::Verdict)).count();
    let rank = |label: &str| {
        let label = pack.criterion(criterion).ok()?.label(label)?;
        Some(f64::from(label.rank))
    };
    let mut right = Clusters::default();
    let mut off = Vec::new();
    for (unit, verdicts) in judged.iter().filter(|(unit, _)| unit.2 == criterion) {
        let Some(label) = truth.get(unit) else { continue };
        right.add(&unit.0, verdicts.agreement(label));
        for given in verdicts.labels() {
            off.extend(rank(given).zip(rank(label)).map(|(a, b)| (a - b).abs()));
        }
    }
    let mean = |values: Option<Vec<f64>>| values.and_then(|values| stats::mean(&values).ok());
    CellScore {
        cell: cell.name.clone(),
        criterion: criterion.to_owned(),
        coverage: Coverage { answered, all: lines.len() },
        agreement: right.estimate(),
        off_by: mean(Some(off)),
        cost: mean(lines.iter().map(|line| line.cost).collect()),
        turns: mean(lines.iter().map(|line| line.turns.map(f64::from)).collect()),
        tokens: mean(lines.iter().map(|line| tokens(line)).collect()),
    }
}

fn tokens(line: &ResultLine) -> Option<f64> {
    let (prompt, completion) = (line.usage.prompt_tokens, line.usage.completion_tokens);
    Some((prompt? + completion?) as f64)
}

fn compare(
    cell: &CellLines,
    criterion: &str,
    before: &BTreeMap<Unit, Verdicts<'_>>,
    after: &BTreeMap<Unit, Verdicts<'_>>,
    truth: &Truth,
) -> Comparison {
    let mut all = Clusters::default();
    let mut by_type: BTreeMap<String, Clusters> = BTreeMap::new();
    let mut flips = Vec::new();
    let both = before.iter().filter(|(unit, _)| unit.2 == criterion);
    for (unit, old) in both {
        let Some(new) = after.get(unit) else { continue };
        if let Some(label) = truth.get(unit) {
            let gain = new.agreement(label) - old.agreement(label);
            all.add(&unit.0, gain);
            let kind = new.lines.first().and_then(|line| line.kind.clone()).unwrap_or_default();
            by_type.entry(kind).or_default().add(&unit.0, gain);
        }
        flips.extend(flip(unit, old, new, truth));
    }
    let of_types = |better: bool| {
        let differences = by_type.iter().filter_map(|(kind, clusters)| {
            let difference = clusters.estimate()?;
            let Interval { low, high } = difference.interval?;
            let beyond = if better { low > 0.0 } else { high < 0.0 };
            beyond.then(|| TypeDifference { kind: kind.clone(), difference })
        });
        differences.collect()
    };
    Comparison {
        cell: cell.name.clone(),
        criterion: criterion.to_owned(),
        difference: all.estimate(),
        p: all.p(),
        corrected_p: None,
        finding: Finding::NoEvidence,
        worse_on: of_types(false),
        better_on: of_types(true),
        flips,
    }
}

fn flip(unit: &Unit, old: &Verdicts<'_>, new: &Verdicts<'_>, truth: &Truth) -> Option<Flip> {
    let (old, new) = (old.usual()?, new.usual()?);
    let (before, after) = (old.label.clone()?, new.label.clone()?);
    (before != after).then(|| Flip {
        case: unit.0.clone(),
        editor: unit.1.clone(),
        before,
        after,
        truth: truth.get(unit).cloned(),
        before_trace: old.trace.clone(),
        after_trace: new.trace.clone(),
    })
}

/// Many comparisons find something by luck alone: p values are corrected for their number.
fn correct(comparisons: &mut [Comparison]) {
    let known: Vec<usize> =
        (0..comparisons.len()).filter(|&at| comparisons[at].p.is_some()).collect();
    let plain: Vec<f64> = known.iter().filter_map(|&at| comparisons[at].p).collect();
    for (at, corrected) in known.into_iter().zip(stats::holm(&plain)) {
        let comparison = &mut comparisons[at];
        comparison.corrected_p = Some(corrected);
        let gain = comparison.difference.map_or(0.0, |difference| difference.value);
        comparison.finding = match corrected <= FALSE_ALARMS {
            true if gain > 0.0 => Finding::Better,
            true if gain < 0.0 => Finding::Worse,
            _ => Finding::NoEvidence,
        };
    }
}

/// Values of edits, together by case: the edits of one case are not independent.
#[derive(Debug, Default)]
struct Clusters(BTreeMap<String, Sum>);

impl Clusters {
    fn add(&mut self, case: &str, value: f64) {
        self.0.entry(case.to_owned()).or_default().add(value);
    }

    fn estimate(&self) -> Option<Estimate> {
        let sums: Vec<Sum> = self.0.values().copied().collect();
        let edits: u32 = sums.iter().map(|sum| sum.count).sum();
        let total: f64 = sums.iter().map(|sum| sum.total).sum();
        (edits > 0).then(|| Estimate {
            value: total / f64::from(edits),
            interval: Bootstrap::default().clustered_mean(&sums),
            edits: edits as usize,
        })
    }

    /// Two-sided, by flipping the signs of whole cases.
    fn p(&self) -> Option<f64> {
        let totals: Vec<f64> = self.0.values().map(|sum| sum.total).collect();
        stats::sign_flip(&totals).ok()
    }
}

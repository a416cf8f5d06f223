//! What an experiment says: how each cell did, and whether it differs from the baseline by more than
//! luck.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::prompt::Pack;
use crate::stats::{self, Bootstrap, Coverage, Estimate, Finding, Interval, Paired, Sum};
use crate::trace::{OutcomeName, ResultLine};

/// How often an experiment without any difference may call one, over all its comparisons together.
pub const FALSE_ALARMS: f64 = Paired::LEVEL;

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
    pub agreement: Estimate,
    /// On how many edits that rests.
    pub edits: usize,
    /// How many labels a verdict is off on average.
    pub off_by: Option<f64>,
    /// US dollars a judgement; absent where one is not known.
    pub cost: Option<f64>,
    /// Questions a judgement.
    pub turns: Option<f64>,
    /// Tokens a judgement; absent where they were not counted.
    pub tokens: Option<f64>,
}

/// A cell against the baseline under one criterion, over the edits on which both have a verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The cell's name.
    pub cell: String,
    /// The criterion.
    pub criterion: String,
    /// By how much more of its verdicts are right.
    pub difference: Estimate,
    /// On how many edits that rests.
    pub edits: usize,
    /// How many cases it would take to be sure of such a difference.
    pub cases_needed: Option<usize>,
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
    let answered = lines.iter().filter(|line| line.outcome() == Some(OutcomeName::Verdict)).count();
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
        edits: right.edits(),
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
            let difference = clusters.estimate();
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
        edits: all.edits(),
        cases_needed: stats::cases_needed(&all.sums()),
        p: Paired::new(&all.sums(), &Bootstrap::default()).p.ok(),
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
        let gain = comparison.difference.value.unwrap_or(0.0);
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

    fn sums(&self) -> Vec<Sum> {
        self.0.values().copied().collect()
    }

    fn edits(&self) -> usize {
        self.0.values().map(|sum| sum.count as usize).sum()
    }

    fn estimate(&self) -> Estimate {
        let paired = Paired::new(&self.sums(), &Bootstrap::default());
        Estimate::new(paired.mean, paired.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const LABELS: [&str; 4] =
        ["Localization Failure", "Wrong Action", "Over Modification", "Flawless Execution"];

    /// Judgements of `cases` edits by a judge of this accuracy: a wrong label is the next one.
    fn simulated(name: &str, cases: usize, accuracy: f64, seed: u64) -> CellLines {
        let mut random = Random::new(seed, 1, 0);
        let line = |case: usize| {
            let right = random.below(1_000_000) < (accuracy * 1e6) as usize;
            let label = LABELS[(case + usize::from(!right)) % 4];
            let text = serde_json::json!({
                "case": format!("c{case}"), "editor": "e", "criterion": "if", "label": label,
                "type": if case.is_multiple_of(2) { "Change Color" } else { "Change OCR" },
            });
            serde_json::from_value(text).unwrap()
        };
        CellLines { name: name.to_owned(), lines: (0..cases).map(line).collect() }
    }

    fn truth(cases: usize) -> Truth {
        let one = |case: usize| {
            let unit = (format!("c{case}"), "e".to_owned(), "if".to_owned());
            (unit, LABELS[case % 4].to_owned())
        };
        (0..cases).map(one).collect()
    }

    fn analysed(cells: &[CellLines], cases: usize) -> Analysis {
        analyse(cells, 0, &truth(cases), &Pack::embedded("dlebench/v1").unwrap())
    }

    #[test]
    fn the_better_prompt_is_found_where_there_are_enough_cases() {
        let cells = [simulated("old", 300, 0.7, 1), simulated("new", 300, 0.9, 2)];
        let found = analysed(&cells, 300);
        let comparison = &found.comparisons[0];
        assert_eq!((comparison.finding, comparison.edits), (Finding::Better, 300));
        let difference = comparison.difference.value.unwrap();
        assert!((0.1..0.3).contains(&difference), "{difference}");
        assert!(!comparison.flips.is_empty());
        // The other way round it is worse.
        let cells = [cells[1].clone(), cells[0].clone()];
        assert_eq!(analysed(&cells, 300).comparisons[0].finding, Finding::Worse);
    }

    #[test]
    fn a_handful_of_cases_is_no_evidence() {
        let cells = [simulated("old", 8, 0.7, 1), simulated("new", 8, 0.9, 2)];
        let comparison = &analysed(&cells, 8).comparisons[0];
        assert_eq!(comparison.finding, Finding::NoEvidence);
    }

    #[test]
    fn luck_is_called_a_difference_as_rarely_as_promised() {
        const EXPERIMENTS: u64 = 200;
        let mut alarms = 0;
        for experiment in 0..EXPERIMENTS {
            let cell = |number: u64| {
                simulated(&number.to_string(), 40, 0.75, 1000 + 10 * experiment + number)
            };
            let found = analysed(&[cell(0), cell(1), cell(2), cell(3)], 40);
            let alarm = found.comparisons.iter().any(|c| c.finding != Finding::NoEvidence);
            alarms += u64::from(alarm);
        }
        // Three standard deviations above the promise.
        let n = EXPERIMENTS as f64;
        let most = n * FALSE_ALARMS + 3.0 * (n * FALSE_ALARMS * (1.0 - FALSE_ALARMS)).sqrt();
        assert!((alarms as f64) < most, "{alarms} false alarms in {EXPERIMENTS} experiments");
    }

    #[test]
    fn a_type_on_which_it_is_worse_is_named() {
        let (mut old, mut new) = (simulated("old", 200, 0.8, 1), simulated("new", 200, 0.8, 2));
        // The new one is right on colours and wrong on lettering, the old one the other way round.
        for (case, (old, new)) in old.lines.iter_mut().zip(&mut new.lines).enumerate() {
            let (right, wrong) = (LABELS[case % 4].to_owned(), LABELS[(case + 1) % 4].to_owned());
            let lettering = case % 2 == 1;
            old.label = Some(if lettering { right.clone() } else { wrong.clone() });
            new.label = Some(if lettering { wrong } else { right });
        }
        let found = analysed(&[old, new], 200);
        let comparison = &found.comparisons[0];
        let names =
            |list: &[TypeDifference]| list.iter().map(|t| t.kind.clone()).collect::<Vec<_>>();
        assert_eq!(names(&comparison.worse_on), ["Change OCR"]);
        assert_eq!(names(&comparison.better_on), ["Change Color"]);
        assert_eq!(comparison.finding, Finding::NoEvidence);
        assert_eq!(comparison.flips.len(), 200);
    }

    #[test]
    fn what_has_no_verdict_is_coverage_and_nothing_else() {
        let mut cells = [simulated("old", 20, 1.0, 1), simulated("new", 20, 1.0, 2)];
        for line in &mut cells[1].lines[..5] {
            line.label = None;
            line.outcome = Some(OutcomeName::Failed);
        }
        let found = analysed(&cells, 20);
        let score = &found.scores[1];
        assert_eq!(score.coverage, Coverage { answered: 15, all: 20 });
        assert_eq!((score.agreement.value, score.edits), (Ok(1.0), 15));
        assert_eq!(found.comparisons[0].edits, 15);
        let nothing = analyse(&cells, 0, &Truth::new(), &Pack::embedded("dlebench/v1").unwrap());
        assert!(nothing.scores[0].agreement.value.is_err());
        assert_eq!(nothing.comparisons[0].finding, Finding::NoEvidence);
    }
}

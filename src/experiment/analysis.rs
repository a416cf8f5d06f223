//! What an experiment says: how each cell did, and whether it differs from the baseline by more than
//! luck.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::agreement::Ranking;
use crate::case::Facts;
use crate::comparison::{Clusters, Tested};
use crate::key::Item;
use crate::prompt::Rubric;
use crate::stats::{self, Coverage, Estimate, Finding, Interval, Paired};
use crate::trace::{OutcomeName, ResultLine, Rubrics};

/// How often an experiment without any difference may call one, over all its comparisons together.
pub const FALSE_ALARMS: f64 = Paired::LEVEL;

/// What is right, by edit and criterion: a label, or a number where answers have no labels.
pub type RightAnswers = BTreeMap<Item, String>;

/// The results of one cell.
#[derive(Debug, Clone)]
pub struct CellLines {
    /// The cell's name.
    pub name: String,
    /// Its judgements.
    pub lines: Vec<ResultLine>,
    /// By what they were made.
    pub rubrics: Rubrics,
}

impl CellLines {
    /// What its lines were judged by; cells have one pack each.
    fn rubric(&self) -> &Arc<Rubric> {
        self.rubrics.of_first(&self.lines)
    }
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
    /// How many labels a verdict is off on average; how many points, where answers have no labels.
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
    /// By how much nearer its verdicts come to what is right, in labels or points.
    pub nearer: Tested,
    /// By how much its scores are higher, whatever is right.
    pub shift: Tested,
    /// What follows: it is more often right, or nearer, by more than luck.
    pub finding: Finding,
    /// Types on which it is worse, by more than resampling explains; not corrected.
    pub worse_on: Vec<TypeDifference>,
    /// Types on which it is better, likewise.
    pub better_on: Vec<TypeDifference>,
    /// Edits whose verdict is another one.
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

/// Compares the cells; `baseline` is the number of one of them. Every cell is read by its own pack;
/// what a criterion's labels are worth is the baseline's word.
pub fn analyse(cells: &[CellLines], baseline: usize, truth: &RightAnswers) -> Analysis {
    let rankings = rankings(cells, baseline);
    let by_cell: Vec<BTreeMap<Item, Verdicts<'_>>> =
        cells.iter().map(|cell| verdicts(&cell.lines)).collect();
    let mut scores = Vec::new();
    let mut comparisons = Vec::new();
    for ranking in &rankings {
        for (number, cell) in cells.iter().enumerate() {
            scores.push(score(cell, ranking, &by_cell[number], truth));
            if let Some(before) = by_cell.get(baseline).filter(|_| number != baseline) {
                comparisons.push(compare(cell, ranking, before, &by_cell[number], truth));
            }
        }
    }
    correct(&mut comparisons);
    let baseline = cells.get(baseline).map_or(String::new(), |cell| cell.name.clone());
    Analysis { baseline, scores, comparisons }
}

/// The criteria that were judged: those of the baseline's pack first, in its order, then the others.
pub(crate) fn rankings(cells: &[CellLines], baseline: usize) -> Vec<Ranking> {
    let judged: BTreeSet<&str> =
        cells.iter().flat_map(|cell| &cell.lines).map(|line| line.criterion.as_str()).collect();
    let first = cells.get(baseline).into_iter();
    let packs = first.chain(cells).map(CellLines::rubric);
    let mut rankings: Vec<Ranking> = Vec::new();
    for ranking in packs.flat_map(|rubric| Ranking::of_rubric(rubric)) {
        let known = Ranking::find(&rankings, &ranking.criterion).is_some();
        if !known && judged.contains(ranking.criterion.as_str()) {
            rankings.push(ranking);
        }
    }
    for criterion in judged {
        if Ranking::find(&rankings, criterion).is_none() {
            rankings.push(Ranking::of_numbers(criterion));
        }
    }
    rankings
}

/// The verdicts on one edit, one for each repetition that has one.
#[derive(Debug, Default)]
struct Verdicts<'a> {
    lines: Vec<&'a ResultLine>,
}

impl<'a> Verdicts<'a> {
    /// What is compared: ranks of labels, or scores.
    fn values(&self, ranking: &Ranking) -> impl Iterator<Item = f64> {
        self.lines.iter().filter_map(move |line| value(line, ranking))
    }

    /// The part that says what is worth `right`.
    fn agreement(&self, ranking: &Ranking, right: f64) -> Option<f64> {
        let hits: Vec<f64> = self
            .values(ranking)
            .map(|given| if (given - right).abs() < SAME { 1.0 } else { 0.0 })
            .collect();
        stats::mean(&hits).ok()
    }

    /// How far they are from `right` on the mean.
    fn distance(&self, ranking: &Ranking, right: f64) -> Option<f64> {
        let off: Vec<f64> = self.values(ranking).map(|given| (given - right).abs()).collect();
        stats::mean(&off).ok()
    }

    fn score(&self) -> Option<f64> {
        let scores: Vec<f64> = self.lines.iter().filter_map(|line| line.score).collect();
        stats::mean(&scores).ok()
    }

    /// The first verdict with the most frequent answer; of equally frequent ones, the first.
    fn usual(&self) -> Option<&'a ResultLine> {
        let count = |line: &ResultLine| {
            self.lines.iter().filter(|other| answer(other) == answer(line)).count()
        };
        self.lines.iter().rev().max_by_key(|line| count(line)).copied()
    }
}

/// Scores nearer to each other than this are the same.
const SAME: f64 = 1e-9;

fn value(line: &ResultLine, ranking: &Ranking) -> Option<f64> {
    match &line.label {
        Some(label) if !ranking.labels.is_empty() => ranking.rank(label),
        _ => line.score,
    }
}

/// A verdict in words: its label, or what it is worth.
fn answer(line: &ResultLine) -> Option<String> {
    line.label.clone().or_else(|| Some(format!("{:.2}", line.score?)))
}

fn item(line: &ResultLine) -> Item {
    Item {
        criterion: line.criterion.clone(),
        case: line.case.clone(),
        editor: line.editor.clone().unwrap_or_default(),
    }
}

fn verdicts(lines: &[ResultLine]) -> BTreeMap<Item, Verdicts<'_>> {
    let mut all: BTreeMap<Item, Verdicts<'_>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.outcome() == Some(OutcomeName::Verdict)) {
        all.entry(item(line)).or_default().lines.push(line);
    }
    all
}

fn score(
    cell: &CellLines,
    ranking: &Ranking,
    judged: &BTreeMap<Item, Verdicts<'_>>,
    truth: &RightAnswers,
) -> CellScore {
    let criterion = &ranking.criterion;
    let lines: Vec<&ResultLine> =
        cell.lines.iter().filter(|line| line.criterion == *criterion).collect();
    let answered = lines.iter().filter(|line| line.outcome() == Some(OutcomeName::Verdict)).count();
    let mut right = Clusters::default();
    let mut off = Vec::new();
    for (item, verdicts) in judged.iter().filter(|(item, _)| item.criterion == *criterion) {
        let Some(known) = truth.get(item).and_then(|label| ranking.rank(label)) else { continue };
        if let Some(agreement) = verdicts.agreement(ranking, known) {
            right.add(&item.case, agreement);
        }
        off.extend(verdicts.values(ranking).map(|given| (given - known).abs()));
    }
    let mean = |values: Option<Vec<f64>>| values.and_then(|values| stats::mean(&values).ok());
    CellScore {
        cell: cell.name.clone(),
        criterion: criterion.clone(),
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
    ranking: &Ranking,
    before: &BTreeMap<Item, Verdicts<'_>>,
    after: &BTreeMap<Item, Verdicts<'_>>,
    truth: &RightAnswers,
) -> Comparison {
    let by = cell.rubric().report.group.clone().unwrap_or_else(|| Facts::TYPE.to_owned());
    let [mut right, mut nearer, mut shift] = [(); 3].map(|()| Clusters::default());
    let mut by_type: BTreeMap<String, Clusters> = BTreeMap::new();
    let mut flips = Vec::new();
    let both = before.iter().filter(|(item, _)| item.criterion == ranking.criterion);
    for (item, old) in both {
        let Some(new) = after.get(item) else { continue };
        let gain = |of: &dyn Fn(&Verdicts<'_>) -> Option<f64>| Some(of(new)? - of(old)?);
        if let Some(known) = truth.get(item).and_then(|label| ranking.rank(label)) {
            if let Some(gain) = gain(&|verdicts| verdicts.agreement(ranking, known)) {
                right.add(&item.case, gain);
                let kind = new.lines.first().and_then(|line| line.fact(&by));
                let kind = kind.unwrap_or_default().into_owned();
                by_type.entry(kind).or_default().add(&item.case, gain);
            }
            if let Some(away) = gain(&|verdicts| verdicts.distance(ranking, known)) {
                nearer.add(&item.case, -away);
            }
        }
        if let Some(gain) = gain(&|verdicts| verdicts.score()) {
            shift.add(&item.case, gain);
        }
        flips.extend(flip(item, old, new, truth));
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
    let tested = right.tested();
    Comparison {
        cell: cell.name.clone(),
        criterion: ranking.criterion.clone(),
        difference: tested.difference,
        edits: right.edits(),
        cases_needed: stats::cases_needed(&right.sums()),
        p: tested.p,
        corrected_p: None,
        nearer: nearer.tested(),
        shift: shift.tested(),
        finding: Finding::NoEvidence,
        worse_on: of_types(false),
        better_on: of_types(true),
        flips,
    }
}

fn flip(item: &Item, old: &Verdicts<'_>, new: &Verdicts<'_>, truth: &RightAnswers) -> Option<Flip> {
    let (old, new) = (old.usual()?, new.usual()?);
    let (before, after) = (answer(old)?, answer(new)?);
    (before != after).then(|| Flip {
        case: item.case.clone(),
        editor: item.editor.clone(),
        before,
        after,
        truth: truth.get(item).cloned(),
        before_trace: old.trace.clone(),
        after_trace: new.trace.clone(),
    })
}

/// Many comparisons find something by luck alone: p values are corrected for their number. Being
/// right more often and being nearer are asked together; whether scores moved at all is another question.
fn correct(comparisons: &mut [Comparison]) {
    let family = |of: &dyn Fn(&Comparison) -> Vec<Option<f64>>| -> Vec<Vec<Option<f64>>> {
        let all: Vec<Vec<Option<f64>>> = comparisons.iter().map(of).collect();
        let plain: Vec<f64> = all.iter().flatten().flatten().copied().collect();
        let mut corrected = stats::holm(&plain).into_iter();
        let next = |p: Option<f64>| p.and_then(|_| corrected.next());
        let mut next = next;
        all.into_iter().map(|ps| ps.into_iter().map(&mut next).collect()).collect()
    };
    let right = family(&|one| vec![one.p, one.nearer.p]);
    let shifts = family(&|one| vec![one.shift.p]);
    for ((comparison, right), shift) in comparisons.iter_mut().zip(right).zip(shifts) {
        comparison.corrected_p = right[0];
        comparison.nearer.correct(right[1]);
        comparison.shift.correct(shift[0]);
        let more_often = Tested::finding_of(comparison.difference, right[0]);
        comparison.finding = match (more_often, comparison.nearer.finding) {
            (found, Finding::NoEvidence) | (Finding::NoEvidence, found) => found,
            (one, other) if one == other => one,
            // More often right, and yet farther off: neither better nor worse.
            _ => Finding::NoEvidence,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Pack;
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
        let rubrics = Rubrics::only(Arc::clone(Pack::embedded("dlebench/v1").unwrap().rubric()));
        CellLines { name: name.to_owned(), lines: (0..cases).map(line).collect(), rubrics }
    }

    fn truth(cases: usize) -> RightAnswers {
        let one = |case: usize| {
            let item = Item {
                criterion: "if".to_owned(),
                case: format!("c{case}"),
                editor: "e".to_owned(),
            };
            (item, LABELS[case % 4].to_owned())
        };
        (0..cases).map(one).collect()
    }

    fn analysed(cells: &[CellLines], cases: usize) -> Analysis {
        analyse(cells, 0, &truth(cases))
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
    fn labels_that_fall_are_told_also_where_nothing_is_right_any_less() {
        // Both are wrong every time; the new one is far off.
        let scored = |name: &str, label: &str, score: f64| {
            let mut cell = simulated(name, 20, 1.0, 1);
            for line in &mut cell.lines {
                line.label = Some(label.to_owned());
                line.score = Some(score);
            }
            cell
        };
        let cells = [scored("old", LABELS[2], 200.0 / 3.0), scored("new", LABELS[0], 0.0)];
        let right: RightAnswers =
            truth(20).into_keys().map(|item| (item, LABELS[3].to_owned())).collect();
        let comparison = &analyse(&cells, 0, &right).comparisons[0];
        assert_eq!(comparison.difference.value, Ok(0.0));
        assert_eq!(comparison.finding, Finding::Worse);
        assert_eq!(comparison.nearer.difference.value, Ok(-2.0));
        // Without anybody who knows, the fall is still seen, and nobody says that it is worse.
        let comparison = &analyse(&cells, 0, &RightAnswers::new()).comparisons[0];
        assert_eq!(
            (comparison.finding, comparison.shift.finding),
            (Finding::NoEvidence, Finding::Worse)
        );
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
        let more_often = Tested::finding_of(comparison.difference, comparison.corrected_p);
        assert_eq!(more_often, Finding::NoEvidence);
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
        let nothing = analyse(&cells, 0, &RightAnswers::new());
        assert!(nothing.scores[0].agreement.value.is_err());
        assert_eq!(nothing.comparisons[0].finding, Finding::NoEvidence);
    }
}

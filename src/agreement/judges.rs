//! Judges beside people: joined by case, editor and criterion.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::labels::{Item, Labels, Truth};
use super::measures::{Columns, Measure, Measured, alphas, measured, nearest_rank};
use super::ranking::Ranking;
use crate::report::{GroupKey, NO_TYPE};
use crate::stats::{Bootstrap, Coverage, Ratings};

/// A judge with what it said.
#[derive(Debug, Clone)]
pub struct Judge {
    /// Which run, model, mode and prompts.
    pub name: GroupKey,
    /// All judgements, also those without a verdict.
    pub judgements: Vec<Judgement>,
}

/// One judgement.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// Of what.
    pub item: Item,
    /// The type of the instruction.
    pub kind: String,
    /// The rank of the label, if there is a verdict.
    pub rank: Option<f64>,
}

/// How far judges agree with people.
#[derive(Debug, Clone, Serialize)]
pub struct Agreement {
    /// What counts as the truth.
    pub truth: Truth,
    /// How many items people labelled.
    pub labelled: usize,
    /// How many of them have a truth between two labels.
    pub between_labels: usize,
    /// Who labelled.
    pub annotators: Vec<String>,
    /// Krippendorff's α among them.
    pub among_annotators: Vec<Cell>,
    /// Each judge beside the truth.
    pub judges: Vec<JudgeAgreement>,
    /// Each pair of judges on the items that both gave a verdict on: the first minus the second.
    pub differences: Vec<Difference>,
}

/// The numbers of a criterion and type.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The criterion; none where all stand together, by rank.
    pub criterion: Option<String>,
    /// The type of instruction; none where all stand together.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How many cases the items belong to.
    pub cases: usize,
    /// Verdicts among what people labelled; absent among people.
    pub coverage: Option<Coverage>,
    /// The numbers.
    pub agreement: Measured,
}

/// A judge beside the truth.
#[derive(Debug, Clone, Serialize)]
pub struct JudgeAgreement {
    /// Which.
    pub judge: GroupKey,
    /// Judgements of what nobody labelled; they count nowhere.
    pub without_label: usize,
    /// Labelled items of the judge's editors and criteria that it never judged; they count as not
    /// covered.
    pub never_judged: usize,
    /// Labelled items of other editors or criteria; they count nowhere.
    pub of_others: usize,
    /// All together first, then by criterion, then by type.
    pub cells: Vec<Cell>,
    /// By criterion.
    pub confusion: Vec<Confusion>,
    /// Agreement of repetitions with each other, by criterion; empty without repetitions.
    pub with_itself: Vec<Cell>,
}

/// How often the judge gave which label where people gave which.
#[derive(Debug, Clone, Serialize)]
pub struct Confusion {
    /// The criterion.
    pub criterion: String,
    /// From the worst to the best.
    pub labels: Vec<String>,
    /// A row for each label of people, a column for each of the judge, and one for no verdict.
    pub counts: Vec<Vec<usize>>,
}

/// The difference of two judges.
#[derive(Debug, Clone, Serialize)]
pub struct Difference {
    /// Places in [`Agreement::judges`].
    pub judges: [usize; 2],
    /// The criterion; none where all stand together.
    pub criterion: Option<String>,
    /// The first minus the second; α is not compared.
    pub difference: Measured,
}

/// A verdict, or none, on something labelled.
#[derive(Debug, Clone)]
struct Row<'a> {
    item: &'a Item,
    kind: &'a str,
    truth: f64,
    rank: Option<f64>,
}

impl Agreement {
    /// Compares judges with people.
    pub fn new(
        judges: &[Judge],
        labels: &Labels,
        truth: Truth,
        rankings: &[Ranking],
        bootstrap: &Bootstrap,
    ) -> Self {
        let kinds: BTreeMap<&str, &str> = judges
            .iter()
            .flat_map(|judge| &judge.judgements)
            .map(|one| (one.item.case.as_str(), one.kind.as_str()))
            .collect();
        let truths: BTreeMap<&Item, f64> = labels
            .items
            .iter()
            .filter_map(|(item, ranks)| Some((item, truth.of(ranks.values())?)))
            .collect();
        let joined: Vec<Joined<'_>> =
            judges.iter().map(|judge| Joined::new(judge, &truths, &kinds)).collect();
        let mut differences = Vec::new();
        for (first, a) in joined.iter().enumerate() {
            for (second, b) in joined.iter().enumerate().skip(first + 1) {
                let one = differences_of(a, b, bootstrap);
                let named = one.into_iter().map(|(criterion, difference)| Difference {
                    judges: [first, second],
                    criterion,
                    difference,
                });
                differences.extend(named);
            }
        }
        Self {
            truth,
            labelled: labels.items.len(),
            between_labels: labels.between_labels(truth),
            annotators: labels.annotators().into_iter().map(str::to_owned).collect(),
            among_annotators: among_annotators(labels, &kinds, bootstrap),
            judges: judges
                .iter()
                .zip(&joined)
                .map(|(judge, joined)| joined.agreement(judge, rankings, bootstrap))
                .collect(),
            differences,
        }
    }
}

/// What a judge said of what people labelled.
struct Joined<'a> {
    rows: Vec<Row<'a>>,
    without_label: usize,
    never_judged: usize,
    of_others: usize,
}

impl<'a> Joined<'a> {
    fn new(
        judge: &'a Judge,
        truths: &BTreeMap<&'a Item, f64>,
        kinds: &BTreeMap<&str, &'a str>,
    ) -> Self {
        let mut rows = Vec::new();
        let mut judged = BTreeSet::new();
        let mut without_label = 0;
        for one in &judge.judgements {
            judged.insert(&one.item);
            match truths.get(&one.item) {
                Some(&truth) => {
                    rows.push(Row { item: &one.item, kind: &one.kind, truth, rank: one.rank });
                }
                None => without_label += 1,
            }
        }
        let scope: BTreeSet<(&str, &str)> = judge
            .judgements
            .iter()
            .map(|one| (one.item.editor.as_str(), one.item.criterion.as_str()))
            .collect();
        let (mut never_judged, mut of_others) = (0, 0);
        for (item, &truth) in truths.iter().filter(|(item, _)| !judged.contains(*item)) {
            if scope.contains(&(item.editor.as_str(), item.criterion.as_str())) {
                let kind = kinds.get(item.case.as_str()).copied().unwrap_or(NO_TYPE);
                rows.push(Row { item, kind, truth, rank: None });
                never_judged += 1;
            } else {
                of_others += 1;
            }
        }
        Self { rows, without_label, never_judged, of_others }
    }

    fn agreement(
        &self,
        judge: &Judge,
        rankings: &[Ranking],
        bootstrap: &Bootstrap,
    ) -> JudgeAgreement {
        let places = places(self.rows.iter().map(|row| (row.item, row.kind)));
        let cell = |(criterion, kind): (Option<&str>, Option<&str>)| {
            let rows = self.rows.iter().filter(|row| is_in(row.item, row.kind, criterion, kind));
            judge_cell(criterion, kind, &rows.collect::<Vec<_>>(), bootstrap)
        };
        JudgeAgreement {
            judge: judge.name.clone(),
            without_label: self.without_label,
            never_judged: self.never_judged,
            of_others: self.of_others,
            cells: places
                .iter()
                .map(|place| cell((place.0.as_deref(), place.1.as_deref())))
                .collect(),
            confusion: rankings.iter().filter_map(|ranking| self.confusion(ranking)).collect(),
            with_itself: with_itself(judge, bootstrap),
        }
    }

    fn confusion(&self, ranking: &Ranking) -> Option<Confusion> {
        let none = ranking.labels.len();
        let mut counts = vec![vec![0; none + 1]; none];
        let place = |rank: f64| ranking.labels.iter().position(|(_, other)| *other == rank);
        let rows = self.rows.iter().filter(|row| row.item.criterion == ranking.criterion);
        let mut any = false;
        for row in rows {
            let truth = place(nearest_rank(row.truth))?;
            counts[truth][row.rank.and_then(place).unwrap_or(none)] += 1;
            any = true;
        }
        any.then(|| Confusion {
            criterion: ranking.criterion.clone(),
            labels: ranking.labels.iter().map(|(name, _)| name.clone()).collect(),
            counts,
        })
    }
}

/// All together (where there are several criteria), each criterion, and each type in it.
fn places<'a>(
    items: impl Iterator<Item = (&'a Item, &'a str)>,
) -> Vec<(Option<String>, Option<String>)> {
    let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (item, kind) in items {
        kinds.entry(&item.criterion).or_default().insert(kind);
    }
    let mut places = Vec::new();
    if kinds.len() > 1 {
        places.push((None, None));
    }
    for (criterion, kinds) in kinds {
        places.push((Some(criterion.to_owned()), None));
        let several = kinds.len() > 1 || !kinds.contains(NO_TYPE);
        let kinds = kinds.into_iter().filter(|_| several);
        places.extend(kinds.map(|kind| (Some(criterion.to_owned()), Some(kind.to_owned()))));
    }
    places
}

fn is_in(item: &Item, kind: &str, criterion: Option<&str>, in_kind: Option<&str>) -> bool {
    criterion.is_none_or(|criterion| item.criterion == criterion)
        && in_kind.is_none_or(|in_kind| kind == in_kind)
}

/// The case of each item as a place among all cases, and how many cases there are.
fn cases<'a>(items: impl Iterator<Item = &'a Item>) -> (Vec<usize>, usize) {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let places = items
        .map(|item| {
            let next = known.len();
            *known.entry(&item.case).or_insert(next)
        })
        .collect();
    (places, known.len())
}

fn judge_cell(
    criterion: Option<&str>,
    kind: Option<&str>,
    rows: &[&Row<'_>],
    bootstrap: &Bootstrap,
) -> Cell {
    let pairs: Vec<(&Item, (f64, f64))> =
        rows.iter().filter_map(|row| Some((row.item, (row.rank?, row.truth)))).collect();
    let (case_of, cases) = cases(pairs.iter().map(|(item, _)| *item));
    let columns = columns(&pairs);
    Cell {
        criterion: criterion.map(str::to_owned),
        kind: kind.map(str::to_owned),
        cases,
        coverage: Some(Coverage { answered: pairs.len(), all: rows.len() }),
        agreement: measured(&Measure::OF_PAIRS, pairs.len(), cases, bootstrap, |drawn| {
            columns.measure(|i| f64::from(drawn[case_of[i]])).to_vec()
        }),
    }
}

fn columns(pairs: &[(&Item, (f64, f64))]) -> Columns {
    let numbers: Vec<(f64, f64)> = pairs.iter().map(|(_, pair)| *pair).collect();
    Columns::of_ranks(&numbers)
}

fn among_annotators(
    labels: &Labels,
    kinds: &BTreeMap<&str, &str>,
    bootstrap: &Bootstrap,
) -> Vec<Cell> {
    let kind_of = |item: &Item| kinds.get(item.case.as_str()).copied().unwrap_or(NO_TYPE);
    places(labels.items.keys().map(|item| (item, kind_of(item))))
        .into_iter()
        .map(|(criterion, kind)| {
            let units: Vec<(&Item, Vec<f64>)> = labels
                .items
                .iter()
                .filter(|(item, _)| {
                    is_in(item, kind_of(item), criterion.as_deref(), kind.as_deref())
                })
                .map(|(item, ranks)| (item, ranks.values().copied().collect()))
                .collect();
            rater_cell(criterion, kind, &units, bootstrap)
        })
        .collect()
}

/// How far repetitions of a judge agree, for each criterion that has any.
fn with_itself(judge: &Judge, bootstrap: &Bootstrap) -> Vec<Cell> {
    let mut items: BTreeMap<&Item, Vec<f64>> = BTreeMap::new();
    for one in &judge.judgements {
        items.entry(&one.item).or_default().extend(one.rank);
    }
    let repeated: Vec<(&Item, Vec<f64>)> =
        items.into_iter().filter(|(_, ranks)| ranks.len() > 1).collect();
    let criteria: BTreeSet<&str> =
        repeated.iter().map(|(item, _)| item.criterion.as_str()).collect();
    criteria
        .into_iter()
        .map(|criterion| {
            let units: Vec<(&Item, Vec<f64>)> =
                repeated.iter().filter(|(item, _)| item.criterion == criterion).cloned().collect();
            rater_cell(Some(criterion.to_owned()), None, &units, bootstrap)
        })
        .collect()
}

/// The agreement of any number of raters on items.
fn rater_cell(
    criterion: Option<String>,
    kind: Option<String>,
    units: &[(&Item, Vec<f64>)],
    bootstrap: &Bootstrap,
) -> Cell {
    let (case_of, cases) = cases(units.iter().map(|(item, _)| *item));
    let ranks: Vec<Vec<f64>> = units.iter().map(|(_, ranks)| ranks.clone()).collect();
    let ratings = Ratings::new(&ranks);
    let measures = [&[Measure::Exact], &Measure::OF_RATERS[..]].concat();
    let agreement = measured(&measures, ratings.pairable(), cases, bootstrap, |drawn| {
        let weights = ratings.weights(|i| f64::from(drawn[case_of[i]]));
        let mut numbers = vec![ratings.exact(&weights)];
        numbers.extend(alphas(&ratings, true, &weights));
        numbers
    });
    Cell { criterion, kind, cases, coverage: None, agreement }
}

/// The first judge minus the second, all together and by criterion, on what both gave a verdict on.
fn differences_of(
    a: &Joined<'_>,
    b: &Joined<'_>,
    bootstrap: &Bootstrap,
) -> Vec<(Option<String>, Measured)> {
    let verdicts = |joined: &Joined<'_>| -> BTreeSet<Item> {
        joined.rows.iter().filter(|row| row.rank.is_some()).map(|row| row.item.clone()).collect()
    };
    let both: BTreeSet<Item> = verdicts(a).intersection(&verdicts(b)).cloned().collect();
    let criteria = places(both.iter().map(|item| (item, NO_TYPE)));
    criteria
        .into_iter()
        .map(|(criterion, _)| {
            let items: BTreeSet<&Item> =
                both.iter().filter(|item| is_in(item, "", criterion.as_deref(), None)).collect();
            let (case_of, cases) = cases(items.iter().copied());
            let case_of: BTreeMap<&Item, usize> = items.iter().copied().zip(case_of).collect();
            let side = |joined: &Joined<'_>| -> (Columns, Vec<usize>) {
                let pairs: Vec<(&Item, (f64, f64))> = joined
                    .rows
                    .iter()
                    .filter(|row| items.contains(row.item))
                    .filter_map(|row| Some((row.item, (row.rank?, row.truth))))
                    .collect();
                let places = pairs.iter().filter_map(|(item, _)| case_of.get(item).copied());
                (columns(&pairs), places.collect())
            };
            let sides = [side(a), side(b)];
            let difference = measured(&Measure::OF_PAIRS, items.len(), cases, bootstrap, |drawn| {
                let [first, second] = sides
                    .each_ref()
                    .map(|(columns, case_of)| columns.measure(|i| f64::from(drawn[case_of[i]])));
                first.into_iter().zip(second).map(|(a, b)| Ok(a? - b?)).collect()
            });
            (criterion, difference)
        })
        .collect()
}

//! Judges beside people: joined by case, editor and criterion.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::labels::{Labels, Truth};
use super::measures::{Columns, Measure, Measured, Values, alphas, measured, nearest_rank};
use super::ranking::Ranking;
use crate::key::Item;
use crate::report::{GroupKey, NO_TYPE};
use crate::stats::{Bootstrap, Coverage, Estimate, Pairs, Ratings, Statistic, mean};

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
    /// Who edited; none where all stand together.
    pub editor: Option<String>,
    /// The type of instruction; none where all stand together.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// How many cases the items belong to.
    pub cases: usize,
    /// Verdicts among what people labelled; absent among people.
    pub coverage: Option<Coverage>,
    /// The numbers.
    pub agreement: Measured,
    /// How far people agree with each other on the same items, as the mean Spearman correlation of
    /// each pair of them: no judge can be asked for more. Absent where fewer than two labelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Estimate>,
    /// Of people: each pair of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<AnnotatorPair>,
}

/// Two annotators.
#[derive(Debug, Clone, Serialize)]
pub struct AnnotatorPair {
    /// Their names.
    pub annotators: [String; 2],
    /// How many items both labelled.
    pub n: usize,
    /// Their rank correlation.
    pub spearman: Estimate,
}

/// What stands in a cell: of a criterion, an editor, a type, or of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    criterion: Option<String>,
    editor: Option<String>,
    kind: Option<String>,
}

impl Place {
    fn has(&self, item: &Item, kind: &str) -> bool {
        self.criterion.as_ref().is_none_or(|criterion| item.criterion == *criterion)
            && self.editor.as_ref().is_none_or(|editor| item.editor == *editor)
            && self.kind.as_ref().is_none_or(|own| kind == own)
    }

    fn cell(self, cases: usize, coverage: Option<Coverage>, agreement: Measured) -> Cell {
        let Self { criterion, editor, kind } = self;
        Cell {
            criterion,
            editor,
            kind,
            cases,
            coverage,
            agreement,
            ceiling: None,
            pairs: Vec::new(),
        }
    }
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
    /// All together first, then by criterion, in it by editor, then by type.
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
struct JoinedRow<'a> {
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
                let one = differences_of(a, b, labels, bootstrap);
                let named = one.into_iter().map(|(criterion, difference)| Difference {
                    judges: [first, second],
                    criterion,
                    difference,
                });
                differences.extend(named);
            }
        }
        let people = among_annotators(labels, &kinds, bootstrap);
        Self {
            truth,
            labelled: labels.items.len(),
            between_labels: labels.between_labels(truth),
            annotators: labels.annotators().into_iter().map(str::to_owned).collect(),
            judges: judges
                .iter()
                .zip(&joined)
                .map(|(judge, joined)| {
                    joined.agreement(judge, labels, &people, rankings, bootstrap)
                })
                .collect(),
            among_annotators: people,
            differences,
        }
    }
}

/// What a judge said of what people labelled.
struct Joined<'a> {
    rows: Vec<JoinedRow<'a>>,
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
                    rows.push(JoinedRow {
                        item: &one.item,
                        kind: &one.kind,
                        truth,
                        rank: one.rank,
                    });
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
                rows.push(JoinedRow { item, kind, truth, rank: None });
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
        labels: &Labels,
        people: &[Cell],
        rankings: &[Ranking],
        bootstrap: &Bootstrap,
    ) -> JudgeAgreement {
        let places = places(self.rows.iter().map(|row| (row.item, row.kind)));
        let cell = |place: Place| {
            let rows: Vec<&JoinedRow<'_>> =
                self.rows.iter().filter(|row| place.has(row.item, row.kind)).collect();
            let same = |cell: &&Cell| {
                (&cell.criterion, &cell.editor, &cell.kind)
                    == (&place.criterion, &place.editor, &place.kind)
            };
            let ceiling = people.iter().find(same).and_then(|cell| cell.ceiling);
            Cell { ceiling, ..judge_cell(place, &rows, labels, bootstrap) }
        };
        JudgeAgreement {
            judge: judge.name.clone(),
            without_label: self.without_label,
            never_judged: self.never_judged,
            of_others: self.of_others,
            cells: places.into_iter().map(cell).collect(),
            confusion: rankings
                .iter()
                .filter(|ranking| !labels.other_scales.contains(&ranking.criterion))
                .filter_map(|ranking| self.confusion(ranking))
                .collect(),
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

/// All together (where there are several criteria), each criterion, each editor and each type in it.
fn places<'a>(items: impl Iterator<Item = (&'a Item, &'a str)>) -> Vec<Place> {
    let mut known: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    for (item, kind) in items {
        let (editors, kinds) = known.entry(&item.criterion).or_default();
        editors.insert(&item.editor);
        kinds.insert(kind);
    }
    let mut places = Vec::new();
    if known.len() > 1 {
        places.push(Place::default());
    }
    for (criterion, (editors, kinds)) in known {
        let whole = Place { criterion: Some(criterion.to_owned()), ..Place::default() };
        places.push(whole.clone());
        let editors = editors.into_iter().filter(|editor| !editor.is_empty());
        places.extend(editors.map(|one| Place { editor: Some(one.to_owned()), ..whole.clone() }));
        let several = kinds.len() > 1 || !kinds.contains(NO_TYPE);
        let kinds = kinds.into_iter().filter(|_| several);
        places.extend(kinds.map(|kind| Place { kind: Some(kind.to_owned()), ..whole.clone() }));
    }
    places
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
    place: Place,
    rows: &[&JoinedRow<'_>],
    labels: &Labels,
    bootstrap: &Bootstrap,
) -> Cell {
    let pairs: Vec<(&Item, (f64, f64))> =
        rows.iter().filter_map(|row| Some((row.item, (row.rank?, row.truth)))).collect();
    let (case_of, cases) = cases(pairs.iter().map(|(item, _)| *item));
    let columns = columns(&pairs, labels);
    let coverage = Some(Coverage { answered: pairs.len(), all: rows.len() });
    let agreement = measured(&Measure::OF_PAIRS, pairs.len(), cases, bootstrap, |drawn| {
        columns.measure(|i| f64::from(drawn[case_of[i]])).to_vec()
    });
    place.cell(cases, coverage, agreement)
}

/// Ranks beside the truth, or numbers of two scales.
fn columns(pairs: &[(&Item, (f64, f64))], labels: &Labels) -> Columns {
    let numbers: Vec<(f64, f64)> = pairs.iter().map(|(_, pair)| *pair).collect();
    match pairs.iter().any(|(item, _)| labels.other_scales.contains(&item.criterion)) {
        true => Columns::new(&numbers, Values::OtherScale),
        false => Columns::of_ranks(&numbers),
    }
}

fn among_annotators(
    labels: &Labels,
    kinds: &BTreeMap<&str, &str>,
    bootstrap: &Bootstrap,
) -> Vec<Cell> {
    let kind_of = |item: &Item| kinds.get(item.case.as_str()).copied().unwrap_or(NO_TYPE);
    places(labels.items.keys().map(|item| (item, kind_of(item))))
        .into_iter()
        .map(|place| {
            let named: Vec<(&Item, &BTreeMap<String, f64>)> =
                labels.items.iter().filter(|(item, _)| place.has(item, kind_of(item))).collect();
            let units: Vec<(&Item, Vec<f64>)> = named
                .iter()
                .map(|(item, ranks)| (*item, ranks.values().copied().collect()))
                .collect();
            let (ceiling, pairs) = annotator_pairs(&named, bootstrap);
            Cell { ceiling, pairs, ..rater_cell(place, &units, bootstrap) }
        })
        .collect()
}

/// With more annotators their pairs are not told one by one.
const MOST_ANNOTATORS: usize = 12;

/// The rank correlation of each pair of annotators on what both labelled, and the mean of those that
/// are defined.
fn annotator_pairs(
    items: &[(&Item, &BTreeMap<String, f64>)],
    bootstrap: &Bootstrap,
) -> (Option<Estimate>, Vec<AnnotatorPair>) {
    let names: BTreeSet<&String> = items.iter().flat_map(|(_, ranks)| ranks.keys()).collect();
    let names: Vec<&String> = names.into_iter().collect();
    if !(2..=MOST_ANNOTATORS).contains(&names.len()) {
        return (None, Vec::new());
    }
    let (case_of, cases) = cases(items.iter().map(|(item, _)| *item));
    let mut couples = Vec::new();
    for (place, first) in names.iter().enumerate() {
        for second in &names[place + 1..] {
            let both = items.iter().zip(&case_of).filter_map(|((_, ranks), case)| {
                Some((*case, (*ranks.get(*first)?, *ranks.get(*second)?)))
            });
            let (of, numbers): (Vec<usize>, Vec<(f64, f64)>) = both.unzip();
            couples.push(([(*first).clone(), (*second).clone()], of, Pairs::new(&numbers)));
        }
    }
    let spearman = |(_, of, pairs): &([String; 2], Vec<usize>, Pairs), drawn: &[u32]| {
        pairs.spearman(&pairs.weights(|i| f64::from(drawn[of[i]])))
    };
    // The first estimate is the mean, the others are those of the pairs.
    let statistics = |drawn: &[u32]| {
        let each: Vec<Statistic> = couples.iter().map(|couple| spearman(couple, drawn)).collect();
        let defined: Vec<f64> = each.iter().filter_map(|one| one.as_ref().ok().copied()).collect();
        let mean = match (defined.is_empty(), each.first()) {
            (true, Some(why)) => *why,
            _ => mean(&defined),
        };
        [vec![mean], each].concat()
    };
    let values = statistics(&vec![1; cases]);
    let intervals = bootstrap
        .intervals(cases, |drawn| statistics(drawn).into_iter().map(Statistic::ok).collect());
    let mut estimates =
        values.into_iter().zip(intervals).map(|(value, interval)| Estimate::new(value, interval));
    let ceiling = estimates.next();
    let pairs = couples.iter().zip(estimates).map(|((annotators, of, _), spearman)| {
        AnnotatorPair { annotators: annotators.clone(), n: of.len(), spearman }
    });
    (ceiling, pairs.collect())
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
            let place = Place { criterion: Some(criterion.to_owned()), ..Place::default() };
            rater_cell(place, &units, bootstrap)
        })
        .collect()
}

/// The agreement of any number of raters on items.
fn rater_cell(place: Place, units: &[(&Item, Vec<f64>)], bootstrap: &Bootstrap) -> Cell {
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
    place.cell(cases, None, agreement)
}

/// The first judge minus the second, all together and by criterion, on what both gave a verdict on.
fn differences_of(
    a: &Joined<'_>,
    b: &Joined<'_>,
    labels: &Labels,
    bootstrap: &Bootstrap,
) -> Vec<(Option<String>, Measured)> {
    let verdicts = |joined: &Joined<'_>| -> BTreeSet<Item> {
        joined.rows.iter().filter(|row| row.rank.is_some()).map(|row| row.item.clone()).collect()
    };
    let both: BTreeSet<Item> = verdicts(a).intersection(&verdicts(b)).cloned().collect();
    let criteria = places(both.iter().map(|item| (item, NO_TYPE)));
    criteria
        .into_iter()
        .filter(|place| place.editor.is_none())
        .map(|place| {
            let items: BTreeSet<&Item> =
                both.iter().filter(|item| place.has(item, NO_TYPE)).collect();
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
                (columns(&pairs, labels), places.collect())
            };
            let sides = [side(a), side(b)];
            let difference = measured(&Measure::OF_PAIRS, items.len(), cases, bootstrap, |drawn| {
                let [first, second] = sides
                    .each_ref()
                    .map(|(columns, case_of)| columns.measure(|i| f64::from(drawn[case_of[i]])));
                first.into_iter().zip(second).map(|(a, b)| Ok(a? - b?)).collect()
            });
            (place.criterion, difference)
        })
        .collect()
}

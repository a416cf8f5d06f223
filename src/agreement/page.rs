//! Agreement as one page: the numbers, the confusion, and the cases on which judge and people are
//! furthest apart, with their pictures.

use std::collections::{BTreeMap, BTreeSet};

use minijinja::value::Serde;
use serde::Serialize;

use super::judges::{Agreement, Cell, Confusion, Judge};
use super::labels::Labels;
use super::ranking::Ranking;
use crate::key::Item;
use crate::visible::visible;

/// So many disagreements are shown of each judge.
const MOST_CASES: usize = 60;
/// Longer reasons are cut.
const LONGEST_REASONS: usize = 1200;

/// What a page shows of an item besides its numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    pub(crate) instruction: Option<String>,
    pub(crate) reasoning: Option<String>,
    /// Links to pictures, by name.
    pub(crate) pictures: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Page {
    labelled: usize,
    annotators: String,
    truth: &'static str,
    intervals: String,
    judges: Vec<JudgeView>,
}

#[derive(Serialize)]
struct JudgeView {
    name: String,
    cells: Vec<CellView>,
    tables: Vec<TableView>,
    cases: Vec<CaseView>,
    more: usize,
}

#[derive(Serialize)]
struct CellView {
    criterion: String,
    editor: String,
    kind: String,
    n: usize,
    coverage: String,
    spearman: String,
    ceiling: String,
}

#[derive(Serialize)]
struct TableView {
    criterion: String,
    columns: Vec<String>,
    rows: Vec<RowView>,
}

#[derive(Serialize)]
struct RowView {
    name: String,
    counts: Vec<CountView>,
}

#[derive(Serialize)]
struct CountView {
    count: usize,
    /// Of the row, in percent of the strongest colour.
    share: usize,
}

#[derive(Serialize)]
struct CaseView {
    case: String,
    editor: String,
    criterion: String,
    instruction: Option<String>,
    judge: String,
    people: String,
    each: String,
    apart: String,
    reasoning: Option<String>,
    pictures: Vec<PictureView>,
}

#[derive(Serialize)]
struct PictureView {
    name: String,
    link: String,
}

/// A verdict beside the truth.
struct Row<'a> {
    item: &'a Item,
    rank: f64,
    truth: f64,
}

/// The page; `shown` tells what else is known of an item by the judge at a place.
pub(crate) fn render(
    agreement: &Agreement,
    judges: &[Judge],
    labels: &Labels,
    rankings: &[Ranking],
    intervals: String,
    shown: &dyn Fn(usize, &Item) -> Shown,
) -> Result<String, minijinja::Error> {
    let views =
        judges.iter().zip(&agreement.judges).enumerate().map(|(place, (judge, numbers))| {
            let rows: Vec<Row<'_>> = judge
                .judgements
                .iter()
                .filter_map(|one| {
                    let truth = labels.truth(&one.item, agreement.truth)?;
                    Some(Row { item: &one.item, rank: one.rank?, truth })
                })
                .collect();
            let apart = distances(&rows, labels);
            let mut worst: Vec<usize> = (0..rows.len()).filter(|at| apart[*at] > 0.0).collect();
            worst.sort_by(|a, b| {
                apart[*b].total_cmp(&apart[*a]).then_with(|| rows[*a].item.cmp(rows[*b].item))
            });
            let cases = worst.iter().take(MOST_CASES).map(|at| {
                case_view(&rows[*at], apart[*at], labels, rankings, shown(place, rows[*at].item))
            });
            let mut tables: Vec<TableView> = numbers.confusion.iter().map(of_labels).collect();
            tables.extend(of_numbers(&rows, labels));
            JudgeView {
                name: visible(&numbers.judge.title()),
                cells: numbers.cells.iter().map(cell_view).collect(),
                tables,
                cases: cases.collect(),
                more: worst.len().saturating_sub(MOST_CASES),
            }
        });
    let page = Page {
        labelled: agreement.labelled,
        annotators: visible(&agreement.annotators.join(", ")),
        truth: agreement.truth.in_words(),
        intervals,
        judges: views.collect(),
    };
    let mut templates = minijinja::Environment::new();
    templates.add_template("agreement.html", include_str!("agreement.html"))?;
    templates.get_template("agreement.html")?.render(minijinja::context! { page => Serde(&page) })
}

/// How far each verdict is from the truth: in ranks of labels, or where scales differ in the order
/// that both put the cases of a criterion in, as a part of all of them.
fn distances(rows: &[Row<'_>], labels: &Labels) -> Vec<f64> {
    let mut apart: Vec<f64> = rows.iter().map(|row| (row.rank - row.truth).abs()).collect();
    for criterion in &labels.other_scales {
        let places: Vec<usize> =
            (0..rows.len()).filter(|at| rows[*at].item.criterion == *criterion).collect();
        let order = |value: &dyn Fn(&Row<'_>) -> f64| {
            let all: Vec<f64> = places.iter().map(|at| value(&rows[*at])).collect();
            let rank = |own: &f64| {
                let below = all.iter().filter(|other| *other < own).count() as f64;
                let same = all.iter().filter(|other| *other == own).count() as f64;
                (below + same / 2.0) / all.len() as f64
            };
            all.iter().map(rank).collect::<Vec<f64>>()
        };
        let (judge, people) = (order(&|row| row.rank), order(&|row| row.truth));
        for ((at, one), other) in places.iter().zip(judge).zip(people) {
            apart[*at] = (one - other).abs();
        }
    }
    apart
}

fn case_view(
    row: &Row<'_>,
    apart: f64,
    labels: &Labels,
    rankings: &[Ranking],
    shown: Shown,
) -> CaseView {
    let item = row.item;
    let other = labels.other_scales.contains(&item.criterion);
    let ranking = Ranking::find(rankings, &item.criterion);
    let named = |rank: f64, theirs: bool| {
        let labels = ranking.filter(|_| !(other && theirs)).map(|ranking| &ranking.labels);
        let found = labels.and_then(|labels| labels.iter().find(|(_, own)| *own == rank));
        found.map_or_else(
            || format!("{}", (rank * 1000.0).round() / 1000.0),
            |(name, _)| name.clone(),
        )
    };
    let each = labels.items.get(item).into_iter().flatten();
    let each: Vec<String> =
        each.map(|(who, rank)| format!("{who}: {}", named(*rank, true))).collect();
    let cut = |text: String| visible(&text.chars().take(LONGEST_REASONS).collect::<String>());
    CaseView {
        case: visible(&item.case),
        editor: visible(&item.editor),
        criterion: visible(&item.criterion),
        instruction: shown.instruction.map(cut),
        judge: visible(&named(row.rank, false)),
        people: visible(&named(row.truth, true)),
        each: visible(&each.join(", ")),
        apart: match other {
            true => format!("{:.0} % of all cases apart in their order", 100.0 * apart),
            false => format!("{:.2} ranks apart", apart),
        },
        reasoning: shown.reasoning.map(cut),
        pictures: shown
            .pictures
            .into_iter()
            .map(|(name, link)| PictureView { name: visible(&name), link })
            .collect(),
    }
}

fn cell_view(cell: &Cell) -> CellView {
    let name = |name: &Option<String>| visible(name.as_deref().unwrap_or("all"));
    CellView {
        criterion: name(&cell.criterion),
        editor: name(&cell.editor),
        kind: name(&cell.kind),
        n: cell.agreement.n,
        coverage: cell.coverage.map_or("–".to_owned(), |coverage| {
            format!("{} of {}", coverage.answered, coverage.all)
        }),
        spearman: cell.agreement.get(super::Measure::Spearman).to_string(),
        ceiling: cell.ceiling.map_or("–".to_owned(), |ceiling| ceiling.to_string()),
    }
}

fn table(criterion: &str, columns: Vec<String>, rows: Vec<(String, Vec<usize>)>) -> TableView {
    let row = |(name, counts): (String, Vec<usize>)| {
        let most = counts.iter().sum::<usize>().max(1);
        let count = |count: usize| CountView { count, share: 60 * count / most };
        RowView { name: visible(&name), counts: counts.into_iter().map(count).collect() }
    };
    TableView {
        criterion: visible(criterion),
        columns: columns.iter().map(|name| visible(name)).collect(),
        rows: rows.into_iter().map(row).collect(),
    }
}

fn of_labels(confusion: &Confusion) -> TableView {
    let columns = confusion.labels.iter().cloned().chain(["no verdict".to_owned()]).collect();
    let rows = confusion.labels.iter().cloned().zip(confusion.counts.iter().cloned()).collect();
    table(&confusion.criterion, columns, rows)
}

/// More levels are no table.
const MOST_LEVELS: usize = 24;

/// Numbers of the judge, whole, beside those of people.
fn of_numbers(rows: &[Row<'_>], labels: &Labels) -> Vec<TableView> {
    let mut tables = Vec::new();
    for criterion in &labels.other_scales {
        let mut counts: BTreeMap<i64, BTreeMap<i64, usize>> = BTreeMap::new();
        // In hundredths, so that they can be compared.
        let level =
            |number: f64, step: f64| ((number / step).round() * step * 100.0).round() as i64;
        for row in rows.iter().filter(|row| row.item.criterion == *criterion) {
            let people = counts.entry(level(row.truth, 1.0 / 6.0)).or_default();
            *people.entry(level(row.rank, 1.0)).or_default() += 1;
        }
        let columns: BTreeSet<i64> = counts.values().flat_map(BTreeMap::keys).copied().collect();
        if counts.is_empty() || counts.len().max(columns.len()) > MOST_LEVELS {
            continue;
        }
        let name = |level: &i64| format!("{}", *level as f64 / 100.0);
        let rows = counts.iter().rev().map(|(people, judge)| {
            (name(people), columns.iter().map(|one| judge.get(one).copied().unwrap_or(0)).collect())
        });
        let rows = rows.collect();
        tables.push(table(criterion, columns.iter().map(name).collect(), rows));
    }
    tables
}

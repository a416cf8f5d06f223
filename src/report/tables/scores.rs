//! Tables of scores and labels.

use super::{Cell, NONE, Room, Table, lists, percent};
use crate::report::{
    Association, Count, CriterionName, CriterionScores, EditorScores, Group, KeyMean, Points,
    Score, SizeAnalysis,
};

/// A score with everything that it stands on.
pub(super) fn score_cell(score: &Score) -> Cell {
    if score.n == 0 {
        return Cell::new(NONE);
    }
    let mut cell = Cell::new(score.score.map_or(NONE.to_owned(), |points| points.to_string()));
    cell.interval = score.interval.map(|interval| format!("[{}, {}]", interval.low, interval.high));
    cell = cell.small(format!("n {}", of_all(score.verdicts, score.n)));
    if let (Some(worst), Some(best)) = (score.worst, score.best)
        && worst != best
    {
        cell = cell.small(format!("bounds {worst}–{best}"));
    }
    if let Some(types) = score.types.filter(|types| types.scored < types.of) {
        cell = cell.small(format!("{} of {} groups", types.scored, types.of));
    }
    if let Some(deviation) = score.deviation {
        cell = cell.small(format!("± {deviation:.2} over repetitions"));
    }
    cell
}

/// `84`, or `82/84` where some are missing.
fn of_all(count: usize, all: usize) -> String {
    if count == all { all.to_string() } else { format!("{count}/{all}") }
}

pub(super) fn leaderboard(group: &Group, g: usize) -> Table {
    let mut head = vec!["Editor".to_owned()];
    head.extend(group.composites.iter().map(|composite| composite.name.clone()));
    for criterion in &group.criteria {
        head.push(criterion.short());
        if has_weights(group) {
            head.push(format!("{}, weighted", criterion.short()));
        }
        if criterion.pooled {
            head.push(format!("{}, each case once", criterion.short()));
        }
    }
    head.push("Coverage".to_owned());
    let rows = group.editors.iter().enumerate().map(|(e, editor)| {
        let mut row = vec![Cell::new(&editor.editor)];
        for scores in &editor.composites {
            row.push(score_cell(&scores.average).of(lists::editor(g, e)));
        }
        for (c, scores) in editor.criteria.iter().enumerate() {
            let list = || lists::criterion(g, e, c);
            row.push(score_cell(&scores.average).of(list()));
            if has_weights(group) {
                row.push(score_cell(&scores.weighted).of(list()));
            }
            row.extend(scores.per_case.iter().map(|score| score_cell(score).of(list())));
        }
        row.push(Cell::new(percent(editor.coverage())).of(lists::editor(g, e)));
        row
    });
    Table { head, rows: rows.collect(), names: 1, room: Room::Intervals, ..Table::default() }
}

/// Whether the average is another number than the mean over all cases.
fn has_weights(group: &Group) -> bool {
    let differs = |scores: &CriterionScores| scores.average.types.is_some();
    group.editors.iter().flat_map(|editor| &editor.criteria).any(differs)
}

/// The scores by the fact that the pack groups by.
pub(super) fn by_type(group: &Group, g: usize) -> Vec<Table> {
    let mut tables = Vec::new();
    let head = editors_head(&group.editors);
    for (c, criterion) in group.criteria.iter().enumerate() {
        let title = format!("{} ({})", criterion.name, criterion.short());
        let mut rows = Vec::new();
        for (t, kind) in group.types.iter().enumerate() {
            let cells = group.editors.iter().enumerate().map(|(e, editor)| {
                let cell = &editor.criteria[c].types[t];
                score_cell(&cell.score).of(lists::cell(g, e, c, t))
            });
            rows.push(named_row(kind, cells.collect()));
        }
        let mut total = |name: &str, of: &dyn Fn(&CriterionScores) -> Score| {
            let cell = |(e, editor): (usize, &EditorScores)| {
                score_cell(&of(&editor.criteria[c])).of(lists::criterion(g, e, c))
            };
            rows.push(named_row(name, group.editors.iter().enumerate().map(cell).collect()));
        };
        let mut totals = 1;
        total("Average", &|scores| scores.average.clone());
        if has_weights(group) {
            total("Weighted average", &|scores| scores.weighted.clone());
            totals += 1;
        }
        if criterion.pooled {
            total("Average, each case once", &|scores| scores.per_case.clone().unwrap_or_default());
            totals += 1;
        }
        let room = Room::Numbers;
        tables.push(Table { title, head: head.clone(), rows, names: 1, totals, room });
        if criterion.pooled {
            tables.push(each_case_once(group, c, &head));
        }
    }
    for (c, composite) in group.composites.iter().enumerate() {
        let cell = |score: &Score, e: usize| score_cell(score).of(lists::editor(g, e));
        let mut rows = Vec::new();
        for (t, kind) in group.types.iter().enumerate() {
            let cells = group.editors.iter().enumerate();
            let cells = cells.map(|(e, editor)| cell(&editor.composites[c].types[t].score, e));
            rows.push(named_row(kind, cells.collect()));
        }
        let averages = group.editors.iter().enumerate();
        let averages = averages.map(|(e, editor)| cell(&editor.composites[c].average, e));
        rows.push(named_row("Average", averages.collect()));
        tables.push(Table {
            title: format!("{}: {}", composite.name, composite.made_of),
            head: head.clone(),
            rows,
            names: 1,
            totals: 1,
            room: Room::Numbers,
        });
    }
    tables
}

/// What a criterion whose parts are pooled says if every case counts once.
fn each_case_once(group: &Group, c: usize, head: &[String]) -> Table {
    let row = |(t, kind): (usize, &String)| {
        let cell = |editor: &EditorScores| {
            let score = editor.criteria[c].types[t].per_case.clone();
            score_cell(&score.unwrap_or_default())
        };
        named_row(kind, group.editors.iter().map(cell).collect())
    };
    Table {
        title: format!("{}, each case once", group.criteria[c].short()),
        head: head.to_vec(),
        rows: group.types.iter().enumerate().map(row).collect(),
        names: 1,
        room: Room::Numbers,
        ..Table::default()
    }
}

/// The scores by further facts.
pub(super) fn by_others(group: &Group) -> Vec<Table> {
    let mut tables = Vec::new();
    for grouping in &group.also {
        let criteria = group.criteria.iter().map(|criterion| criterion.short());
        let names = criteria.chain(group.composites.iter().map(|composite| composite.name.clone()));
        for (c, name) in names.enumerate() {
            let row = |(t, value): (usize, &String)| {
                let cell = |editor: &EditorScores| {
                    let all = editor.criteria.iter().chain(&editor.composites);
                    let scores = all.into_iter().nth(c).and_then(|scores| scores.types.get(t));
                    scores.map_or_else(|| Cell::new(NONE), |cell| score_cell(&cell.score))
                };
                named_row(value, grouping.editors.iter().map(cell).collect())
            };
            tables.push(Table {
                title: format!("{name} by {}", grouping.by),
                head: editors_head(&grouping.editors),
                rows: grouping.types.iter().enumerate().map(row).collect(),
                names: 1,
                room: Room::Numbers,
                ..Table::default()
            });
        }
    }
    tables
}

fn editors_head(editors: &[EditorScores]) -> Vec<String> {
    let names = editors.iter().map(|editor| editor.editor.clone());
    [String::new()].into_iter().chain(names).collect()
}

fn named_row(name: &str, cells: Vec<Cell>) -> Vec<Cell> {
    [Cell::new(name)].into_iter().chain(cells).collect()
}

/// Every score of a group with its editor, criterion and type, in the order of the tables.
pub(in super::super) fn every_score(group: &Group) -> Vec<(&str, String, &str, &Score)> {
    let mut all = Vec::new();
    for editor in &group.editors {
        for scores in &editor.criteria {
            let criterion = || scores.criterion.to_uppercase();
            for cell in &scores.types {
                all.push((editor.editor.as_str(), criterion(), cell.kind.as_str(), &cell.score));
            }
            all.push((&editor.editor, criterion(), "Average", &scores.average));
            all.push((&editor.editor, criterion(), "Weighted average", &scores.weighted));
        }
        for (composite, scores) in group.composites.iter().zip(&editor.composites) {
            for cell in &scores.types {
                all.push((&editor.editor, composite.name.clone(), &cell.kind, &cell.score));
            }
            all.push((&editor.editor, composite.name.clone(), "Average", &scores.average));
        }
    }
    all
}

pub(super) fn cells(group: &Group) -> Table {
    let head = [
        "Editor",
        "Criterion",
        "Type",
        "Cases",
        "n",
        "Verdicts",
        "Coverage",
        "Score",
        "95 % interval",
        "Bounds",
    ];
    let points = |points: Option<_>| points.map_or(NONE.to_owned(), |p: Points| p.to_string());
    let rows = every_score(group).into_iter().map(|(editor, criterion, kind, score)| {
        let interval = score
            .interval
            .map_or(NONE.to_owned(), |interval| format!("[{}, {}]", interval.low, interval.high));
        let row = [
            editor.to_owned(),
            criterion,
            kind.to_owned(),
            score.cases.to_string(),
            score.n.to_string(),
            score.verdicts.to_string(),
            percent(score.coverage),
            points(score.score),
            interval,
            format!("{}–{}", points(score.worst), points(score.best)),
        ];
        row.into_iter().map(Cell::new).collect()
    });
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        names: 3,
        ..Table::default()
    }
}

pub(super) fn labels(group: &Group, g: usize) -> Vec<Table> {
    let table = |(c, criterion): (usize, &CriterionName)| {
        let rows = group.editors.iter().enumerate().map(|(e, editor)| {
            let counts = &editor.criteria[c].labels;
            let all: usize = counts.iter().map(|count| count.count).sum();
            let cell = |count: &Count| {
                let part = (all > 0).then(|| count.count as f64 / all as f64);
                Cell::new(percent(part))
                    .small(count.count.to_string())
                    .of(lists::criterion(g, e, c))
            };
            let name = [Cell::new(&editor.editor)].into_iter();
            let verdicts = Cell::new(all.to_string()).of(lists::criterion(g, e, c));
            name.chain(counts.iter().map(cell)).chain([verdicts]).collect()
        });
        let names = criterion.labels.iter().map(|label| label.name.clone());
        Table {
            title: criterion.name.clone(),
            head: ["Editor".to_owned()]
                .into_iter()
                .chain(names)
                .chain(["Verdicts".into()])
                .collect(),
            rows: rows.collect(),
            names: 1,
            ..Table::default()
        }
    };
    let labelled = group.criteria.iter().enumerate();
    labelled.filter(|(_, criterion)| !criterion.labels.is_empty()).map(table).collect()
}

/// What each key of an answer is worth on the mean.
pub(super) fn keys(group: &Group, g: usize) -> Vec<Table> {
    let mut tables = Vec::new();
    for (c, criterion) in group.criteria.iter().enumerate() {
        let Some(first) = group.editors.first().map(|editor| &editor.criteria[c].keys) else {
            continue;
        };
        if first.is_empty() {
            continue;
        }
        let row = |(e, editor): (usize, &EditorScores)| {
            let cell = |key: &KeyMean| {
                Cell::new(key.mean.map_or(NONE.to_owned(), three))
                    .small(format!("n {}", key.n))
                    .of(lists::criterion(g, e, c))
            };
            named_row(&editor.editor, editor.criteria[c].keys.iter().map(cell).collect())
        };
        tables.push(Table {
            title: criterion.name.clone(),
            head: ["Editor".to_owned()]
                .into_iter()
                .chain(first.iter().map(|key| key.key.clone()))
                .collect(),
            rows: group.editors.iter().enumerate().map(row).collect(),
            names: 1,
            ..Table::default()
        });
    }
    tables
}

pub(super) fn scale(group: &Group, g: usize) -> Table {
    let row = |one: &SizeAnalysis| {
        let e = group.editors.iter().position(|editor| editor.editor == one.editor).unwrap_or(0);
        let c = group.criteria.iter().position(|known| known.id == one.criterion).unwrap_or(0);
        let association = |a: &Association| match (a.r, &a.undefined) {
            (Some(r), _) => Cell::new(three(r)).small(p_value(a.p)),
            (None, why) => Cell::new(NONE).small(why.clone().unwrap_or_default()),
        };
        let window = one.window.r.map_or(NONE.to_owned(), three);
        let cells = [
            Cell::new(&one.editor),
            Cell::new(one.criterion.to_uppercase()),
            Cell::new(one.cases.to_string()),
            association(&one.width),
            association(&one.height),
            association(&one.area),
            Cell::new(window),
        ];
        let link = |(place, cell): (usize, Cell)| {
            if place < 2 { cell } else { cell.of(lists::criterion(g, e, c)) }
        };
        cells.into_iter().enumerate().map(link).collect()
    };
    let head =
        ["Editor", "Criterion", "Cases", "log width", "log height", "log area", "window of 10"];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: group.scale.iter().map(row).collect(),
        names: 2,
        ..Table::default()
    }
}

pub(in super::super) fn p_value(p: Option<f64>) -> String {
    match p {
        None => "p undefined".to_owned(),
        Some(p) if p < 0.001 => "p < 0.001".to_owned(),
        Some(p) => format!("p = {p:.3}"),
    }
}

/// Three decimals, and no minus before a zero.
pub(in super::super) fn three(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}

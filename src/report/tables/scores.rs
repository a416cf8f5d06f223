//! Tables of scores and labels.

use super::{Cell, NONE, Room, Table, lists, percent};
use crate::report::{
    Association, Count, CriterionName, CriterionScores, EditorScores, Group, Points, Scale, Score,
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
        cell = cell.small(format!("{} of {} types", types.scored, types.of));
    }
    cell
}

/// `84`, or `82/84` where some are missing.
fn of_all(count: usize, all: usize) -> String {
    if count == all { all.to_string() } else { format!("{count}/{all}") }
}

pub(super) fn leaderboard(group: &Group, g: usize) -> Table {
    let several = group.criteria.len() > 1;
    let mut head = vec!["Editor".to_owned()];
    if several {
        head.push("Overall".to_owned());
    }
    for criterion in &group.criteria {
        head.push(criterion.short());
        head.push(format!("{}, weighted", criterion.short()));
    }
    head.push("Coverage".to_owned());
    let rows = group.editors.iter().enumerate().map(|(e, editor)| {
        let mut row = vec![Cell::new(&editor.editor)];
        if several {
            row.push(score_cell(&editor.overall).of(lists::editor(g, e)));
        }
        for (c, scores) in editor.criteria.iter().enumerate() {
            row.push(score_cell(&scores.average).of(lists::criterion(g, e, c)));
            row.push(score_cell(&scores.weighted).of(lists::criterion(g, e, c)));
        }
        row.push(Cell::new(percent(editor.overall.coverage)).of(lists::editor(g, e)));
        row
    });
    Table { head, rows: rows.collect(), names: 1, room: Room::Intervals, ..Table::default() }
}

pub(super) fn by_type(group: &Group, g: usize) -> Vec<Table> {
    let editors = || group.editors.iter().enumerate();
    let head: Vec<String> =
        [String::new()].into_iter().chain(editors().map(|(_, e)| e.editor.clone())).collect();
    let row = |name: &str, cells: Vec<Cell>| {
        [Cell::new(name)].into_iter().chain(cells).collect::<Vec<Cell>>()
    };
    let mut tables = Vec::new();
    for (c, criterion) in group.criteria.iter().enumerate() {
        let mut rows = Vec::new();
        for (t, kind) in group.types.iter().enumerate() {
            let cells = editors().map(|(e, editor)| {
                score_cell(&editor.criteria[c].types[t].score).of(lists::cell(g, e, c, t))
            });
            rows.push(row(kind, cells.collect()));
        }
        let average = |of: fn(&CriterionScores) -> &Score| {
            let cell = |(e, editor): (usize, &EditorScores)| {
                score_cell(of(&editor.criteria[c])).of(lists::criterion(g, e, c))
            };
            editors().map(cell).collect::<Vec<_>>()
        };
        rows.push(row("Average", average(|scores| &scores.average)));
        rows.push(row("Weighted average", average(|scores| &scores.weighted)));
        tables.push(Table {
            title: format!("{} ({})", criterion.name, criterion.short()),
            head: head.clone(),
            rows,
            names: 1,
            totals: 2,
            room: Room::Numbers,
        });
    }
    if group.criteria.len() > 1 {
        let mut rows = Vec::new();
        for (t, kind) in group.types.iter().enumerate() {
            let cell = |(e, editor): (usize, &EditorScores)| {
                score_cell(&editor.overall_types[t]).of(lists::editor(g, e))
            };
            rows.push(row(kind, editors().map(cell).collect()));
        }
        let cell = |(e, editor): (usize, &EditorScores)| {
            score_cell(&editor.overall).of(lists::editor(g, e))
        };
        rows.push(row("Average", editors().map(cell).collect()));
        let names: Vec<String> = group.criteria.iter().map(|c| c.short()).collect();
        tables.push(Table {
            title: format!("Overall: the mean of {}", names.join(" and ")),
            head,
            rows,
            names: 1,
            totals: 1,
            room: Room::Numbers,
        });
    }
    tables
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
        if group.criteria.len() > 1 {
            for (kind, score) in group.types.iter().zip(&editor.overall_types) {
                all.push((&editor.editor, "Overall".to_owned(), kind, score));
            }
            all.push((&editor.editor, "Overall".to_owned(), "Average", &editor.overall));
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
    group.criteria.iter().enumerate().map(table).collect()
}

pub(super) fn scale(group: &Group, g: usize) -> Table {
    let row = |one: &Scale| {
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

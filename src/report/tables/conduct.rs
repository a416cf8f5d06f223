//! Tables of what the judge did: outcomes, effort, looks.

use super::{Cell, NONE, Table, lists, percent};
use crate::report::{Amount, Behaviour, Group, Share, Standing};

pub(super) fn outcomes(group: &Group, g: usize) -> Vec<Table> {
    let rows = group.outcomes.iter().map(|one| {
        let e = group.editors.iter().position(|editor| editor.editor == one.editor).unwrap_or(0);
        let c = group.criteria.iter().position(|known| known.id == one.criterion).unwrap_or(0);
        let names = [Cell::new(&one.editor), Cell::new(one.criterion.to_uppercase())];
        let counts = one.counts.iter().map(|count| count.count);
        let all: usize = counts.clone().sum();
        let counts = counts.map(|count| Cell::new(count.to_string()).of(lists::criterion(g, e, c)));
        let part = one.counts.first().map(|verdicts| verdicts.count as f64 / all.max(1) as f64);
        names
            .into_iter()
            .chain(counts)
            .chain([Cell::new(percent(part)).of(lists::criterion(g, e, c))])
            .collect()
    });
    let head = Standing::ALL.map(|standing| capitalised(standing.name()));
    let names = ["Editor", "Criterion"].map(str::to_owned).into_iter();
    let mut tables = vec![Table {
        title: "How judgements ended".into(),
        head: names.chain(head).chain(["Coverage".to_owned()]).collect(),
        rows: rows.collect(),
        names: 2,
        ..Table::default()
    }];
    if !group.reasons.is_empty() {
        let rows = group.reasons.iter().enumerate().map(|(r, reason)| {
            let count = Cell::new(reason.count.to_string()).of(lists::reason(g, r));
            vec![Cell::new(capitalised(reason.outcome.name())), Cell::new(&reason.reason), count]
        });
        tables.push(Table {
            title: "Why there is no verdict".into(),
            head: ["Outcome", "Reason", "Judgements"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
            names: 2,
            ..Table::default()
        });
    }
    tables
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

pub(super) fn effort(group: &Group, g: usize) -> Table {
    let row = |one: &Behaviour| {
        let sum = |amount: &Amount, unit: fn(f64) -> String| {
            let text = amount.sum.map_or("unknown".to_owned(), unit);
            let mut cell = Cell::new(text).of(lists::group(g));
            if let Some(mean) = amount.mean {
                cell = cell.small(format!("{} each", unit(mean)));
            }
            if amount.known > 0 && amount.known < one.judgements {
                cell = cell.small(format!("known for {} of {}", amount.known, one.judgements));
            }
            cell
        };
        vec![
            Cell::new(one.criterion.to_uppercase()),
            Cell::new(one.judgements.to_string()).of(lists::group(g)),
            match one.kept_replies {
                0 => sum(&one.turns, |turns| grouped(turns, 2)),
                kept => sum(&one.turns, |turns| grouped(turns, 2))
                    .small(format!("{kept} replies kept from before")),
            },
            sum(&one.prompt_tokens, |tokens| grouped(tokens, 0)),
            sum(&one.cached_tokens, |tokens| grouped(tokens, 0)),
            sum(&one.completion_tokens, |tokens| grouped(tokens, 0)),
            sum(&one.cost, |dollars| format!("USD {}", grouped(dollars, 4))),
            sum(&one.seconds, |seconds| format!("{} s", grouped(seconds, 1))),
        ]
    };
    let head = [
        "Criterion",
        "Judgements",
        "Turns",
        "Prompt tokens",
        "Of these cached",
        "Reply tokens",
        "Cost",
        "Time",
    ];
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: group.behaviour.iter().map(row).collect(),
        names: 1,
        ..Table::default()
    }
}

pub(super) fn behaviour(group: &Group, g: usize) -> Vec<Table> {
    let share = |share: &Share, list: String| {
        Cell::new(percent(share.share)).small(format!("{} of {}", share.count, share.of)).of(list)
    };
    let rows = group.behaviour.iter().enumerate().map(|(c, one)| {
        let calls = one.tool_calls.mean.map_or(NONE.to_owned(), |mean| format!("{mean:.2}"));
        let most = one.tool_calls.max.map(|max| format!("at most {max}")).unwrap_or_default();
        vec![
            Cell::new(one.criterion.to_uppercase()),
            share(&one.used_tools, lists::group(g)),
            Cell::new(calls).small(most).of(lists::group(g)),
            share(&one.looked_at_target, lists::elsewhere(g, c)),
            share(&one.without_evidence, lists::unfounded(g, c)),
        ]
    });
    let head = [
        "Criterion",
        "Used tools",
        "Looks per judgement",
        "Looked at the target",
        "Verdicts without evidence",
    ];
    let mut tables = vec![Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        names: 1,
        ..Table::default()
    }];
    let uses = group.behaviour.iter().flat_map(|one| one.tools.iter().map(move |tool| (one, tool)));
    let rows: Vec<Vec<Cell>> = uses
        .map(|(one, tool)| {
            vec![
                Cell::new(one.criterion.to_uppercase()),
                Cell::new(&tool.tool),
                Cell::new(tool.calls.to_string()).of(lists::group(g)),
                Cell::new(tool.judgements.to_string())
                    .small(percent(Some(tool.judgements as f64 / one.judgements.max(1) as f64)))
                    .of(lists::group(g)),
            ]
        })
        .collect();
    if !rows.is_empty() {
        tables.push(Table {
            title: "Tools".into(),
            head: ["Criterion", "Tool", "Looks", "Judgements"].map(str::to_owned).to_vec(),
            rows,
            names: 2,
            ..Table::default()
        });
    }
    tables
}

/// A number with a comma between thousands; no decimals where it is whole.
fn grouped(value: f64, decimals: usize) -> String {
    let decimals = if value.fract() == 0.0 && decimals < 3 { 0 } else { decimals };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

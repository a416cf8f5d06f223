//! What a run amounts to, in a few lines for a person.

use std::collections::BTreeMap;

use super::job::JobKey;
use crate::prompt::Mode;
use crate::stats::{Coverage, mean};
use crate::trace::{OutcomeName, ResultLine};

/// What the table tells of the judgements of one editor, criterion and mode.
#[derive(Default)]
struct Row {
    planned: usize,
    without: BTreeMap<OutcomeName, usize>,
    scores: Vec<f64>,
}

/// One row for each mode, criterion and editor, means beside their coverage: what is planned and
/// has no verdict lowers the coverage and is never a number.
pub(crate) fn table(
    planned: impl Iterator<Item = JobKey>,
    lines: &BTreeMap<JobKey, ResultLine>,
) -> String {
    let mut rows: BTreeMap<(Mode, String, String), Row> = BTreeMap::new();
    for key in planned {
        let line = lines.get(&key);
        let row = rows.entry((key.mode, key.criterion, key.editor)).or_default();
        row.planned += 1;
        match line.and_then(|line| Some((line.outcome()?, line.score))) {
            Some((OutcomeName::Verdict, Some(score))) => row.scores.push(score),
            Some((outcome, _)) => *row.without.entry(outcome).or_default() += 1,
            None => {}
        }
    }
    let mut cells = vec![
        ["mode", "criterion", "editor", "n", "verdicts", "coverage", "mean", "without a verdict"]
            .map(str::to_owned),
    ];
    for ((mode, criterion, editor), row) in rows {
        let coverage = Coverage { answered: row.scores.len(), all: row.planned };
        let percent = coverage.fraction().map(|part| format!("{:.0} %", 100.0 * part));
        let mut without: Vec<String> =
            row.without.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let open = row.planned - row.scores.len() - row.without.values().sum::<usize>();
        if open > 0 {
            without.push(format!("{open} open"));
        }
        cells.push([
            mode.to_string(),
            criterion,
            editor,
            row.planned.to_string(),
            row.scores.len().to_string(),
            percent.unwrap_or_else(|_| "–".to_owned()),
            mean(&row.scores).map_or("–".to_owned(), |mean| format!("{mean:.1}")),
            without.join(", "),
        ]);
    }
    aligned(&cells)
}

/// Columns side by side; numbers stand to the right.
fn aligned(cells: &[[String; 8]]) -> String {
    let width = |column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut text = String::new();
    for row in cells {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            match column {
                3..=6 => line.push_str(&format!("{cell:>width$}  ")),
                _ => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

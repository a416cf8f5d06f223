//! What a run amounts to, in a few lines for a person.

use std::collections::BTreeMap;
use std::fmt;

use deeplook_tools::scene::cut;
use serde::Serialize;

use crate::key::JudgementKey;
use crate::prompt::Mode;
use crate::stats::{Coverage, mean};
use crate::trace::{OutcomeName, ResultLine};
use crate::visible::visible_line;

/// What the table tells of the judgements of one editor, criterion and mode.
#[derive(Default)]
struct EditorRow {
    planned: usize,
    without: BTreeMap<OutcomeName, usize>,
    scores: Vec<f64>,
}

/// One row for each mode, criterion and editor, means beside their coverage: what is planned and
/// has no verdict lowers the coverage and is never a number.
pub(crate) fn table(
    planned: impl Iterator<Item = JudgementKey>,
    lines: &BTreeMap<JudgementKey, ResultLine>,
) -> String {
    let mut rows: BTreeMap<(Mode, String, String), EditorRow> = BTreeMap::new();
    for key in planned {
        let line = lines.get(&key);
        let row = rows.entry((key.mode, key.criterion, plain(&key.editor))).or_default();
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

/// Why so many judgements have no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How they ended.
    pub outcome: OutcomeName,
    /// How many.
    pub judgements: usize,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outcome, judgements, reason } = self;
        write!(f, "{judgements} {outcome}: {}", visible_line(&cut(reason, 300)))
    }
}

/// Why judgements have no verdict, the most frequent reason first.
pub(crate) fn reasons<'a>(lines: impl Iterator<Item = &'a ResultLine>) -> Vec<Reason> {
    let mut counts: BTreeMap<(OutcomeName, &str), usize> = BTreeMap::new();
    for line in lines {
        if let (Some(outcome), Some(reason)) = (line.outcome(), &line.reason)
            && outcome != OutcomeName::Verdict
        {
            *counts.entry((outcome, reason)).or_default() += 1;
        }
    }
    let reason = |((outcome, reason), judgements): ((OutcomeName, &str), usize)| Reason {
        outcome,
        judgements,
        reason: reason.to_owned(),
    };
    let mut reasons: Vec<Reason> = counts.into_iter().map(reason).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.judgements));
    reasons
}

/// A name from a data set, without what would break a line.
fn plain(name: &str) -> String {
    visible_line(&cut(name, 60))
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

//! Asking the list: filters, search, order, a page of it. `assets/local.js` does the same in the
//! browser where there is no server; the peer check `viewer` holds the two against each other.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::index::{Entry, Index, Row, natural};

/// The most rows of one answer.
const MOST_ROWS: usize = 500;

/// What is asked; an empty text asks for everything.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Query {
    run: String,
    criterion: String,
    label: String,
    outcome: String,
    #[serde(rename = "type")]
    kind: String,
    editor: String,
    model: String,
    mode: String,
    /// `repeats`, `judges`, or `any` of them.
    differ: String,
    /// Words that must all occur.
    q: String,
    sort: String,
    desc: String,
    offset: usize,
    limit: Option<usize>,
    /// The number of a row whose neighbours are asked for.
    around: Option<usize>,
}

/// A page of the list.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    /// How many rows there are.
    total: usize,
    /// How many were asked for.
    matched: usize,
    offset: usize,
    rows: Vec<&'a Row>,
    /// By filter: each value, and how many rows would be left with it.
    facets: BTreeMap<&'static str, Vec<(&'a str, usize)>>,
    /// By step of the scale, and by outcome for what has none: how many rows of those matched.
    tally: BTreeMap<String, usize>,
    around: Option<Around>,
}

/// Where a row is in the list that was asked for.
#[derive(Debug, Serialize)]
struct Around {
    position: usize,
    previous: Option<usize>,
    next: Option<usize>,
}

/// A filter: its name, what a row has there, what is asked.
type Filter = (&'static str, fn(&Row) -> &str, fn(&Query) -> &str);

const FILTERS: [Filter; 9] = [
    ("run", |row| &row.run, |query| &query.run),
    ("criterion", |row| &row.criterion, |query| &query.criterion),
    ("label", |row| &row.label, |query| &query.label),
    ("outcome", |row| row.outcome, |query| &query.outcome),
    ("type", |row| &row.kind, |query| &query.kind),
    ("editor", |row| &row.editor, |query| &query.editor),
    ("model", |row| &row.model, |query| &query.model),
    ("mode", |row| &row.mode, |query| &query.mode),
    ("differ", |row| row.differ, |query| &query.differ),
];

impl Index {
    /// Answers `query`.
    pub(super) fn answer(&self, query: &Query) -> Answer<'_> {
        let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
        let mut facets: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let mut tally = BTreeMap::new();
        let mut matched = Vec::new();
        for entry in &self.entries {
            let row = &entry.row;
            let found = words.iter().all(|word| entry.searched.contains(word));
            let failed: Vec<usize> =
                (0..FILTERS.len()).filter(|&index| !passes(&FILTERS[index], row, query)).collect();
            for (index, (name, value, _)) in FILTERS.iter().enumerate() {
                let value = value(row);
                if !value.is_empty() {
                    let count = facets.entry(name).or_default().entry(value).or_default();
                    // With another value of this filter the row would be there.
                    *count += usize::from(found && failed.iter().all(|&other| other == index));
                }
            }
            if found && failed.is_empty() {
                let step = row.level.map_or(row.outcome.to_owned(), |level| level.to_string());
                *tally.entry(step).or_default() += 1;
                matched.push(entry);
            }
        }
        sort(&mut matched, query);
        let around = query.around.and_then(|n| {
            let position = matched.iter().position(|entry| entry.row.n == n)?;
            let at = |position: usize| matched.get(position).map(|entry| entry.row.n);
            let previous = position.checked_sub(1).and_then(at);
            Some(Around { position, previous, next: at(position + 1) })
        });
        let limit = query.limit.unwrap_or(100).min(MOST_ROWS);
        Answer {
            total: self.entries.len(),
            matched: matched.len(),
            offset: query.offset,
            rows: matched.iter().skip(query.offset).take(limit).map(|entry| &entry.row).collect(),
            facets: facets
                .into_iter()
                .map(|(name, counts)| (name, counts.into_iter().collect()))
                .collect(),
            tally,
            around,
        }
    }
}

fn passes((name, value, asked): &Filter, row: &Row, query: &Query) -> bool {
    match asked(query) {
        "" => true,
        "any" if *name == "differ" => !row.differ.is_empty(),
        asked => value(row) == asked,
    }
}

/// Sorts by a column; rows that have nothing there stay at the end, whatever the direction.
fn sort(entries: &mut [&Entry], query: &Query) {
    fn by<K: PartialOrd>(entries: &mut [&Entry], down: bool, key: impl Fn(&Row) -> Option<K>) {
        entries.sort_by(|a, b| match (key(&a.row), key(&b.row)) {
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
                if down { order.reverse() } else { order }
            }
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
    }
    let down = query.desc == "1";
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match query.sort.as_str() {
        "case" => by(entries, down, |row| Some(natural(&row.case))),
        "type" => by(entries, down, |row| text(&row.kind)),
        "editor" => by(entries, down, |row| text(&row.editor)),
        "criterion" => by(entries, down, |row| text(&row.criterion)),
        "mode" => by(entries, down, |row| text(&row.mode)),
        "model" => by(entries, down, |row| text(&row.model)),
        "run" => by(entries, down, |row| text(&row.run)),
        "outcome" => by(entries, down, |row| row.score),
        "turns" => by(entries, down, |row| row.turns),
        "tokens" => by(entries, down, |row| row.tokens),
        "seconds" => by(entries, down, |row| row.seconds),
        "cost" => by(entries, down, |row| row.cost),
        _ if down => entries.reverse(),
        _ => {}
    }
}

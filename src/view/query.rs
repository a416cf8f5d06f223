//! Asking the list: filters, search, order, a page of it. `assets/local.js` does the same in the
//! browser where there is no server; the peer check `viewer` holds the two against each other.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::index::{Entry, Index, IndexRow};

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
    rows: Vec<&'a IndexRow>,
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
type Filter = (&'static str, fn(&IndexRow) -> &str, fn(&Query) -> &str);

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

/// Every value that each filter has among the rows, in order. Rows know theirs by number, so that
/// an answer counts numbers and does not compare texts.
#[derive(Debug, Default)]
pub(super) struct Values([Vec<String>; FILTERS.len()]);

/// For each filter the number of a row's value.
pub(super) type Codes = [usize; FILTERS.len()];

impl Values {
    /// Numbers the values of all rows.
    pub(super) fn number(entries: &mut [Entry]) -> Self {
        let mut values = Self::default();
        for (filter, (_, value, _)) in FILTERS.iter().enumerate() {
            let known: BTreeSet<&str> = entries.iter().map(|entry| value(&entry.row)).collect();
            let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
            for entry in &mut *entries {
                let value = value(&entry.row);
                let found = known.binary_search_by(|known| known.as_str().cmp(value));
                entry.codes[filter] = found.unwrap_or_default();
            }
            values.0[filter] = known;
        }
        values
    }

    /// For each filter, which of its values are asked for.
    fn asked(&self, query: &Query) -> [Vec<bool>; FILTERS.len()] {
        std::array::from_fn(|filter| {
            let (name, _, asked) = FILTERS[filter];
            let fits = |value: &String| match asked(query) {
                "" => true,
                "any" if name == "differ" => !value.is_empty(),
                asked => value == asked,
            };
            self.0[filter].iter().map(fits).collect()
        })
    }
}

impl Index {
    /// Answers `query`.
    pub(super) fn answer(&self, query: &Query) -> Answer<'_> {
        let words: Vec<String> = query.q.split_whitespace().map(str::to_lowercase).collect();
        let asked = self.values.asked(query);
        let mut counts = self.values.0.each_ref().map(|values| vec![0; values.len()]);
        let mut tally = BTreeMap::new();
        let mut matched = Vec::new();
        for entry in &self.entries {
            if !words.iter().all(|word| entry.searched.contains(word)) {
                continue;
            }
            let fails = |filter: &usize| !asked[*filter][entry.codes[*filter]];
            let mut failed = (0..FILTERS.len()).filter(fails);
            match (failed.next(), failed.next()) {
                (None, _) => {
                    for (count, code) in counts.iter_mut().zip(entry.codes) {
                        count[code] += 1;
                    }
                    matched.push(entry);
                }
                // With another value of this one filter the row would be there.
                (Some(filter), None) => counts[filter][entry.codes[filter]] += 1,
                _ => {}
            }
        }
        for entry in &matched {
            let row = &entry.row;
            let step = row.level.map_or(row.outcome.to_owned(), |level| level.to_string());
            *tally.entry(step).or_default() += 1;
        }
        sort(&mut matched, query);
        let around = query.around.and_then(|n| {
            let position = matched.iter().position(|entry| entry.row.n == n)?;
            let at = |position: usize| matched.get(position).map(|entry| entry.row.n);
            let previous = position.checked_sub(1).and_then(at);
            Some(Around { position, previous, next: at(position + 1) })
        });
        let facet = |(filter, counts): (usize, Vec<usize>)| {
            let values = self.values.0[filter].iter().map(String::as_str).zip(counts);
            let values: Vec<_> = values.filter(|(value, _)| !value.is_empty()).collect();
            (!values.is_empty()).then_some((FILTERS[filter].0, values))
        };
        let limit = query.limit.unwrap_or(100).min(MOST_ROWS);
        Answer {
            total: self.entries.len(),
            matched: matched.len(),
            offset: query.offset,
            rows: matched.iter().skip(query.offset).take(limit).map(|entry| &entry.row).collect(),
            facets: counts.into_iter().enumerate().filter_map(facet).collect(),
            tally,
            around,
        }
    }
}

/// Sorts by a column; rows that have nothing there stay at the end, whatever the direction.
fn sort(entries: &mut [&Entry], query: &Query) {
    fn by<K: PartialOrd>(entries: &mut [&Entry], down: bool, key: impl Fn(&Entry) -> Option<K>) {
        entries.sort_by(|a, b| match (key(a), key(b)) {
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
                if down { order.reverse() } else { order }
            }
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
    }
    let down = query.desc == "1";
    match query.sort.as_str() {
        "case" => by(entries, down, |entry| Some(entry.case_rank)),
        "outcome" => by(entries, down, |entry| entry.row.score),
        "turns" => by(entries, down, |entry| entry.row.turns),
        "tokens" => by(entries, down, |entry| entry.row.tokens),
        "seconds" => by(entries, down, |entry| entry.row.seconds),
        "cost" => by(entries, down, |entry| entry.row.cost),
        column => match FILTERS.iter().position(|(name, _, _)| *name == column) {
            // Numbers are in the order of the texts.
            Some(filter) => by(entries, down, |entry| {
                let (_, value, _) = FILTERS[filter];
                (!value(&entry.row).is_empty()).then_some(entry.codes[filter])
            }),
            None if down => entries.reverse(),
            None => {}
        },
    }
}

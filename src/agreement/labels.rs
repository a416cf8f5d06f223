//! What people say: one label for each case, editor, criterion and annotator, as JSONL or CSV.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::measures::nearest_rank;
use super::ranking::Ranking;
use crate::dataset::case_file::LabelRecord;
use crate::key::Item;
use crate::received;

/// The labels of all annotators, by rank.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// For each item the rank that each annotator gave.
    pub items: BTreeMap<Item, BTreeMap<String, f64>>,
    /// The criteria by which people gave numbers on a scale of their own.
    pub other_scales: BTreeSet<String>,
}

/// What counts as the truth where annotators differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Truth {
    /// The mean of their ranks.
    Mean,
    /// The rank in the middle, or between the two in the middle.
    Median,
    /// The label that most gave; the worst of those that as many gave.
    Majority,
}

impl Truth {
    /// The truth of these ranks; `None` of none.
    pub fn of<'a>(self, ranks: impl IntoIterator<Item = &'a f64>) -> Option<f64> {
        let mut ranks: Vec<f64> = ranks.into_iter().copied().collect();
        ranks.sort_by(f64::total_cmp);
        let (n, middle) = (ranks.len(), ranks.len() / 2);
        match self {
            Self::Mean => crate::stats::mean(&ranks).ok(),
            Self::Median if n % 2 == 0 => {
                Some((ranks.get(middle.checked_sub(1)?)? + ranks.get(middle)?) / 2.0)
            }
            Self::Median => ranks.get(middle).copied(),
            Self::Majority => {
                let count = |rank: f64| ranks.iter().filter(|other| **other == rank).count();
                // The last of the largest is found; the ranks go down, so it is the worst.
                ranks.iter().rev().copied().max_by_key(|rank| count(*rank))
            }
        }
    }

    /// What tables say of it.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Mean => "truth: the mean of the annotators",
            Self::Median => "truth: the median of the annotators",
            Self::Majority => "truth: the majority of the annotators (of a tie the worst)",
        }
    }
}

/// Labels that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The file system said no.
    #[error("cannot read {}: {source}; give a JSONL or CSV file of labels", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a label.
    #[error("{}, line {line}: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong and what to do.
        problem: String,
    },
    /// There is nothing in it.
    #[error("{} has no labels; each line needs case, editor, criterion, annotator and label", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
}

impl Labels {
    /// Reads a file: CSV with a header if its name ends in `.csv` or it does not begin with an
    /// object, else one JSON object a line.
    pub fn read(path: &Path, rankings: &[Ranking]) -> Result<Self, LabelsError> {
        let unreadable = |source| LabelsError::Unreadable { path: path.to_owned(), source };
        let bytes = received::read_named(path, received::LARGEST_TABLE).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        let text = text.trim_start_matches('\u{feff}');
        let csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let records = if csv || !text.trim_start().starts_with('{') {
            parse_csv(text)
        } else {
            parse_jsonl(text)
        };
        let labels = records.and_then(|records| Self::of(records, rankings));
        let labels = labels.map_err(|(line, problem)| LabelsError::Malformed {
            path: path.to_owned(),
            line,
            problem,
        })?;
        match labels.items.is_empty() {
            true => Err(LabelsError::Empty { path: path.to_owned() }),
            false => Ok(labels),
        }
    }

    fn of(records: Vec<(u64, LabelRecord)>, rankings: &[Ranking]) -> Result<Self, Problem> {
        let mut labels = Self { other_scales: other_scales(&records, rankings), ..Self::default() };
        let mut lines = BTreeMap::new();
        for (line, record) in records {
            let known = Ranking::find(rankings, &record.criterion);
            let criterion = known.map_or(record.criterion.as_str(), |known| &known.criterion);
            let numbers = Ranking::of_numbers(criterion);
            let known = match labels.other_scales.contains(criterion) {
                true => Some(&numbers),
                false => known,
            };
            // What no pack knows is compared as numbers, if it is numbers.
            let ranking = known.or_else(|| numbers.rank(&record.label).map(|_| &numbers));
            let ranking = ranking.ok_or_else(|| {
                let known: Vec<&str> = rankings.iter().map(|one| one.criterion.as_str()).collect();
                let problem = format!(
                    "there is no criterion {:?}, and {:?} is no number; use one of {}, or name the pack with --prompts",
                    record.criterion,
                    record.label,
                    known.join(", ")
                );
                (line, problem)
            })?;
            let rank = ranking.rank(&record.label).ok_or_else(|| {
                let problem = format!(
                    "{:?} is no label of the criterion {}; use one of {}",
                    record.label,
                    ranking.criterion,
                    ranking.names()
                );
                (line, problem)
            })?;
            let item = Item {
                criterion: ranking.criterion.clone(),
                case: record.case,
                editor: record.editor,
            };
            let annotators = labels.items.entry(item.clone()).or_default();
            match annotators.entry(record.annotator.clone()) {
                Entry::Vacant(place) => {
                    place.insert(rank);
                    lines.insert((item, record.annotator), line);
                }
                Entry::Occupied(place) if *place.get() == rank => {}
                Entry::Occupied(_) => {
                    let who = (item, record.annotator);
                    let before = lines.get(&who).copied().unwrap_or_default();
                    let problem = format!(
                        "{:?} gave this item another label in line {before}; keep one of them",
                        who.1
                    );
                    return Err((line, problem));
                }
            }
        }
        Ok(labels)
    }

    /// Everybody who labelled something.
    pub fn annotators(&self) -> BTreeSet<&str> {
        self.items.values().flat_map(|ranks| ranks.keys().map(String::as_str)).collect()
    }

    /// The truth of an item.
    pub fn truth(&self, item: &Item, truth: Truth) -> Option<f64> {
        truth.of(self.items.get(item)?.values())
    }

    /// How many items have a truth between two labels.
    pub fn between_labels(&self, truth: Truth) -> usize {
        let between = |ranks: &BTreeMap<String, f64>| {
            truth.of(ranks.values()).is_some_and(|rank| rank != nearest_rank(rank))
        };
        let ranked = |item: &Item| !self.other_scales.contains(&item.criterion);
        self.items.iter().filter(|(item, ranks)| ranked(item) && between(ranks)).count()
    }
}

/// The criteria whose labels are numbers on a scale of their own: the lines say so, or all of them are
/// numbers and some are no rank of a label.
fn other_scales(records: &[(u64, LabelRecord)], rankings: &[Ranking]) -> BTreeSet<String> {
    let mut of: BTreeMap<&str, Vec<&LabelRecord>> = BTreeMap::new();
    for (_, record) in records {
        let known = Ranking::find(rankings, &record.criterion);
        let criterion = known.map_or(record.criterion.as_str(), |known| &known.criterion);
        of.entry(criterion).or_default().push(record);
    }
    let own_scale = |(criterion, records): &(&str, Vec<&LabelRecord>)| {
        let numbers = Ranking::of_numbers(criterion);
        let known = Ranking::find(rankings, criterion).filter(|known| !known.labels.is_empty());
        let is_label =
            |record: &&&LabelRecord| known.is_none_or(|known| known.rank(&record.label).is_some());
        let all = |fits: &dyn Fn(&LabelRecord) -> bool| records.iter().all(|one| fits(one));
        all(&|record| numbers.rank(&record.label).is_some())
            && (all(&|record| record.scale.is_some())
                || records.iter().filter(is_label).count() < records.len())
    };
    of.into_iter().filter(own_scale).map(|(criterion, _)| criterion.trim().to_owned()).collect()
}

/// A line and what is wrong with it.
type Problem = (u64, String);

const FIELDS: &str =
    "each line needs case, editor, criterion, annotator and label, all of them text";

fn parse_jsonl(text: &str) -> Result<Vec<(u64, LabelRecord)>, Problem> {
    let lines = text.lines().zip(1u64..).filter(|(line, _)| !line.trim().is_empty());
    lines
        .map(|(line, number)| {
            let record = serde_json::from_str(line);
            Ok((number, record.map_err(|error| (number, format!("{error}; {FIELDS}")))?))
        })
        .collect()
}

fn parse_csv(text: &str) -> Result<Vec<(u64, LabelRecord)>, Problem> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let broken = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        (line, format!("{error}; {FIELDS}"))
    };
    let header: csv::StringRecord =
        reader.headers().map_err(broken)?.iter().map(str::to_lowercase).collect();
    let mut records = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(1, csv::Position::line);
        let label = record.deserialize(Some(&header));
        records.push((line, label.map_err(|error| (line, format!("{error}; {FIELDS}")))?));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rankings() -> Vec<Ranking> {
        let labels = ["Localization Failure", "Wrong Action", "Over Modification"];
        vec![Ranking {
            criterion: "if".to_owned(),
            name: "Instruction Following".to_owned(),
            labels: labels.map(str::to_owned).into_iter().zip([1.0, 2.0, 3.0]).collect(),
        }]
    }

    fn read(name: &str, text: &str) -> Result<Labels, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Labels::read(&path, &rankings()).map_err(|error| error.to_string())
    }

    const CSV: &str = "Case,Editor,Criterion,Annotator,Label,note\n\
        c1,e,IF,ann,Wrong Action,\n\
        c1,e,instruction following,bob,over modification,unsure\n";

    #[test]
    fn csv_and_jsonl_say_the_same() {
        let from_csv = read("labels.csv", CSV).unwrap();
        let jsonl = r#"{"case":"c1","editor":"e","criterion":"if","annotator":"ann","label":"Wrong Action"}

            {"case":"c1","editor":"e","criterion":"if","annotator":"bob","label":"Over Modification"}"#;
        assert_eq!(from_csv.items, read("labels.jsonl", jsonl).unwrap().items);
        assert_eq!(from_csv.items, read("labels", CSV).unwrap().items);
        assert_eq!(from_csv.annotators().len(), 2);
        let item = from_csv.items.keys().next().unwrap();
        assert_eq!(from_csv.truth(item, Truth::Mean), Some(2.5));
        assert_eq!(from_csv.between_labels(Truth::Mean), 1);
    }

    #[test]
    fn errors_name_the_line_and_what_is_wrong() {
        let refused = |name, text: &str| read(name, text).unwrap_err();
        let error = refused("l.csv", &format!("{CSV}c2,e,if,ann,Flawless,\n"));
        assert!(error.contains("line 4") && error.contains("Wrong Action"), "{error}");
        let error = refused("l.csv", &format!("{CSV}c2,e,beauty,ann,Wrong Action,\n"));
        assert!(error.contains("line 4") && error.contains("\"beauty\""), "{error}");
        let error = refused("l.csv", &format!("{CSV}c1,e,if,ann,Over Modification,\n"));
        assert!(error.contains("line 4") && error.contains("line 2"), "{error}");
        assert!(refused("l.csv", "case,label\nc1,Wrong Action\n").contains("editor"));
        assert!(refused("l.csv", "a,b\n1\n").contains("line 2"));
        assert!(refused("l.jsonl", "{\"case\": 1}").contains("line 1"));
        assert!(refused("l.jsonl", "\n").contains("no labels"));
    }

    #[test]
    fn truths_by_hand() {
        let of = |truth: Truth, ranks: &[f64]| truth.of(ranks);
        assert_eq!(of(Truth::Mean, &[1.0, 2.0, 4.0, 4.0]), Some(2.75));
        assert_eq!(of(Truth::Median, &[4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(Truth::Median, &[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(of(Truth::Majority, &[4.0, 1.0, 4.0]), Some(4.0));
        assert_eq!(of(Truth::Majority, &[4.0, 2.0, 4.0, 2.0, 3.0]), Some(2.0));
        for truth in [Truth::Mean, Truth::Median, Truth::Majority] {
            assert_eq!(of(truth, &[]), None);
        }
    }
}

//! What people and judges said of a data set of others, in our own words.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::expression::Expression;
use super::{KEY, Preset};
use crate::dataset::case_file::{LabelRecord, Vote, VoteRecord};
use crate::dataset::pattern::{Gaps, Pattern};
use crate::dataset::problem::{shown, shown_json};
use crate::received::{self, LARGEST_TABLE};

/// A file of ratings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LabelTable {
    /// A pattern of their names.
    files: String,
    case: Expression,
    annotator: Expression,
    /// What the columns behind the first one are.
    #[serde(rename = "columns")]
    _columns: Columns,
    /// A cell is a list of one number for each of these.
    criteria: Vec<String>,
    scale: [i32; 2],
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Columns {
    Editors,
}

/// What records say of pairs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VoteTable {
    criterion: Expression,
    /// The word that says who won.
    #[serde(default)]
    winner: Option<Expression>,
    /// What each word means: `a`, `b`, `tie`, `both good`, `both bad`.
    #[serde(default)]
    means: BTreeMap<String, String>,
    /// It is this one in every record.
    #[serde(default)]
    always: Option<String>,
    /// A list of numbers, one of each annotator: more than `middle` is for the first.
    #[serde(default)]
    ratings: Option<Expression>,
    #[serde(default)]
    middle: f64,
}

/// Recorded answers of a judge.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgeTable {
    files: String,
    case: Expression,
    name: Expression,
    editor: Expression,
    criterion: Expression,
    /// A number, or a list of which the lowest counts.
    score: Expression,
    scale: [f64; 2],
    reasoning: Expression,
}

/// Everything that was said beside the cases.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) labels: Vec<LabelRecord>,
    pub(crate) votes: Vec<VoteRecord>,
    /// Lines of results by the judge's name.
    pub(crate) judges: BTreeMap<String, Vec<Value>>,
    /// What could not be read, with its file and line.
    pub(crate) problems: Vec<String>,
}

/// Gathers what is said of the records of a data set.
pub(crate) struct People<'a> {
    preset: &'a Preset,
    said: Said,
    /// The record that a pair stood in first, and who won it.
    pairs: BTreeMap<String, (usize, Vote)>,
}

impl<'a> People<'a> {
    pub(crate) fn new(preset: &'a Preset) -> Self {
        Self { preset, said: Said::default(), pairs: BTreeMap::new() }
    }

    /// Takes the votes of a record that became `row`.
    pub(crate) fn record(
        &mut self,
        number: usize,
        record: &Map<String, Value>,
        row: &Map<String, Value>,
    ) {
        let (Some(table), Some(case)) = (&self.preset.votes, row.get("id").and_then(Value::as_str))
        else {
            return;
        };
        let edits = self.preset.edits(record);
        let [(a, first), (b, second), ..] = &edits[..] else { return };
        let Some(criterion) = table.criterion.text(record) else { return };
        let vote = |annotator: String, vote: Vote, rating: Option<f64>| VoteRecord {
            case: case.to_owned(),
            a: a.clone(),
            b: b.clone(),
            criterion: criterion.clone(),
            annotator,
            vote,
            rating,
        };
        let mut votes = Vec::new();
        match table.ratings.as_ref().and_then(|place| place.value(record)) {
            Some(Value::Array(ratings)) => {
                for (place, rating) in ratings.iter().enumerate() {
                    let Some(rating) = rating.as_f64() else { continue };
                    let who = if rating > table.middle {
                        Vote::A
                    } else if rating < table.middle {
                        Vote::B
                    } else {
                        Vote::Tie
                    };
                    votes.push(vote((place + 1).to_string(), who, Some(rating)));
                }
            }
            _ => match table.of(record) {
                Ok(Some(who)) => votes.push(vote("people".to_owned(), who, None)),
                Ok(None) => {}
                Err(what) => self.said.problems.push(format!("record {number}: {what}")),
            },
        }
        // The same two pictures, whichever stands first.
        let text = |picture: &Value| picture.to_string();
        let turned = text(first) > text(second);
        let pair = if turned { [second, first] } else { [first, second] };
        let pair = json!([row.get("source"), row.get("instruction"), pair]);
        for one in &votes {
            let who = if turned { one.vote.turned() } else { one.vote };
            let key = format!("{pair} {} {}", one.criterion, one.annotator);
            match self.pairs.get(&key) {
                None => drop(self.pairs.insert(key, (number, who))),
                Some((earlier, before)) => {
                    let what = match *before == who {
                        true => "the same pair and vote stand",
                        false => "the same pair stands, with another vote,",
                    };
                    self.said.problems.push(format!(
                        "record {number}: case {}: {what} in record {earlier} already ({}); keep one",
                        shown(case),
                        one.criterion
                    ));
                }
            }
        }
        self.said.votes.append(&mut votes);
    }

    /// And what stands in files of its own in `folder`.
    pub(crate) fn finish(mut self, folder: &Path) -> Said {
        for table in &self.preset.labels {
            each_file(folder, &table.files, &mut self.said, |text, gaps, said| {
                table.read(text, gaps, said)
            });
        }
        for table in &self.preset.judges {
            each_file(folder, &table.files, &mut self.said, |text, gaps, said| {
                table.read(text, gaps, said)
            });
        }
        self.said
    }
}

impl VoteTable {
    /// Who won; the error names a word that means nothing.
    fn of(&self, record: &Map<String, Value>) -> Result<Option<Vote>, String> {
        let word = self.winner.as_ref().and_then(|place| place.value(record));
        let meaning = match (&word, &self.always) {
            (_, Some(always)) => always.as_str(),
            (None, None) => return Ok(None),
            (Some(word), None) => {
                let plain = |text: &str| text.replace(' ', "").to_lowercase();
                let said = word.as_str().map(plain).unwrap_or_default();
                let known = self.means.iter().find(|(word, _)| plain(word) == said);
                let words: Vec<&str> = self.means.keys().map(String::as_str).collect();
                known.map(|(_, meaning)| meaning.as_str()).ok_or_else(|| {
                    format!("{} is no vote; expected {}", shown_json(word), words.join(", "))
                })?
            }
        };
        Ok(Vote::named(meaning))
    }
}

/// Reads every file that fits a pattern; what cannot be read is a problem.
fn each_file(
    folder: &Path,
    pattern: &str,
    said: &mut Said,
    mut read: impl FnMut(&str, &Gaps, &mut Said) -> Result<(), String>,
) {
    let found = match Pattern::parse(pattern).and_then(|pattern| pattern.find(folder)) {
        Ok(found) => found,
        Err(what) => return said.problems.push(what),
    };
    for file in found {
        let text = received::read(&file.path, LARGEST_TABLE)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
        let gaps = file.readings.into_iter().next().unwrap_or_default();
        let done = text.and_then(|text| read(text.trim_start_matches('\u{feff}'), &gaps, said));
        if let Err(what) = done {
            said.problems.push(format!("{}: {what}", shown(&file.path.to_string_lossy())));
        }
    }
}

/// What stands in the gaps of a name, as a record.
fn record_of(gaps: &Gaps) -> Map<String, Value> {
    gaps.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect()
}

impl LabelTable {
    fn read(&self, text: &str, gaps: &Gaps, said: &mut Said) -> Result<(), String> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(b'\t')
            .quoting(text.contains('"'))
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let named = header.get(0).unwrap_or_default().to_owned();
        let annotator = self.annotator.text(&record_of(gaps)).unwrap_or_default();
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        for row in reader.records() {
            let row = row.map_err(|error| error.to_string())?;
            let line = row.position().map_or(0, csv::Position::line);
            let mut record = record_of(gaps);
            record.insert(named.clone(), row.get(0).unwrap_or_default().into());
            let Some(case) = self.case.text(&record) else { continue };
            if let Some(earlier) = lines.insert(case.clone(), line) {
                said.problems.push(format!(
                    "{annotator}, line {line}: {} stands in line {earlier} already; only the first counts",
                    shown(&case)
                ));
                lines.insert(case, earlier);
                continue;
            }
            for (editor, cell) in header.iter().zip(row.iter()).skip(1) {
                let numbers = match self.numbers(cell) {
                    Ok(numbers) => numbers,
                    Err(what) => {
                        said.problems.push(format!("{annotator}, line {line}, {editor}: {what}"));
                        continue;
                    }
                };
                for (criterion, number) in self.criteria.iter().zip(numbers) {
                    said.labels.push(LabelRecord {
                        case: case.clone(),
                        editor: editor.to_owned(),
                        criterion: criterion.clone(),
                        annotator: annotator.clone(),
                        label: number.to_string(),
                        scale: Some(self.scale),
                    });
                }
            }
        }
        Ok(())
    }

    /// The numbers of a cell, one for each criterion; an empty cell has none.
    fn numbers(&self, cell: &str) -> Result<Vec<f64>, String> {
        let bare = cell.trim().trim_start_matches('[').trim_end_matches(']').trim();
        if bare.is_empty() {
            return Ok(Vec::new());
        }
        let [least, most] = self.scale.map(f64::from);
        let numbers: Vec<f64> = bare
            .split(',')
            .filter_map(|number| number.trim().parse().ok())
            .filter(|number: &f64| (least..=most).contains(number))
            .collect();
        match numbers.len() == self.criteria.len() && bare.split(',').count() == numbers.len() {
            true => Ok(numbers),
            false => Err(format!(
                "{} is not one number from {least} to {most} for each of {}; it is left out",
                shown(cell),
                self.criteria.join(", ")
            )),
        }
    }
}

impl JudgeTable {
    fn read(&self, text: &str, gaps: &Gaps, said: &mut Said) -> Result<(), String> {
        let answers: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (key, answer) in answers {
            let mut record = record_of(gaps);
            if let Value::Object(fields) = &answer {
                record.extend(fields.clone());
            }
            record.insert(KEY.to_owned(), key.into());
            let text = |place: &Expression| place.text(&record).unwrap_or_default();
            let name = text(&self.name);
            let mut line = json!({
                "case": text(&self.case),
                "editor": text(&self.editor),
                "criterion": text(&self.criterion),
                "model": name,
            });
            match self.worth(&record) {
                Ok((score, all)) => {
                    line["outcome"] = json!("verdict");
                    line["score"] = json!(score);
                    line["values"] = json!({ "scores": all });
                }
                Err(why) => {
                    line["outcome"] = json!("abstained");
                    line["reason"] = json!(why);
                }
            }
            if let Some(reasoning) = self.reasoning.value(&record).filter(Value::is_string) {
                line["facts"] = json!({ "reasoning": reasoning });
            }
            said.judges.entry(name).or_default().push(line);
        }
        Ok(())
    }

    /// The lowest of the scores, and all of them; the error says why there is none.
    fn worth(&self, record: &Map<String, Value>) -> Result<(f64, Vec<f64>), String> {
        let value = self.score.value(record).ok_or("it has no score")?;
        let unreadable = || format!("its score {} cannot be read", shown_json(&value));
        let all: Option<Vec<f64>> = match &value {
            Value::Array(items) => items.iter().map(Value::as_f64).collect(),
            other => other.as_f64().map(|number| vec![number]),
        };
        let all = all.filter(|all| !all.is_empty()).ok_or_else(unreadable)?;
        let [least, most] = self.scale;
        if !all.iter().all(|number| (least..=most).contains(number)) {
            return Err(format!("{}: not within {least} to {most}", unreadable()));
        }
        Ok((all.iter().copied().fold(f64::INFINITY, f64::min), all))
    }
}

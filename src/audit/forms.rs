//! The forms in which others write scores.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Reply, Score, Scores};
use crate::received::{self, LARGEST_TABLE};
use crate::visible::visible_line;

/// Why a file cannot be looked through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The file system said no.
    #[error("cannot read {}: {source}; give a CSV, JSON or JSONL file of scores", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No scores.
    #[error("{}: {what}", path.display())]
    NoScores {
        /// Which file.
        path: PathBuf,
        /// What was expected.
        what: String,
    },
}

/// Reads a file of scores; `scale` is what the user says of it.
pub(crate) fn read(path: &Path, scale: Option<[f64; 2]>) -> Result<Scores, AuditError> {
    let unreadable = |source| AuditError::Unreadable { path: path.to_owned(), source };
    let no_scores = |what: String| AuditError::NoScores { path: path.to_owned(), what };
    let bytes = received::read_named(path, LARGEST_TABLE).map_err(unreadable)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut scores = match text.as_bytes().first() {
        None => return Err(no_scores("it is empty".to_owned())),
        Some(b'{' | b'[') => json(text).map_err(no_scores)?,
        Some(_) => table(path, text).map_err(no_scores)?,
    };
    if scores.scores.is_empty() && scores.raters.is_empty() {
        return Err(no_scores(
            "no field of it is a score; known are score files of VIEScore, GEdit-Bench, ImgEdit, PICAEval, VIBE and EditScore, and tables with a column that is named score or rater".to_owned(),
        ));
    }
    scores.scale = scale.or(scores.scale);
    Ok(scores)
}

/// What names an item, the surest first.
const ITEMS: [&str; 12] = [
    "key",
    "id",
    "uid",
    "item",
    "case",
    "index",
    "idx",
    "sample_id",
    "edited_image",
    "image_id",
    "image",
    "source_image",
];
/// What says whose output it is, or in which language: the same item may stand once for each.
const PARTS: [&str; 7] =
    ["editor", "model", "model_name", "method", "instruction_language", "language", "dimension"];
/// The judge's reasons, and all of its words.
const REASONS: [&str; 6] =
    ["reasoning", "reason", "reasons", "explanation", "rationale", "analysis"];
const REPLIES: [&str; 8] = [
    "reply",
    "response",
    "raw_response",
    "raw",
    "raw_output",
    "model_response",
    "judge_output",
    "model_output",
];
const ERRORS: [&str; 4] = ["error", "errors", "_eval_errors", "exception"];
/// Scores whose names do not say so.
const SCORES: [&str; 8] = ["sc", "pq", "overall", "o", "rating", "semantics", "quality", "average"];

fn plain(name: &str) -> String {
    name.trim().to_lowercase()
}

fn is_score(name: &str) -> bool {
    let name = plain(name);
    (name.contains("score") || SCORES.contains(&name.as_str())) && !is_words(&name)
}

fn is_words(name: &str) -> bool {
    REASONS.iter().chain(&REPLIES).any(|word| name.contains(word))
}

fn is_rater(name: &str) -> bool {
    let name = plain(name);
    ["rater", "annotator", "human_"].iter().any(|start| name.starts_with(start))
        && !name.contains("mean")
}

/// A number, also as people write it into a table.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(yes) => Some(f64::from(*yes)),
        _ => None,
    };
    number.filter(|number| !number.is_nan())
}

/// The least of several numbers, as VIEScore takes it.
fn least(value: &Value) -> Option<f64> {
    match value {
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let numbers: Option<Vec<f64>> = items.iter().map(number).collect();
            Some(numbers?.into_iter().fold(f64::INFINITY, f64::min))
        }
        Value::String(text) if text.trim().starts_with('[') => {
            least(&serde_json::from_str(text).ok()?)
        }
        other => number(other),
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What went wrong, where a field says so.
fn error_of(record: &Map<String, Value>) -> Option<String> {
    let said = ERRORS.iter().filter_map(|name| record.get(*name));
    let said = said.map(|value| match value {
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Bool(false) => String::new(),
        other => text_of(other),
    });
    said.map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
}

/// What is kept of the judge's words beside the score `name`.
fn reply_of(record: &Map<String, Value>, name: &str) -> Reply {
    // `sc_reasoning` belongs to `sc_score`, and to what some spell out.
    let own = plain(name).replace("score", "");
    let own = own.trim_matches('_');
    let short = match own {
        "semantics" | "sementics" => "sc",
        "quality" => "pq",
        _ => own,
    };
    let find = |words: &[&str]| {
        let fits = |field: &&String, exact: bool| {
            let field = plain(field);
            match exact {
                true => {
                    !own.is_empty()
                        && (field.starts_with(own) || field.starts_with(short))
                        && words.iter().any(|word| field.ends_with(word))
                }
                false => words.contains(&field.as_str()),
            }
        };
        let field = |exact| record.keys().find(|field| fits(field, exact));
        field(true).or_else(|| field(false)).map(|field| text_of(&record[field]))
    };
    match (find(&REPLIES), find(&REASONS)) {
        (Some(reply), _) => Reply::Whole(reply),
        (None, Some(reasons)) => Reply::Reasons(reasons),
        (None, None) => Reply::NotKept,
    }
}

fn item_of(record: &Map<String, Value>, place: usize) -> String {
    let named = ITEMS.iter().filter_map(|name| {
        record.iter().find(|(field, _)| plain(field) == *name).map(|(_, value)| value)
    });
    let mut named = named.filter(|value| matches!(value, Value::String(_) | Value::Number(_)));
    let mut item = named.next().map_or_else(|| format!("record {place}"), text_of);
    for part in PARTS.iter().filter_map(|part| record.get(*part)) {
        if let Value::String(part) = part {
            item = format!("{item}, {part}");
        }
    }
    item
}

/// Scores of a record with fields.
fn record(record: &Map<String, Value>, place: usize, columns: &[&str], all: &mut Scores) {
    let item = item_of(record, place);
    for name in columns {
        let value = record.get(*name).unwrap_or(&Value::Null);
        all.scores.push(Score {
            item: item.clone(),
            metric: (*name).to_owned(),
            value: least(value),
            reply: reply_of(record, name),
            error: error_of(record),
            place,
        });
    }
    for (name, value) in record.iter().filter(|(name, _)| is_rater(name)) {
        match value {
            // One field with a list: a rating of each.
            Value::Array(ratings) => {
                for (rater, rating) in ratings.iter().enumerate() {
                    let rater = format!("{name} {}", rater + 1);
                    all.raters.entry(rater).or_default().insert(item.clone(), rating.to_string());
                }
            }
            value if !text_of(value).trim().is_empty() => {
                let ratings = all.raters.entry(name.clone()).or_default();
                ratings.insert(item.clone(), text_of(value).trim().to_owned());
            }
            _ => {}
        }
    }
}

/// A table: GEdit-Bench's, VIEScore's, or people's ratings.
fn table(path: &Path, text: &str) -> Result<Scores, String> {
    let tabs = text.lines().next().is_some_and(|line| line.contains('\t'));
    let delimiter = if tabs { b'\t' } else { b',' };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let columns: Vec<&str> = header.iter().filter(|name| is_score(name)).collect();
    let gedit = header.iter().any(|name| plain(name).starts_with("sementics"));
    let mut all = Scores {
        form: if gedit { "GEdit-Bench's table" } else { "a table" },
        scale: gedit.then_some([0.0, 10.0]),
        ..Scores::default()
    };
    for row in reader.records() {
        let row = row.map_err(|error| format!("{error}; is {} a table?", path.display()))?;
        let line = row.position().map_or(0, |at| at.line() as usize);
        if row.len() != header.len() {
            all.unreadable.push(format!("line {line} has {} of {} cells", row.len(), header.len()));
            continue;
        }
        let fields: Map<String, Value> = header
            .iter()
            .zip(row.iter())
            .map(|(name, cell)| (name.to_owned(), cell.into()))
            .collect();
        record(&fields, line, &columns, &mut all);
    }
    Ok(all)
}

fn json(text: &str) -> Result<Scores, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => keyed(fields),
        Ok(Value::Array(items)) => list(items),
        Ok(other) => {
            Err(format!("it is {}, not a list of scores", visible_line(&other.to_string())))
        }
        // One object a line, perhaps.
        Err(error) => lines(text).ok_or_else(|| format!("it is not JSON: {error}")),
    }
}

fn lines(text: &str) -> Option<Scores> {
    let parsed: Vec<Value> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or(Value::Null))
        .collect();
    (parsed.iter().any(Value::is_object)).then(|| list(parsed).ok()).flatten()
}

/// `{KEY: …}`: VIEScore's answers, ImgEdit's replies, or bare numbers.
fn keyed(fields: Map<String, Value>) -> Result<Scores, String> {
    for name in ["results", "scores", "items", "data"] {
        if let Some(Value::Array(items)) = fields.get(name) {
            return list(items.clone());
        }
    }
    let scored = |value: &Value| value.as_object().is_some_and(|one| one.contains_key("score"));
    let mut all = Scores::default();
    let replies = fields.values().filter(|value| value.is_string()).count();
    if fields.values().any(scored) {
        all.form = "VIEScore's answers";
        all.scale = Some([0.0, 10.0]);
    } else if replies * 2 > fields.len() {
        all.form = "ImgEdit's replies";
        all.scale = Some([1.0, 5.0]);
    } else {
        all.form = "scores by name";
    }
    for (place, (key, value)) in fields.iter().enumerate() {
        let place = place + 1;
        let mut score =
            Score { item: key.clone(), metric: "score".to_owned(), place, ..Score::default() };
        match value {
            Value::Object(record) => {
                score.value = record.get("score").and_then(least);
                score.reply = reply_of(record, "score");
                score.error = error_of(record);
            }
            Value::String(reply) if replies * 2 > fields.len() => {
                score.value = imgedit(reply);
                score.reply = Reply::Reasons(reply.clone());
            }
            other => score.value = least(other),
        }
        all.scores.push(score);
    }
    Ok(all)
}

/// ImgEdit's score: the mean of the three numbers that stand behind colons.
fn imgedit(reply: &str) -> Option<f64> {
    let behind = reply.lines().filter_map(|line| line.rsplit_once(':'));
    let numbers: Vec<f64> = behind
        .filter_map(|(_, number)| number.trim().trim_matches(['*', '.', ' ']).parse().ok())
        .collect();
    crate::stats::mean(&numbers).ok()
}

fn list(items: Vec<Value>) -> Result<Scores, String> {
    let has = |name: &str| items.iter().any(|item| item.get(name).is_some());
    if has("annotated_qa_pairs") || has("qa_pairs") {
        return Ok(questions(&items));
    }
    if has("_eval_errors") || items.iter().any(|item| !parts_of(item).is_empty()) {
        return Ok(vibe(&items));
    }
    let mut columns: Vec<&str> = Vec::new();
    for name in items.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if is_score(name) && !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut all = Scores { form: "records with scores", ..Scores::default() };
    for (place, item) in items.iter().enumerate() {
        match item {
            Value::Object(fields) => record(fields, place + 1, &columns, &mut all),
            _ => all.unreadable.push(format!("record {}", place + 1)),
        }
    }
    Ok(all)
}

/// PICAEval's questions, each right or wrong.
fn questions(items: &[Value]) -> Scores {
    let mut all =
        Scores { form: "PICAEval's answers", scale: Some([0.0, 1.0]), ..Scores::default() };
    for (place, item) in items.iter().enumerate() {
        let Some(record) = item.as_object() else {
            all.unreadable.push(format!("record {}", place + 1));
            continue;
        };
        let name = item_of(record, place + 1);
        let asked = ["annotated_qa_pairs", "qa_pairs"].iter().find_map(|field| record.get(*field));
        let asked: Vec<&Value> = match asked {
            Some(Value::Array(asked)) => asked.iter().collect(),
            Some(Value::Object(kinds)) => {
                kinds.values().filter_map(Value::as_array).flatten().collect()
            }
            _ => Vec::new(),
        };
        for (number, question) in asked.into_iter().enumerate() {
            let Some(fields) = question.as_object() else { continue };
            let said = |name: &str| fields.get(name).map(text_of);
            let answer = said("model_answer").unwrap_or_default();
            let answered = ["yes", "no"].contains(&plain(&answer).trim_end_matches('.'));
            let kept = fields.contains_key("model_answer") || fields.contains_key("model_response");
            let reply = match (kept, answered) {
                (false, _) => Reply::NotKept,
                (true, true) => Reply::Reasons(answer),
                // No yes and no no: nothing that could be right or wrong.
                (true, false) => Reply::Reasons(String::new()),
            };
            all.scores.push(Score {
                item: format!("{name}, question {}", number + 1),
                metric: "is_correct".to_owned(),
                value: fields.get("is_correct").and_then(number_of_truth),
                reply,
                error: error_of(fields),
                place: place + 1,
            });
        }
    }
    all
}

fn number_of_truth(value: &Value) -> Option<f64> {
    value.as_bool().map(f64::from).or_else(|| number(value))
}

/// The parts of a VIBE item: metrics with a score of their own, made of scores with reasons.
fn parts_of(item: &Value) -> BTreeMap<&String, &Map<String, Value>> {
    let Some(fields) = item.as_object() else { return BTreeMap::new() };
    let is_part = |part: &Map<String, Value>| {
        let of_reasons =
            |value: &Value| value.get("score").is_some() && value.get("reason").is_some();
        part.values().any(of_reasons)
    };
    let parts = fields.iter().filter_map(|(name, value)| Some((name, value.as_object()?)));
    parts.filter(|(_, part)| is_part(part)).collect()
}

fn vibe(items: &[Value]) -> Scores {
    let mut all = Scores { form: "VIBE's results", scale: Some([0.0, 1.0]), ..Scores::default() };
    for (place, item) in items.iter().enumerate() {
        let place = place + 1;
        let Some(record) = item.as_object() else {
            all.unreadable.push(format!("record {place}"));
            continue;
        };
        let name = item_of(record, place);
        let error = error_of(record);
        let whole = Score {
            item: name.clone(),
            metric: "score".to_owned(),
            value: record.get("score").and_then(number),
            error,
            place,
            ..Score::default()
        };
        all.scores.push(whole);
        for (metric, part) in parts_of(item) {
            let reasons = part.values().filter_map(|one| one.get("reason")).map(text_of);
            let reasons: Vec<String> = reasons.collect();
            let empty = reasons.iter().any(|reason| reason.trim().is_empty());
            all.scores.push(Score {
                item: name.clone(),
                metric: metric.clone(),
                value: part.get("score").and_then(number),
                reply: Reply::Reasons(if empty { String::new() } else { reasons.join(" ") }),
                error: None,
                place,
            });
        }
    }
    all
}

//! A stand-in for a model: it answers from the truth of a data set, with a stated share of errors.
//!
//! It is for trying runs, reports and experiments of any pack without a server, and says nothing about any
//! judge. What is right comes from the data set, beside the request and never in it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use deeplook_tools::BoxConvention;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ChatModel, FailedAttempt, ModelError, ModelRecord, Price, Subject};
use crate::answer::{AnswerForm, KeyForm, same_value};
use crate::hash::Hash;
use crate::message::{Dialect, Reply, Request};
use crate::received;
use crate::wire;

/// The file beside a data set that says what is right.
pub(crate) const LABELS: &str = "labels.jsonl";

/// More is no file of labels.
const LARGEST: u64 = 1 << 30;

/// The stand-in.
#[derive(Debug, Clone)]
pub struct Simulated {
    /// How often an answer, or a value of one, is another than the right one.
    error: f64,
    seed: u64,
    truth: Arc<Truth>,
}

/// What is right in a data set, as its labels say it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    answers: BTreeMap<Place, Right>,
    /// Of the file.
    hash: Option<Hash>,
}

/// Case, editor, criterion and question.
type Place = (String, String, String, Option<String>);

/// One line of the file: a label, or a value for each key.
#[derive(Debug, Clone, Default, PartialEq)]
struct Right {
    label: Option<String>,
    values: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Line {
    case: String,
    editor: String,
    criterion: String,
    #[serde(default)]
    question: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    values: BTreeMap<String, Value>,
}

impl Truth {
    /// What `labels.jsonl` in the folder of a data set says; nothing where there is none. Several
    /// annotators of one edit cannot all be right: the first counts.
    pub fn beside(folder: &Path) -> Result<Self, ModelError> {
        let path = folder.join(LABELS);
        let wrong = |what: String| ModelError::Refused(format!("{}: {what}", path.display()));
        let bytes = match received::read(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(error.to_string())),
        };
        let mut answers = BTreeMap::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_slice(line)
                .map_err(|error| wrong(format!("line {}: {error}", number + 1)))?;
            let place = (line.case, line.editor, line.criterion, line.question);
            answers.entry(place).or_insert(Right { label: line.label, values: line.values });
        }
        Ok(Self { answers, hash: Some(Hash::of(&bytes)) })
    }

    /// What is right about a subject; of a question what the labels say, else its expected answer.
    fn about(&self, subject: &Subject<'_>) -> Option<Right> {
        let place = (
            subject.case.to_owned(),
            subject.editor.unwrap_or_default().to_owned(),
            subject.criterion.to_owned(),
            subject.question.map(str::to_owned),
        );
        let expected = || {
            let label = Some(subject.expected?.to_owned());
            Some(Right { label, values: BTreeMap::new() })
        };
        self.answers.get(&place).cloned().or_else(expected)
    }
}

impl Simulated {
    /// The name by which it is chosen.
    pub const NAME: &str = "simulated";

    /// One with these parameters: `error`, from 0 to 1, and `seed`. It knows nothing before it is given
    /// the truth.
    pub fn new(params: &BTreeMap<String, Value>) -> Result<Self, ModelError> {
        let refused = |what: String| Err(ModelError::Refused(what));
        if let Some(other) = params.keys().find(|name| !["error", "seed"].contains(&name.as_str()))
        {
            return refused(format!(
                "the model {} takes error and seed, not {other:?}",
                Self::NAME
            ));
        }
        let error = params.get("error").map_or(Some(0.0), Value::as_f64);
        let Some(error) = error.filter(|error| (0.0..=1.0).contains(error)) else {
            return refused("error is the share of wrong answers, from 0 to 1".to_owned());
        };
        let Some(seed) = params.get("seed").map_or(Some(0), Value::as_u64) else {
            return refused("seed is a whole number from 0 on".to_owned());
        };
        Ok(Self { error, seed, truth: Arc::default() })
    }

    /// The same with what is right.
    pub fn knowing(self, truth: Arc<Truth>) -> Self {
        Self { truth, ..self }
    }

    /// How traces describe it.
    pub fn record(&self, dialect: Dialect) -> ModelRecord {
        ModelRecord {
            id: Self::NAME.to_owned(),
            base_url: None,
            profile: json!({ "simulated": true, "truth": self.truth.hash }),
            params: BTreeMap::from([
                ("error".to_owned(), json!(self.error)),
                ("seed".to_owned(), json!(self.seed)),
            ]),
            dialect,
            boxes: BoxConvention::PIXELS,
            price: Some(Price::FREE),
        }
    }

    /// What it says about a subject; the error says why it cannot.
    fn answer(&self, subject: &Subject<'_>) -> Result<String, String> {
        let right =
            self.truth.about(subject).ok_or("the data set does not say what is right here")?;
        let draw = Draw { of: self, subject };
        match subject.form {
            AnswerForm::Label(labels) => {
                let label = right.label.ok_or("the data set has no label here")?;
                let same = |known: &String| known.eq_ignore_ascii_case(label.trim());
                let place = labels.iter().position(same);
                let place = place.ok_or_else(|| format!("{label:?} is none of the labels"))?;
                Ok(labels[draw.one("", place, labels.len())].clone())
            }
            AnswerForm::Keys(keys) => {
                let mut said = Map::new();
                for key in keys {
                    let value = right.values.iter().find(|(name, _)| *name == &key.name);
                    let (_, value) = value
                        .ok_or_else(|| format!("the data set has no value for {}", key.name))?;
                    let place = key.values.iter().position(|known| same_value(known, value));
                    let place =
                        place.ok_or_else(|| format!("{value} is no value of {}", key.name))?;
                    let value = &key.values[draw.one(&key.name, place, key.values.len())];
                    say(&mut said, key, keys, value.clone());
                }
                serde_json::to_string(&said).map_err(|error| error.to_string())
            }
        }
    }
}

/// Puts a value where its key stands, which may be inside others.
fn say(said: &mut Map<String, Value>, key: &KeyForm, keys: &[KeyForm], value: Value) {
    let holds = |name: &String| keys.iter().any(|other| other.at.len() > 1 && other.at[0] == *name);
    let path: Vec<&String> = match key.at.as_slice() {
        [] => vec![&key.name],
        at => at.iter().collect(),
    };
    let Some((last, outer)) = path.split_last() else { return };
    let mut object = said;
    for name in outer {
        let inner = object.entry((*name).clone()).or_insert_with(|| json!({}));
        if !inner.is_object() {
            *inner = json!({ "score": inner.clone() });
        }
        let Value::Object(inner) = inner else { return };
        object = inner;
    }
    if outer.is_empty() && holds(last) {
        let inner = object.entry((*last).clone()).or_insert_with(|| json!({}));
        inner["score"] = value;
    } else {
        object.insert((*last).clone(), value);
    }
}

/// Errors that are the same whenever the same is asked.
struct Draw<'a> {
    of: &'a Simulated,
    subject: &'a Subject<'a>,
}

impl Draw<'_> {
    /// The right place, or as often as errors are wanted another one of so many.
    fn one(&self, key: &str, right: usize, of: usize) -> usize {
        let Subject { case, editor, criterion, question, mode, repeat, .. } = self.subject;
        let place = json!([self.of.seed, case, editor, criterion, question, mode, repeat, key]);
        let hash = Hash::of(place.to_string().as_bytes());
        let number = |from: usize| {
            let digits = hash.as_str().get(from..from + 13).unwrap_or("0");
            u64::from_str_radix(digits, 16).unwrap_or(0)
        };
        // Thirteen hexadecimal digits are 52 bits.
        let share = number(0) as f64 / (1_u64 << 52) as f64;
        if share >= self.of.error || of < 2 {
            return right;
        }
        let step = 1 + (number(16) % (of as u64 - 1)) as usize;
        (right + step) % of
    }
}

impl ChatModel for Simulated {
    async fn ask(
        &self,
        _: &Request,
        _on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let what = "nothing tells the simulated model what it is asked about; it answers in runs over data sets";
        Err(ModelError::Refused(what.to_owned()))
    }

    async fn ask_about(
        &self,
        subject: &Subject<'_>,
        _: &Request,
        _on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let message = match self.answer(subject) {
            Ok(answer) => {
                let Self { error, seed, .. } = self;
                let text = format!(
                    "<Start Thinking>Simulated from the truth of the data set, with errors in {error} of the answers \
                     (seed {seed}); no model was asked.</Start Thinking>\n<Start Final Answer>{answer}</Start Final Answer>"
                );
                json!({ "role": "assistant", "content": text })
            }
            Err(why) => {
                json!({ "role": "assistant", "content": null, "refusal": format!("simulated: {why}") })
            }
        };
        let mut reply = wire::unserved(message);
        reply.finish_reason = Some("stop".to_owned());
        reply.served.model = Some(Self::NAME.to_owned());
        Ok(reply)
    }
}

//! What a judge may answer, and what it answered.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerForm {
    /// Exactly one of these labels, in their canonical spelling.
    Label(Vec<String>),
    /// A JSON object with a value for each of these keys.
    Keys(Vec<KeyForm>),
}

/// A key of an answer, and what may be said there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyForm {
    /// Its name in the canonical spelling.
    pub name: String,
    /// Where it stands in the object, from outside to inside; empty: wherever its name stands.
    pub at: Vec<String>,
    /// The values that are allowed.
    pub values: Vec<Value>,
}

impl AnswerForm {
    /// The form with these labels.
    pub fn new<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Self {
        Self::Label(labels.into_iter().map(Into::into).collect())
    }

    /// The labels; none where the answer has keys.
    pub fn labels(&self) -> &[String] {
        match self {
            Self::Label(labels) => labels,
            Self::Keys(_) => &[],
        }
    }
}

/// An answer that was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    /// One of the labels.
    Label(String),
    /// A value for each key, both in their canonical spelling.
    Values(BTreeMap<String, Value>),
}

impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => f.write_str(label),
            Self::Values(values) => f.write_str(&values_in_words(values)),
        }
    }
}

/// What was answered for each key, on one line.
pub(crate) fn values_in_words(values: &BTreeMap<String, Value>) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pair = |(key, value): (&String, &Value)| format!("{key}: {}", text(value));
    values.iter().map(pair).collect::<Vec<_>>().join(", ")
}

/// A name without what does not matter in it: case, spaces, hyphens, underscores.
pub(crate) fn plain(name: &str) -> String {
    let letters =
        name.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '_' | '‑' | '–'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Whether two values say the same: 1 is 1.0, and a text is the same in any case.
pub(crate) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => plain(a) == plain(b),
        _ => a == b,
    }
}

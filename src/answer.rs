//! What a judge may answer.

use serde::{Deserialize, Serialize};

/// The form of an answer: exactly one of a few labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerForm {
    /// The labels in their canonical spelling.
    pub labels: Vec<String>,
}

impl AnswerForm {
    /// The form with these labels.
    pub fn new<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Self {
        Self { labels: labels.into_iter().map(Into::into).collect() }
    }
}

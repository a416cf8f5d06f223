//! `rules.toml`: every rule of judgement, with the place that it comes from.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// `rules.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RulesFile {
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<RuleEntry>,
}

/// A `[[rule]]` of `rules.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleEntry {
    pub(super) id: Spanned<String>,
    pub(super) criteria: Vec<String>,
    pub(super) section: String,
    #[serde(default)]
    pub(super) ours: bool,
    pub(super) note: Option<String>,
    pub(super) text: String,
}

/// One sentence or two by which a judge decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// By which templates place it.
    pub id: String,
    /// The ids of the criteria that it belongs to.
    pub criteria: Vec<String>,
    /// Where the paper says it, or what of the paper it decides.
    pub section: String,
    /// True where the paper is silent or disagrees with itself, and we decided.
    pub ours: bool,
    /// Why, for people; no model sees it.
    pub note: Option<String>,
    /// What the model reads.
    pub text: String,
    /// The line of `rules.toml` that it begins on.
    #[serde(skip)]
    pub(super) line: usize,
}

impl Rule {
    /// Everything about it but the id, line by line, as `deeplook prompts diff` compares it.
    pub fn in_words(&self) -> String {
        let ours = if self.ours { ", ours" } else { "" };
        let mut words = format!(
            "{}\nsection {}{ours}, for {}\n",
            self.text,
            self.section,
            self.criteria.join(", ")
        );
        if let Some(note) = &self.note {
            words += &format!("note: {note}\n");
        }
        words
    }

    /// True where only the place in the file differs, if anything.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        Self { line: other.line, ..self.clone() } == *other
    }
}

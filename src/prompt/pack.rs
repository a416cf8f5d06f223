//! What `pack.toml` and `rules.toml` say, typed. An unknown key is an error.

use std::collections::BTreeMap;
use std::fmt;

use deeplook_tools::scene;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::answer::AnswerForm;

/// `pack.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackFile {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) about: String,
    /// For all criteria.
    #[serde(default)]
    pub(super) templates: BTreeMap<Role, Spanned<String>>,
    #[serde(rename = "criterion")]
    pub(super) criteria: Vec<CriterionEntry>,
}

/// A `[[criterion]]` of `pack.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CriterionEntry {
    pub(super) id: Spanned<String>,
    pub(super) name: String,
    /// These go before the ones for all criteria.
    #[serde(default)]
    pub(super) templates: BTreeMap<Role, Spanned<String>>,
    pub(super) answer: AnswerKind,
    pub(super) score: ScoreFunction,
    pub(super) modes: BTreeMap<Mode, ModeView>,
}

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

/// One question about an edit: what is shown, what may be answered, and what that is worth.
#[derive(Debug, Clone)]
pub struct Criterion {
    /// The short name, e.g. `if`.
    pub id: String,
    /// The name that the model reads, e.g. "Instruction Following".
    pub name: String,
    /// What may be answered.
    pub answer: AnswerKind,
    /// How a score comes out of an answer.
    pub score: ScoreFunction,
    /// What a judge gets to see in each mode that the criterion has.
    pub modes: BTreeMap<Mode, ModeView>,
    pub(super) templates: BTreeMap<Role, String>,
}

impl Criterion {
    /// The labels in the order in which the model reads them.
    pub fn labels(&self) -> &[Label] {
        match &self.answer {
            AnswerKind::Label { labels } => labels,
        }
    }

    /// The form of the answer, for reading it.
    pub fn form(&self) -> AnswerForm {
        AnswerForm::new(self.labels().iter().map(|label| label.name.clone()))
    }

    /// The label of exactly this name.
    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels().iter().find(|label| label.name == name)
    }

    /// The label that people mean: its name in any case, or its rank.
    pub fn label_like(&self, text: &str) -> Option<&Label> {
        let text = text.trim();
        let same = |label: &&Label| {
            label.name.eq_ignore_ascii_case(text) || label.rank.to_string() == text
        };
        self.labels().iter().find(same)
    }

    /// What the label of this name is worth, from 0 to 100; `None` for a name that is no label.
    pub fn score(&self, label: &str) -> Option<f64> {
        self.label(label).map(|label| self.score.of(label))
    }
}

/// What kind of answer a criterion has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerKind {
    /// Exactly one of a few names.
    Label {
        /// In the order in which the model reads them.
        labels: Vec<Label>,
    },
}

/// An answer that can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// What the model writes.
    pub name: String,
    /// Higher is better. No model sees it.
    pub rank: u32,
}

/// How a score comes out of an answer: a named function and its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "function", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScoreFunction {
    /// 0 at the lowest rank, 100 at the highest, even steps between.
    LinearRank {
        /// Worth 0.
        lowest: u32,
        /// Worth 100.
        highest: u32,
    },
}

impl ScoreFunction {
    fn of(&self, label: &Label) -> f64 {
        match *self {
            Self::LinearRank { lowest, highest } => {
                // Multiplied first: 200 / 3 is the nearest number to two thirds of 100.
                100.0 * (f64::from(label.rank) - f64::from(lowest))
                    / (f64::from(highest) - f64::from(lowest))
            }
        }
    }

    /// What is wrong with using it for these labels, if anything.
    pub(super) fn problem_with(&self, labels: &[Label]) -> Option<String> {
        let Self::LinearRank { lowest, highest } = *self;
        if lowest >= highest {
            return Some(format!("lowest = {lowest} is not below highest = {highest}; swap them"));
        }
        labels.iter().find(|label| !(lowest..=highest).contains(&label.rank)).map(|label| {
            format!(
                "the rank {} of {:?} is not within {lowest} to {highest}; change one of them",
                label.rank, label.name
            )
        })
    }
}

/// How much help a judge gets.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    clap::ValueEnum,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The whole pictures, and tools over several turns.
    Tool,
    /// Pictures prepared from the annotated targets.
    Oracle,
    /// The whole pictures, one turn, no tools: the baseline.
    Plain,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Oracle => "oracle",
            Self::Plain => "plain",
        })
    }
}

/// What a judge gets to see in a mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModeView {
    /// In this order. A reference is left out where the case has none.
    pub pictures: Vec<PictureKind>,
    /// Whether there are tools; they see the same pictures.
    pub tools: bool,
}

/// A picture that can be made of a case. A pack picks among these; it cannot make others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "a table: which picture, and whole, cropped or masked")]
pub enum PictureKind {
    Original,
    Edited,
    Reference,
    OriginalCrop,
    EditedCrop,
    ReferenceCrop,
    OriginalMasked,
    EditedMasked,
    ReferenceMasked,
}

/// What was done to a picture before a judge sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing.
    Whole,
    /// Cut to the surroundings of a target.
    Crop,
    /// Every target painted white.
    Masked,
}

impl PictureKind {
    /// The name by which the model refers to it: that of the picture it is made of.
    pub fn shown_as(self) -> &'static str {
        match self {
            Self::Original | Self::OriginalCrop | Self::OriginalMasked => scene::ORIGINAL,
            Self::Edited | Self::EditedCrop | Self::EditedMasked => scene::EDITED,
            Self::Reference | Self::ReferenceCrop | Self::ReferenceMasked => scene::REFERENCE,
        }
    }

    /// What was done to it.
    pub fn treatment(self) -> Treatment {
        match self {
            Self::Original | Self::Edited | Self::Reference => Treatment::Whole,
            Self::OriginalCrop | Self::EditedCrop | Self::ReferenceCrop => Treatment::Crop,
            Self::OriginalMasked | Self::EditedMasked | Self::ReferenceMasked => Treatment::Masked,
        }
    }
}

/// What a template is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Role {
    System,
    Tools,
    Task,
    Reminder,
    Repair,
    LastTurn,
    NoMoreTools,
}

impl Role {
    pub(super) const ALL: [Self; 7] = [
        Self::System,
        Self::Tools,
        Self::Task,
        Self::Reminder,
        Self::Repair,
        Self::LastTurn,
        Self::NoMoreTools,
    ];

    /// What every template gets; a pack must use each of them somewhere.
    pub(super) const COMMON: [&'static str; 3] = ["criterion", "labels", "rule"];

    /// What a template of this role gets besides; one of the role's templates must use it.
    pub(super) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::System | Self::LastTurn | Self::NoMoreTools => &[],
            Self::Tools => &["dialect", "tools"],
            Self::Task => &["instruction", "notes"],
            Self::Reminder => &["dialect", "tools_allowed", "turns_left"],
            Self::Repair => &["dialect", "problem", "tools_allowed", "turns_left"],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::Tools => "tools",
            Self::Task => "task",
            Self::Reminder => "reminder",
            Self::Repair => "repair",
            Self::LastTurn => "last_turn",
            Self::NoMoreTools => "no_more_tools",
        })
    }
}

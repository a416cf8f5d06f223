//! The records of `cases.jsonl` and `labels.jsonl`: one JSON object a line.

use std::collections::BTreeMap;
use std::fmt;

use deeplook_tools::PixelBox;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

/// One line of `cases.jsonl`: a picture, what should be done to it, and what editors made of it.
///
/// Paths are relative to the file that names them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// Names the case within its file.
    pub id: String,
    /// The picture before the edit.
    pub source: String,
    /// A picture of what a good edit gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// What the editors were asked to do.
    pub instruction: String,
    /// The instruction's type, such as "Change Color".
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A phrase that fits the annotated objects of the source and nothing else in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The annotated objects, in pixels of the source.
    #[serde(default)]
    pub boxes: Vec<PixelBox>,
    /// The edited picture of each editor.
    #[serde(default)]
    pub edits: BTreeMap<String, String>,
}

/// One line of `labels.jsonl`: what one annotator says of one edit under one criterion.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabelRecord {
    /// [`CaseRecord::id`].
    pub case: String,
    /// A key of [`CaseRecord::edits`].
    pub editor: String,
    /// "if" or "vc".
    pub criterion: String,
    /// Who says so; "truth" where the edit was drawn with this label in mind.
    pub annotator: String,
    /// The label's name, or a number.
    #[serde(deserialize_with = "name_or_number")]
    pub label: String,
    /// The scale of the number, where it is not that of our labels: its lowest and its highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<[i32; 2]>,
}

/// A text, or a number as one.
fn name_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Label;
    impl Visitor<'_> for Label {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a label or a number")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }
    deserializer.deserialize_any(Label)
}

/// One line of `votes.jsonl`: which of two edits of a case somebody prefers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VoteRecord {
    /// [`CaseRecord::id`].
    pub case: String,
    /// The editor of the first one.
    pub a: String,
    /// The editor of the second one.
    pub b: String,
    /// By what.
    pub criterion: String,
    /// Who says so.
    pub annotator: String,
    /// Which one.
    pub vote: Vote,
    /// The number that was given, where it was one; more is for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<f64>,
}

/// Which of two edits is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// The first.
    A,
    /// The second.
    B,
    /// Neither.
    Tie,
    /// Neither, and both are good.
    BothGood,
    /// Neither, and both are bad.
    BothBad,
}

impl Vote {
    /// The vote of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "a" => Self::A,
            "b" => Self::B,
            "tie" => Self::Tie,
            "both good" => Self::BothGood,
            "both bad" => Self::BothBad,
            _ => return None,
        })
    }

    /// The same vote, where the two stand the other way round.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
            other => other,
        }
    }
}

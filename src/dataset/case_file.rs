//! The records of `cases.jsonl` and `labels.jsonl`: one JSON object a line.

use std::collections::BTreeMap;

use deeplook_tools::PixelBox;
use serde::{Deserialize, Serialize};

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
    /// The label's name.
    pub label: String,
}

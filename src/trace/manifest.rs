//! All that could change a verdict and is known before the first question.

use std::collections::BTreeMap;

use deeplook_tools::{PixelBox, Size, ToolSpec};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::stored::{self, FormatVersion, PackRecord, ViewRecord};
use crate::case::Case;
use crate::deliberation::Limits;
use crate::hash::Hash;
use crate::model::ModelRecord;
use crate::prompt::Mode;
use crate::protocol::Targets;
use crate::sending::Preparation;

/// All that could change a verdict and is known before the first question; `stored` has its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "stored::Manifest", into = "stored::Manifest")]
pub struct Manifest {
    /// The version of the format.
    pub format: FormatVersion,
    /// The version of deeplook that judged.
    pub deeplook: String,
    /// The commit that it was built from, with a `+` where files were changed; absent where it is not
    /// known.
    pub commit: Option<String>,
    /// What was judged.
    pub case: CaseRecord,
    /// By which criterion of the pack.
    pub criterion: String,
    /// What the judge got to see.
    pub mode: Mode,
    /// Which repetition, counted from 0.
    pub repeat: u32,
    /// What each part of the judgement looks at: the whole picture, or one target.
    pub parts: Vec<PartRecord>,
    /// Who judged.
    pub model: ModelRecord,
    /// The prompts.
    pub pack: PackRecord,
    /// The tools, as declared to the model; empty where the mode has none.
    pub tools: ToolsRecord,
    /// The bounds of the deliberation.
    pub limits: Limits,
    /// How pictures are prepared.
    pub preprocessing: Preprocessing,
    /// The digest of the trace that this one was forked from.
    pub parent: Option<Hash>,
}

/// The edit that was judged; a picture is absent where it could not be read.
pub type CaseRecord = Case<Option<FileRecord>>;

/// A picture file of a recorded case.
#[derive(Debug, Clone, PartialEq)]
pub struct FileRecord {
    /// Its bytes.
    pub blob: Hash,
    /// Its size in pixels, orientation applied.
    pub size: Size,
}

/// What a part of a judgement looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct PartRecord {
    /// "whole picture", "target 2 of 3", "all targets", "question 4".
    pub name: String,
    /// The boxes it is about, in pixels of the source.
    pub boxes: Vec<PixelBox>,
    /// What its crops show, in pixels of the source; absent where pictures are shown whole.
    pub crop: Option<PixelBox>,
    /// What the judge is told about the pictures.
    pub notes: Vec<String>,
    /// The question of the case that it asks, if it is about one.
    pub question: Option<String>,
}

impl Serialize for ModelRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        stored::Model::from(self.clone()).serialize(serializer)
    }
}

/// How pictures are prepared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Preprocessing")]
pub struct Preprocessing {
    /// How they are encoded for the model.
    pub sending: Preparation,
    /// The most pictures that one request may hold.
    pub max_images: Option<u32>,
    /// How several targets are judged.
    pub targets: Targets,
    /// What is done to each picture before it is shown; absent in the first format.
    pub views: Option<Vec<ViewRecord>>,
}

/// The tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::Tools")]
pub struct ToolsRecord {
    /// What the model is told of them.
    pub specs: Vec<ToolSpec>,
    /// Their settings by name.
    pub settings: BTreeMap<String, Value>,
    /// What belongs here and could not be had, with the reason.
    pub unavailable: BTreeMap<String, String>,
}

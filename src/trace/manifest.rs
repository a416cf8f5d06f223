//! All that could change a verdict and is known before the first question.

use std::collections::BTreeMap;

use deeplook_tools::{BoxConvention, PixelBox, Size, ToolSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::{Case, CaseQuestion, Facts, REFERENCE, TARGET};
use crate::deliberation::Limits;
use crate::hash::Hash;
use crate::message::Dialect;
use crate::model::Price;
use crate::prompt::Mode;
use crate::protocol::Targets;
use crate::sending::Preparation;

/// The version of the format that this program writes.
pub const FORMAT: FormatVersion = FormatVersion { major: 1, minor: 0 };

/// A reader takes any minor version of its major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormatVersion {
    /// Changes when old readers would misunderstand.
    pub major: u32,
    /// Changes when something was added that old readers may ignore.
    pub minor: u32,
}

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// The version of the format.
    pub format: FormatVersion,
    /// The version of deeplook that judged.
    pub deeplook: String,
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

/// The edit that was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseRecord {
    /// The name of the case.
    pub id: String,
    /// Who edited.
    pub editor: Option<String>,
    /// What the editor was told.
    pub instruction: String,
    /// The type of the instruction.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// A phrase for the target.
    pub target: Option<String>,
    /// Where the targets are, in pixels of the source.
    pub boxes: Vec<PixelBox>,
    /// The picture before the edit; absent, as the next one, where it could not be read.
    pub source: Option<FileRecord>,
    /// The picture after the edit.
    pub edited: Option<FileRecord>,
    /// What a good edit looks like.
    pub reference: Option<FileRecord>,
    /// Further pictures by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pictures: BTreeMap<String, FileRecord>,
    /// What else is known of it.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub facts: Facts,
    /// Further places by name, in pixels of the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub regions: BTreeMap<String, Vec<PixelBox>>,
    /// What a benchmark asks about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<CaseQuestion>,
}

impl From<Case<Option<FileRecord>>> for CaseRecord {
    fn from(case: Case<Option<FileRecord>>) -> Self {
        let Case {
            id,
            editor,
            instruction,
            source,
            edited,
            others,
            mut facts,
            mut regions,
            questions,
        } = case;
        let mut text = |name| facts.remove(name).map(|fact| fact.to_string());
        let (kind, target) = (text(Facts::TYPE), text(Facts::TARGET));
        let mut pictures: BTreeMap<String, FileRecord> =
            others.into_iter().filter_map(|(name, file)| Some((name, file?))).collect();
        let reference = pictures.remove(REFERENCE);
        let boxes = regions.remove(TARGET).unwrap_or_default();
        Self {
            id,
            editor,
            instruction,
            kind,
            target,
            boxes,
            source,
            edited,
            reference,
            pictures,
            facts,
            regions,
            questions,
        }
    }
}

impl From<&CaseRecord> for Case<Option<FileRecord>> {
    fn from(record: &CaseRecord) -> Self {
        let mut case = Self {
            id: record.id.clone(),
            editor: record.editor.clone(),
            others: record
                .pictures
                .iter()
                .map(|(name, file)| (name.clone(), Some(file.clone())))
                .collect(),
            facts: record.facts.clone(),
            regions: record.regions.clone(),
            questions: record.questions.clone(),
            ..Self::new(record.source.clone(), record.edited.clone(), &record.instruction)
        };
        case.facts.insert_some(Facts::TYPE, record.kind.clone());
        case.facts.insert_some(Facts::TARGET, record.target.clone());
        if !record.boxes.is_empty() {
            case = case.with_targets(record.boxes.clone());
        }
        match &record.reference {
            Some(reference) => case.with_reference(reference.clone()),
            None => case,
        }
    }
}

/// A picture file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileRecord {
    /// Its bytes.
    pub blob: Hash,
    /// Its size in pixels, orientation applied.
    pub size: Size,
}

/// What a part of a judgement looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// Who judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRecord {
    /// The model's name, as asked for.
    pub id: String,
    /// Where, without credentials; absent for the offline judge.
    pub base_url: Option<String>,
    /// The resolved profile.
    pub profile: Value,
    /// What was set with `--param`.
    pub params: BTreeMap<String, Value>,
    /// How it calls tools.
    pub dialect: Dialect,
    /// How it writes boxes.
    #[schemars(with = "String")]
    pub boxes: BoxConvention,
    /// What its tokens cost; absent where that is not known.
    pub price: Option<Price>,
}

/// The prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PackRecord {
    /// The pack's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash over all its files.
    pub hash: Hash,
    /// Which variant of it was used, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The files themselves.
    pub files: BTreeMap<String, Hash>,
}

/// How pictures are prepared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preprocessing {
    /// How they are encoded for the model.
    pub sending: Preparation,
    /// The most pictures that one request may hold.
    pub max_images: Option<u32>,
    /// How several targets are judged.
    pub targets: Targets,
}

/// The tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolsRecord {
    /// What the model is told of them.
    pub specs: Vec<ToolSpec>,
    /// Their settings by name.
    pub settings: BTreeMap<String, Value>,
    /// What belongs here and could not be had, with the reason.
    pub unavailable: BTreeMap<String, String>,
}

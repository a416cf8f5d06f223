//! `manifest.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::Case;
use super::conversation::{Dialect, Limits, Media, Price};
use super::pixels::{Box, Boxes};
use super::views::ViewRecord;
use super::{forms, plain};
use crate::hash::Hash;
use crate::trace::manifest;
use crate::{model, prompt, protocol, sending};

/// The version of the format that this program writes.
pub const FORMAT: FormatVersion = FormatVersion { major: 2, minor: 0 };

/// A reader takes any minor version of its major version, and every older major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FormatVersion {
    /// Changes when old readers would misunderstand.
    pub major: u32,
    /// Changes when something was added that old readers may ignore.
    pub minor: u32,
}

impl FormatVersion {
    /// Whether there may be something in it that this program has never heard of.
    pub fn is_newer(self) -> bool {
        self.major == FORMAT.major && self.minor > FORMAT.minor
    }
}

plain!(FormatVersion, PackRecord, ViewRecord);

forms! {
    /// All that could change a verdict and is known before the first question.
    struct Manifest of manifest::Manifest {
        /// The version of the format.
        format: FormatVersion,
        /// The version of deeplook that judged.
        deeplook: String,
        /// The commit that it was built from, with a `+` where files were changed; absent where it is
        /// not known.
        commit: Option<String>,
        /// What was judged.
        case: Case,
        /// By which criterion of the pack.
        criterion: String,
        /// What the judge got to see.
        mode: Mode,
        /// Which repetition, counted from 0.
        repeat: u32,
        /// What each part of the judgement looks at: the whole picture, or one target.
        parts: Vec<Part>,
        /// Who judged.
        model: Model,
        /// The prompts.
        pack: PackRecord,
        /// The tools, as declared to the model; empty where the mode has none.
        tools: Tools,
        /// The bounds of the deliberation.
        limits: Limits,
        /// How pictures are prepared.
        preprocessing: Preprocessing,
        /// The digest of the trace that this one was forked from.
        parent: Option<Hash>,
    }

    /// How much help a judge gets.
    #[serde(rename_all = "lowercase")]
    enum Mode of prompt::Mode {
        /// The whole pictures, and tools over several turns.
        Tool,
        /// Pictures prepared from the annotated targets.
        Oracle,
        /// The whole pictures, one turn, no tools: the baseline.
        Plain,
    }

    /// What a part of a judgement looks at.
    struct Part of manifest::PartRecord {
        /// "whole picture", "target 2 of 3", "all targets", "question 4".
        name: String,
        /// The boxes it is about, in pixels of the source.
        boxes: Vec<Box>,
        /// What its crops show, in pixels of the source; absent where pictures are shown whole.
        crop: Option<Box>,
        /// What the judge is told about the pictures.
        notes: Vec<String>,
        /// The question of the case that it asks, if it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    }

    /// Who judged.
    struct Model of model::ModelRecord {
        /// The model's name, as asked for.
        id: String,
        /// Where, without credentials; absent for the offline judge.
        base_url: Option<String>,
        /// The resolved profile.
        profile: Value,
        /// What was set for this run.
        params: BTreeMap<String, Value>,
        /// How it calls tools.
        dialect: Dialect,
        /// How it writes boxes.
        boxes: Boxes,
        /// What its tokens cost; absent where that is not known.
        price: Option<Price>,
    }

    /// How pictures are prepared.
    struct Preprocessing of manifest::Preprocessing {
        /// How they are encoded for the model.
        sending: Sending,
        /// The most pictures that one request may hold.
        max_images: Option<u32>,
        /// How several targets are judged.
        targets: Targets,
        /// What is done to each picture before it is shown: crops, masks, marks. Absent in the first
        /// format.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        views: Option<Vec<ViewRecord>>,
    }

    /// How pictures are encoded for a model.
    struct Sending of sending::Preparation {
        /// A longer picture is reduced to this long side.
        max_side: u32,
        /// PNG unless the server or the user wants JPEG.
        format: Media,
        /// A PNG of more bytes is sent as JPEG: servers limit the size of a request.
        max_png_bytes: usize,
        /// The quality of a JPEG, 1 to 100.
        jpeg_quality: u8,
    }

    /// How the targets of a case become parts of the judgement.
    #[serde(rename_all = "kebab-case")]
    enum Targets of protocol::Targets {
        /// One part for each target; all together where the pack says so.
        Sensible,
        /// One part for each target, whatever the pack says.
        Literal,
    }

    /// The tools.
    struct Tools of manifest::ToolsRecord {
        /// What the model is told of them.
        specs: Vec<ToolSpec>,
        /// Their settings by name.
        settings: BTreeMap<String, Value>,
        /// What belongs here and could not be had, with the reason.
        unavailable: BTreeMap<String, String>,
    }

    /// What a model is told about a tool.
    struct ToolSpec of deeplook_tools::ToolSpec {
        /// The name to call.
        name: String,
        /// What it is for.
        description: String,
        /// The JSON schema of its arguments.
        parameters: Value,
    }
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

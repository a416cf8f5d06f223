//! Manifests of the first format, whose cases knew a type, a target and its boxes. Their events are
//! those of today.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::case::{Case, Fact, File, Question};
use super::pixels::Box;
use crate::case::{Facts, REFERENCE, TARGET};

#[derive(Deserialize)]
struct Case1 {
    id: String,
    editor: Option<String>,
    instruction: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    target: Option<String>,
    boxes: Vec<Box>,
    source: Option<File>,
    edited: Option<File>,
    reference: Option<File>,
    #[serde(default)]
    pictures: BTreeMap<String, File>,
    #[serde(default)]
    facts: BTreeMap<String, Fact>,
    #[serde(default)]
    regions: BTreeMap<String, Vec<Box>>,
    #[serde(default)]
    questions: Vec<Question>,
}

impl From<Case1> for Case {
    fn from(case: Case1) -> Self {
        let Case1 { id, editor, instruction, mut pictures, mut facts, mut regions, .. } = case;
        let files = [("source", case.source), ("edited", case.edited), (REFERENCE, case.reference)];
        for (name, file) in files {
            pictures.extend(file.map(|file| (name.to_owned(), file)));
        }
        for (name, text) in [(Facts::TYPE, case.kind), (Facts::TARGET, case.target)] {
            facts.extend(text.map(|text| (name.to_owned(), Fact::Text(text))));
        }
        if !case.boxes.is_empty() {
            regions.insert(TARGET.to_owned(), case.boxes);
        }
        Self { id, editor, instruction, pictures, facts, regions, questions: case.questions }
    }
}

/// The manifest as today's format has it.
pub(in crate::trace) fn today(mut manifest: Value) -> serde_json::Result<Value> {
    let case: Case1 = Deserialize::deserialize(manifest["case"].take())?;
    manifest["case"] = serde_json::to_value(Case::from(case))?;
    Ok(manifest)
}

//! What was judged.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use super::pixels::{Box, Size};
use super::{Form, forms};
use crate::case::{self, Facts, REFERENCE, TARGET};
use crate::hash::Hash;
use crate::trace::manifest::{CaseRecord, FileRecord};

/// The edit that was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Case {
    /// The name of the case.
    pub(crate) id: String,
    /// Who edited.
    pub(crate) editor: Option<String>,
    /// What the editor was told.
    pub(crate) instruction: String,
    /// The pictures by name: `source`, `edited`, `reference`, …; absent where one could not be read.
    pub(crate) pictures: BTreeMap<String, File>,
    /// What is known of it: `type`, `target` (a phrase), …
    #[serde(default)]
    pub(crate) facts: BTreeMap<String, Fact>,
    /// Places by name, in pixels of the source; the objects to edit are `target`.
    #[serde(default)]
    pub(crate) regions: BTreeMap<String, Vec<Box>>,
    /// What a benchmark asks about it.
    #[serde(default)]
    pub(crate) questions: Vec<Question>,
}

forms! {
    /// A picture file.
    struct File of FileRecord {
        /// Its bytes.
        blob: Hash,
        /// Its size in pixels, orientation applied.
        size: Size,
    }

    /// A question that a benchmark asks about one case.
    struct Question of case::CaseQuestion {
        /// Names it within its case.
        id: String,
        /// What is asked.
        text: String,
        /// The right answer; no model sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
        /// The place that it is about, in pixels of the source.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<Box>,
    }
}

/// A text or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "Value")]
pub(crate) enum Fact {
    Text(String),
    Number(#[schemars(with = "f64")] Number),
}

impl TryFrom<Value> for Fact {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Number(number) => Ok(Self::Number(number)),
            other => Err(format!("a fact is a text or a number, not {other}")),
        }
    }
}

impl Form<case::Fact> for Fact {
    fn of(it: case::Fact) -> Self {
        match it {
            case::Fact::Text(text) => Self::Text(text),
            case::Fact::Number(number) => Self::Number(number),
        }
    }

    fn back(self) -> case::Fact {
        match self {
            Self::Text(text) => case::Fact::Text(text),
            Self::Number(number) => case::Fact::Number(number),
        }
    }
}

impl Form<Facts> for BTreeMap<String, Fact> {
    fn of(it: Facts) -> Self {
        it.iter().map(|(name, fact)| (name.to_owned(), Fact::of(fact.clone()))).collect()
    }

    fn back(self) -> Facts {
        self.into_iter().map(|(name, fact)| (name, fact.back())).collect()
    }
}

const SOURCE: &str = "source";
const EDITED: &str = "edited";

impl Form<CaseRecord> for Case {
    fn of(it: CaseRecord) -> Self {
        let case::Case {
            id,
            editor,
            instruction,
            source,
            edited,
            others,
            facts,
            regions,
            questions,
        } = it;
        let own = [(SOURCE.into(), source), (EDITED.into(), edited)];
        let pictures = others.into_iter().chain(own);
        let pictures =
            pictures.filter_map(|(name, file)| Some((name.to_string(), File::of(file?))));
        let pictures = pictures.collect();
        let (facts, regions) = (Form::of(facts), Form::of(regions));
        Self { id, editor, instruction, pictures, facts, regions, questions: Form::of(questions) }
    }

    fn back(self) -> CaseRecord {
        let Self { id, editor, instruction, mut pictures, facts, regions, questions } = self;
        let mut own = |name: &str| pictures.remove(name).map(Form::back);
        let (source, edited): (Option<FileRecord>, Option<FileRecord>) = (own(SOURCE), own(EDITED));
        let others = pictures.into_iter().map(|(name, file)| (name, Some(file.back()))).collect();
        let (facts, regions) = (facts.back(), regions.back());
        let questions = questions.back();
        case::Case { id, editor, instruction, source, edited, others, facts, regions, questions }
    }
}

/// What was judged: the hashes of the pictures' files, absent where one could not be read, and one
/// hash for everything else that is known of the case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inputs {
    /// What is known about the case besides its pictures.
    pub facts: Hash,
    /// The picture before the edit.
    pub source: Option<Hash>,
    /// The picture after the edit.
    pub edited: Option<Hash>,
    /// What a good edit looks like.
    pub reference: Option<Hash>,
    /// Further pictures by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pictures: BTreeMap<String, Hash>,
}

impl Inputs {
    /// The inputs of a recorded case.
    pub fn of(case: &CaseRecord) -> Self {
        let Case { instruction, pictures, mut facts, mut regions, questions, .. } =
            Form::of(case.clone());
        // The first version knew a type, a target and its boxes. Whatever a case of today has beyond
        // these is added only where it is there, so that what was judged before counts as the same.
        let (kind, target) = (facts.remove(Facts::TYPE), facts.remove(Facts::TARGET));
        let boxes = regions.remove(TARGET).unwrap_or_default();
        let mut known = vec![json!(instruction), json!(kind), json!(target), json!(boxes)];
        if !facts.is_empty() || !regions.is_empty() || !questions.is_empty() {
            known.push(json!([facts, regions, questions]));
        }
        let mut pictures: BTreeMap<String, Hash> =
            pictures.into_iter().map(|(name, file)| (name, file.blob)).collect();
        Self {
            facts: Hash::of(json!(known).to_string().as_bytes()),
            source: pictures.remove(SOURCE),
            edited: pictures.remove(EDITED),
            reference: pictures.remove(REFERENCE),
            pictures,
        }
    }
}

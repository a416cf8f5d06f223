//! `run.json`: what is judged in a run and with which settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::Fact;
use super::manifest::Mode;
use crate::case::Facts;

/// `run.json`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    /// The version of this file: one number, as whoever cannot read one of them starts another run.
    pub(crate) format: u64,
    /// When the run was first started.
    pub(crate) started: String,
    /// The file of cases.
    pub(crate) data_set: PathBuf,
    /// The folder of edits, if one was named.
    pub(crate) edits: Option<PathBuf>,
    /// What the last command wanted to have judged.
    pub(crate) planned: Planned,
    /// Everything that can change a verdict, for each mode.
    pub(crate) settings: BTreeMap<Mode, Value>,
}

/// The judgements that were wanted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Planned {
    /// By which criteria.
    pub(crate) criteria: BTreeSet<String>,
    /// By criterion: the facts, as `name=value`, of the cases that it applies to, where these are not all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) applies: BTreeMap<String, Vec<String>>,
    /// In which modes.
    pub(crate) modes: BTreeSet<Mode>,
    /// How often each.
    pub(crate) repeats: u32,
    /// The editors of each case, of all shards together.
    pub(crate) edits: BTreeMap<String, BTreeSet<String>>,
    /// What is known of each case.
    #[serde(default)]
    pub(crate) facts: BTreeMap<String, BTreeMap<String, Fact>>,
    /// The same in the first format: the type of each case that has one.
    #[serde(default, skip_serializing)]
    types: BTreeMap<String, String>,
    /// Part I/N of it.
    pub(crate) shard: Option<String>,
}

impl Planned {
    pub(crate) fn new(
        criteria: BTreeSet<String>,
        applies: BTreeMap<String, Vec<String>>,
        modes: BTreeSet<Mode>,
        repeats: u32,
        edits: BTreeMap<String, BTreeSet<String>>,
        facts: BTreeMap<String, BTreeMap<String, Fact>>,
        shard: Option<String>,
    ) -> Self {
        Self { criteria, applies, modes, repeats, edits, facts, types: BTreeMap::new(), shard }
    }

    /// What is known of each case, whichever format says so.
    pub(crate) fn all_facts(&mut self) -> BTreeMap<String, BTreeMap<String, Fact>> {
        let mut all = std::mem::take(&mut self.facts);
        for (case, kind) in std::mem::take(&mut self.types) {
            let facts = all.entry(case).or_default();
            facts.entry(Facts::TYPE.to_owned()).or_insert(Fact::Text(kind));
        }
        all
    }
}

//! A line of `results.jsonl`. It has no version: fields are only ever added, and lines from elsewhere
//! have few of them.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::case::{Fact, Inputs};
use super::conversation::Usage;
use super::manifest::Mode;
use super::{forms, plain};
use crate::hash::Hash;
use crate::trace::results;

plain!(Inputs);

forms! {
    /// One line of `results.jsonl`.
    struct ResultLine of results::ResultLine {
        /// The case.
        case: String,
        /// Who edited.
        #[serde(default)]
        editor: Option<String>,
        /// What the editor was told.
        #[serde(default)]
        instruction: Option<String>,
        /// The type of the instruction.
        #[serde(default, rename = "type")]
        kind: Option<String>,
        /// What else is known of the case.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        facts: BTreeMap<String, Fact>,
        /// By which criterion.
        criterion: String,
        /// What the judge got to see.
        #[serde(default)]
        mode: Option<Mode>,
        /// Which repetition, counted from 0.
        #[serde(default)]
        repeat: u32,
        /// Who judged.
        #[serde(default)]
        model: Option<String>,
        /// By which prompts: name, version, and the beginning of their hash.
        #[serde(default)]
        prompts: Option<String>,
        /// In which variant of them, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variant: Option<String>,
        /// How it ended; absent for an interrupted trace.
        #[serde(default)]
        outcome: Option<OutcomeName>,
        /// The label of a verdict, or, from elsewhere, its rank.
        #[serde(default, deserialize_with = "label")]
        label: Option<String>,
        /// What was answered for each key, where the answer has several.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, Value>,
        /// What it is worth, on the criterion's scale.
        #[serde(default)]
        score: Option<f64>,
        /// Its parts, where it has several or they are about questions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PartLine>,
        /// Why there is no verdict.
        #[serde(default)]
        reason: Option<String>,
        /// How often the model was asked.
        #[serde(default)]
        turns: Option<u32>,
        /// How often each tool looked.
        #[serde(default)]
        tools: BTreeMap<String, u32>,
        /// Whether something that a tool showed holds at least half of an annotated target.
        #[serde(default)]
        looked_at_target: Option<bool>,
        /// How many pictures the verdict names as its evidence.
        #[serde(default)]
        evidence: Option<usize>,
        /// Width and height of the smallest annotated target as fractions of the picture's.
        #[serde(default)]
        target_scale: Option<[f64; 2]>,
        /// Tokens.
        #[serde(default)]
        usage: Usage,
        /// What its replies cost when they were made, in US dollars; absent where it is not known.
        #[serde(default)]
        cost: Option<f64>,
        /// What was paid for it in this run.
        #[serde(default)]
        paid: Option<f64>,
        /// How many of its replies were kept from before.
        #[serde(default)]
        cached: u32,
        /// When it ended, in milliseconds since 1970.
        #[serde(default)]
        at: Option<u64>,
        /// What was judged.
        #[serde(default)]
        inputs: Option<Inputs>,
        /// From the first event to the last.
        #[serde(default)]
        seconds: Option<f64>,
        /// The folder of the trace, relative to the run's.
        #[serde(default)]
        trace: Option<String>,
        /// The digest of the trace.
        #[serde(default)]
        digest: Option<Hash>,
    }

    /// What one part of a judgement came to.
    struct PartLine of results::PartLine {
        /// "target 2 of 3", "question 4".
        name: String,
        /// How it ended; absent if it was interrupted.
        #[serde(default)]
        outcome: Option<OutcomeName>,
        /// The label of a verdict.
        #[serde(default)]
        label: Option<String>,
        /// What was answered for each key, where the answer has several.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, Value>,
        /// What it is worth.
        #[serde(default)]
        score: Option<f64>,
        /// Which question it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
        /// The right answer to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<String>,
    }

    /// How a judgement ended.
    #[serde(rename_all = "lowercase")]
    enum OutcomeName of results::OutcomeName {
        /// There is a label.
        Verdict,
        /// The model gave no readable answer.
        Abstained,
        /// The server, a budget or a filter prevented one.
        Failed,
        /// There was nothing to judge.
        Missing,
    }
}

fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(Value::Number(rank)) => Ok(Some(rank.to_string())),
        Some(other) => Err(D::Error::custom(format!("`label` is a name or a number, not {other}"))),
    }
}

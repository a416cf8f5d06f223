//! `results.jsonl`: one line for each judgement, made of its trace and of nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use deeplook_tools::scene::{EDITED, ORIGINAL};
use deeplook_tools::{PixelBox, Size};
use rayon::prelude::*;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::events::{Event, Observed, ToolAnswer, What};
use super::manifest::{CaseRecord, FileRecord, Manifest};
use super::reader::{Bundle, TraceError};
use super::reducer::reduce;
use crate::hash::Hash;
use crate::message::Usage;
use crate::prompt::Mode;
use crate::verdict::Outcome;

/// One line of `results.jsonl`.
///
/// Judgements from elsewhere may have only `case`, `editor`, `criterion`, `type` and `label`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultLine {
    /// The case.
    pub case: String,
    /// Who edited.
    #[serde(default)]
    pub editor: Option<String>,
    /// What the editor was told.
    #[serde(default)]
    pub instruction: Option<String>,
    /// The type of the instruction.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// By which criterion.
    pub criterion: String,
    /// What the judge got to see.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Which repetition, counted from 0.
    #[serde(default)]
    pub repeat: u32,
    /// Who judged.
    #[serde(default)]
    pub model: Option<String>,
    /// By which prompts: name, version, and the beginning of their hash, e.g. `dlebench/v1@0123456789ab`.
    #[serde(default)]
    pub prompts: Option<String>,
    /// How it ended; absent for an interrupted trace. A line from elsewhere that has none is a
    /// verdict if it has a label.
    #[serde(default)]
    pub outcome: Option<OutcomeName>,
    /// The label of a verdict. Judgements from elsewhere may have its rank instead, from 1 for the worst.
    #[serde(default, deserialize_with = "label")]
    pub label: Option<String>,
    /// What the label is worth, 0 to 100.
    #[serde(default)]
    pub score: Option<f64>,
    /// Why there is no verdict.
    #[serde(default)]
    pub reason: Option<String>,
    /// How often the model was asked.
    #[serde(default)]
    pub turns: Option<u32>,
    /// How often each tool looked.
    #[serde(default)]
    pub tools: BTreeMap<String, u32>,
    /// Whether something that a tool showed holds at least half of an annotated target; absent
    /// without boxes or without a look.
    #[serde(default)]
    pub looked_at_target: Option<bool>,
    /// How many pictures the verdict names as its evidence.
    #[serde(default)]
    pub evidence: Option<usize>,
    /// Width and height of the smallest annotated target as fractions of the picture's.
    #[serde(default)]
    pub target_scale: Option<[f64; 2]>,
    /// Tokens.
    #[serde(default)]
    pub usage: Usage,
    /// What its replies cost when they were made, in US dollars; absent where it is not known.
    #[serde(default)]
    pub cost: Option<f64>,
    /// What was paid for it in this run: replies that were kept from before cost nothing again.
    #[serde(default)]
    pub paid: Option<f64>,
    /// How many of its replies were kept from before.
    #[serde(default)]
    pub cached: u32,
    /// When it ended, in milliseconds since 1970.
    #[serde(default)]
    pub at: Option<u64>,
    /// What was judged.
    #[serde(default)]
    pub inputs: Option<Inputs>,
    /// From the first event to the last.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The folder of the trace, relative to the run's.
    #[serde(default)]
    pub trace: Option<String>,
    /// The digest of the trace.
    #[serde(default)]
    pub digest: Option<Hash>,
}

fn label<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(Value::Number(rank)) => Ok(Some(rank.to_string())),
        Some(other) => Err(D::Error::custom(format!("`label` is a name or a number, not {other}"))),
    }
}

/// What was judged: the hashes of the pictures' files, absent where one could not be read, and one
/// hash for instruction, type, target and boxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs {
    /// What is known about the case besides its pictures.
    pub facts: Hash,
    /// The picture before the edit.
    pub source: Option<Hash>,
    /// The picture after the edit.
    pub edited: Option<Hash>,
    /// What a good edit looks like.
    pub reference: Option<Hash>,
}

impl Inputs {
    /// The inputs of a recorded case.
    pub fn of(case: &CaseRecord) -> Self {
        let facts = serde_json::json!([case.instruction, case.kind, case.target, case.boxes]);
        let hash = |file: &Option<FileRecord>| file.as_ref().map(|file| file.blob.clone());
        Self {
            facts: Hash::of(facts.to_string().as_bytes()),
            source: hash(&case.source),
            edited: hash(&case.edited),
            reference: hash(&case.reference),
        }
    }
}

/// The name of an [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomeName {
    /// There is a label.
    Verdict,
    /// The model gave no readable answer.
    Abstained,
    /// The server, a budget or a filter prevented one.
    Failed,
    /// There was nothing to judge.
    Missing,
}

impl fmt::Display for OutcomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Verdict => "verdict",
            Self::Abstained => "abstained",
            Self::Failed => "failed",
            Self::Missing => "missing",
        })
    }
}

impl From<&Outcome> for OutcomeName {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Verdict { .. } => Self::Verdict,
            Outcome::Abstained { .. } => Self::Abstained,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Missing { .. } => Self::Missing,
        }
    }
}

impl ResultLine {
    /// The line of a judgement whose bundle is in the folder `trace` of the run.
    pub fn of(manifest: &Manifest, events: &[Event], trace: &str, digest: &Hash) -> Self {
        let judgement = reduce(manifest, events);
        let outcome = judgement.outcome.as_ref();
        let case = &manifest.case;
        let pack = &manifest.pack;
        let verdict = outcome.and_then(Outcome::label).is_some();
        let deciding = judgement.deciding_part().filter(|_| verdict);
        let mut tools = BTreeMap::new();
        let looks = events.iter().filter_map(|event| match &event.event {
            What::Observed(observed) if matches!(observed.answer, ToolAnswer::Saw { .. }) => {
                Some(observed)
            }
            _ => None,
        });
        let mut seen = None;
        for look in looks {
            *tools.entry(look.call.name.clone()).or_insert(0) += 1;
            if !case.boxes.is_empty() {
                seen = Some(seen.unwrap_or(false) || shows_target(look, case));
            }
        }
        let span = events.first().zip(events.last());
        let replies = || {
            events.iter().filter_map(|event| match &event.event {
                What::Replied(replied) => Some(replied),
                _ => None,
            })
        };
        let price = manifest.model.price.as_ref();
        let paid = replies().map(|replied| match (replied.cached, price) {
            (true, _) => Some(0.0),
            (false, price) => price?.cost(replied.reply.usage),
        });
        Self {
            case: case.id.clone(),
            editor: case.editor.clone(),
            instruction: Some(case.instruction.clone()),
            kind: case.kind.clone(),
            criterion: manifest.criterion.clone(),
            mode: Some(manifest.mode),
            repeat: manifest.repeat,
            model: Some(manifest.model.id.clone()),
            prompts: Some(format!("{}/{}@{}", pack.name, pack.version, &pack.hash.as_str()[..12])),
            outcome: outcome.map(Into::into),
            label: outcome.and_then(Outcome::label).map(str::to_owned),
            score: outcome.and_then(Outcome::score),
            reason: outcome.and_then(Outcome::reason).map(str::to_owned),
            turns: Some(judgement.turns),
            tools,
            looked_at_target: seen,
            evidence: deciding.map(|part| part.evidence.len()),
            target_scale: smallest_target(case),
            usage: judgement.usage,
            cost: judgement.cost,
            paid: paid.sum(),
            cached: replies().filter(|replied| replied.cached).count() as u32,
            at: events.last().map(|event| event.at),
            inputs: Some(Inputs::of(case)),
            seconds: span.map(|(first, last)| last.at.saturating_sub(first.at) as f64 / 1000.0),
            trace: Some(trace.to_owned()),
            digest: Some(digest.clone()),
        }
    }

    /// How it ended; `None` for an interrupted trace.
    pub fn outcome(&self) -> Option<OutcomeName> {
        self.outcome.or(self.label.as_ref().map(|_| OutcomeName::Verdict))
    }
}

/// The judgements of a run: those in its `results.jsonl`, or, where it has none, those in its
/// bundles. `path` is the folder of a run or a file of such lines from anywhere.
pub fn read_results(path: &Path) -> Result<Vec<ResultLine>, ResultsError> {
    let lines = path.join("results.jsonl");
    if !path.is_dir() {
        read_lines(path)
    } else if lines.is_file() {
        read_lines(&lines)
    } else {
        reduce_bundles(path)
    }
}

fn read_lines(path: &Path) -> Result<Vec<ResultLine>, ResultsError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ResultsError::Unreadable { path: path.to_owned(), source })?;
    let mut lines = Vec::new();
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let malformed = |problem: String| ResultsError::Malformed {
            path: path.to_owned(),
            line: number + 1,
            problem,
        };
        let mut line: ResultLine =
            serde_json::from_str(line).map_err(|error| malformed(error.to_string()))?;
        // Judgements from elsewhere say "IF" as the papers do.
        line.criterion = line.criterion.trim().to_lowercase();
        if line.outcome == Some(OutcomeName::Verdict) && line.label.is_none() {
            return Err(malformed("it is a verdict and has no label".to_owned()));
        }
        if line.score.is_some_and(|score| !(0.0..=100.0).contains(&score)) {
            return Err(malformed("its score is not within 0 to 100".to_owned()));
        }
        lines.push(line);
    }
    Ok(lines)
}

fn reduce_bundles(run: &Path) -> Result<Vec<ResultLine>, ResultsError> {
    let judgements = run.join("judgements");
    let unreadable = |source| ResultsError::NoRun { path: run.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(&judgements).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // A killed judgement may have left a folder without a manifest: nothing happened in it.
        if entry.path().join("manifest.json").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let line = |name: &String| {
        let bundle = Bundle::read(&judgements.join(name))?;
        let trace = format!("judgements/{name}");
        Ok(ResultLine::of(&bundle.manifest, &bundle.events, &trace, &bundle.digest))
    };
    names.par_iter().map(line).collect()
}

/// Judgements that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file system said no.
    #[error("cannot read {}: {source}; give the folder of a run or a results.jsonl", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder that holds neither lines nor bundles.
    #[error("{} is not the folder of a run: it has neither results.jsonl nor judgements/ ({source})", path.display())]
    NoRun {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line that is no judgement.
    #[error("{}, line {line}: {problem}; a line is an object with at least case and criterion, and the label of a verdict", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A bundle that cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

fn smallest_target(case: &CaseRecord) -> Option<[f64; 2]> {
    let Size { width, height } = case.source.as_ref()?.size;
    let smallest = case.boxes.iter().min_by(|a, b| a.area().total_cmp(&b.area()))?;
    Some([smallest.width() / f64::from(width), smallest.height() / f64::from(height)])
}

/// Whether a look shows at least half of a target: a box that was found, or a place that was cut out.
fn shows_target(look: &Observed, case: &CaseRecord) -> bool {
    let ToolAnswer::Saw { data, pictures, .. } = &look.answer else { return false };
    let found = |value: &Value| serde_json::from_value(value["bbox"].clone()).ok();
    let places: Vec<PixelBox> = match data["boxes"].as_array() {
        Some(boxes) => boxes.iter().filter_map(found).collect(),
        None => {
            let same_frame = case.edited.as_ref().map(|file| file.size)
                == case.source.as_ref().map(|file| file.size);
            let panels = pictures.iter().flat_map(|picture| &picture.panels);
            panels
                .filter(|panel| panel.source == ORIGINAL || panel.source == EDITED && same_frame)
                .map(|panel| panel.region)
                .collect()
        }
    };
    let half = |target: &PixelBox, place: &PixelBox| {
        target.intersection(place).area() >= 0.5 * target.area()
    };
    case.boxes.iter().any(|target| places.iter().any(|place| half(target, place)))
}

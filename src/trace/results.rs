//! `results.jsonl`: one line for each judgement, made of its trace and of nothing else.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use deeplook_tools::scene::{EDITED, ORIGINAL};
use deeplook_tools::{PixelBox, Size};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::{Observed, ToolAnswer};
use super::manifest::{CaseRecord, Manifest};
use super::reader::{Bundle, TraceError, is_unbegun};
use super::reducer::{Account, Judgement, PartJudgement, reduce};
use super::sink::Kept;
use super::soundness::Worths;
use super::stored::{self, Inputs};
use crate::case::{Condition, Facts};
use crate::hash::Hash;
use crate::key::JudgementKey;
use crate::message::Usage;
use crate::prompt::Mode;
use crate::received::{self, LARGEST_RESULTS};
use crate::verdict::Outcome;

/// One line of `results.jsonl`.
///
/// Judgements from elsewhere may have only `case`, `editor`, `criterion`, `type` and `label`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "stored::ResultLine", into = "stored::ResultLine")]
pub struct ResultLine {
    /// The case.
    pub case: String,
    /// Who edited.
    pub editor: Option<String>,
    /// What the editor was told.
    pub instruction: Option<String>,
    /// The type of the instruction.
    pub kind: Option<String>,
    /// What else is known of the case.
    pub facts: Facts,
    /// By which criterion.
    pub criterion: String,
    /// What the judge got to see.
    pub mode: Option<Mode>,
    /// Which repetition, counted from 0.
    pub repeat: u32,
    /// Who judged.
    pub model: Option<String>,
    /// By which prompts: name, version, and the beginning of their hash, e.g. `dlebench/v1@0123456789ab`.
    pub prompts: Option<String>,
    /// In which variant of them, if any.
    pub variant: Option<String>,
    /// How it ended; absent for an interrupted trace. A line from elsewhere that has none is a
    /// verdict if it has a label.
    pub outcome: Option<OutcomeName>,
    /// The label of a verdict. Judgements from elsewhere may have its rank instead, from 1 for the worst.
    pub label: Option<String>,
    /// What was answered for each key, where the answer has several.
    pub values: BTreeMap<String, Value>,
    /// What it is worth, on the criterion's scale.
    pub score: Option<f64>,
    /// Its parts, where it has several or they are about questions.
    pub parts: Vec<PartLine>,
    /// Why there is no verdict.
    pub reason: Option<String>,
    /// How often the model was asked.
    pub turns: Option<u32>,
    /// How often each tool looked.
    pub tools: BTreeMap<String, u32>,
    /// Whether something that a tool showed holds at least half of an annotated target; absent
    /// without boxes or without a look.
    pub looked_at_target: Option<bool>,
    /// How many pictures the verdict names as its evidence.
    pub evidence: Option<usize>,
    /// Width and height of the smallest annotated target as fractions of the picture's.
    pub target_scale: Option<[f64; 2]>,
    /// Tokens.
    pub usage: Usage,
    /// What its replies cost when they were made, in US dollars; absent where it is not known.
    pub cost: Option<f64>,
    /// What was paid for it in this run: replies that were kept from before cost nothing again.
    pub paid: Option<f64>,
    /// How many of its replies were kept from before.
    pub cached: u32,
    /// When it ended, in milliseconds since 1970.
    pub at: Option<u64>,
    /// What was judged.
    pub inputs: Option<Inputs>,
    /// From the first event to the last.
    pub seconds: Option<f64>,
    /// The folder of the trace, relative to the run's.
    pub trace: Option<String>,
    /// The digest of the trace.
    pub digest: Option<Hash>,
}

/// What one part of a judgement came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(into = "stored::PartLine")]
pub struct PartLine {
    /// "target 2 of 3", "question 4".
    pub name: String,
    /// How it ended; absent if it was interrupted.
    pub outcome: Option<OutcomeName>,
    /// The label of a verdict.
    pub label: Option<String>,
    /// What was answered for each key, where the answer has several.
    pub values: BTreeMap<String, Value>,
    /// What it is worth.
    pub score: Option<f64>,
    /// Which question it is about.
    pub question: Option<String>,
    /// The right answer to it.
    pub expected: Option<String>,
}

impl PartLine {
    fn all(manifest: &Manifest, judgement: &Judgement) -> Vec<Self> {
        let asked = manifest.parts.iter().map(|part| part.question.as_ref());
        if manifest.parts.len() < 2 && asked.clone().all(|question| question.is_none()) {
            return Vec::new();
        }
        let line = |(part, question): (&PartJudgement, Option<&String>)| {
            let outcome = part.outcome.as_ref();
            let verdict = outcome.and_then(Outcome::verdict);
            let known = manifest.case.questions.iter().find(|known| Some(&known.id) == question);
            Self {
                name: part.name.clone(),
                outcome: outcome.map(Into::into),
                label: verdict.and_then(|verdict| verdict.label.clone()),
                values: verdict.map(|verdict| verdict.values.clone()).unwrap_or_default(),
                score: verdict.map(|verdict| verdict.score),
                question: question.cloned(),
                expected: known.and_then(|known| known.expected.clone()),
            }
        };
        judgement.parts.iter().zip(asked).map(line).collect()
    }
}

/// The name of an [`Outcome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "stored::OutcomeName", into = "stored::OutcomeName")]
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
            Outcome::Verdict(_) => Self::Verdict,
            Outcome::Abstained { .. } => Self::Abstained,
            Outcome::Failed { .. } => Self::Failed,
            Outcome::Missing { .. } => Self::Missing,
        }
    }
}

impl ResultLine {
    /// The line of what a trace tells; `kept` is where its bundle is in the run.
    pub fn of(account: &Account<'_>, kept: Option<&Kept>) -> Self {
        let name = |kept: &Kept| {
            let name = kept.folder.file_name().unwrap_or_default();
            format!("judgements/{}", name.to_string_lossy())
        };
        let Account { manifest, judgement, replies, looks, span, .. } = account;
        let outcome = judgement.outcome.as_ref();
        let case = &manifest.case;
        let pack = &manifest.pack;
        let verdict = outcome.and_then(Outcome::verdict).is_some();
        let deciding = judgement.deciding_part().filter(|_| verdict);
        let mut tools = BTreeMap::new();
        for look in looks {
            *tools.entry(look.call.name.clone()).or_insert(0) += 1;
        }
        let wanted = !looks.is_empty() && !case.targets().is_empty();
        let seen = wanted.then(|| looks.iter().any(|look| shows_target(look, case)));
        Self {
            case: case.id.clone(),
            editor: case.editor.clone(),
            instruction: Some(case.instruction.clone()),
            kind: case.facts.text(Facts::TYPE).map(Cow::into_owned),
            facts: known(case),
            criterion: manifest.criterion.clone(),
            mode: Some(manifest.mode),
            repeat: manifest.repeat,
            model: Some(manifest.model.id.clone()),
            prompts: Some(format!("{}/{}@{}", pack.name, pack.version, &pack.hash.as_str()[..12])),
            variant: pack.variant.clone(),
            outcome: outcome.map(Into::into),
            label: outcome.and_then(Outcome::label).map(str::to_owned),
            values: outcome
                .and_then(Outcome::verdict)
                .map(|v| v.values.clone())
                .unwrap_or_default(),
            score: outcome.and_then(Outcome::score),
            parts: PartLine::all(manifest, judgement),
            reason: outcome.and_then(Outcome::reason).map(str::to_owned),
            turns: Some(judgement.turns),
            tools,
            looked_at_target: seen,
            evidence: deciding.map(|part| part.evidence.len()),
            target_scale: smallest_target(case),
            usage: judgement.usage,
            cost: judgement.cost,
            paid: account.paid(),
            cached: replies.iter().filter(|replied| replied.cached).count() as u32,
            at: span.map(|(_, end)| end),
            inputs: Some(Inputs::of(case)),
            seconds: span.map(|(begin, end)| end.saturating_sub(begin) as f64 / 1000.0),
            trace: kept.map(name),
            digest: kept.map(|kept| kept.digest.clone()),
        }
    }

    /// A fact of the case, in words; its type is one of them.
    pub fn fact(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            Facts::TYPE => self.kind.as_deref().map(Cow::Borrowed),
            _ => self.facts.text(name),
        }
    }

    /// The line of the judgement in a bundle.
    pub fn of_bundle(bundle: &Bundle) -> Self {
        Self::of(&reduce(&bundle.manifest, &bundle.events), Some(&bundle.kept()))
    }

    /// The judgement that it tells of; `None` for a line that no run has written.
    pub fn key(&self) -> Option<JudgementKey> {
        Some(JudgementKey {
            case: self.case.clone(),
            editor: self.editor.clone()?,
            criterion: self.criterion.clone(),
            mode: self.mode?,
            repeat: self.repeat,
        })
    }

    /// Whether the facts of the case meet all of these.
    pub fn meets(&self, conditions: &[Condition]) -> bool {
        conditions.is_empty() || Condition::all_met(conditions, &self.all_facts())
    }

    /// What is known of the case, its type included.
    fn all_facts(&self) -> Facts {
        let mut facts = self.facts.clone();
        facts.insert_some(Facts::TYPE, self.kind.clone());
        facts
    }

    /// How it ended; `None` for an interrupted trace.
    pub fn outcome(&self) -> Option<OutcomeName> {
        self.outcome.or(self.label.as_ref().map(|_| OutcomeName::Verdict))
    }
}

/// The judgements of a run: those in its `results.jsonl`, or, where it has none, those in its
/// bundles, all of which must be readable. `path` is the folder of a run or a file of such lines from
/// anywhere.
pub fn read_results(path: &Path) -> Result<Vec<ResultLine>, ResultsError> {
    let RunResults { lines, unreadable } = read_run(path)?;
    unreadable.into_iter().next().map_or(Ok(lines), |error| Err(error.into()))
}

/// What [`read_run`] finds.
#[derive(Debug)]
pub struct RunResults {
    /// The judgements.
    pub lines: Vec<ResultLine>,
    /// Bundles of which not even the manifest can be read, so that nobody knows what they are about.
    pub unreadable: Vec<TraceError>,
}

/// The same as [`read_results`] for whoever goes on without what cannot be read.
pub fn read_run(path: &Path) -> Result<RunResults, ResultsError> {
    let lines = path.join("results.jsonl");
    let bytes = |read: io::Result<Vec<u8>>, path: &Path| {
        read.map_err(|source| ResultsError::Unreadable { path: path.to_owned(), source })
    };
    if !path.is_dir() {
        let lines = read_lines(path, bytes(received::read_named(path, LARGEST_RESULTS), path)?)?;
        Ok(RunResults { lines, unreadable: Vec::new() })
    } else if received::is_there(&lines) {
        let text = bytes(received::read(&lines, LARGEST_RESULTS), &lines)?;
        Ok(RunResults { lines: read_lines(&lines, text)?, unreadable: Vec::new() })
    } else {
        reduce_bundles(path)
    }
}

fn read_lines(path: &Path, bytes: Vec<u8>) -> Result<Vec<ResultLine>, ResultsError> {
    let text = String::from_utf8(bytes).map_err(|error| ResultsError::Unreadable {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, error),
    })?;
    let (mut lines, mut worths) = (Vec::new(), Worths::default());
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
        // As it is written: a pack finds its own criteria whatever their case.
        line.criterion = line.criterion.trim().to_owned();
        worths.check(&line).map_err(malformed)?;
        lines.push(line);
    }
    Ok(lines)
}

fn reduce_bundles(run: &Path) -> Result<RunResults, ResultsError> {
    let judgements = run.join("judgements");
    let no_run = |source| ResultsError::NoRun { path: run.to_owned(), source };
    let mut names = Vec::new();
    if received::is_there(&judgements) && !received::is_folder(&judgements) {
        return Err(no_run(io::ErrorKind::NotADirectory.into()));
    }
    for entry in fs::read_dir(&judgements).map_err(no_run)? {
        let entry = entry.map_err(no_run)?;
        // A killed judgement may have left a folder in which nothing happened.
        if entry.file_type().map_err(no_run)?.is_dir() && !is_unbegun(&entry.path()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    let read: Vec<Result<ResultLine, TraceError>> =
        names.par_iter().map(|name| bundle_line(&judgements.join(name))).collect();
    let (mut lines, mut unreadable) = (Vec::new(), Vec::new());
    for one in read {
        match one {
            Ok(line) => lines.push(line),
            Err(error) => unreadable.push(error),
        }
    }
    Ok(RunResults { lines, unreadable })
}

/// The line of the bundle in `folder`. Where only its manifest can be read, or what it tells cannot be
/// true, it has no outcome, and says why.
fn bundle_line(folder: &Path) -> Result<ResultLine, TraceError> {
    let without_outcome = |manifest: &Manifest, reason: String| {
        let line = ResultLine::of(&reduce(manifest, &[]), None);
        ResultLine { reason: Some(reason), ..line }
    };
    let error = match Bundle::read(folder) {
        Ok(bundle) => {
            let line = ResultLine::of_bundle(&bundle);
            return Ok(match Worths::default().check(&line) {
                Ok(()) => line,
                Err(problem) => {
                    let reason = format!("its trace tells what cannot be: {problem}");
                    without_outcome(&bundle.manifest, reason)
                }
            });
        }
        Err(error) => error,
    };
    let Ok(manifest) = Bundle::manifest_in(folder) else { return Err(error) };
    Ok(without_outcome(&manifest, format!("its trace cannot be read: {error}")))
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

/// What is known of a case besides its type, which has a field of its own.
fn known(case: &CaseRecord) -> Facts {
    let mut facts = case.facts.clone();
    facts.remove(Facts::TYPE);
    facts
}

fn smallest_target(case: &CaseRecord) -> Option<[f64; 2]> {
    let Size { width, height } = case.source.as_ref()?.size;
    let smallest = case.targets().iter().min_by(|a, b| a.area().total_cmp(&b.area()))?;
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
    case.targets().iter().any(|target| places.iter().any(|place| half(target, place)))
}

//! A run as a value: what is judged, by whom, how, how much it may take, and where it is kept. It
//! holds no key, two equal ones give equal runs, and it can be written down as JSON or TOML.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::RunError;
use super::select::Selection;
use crate::config::JudgeSpec;
use crate::dataset::{LoadOptions, Mapping, MatchBy};
use crate::prompt::Mode;
use crate::trace::OutcomeName;

/// Everything that a run is asked to do.
///
/// ```
/// use deeplook::run::RunSpec;
///
/// let spec: RunSpec = toml::from_str(
///     r#"
///     modes = ["tool", "plain"]
///     data = { path = "scenes" }
///     judge = { model = "gpt-5.1", params = { temperature = 0 } }
///     budget = { cost = 20.0 }
///     keep = { folder = "runs/gpt" }
///     "#,
/// )?;
/// assert_eq!(spec.repeats, 1);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunSpec {
    /// The ids of the criteria to judge by; none for all of the pack's.
    pub criteria: Vec<String>,
    /// What the judge gets to see.
    pub modes: BTreeSet<Mode>,
    /// How often everything is judged.
    pub repeats: u32,
    /// Go on although everything fails.
    pub keep_going: bool,
    /// What is judged.
    pub data: DataSpec,
    /// Which part of it.
    pub select: Selection,
    /// Who judges.
    pub judge: JudgeSpec,
    /// How fast.
    pub pace: Pace,
    /// How much may be spent.
    pub budget: Budget,
    /// What is judged again although it has an outcome.
    pub again: Again,
    /// Where it is kept.
    pub keep: Keep,
}

/// What is judged: a data set, or what was seen in another run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DataSpec {
    /// A file of cases, or the folder that holds one.
    pub path: Option<PathBuf>,
    /// A run whose observations are judged again: no tool is used, and only answers are asked for.
    /// Without a `path`, what it judged is judged again.
    pub from_traces: Option<PathBuf>,
    /// A folder of editors' outputs, or a pattern of their names, which replace what the file names.
    pub edits: Option<PathBuf>,
    /// By what those outputs are named; absent for either, where only one fits.
    pub match_by: Option<MatchBy>,
    /// What the file's fields mean, where their names do not say it.
    pub map: Mapping,
    /// Further folders that the file's paths may start from; absolute paths below them are allowed.
    pub roots: Vec<PathBuf>,
    /// The name of the preset that it is read by; absent to recognise it.
    pub preset: Option<String>,
    /// Judge what can be judged, where lines or pictures are broken.
    pub allow_partial: bool,
}

/// How fast a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// The most judgements at a time.
    pub concurrency: u32,
    /// The most requests in a minute.
    pub requests_per_minute: Option<f64>,
    /// The most tokens in a minute.
    pub tokens_per_minute: Option<f64>,
}

/// How much a run may spend, however often it is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// How often models may be asked.
    pub calls: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
}

/// What is judged again although it has an outcome. Old traces stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Again {
    /// What ended so.
    pub outcomes: BTreeSet<OutcomeName>,
    /// What is of cases or pictures that have changed since.
    pub changed: bool,
}

/// Where a run is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keep {
    /// The folder of the run; absent for one in `traces/runs`, named by data set and model.
    pub folder: Option<PathBuf>,
    /// What to do where that folder was judged with other settings.
    pub if_other_settings: IfOtherSettings,
    /// How many megabytes of replies are kept for later runs, in the user's cache; 0 to ask every
    /// time.
    pub replies_mb: u64,
}

/// What to do in the folder of a run that was judged with other settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfOtherSettings {
    /// Say what differs, and judge nothing.
    #[default]
    Refuse,
    /// Judge into another folder beside it.
    NewRun,
    /// Go on in it all the same; every trace tells its own settings.
    Mix,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            criteria: Vec::new(),
            modes: BTreeSet::from([Mode::Tool]),
            repeats: 1,
            keep_going: false,
            data: DataSpec::default(),
            select: Selection::default(),
            judge: JudgeSpec::default(),
            pace: Pace::default(),
            budget: Budget::default(),
            again: Again::default(),
            keep: Keep::default(),
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self { concurrency: 8, requests_per_minute: None, tokens_per_minute: None }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self { folder: None, if_other_settings: IfOtherSettings::Refuse, replies_mb: 1024 }
    }
}

impl RunSpec {
    /// A run over the data set at `path` with everything else as usual.
    pub fn of(path: impl Into<PathBuf>) -> Self {
        let data = DataSpec { path: Some(path.into()), ..DataSpec::default() };
        Self { data, ..Self::default() }
    }

    /// Says what cannot be, before anything is read.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let wrong = |field: &'static str, problem: &str| {
            Err(RunError::Spec { field, problem: problem.to_owned() })
        };
        let positive = |number: Option<f64>| number.is_none_or(|n| n.is_finite() && n > 0.0);
        if self.modes.is_empty() {
            return wrong("modes", "name at least one");
        }
        if !(1..=1000).contains(&self.repeats) {
            return wrong("repeats", "it must be from 1 to 1000");
        }
        if !(1..=4096).contains(&self.pace.concurrency) {
            return wrong("pace.concurrency", "it must be from 1 to 4096");
        }
        if !positive(self.pace.requests_per_minute) || !positive(self.pace.tokens_per_minute) {
            return wrong("pace", "requests and tokens per minute are numbers over 0");
        }
        if !positive(self.budget.cost) {
            return wrong("budget.cost", "it is a number over 0");
        }
        if self.again.outcomes.contains(&OutcomeName::Verdict) {
            return wrong("again.outcomes", "a verdict is not judged again; judge another run");
        }
        if self.data.path.is_none() && self.data.from_traces.is_none() {
            return wrong("data", "name a data set, or a run whose traces are judged again");
        }
        let JudgeSpec { per_target, max_turns, max_tool_calls, token_budget, tools, .. } =
            &self.judge;
        let bounds = *per_target
            || max_turns.is_some()
            || max_tool_calls.is_some()
            || token_budget.is_some()
            || *tools != Default::default();
        if self.data.from_traces.is_some() && bounds {
            return wrong(
                "data.from_traces",
                "bounds and tools are those of the traces; leave out yours",
            );
        }
        Ok(self.judge.check()?)
    }
}

impl DataSpec {
    /// How the data set is opened.
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            mapping: self.map.clone(),
            edits: self.edits.clone(),
            match_by: self.match_by,
            roots: self.roots.clone(),
            preset: self.preset.clone(),
            unpack: None,
        }
    }
}

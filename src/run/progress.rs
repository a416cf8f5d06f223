//! What a run tells while it works.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::ready::Ready;
use super::spec::RunSpec;
use crate::dataset::DataSet;
use crate::trace::{OutcomeName, ResultLine};

/// How far it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tally {
    /// How many judgements are to be made.
    pub total: usize,
    /// How many of them are made.
    pub done: usize,
    /// How they ended.
    pub outcomes: BTreeMap<OutcomeName, usize>,
    /// How many questions are with the server, and how many may be.
    pub asking: (usize, usize),
    /// What the run has paid so far in US dollars, where that is known.
    pub paid: Option<f64>,
    started: Instant,
}

/// What is known when everything is read and nothing is judged.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Beginning {
    /// The folder of the run; `None` where its traces go elsewhere.
    pub run: Option<PathBuf>,
    /// Who is asked, where and how; absent for the offline judge.
    pub asked: Option<String>,
    /// Whether it is the offline judge that decides.
    pub offline: bool,
    /// Whether the answers are made from the truth of the data set.
    pub simulated: bool,
    /// The run whose observations are judged again.
    pub from_traces: Option<PathBuf>,
    /// How many cases and edits there are.
    pub data: (usize, usize),
    /// What is worth knowing: what cannot be judged again, what was mended.
    pub notes: Vec<String>,
    /// The tools that cannot be had, with the reason.
    pub unavailable: BTreeMap<String, String>,
    /// How many judgements will be made.
    pub to_do: usize,
    /// How many the run has already.
    pub there: usize,
}

/// What a run tells while it works.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The data set is read; what is wrong with it is among its problems.
    Opened(&'a DataSet),
    /// Everything is read, and the first judgement comes next.
    Begins(&'a Beginning),
    /// A judgement is finished, and its line is on the disk.
    Judged(&'a ResultLine, &'a Tally),
    /// A moment has passed.
    Moment(&'a Tally),
    /// It was asked to stop, and will when what is under way is finished.
    Stopping,
}

impl Beginning {
    pub(super) fn of(ready: &Ready, spec: &RunSpec, ledger: &Ledger, to_do: usize) -> Self {
        let recorded = ready.recordings.iter().flat_map(|from| {
            from.notes.iter().map(|note| format!("{}: {note}", from.folder.display()))
        });
        Self {
            run: ready.folder.clone(),
            asked: ready.asked.clone(),
            offline: spec.judge.is_offline() && !spec.judge.is_simulated(),
            simulated: spec.judge.is_simulated(),
            from_traces: spec.data.from_traces.clone(),
            data: (ready.cases.len(), ready.cases.iter().map(|case| case.edits().len()).sum()),
            notes: recorded.chain(ledger.notes.iter().cloned()).collect(),
            unavailable: ready.unavailable.clone(),
            to_do,
            there: ledger.lines().len(),
        }
    }
}

impl Tally {
    pub(super) fn new(total: usize) -> Self {
        let (outcomes, started) = (BTreeMap::new(), Instant::now());
        Self { total, done: 0, outcomes, asking: (0, 0), paid: None, started }
    }

    pub(super) fn add(&mut self, line: &ResultLine) {
        self.done += 1;
        if let Some(outcome) = line.outcome {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
    }

    /// How many have this outcome.
    pub fn count(&self, outcome: OutcomeName) -> usize {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Judgements per second so far.
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.started.elapsed().as_secs_f64().max(0.001)
    }

    /// How long the rest will take at this rate.
    pub fn time_left(&self) -> Option<Duration> {
        let left = (self.total - self.done) as f64 / self.rate();
        Duration::try_from_secs_f64(left).ok().filter(|_| self.done > 0)
    }
}

//! What a run amounts to when it stops.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::ledger::Ledger;
use super::record::Planned;
use super::table::{Reason, reasons, table};
use crate::judge::Spent;
use crate::key::JudgementKey;
use crate::message::Usage;
use crate::stats::Coverage;
use crate::trace::{OutcomeName, ResultLine};

/// Why a run has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Every judgement has an outcome.
    Done,
    /// It was asked to stop.
    Interrupted,
    /// A limit is reached.
    Limit,
    /// Everything fails.
    Hopeless,
    /// Judgements crashed, and the others are done.
    Crashed,
}

/// What came out of all that was planned, whenever it was judged.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RunSummary {
    event: &'static str,
    /// The folder of the run; `None` where its traces went elsewhere.
    pub run: Option<PathBuf>,
    /// How many judgements were wanted.
    pub planned: usize,
    /// Those of them that have an outcome.
    pub done: usize,
    /// How they ended.
    pub outcomes: BTreeMap<OutcomeName, usize>,
    /// The part that has a verdict; absent where nothing was wanted.
    pub coverage: Option<f64>,
    /// Tokens.
    pub usage: Usage,
    /// What the replies cost when they were made, in US dollars; absent where it is not known.
    pub cost: Option<f64>,
    /// What this run has paid, also for what came to nothing.
    pub paid: Option<f64>,
    /// How often models were asked.
    pub calls: u64,
    /// How many replies were kept from before.
    pub cached: u64,
    /// Records of the data set that make no case and are in no number.
    pub unusable_records: usize,
    /// Why it has stopped.
    pub end: End,
    /// Why it is not finished, in words.
    pub reason: Option<String>,
    /// Why there are judgements without a verdict, the most frequent first.
    pub without_verdict: Vec<Reason>,
    /// What was wanted and has an outcome.
    #[serde(skip)]
    pub lines: BTreeMap<JudgementKey, ResultLine>,
    /// Means beside their coverage, for a person.
    #[serde(skip)]
    pub table: String,
}

/// Why a run has stopped, with the words for it.
pub(super) type Ending = (End, Option<String>);

impl RunSummary {
    pub(super) fn new(
        run: Option<PathBuf>,
        planned: &Planned,
        ledger: &Ledger,
        (end, reason): Ending,
        spent: Spent,
        unusable_records: usize,
    ) -> Self {
        let keys: Vec<JudgementKey> = planned.keys().collect();
        let line = |key: &JudgementKey| Some((key.clone(), ledger.lines().get(key)?.clone()));
        let lines: BTreeMap<JudgementKey, ResultLine> = keys.iter().filter_map(line).collect();
        let mut outcomes = BTreeMap::new();
        for outcome in lines.values().filter_map(ResultLine::outcome) {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        let answered = outcomes.get(&OutcomeName::Verdict).copied().unwrap_or(0);
        let cost: Option<f64> = lines.values().map(|line| line.cost).sum();
        Self {
            event: "summary",
            run,
            planned: keys.len(),
            done: outcomes.values().sum(),
            coverage: Coverage { answered, all: keys.len() }.fraction().ok(),
            usage: lines.values().fold(Usage::default(), |sum, line| sum.plus(line.usage)),
            cost,
            paid: cost.map(|_| spent.cost),
            calls: spent.calls,
            cached: lines.values().map(|line| u64::from(line.cached)).sum(),
            unusable_records,
            end,
            reason,
            without_verdict: reasons(lines.values()),
            table: table(keys.into_iter(), &lines),
            outcomes,
            lines,
        }
    }

    /// Whether every judgement that was wanted has an outcome.
    pub fn is_finished(&self) -> bool {
        self.done == self.planned && self.reason.is_none()
    }
}

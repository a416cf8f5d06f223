//! What is done in a run, what is left, and what it cost; read without disturbing who works in it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::ledger::{Ledger, bundle_names};
use super::lock::RunLock;
use super::record::RunRecord;
use super::table::{Reason, reasons, table};
use crate::key::JudgementKey;
use crate::message::Usage;
use crate::trace::{OutcomeName, RunFolder};

/// How far a run is.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    /// How many judgements were wanted, in this folder's shard if it is one.
    pub planned: usize,
    /// Those of them that have an outcome.
    pub done: usize,
    pub outcomes: BTreeMap<OutcomeName, usize>,
    /// Finished ones that the last command did not want.
    pub others: usize,
    /// Traces without a line: under way, interrupted, or replaced by a later one.
    pub other_traces: usize,
    /// Who is at work, if anybody.
    pub running: Option<String>,
    pub usage: Usage,
    /// What the replies cost when they were made, as far as it is known.
    pub cost: Option<f64>,
    /// What this run paid, also for what was judged again since.
    pub paid: Option<f64>,
    /// How many replies were kept from before.
    pub cached: u64,
    pub calls: u64,
    /// Why there are judgements without a verdict, the most frequent first.
    pub without_verdict: Vec<Reason>,
    /// What is wrong with the files of the run.
    pub notes: Vec<String>,
    /// Which part of a run this is.
    pub shard: Option<String>,
    #[serde(skip)]
    pub table: String,
    /// The first of those that are open.
    pub open: Vec<JudgementKey>,
}

/// How many open judgements are named.
const MOST_NAMED: usize = 5;

/// How far the run in `folder` is.
pub(crate) fn status(folder: &Path) -> anyhow::Result<Status> {
    let record = RunRecord::read(folder)?.with_context(|| {
        format!(
            "{} is not the folder of a run: it has no run.json; name the one that `deeplook eval` says",
            folder.display()
        )
    })?;
    let run = RunFolder::new(folder);
    let ledger = Ledger::look(&run)?;
    let lines = ledger.lines();
    let (mut planned, mut outcomes, mut open) = (0, BTreeMap::new(), Vec::new());
    for key in record.planned.keys() {
        planned += 1;
        match lines.get(&key).and_then(|line| line.outcome()) {
            Some(outcome) => *outcomes.entry(outcome).or_insert(0) += 1,
            None if open.len() < MOST_NAMED => open.push(key),
            None => {}
        }
    }
    let done = outcomes.values().sum();
    let all = || lines.values();
    let cost: Option<f64> = all().map(|line| line.cost).sum();
    Ok(Status {
        planned,
        done,
        outcomes,
        others: lines.len() - done,
        other_traces: bundle_names(&run)?.len().saturating_sub(lines.len()),
        running: RunLock::holder(folder),
        usage: all().fold(Usage::default(), |sum, line| sum.plus(line.usage)),
        cost,
        paid: cost.map(|_| ledger.spent().cost),
        cached: all().map(|line| u64::from(line.cached)).sum(),
        calls: ledger.spent().calls,
        without_verdict: reasons(all()),
        notes: ledger.notes.clone(),
        shard: record.planned.shard.map(|shard| shard.to_string()),
        table: table(record.planned.keys(), lines),
        open,
    })
}

//! Runs at the size of a benchmark: which judgements there are, which are made, and making the rest
//! so that nothing is lost and nothing is done twice.
//!
//! A run is a folder: `run.json` (what is judged and with which settings), `judgements/` and
//! `blobs/` (the traces), and `results.jsonl`, which is made of the traces and of nothing else. A
//! judgement is finished when its trace is; its line is found again where a kill came in between.

mod cases;
mod changes;
mod job;
mod ledger;
mod lock;
mod merge;
mod plan;
mod record;
mod recordings;
mod runner;
mod status;
mod table;

pub(crate) use self::changes::changed;
pub(crate) use self::job::{Job, JobKey, Selection, Shard};
pub(crate) use self::ledger::Ledger;
pub(crate) use self::lock::RunLock;
pub(crate) use self::merge::{Merged, merge};
pub(crate) use self::plan::{ASSUMPTIONS, Estimate, estimate};
pub(crate) use self::record::{Difference, Planned, RunRecord, differences, is_vacant};
pub(crate) use self::recordings::Recordings;
pub(crate) use self::runner::{End, Progress, Runner, Tally};
pub(crate) use self::status::{Status, status};
pub(crate) use self::table::{Reason, reasons, table};

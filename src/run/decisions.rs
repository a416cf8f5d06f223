//! What one judgement decides about another: a criterion that need not be asked, because another is worth
//! too little, waits for that one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::ledger::Ledger;
use super::ready::decider;
use super::runner::Judges;
use super::select::Job;
use crate::key::JudgementKey;

/// How a judgement that decides about others stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Decision {
    /// It is being made.
    Open,
    /// What it is worth; `None` without a verdict.
    Made(Option<f64>),
    /// It was stopped, and is made another time.
    Stopped,
}

/// The judgements that decide about others.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    known: Mutex<BTreeMap<JudgementKey, Decision>>,
    news: Notify,
}

impl Decisions {
    /// Those that `jobs` wait for: the ones that are there, and the ones among the jobs.
    pub(super) fn of(jobs: &[Job], judges: &Judges, ledger: &Ledger) -> Self {
        let awaited = jobs.iter().filter_map(|job| decider(judges, &job.key));
        let made: BTreeSet<&JudgementKey> = jobs.iter().map(|job| &job.key).collect();
        let mut known = BTreeMap::new();
        for key in awaited {
            if made.contains(&key) {
                known.insert(key, Decision::Open);
            } else if let Some(line) = ledger.lines().get(&key) {
                known.insert(key, Decision::Made(line.score));
            }
        }
        Self { known: Mutex::new(known), news: Notify::new() }
    }

    /// What a judgement is worth, when it is known; `None` without a verdict, and where nobody makes it.
    /// The error says that it was stopped.
    pub(super) async fn about(&self, key: &JudgementKey) -> Result<Option<f64>, ()> {
        loop {
            let news = self.news.notified();
            let known = self.known().get(key).copied();
            match known {
                Some(Decision::Open) => news.await,
                Some(Decision::Made(score)) => return Ok(score),
                Some(Decision::Stopped) => return Err(()),
                None => return Ok(None),
            }
        }
    }

    /// Somebody who makes a judgement; whoever waits for it hears of its end, however it ends.
    pub(super) fn maker<'a>(&'a self, key: &'a JudgementKey) -> Maker<'a> {
        Maker { of: self, key, decision: Decision::Made(None) }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<JudgementKey, Decision>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Decisions::maker`].
pub(super) struct Maker<'a> {
    of: &'a Decisions,
    key: &'a JudgementKey,
    decision: Decision,
}

impl Maker<'_> {
    pub(super) fn made(&mut self, score: Option<f64>) {
        self.decision = Decision::Made(score);
    }

    pub(super) fn stopped(&mut self) {
        self.decision = Decision::Stopped;
    }
}

impl Drop for Maker<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.of.known().get_mut(self.key) {
            *known = self.decision;
            self.of.news.notify_waiters();
        }
    }
}

//! What several judgements share: looks, kept replies, and how much may be spent.

use std::sync::{Mutex, PoisonError};

use super::looks::Looks;
use crate::model::KeptReplies;

/// What several judgements share. Judges of their own have one each; those of a run have one
/// together.
#[derive(Debug, Default)]
pub struct Shared {
    /// What tools saw.
    pub looks: Looks,
    /// What models said; `None` to ask every time.
    pub replies: Option<KeptReplies>,
    /// How much may be spent.
    pub allowance: Allowance,
}

/// How often models may be asked, and for how much money.
#[derive(Debug, Default)]
pub struct Allowance {
    calls: Option<u64>,
    cost: Option<f64>,
    spent: Mutex<Spent>,
}

/// What was spent: replies that were kept from before cost nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// How often models were asked; attempts that came to nothing are not counted.
    pub calls: u64,
    /// US dollars, as far as they are known.
    pub cost: f64,
    /// Whether the cost of a reply is not known.
    pub unknown: bool,
}

impl Allowance {
    /// At most so many calls and so many US dollars, of which `spent` is gone already.
    pub fn new(calls: Option<u64>, cost: Option<f64>, spent: Spent) -> Self {
        Self { calls, cost, spent: Mutex::new(spent) }
    }

    /// What is spent so far.
    pub fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one call; the error says which limit is reached.
    pub(super) fn take_call(&self) -> Result<(), String> {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        self.reached_by(*spent).map_or(Ok(()), Err)?;
        spent.calls += 1;
        Ok(())
    }

    pub(super) fn charge(&self, cost: Option<f64>) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.cost += cost.unwrap_or(0.0);
        spent.unknown |= cost.is_none();
    }

    /// The limit that is reached, in words.
    pub fn reached(&self) -> Option<String> {
        self.reached_by(self.spent())
    }

    fn reached_by(&self, spent: Spent) -> Option<String> {
        if let Some(most) = self.calls.filter(|most| spent.calls >= *most) {
            return Some(format!("{} of {most} model calls are used", spent.calls));
        }
        if self.cost.is_some() && spent.unknown {
            let why = "the server does not count tokens, so that the cost cannot be kept within its limit";
            return Some(format!("{why}; limit the calls instead"));
        }
        let most = self.cost.filter(|most| spent.cost >= *most)?;
        Some(format!("${:.4} of ${most} are spent", spent.cost))
    }
}

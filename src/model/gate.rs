//! How many requests a server gets at a time, and how many in a minute.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// What a success gives back and a refusal takes away, in requests at a time. So the number falls
/// while more than one request in eleven is refused as too many, and grows otherwise.
const GROWTH: f64 = 0.1;
const SHRINKAGE: f64 = 1.0;

/// Tokens of a request before any was counted.
const FIRST_GUESS: f64 = 2000.0;

/// No request has more; a server that counts more is mistaken.
const MOST_TOKENS: u64 = 10_000_000;

/// The bounds of a [`Gate`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateLimits {
    /// The most requests at a time.
    pub concurrency: usize,
    /// The most requests that are sent in a minute.
    pub requests_per_minute: Option<f64>,
    /// The most tokens, as the server counts them.
    pub tokens_per_minute: Option<f64>,
}

/// The way to one server: all that ask it pass here.
///
/// The number of requests at a time starts with the most that is allowed. "Too many requests" (429)
/// makes it smaller, an answer larger; any other failure says nothing about it.
pub struct Gate {
    limits: GateLimits,
    state: Mutex<State>,
    room: Notify,
    closed: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    /// How many may be inside.
    allowed: f64,
    inside: usize,
    /// Before the gate.
    queued: usize,
    /// With a question under way: inside, before the gate, or resting after a failure.
    asking: usize,
    /// Before this, the minute has no room for a request.
    next_request: Instant,
    next_tokens: Instant,
    usual_tokens: f64,
}

impl Gate {
    /// A gate with these limits.
    pub fn new(limits: GateLimits) -> Self {
        let now = Instant::now();
        let state = State {
            allowed: limits.concurrency.max(1) as f64,
            inside: 0,
            queued: 0,
            asking: 0,
            next_request: now,
            next_tokens: now,
            usual_tokens: FIRST_GUESS,
        };
        let closed = watch::Sender::new(false);
        Self { limits, state: Mutex::new(state), room: Notify::new(), closed }
    }

    /// From now on, questions that are not with the server for a while are given back.
    pub fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Returns when the gate is closed and a question has been on this side of it for long.
    pub(super) async fn given_back(&self, with_server: &AtomicBool) {
        const PATIENCE: u32 = 50;
        // It only ends without the value when the gate is gone, and it is not.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
        let mut waited = 0;
        while waited < PATIENCE {
            sleep(Duration::from_millis(100)).await;
            waited = if with_server.load(Ordering::Relaxed) { 0 } else { waited + 1 };
        }
    }

    /// How many requests may be under way at a time now.
    pub fn allowed(&self) -> usize {
        self.lock().allowed as usize
    }

    /// How many requests are with the server now.
    pub fn inside(&self) -> usize {
        self.lock().inside
    }

    /// How many questions wait for another attempt, and so keep nobody from asking.
    pub fn resting(&self) -> usize {
        let state = self.lock();
        state.asking.saturating_sub(state.inside + state.queued)
    }

    /// Notes a question with all its attempts, until the note is dropped.
    pub(super) fn asking(&self) -> Asking<'_> {
        self.lock().asking += 1;
        Asking(self)
    }

    /// Waits until a request may be sent.
    pub(super) async fn enter(&self) -> Pass<'_> {
        let _queued = Queued::new(self);
        loop {
            let room = self.room.notified();
            let until = match self.try_enter() {
                Entry::Open => return Pass(self),
                Entry::Later(until) => until,
                Entry::Full => {
                    room.await;
                    continue;
                }
            };
            sleep_until(until).await;
        }
    }

    fn try_enter(&self) -> Entry {
        let mut state = self.lock();
        if state.inside >= state.allowed as usize {
            return Entry::Full;
        }
        let now = Instant::now();
        let GateLimits { requests_per_minute, tokens_per_minute, .. } = self.limits;
        let next = [
            requests_per_minute.map(|_| state.next_request),
            tokens_per_minute.map(|_| state.next_tokens),
        ];
        if let Some(until) = next.into_iter().flatten().max().filter(|until| *until > now) {
            return Entry::Later(until);
        }
        if let Some(rate) = requests_per_minute {
            state.next_request = now.max(state.next_request) + share(1.0, rate);
        }
        if let Some(rate) = tokens_per_minute {
            state.next_tokens = now.max(state.next_tokens) + share(state.usual_tokens, rate);
        }
        state.inside += 1;
        Entry::Open
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Entry {
    Open,
    Full,
    Later(Instant),
}

/// How much of a minute `amount` takes; never so much that adding it could overflow.
fn share(amount: f64, per_minute: f64) -> Duration {
    Duration::from_secs_f64((60.0 * amount / per_minute.max(1e-3)).clamp(0.0, 1e6))
}

impl Default for Gate {
    /// Everybody may pass.
    fn default() -> Self {
        let concurrency = u32::MAX as usize;
        Self::new(GateLimits { concurrency, requests_per_minute: None, tokens_per_minute: None })
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A question under way.
pub(super) struct Asking<'a>(&'a Gate);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.lock().asking -= 1;
    }
}

struct Queued<'a>(&'a Gate);

impl<'a> Queued<'a> {
    fn new(gate: &'a Gate) -> Self {
        gate.lock().queued += 1;
        Self(gate)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.lock().queued -= 1;
    }
}

/// The right to have one request under way.
pub(super) struct Pass<'a>(&'a Gate);

impl Pass<'_> {
    /// The server has answered.
    pub(super) fn served(self, tokens: Option<u64>) {
        let mut state = self.0.lock();
        let before = state.allowed as usize;
        state.allowed = (state.allowed + GROWTH).min(self.0.limits.concurrency.max(1) as f64);
        if state.allowed as usize > before {
            self.0.room.notify_one();
        }
        if let (Some(tokens), Some(rate)) = (tokens, self.0.limits.tokens_per_minute) {
            let tokens = tokens.min(MOST_TOKENS) as f64;
            // What was too little for it is made up for; what was too much is a reserve.
            let more = share(tokens - state.usual_tokens, rate);
            state.next_tokens += more;
            state.usual_tokens = 0.9 * state.usual_tokens + 0.1 * tokens;
        }
    }

    /// The server said that these are too many requests.
    pub(super) fn refused(self) {
        let mut state = self.0.lock();
        state.allowed = (state.allowed - SHRINKAGE).max(1.0);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.lock().inside -= 1;
        self.0.room.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn gate(concurrency: usize, requests: Option<f64>, tokens: Option<f64>) -> Gate {
        Gate::new(GateLimits {
            concurrency,
            requests_per_minute: requests,
            tokens_per_minute: tokens,
        })
    }

    #[tokio::test]
    async fn refusals_shrink_answers_grow_and_failures_hold() {
        let gate = gate(8, None, None);
        for _ in 0..3 {
            gate.enter().await.refused();
        }
        assert_eq!(gate.allowed(), 5);
        drop(gate.enter().await);
        assert_eq!(gate.allowed(), 5, "another failure says nothing");
        for _ in 0..21 {
            gate.enter().await.served(None);
        }
        assert_eq!(gate.allowed(), 7);
        for _ in 0..100 {
            gate.enter().await.served(None);
        }
        assert_eq!(gate.allowed(), 8, "never more than was asked for");
        for _ in 0..100 {
            gate.enter().await.refused();
        }
        assert_eq!((gate.allowed(), gate.inside()), (1, 0), "never none at all");
    }

    #[tokio::test]
    async fn no_more_than_allowed_are_inside_and_all_come_through() {
        let gate = Arc::new(gate(3, None, None));
        let most = Arc::new(Mutex::new(0));
        let tasks: Vec<_> = (0..40)
            .map(|_| {
                let (gate, most) = (Arc::clone(&gate), Arc::clone(&most));
                tokio::spawn(async move {
                    let pass = gate.enter().await;
                    {
                        let mut most = most.lock().unwrap();
                        *most = gate.inside().max(*most);
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    pass.served(None);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*most.lock().unwrap(), 3);
    }

    #[tokio::test]
    async fn minutes_are_shared_out() {
        let (requests, tokens) = (gate(9, Some(3000.0), None), gate(9, None, Some(1_200_000.0)));
        let started = Instant::now();
        for _ in 0..6 {
            requests.enter().await.served(None);
        }
        assert!(started.elapsed() >= Duration::from_millis(100), "20 ms each, but for the first");
        let started = Instant::now();
        for _ in 0..2 {
            tokens.enter().await.served(Some(4000));
        }
        assert!(started.elapsed() >= Duration::from_millis(200), "4,000 tokens are 200 ms");
    }
}

//! When to ask again, and after how long.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::problem::{CHECK_SERVER, Problem, Remedy};
use super::{FailedAttempt, ModelError};

/// How often and how patiently a model is asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts altogether, at least 1.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one. Up to half of it is taken
    /// off at random, so that many judgements do not come back at once.
    pub base_delay: Duration,
    /// The longest wait. A server that asks for more is not obeyed but given up.
    pub max_delay: Duration,
    /// For waits that repeat; `None` for real randomness.
    pub seed: Option<u64>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 6,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            seed: None,
        }
    }
}

/// Attempts altogether where each costs a whole reply or the whole timeout.
const COSTLY_ATTEMPTS: u32 = 3;

/// Attempts altogether where nobody was ever there.
const KNOCKS: u32 = 3;

impl RetryPolicy {
    /// Makes attempts until one succeeds or there is no use in another. `report` is called after
    /// every failed one, before the wait.
    pub(super) async fn run<T, F>(
        &self,
        report: impl Fn(FailedAttempt),
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, ModelError>
    where
        F: Future<Output = Result<T, Problem>>,
    {
        let mut jitter = Jitter::new(self.seed);
        let mut costly = 0;
        let mut number = 0;
        loop {
            number += 1;
            let problem = match attempt().await {
                Ok(answer) => return Ok(answer),
                Err(problem) => problem,
            };
            costly += u32::from(matches!(problem.remedy, Remedy::Reask(_)));
            let wait = self.wait(number, costly, &problem, &mut jitter);
            report(FailedAttempt {
                attempt: number,
                status: problem.status,
                error: problem.text,
                retry_after_ms: wait.as_ref().ok().map(|wait| millis(*wait)),
            });
            tokio::time::sleep(wait?).await;
        }
    }

    /// How long to wait before the next attempt, or why there is none.
    fn wait(
        &self,
        number: u32,
        costly: u32,
        problem: &Problem,
        jitter: &mut Jitter,
    ) -> Result<Duration, ModelError> {
        let text = &problem.text;
        let times = if number == 1 { "once".to_owned() } else { format!("{number} times") };
        let own = self.base_delay.saturating_mul(1 << (number - 1).min(20)).min(self.max_delay);
        let own = own.mul_f64(1.0 - 0.5 * jitter.next());
        match &problem.remedy {
            Remedy::GiveUp(error) => Err(error.clone()),
            Remedy::Knock { was_there }
                if number >= if *was_there { u32::MAX } else { KNOCKS }.min(self.max_attempts) =>
            {
                Err(ModelError::Unreachable(format!("{text} (asked {times}); {CHECK_SERVER}")))
            }
            Remedy::Knock { was_there: true } => Ok(own),
            Remedy::Knock { was_there: false } => Ok(own.min(Duration::from_millis(500))),
            Remedy::Reask(advice) if number >= self.max_attempts || costly >= COSTLY_ATTEMPTS => {
                Err(ModelError::Server(format!("{text} (asked {times}); {advice}")))
            }
            Remedy::Wait(Some(asked)) if *asked > self.max_delay => {
                let (asked, most) = (asked.as_secs_f64().round(), self.max_delay.as_secs_f64());
                Err(ModelError::Server(format!(
                    "{text}; the server asks to wait {asked} s and we wait at most {most} s: try again later"
                )))
            }
            Remedy::Wait(_) if number >= self.max_attempts => {
                let advice = match problem.status {
                    Some(_) => "try again later",
                    None => CHECK_SERVER,
                };
                Err(ModelError::Server(format!("{text} (asked {times}); {advice}")))
            }
            // Never earlier than asked, but not all at the same moment. "At once" is not believed:
            // the next attempt would fail like this one.
            Remedy::Wait(Some(asked)) if *asked >= self.base_delay => {
                Ok(*asked + own.min(*asked / 4))
            }
            Remedy::Wait(Some(asked)) => Ok(own.max(*asked)),
            Remedy::Wait(None) | Remedy::Reask(_) => Ok(own),
        }
    }
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Random numbers that are good enough for waits (SplitMix64).
struct Jitter(u64);

impl Jitter {
    fn new(seed: Option<u64>) -> Self {
        Self(seed.unwrap_or_else(|| RandomState::new().hash_one(0)))
    }

    /// From 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: &RetryPolicy, remedy: Remedy, attempts: u32) -> Vec<Result<u64, String>> {
        let problem = Problem { status: Some(503), text: "busy".to_owned(), remedy };
        let mut jitter = Jitter::new(policy.seed);
        (1..=attempts)
            .map(|number| {
                let costly = if matches!(problem.remedy, Remedy::Reask(_)) { number } else { 0 };
                let wait = policy.wait(number, costly, &problem, &mut jitter);
                wait.map(millis).map_err(|error| error.to_string())
            })
            .collect()
    }

    #[test]
    fn waits_grow_with_jitter_and_repeat_with_a_seed() {
        let policy = RetryPolicy { max_attempts: 9, seed: Some(7), ..RetryPolicy::default() };
        let seen = waits(&policy, Remedy::Wait(None), 9);
        for (n, wait) in seen.iter().take(8).enumerate() {
            let full = (1000 << n).min(60_000);
            assert!((full / 2..=full).contains(wait.as_ref().unwrap()), "{seen:?}");
        }
        assert_eq!(seen[8], Err("busy (asked 9 times); try again later".to_owned()));
        assert_eq!(seen, waits(&policy, Remedy::Wait(None), 9));
        assert_ne!(seen, waits(&RetryPolicy { seed: Some(8), ..policy }, Remedy::Wait(None), 9));
    }

    #[test]
    fn the_server_is_obeyed_within_reason() {
        let policy = RetryPolicy::default();
        let wait = waits(&policy, Remedy::Wait(Some(Duration::from_secs(8))), 1);
        assert!((8000..=10_000).contains(wait[0].as_ref().unwrap()), "{wait:?}");
        let wait = waits(&policy, Remedy::Wait(Some(Duration::ZERO)), 3);
        assert!((2000..=4000).contains(wait[2].as_ref().unwrap()), "{wait:?}");
        let wait = waits(&policy, Remedy::Wait(Some(Duration::from_secs(3600))), 1);
        assert!(wait[0].as_ref().unwrap_err().contains("3600 s"), "{wait:?}");
    }

    #[test]
    fn costly_attempts_are_few() {
        let seen = waits(&RetryPolicy::default(), Remedy::Reask("do so".to_owned()), 3);
        assert!(seen[0].is_ok() && seen[1].is_ok());
        assert_eq!(seen[2], Err("busy (asked 3 times); do so".to_owned()));
    }
}

//! Memory that is shared by all that work at the same time.

use std::sync::{Condvar, Mutex, PoisonError};

/// What all pictures that are being decoded may take together, in bytes.
pub(crate) static DECODING: Budget = Budget::new(3 << 29);

/// So many bytes, lent out.
#[derive(Debug)]
pub(crate) struct Budget {
    most: u64,
    lent: Mutex<u64>,
    returned: Condvar,
    /// Held by the one that waits: nobody else is served before it, or a large one would never be.
    turn: Mutex<()>,
}

impl Budget {
    pub(crate) const fn new(most: u64) -> Self {
        let (lent, returned, turn) = (Mutex::new(0), Condvar::new(), Mutex::new(()));
        Self { most, lent, returned, turn }
    }

    /// Waits until there are so many bytes; whoever wants more than all waits until nobody has any.
    /// Do not ask for more while you have some.
    pub(crate) fn take(&self, bytes: u64) -> Share<'_> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |lent: &mut u64| *lent > 0 && lent.saturating_add(bytes) > self.most;
        let lent = self.returned.wait_while(lent, full);
        *lent.unwrap_or_else(PoisonError::into_inner) += bytes;
        Share { budget: self, bytes }
    }
}

/// Bytes that were lent; they come back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.budget.lent.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn never_more_than_there_is_and_everybody_is_served() {
        let budget = Budget::new(100);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for bytes in [30, 40, 50, 60, 70, 500, 10, 20] {
                let (budget, now, most) = (&budget, &now, &most);
                scope.spawn(move || {
                    let _share = budget.take(bytes);
                    let sum = now.fetch_add(bytes, Ordering::SeqCst) + bytes;
                    // One that is larger than all is alone.
                    most.fetch_max(if sum == 500 { 0 } else { sum }, Ordering::SeqCst);
                    thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(bytes, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 100);
        assert_eq!(*budget.lent.lock().unwrap(), 0);
    }
}

//! Things of one kind that are costly to make and serve one at a time: a few are kept and lent out.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is kept.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    returned: Condvar,
}

#[derive(Debug)]
struct State<T> {
    idle: Vec<T>,
    made: usize,
    most: usize,
}

impl<T> Pool<T> {
    /// Begins with one and never has more than `most`.
    pub(crate) fn new(first: T, most: usize) -> Self {
        let state = State { idle: vec![first], made: 1, most };
        Self { state: Mutex::new(state), returned: Condvar::new() }
    }

    /// How many there are by now.
    pub(crate) fn made(&self) -> usize {
        self.state().made
    }

    /// Does `work` with an idle one, else with another that `make` gives, else with the next that comes
    /// back. After a `make` that gave none there will be no more: those that are there serve all.
    pub(crate) fn with<R>(
        &self,
        make: impl FnOnce() -> Option<T>,
        work: impl FnOnce(&mut T) -> R,
    ) -> R {
        let mut lent = Lent { pool: self, item: None };
        work(lent.item.insert(self.take(make)))
    }

    fn take(&self, make: impl FnOnce() -> Option<T>) -> T {
        let mut state = self.state();
        if state.idle.is_empty() && state.made < state.most {
            state.made += 1;
            drop(state);
            // Others go on meanwhile.
            if let Some(item) = make() {
                return item;
            }
            state = self.state();
            state.made -= 1;
            state.most = state.made;
        }
        loop {
            if let Some(item) = state.idle.pop() {
                return item;
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Brings one back, even when the work panics: nobody waits for it in vain.
struct Lent<'a, T> {
    pool: &'a Pool<T>,
    item: Option<T>,
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        self.pool.state().idle.extend(self.item.take());
        self.pool.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Long enough for any machine: only a test that fails waits for it.
    const LONG: Duration = Duration::from_secs(30);

    /// Two borrowers, each of which waits until the other one has one too. True where both did.
    fn two_at_a_time(pool: &Pool<u32>, make: fn() -> Option<u32>, wait: Duration) -> bool {
        thread::scope(|scope| {
            let (to_first, first) = mpsc::channel();
            let (to_second, second) = mpsc::channel();
            let meet = move |tell: mpsc::Sender<()>, hear: mpsc::Receiver<()>| {
                pool.with(make, |_| {
                    let _ = tell.send(());
                    hear.recv_timeout(wait).is_ok()
                })
            };
            let one = scope.spawn(move || meet(to_second, first));
            let other = scope.spawn(move || meet(to_first, second));
            one.join().unwrap() & other.join().unwrap()
        })
    }

    #[test]
    fn two_work_at_the_same_time_and_no_more_are_made_than_needed() {
        let pool = Pool::new(1, 8);
        pool.with(|| panic!("one is idle"), |item| assert_eq!(*item, 1));
        pool.with(|| panic!("one is idle"), |item| assert_eq!(*item, 1));
        assert_eq!(pool.made(), 1);
        assert!(two_at_a_time(&pool, || Some(2), LONG));
        assert!(two_at_a_time(&pool, || panic!("two are idle"), LONG));
        assert_eq!(pool.made(), 2);
    }

    #[test]
    fn where_no_more_can_be_made_the_others_wait() {
        let pool = Pool::new(1, 8);
        assert!(!two_at_a_time(&pool, || None, Duration::from_millis(50)));
        assert_eq!(pool.made(), 1);
        let full = Pool::new(1, 1);
        let made = || panic!("one is the most");
        assert!(!two_at_a_time(&full, made, Duration::from_millis(50)));
    }

    #[test]
    fn what_was_lent_comes_back_after_a_panic() {
        let pool = Pool::new(1, 1);
        let broken = catch_unwind(AssertUnwindSafe(|| pool.with(|| None, |_| panic!("broken"))));
        assert!(broken.is_err());
        pool.with(|| None, |item| assert_eq!(*item, 1));
    }
}

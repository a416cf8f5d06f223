//! A wish that a run stops.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Asks runs to stop; clones are the same wish. Asked once, a run finishes what is under way and asks
/// nobody anew. Asked twice, it stops at once, and what was under way is judged again next time.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Semaphore>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Stop {
    /// Asks; from any thread.
    pub fn ask(&self) {
        self.0.add_permits(1);
    }

    /// Whether somebody asked and no run has heard it.
    pub fn is_asked(&self) -> bool {
        self.0.available_permits() > 0
    }

    /// Waits until it is asked, and hears it.
    pub(super) async fn heard(&self) {
        match self.0.acquire().await {
            Ok(asked) => asked.forget(),
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}

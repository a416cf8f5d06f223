//! The cores of this machine: as many judgements work at a time as there are, and whoever asked is told
//! when one of them does.

use std::sync::Arc;
use std::thread;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Is told that a judgement begins to work on this machine, and that it stops: not while it waits.
pub(crate) type Watch = Arc<dyn Fn(bool) + Send + Sync>;

tokio::task_local! {
    static WATCH: Watch;
}

/// Does `work`, and tells `watch` whenever a core is kept busy by it.
pub(crate) async fn watched<T>(watch: Watch, work: impl Future<Output = T>) -> T {
    WATCH.scope(watch, work).await
}

#[derive(Debug)]
pub(super) struct Cores(Semaphore);

impl Default for Cores {
    fn default() -> Self {
        Self(Semaphore::new(thread::available_parallelism().map_or(2, usize::from)))
    }
}

impl Cores {
    pub(super) async fn one(&self) -> Core<'_> {
        // Never closed, so that it is never without.
        let _permit = self.0.acquire().await.ok();
        let watch = WATCH.try_with(Arc::clone).ok();
        if let Some(watch) = &watch {
            watch(true);
        }
        Core { _permit, watch }
    }
}

/// A core that is kept busy; it is given back with this.
pub struct Core<'a> {
    _permit: Option<SemaphorePermit<'a>>,
    watch: Option<Watch>,
}

impl Drop for Core<'_> {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch(false);
        }
    }
}

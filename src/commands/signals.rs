//! Ctrl-C, and the system's wish that we end.

use std::sync::OnceLock;
use std::thread;

use crate::run::Stop;

/// What Ctrl-C asks to stop, from now on. It listens all the time, so that none is missed, also
/// between two runs.
pub(super) fn stop() -> Stop {
    static STOP: OnceLock<Stop> = OnceLock::new();
    let listen = || {
        let stop = Stop::default();
        let heard = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        // Where nobody can be listened to, the system ends us in its own way.
        if let Ok(runtime) = runtime {
            thread::spawn(move || runtime.block_on(forward(&heard)));
        }
        stop
    };
    STOP.get_or_init(listen).clone()
}

#[cfg(unix)]
async fn forward(stop: &Stop) {
    use tokio::signal::unix::{SignalKind, signal};
    let one = |kind| signal(kind).ok();
    let streams = one(SignalKind::interrupt()).zip(one(SignalKind::terminate()));
    let Some((mut interrupt, mut terminate)) = streams else { return };
    loop {
        let more = tokio::select! {
            more = interrupt.recv() => more,
            more = terminate.recv() => more,
        };
        if more.is_none() {
            return;
        }
        stop.ask();
    }
}

#[cfg(not(unix))]
async fn forward(stop: &Stop) {
    while tokio::signal::ctrl_c().await.is_ok() {
        stop.ask();
    }
}

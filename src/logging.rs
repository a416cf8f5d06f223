//! Logs: spans for judgements, model calls and tool calls. Nobody is told anything unless asked for.

use std::fs::File;
use std::path::Path;
use std::sync::Mutex;

use anyhow::Context as _;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use crate::{files, terminal};

/// Starts the log that `RUST_LOG` asks for on stderr, and the one in `file`.
pub(crate) fn start(file: Option<&Path>) -> anyhow::Result<()> {
    let wanted = std::env::var("RUST_LOG").ok().filter(|wanted| !wanted.is_empty());
    let filter = |wanted: &str| {
        EnvFilter::try_new(wanted).with_context(|| {
            format!("RUST_LOG={wanted:?} is no filter; write e.g. RUST_LOG=deeplook=debug")
        })
    };
    let on_stderr = match &wanted {
        Some(wanted) => {
            // Servers' words are in it: it goes the way of all texts, which takes no other colours.
            let layer = fmt::layer().with_ansi(false).with_writer(terminal::stderr);
            Some(layer.with_filter(filter(wanted)?))
        }
        None => None,
    };
    let in_file = match file {
        Some(path) => {
            let cannot = || format!("cannot write the log {}", path.display());
            if let Some(folder) = path.parent() {
                files::create_folder(folder).with_context(cannot)?;
            }
            let file = File::options().append(true).create(true).open(path).with_context(cannot)?;
            let layer =
                fmt::layer().json().with_span_events(FmtSpan::CLOSE).with_writer(Mutex::new(file));
            Some(layer.with_filter(filter(wanted.as_deref().unwrap_or("deeplook=info"))?))
        }
        None => None,
    };
    if on_stderr.is_some() || in_file.is_some() {
        // A second start in one process changes nothing.
        let _ = tracing_subscriber::registry().with(on_stderr).with(in_file).try_init();
    }
    Ok(())
}

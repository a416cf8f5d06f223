//! Replay: a saved trace goes through today's loop once more, and every step is compared with the
//! record.
//!
//! The replies are the recorded ones; prompts and settings are those of the trace; the loop, the
//! preparation of pictures and the tools are today's. So a replay finds both what was changed in the
//! trace and what has changed in deeplook.

mod compare;
mod evidence;
mod fork;
mod look;
mod rebuild;
mod report;
mod results;
mod walk;

use std::path::Path;

use deeplook_tools::Toolbox;

use self::evidence::Evidence;
pub use self::fork::{Fork, Recaller};
use self::rebuild::Packs;
pub(crate) use self::rebuild::impossible_setting;
pub use self::report::{Divergence, PixelDifference, Replayed};
use self::results::Results;
pub use self::results::missing_traces;
use self::walk::Walk;
use crate::trace::{Bundle, ToolsRecord, TraceError};

/// Where the looks of a replay come from.
#[derive(Clone, Copy)]
pub enum Tools<'a> {
    /// From the record. No picture is decoded: this is for many traces, and for machines without
    /// the networks.
    Recorded,
    /// From today's tools, on the stored pictures. Given what the record says of its tools, the
    /// function makes the toolbox that comes nearest to it.
    Live(&'a (dyn Fn(&ToolsRecord) -> Toolbox + Sync)),
}

impl std::fmt::Debug for Tools<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Recorded => "recorded",
            Self::Live(_) => "live",
        })
    }
}

/// Replays traces; what several of them share is read once. Use it from as many threads as you like.
#[derive(Debug)]
pub struct Replayer<'a> {
    tools: Tools<'a>,
    evidence: Evidence,
    packs: Packs,
    results: Results,
}

impl<'a> Replayer<'a> {
    /// A replayer whose looks come from `tools`.
    pub fn new(tools: Tools<'a>) -> Self {
        Self {
            tools,
            evidence: Evidence::default(),
            packs: Packs::default(),
            results: Results::default(),
        }
    }

    /// Replays the bundle in `folder`. An error means that it cannot be read at all.
    pub fn replay(&self, folder: &Path) -> Result<Replayed, TraceError> {
        let bundle = Bundle::read(folder)?;
        rebuild::check_settings(&bundle)?;
        let store = self.evidence.store(bundle.blobs().folder());
        let mut walk = Walk::new(&bundle, &store);
        walk.check_files();
        walk.check_results(&self.results);
        walk.follow(self.tools, &self.packs);
        Ok(walk.into_report())
    }
}

//! Runs at the size of a benchmark: which judgements there are, which are made, and making the rest
//! so that nothing is lost and nothing is done twice.
//!
//! A run is a folder: `run.json` (what is judged and with which settings), `judgements/` and
//! `blobs/` (the traces), and `results.jsonl`, which is made of the traces and of nothing else. A
//! judgement is finished when its trace is; its line is found again where a kill came in between.
//!
//! A [`RunSpec`] says what to do, and a [`Run`] does it:
//!
//! ```
//! use deeplook::run::{Progress, Run, RunSpec};
//! # let folder = tempfile::tempdir()?;
//! # let scenes = folder.path().join("scenes");
//! # deeplook::dataset::draw::make(&scenes, 1, 7, &|| ())?;
//!
//! let mut spec = RunSpec::of(&scenes);
//! spec.keep.folder = Some(folder.path().join("run"));
//! spec.budget.calls = Some(1000);
//! # spec.select.editors = vec!["no-op".to_owned()];
//! # spec.modes = [deeplook::Mode::Plain].into();
//! let run = Run::new(spec).progress(|progress| match progress {
//!     Progress::Judged(line, tally) => println!("{}/{}: {:?}", tally.done, tally.total, line.label),
//!     _ => {}
//! });
//! let summary = run.run()?;
//! println!("{} of {} have an outcome", summary.done, summary.planned);
//! # assert_eq!(summary.done, summary.planned);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same specification again goes on where the run was stopped, however it was stopped.

mod cases;
mod changes;
mod death;
mod decisions;
mod error;
mod folder;
mod forecast;
mod ledger;
mod lock;
mod merge;
mod progress;
mod ready;
mod record;
mod recordings;
mod runner;
mod select;
mod spec;
mod status;
mod stop;
mod summary;
mod table;
mod under_way;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use deeplook_tools::Toolbox;

pub use self::error::RunError;
use self::folder::OpenRun;
pub use self::forecast::{ASSUMPTIONS, Estimate, Forecast, Total};
pub(crate) use self::ledger::Ledger;
pub(crate) use self::lock::RunLock;
pub(crate) use self::merge::{Merged, merge};
pub use self::progress::{Beginning, Progress, Tally};
use self::ready::Ready;
pub(crate) use self::ready::chosen;
pub use self::record::Difference;
pub(crate) use self::record::{RunRecord, differences};
pub(crate) use self::recordings::Recordings;
use self::runner::{Judges, Runner};
pub use self::select::{Selection, Shard};
pub use self::spec::{Again, Budget, DataSpec, IfOtherSettings, Keep, Pace, RunSpec};
pub(crate) use self::status::{Status, status};
pub use self::stop::Stop;
pub use self::summary::{End, RunSummary};
pub use self::table::Reason;
use self::under_way::UnderWay;
pub use crate::config::{Access, JudgeSpec, SetupError};
pub use crate::equipment::ToolOptions;
pub use crate::key::JudgementKey;

use crate::judge::{Allowance, Judge, Shared};
use crate::model::{AnyModel, KeptReplies};
use crate::prompt::Mode;
use crate::trace::{Memory, RunFolder, Sink};
use crate::weights;

/// A run that is about to be made.
pub struct Run<'a> {
    spec: RunSpec,
    access: Access,
    toolbox: Option<Arc<Toolbox>>,
    sink: Option<Arc<dyn Sink>>,
    stop: Stop,
    tell: Box<dyn FnMut(Progress<'_>) + 'a>,
}

impl<'a> Run<'a> {
    /// The run of a specification; nothing happens yet.
    pub fn new(spec: RunSpec) -> Self {
        Self {
            spec,
            access: Access::default(),
            toolbox: None,
            sink: None,
            stop: Stop::default(),
            tell: Box::new(|_| ()),
        }
    }

    /// With what opens the server, where the environment does not say it.
    pub fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// With these tools in place of those that the specification names, in all modes that have
    /// tools.
    pub fn toolbox(self, toolbox: impl Into<Arc<Toolbox>>) -> Self {
        Self { toolbox: Some(toolbox.into()), ..self }
    }

    /// With another place for the traces than the folder of the specification, such as
    /// [`Memory`]. Nothing is gone on with then, and the lines are in the
    /// [`RunSummary`] alone.
    pub fn sink(self, sink: impl Sink + 'static) -> Self {
        Self { sink: Some(Arc::new(sink)), ..self }
    }

    /// With somebody who may ask it to stop.
    pub fn stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// With somebody who is told how it goes, on the thread that runs it: about ten times a second,
    /// and of every judgement when its line is on the disk. It must not block.
    pub fn progress(self, tell: impl FnMut(Progress<'_>) + 'a) -> Self {
        Self { tell: Box::new(tell), ..self }
    }

    /// Where it would be kept, if it could be begun; nobody is asked, and nothing is written. `None`
    /// where its traces go elsewhere.
    pub fn check(mut self) -> Result<Option<PathBuf>, RunError> {
        Ok(Ready::new(&mut self, true)?.folder)
    }

    /// What is to be judged, and for how much; nobody is asked, and nothing is written.
    pub fn forecast(mut self) -> Result<Forecast, RunError> {
        let ready = Ready::new(&mut self, false)?;
        let ledger = match &ready.folder {
            Some(folder) => Ledger::look(&RunFolder::new(folder))?,
            None => Ledger::default(),
        };
        let jobs = ready.to_do(&self.spec, &ledger)?;
        Ok(Forecast::new(&ready, &jobs, &ledger, self.spec.judge.is_offline()))
    }

    /// Judges what has no outcome yet, and says what there is then. It blocks: asynchronous programs
    /// call it on a thread of its own.
    pub fn run(mut self) -> Result<RunSummary, RunError> {
        let ready = Ready::new(&mut self, true)?;
        let Self { spec, sink, stop, mut tell, .. } = self;
        let mix = spec.keep.if_other_settings == IfOtherSettings::Mix;
        let OpenRun { sink, mut ledger, _lock } = match (sink, &ready.folder) {
            (None, Some(folder)) => folder::open(folder, &ready.record, mix)?,
            (sink, _) => OpenRun::elsewhere(sink.unwrap_or_else(|| Arc::new(Memory))),
        };
        let jobs = ready.to_do(&spec, &ledger)?;
        let under_way = UnderWay::open(ready.folder.as_deref());
        ledger.notes.extend(under_way.remark(&jobs));
        tell(Progress::Begins(&Beginning::of(&ready, &spec, &ledger, jobs.len())));
        let shared = Arc::new(Shared {
            replies: kept_replies(&spec)?,
            allowance: Allowance::new(spec.budget.calls, spec.budget.cost, ledger.spent()),
            ..Shared::default()
        });
        let share =
            |(mode, judge): (Mode, Judge<AnyModel>)| (mode, judge.sharing(Arc::clone(&shared)));
        let runner = Runner {
            judges: ready.judges.into_iter().map(share).collect::<Judges>(),
            cases: Arc::new(ready.cases),
            recordings: ready.recordings,
            sink,
            under_way,
            shared: Arc::clone(&shared),
            gate: ready.gate,
            priced: ready.price.is_some(),
            concurrency: spec.pace.concurrency as usize,
            keep_going: spec.keep_going,
        };
        let runtime = runtime()?;
        let ended = runtime.block_on(runner.run(jobs, &mut ledger, &stop, &mut *tell));
        // Whoever wants to stop at once does not wait for a tool.
        runtime.shutdown_background();
        let end = ended.map_err(|error| RunError::Broke {
            folder: ready.folder.clone(),
            source: error.into(),
        })?;
        let (planned, spent) = (&ready.record.planned, shared.allowance.spent());
        Ok(RunSummary::new(ready.folder, planned, &ledger, end, spent, ready.unusable))
    }
}

/// The runtime that models are asked on.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// Replies of models that were kept, unless nobody wants them.
fn kept_replies(spec: &RunSpec) -> Result<Option<KeptReplies>, RunError> {
    if spec.keep.replies_mb == 0 || spec.judge.is_offline() {
        return Ok(None);
    }
    let folder = weights::cache_folder()?.join("replies");
    let replies = KeptReplies::new(folder, spec.keep.replies_mb.saturating_mul(1 << 20));
    // What gave no verdict would give none again.
    Ok(Some(if spec.again.outcomes.is_empty() { replies } else { replies.anew() }))
}

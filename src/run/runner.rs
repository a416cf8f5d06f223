//! Makes the judgements of a run, as many at a time as the server and this machine can take.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::cases::Cases;
use super::job::{Job, JobKey};
use super::ledger::Ledger;
use super::recordings::Recordings;
use crate::case::EditCase;
use crate::dataset::Case;
use crate::judge::{Judge, JudgeError, Prepared, Shared};
use crate::model::{AnyModel, Gate};
use crate::prompt::Mode;
use crate::trace::{OutcomeName, ResultLine, RunFolder};

/// So many failures without a single reply between them mean that there is no use in going on; fewer
/// where there was none from the beginning.
const HOPELESS: usize = 20;
const HOPELESS_AT_FIRST: usize = 5;

/// Questions that wait for another attempt, and finished judgements that wait for the disk, let others
/// pass, but not without end.
const MOST_AT_A_TIME: usize = 4;

/// What all judgements of a run need.
pub(crate) struct Runner {
    pub judges: BTreeMap<Mode, Judge<AnyModel>>,
    pub cases: Arc<Vec<Case>>,
    /// Where only what was seen before counts.
    pub recordings: Option<Recordings>,
    pub run: RunFolder,
    pub shared: Arc<Shared>,
    pub gate: Arc<Gate>,
    /// Judgements at a time.
    pub concurrency: usize,
    /// Go on, however many fail in a row.
    pub keep_going: bool,
}

/// Why the runner has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Every judgement has an outcome.
    Done,
    /// Somebody pressed Ctrl-C, or the system asked to stop.
    Interrupted,
    /// A limit is reached: which one.
    Limit(String),
    /// Everything fails: for this reason.
    Hopeless(String),
    /// So many judgements crashed, and the others are done.
    Crashed(usize),
}

/// How far it is.
#[derive(Debug, Clone)]
pub(crate) struct Tally {
    pub total: usize,
    pub done: usize,
    pub outcomes: BTreeMap<OutcomeName, usize>,
    pub started: Instant,
}

/// What the runner tells while it works.
pub(crate) enum Progress<'a> {
    /// A judgement is finished, and its line is on the disk.
    Judged(&'a ResultLine, &'a Tally),
    /// A moment has passed.
    Moment(&'a Tally),
    /// It will stop when what is under way is finished: why.
    Stopping(&'a str),
}

type Ended = (JobKey, Result<ResultLine, JudgeError>);

struct Work {
    runner: Runner,
    cases: Cases,
}

impl Runner {
    /// Makes `jobs` and enters them into the ledger. `tell` must not block.
    pub(crate) async fn run(
        self,
        jobs: Vec<Job>,
        ledger: &mut Ledger,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> anyhow::Result<End> {
        let cases = Cases::new(Arc::clone(&self.cases));
        let work = Arc::new(Work { runner: self, cases });
        let mut tally = Tally {
            total: jobs.len(),
            done: 0,
            outcomes: BTreeMap::new(),
            started: Instant::now(),
        };
        let mut jobs = jobs.into_iter().peekable();
        let mut under_way: JoinSet<Ended> = JoinSet::new();
        let mut finished: Vec<ResultLine> = Vec::new();
        let mut writing = Writing(None);
        let mut stop = None;
        let (mut failed, mut crashed) = (0, 0);
        let mut signals = Signals::listen();
        let mut moment = interval(Duration::from_millis(100));
        moment.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            if stop.is_none() && jobs.peek().is_some() {
                stop = work.runner.shared.allowance.reached().map(End::Limit);
            }
            while stop.is_none() && under_way.len() < work.runner.places(finished.len()) {
                let Some(job) = jobs.next() else { break };
                under_way.spawn(Arc::clone(&work).judge(job));
            }
            if writing.0.is_none() && !finished.is_empty() {
                writing.start(&work.runner.run, ledger, mem::take(&mut finished))?;
            }
            if under_way.is_empty() && writing.0.is_none() {
                break;
            }
            tokio::select! {
                Some(ended) = under_way.join_next() => {
                    let others = std::iter::from_fn(|| under_way.try_join_next());
                    for one in std::iter::once(ended).chain(others) {
                        match settle(one) {
                            Settled::Line(line) => finished.push(*line),
                            Settled::Limit(reason) => stop = stop.or(Some(End::Limit(reason))),
                            Settled::Crashed => crashed += 1,
                            Settled::Broken(error) => return Err(error),
                        }
                    }
                }
                lines = writing.end() => {
                    let lines = lines?;
                    for line in &lines {
                        tally.add(line);
                        failed = if line.outcome == Some(OutcomeName::Failed) { failed + 1 } else { 0 };
                        tell(Progress::Judged(line, &tally));
                    }
                    let enough = match tally.done == failed {
                        true => HOPELESS_AT_FIRST.max(work.runner.concurrency),
                        false => HOPELESS.max(2 * work.runner.concurrency),
                    };
                    let hopeless = failed >= enough;
                    if hopeless && !work.runner.keep_going && stop.is_none() && jobs.peek().is_some() {
                        let reason = lines.iter().filter_map(|line| line.reason.clone()).next_back();
                        stop = Some(End::Hopeless(reason.unwrap_or_default()));
                    }
                }
                _ = moment.tick() => tell(Progress::Moment(&tally)),
                () = signals.next() => {
                    if stop.is_some() {
                        // The second time: at once. What is under way is made again next time.
                        return Ok(End::Interrupted);
                    }
                    stop = Some(End::Interrupted);
                    work.runner.gate.close();
                    tell(Progress::Stopping(
                        "stopping when what is under way is finished; once more to stop at once",
                    ));
                }
            }
        }
        Ok(match stop {
            Some(end) => end,
            None if crashed > 0 => End::Crashed(crashed),
            None => End::Done,
        })
    }

    /// How many judgements may be under way while so many wait for the disk.
    fn places(&self, unwritten: usize) -> usize {
        if unwritten >= MOST_AT_A_TIME * self.concurrency {
            return 0;
        }
        let resting = self.gate.resting().min((MOST_AT_A_TIME - 1) * self.concurrency);
        self.concurrency + resting
    }
}

/// Finished judgements on their way to the disk, one batch at a time: while the disk works, the next
/// ones are judged.
struct Writing(Option<JoinHandle<io::Result<Vec<ResultLine>>>>);

impl Writing {
    fn start(
        &mut self,
        run: &RunFolder,
        ledger: &mut Ledger,
        lines: Vec<ResultLine>,
    ) -> anyhow::Result<()> {
        let unwritten = ledger.add(&lines)?;
        let run = run.clone();
        self.0 = Some(spawn_blocking(move || {
            // The evidence before the line that names it.
            run.sync()?;
            unwritten.write()?;
            Ok(lines)
        }));
        Ok(())
    }

    /// The lines that are on the disk now; never, if none are on their way.
    async fn end(&mut self) -> anyhow::Result<Vec<ResultLine>> {
        let Some(writing) = &mut self.0 else { return std::future::pending().await };
        let written = writing.await;
        self.0 = None;
        written?.context(
            "cannot write to the run's folder; is the disk full? the same command goes on from here",
        )
    }
}

enum Settled {
    Line(Box<ResultLine>),
    Limit(String),
    Crashed,
    Broken(anyhow::Error),
}

fn settle(ended: Result<Ended, JoinError>) -> Settled {
    match ended {
        Ok((_, Ok(line))) => Settled::Line(Box::new(line)),
        Ok((_, Err(JudgeError::Stopped(reason)))) => Settled::Limit(reason),
        Ok((key, Err(error))) => {
            Settled::Broken(anyhow::Error::new(error).context(key.to_string()))
        }
        Err(error) => {
            tracing::error!(%error, "a judgement crashed");
            Settled::Crashed
        }
    }
}

impl Work {
    async fn judge(self: Arc<Self>, Job { case, key }: Job) -> Ended {
        let judged = self.line(case, &key).await;
        (key, judged)
    }

    async fn line(&self, place: usize, key: &JobKey) -> Result<ResultLine, JudgeError> {
        let Runner { judges, run, shared, .. } = &self.runner;
        let JobKey { editor, criterion, mode, repeat, .. } = key;
        let Some(judge) = judges.get(mode) else {
            return Err(JudgeError::NoSuchMode { criterion: criterion.clone(), mode: *mode });
        };
        if let Some(reason) = shared.allowance.reached() {
            return Err(JudgeError::Stopped(reason));
        }
        let nothing = match self.cases.load(place, editor, &shared.looks).await {
            Err(reason) => reason,
            Ok(case) => {
                let prepared = {
                    let _core = shared.looks.core().await;
                    tokio::task::block_in_place(|| self.prepare(judge, &case, key))
                };
                match prepared? {
                    Ok(prepared) => {
                        return Ok(prepared
                            .repeated(*repeat)
                            .judge_unsynced(run, &|_| ())
                            .await?
                            .line);
                    }
                    Err(reason) => reason,
                }
            }
        };
        let Some(record) = self.cases.record(place, editor) else {
            return Err(JudgeError::Stopped(nothing));
        };
        Ok(judge.record_missing(record, criterion, *repeat, nothing, run).await?.line)
    }

    /// A judgement before its first question; the inner error says why there is nothing to judge.
    fn prepare<'a>(
        &self,
        judge: &'a Judge<AnyModel>,
        case: &'a EditCase,
        key: &JobKey,
    ) -> Result<Result<Prepared<'a, AnyModel>, String>, JudgeError> {
        let prepared = match judge.prepare(case, &key.criterion) {
            Ok(prepared) => prepared,
            Err(JudgeError::Protocol(problem)) => return Ok(Err(problem.to_string())),
            // The pack was tried before: it is this case that it cannot tell of.
            Err(JudgeError::Prompt(problem)) => return Ok(Err(problem.to_string())),
            Err(error) => return Err(error),
        };
        let Some(recordings) = &self.runner.recordings else { return Ok(Ok(prepared)) };
        let recalled = recordings.recall(key, &prepared.manifest());
        Ok(recalled.map(|recalled| prepared.recalling(recalled)))
    }
}

impl Tally {
    fn add(&mut self, line: &ResultLine) {
        self.done += 1;
        if let Some(outcome) = line.outcome {
            *self.outcomes.entry(outcome).or_default() += 1;
        }
    }

    /// How many have this outcome.
    pub(crate) fn count(&self, outcome: OutcomeName) -> usize {
        self.outcomes.get(&outcome).copied().unwrap_or(0)
    }

    /// Judgements per second so far.
    pub(crate) fn rate(&self) -> f64 {
        self.done as f64 / self.started.elapsed().as_secs_f64().max(0.001)
    }

    /// How long the rest will take at this rate.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let left = (self.total - self.done) as f64 / self.rate();
        Duration::try_from_secs_f64(left).ok().filter(|_| self.done > 0)
    }
}

/// Ctrl-C, and the system's wish that we end. It listens all the time, so that none is missed.
struct Signals {
    #[cfg(unix)]
    streams: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Signals {
    fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let one = |kind| signal(kind).ok();
            let streams = one(SignalKind::interrupt()).zip(one(SignalKind::terminate()));
            Self { streams: streams.map(|(interrupt, terminate)| [interrupt, terminate]) }
        }
        #[cfg(not(unix))]
        Self {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate]) = &mut self.streams {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        // Where nobody can be listened to, there is nothing to wait for.
        if cfg!(unix) || tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

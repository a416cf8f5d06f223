//! Makes the judgements of a run, as many at a time as the server and this machine can take.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use super::cases::Cases;
use super::decisions::Decisions;
use super::ledger::Ledger;
use super::progress::{Progress, Tally};
use super::ready::decider;
use super::recordings::Recordings;
use super::select::Job;
use super::stop::Stop;
use super::summary::{End, Ending};
use super::under_way::{Care, UnderWay};
use crate::case::EditCase;
use crate::dataset::Entry;
use crate::judge::{Judge, JudgeError, Prepared, Shared, watched};
use crate::key::JudgementKey;
use crate::model::{AnyModel, Gate};
use crate::prompt::Mode;
use crate::trace::{OutcomeName, ResultLine, Sink};
use crate::verdict::Outcome;

/// So many failures without a single reply between them mean that there is no use in going on; fewer
/// where there was none from the beginning.
const HOPELESS: usize = 20;
const HOPELESS_AT_FIRST: usize = 5;

/// Questions that wait for another attempt, and finished judgements that wait for the disk, let others
/// pass, but not without end.
const MOST_AT_A_TIME: usize = 4;

const NOT_KEPT: &str = "cannot write to the run's folder: is the disk full, or was it removed or changed meanwhile? the \
                        same command goes on from what is there";

/// A judge for each mode.
pub(super) type Judges = BTreeMap<Mode, Judge<AnyModel>>;

/// What all judgements of a run need.
pub(super) struct Runner {
    pub judges: Judges,
    pub cases: Arc<Vec<Entry>>,
    /// Where only what was seen before counts.
    pub recordings: Option<Recordings>,
    pub sink: Arc<dyn Sink>,
    pub under_way: UnderWay,
    pub shared: Arc<Shared>,
    pub gate: Arc<Gate>,
    /// Whether it is known what is paid.
    pub priced: bool,
    /// Judgements at a time.
    pub concurrency: usize,
    /// Go on, however many fail in a row.
    pub keep_going: bool,
}

type Ended = (JudgementKey, Result<ResultLine, JudgeError>);

struct Work {
    runner: Runner,
    cases: Cases,
    decisions: Decisions,
}

impl Runner {
    /// Makes `jobs` and enters them into the ledger. `tell` must not block.
    pub(super) async fn run(
        self,
        jobs: Vec<Job>,
        ledger: &mut Ledger,
        stop_asked: &Stop,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> anyhow::Result<Ending> {
        let cases = Cases::new(Arc::clone(&self.cases));
        let decisions = Decisions::of(&jobs, &self.judges, ledger);
        let work = Arc::new(Work { runner: self, cases, decisions });
        let end = Self::work(&work, jobs, ledger, stop_asked, tell).await;
        // Whatever is left was stopped, and is not to blame.
        work.runner.under_way.end();
        end
    }

    async fn work(
        work: &Arc<Work>,
        mut jobs: Vec<Job>,
        ledger: &mut Ledger,
        stop_asked: &Stop,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> anyhow::Result<Ending> {
        // Not before what decides about it.
        let Runner { judges, under_way, .. } = &work.runner;
        let deciders = |key: &JudgementKey| {
            std::iter::successors(Some(key.clone()), |key| decider(judges, key)).take(100)
        };
        jobs.sort_by_cached_key(|job| deciders(&job.key).map(|key| under_way.care(&key)).max());
        let mut tally = Tally::new(jobs.len());
        let mut jobs = jobs.into_iter().peekable();
        let mut under_way: JoinSet<Ended> = JoinSet::new();
        let mut finished: Vec<ResultLine> = Vec::new();
        let mut writing = Writing(None);
        let mut made: Vec<String> = Vec::new();
        let mut stop = None;
        let (mut failed, mut crashed) = (0, 0);
        let mut moment = interval(Duration::from_millis(100));
        moment.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            if stop.is_none() && jobs.peek().is_some() {
                stop = work.runner.shared.allowance.reached().map(limit);
            }
            while stop.is_none() && under_way.len() < work.runner.places(finished.len()) {
                let alone = |job: &Job| work.runner.under_way.care(&job.key) == Care::Alone;
                let waits = |job: &Job| alone(job) && !under_way.is_empty();
                let Some(job) = jobs.next_if(|job| !waits(job)) else { break };
                under_way.spawn(Arc::clone(work).judge(job));
            }
            if writing.0.is_none() && !finished.is_empty() {
                writing.start(&work.runner.sink, ledger, mem::take(&mut finished))?;
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
                            Settled::Limit(reason) => stop = stop.or_else(|| Some(limit(reason))),
                            Settled::Crashed => crashed += 1,
                            Settled::Broken(error) => return Err(error),
                        }
                    }
                }
                lines = writing.end() => {
                    let lines = lines?;
                    work.runner.now(&mut tally);
                    for line in &lines {
                        tally.add(line);
                        made.extend(line.trace.clone());
                        failed = if line.outcome == Some(OutcomeName::Failed) { failed + 1 } else { 0 };
                        tell(Progress::Judged(line, &tally));
                    }
                    let enough = match tally.done == failed {
                        true => HOPELESS_AT_FIRST.max(work.runner.concurrency),
                        false => HOPELESS.max(2 * work.runner.concurrency),
                    };
                    let hopeless = failed >= enough;
                    if hopeless && !work.runner.keep_going && stop.is_none() && jobs.peek().is_some() {
                        let why = lines.iter().filter_map(|line| line.reason.clone()).next_back();
                        let why = why.unwrap_or_default();
                        stop = Some((End::Hopeless, Some(format!("everything fails: {why}"))));
                    }
                }
                _ = moment.tick() => {
                    work.runner.now(&mut tally);
                    tell(Progress::Moment(&tally));
                }
                () = stop_asked.heard() => {
                    if stop.is_some() {
                        // The second time: at once. What is under way is made again next time.
                        return Ok(interrupted());
                    }
                    stop = Some(interrupted());
                    work.runner.gate.close();
                    tell(Progress::Stopping);
                }
            }
        }
        // Evidence that is gone is none, whatever was counted.
        ledger.is_kept(&made).context(NOT_KEPT)?;
        Ok(match stop {
            Some(ending) => ending,
            None if crashed > 0 => {
                let words =
                    format!("{crashed} judgements crashed, a defect of deeplook; please report it");
                (End::Crashed, Some(words))
            }
            None => (End::Done, None),
        })
    }

    fn now(&self, tally: &mut Tally) {
        tally.asking = (self.gate.inside(), self.gate.allowed());
        tally.paid = self.priced.then(|| self.shared.allowance.spent().cost);
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

fn limit(reason: String) -> Ending {
    (End::Limit, Some(format!("a limit is reached: {reason}")))
}

fn interrupted() -> Ending {
    (End::Interrupted, Some("it was interrupted".to_owned()))
}

/// Finished judgements on their way to the disk, one batch at a time: while the disk works, the next
/// ones are judged.
struct Writing(Option<JoinHandle<io::Result<Vec<ResultLine>>>>);

impl Writing {
    fn start(
        &mut self,
        sink: &Arc<dyn Sink>,
        ledger: &mut Ledger,
        lines: Vec<ResultLine>,
    ) -> anyhow::Result<()> {
        let unwritten = ledger.add(&lines)?;
        let sink = Arc::clone(sink);
        self.0 = Some(tokio::spawn(async move {
            // The evidence before the line that names it.
            sink.sync().await?;
            spawn_blocking(move || unwritten.write()).await??;
            Ok(lines)
        }));
        Ok(())
    }

    /// The lines that are on the disk now; never, if none are on their way.
    async fn end(&mut self) -> anyhow::Result<Vec<ResultLine>> {
        let Some(writing) = &mut self.0 else { return std::future::pending().await };
        let written = writing.await;
        self.0 = None;
        written?.context(NOT_KEPT)
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
        // It has not begun while another decides about it.
        if let Some(decider) = decider(&self.runner.judges, &key) {
            let _ = self.decisions.about(&decider).await;
        }
        let begun = self.runner.under_way.begin(&key);
        let mut maker = self.decisions.maker(&key);
        let judged = watched(begun.watch(), self.line(case, &key)).await;
        match &judged {
            Ok(line) => maker.made(line.score),
            Err(_) => maker.stopped(),
        }
        drop(maker);
        match &judged {
            Ok(_) => begun.finish(),
            Err(_) => drop(begun),
        }
        (key, judged)
    }

    async fn line(&self, place: usize, key: &JudgementKey) -> Result<ResultLine, JudgeError> {
        let Runner { judges, sink, shared, .. } = &self.runner;
        let JudgementKey { editor, criterion, mode, repeat, .. } = key;
        let Some(judge) = judges.get(mode) else {
            return Err(JudgeError::NoSuchMode { criterion: criterion.clone(), mode: *mode });
        };
        if let Some(reason) = self.runner.under_way.given_up(key) {
            return self.unasked(judge, place, key, Outcome::Failed { reason }).await;
        }
        if let Some(skipped) = self.skipped(judge, place, key).await? {
            return Ok(skipped);
        }
        if let Some(reason) = shared.allowance.reached() {
            return Err(JudgeError::Stopped(reason));
        }
        let edit = self.cases.load(place, editor, &shared.looks).await;
        let nothing = match edit.case() {
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
                            .judge_unsynced(&**sink, &|_| ())
                            .await?
                            .line);
                    }
                    Err(reason) => reason,
                }
            }
        };
        self.unasked(judge, place, key, Outcome::Missing { reason: nothing }).await
    }

    /// The line of what need not be asked, because another judgement has decided it.
    async fn skipped(
        &self,
        judge: &Judge<AnyModel>,
        place: usize,
        key: &JudgementKey,
    ) -> Result<Option<ResultLine>, JudgeError> {
        let skip = judge.pack().criterion(&key.criterion)?.skip.as_ref();
        let Some((skip, decider)) = skip.zip(decider(&self.runner.judges, key)) else {
            return Ok(None);
        };
        let stopped = |()| JudgeError::Stopped("what decides about it was stopped".to_owned());
        let other = self.decisions.about(&decider).await.map_err(stopped)?;
        let decided = other.and_then(|other| Some((other, skip.decided_by(other)?)));
        let Some((other, verdict)) = decided else { return Ok(None) };
        let Some(record) = self.cases.record(place, &key.editor) else { return Ok(None) };
        let sink = &*self.runner.sink;
        let (criterion, decided) = (&key.criterion, (skip, other, verdict));
        let judged = judge.record_skipped(record, criterion, key.repeat, decided, sink).await?;
        Ok(Some(judged.line))
    }

    async fn unasked(
        &self,
        judge: &Judge<AnyModel>,
        place: usize,
        JudgementKey { editor, criterion, repeat, .. }: &JudgementKey,
        outcome: Outcome,
    ) -> Result<ResultLine, JudgeError> {
        let Some(record) = self.cases.record(place, editor) else {
            return Err(JudgeError::Stopped("the case is not in the data set".to_owned()));
        };
        let sink = &*self.runner.sink;
        Ok(judge.record_unasked(record, criterion, *repeat, outcome, sink).await?.line)
    }

    /// A judgement before its first question; the inner error says why there is nothing to judge.
    fn prepare<'a>(
        &self,
        judge: &'a Judge<AnyModel>,
        case: &'a EditCase,
        key: &JudgementKey,
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

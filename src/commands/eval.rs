//! `deeplook eval`: a whole data set, judged so that nothing is lost and nothing is done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use deeplook_tools::Toolbox;
use serde_json::json;

use super::forecast::Forecast;
use super::progress::Watching;
use super::summary::Summary;
use crate::cli::EvalArgs;
use crate::dataset::Case;
use crate::judge::{Allowance, Judge, Shared};
use crate::model::{AnyModel, Gate, GateLimits, KeptReplies, Price, Rules};
use crate::prompt::Mode;
use crate::run::{
    self, Difference, Job, Ledger, Planned, Recordings, RunLock, RunRecord, Runner, Selection,
    differences,
};
use crate::trace::RunFolder;
use crate::{config, equipment, files, models};

/// A judge for each mode.
pub(super) type Judges = BTreeMap<Mode, Judge<AnyModel>>;

pub(super) fn run(args: &EvalArgs) -> anyhow::Result<ExitCode> {
    if args.plan {
        forecast(args)?.show(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let summary = judge(args)?;
    summary.show(args.quiet, args.json)?;
    summary.exit_code(args.min_coverage, args.quiet)
}

/// Everything that is known before anybody is asked and anything is written.
struct Ready {
    recordings: Option<Recordings>,
    set: OpenSet,
    gate: Arc<Gate>,
    resolved: Resolved,
    record: RunRecord,
    /// All judgements of our shard, also those that are there.
    jobs: Vec<Job>,
    folder: PathBuf,
}

fn ready(args: &EvalArgs) -> anyhow::Result<Ready> {
    let recordings = args.from_traces.as_deref().map(Recordings::open).transpose()?;
    let set = open(args, recordings.as_ref())?;
    let gate = Arc::new(Gate::new(GateLimits {
        concurrency: args.pace.concurrency as usize,
        requests_per_minute: args.pace.requests,
        tokens_per_minute: args.pace.tokens,
    }));
    let resolved = resolve(args, &gate, recordings.as_ref())?;
    if args.pace.max_cost.is_some() && resolved.price.is_none() {
        bail!(
            "--max-cost needs to know what {} costs; tell with --prices FILE, or limit with --max-calls",
            args.options.model
        );
    }
    let (planned, jobs) = plan(args, resolved.criteria.clone(), &set)?;
    let settings = resolved.judges.iter().map(|(mode, judge)| {
        let mut settings = judge.described();
        if let Some(recordings) = &recordings {
            settings["from_traces"] = json!(std::path::absolute(&recordings.folder)?);
        }
        anyhow::Ok((*mode, settings))
    });
    let settings = settings.collect::<Result<_, _>>()?;
    let edits = args.reading.edits.as_deref().map(std::path::absolute).transpose()?;
    let record = RunRecord::new(std::path::absolute(&set.file)?, edits, planned, settings);
    let folder = folder(args, &set, &record)?;
    Ok(Ready { recordings, set, gate, resolved, record, jobs, folder })
}

/// Whether it could be begun; nothing is written.
pub(super) fn check(args: &EvalArgs) -> anyhow::Result<()> {
    ready(args).map(drop)
}

/// What is to be judged, and for how much; nobody is asked.
pub(super) fn forecast(args: &EvalArgs) -> anyhow::Result<Forecast> {
    let Ready { recordings, set, resolved, jobs, folder, .. } = ready(args)?;
    let ledger = Ledger::look(&RunFolder::new(&folder))?;
    let jobs = to_do(args, jobs, &set.cases, &ledger)?;
    let (judges, price) = (&resolved.judges, resolved.price.as_ref());
    let parts = run::estimate(judges, &set.cases, &jobs, &ledger, price, recordings.is_some());
    Ok(Forecast::new(folder, parts, price, args.options.model == Rules::NAME))
}

/// Judges what has no outcome yet.
pub(super) fn judge(args: &EvalArgs) -> anyhow::Result<Summary> {
    let Ready { recordings, set, gate, resolved, record, jobs, folder } = ready(args)?;
    let (run, _lock, mut ledger) = start(&folder, &record, args.mix)?;
    let jobs = to_do(args, jobs, &set.cases, &ledger)?;
    let Resolved { judges, price, unavailable, .. } = resolved;
    introduce(args, &set, recordings.as_ref(), jobs.len(), &run, &ledger, &unavailable);
    let shared = Arc::new(Shared {
        replies: kept_replies(args)?,
        allowance: Allowance::new(args.pace.max_calls, args.pace.max_cost, ledger.spent()),
        ..Shared::default()
    });
    let share = |(mode, judge): (Mode, Judge<AnyModel>)| (mode, judge.sharing(Arc::clone(&shared)));
    let runner = Runner {
        judges: judges.into_iter().map(share).collect(),
        cases: Arc::new(set.cases),
        recordings,
        run: run.clone(),
        shared: Arc::clone(&shared),
        gate: Arc::clone(&gate),
        concurrency: args.pace.concurrency as usize,
        keep_going: args.keep_going,
    };
    let paid = || price.as_ref().map(|_| shared.allowance.spent().cost);
    let mut watching = Watching::new(jobs.len(), args.quiet, args.json, &gate, paid)?;
    let runtime = super::runtime()?;
    let ended =
        runtime.block_on(runner.run(jobs, &mut ledger, &mut |progress| watching.tell(&progress)));
    // Whoever wants to stop at once does not wait for a tool.
    runtime.shutdown_background();
    watching.finish();
    let end = ended.with_context(|| {
        format!(
            "stopped; what is finished is kept in {}, and the same command goes on",
            folder.display()
        )
    })?;
    let spent = shared.allowance.spent();
    Ok(Summary::new(&run, &record.planned, &ledger, end, spent, set.unusable))
}

/// A data set, and how many of its records make no case.
struct OpenSet {
    file: PathBuf,
    root: PathBuf,
    cases: Vec<Case>,
    unusable: usize,
    /// What was found, in words.
    overview: String,
}

/// Opens the data set; what is wrong with it is told line by line, and stops us unless it may.
fn open(args: &EvalArgs, recordings: Option<&Recordings>) -> anyhow::Result<OpenSet> {
    let path = match (&args.dataset, recordings) {
        (Some(path), _) => path,
        (None, Some(recordings)) => return Ok(recorded_set(recordings)),
        (None, None) => bail!("name a data set, or a run with --from-traces"),
    };
    let set = super::dataset::open(path, &args.reading)?;
    const MOST_SHOWN: usize = 20;
    let problems = &set.problems;
    if !args.quiet {
        for problem in problems.kept().iter().take(MOST_SHOWN) {
            say(&format!("{}, {problem}", set.file.display()));
        }
        let more = (problems.errors() + problems.warnings()).saturating_sub(MOST_SHOWN);
        if more > 0 {
            say(&format!("and {more} more; see `deeplook dataset check`"));
        }
    }
    if problems.errors() > 0 && !args.allow_partial {
        bail!(
            "{} of the data set's lines and pictures cannot be used; mend them, or judge the rest with --allow-partial",
            problems.errors()
        );
    }
    if set.edits() == 0 {
        bail!(
            "{} names no edited pictures; say where they are with --edits DIR",
            set.file.display()
        );
    }
    Ok(OpenSet {
        unusable: set.records.saturating_sub(set.cases.len()),
        overview: super::dataset::overview(&set),
        file: set.file,
        root: set.root,
        cases: set.cases,
    })
}

/// What a run has judged, as a data set.
fn recorded_set(recordings: &Recordings) -> OpenSet {
    let Recordings { folder, cases, .. } = recordings;
    let edits: usize = cases.iter().map(|case| case.edits.len()).sum();
    OpenSet {
        file: folder.join("results.jsonl"),
        root: folder.clone(),
        cases: cases.clone(),
        unusable: 0,
        overview: format!("{}: {} cases, {edits} edits", folder.display(), cases.len()),
    }
}

/// The judges of all modes, and what is known of them.
struct Resolved {
    judges: Judges,
    criteria: Vec<String>,
    price: Option<Price>,
    /// The tools that cannot be had, with the reason.
    unavailable: BTreeMap<String, String>,
}

fn resolve(
    args: &EvalArgs,
    gate: &Arc<Gate>,
    recordings: Option<&Recordings>,
) -> anyhow::Result<Resolved> {
    let modes: BTreeSet<Mode> = args.mode.iter().copied().collect();
    // One toolbox for all modes that have tools: a detector is large.
    let with_tools = modes.iter().find(|mode| **mode != Mode::Plain && recordings.is_none());
    let equipped: Arc<Toolbox> = match with_tools {
        Some(mode) => Arc::new(equipment::for_judge(*mode, &args.options.tools)?),
        None => Arc::default(),
    };
    let plain: Arc<Toolbox> = Arc::new(Toolbox::standard());
    let mut resolved = Resolved {
        judges: Judges::new(),
        criteria: Vec::new(),
        price: None,
        unavailable: equipped.unavailable().clone(),
    };
    for mode in modes {
        let mut parts = config::resolve(&args.options, mode, !args.plan)?;
        let toolbox = match recordings {
            Some(recordings) => Arc::new(recordings.equip(mode, &mut parts)?),
            None if mode == Mode::Plain => Arc::clone(&plain),
            None => Arc::clone(&equipped),
        };
        resolved.criteria = super::judge::chosen(&parts.pack, &args.criterion)?;
        resolved.price = parts.record.price.clone();
        let model = match parts.model {
            AnyModel::OpenAi(model) => AnyModel::OpenAi(Box::new(model.behind(Arc::clone(gate)))),
            rules @ AnyModel::Rules(_) => rules,
        };
        let judge = Judge::new(model, parts.record, parts.pack, toolbox, parts.settings);
        for criterion in &resolved.criteria {
            judge.can_judge_by(criterion)?;
        }
        resolved.judges.insert(mode, judge);
    }
    Ok(resolved)
}

/// Which judgements are wanted, and those of our shard as jobs.
fn plan(
    args: &EvalArgs,
    criteria: Vec<String>,
    set: &OpenSet,
) -> anyhow::Result<(Planned, Vec<Job>)> {
    let selection = Selection {
        editors: args.editor.clone(),
        cases: args.case.clone(),
        limit: args.limit.map(NonZeroUsize::get),
        only: args.only.clone(),
    };
    let edits = selection.edits(&set.cases)?;
    let boxless = edits.iter().filter(|(place, _)| set.cases[*place].boxes.is_empty()).count();
    if boxless > 0 && args.mode.contains(&Mode::Oracle) && !args.allow_partial {
        bail!(
            "the oracle mode needs boxes, and {boxless} of {} cases have none; choose another --mode, or judge the \
             rest with --allow-partial",
            edits.len()
        );
    }
    let named = |(place, editors): &(usize, Vec<&str>)| {
        let editors = editors.iter().map(|&editor| editor.to_owned());
        (set.cases[*place].id.clone(), editors.collect())
    };
    let planned = Planned {
        criteria: criteria.into_iter().collect(),
        modes: args.mode.iter().copied().collect(),
        repeats: args.repeats,
        edits: edits.iter().map(named).collect(),
        types: edits.iter().filter_map(|(place, _)| set.cases[*place].typed()).collect(),
        shard: args.shard,
    };
    let mut jobs = Vec::new();
    for (place, editors) in edits {
        let id = &set.cases[place].id;
        let ours = |editor: &&str| args.shard.is_none_or(|shard| shard.has(id, editor));
        for editor in editors.into_iter().filter(ours) {
            jobs.extend(planned.keys_of(id, editor).map(|key| Job { case: place, key }));
        }
    }
    if jobs.is_empty() && args.shard.is_none() {
        bail!("nothing is left to judge: no chosen case has an edit by a chosen editor");
    }
    Ok((planned, jobs))
}

/// The folder of the run, whose settings must be ours.
fn folder(args: &EvalArgs, set: &OpenSet, record: &RunRecord) -> anyhow::Result<PathBuf> {
    let asked = match &args.run {
        // Without a slash at the end, so that a number can follow.
        Some(folder) => folder.components().collect(),
        None => {
            let data = set.root.file_name().unwrap_or_default().to_string_lossy();
            let mut name = files::slug(&format!("{data} {}", args.options.model));
            if let Some(shard) = args.shard {
                name.push_str(&format!("-part-{}", files::slug(&shard.to_string())));
            }
            Path::new("traces/runs").join(name)
        }
    };
    let whole = |folder: &Path| fs::canonicalize(folder).ok();
    if let Some(from) = args.from_traces.as_deref().and_then(whole)
        && whole(&asked) == Some(from)
    {
        bail!(
            "{} is to be judged again, into a folder of its own: name it with --run",
            asked.display()
        );
    }
    for number in 1u32.. {
        let mut folder = asked.clone().into_os_string();
        if number > 1 {
            folder.push(format!("-{number}"));
        }
        let folder = PathBuf::from(folder);
        let Some(known) = RunRecord::read(&folder)? else {
            refuse_foreign(&folder, args.mix)?;
            return Ok(folder);
        };
        let found = differences(&known.settings, &record.settings);
        if let (Some(theirs), Some(ours), false) =
            (known.planned.shard, record.planned.shard, args.mix)
            && theirs != ours
        {
            bail!(
                "{} is part {theirs} of a run, and this is part {ours}; give each part its own --run, or judge both \
                 into one with --mix",
                folder.display()
            );
        }
        if found.is_empty() || args.mix {
            return Ok(folder);
        }
        if !args.new_run {
            refuse_others(&folder, &found)?;
        }
    }
    bail!("there is no free name beside {}", asked.display())
}

fn refuse_others(folder: &Path, found: &[Difference]) -> anyhow::Result<()> {
    let named: Vec<String> = found.iter().take(10).map(|one| format!("\n  {one}")).collect();
    bail!(
        "{} was judged with other settings, and means over both would mean nothing:{}\n\
         judge into a folder of its own with --new-run, or go on all the same with --mix",
        folder.display(),
        named.concat()
    )
}

/// What is in the folder must be a run, or nothing.
fn refuse_foreign(folder: &Path, mix: bool) -> anyhow::Result<()> {
    if let Some(holder) = RunLock::holder(folder) {
        bail!("another deeplook is at work in {} ({holder}); wait for it", folder.display());
    }
    if run::is_vacant(folder) {
        return Ok(());
    }
    if !folder.join("judgements").is_dir() {
        bail!("{} is not empty and not a run; name another folder with --run", folder.display());
    }
    if !mix {
        bail!(
            "{} holds traces and no run.json, so that nobody knows their settings; name another folder with --run, \
             or take them in with --mix",
            folder.display()
        );
    }
    Ok(())
}

/// Makes the run ours and reads what is there.
pub(super) fn start(
    folder: &Path,
    record: &RunRecord,
    mix: bool,
) -> anyhow::Result<(RunFolder, RunLock, Ledger)> {
    files::create_folder(folder)?;
    let lock = RunLock::take(folder)?;
    let run = RunFolder::new(folder);
    let ledger = Ledger::open(&run)?;
    let mut record = record.clone();
    if let Some(known) = RunRecord::read(folder)? {
        // Once more under the lock: somebody may have been quicker.
        let found = differences(&known.settings, &record.settings);
        if !found.is_empty() && !mix {
            refuse_others(folder, &found)?;
        }
        record.started = known.started;
        let ours = record.settings;
        record.settings = known.settings;
        record.settings.extend(ours);
    }
    record.write(folder)?;
    Ok((run, lock, ledger))
}

/// The jobs without an outcome, and those that are wanted again.
fn to_do(
    args: &EvalArgs,
    all: Vec<Job>,
    cases: &[Case],
    ledger: &Ledger,
) -> anyhow::Result<Vec<Job>> {
    let changed = run::changed(&all, cases, ledger);
    if let (Some((place, what)), false) = (changed.first(), args.redo_changed) {
        bail!(
            "{} judgements are of cases that have changed since, such as {} ({what}); judge them again with \
             --redo-changed, or name another --run",
            changed.len(),
            all[*place].key
        );
    }
    let changed: BTreeSet<usize> = changed.into_iter().map(|(place, _)| place).collect();
    let again = |job: &Job| match ledger.lines().get(&job.key).and_then(|line| line.outcome()) {
        Some(outcome) => args.retry.iter().any(|wanted| outcome == (*wanted).into()),
        None => true,
    };
    let wanted = all.into_iter().enumerate();
    Ok(wanted
        .filter(|(place, job)| changed.contains(place) || again(job))
        .map(|(_, job)| job)
        .collect())
}

/// Replies of models that were kept, unless nobody wants them.
fn kept_replies(args: &EvalArgs) -> anyhow::Result<Option<KeptReplies>> {
    if args.no_cache || args.options.model == Rules::NAME {
        return Ok(None);
    }
    let folder = models::cache_folder()?.join("replies");
    let replies = KeptReplies::new(folder, args.cache_size.saturating_mul(1 << 20));
    // What gave no verdict would give none again.
    Ok(Some(if args.retry.is_empty() { replies } else { replies.anew() }))
}

/// What will happen, before it does.
fn introduce(
    args: &EvalArgs,
    set: &OpenSet,
    recordings: Option<&Recordings>,
    to_do: usize,
    run: &RunFolder,
    ledger: &Ledger,
    unavailable: &BTreeMap<String, String>,
) {
    if args.quiet {
        return;
    }
    say(set.overview.trim_end());
    if args.options.model == Rules::NAME {
        say("the offline judge `rules` is a baseline; ask a model with --model");
    }
    if let Some(recordings) = recordings {
        say(&format!("judged again from what was seen in {}", recordings.folder.display()));
        for note in &recordings.notes {
            say(&format!("{}: {note}", recordings.folder.display()));
        }
    }
    for (tool, why) in unavailable {
        say(&format!("without {tool}: {why}"));
    }
    for note in &ledger.notes {
        say(note);
    }
    let done = ledger.lines().len();
    let before = if done > 0 { format!(", {done} are there already") } else { String::new() };
    let judgements = if to_do == 1 { "judgement" } else { "judgements" };
    say(&format!("{to_do} {judgements} to make{before}; the run is {}", run.path().display()));
}

/// A line on stderr. Where nobody reads any more, the judging goes on.
fn say(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

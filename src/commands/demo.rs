//! `deeplook demo`: the whole story on scenes that it draws itself and whose truth it knows: a data
//! set, a run over all editors in two modes, and how often the judge is right.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use deeplook_tools::{Toolbox, grounding};
use minijinja::value::Serde;
use serde::Serialize;

use super::eval::Judges;
use super::progress::Watching;
use crate::cli::{DemoArgs, ToolOptions};
use crate::dataset::case_file::LabelRecord;
use crate::dataset::{Case, DataSet, LoadOptions, draw};
use crate::dialect;
use crate::equipment::{self, DEMO_DETECTOR};
use crate::files;
use crate::judge::{Judge, JudgeSettings, Shared};
use crate::message::Dialect;
use crate::model::{AnyModel, Gate, Rules};
use crate::models::Progress;
use crate::prompt::{self, Mode, Pack};
use crate::report::{self, Format, Report};
use crate::run::{Job, JobKey, Ledger, Planned, RunRecord, Runner};
use crate::stats::mean;
use crate::trace::{Bundle, ResultLine, ToolAnswer, What};

/// One of each type of instruction.
const CASES: usize = 7;
const SEED: u64 = 1;
const MODES: [Mode; 2] = [Mode::Tool, Mode::Oracle];
/// The folder is ours to replace if this is in it.
const PAGE: &str = "index.html";
const MARK: &str = "<!-- deeplook demo -->";
/// What else a demo writes: only this is ever taken away.
const FOLDERS: [&str; 3] = ["blobs", "judgements", "scenes"];
const FILES: [&str; 3] = ["results.jsonl", "run.json", REPORT];
const REPORT: &str = "report.html";

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let out = &args.out;
    make_room(out)?;
    let bar = super::progress("drawing", CASES)?;
    let made = draw::make(&out.join("scenes"), CASES, SEED, &|| bar.inc(1))?;
    bar.finish_and_clear();
    let set = DataSet::open(&made.cases_file, &LoadOptions::default())?;
    let truth = truth(&made.labels_file)?;
    let shared = Arc::new(Shared::default());
    let (judges, unavailable) = judges(&shared)?;
    let planned = planned(&set.cases, &judges);
    let settings = judges.iter().map(|(mode, judge)| (*mode, judge.described())).collect();
    let record = RunRecord::new(made.cases_file.clone(), None, planned, settings);
    let (run, _lock, mut ledger) = super::eval::start(out, &record, false)?;

    let cases = Arc::new(set.cases);
    let jobs = jobs(&record.planned, &cases);
    let gate = Arc::new(Gate::default());
    let mut watching = Watching::new(jobs.len(), false, false, &gate, || None)?;
    let runner = Runner {
        judges,
        cases: Arc::clone(&cases),
        recordings: None,
        run,
        shared,
        gate: Arc::clone(&gate),
        concurrency: std::thread::available_parallelism().map_or(2, usize::from),
        keep_going: true,
    };
    super::runtime()?
        .block_on(runner.run(jobs, &mut ledger, &mut |progress| watching.tell(&progress)))?;
    watching.finish();

    let shown =
        cases.iter().enumerate().map(|(place, case)| show_case(out, place, case, &ledger, &truth));
    let shown = shown.collect::<anyhow::Result<Vec<_>>>()?;
    files::write_atomically(&out.join(PAGE), render(&shown)?.as_bytes())?;
    let lines = ledger.lines().values().cloned().collect();
    let run = report::Run { name: "demo".to_owned(), lines, link: Some(".".to_owned()) };
    let report = Report::of(std::slice::from_ref(&run))?.render(Format::Html, &[run])?;
    files::write_atomically(&out.join(REPORT), report.as_bytes())?;
    tell(out, &record.planned, &ledger, &truth, &unavailable)?;
    Ok(ExitCode::SUCCESS)
}

/// The true label of each edit and criterion.
type Truth = BTreeMap<(String, String, String), String>;

fn truth(file: &Path) -> anyhow::Result<Truth> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record = |line: &str| {
        let LabelRecord { case, editor, criterion, label, .. } = serde_json::from_str(line)?;
        Ok(((case, editor, criterion), label))
    };
    text.lines().map(record).collect()
}

fn true_label<'a>(truth: &'a Truth, line: &ResultLine) -> Option<&'a str> {
    let key = (line.case.clone(), line.editor.clone()?, line.criterion.clone());
    truth.get(&key).map(String::as_str)
}

fn planned(cases: &[Case], judges: &Judges) -> Planned {
    let criteria = judges.values().flat_map(|judge| judge.pack().criteria());
    Planned {
        criteria: criteria.map(|criterion| criterion.id.clone()).collect(),
        modes: MODES.into(),
        repeats: 1,
        edits: cases
            .iter()
            .map(|case| (case.id.clone(), case.edits.keys().cloned().collect()))
            .collect(),
        types: cases.iter().filter_map(Case::typed).collect(),
        shard: None,
    }
}

fn jobs(planned: &Planned, cases: &[Case]) -> Vec<Job> {
    let places: BTreeMap<&str, usize> =
        cases.iter().enumerate().map(|(place, case)| (case.id.as_str(), place)).collect();
    let job = |key: JobKey| Some(Job { case: *places.get(key.case.as_str())?, key });
    planned.keys().filter_map(job).collect()
}

/// The mean score of each editor in each mode and criterion; the number of verdicts stands beside it
/// where there are fewer than edits.
fn leaderboard(planned: &Planned, ledger: &Ledger) -> String {
    /// The scores by mode and criterion, and how many judgements there are.
    type Cells = BTreeMap<(Mode, String), (Vec<f64>, usize)>;
    let mut scores: BTreeMap<String, Cells> = BTreeMap::new();
    for key in planned.keys() {
        let score = ledger.lines().get(&key).and_then(|line| line.score);
        let cells = scores.entry(key.editor).or_default();
        let (scores, all) = cells.entry((key.mode, key.criterion)).or_default();
        scores.extend(score);
        *all += 1;
    }
    let mut text = format!("{:<16}", "editor");
    for mode in &planned.modes {
        for criterion in &planned.criteria {
            text.push_str(&format!("{:>14}", format!("{mode} {criterion}")));
        }
    }
    for (editor, cells) in scores {
        text.push_str(&format!("\n{editor:<16}"));
        for (scores, all) in cells.values() {
            let mean = mean(scores).map_or("–".to_owned(), |mean| format!("{mean:.1}"));
            let few = if scores.len() < *all {
                format!(" ({}/{all})", scores.len())
            } else {
                String::new()
            };
            text.push_str(&format!("{:>14}", mean + &few));
        }
    }
    text + "\n"
}

/// The leaderboard, how often its labels are the true ones, and where to look next.
fn tell(
    out: &Path,
    planned: &Planned,
    ledger: &Ledger,
    truth: &Truth,
    unavailable: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout();
    let edits: usize = planned.edits.values().map(|editors| editors.len()).sum();
    writeln!(
        stdout,
        "Drew {CASES} scenes, had them edited {edits} times by simulated editors of known behaviour, and judged every \
         edit\nwith the offline judge `rules`, a baseline that was not told the editor or the truth.\n\n{}",
        leaderboard(planned, ledger)
    )?;
    let mut right: BTreeMap<(Mode, &str), (usize, usize)> = BTreeMap::new();
    for (key, line) in ledger.lines() {
        let (known, all) = right.entry((key.mode, &key.criterion)).or_default();
        *known += usize::from(
            line.label.as_deref().is_some_and(|label| Some(label) == true_label(truth, line)),
        );
        *all += 1;
    }
    for ((mode, criterion), (right, all)) in right {
        writeln!(stdout, "{mode}, {criterion}: the true label in {right} of {all} judgements")?;
    }
    for (tool, why) in unavailable {
        writeln!(stdout, "it worked without {tool}: {why}")?;
    }
    let shown = out.display();
    writeln!(
        stdout,
        "\nOpen {shown}/{REPORT} for the tables and plots, {shown}/{PAGE} to see what it looked at.\nThe data set is {shown}/scenes, the run {shown} (results.jsonl, judgements/); next:\n  \
         deeplook view {shown}\n  deeplook eval {shown}/scenes --detector demo-detector --run my-run --model …"
    )?;
    Ok(())
}

/// The offline judge of both modes with every tool that can be had here, and why the others cannot.
fn judges(shared: &Arc<Shared>) -> anyhow::Result<(Judges, BTreeMap<String, String>)> {
    // Drawn scenes are what the demo detector knows; they are sharp enough as they are.
    let tools = ToolOptions {
        detector: Some(DEMO_DETECTOR.to_owned()),
        enhancer: Some("lanczos".to_owned()),
        ..ToolOptions::default()
    };
    let toolbox = equipment::toolbox(&tools, None, &Progress::shown())
        .unwrap_or_else(|error| Toolbox::standard().without(grounding::NAME, format!("{error:#}")));
    let (unavailable, toolbox) = (toolbox.unavailable().clone(), Arc::new(toolbox));
    let judge = |mode: Mode| {
        let pack = Pack::embedded(prompt::DEFAULT)?;
        let record = Rules::record(Dialect::Native);
        let settings = JudgeSettings { mode, ..JudgeSettings::default() };
        let model = AnyModel::Rules(Rules::default());
        let judge = Judge::new(model, record, pack, Arc::clone(&toolbox), settings);
        Ok((mode, judge.sharing(Arc::clone(shared))))
    };
    Ok((MODES.into_iter().map(judge).collect::<anyhow::Result<_>>()?, unavailable))
}

/// Takes away what an earlier demo wrote; anything else is not ours to touch.
fn make_room(out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        let is_empty = fs::read_dir(out)
            .with_context(|| format!("cannot read {}", out.display()))?
            .next()
            .is_none();
        let is_ours = fs::read_to_string(out.join(PAGE)).is_ok_and(|page| page.starts_with(MARK));
        if !is_empty && !is_ours {
            bail!(
                "{} is not empty and not from an earlier demo; name another folder with --out",
                out.display()
            );
        }
        // Only what a demo writes: somebody may have put a file of theirs beside it.
        let cannot = |path: &Path| format!("cannot replace {}", path.display());
        for folder in FOLDERS.map(|name| out.join(name)) {
            if folder.is_dir() {
                fs::remove_dir_all(&folder).with_context(|| cannot(&folder))?;
            }
        }
        for file in FILES.map(|name| out.join(name)) {
            if file.is_file() {
                fs::remove_file(&file).with_context(|| cannot(&file))?;
            }
        }
    }
    files::create_folder(out)?;
    // From the first moment the folder is known as ours, also if the demo is stopped in the middle.
    files::write_atomically(&out.join(PAGE), format!("{MARK}\nNot finished.\n").as_bytes())
}

#[derive(Serialize)]
struct ShownCase {
    id: String,
    kind: Option<String>,
    instruction: String,
    editor: String,
    source: PathBuf,
    edited: PathBuf,
    judgements: Vec<ShownJudgement>,
}

#[derive(Serialize)]
struct ShownJudgement {
    name: String,
    label: String,
    truth: String,
    right: bool,
    steps: Vec<ShownStep>,
}

/// A thought, an action or an observation.
#[derive(Default, Serialize)]
struct ShownStep {
    kind: &'static str,
    text: String,
    pictures: Vec<ShownPicture>,
}

#[derive(Serialize)]
struct ShownPicture {
    name: String,
    path: PathBuf,
}

/// One edit of a case with both its judgements in the tool mode; another editor each time, so that
/// the page shows all of them.
fn show_case(
    out: &Path,
    place: usize,
    case: &Case,
    ledger: &Ledger,
    truth: &Truth,
) -> anyhow::Result<ShownCase> {
    let editors: Vec<&String> = case.edits.keys().collect();
    let editor = editors[(4 * place + 1) % editors.len()];
    let of_it = ledger
        .lines()
        .iter()
        .filter(|(key, _)| key.case == case.id && key.editor == *editor && key.mode == Mode::Tool);
    let judgements = of_it.map(|(_, line)| show_judgement(out, line, truth));
    let path = |file: Option<&Path>| {
        relative(out, file.with_context(|| format!("a picture of {} is gone", case.id))?)
    };
    Ok(ShownCase {
        judgements: judgements.collect::<anyhow::Result<_>>()?,
        source: path(case.source.path())?,
        edited: path(case.edits[editor].path())?,
        id: case.id.clone(),
        kind: case.kind.clone(),
        instruction: case.instruction.clone(),
        editor: editor.clone(),
    })
}

/// The path of a file in the demo's folder, as the page needs it.
fn relative(out: &Path, path: &Path) -> anyhow::Result<PathBuf> {
    let (out, path) = (fs::canonicalize(out)?, fs::canonicalize(path)?);
    Ok(path.strip_prefix(out)?.to_owned())
}

fn show_judgement(out: &Path, line: &ResultLine, truth: &Truth) -> anyhow::Result<ShownJudgement> {
    let pack = Pack::embedded(prompt::DEFAULT)?;
    let criterion = pack.criterion(&line.criterion)?;
    let form = criterion.form();
    let bundle = Bundle::read(&out.join(line.trace.as_deref().unwrap_or_default()))?;
    let blobs = bundle.blobs();
    let mut steps = Vec::new();
    for event in bundle.events {
        match event.event {
            What::Replied(replied) => {
                let reading = dialect::read(&replied.reply.message, &form);
                steps.extend(reading.thought.map(|text| ShownStep {
                    kind: "thought",
                    text,
                    ..ShownStep::default()
                }));
                steps.extend(reading.calls.into_iter().map(|call| ShownStep {
                    kind: "action",
                    text: format!("{} {}", call.name, call.arguments),
                    ..ShownStep::default()
                }));
            }
            What::Observed(observed) => match observed.answer {
                ToolAnswer::Refused { text } => {
                    steps.push(ShownStep { kind: "observation", text, ..ShownStep::default() });
                }
                ToolAnswer::Saw { text, pictures, .. } => {
                    let shown = pictures.into_iter().map(|seen| {
                        let path = relative(out, &blobs.find(&seen.blob)?)?;
                        Ok(ShownPicture { name: seen.name, path })
                    });
                    let pictures = shown.collect::<anyhow::Result<_>>()?;
                    steps.push(ShownStep { kind: "observation", text, pictures });
                }
            },
            _ => {}
        }
    }
    let outcome = line.outcome.map_or("interrupted".to_owned(), |outcome| outcome.to_string());
    let label = line.label.clone().unwrap_or(outcome);
    let truth = true_label(truth, line).unwrap_or_default();
    Ok(ShownJudgement {
        name: criterion.name.clone(),
        right: label == truth,
        truth: truth.to_owned(),
        label,
        steps,
    })
}

fn render(cases: &[ShownCase]) -> anyhow::Result<String> {
    let mut templates = minijinja::Environment::new();
    templates.add_template("demo.html", include_str!("demo.html"))?;
    let page = templates.get_template("demo.html")?;
    Ok(page.render(minijinja::context! { cases => Serde(cases), mark => MARK })?)
}

//! `deeplook demo`: the whole story on scenes that it draws itself and whose truth it knows: a data
//! set, a run over all editors in two modes, and how often the judge is right.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use deeplook_tools::Toolbox;
use minijinja::value::Serde;
use serde::Serialize;

use super::progress::Watching;
use crate::case::Facts;
use crate::cli::DemoArgs;
use crate::dataset::case_file::LabelRecord;
use crate::dataset::{DataSet, Entry, LoadOptions, draw};
use crate::dialect;
use crate::equipment::{self, DEMO_DETECTOR, Effort, ToolOptions};
use crate::files;
use crate::key::JudgementKey;
use crate::prompt::{self, Mode, Pack};
use crate::received;
use crate::report::{self, Format, Report, ReportOptions};
use crate::run::{IfOtherSettings, Run, RunSpec};
use crate::stats::mean;
use crate::terminal;
use crate::trace::{Bundle, ResultLine, Rubrics, ToolAnswer, What};
use crate::weights::Progress;

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
    let truth = truth(&made.labels_file)?;
    let toolbox = toolbox()?;
    let unavailable = toolbox.unavailable().clone();
    let mut spec = RunSpec::of(&made.cases_file);
    spec.modes = MODES.into();
    spec.pace.concurrency =
        std::thread::available_parallelism().map_or(2, |cores| cores.get() as u32);
    spec.keep_going = true;
    spec.keep.folder = Some(out.clone());
    // The folder has its scenes and its page already.
    spec.keep.if_other_settings = IfOtherSettings::Mix;
    let run = Run::new(spec).toolbox(toolbox);
    let summary = super::eval::judge(run, Watching::only_progress())?;
    let cases = DataSet::open(&made.cases_file, &LoadOptions::default())?.cases;

    let shown = cases
        .iter()
        .enumerate()
        .map(|(place, case)| show_case(out, place, case, &summary.lines, &truth));
    let shown = shown.collect::<anyhow::Result<Vec<_>>>()?;
    files::write_atomically(&out.join(PAGE), render(&shown)?.as_bytes())?;
    let lines = summary.lines.values().cloned().collect();
    let rubrics = Rubrics::only(Arc::clone(Pack::embedded(prompt::DEFAULT)?.rubric()));
    let link = Some(".".to_owned());
    let run = report::Run { name: "demo".to_owned(), lines, rubrics, link };
    let report = Report::of(std::slice::from_ref(&run), &ReportOptions::default())?
        .render(Format::Html, &[run])?;
    files::write_atomically(&out.join(REPORT), report.as_bytes())?;
    tell(out, &summary.lines, &truth, &unavailable)?;
    Ok(ExitCode::SUCCESS)
}

/// What was judged.
type Lines = BTreeMap<JudgementKey, ResultLine>;

/// The true label of each edit and criterion.
type TrueLabels = BTreeMap<(String, String, String), String>;

fn truth(file: &Path) -> anyhow::Result<TrueLabels> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let record = |line: &str| {
        let LabelRecord { case, editor, criterion, label, .. } = serde_json::from_str(line)?;
        Ok(((case, editor, criterion), label))
    };
    text.lines().map(record).collect()
}

fn true_label<'a>(truth: &'a TrueLabels, line: &ResultLine) -> Option<&'a str> {
    let key = (line.case.clone(), line.editor.clone()?, line.criterion.clone());
    truth.get(&key).map(String::as_str)
}

/// The mean score of each editor in each mode and criterion; the number of verdicts stands beside it
/// where there are fewer than edits.
fn leaderboard(lines: &Lines) -> String {
    /// The scores by mode and criterion, and how many judgements there are.
    type Cells<'a> = BTreeMap<(Mode, &'a str), (Vec<f64>, usize)>;
    let mut scores: BTreeMap<&str, Cells<'_>> = BTreeMap::new();
    let mut kinds = BTreeSet::new();
    for (key, line) in lines {
        kinds.insert((key.mode, key.criterion.as_str()));
        let cells = scores.entry(&key.editor).or_default();
        let (scores, all) = cells.entry((key.mode, &key.criterion)).or_default();
        scores.extend(line.score);
        *all += 1;
    }
    let mut text = format!("{:<16}", "editor");
    for (mode, criterion) in kinds {
        text.push_str(&format!("{:>14}", format!("{mode} {criterion}")));
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
    lines: &Lines,
    truth: &TrueLabels,
    unavailable: &BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let mut stdout = terminal::stdout();
    let edits: BTreeSet<(&str, &str)> =
        lines.keys().map(|key| (key.case.as_str(), key.editor.as_str())).collect();
    let edits = edits.len();
    writeln!(
        stdout,
        "Drew {CASES} scenes, had them edited {edits} times by simulated editors of known behaviour, and judged every \
         edit\nwith the offline judge `rules`, a baseline that was not told the editor or the truth.\n\n{}",
        leaderboard(lines)
    )?;
    let mut right: BTreeMap<(Mode, &str), (usize, usize)> = BTreeMap::new();
    for (key, line) in lines {
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

/// Every tool that can be had here; why the others cannot is in it.
fn toolbox() -> anyhow::Result<Toolbox> {
    // Drawn scenes are what the demo detector knows; they are sharp enough as they are.
    let tools = ToolOptions {
        detector: Some(DEMO_DETECTOR.to_owned()),
        enhancer: Some("lanczos".to_owned()),
        ..ToolOptions::default()
    };
    let effort = Effort { fetching: true, making_do: true, ..Effort::default() };
    equipment::toolbox(&tools, effort, &Progress::shown())
}

/// Takes away what an earlier demo wrote; anything else is not ours to touch.
fn make_room(out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        let is_empty = fs::read_dir(out)
            .with_context(|| format!("cannot read {}", out.display()))?
            .next()
            .is_none();
        let page = received::read(&out.join(PAGE), received::LARGEST_TABLE);
        let is_ours = page.is_ok_and(|page| page.starts_with(MARK.as_bytes()));
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
    // So that it is taken for the folder of a run.
    files::create_folder(&out.join("judgements"))?;
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
    entry: &Entry,
    lines: &Lines,
    truth: &TrueLabels,
) -> anyhow::Result<ShownCase> {
    let case = &entry.case;
    let editors: Vec<&str> = entry.edits().keys().collect();
    let editor = editors[(4 * place + 1) % editors.len()];
    let of_it = lines
        .iter()
        .filter(|(key, _)| key.case == case.id && key.editor == editor && key.mode == Mode::Tool);
    let judgements = of_it.map(|(_, line)| show_judgement(out, line, truth));
    let path = |file: Option<&Path>| {
        relative(out, file.with_context(|| format!("a picture of {} is gone", case.id))?)
    };
    Ok(ShownCase {
        judgements: judgements.collect::<anyhow::Result<_>>()?,
        source: path(case.source.path())?,
        edited: path(entry.edits()[editor].path())?,
        id: case.id.clone(),
        kind: case.facts.text(Facts::TYPE).map(Cow::into_owned),
        instruction: case.instruction.clone(),
        editor: editor.to_owned(),
    })
}

/// The path of a file in the demo's folder, as the page needs it.
fn relative(out: &Path, path: &Path) -> anyhow::Result<PathBuf> {
    let (out, path) = (fs::canonicalize(out)?, fs::canonicalize(path)?);
    Ok(path.strip_prefix(out)?.to_owned())
}

fn show_judgement(
    out: &Path,
    line: &ResultLine,
    truth: &TrueLabels,
) -> anyhow::Result<ShownJudgement> {
    let pack = Pack::embedded(prompt::DEFAULT)?;
    let criterion = pack.criterion(&line.criterion)?;
    let form = criterion.form();
    let bundle = Bundle::read(&out.join(line.trace.as_deref().unwrap_or_default()))?;
    let blobs = bundle.blobs();
    let mut steps = Vec::new();
    for event in bundle.events {
        match event.event {
            What::Replied(replied) => {
                let reading = dialect::read(&replied.reply.said, &form);
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

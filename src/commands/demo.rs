//! `deeplook demo`: what deeplook does, on scenes that it draws itself and whose truth it knows.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use deeplook_tools::{Picture, Toolbox, grounding};
use minijinja::value::Serde;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::case::EditCase;
use crate::cli::{DemoArgs, ToolOptions};
use crate::dataset::draw;
use crate::dialect;
use crate::equipment::{self, DEMO_DETECTOR};
use crate::files;
use crate::judge::{Judge, JudgeSettings, Judged};
use crate::message::Dialect;
use crate::model::Rules;
use crate::models::Progress;
use crate::prompt::{self, Pack};
use crate::trace::{Bundle, RunFolder, ToolAnswer, What};

/// Two of each type of instruction.
const CASES: usize = 14;
const SEED: u64 = 1;
/// Cases under way at the same time: drawing and looking keep the cores busy by themselves.
const AT_A_TIME: usize = 2;
/// The folder is ours to replace if this is in it.
const PAGE: &str = "index.html";
const MARK: &str = "<!-- deeplook demo -->";

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let out = &args.out;
    make_room(out)?;
    let (judge, unavailable) = judge()?;
    let cases = super::runtime()?.block_on(judge_all(judge, out))?;
    let page = out.join(PAGE);
    files::write_atomically(&page, render(&cases)?.as_bytes())?;
    let right = |criterion: &str| {
        let judgements = cases.iter().flat_map(|case| &case.judgements);
        judgements.filter(|judgement| judgement.criterion == criterion && judgement.right).count()
    };
    writeln!(
        anstream::stdout(),
        "Drew {CASES} scenes, had each edited, and judged the edits with the offline judge `rules`, a baseline.\n\
         Its label is the true one for instruction following in {} of {CASES} cases, for visual consistency in {}.\n\
         Open {}",
        right("if"),
        right("vc"),
        page.display()
    )?;
    for (tool, why) in unavailable {
        writeln!(anstream::stdout(), "It worked without {tool}: {why}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The offline judge with every tool that can be had here, and why the others cannot.
fn judge() -> anyhow::Result<(Judge<Rules>, BTreeMap<String, String>)> {
    // Drawn scenes are what the demo detector knows; they are sharp enough as they are.
    let models = ToolOptions {
        detector: Some(DEMO_DETECTOR.to_owned()),
        enhancer: Some("lanczos".to_owned()),
        ..ToolOptions::default()
    };
    let progress = Progress::shown();
    let toolbox = equipment::toolbox(&models, None, &progress)
        .unwrap_or_else(|error| Toolbox::standard().without(grounding::NAME, format!("{error:#}")));
    let unavailable = toolbox.unavailable().clone();
    let pack = Pack::embedded(prompt::DEFAULT)?;
    let record = Rules::record(Dialect::Native);
    let settings = JudgeSettings::default();
    Ok((Judge::new(Rules::default(), record, pack, toolbox, settings), unavailable))
}

/// Judges all cases, a few at a time.
async fn judge_all(judge: Judge<Rules>, out: &Path) -> anyhow::Result<Vec<ShownCase>> {
    let bar = super::progress("drawing and judging", CASES)?;
    let judge = Arc::new(judge);
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut tasks = JoinSet::new();
    for index in 0..CASES {
        let (judge, room, out, bar) =
            (Arc::clone(&judge), Arc::clone(&room), out.to_owned(), bar.clone());
        tasks.spawn(async move {
            let _permit = room.acquire().await?;
            let shown = show_case(&judge, &out, index).await;
            bar.inc(1);
            shown
        });
    }
    let mut cases = tasks.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(cases)
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
        for folder in [out.join("blobs"), out.join("judgements")] {
            if folder.is_dir() {
                fs::remove_dir_all(&folder)
                    .with_context(|| format!("cannot replace {}", folder.display()))?;
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
    kind: &'static str,
    instruction: String,
    editor: &'static str,
    source: PathBuf,
    edited: PathBuf,
    judgements: Vec<ShownJudgement>,
}

#[derive(Serialize)]
struct ShownJudgement {
    criterion: String,
    name: String,
    label: String,
    truth: &'static str,
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

/// Draws a case, takes one editor's picture of it, and judges that.
async fn show_case(judge: &Judge<Rules>, out: &Path, index: usize) -> anyhow::Result<ShownCase> {
    let drawn = tokio::task::spawn_blocking(move || draw::case(SEED, index)).await??;
    // Another editor each time, so that the page shows all of them.
    let edit = &drawn.edits[index % drawn.edits.len()];
    let run = RunFolder::new(out);
    let mut case = EditCase::new(drawn.source.clone(), edit.picture.clone(), &drawn.instruction);
    case.id = drawn.id.clone();
    case.kind = Some(drawn.kind.name().to_owned());
    case.target = Some(drawn.target.clone());
    case.boxes = drawn.boxes.clone();
    let mut judgements = Vec::new();
    for (criterion, truth) in [("if", edit.if_label), ("vc", edit.vc_label)] {
        let judged = judge.judge(&case, criterion, &run, &|_| ()).await?;
        judgements.push(show_judgement(judge, out, &judged, truth)?);
    }
    let path = |picture: &Picture| -> anyhow::Result<PathBuf> {
        let blob = crate::hash::Hash::of(&picture.to_png());
        relative(out, run.blobs().find(&blob)?)
    };
    Ok(ShownCase {
        source: path(&drawn.source)?,
        edited: path(&edit.picture)?,
        id: drawn.id,
        kind: drawn.kind.name(),
        instruction: drawn.instruction,
        editor: edit.editor.name(),
        judgements,
    })
}

fn relative(out: &Path, path: PathBuf) -> anyhow::Result<PathBuf> {
    Ok(path.strip_prefix(out)?.to_owned())
}

fn show_judgement(
    judge: &Judge<Rules>,
    out: &Path,
    judged: &Judged,
    truth: &'static str,
) -> anyhow::Result<ShownJudgement> {
    let criterion = judge.pack().criterion(&judged.judgement.criterion)?;
    let form = criterion.form();
    let bundle = Bundle::read(&judged.trace)?;
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
                        let path = relative(out, blobs.find(&seen.blob)?)?;
                        Ok(ShownPicture { name: seen.name, path })
                    });
                    let pictures = shown.collect::<anyhow::Result<_>>()?;
                    steps.push(ShownStep { kind: "observation", text, pictures });
                }
            },
            _ => {}
        }
    }
    let outcome = judged.judgement.outcome.as_ref();
    let label = judged.judgement.label().or(outcome.map(|o| o.name())).unwrap_or("interrupted");
    Ok(ShownJudgement {
        criterion: criterion.id.clone(),
        name: criterion.name.clone(),
        right: label == truth,
        label: label.to_owned(),
        truth,
        steps,
    })
}

fn render(cases: &[ShownCase]) -> anyhow::Result<String> {
    let mut templates = minijinja::Environment::new();
    templates.add_template("demo.html", include_str!("demo.html"))?;
    let page = templates.get_template("demo.html")?;
    Ok(page.render(minijinja::context! { cases => Serde(cases), mark => MARK })?)
}

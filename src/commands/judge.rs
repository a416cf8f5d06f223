//! `deeplook judge`: one edit, one or two labels, and why.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;

use super::hints;
use crate::case::{EditCase, Facts, InputPicture};
use crate::cli::{self, CaseFacts, JudgeArgs};
use crate::equipment;
use crate::hash::Hash;
use crate::judge::{Judge, Judged, Prepared};
use crate::message::Usage;
use crate::model::AnyModel;
use crate::run::{self, RunRecord};
use crate::terminal::{self, Style};
use crate::trace::{Event, Judgement, PartJudgement, RunFolder, What};
use crate::transcript::{Transcript, cost_text, outcome_text, usage_text};
use crate::verdict::Outcome;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

pub(super) fn run(args: &JudgeArgs) -> anyhow::Result<ExitCode> {
    let (spec, access) = args.options.judge()?;
    let parts =
        spec.resolve(args.mode, &access, true).map_err(|error| hints::told(error.into()))?;
    let criteria = run::chosen(&parts.pack, &cli::criteria(&args.criterion))?;
    let case = case(&args.source, &args.edited, &args.facts)?;
    let priced = parts.record.price.is_some();
    let asked = parts.asked();
    if spec.is_simulated() {
        bail!("{} answers from the truth of a data set; use it with `deeplook eval`", spec.model);
    }
    let toolbox = equipment::for_judge(args.mode, &spec.tools)?;
    let unavailable = toolbox.unavailable().clone();
    let judge = Judge::new(parts.model, parts.record, parts.pack, toolbox, parts.settings);
    // A case that does not fit the mode is an error before anything is said or written.
    let prepare = |id: &String| judge.prepare(&case, id).map_err(super::hints::of_judgement);
    let prepared = criteria.iter().map(prepare).collect::<Result<Vec<_>, _>>()?;
    let run = RunFolder::new(run_folder(args.trace.as_deref(), "judge")?);
    if spec.is_offline() {
        let note = "the offline judge `rules` is a baseline; ask a model with --model";
        say(args.json, &format!("{DIM}{note}{DIM:#}"));
    }
    if let Some(asked) = asked {
        say(args.json, &format!("{DIM}{asked}{DIM:#}"));
    }
    for (tool, why) in &unavailable {
        say(args.json, &format!("{DIM}without {tool}: {why}{DIM:#}"));
    }
    let runtime = run::runtime()?;
    let mut all = Vec::new();
    for prepared in prepared {
        let name = prepared.criterion().name.clone();
        let judged = runtime
            .block_on(judge_one(args, prepared, &run))
            .with_context(|| format!("no judgement in {}", run.path().display()))?;
        let pictures = evidence_pictures(&judged, &run)?;
        all.push(Named { name, judged, pictures });
    }
    let judgements = || all.iter().map(|one| &one.judged.judgement);
    let usage = judgements().fold(Usage::default(), |sum, one| sum.plus(one.usage));
    let cost = judgements().map(|one| one.cost).sum::<Option<f64>>();
    let mut spent = format!("{}, {}", usage_text(usage), cost_text(cost));
    if !priced {
        spent.push_str(&format!(": tell what {} costs with --prices FILE", spec.model));
    }
    summarise(args, &all, &spent, &run);
    if args.json {
        let judgements = all.iter().map(printed).collect();
        super::print_json(&Printed { judgements, usage, cost, trace: run.path() })?;
    }
    let failed = judgements().any(|one| matches!(one.outcome, Some(Outcome::Failed { .. }) | None));
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// A judgement with what a person wants to see of it.
struct Named {
    /// The criterion in words.
    name: String,
    judged: Judged,
    /// What it rests on, and where that is.
    pictures: BTreeMap<String, PathBuf>,
}

/// Reads the pictures of a case and checks what was typed about it.
pub(super) fn case(source: &Path, edited: &Path, facts: &CaseFacts) -> anyhow::Result<EditCase> {
    if facts.instruction.trim().is_empty() {
        bail!("the instruction is empty; say with -i what the editor was told");
    }
    let (source, image) = (InputPicture::load(source)?, InputPicture::load(edited)?);
    let mut case = EditCase::new(source, image, &facts.instruction);
    if let Some(reference) = &facts.reference {
        case = case.with_reference(InputPicture::load(reference)?);
    }
    case.id = edited.file_stem().map_or("case".into(), |name| name.to_string_lossy().into_owned());
    case = case.with_targets(facts.boxes.clone());
    case.facts.insert_some(Facts::TARGET, facts.target.clone());
    case.facts.insert_some(Facts::TYPE, facts.kind.clone());
    Ok(case)
}

/// The folder that was asked for, or a new one named by the time.
pub(super) fn run_folder(asked: Option<&Path>, what: &str) -> anyhow::Result<PathBuf> {
    if let Some(folder) = asked {
        if RunRecord::read(folder)?.is_some() {
            bail!(
                "{} is the folder of a run, and a judgement of its own does not belong into it; name another folder \
                 with --trace",
                folder.display()
            );
        }
        return Ok(folder.to_owned());
    }
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
    let runs = Path::new("traces/runs");
    (1u32..1000)
        .map(|number| match number {
            1 => runs.join(format!("{time}-{what}")),
            _ => runs.join(format!("{time}-{what}-{number}")),
        })
        .find(|folder| !folder.exists())
        .context("there is no free name in traces/runs; name a folder with --trace")
}

/// A line for a person: on stdout, or on stderr where stdout is for a machine.
///
/// Where nobody reads any more, the judging goes on: the trace is written all the same.
pub(super) fn say(json: bool, text: &str) {
    let _ = if json {
        writeln!(terminal::stderr(), "{text}")
    } else {
        writeln!(terminal::stdout(), "{text}")
    };
}

async fn judge_one(
    args: &JudgeArgs,
    prepared: Prepared<'_, AnyModel>,
    run: &RunFolder,
) -> anyhow::Result<Judged> {
    let criterion = prepared.criterion();
    let title = Style::TITLE;
    say(args.json, &format!("\n{title}{}{title:#}", criterion.name));
    let parts = prepared.part_names().map(str::to_owned).collect();
    let transcript = Transcript::new(criterion.form(), parts, run.blobs());
    let watch = |event: &Event| {
        let lines = transcript.lines(event);
        if !lines.is_empty() {
            say(args.json, lines.trim_end());
        }
    };
    let judged = prepared.judge(run, &watch).await?;
    let Judgement { turns, tool_calls, usage, cost, .. } = judged.judgement;
    let spent = format!("{}, {}", usage_text(usage), cost_text(cost));
    let (turns, looks) = (counted(turns, "turn"), counted(tool_calls, "look"));
    say(args.json, &format!("{DIM}{turns}, {looks}, {spent}{DIM:#}"));
    Ok(judged)
}

fn counted(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The answers once more, where nothing scrolls them away.
fn summarise(args: &JudgeArgs, all: &[Named], spent: &str, run: &RunFolder) {
    let mut text = String::new();
    for Named { name, judged, pictures } in all {
        let outcome = judged.judgement.outcome.as_ref();
        let outcome = outcome.map_or("interrupted".to_owned(), outcome_text);
        text.push_str(&format!("\n{BOLD}{name}{BOLD:#}: {outcome}\n"));
        for (picture, path) in pictures {
            text.push_str(&format!("  {picture}: {}\n", path.display()));
        }
        if let Some(kept) = &judged.kept {
            text.push_str(&format!("  {DIM}digest {}{DIM:#}\n", kept.digest));
        }
    }
    say(args.json, &format!("{text}\n{spent}\ntrace: {}", run.path().display()));
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    judgements: Vec<PrintedJudgement<'a>>,
    usage: Usage,
    cost: Option<f64>,
    trace: &'a Path,
}

#[derive(Serialize)]
struct PrintedJudgement<'a> {
    criterion: &'a str,
    #[serde(flatten)]
    ending: PrintedEnding<'a>,
    evidence_pictures: &'a BTreeMap<String, PathBuf>,
    unknown_evidence: &'a [String],
    targets: Vec<PrintedTarget<'a>>,
    turns: u32,
    tool_calls: u32,
    usage: Usage,
    cost: Option<f64>,
    trace: Option<&'a Path>,
    digest: Option<&'a Hash>,
}

#[derive(Serialize)]
struct PrintedTarget<'a> {
    name: &'a str,
    #[serde(flatten)]
    ending: PrintedEnding<'a>,
}

/// How a judgement or a part of it ended, and why.
#[derive(Serialize)]
struct PrintedEnding<'a> {
    outcome: Option<&'static str>,
    label: Option<&'a str>,
    /// What was answered for each key, where the answer has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<&'a BTreeMap<String, Value>>,
    score: Option<f64>,
    reason: Option<&'a str>,
    reasoning: Option<&'a str>,
    evidence: &'a [String],
}

/// The outcome, with the thought and the evidence of the part that decided it.
fn ending<'a>(
    outcome: Option<&'a Outcome>,
    deciding: Option<&'a PartJudgement>,
) -> PrintedEnding<'a> {
    PrintedEnding {
        outcome: outcome.map(Outcome::name),
        label: outcome.and_then(Outcome::label),
        values: outcome.and_then(Outcome::verdict).map(|v| &v.values).filter(|v| !v.is_empty()),
        score: outcome.and_then(Outcome::score),
        reason: outcome.and_then(Outcome::reason),
        reasoning: deciding.and_then(|part| part.reasoning.as_deref()),
        evidence: deciding.map_or(&[], |part| &part.evidence),
    }
}

fn printed(one: &Named) -> PrintedJudgement<'_> {
    let judgement = &one.judged.judgement;
    let deciding = judgement.deciding_part();
    PrintedJudgement {
        criterion: &judgement.criterion,
        ending: ending(judgement.outcome.as_ref(), deciding),
        evidence_pictures: &one.pictures,
        unknown_evidence: deciding.map_or(&[], |part| &part.unknown_evidence),
        targets: judgement
            .parts
            .iter()
            .map(|part| PrintedTarget {
                name: &part.name,
                ending: ending(part.outcome.as_ref(), Some(part)),
            })
            .collect(),
        turns: judgement.turns,
        tool_calls: judgement.tool_calls,
        usage: judgement.usage,
        cost: judgement.cost,
        trace: one.judged.kept.as_ref().map(|kept| kept.folder.as_path()),
        digest: one.judged.kept.as_ref().map(|kept| &kept.digest),
    }
}

/// Where the pictures are that a verdict rests on.
fn evidence_pictures(
    judged: &Judged,
    run: &RunFolder,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let judgement = &judged.judgement;
    let deciding = judgement.deciding_part();
    let part = judgement.parts.iter().position(|part| Some(part) == deciding);
    let names = deciding.map_or(&[][..], |part| &part.evidence);
    let blobs = run.blobs();
    let mut found = BTreeMap::new();
    for event in &judged.events {
        let shown: Vec<(&String, &Hash)> = match &event.event {
            What::Asked(asked) if Some(asked.part) == part => asked.pictures().collect(),
            What::Observed(observed) if Some(observed.part) == part => {
                observed.pictures().collect()
            }
            _ => continue,
        };
        for (name, blob) in shown.into_iter().filter(|(name, _)| names.contains(name)) {
            found.insert(name.clone(), blobs.find(blob)?);
        }
    }
    Ok(found)
}

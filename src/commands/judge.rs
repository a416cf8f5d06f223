//! `deeplook judge`: one edit, one or two labels, and why.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anstyle::Style;
use anyhow::{Context as _, bail};
use deeplook_tools::Toolbox;
use serde::Serialize;

use crate::case::{EditCase, InputPicture};
use crate::cli::{CaseFacts, JudgeArgs};
use crate::config;
use crate::judge::{Judge, Judged};
use crate::message::Usage;
use crate::model::{AnyModel, Rules};
use crate::prompt::Criterion;
use crate::trace::{Bundle, Event, PartJudgement, RunFolder, ToolAnswer, What};
use crate::transcript::{Transcript, outcome_text, usage_text};
use crate::verdict::Outcome;

pub(super) fn run(args: &JudgeArgs) -> anyhow::Result<ExitCode> {
    let resolved = config::resolve(&args.options)?;
    let criteria = chosen(&resolved.pack, &args.criterion)?;
    let case = case(&args.source, &args.edited, &args.facts)?;
    let judge = Judge::new(
        resolved.model,
        resolved.record,
        resolved.pack,
        Toolbox::standard(),
        resolved.settings,
    );
    // A case that does not fit the mode is an error before anything is said or written.
    let parts: Result<Vec<_>, _> = criteria.iter().map(|id| judge.part_names(&case, id)).collect();
    let parts = parts?;
    let run = RunFolder::new(run_folder(args.trace.as_deref())?);
    if args.options.model == Rules::NAME {
        let dim = Style::new().dimmed();
        let note = "the offline judge `rules` is a baseline; ask a model with --model";
        say(args, &format!("{dim}{note}{dim:#}"));
    }
    let runtime = super::runtime()?;
    let mut all = Vec::new();
    for (id, parts) in criteria.iter().zip(parts) {
        all.push(runtime.block_on(judge_one(args, &judge, &case, id, parts, &run))?);
    }
    if args.json {
        let judgements = all.iter().map(printed).collect::<anyhow::Result<Vec<_>>>()?;
        super::print_json(&Printed { judgements, trace: run.path() })?;
    } else {
        say(args, &format!("\ntrace: {}", run.path().display()));
    }
    let failed = all
        .iter()
        .any(|judged| matches!(judged.judgement.outcome, Some(Outcome::Failed { .. }) | None));
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

/// The ids of the criteria to judge by.
fn chosen(pack: &crate::prompt::Pack, wanted: &str) -> anyhow::Result<Vec<String>> {
    if wanted == "both" {
        return Ok(pack.criteria().iter().map(|criterion| criterion.id.clone()).collect());
    }
    Ok(vec![pack.criterion(wanted)?.id.clone()])
}

/// Reads the pictures of a case and checks what was typed about it.
pub(super) fn case(source: &Path, edited: &Path, facts: &CaseFacts) -> anyhow::Result<EditCase> {
    if facts.instruction.trim().is_empty() {
        bail!("the instruction is empty; say with -i what the editor was told");
    }
    let (source, image) = (InputPicture::load(source)?, InputPicture::load(edited)?);
    let mut case = EditCase::new(source, image, &facts.instruction);
    case.reference = facts.reference.as_deref().map(InputPicture::load).transpose()?;
    case.id = edited.file_stem().map_or("case".into(), |name| name.to_string_lossy().into_owned());
    case.boxes = facts.boxes.clone();
    case.target = facts.target.clone();
    case.kind = facts.kind.clone();
    Ok(case)
}

/// The folder that was asked for, or a new one named by the time.
fn run_folder(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(folder) = asked {
        return Ok(folder.to_owned());
    }
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "-");
    let runs = Path::new("traces/runs");
    (1u32..1000)
        .map(|number| match number {
            1 => runs.join(format!("{time}-judge")),
            _ => runs.join(format!("{time}-judge-{number}")),
        })
        .find(|folder| !folder.exists())
        .context("there is no free name in traces/runs; name a folder with --trace")
}

/// A line for a person: on stdout, or on stderr where stdout is for a machine.
///
/// Where nobody reads any more, the judging goes on: the trace is written all the same.
fn say(args: &JudgeArgs, text: &str) {
    let _ = if args.json {
        writeln!(anstream::stderr(), "{text}")
    } else {
        writeln!(anstream::stdout(), "{text}")
    };
}

async fn judge_one(
    args: &JudgeArgs,
    judge: &Judge<AnyModel>,
    case: &EditCase,
    criterion: &str,
    parts: Vec<String>,
    run: &RunFolder,
) -> anyhow::Result<Judged> {
    let criterion: &Criterion = judge.pack().criterion(criterion)?;
    let bold = Style::new().bold().underline();
    say(args, &format!("\n{bold}{}{bold:#}", criterion.name));
    let form = criterion.form();
    let transcript = Transcript::new(form, parts, run.blobs());
    let watch = |event: &Event| {
        let lines = transcript.lines(event);
        if !lines.is_empty() {
            say(args, lines.trim_end());
        }
    };
    let judged = judge.judge(case, &criterion.id, run, &watch).await?;
    let judgement = &judged.judgement;
    let outcome = judgement.outcome.as_ref().map_or(String::new(), outcome_text);
    say(args, &format!("{}: {outcome}", criterion.name));
    let dim = Style::new().dimmed();
    say(
        args,
        &format!(
            "{dim}{} turns, {} tool calls, {}; digest {}{dim:#}",
            judgement.turns,
            judgement.tool_calls,
            usage_text(judgement.usage),
            judged.digest
        ),
    );
    Ok(judged)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    judgements: Vec<PrintedJudgement>,
    trace: &'a Path,
}

#[derive(Serialize)]
struct PrintedJudgement {
    criterion: String,
    outcome: Option<&'static str>,
    label: Option<String>,
    score: Option<f64>,
    reason: Option<String>,
    reasoning: Option<String>,
    evidence: Vec<String>,
    evidence_pictures: BTreeMap<String, PathBuf>,
    unknown_evidence: Vec<String>,
    targets: Vec<PrintedTarget>,
    turns: u32,
    tool_calls: u32,
    usage: Usage,
    trace: PathBuf,
    digest: String,
}

#[derive(Serialize)]
struct PrintedTarget {
    name: String,
    outcome: Option<&'static str>,
    label: Option<String>,
    score: Option<f64>,
    reason: Option<String>,
    reasoning: Option<String>,
    evidence: Vec<String>,
}

fn printed(judged: &Judged) -> anyhow::Result<PrintedJudgement> {
    let judgement = &judged.judgement;
    let outcome = judgement.outcome.as_ref();
    let deciding = judgement.deciding_part();
    let evidence = deciding.map(|part| part.evidence.clone()).unwrap_or_default();
    Ok(PrintedJudgement {
        criterion: judgement.criterion.clone(),
        outcome: outcome.map(Outcome::name),
        label: outcome.and_then(Outcome::label).map(str::to_owned),
        score: outcome.and_then(Outcome::score),
        reason: outcome.and_then(Outcome::reason).map(str::to_owned),
        reasoning: deciding.and_then(|part| part.reasoning.clone()),
        evidence_pictures: match judgement.parts.iter().position(|p| Some(p) == deciding) {
            Some(part) => pictures(judged, part, &evidence)?,
            None => BTreeMap::new(),
        },
        evidence,
        unknown_evidence: deciding.map(|part| part.unknown_evidence.clone()).unwrap_or_default(),
        targets: judgement.parts.iter().map(printed_target).collect(),
        turns: judgement.turns,
        tool_calls: judgement.tool_calls,
        usage: judgement.usage,
        trace: judged.trace.clone(),
        digest: judged.digest.to_string(),
    })
}

fn printed_target(part: &PartJudgement) -> PrintedTarget {
    let outcome = part.outcome.as_ref();
    PrintedTarget {
        name: part.name.clone(),
        outcome: outcome.map(Outcome::name),
        label: outcome.and_then(Outcome::label).map(str::to_owned),
        score: outcome.and_then(Outcome::score),
        reason: outcome.and_then(Outcome::reason).map(str::to_owned),
        reasoning: part.reasoning.clone(),
        evidence: part.evidence.clone(),
    }
}

/// Where the pictures are that a verdict rests on.
fn pictures(
    judged: &Judged,
    part: usize,
    names: &[String],
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let bundle = Bundle::read(&judged.trace)?;
    let blobs = bundle.blobs();
    let mut found = BTreeMap::new();
    for event in &bundle.events {
        if let What::Observed(observed) = &event.event
            && observed.part == part
            && let ToolAnswer::Saw { pictures, .. } = &observed.answer
        {
            for picture in pictures.iter().filter(|picture| names.contains(&picture.name)) {
                found.insert(picture.name.clone(), blobs.find(&picture.blob)?);
            }
        }
    }
    Ok(found)
}

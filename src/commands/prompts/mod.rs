//! `deeplook prompts`: what a model is told, for people who tune judges.

mod diff;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deeplook_tools::{BoxConvention, Toolbox};
use serde::Serialize;

use crate::case::EditCase;
use crate::cli::{CaseFacts, PromptsCommand, ShowPromptsArgs};
use crate::dataset::draw;
use crate::judge::{Judge, JudgeSettings};
use crate::message::{Dialect, Message, Part};
use crate::model::Rules;
use crate::prompt::{self, Files, Finding, Mode, Pack, PromptError, Turn, Variant, workshop};
use crate::protocol::Targets;
use crate::terminal::{self, Style};
use crate::{config, equipment, files};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

pub(super) fn run(command: &PromptsCommand) -> anyhow::Result<ExitCode> {
    match command {
        PromptsCommand::List { json } => list(*json),
        PromptsCommand::Show(args) => show(args),
        PromptsCommand::New { name, from } => new(name, from),
        PromptsCommand::Lint { pack, variant, json } => {
            lint(pack.as_deref(), variant.as_deref(), *json)
        }
        PromptsCommand::Diff { packs, variant, runs, json } => {
            diff::run(packs, variant, runs, *json)
        }
    }
}

/// A line of `list`.
#[derive(Serialize)]
struct Listed {
    id: String,
    hash: String,
    about: String,
    criteria: Vec<String>,
    rules: usize,
    rules_of_ours: usize,
    variants: Vec<Variant>,
}

fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let packs = Pack::list().map(Pack::embedded).collect::<Result<Vec<Pack>, PromptError>>()?;
    let listed: Vec<Listed> = packs
        .into_iter()
        .map(|pack| Listed {
            id: pack.id(),
            hash: pack.hash.to_string(),
            criteria: pack.criteria().iter().map(|criterion| criterion.id.clone()).collect(),
            rules: pack.rules().len(),
            rules_of_ours: pack.rules().iter().filter(|rule| rule.ours).count(),
            about: pack.about,
            variants: pack.variants,
        })
        .collect();
    if as_json {
        super::print_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::stdout();
    for Listed { id, hash, about, criteria, rules, rules_of_ours, variants } in listed {
        writeln!(out, "{BOLD}{id}{BOLD:#} {DIM}{}{DIM:#}\n  {about}", &hash[..12])?;
        let criteria = criteria.join(", ");
        writeln!(out, "  criteria: {criteria}; {rules} rules, {rules_of_ours} of them ours")?;
        for Variant { name, about } in variants {
            writeln!(out, "  variant {name}: {about}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A piece of what the model gets, in order.
#[derive(Serialize)]
struct Shown {
    part: String,
    text: String,
}

fn show(args: &ShowPromptsArgs) -> anyhow::Result<ExitCode> {
    let pack = Pack::find_varied(&args.prompts, args.variant.as_deref())?;
    let criterion = match (&args.criterion, pack.criteria().first()) {
        (Some(id), _) => pack.criterion(id)?.id.clone(),
        (None, Some(first)) => first.id.clone(),
        (None, None) => bail!("the prompt pack {} has no criterion; add one", pack.id()),
    };
    let case = match args.images.as_slice() {
        [source, edited] => super::judge::case(source, edited, &args.facts)?,
        [] => example(&args.facts)?,
        _ => bail!("give both pictures, the one before the edit and the one after it"),
    };
    let profile = args.profile.as_deref().map(config::profile).transpose()?;
    let default = profile.as_ref().map_or(Dialect::Native, |profile| profile.dialect);
    let dialect = args.dialect.unwrap_or(default);
    let mut record = Rules::record(dialect);
    let mut settings = JudgeSettings {
        mode: args.mode,
        targets: if args.per_target { Targets::Literal } else { Targets::Sensible },
        ..JudgeSettings::default()
    };
    if let Some(profile) = &profile {
        record.boxes = profile.boxes;
        settings.preparation = config::preparation(profile);
    }
    let toolbox = equipment::for_judge(args.mode, &args.tools.options())?;
    let judge = Judge::new(Rules::default(), record, pack, toolbox, settings);

    let mut shown = Vec::new();
    let prepared = judge.prepare(&case, &criterion).map_err(super::hints::of_judgement)?;
    for (name, request) in prepared.first_requests() {
        let first = shown.is_empty();
        for message in &request.messages {
            match message.as_ref() {
                Message::System(text) if first => shown.push(("system".to_owned(), text.clone())),
                Message::User { parts, .. } => shown.extend(parts.iter().map(|part| match part {
                    Part::Text(text) => (format!("task, {name}"), text.clone()),
                    Part::Picture(sent) => {
                        let bytes = format!("[{} bytes of {}]", sent.bytes.len(), sent.media);
                        (format!("picture, {name}"), format!("{}\n{bytes}", sent.caption))
                    }
                })),
                _ => {}
            }
        }
        if first && dialect == Dialect::Native && !request.tools.is_empty() {
            let tools = serde_json::to_string_pretty(&*request.tools)?;
            shown.insert(1, ("tools, declared to the server".to_owned(), tools));
        }
    }
    shown.extend(later(judge.pack(), &criterion, args.mode, dialect)?);
    if args.json {
        let shown: Vec<Shown> =
            shown.into_iter().map(|(part, text)| Shown { part, text }).collect();
        super::print_json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::stdout();
    for (part, text) in shown {
        heading(&mut out, &part)?;
        writeln!(out, "{text}\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the model may get in later turns.
fn later(
    pack: &Pack,
    criterion: &str,
    mode: Mode,
    dialect: Dialect,
) -> anyhow::Result<Vec<(String, String)>> {
    let criterion = pack.criterion(criterion)?;
    let tools_allowed = criterion.modes.get(&mode).is_some_and(|view| view.tools);
    let turn = Turn { dialect, tools_allowed, turns_left: None };
    let problem = "there is no final answer in it.";
    let repair = pack.repair(criterion, problem, turn)?;
    let mut later = vec![("after a reply that cannot be read".to_owned(), repair)];
    if tools_allowed {
        later.push(("in the last turn".to_owned(), pack.last_turn(criterion)?));
        later.push(("to a call after that".to_owned(), pack.no_more_tools(criterion)?));
    }
    Ok(later)
}

/// A drawn case that stands in where no pictures are given.
fn example(facts: &CaseFacts) -> anyhow::Result<EditCase> {
    if !facts.boxes.is_empty() || facts.reference.is_some() || facts.kind.is_some() {
        bail!("--box, --reference and --type belong to pictures; name the two before the options");
    }
    let drawn = draw::case(1, 0)?;
    let Some(edit) = drawn.edits.into_iter().next() else { bail!("no example could be drawn") };
    let instruction = match facts.instruction.as_str() {
        "" => drawn.instruction,
        typed => typed.to_owned(),
    };
    let case = EditCase::new(drawn.source, edit.picture, instruction);
    let case = case.with_reference(drawn.reference).with_targets(drawn.boxes);
    Ok(case)
}

fn heading(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{BOLD}──── {text} ────{BOLD:#}")
}

/// Copies a pack into a folder of its name.
fn new(name: &str, from: &str) -> anyhow::Result<ExitCode> {
    let path = Path::new(name);
    let Some(short) = path.file_name().and_then(|name| name.to_str()) else {
        bail!("{name:?} cannot be the name of a pack; use letters, digits and dashes");
    };
    if files::slug(short) != short.to_lowercase() {
        bail!("{short:?} cannot be the name of a pack; use letters, digits and dashes");
    }
    if path.exists() {
        bail!("{} is there already; choose another name", path.display());
    }
    let copy = workshop::renamed(workshop::files_of(from)?, short);
    let pack = Pack::checked(copy.clone())?;
    write_pack(path, &copy)?;
    let shown = path.display();
    writeln!(
        terminal::stdout(),
        "{}: a copy of {from} in {shown}/\nEdit its templates and rules.toml, then:\n  deeplook prompts lint {shown}\n  \
         deeplook prompts diff {from} {shown}",
        pack.id(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a pack into a folder of its own, which is complete or not there; an older one of ours is
/// replaced.
pub(super) fn write_pack(folder: &Path, pack: &Files) -> anyhow::Result<()> {
    let is_there = folder.exists();
    if is_there && workshop::files_of(&folder.display().to_string()).is_ok_and(|old| old == *pack) {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    files::create_folder(parent)?;
    let unfinished = tempfile::tempdir_in(parent)
        .with_context(|| format!("cannot write into {}", parent.display()))?;
    for (file, bytes) in pack {
        files::write_atomically(&unfinished.path().join(file), bytes)?;
    }
    if is_there {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot replace {}", folder.display()))?;
    }
    let written = unfinished.keep();
    std::fs::rename(&written, folder)
        .with_context(|| format!("cannot write {}", folder.display()))?;
    Ok(())
}

/// What is wrong with a pack, and how long its prompts are.
#[derive(Serialize)]
struct Linted {
    pack: String,
    findings: Vec<Finding>,
    tokens: Vec<Length>,
}

/// About how many tokens a prompt is.
#[derive(Serialize)]
struct Length {
    criterion: String,
    prompt: String,
    tokens: usize,
}

fn lint(pack: Option<&str>, variant: Option<&str>, as_json: bool) -> anyhow::Result<ExitCode> {
    let packs: Vec<&str> = pack.map_or_else(|| Pack::list().collect(), |pack| vec![pack]);
    let linted = packs.iter().map(|pack| lint_one(pack, variant));
    let linted = linted.collect::<anyhow::Result<Vec<_>>>()?;
    let found: usize = linted.iter().map(|linted| linted.findings.len()).sum();
    let code = if found == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if as_json {
        super::print_json(&linted)?;
        return Ok(code);
    }
    let mut out = terminal::stdout();
    for Linted { pack, findings, tokens } in &linted {
        for finding in findings {
            writeln!(out, "{DIM}{}/{DIM:#}{finding}", pack.trim_end_matches('/'))?;
        }
        for Length { criterion, prompt, tokens } in tokens {
            writeln!(out, "{DIM}{pack}: {criterion}, {prompt}: about {tokens} tokens{DIM:#}")?;
        }
    }
    match found {
        0 => writeln!(out, "{}: clean", packs.join(", "))?,
        1 => writeln!(out, "1 finding")?,
        n => writeln!(out, "{n} findings")?,
    }
    Ok(code)
}

fn lint_one(name: &str, variant: Option<&str>) -> anyhow::Result<Linted> {
    let files = workshop::files_of(name)?;
    let findings = prompt::lint(&files);
    let mut tokens = Vec::new();
    if findings.is_empty() {
        let tools = Toolbox::standard().specs(BoxConvention::PIXELS);
        let pack = Pack::from_files(files)?.varied(variant)?;
        tokens.extend(pack.prompts(&tools)?.into_iter().map(|prompt| Length {
            tokens: workshop::estimated_tokens(&prompt.text),
            criterion: prompt.criterion,
            prompt: prompt.title,
        }));
    }
    Ok(Linted { pack: name.to_owned(), findings, tokens })
}

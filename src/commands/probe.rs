//! `deeplook probe`: is the judge itself sound?

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deeplook_tools::picture::extension_of;
use serde_json::json;

use super::grid::Grid;
use super::progress::Watching;
use crate::case::{Facts, InputPicture};
use crate::cli::{self, ProbeArgs};
use crate::dataset::Entry;
use crate::dataset::case_file::CaseRecord;
use crate::files;
use crate::hash::Hash;
use crate::probe::{self, Answer, Assessment, Probe, ProbeCase};
use crate::prompt::{DEFAULT, Pack, workshop};
use crate::received;
use crate::run::{Run, RunSpec};
use crate::terminal::{self, Style};
use crate::trace::{OutcomeName, ResultLine};

pub(super) fn run(args: &ProbeArgs) -> anyhow::Result<ExitCode> {
    let pack_files = workshop::files_of(args.options.prompts.as_deref().unwrap_or(DEFAULT))?;
    let pack = Pack::checked(pack_files.clone())?.varied(args.options.variant.as_deref())?;
    let folder = args.run.clone().unwrap_or_else(|| default_folder(args));
    let (mut straight, mut turned) = (Vec::new(), Vec::new());
    for made in make_all(args)? {
        match made.probe {
            Probe::OtherOrder => turned.push(made),
            _ => straight.push(made),
        }
    }
    if straight.is_empty() {
        bail!("{} has no case to make probes of", args.dataset.display());
    }
    let mut answers = judge(args, &folder.join("probes"), &straight, None)?;
    if let Some(turned_pack) = workshop::with_pictures_reversed(pack_files) {
        let place = folder.join("turned-prompts");
        super::prompts::write_pack(&place, &turned_pack)?;
        answers.extend(judge(args, &folder.join("turned"), &turned, Some(&place))?);
    }
    let assessed = probe::assess(&answers, &pack, args.floor);
    let passed = assessed.iter().all(|one| one.passed == Some(true));
    if args.json {
        super::print_json(
            &json!({ "passed": passed, "floor": args.floor, "probes": assessed, "run": folder }),
        )?;
    } else {
        print(&assessed, &folder, args.floor)?;
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn default_folder(args: &ProbeArgs) -> PathBuf {
    let data = args.dataset.file_stem().unwrap_or_default().to_string_lossy();
    let name = files::slug(&format!("probe {data} {} {}", args.options.model.model, args.mode));
    Path::new("traces/runs").join(name)
}

/// The probes of the first cases that can be read.
fn make_all(args: &ProbeArgs) -> anyhow::Result<Vec<ProbeCase>> {
    let set = super::dataset::open(&args.dataset, &args.reading)?;
    let chosen: Vec<&Entry> = set.cases.iter().take(args.cases as usize).collect();
    let bar = super::progress("making probes", chosen.len())?;
    let mut made = Vec::new();
    for entry in &chosen {
        let editor = entry.edits().keys().next().unwrap_or_default();
        let loaded = entry.load(editor).map_err(|problem| {
            anyhow::anyhow!("case {:?}: {problem}; see `deeplook dataset check`", entry.case.id)
        })?;
        made.extend(probe::make(&loaded, other_instruction(entry, &set.cases)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(made)
}

/// An instruction that is about something else: of another type and target, if there is one.
fn other_instruction<'a>(entry: &Entry, cases: &'a [Entry]) -> Option<&'a str> {
    let case = &entry.case;
    let elsewhere = |other: &&Entry| {
        other.case.instruction != case.instruction && other.case.source != case.source
    };
    let unlike = |other: &&Entry| {
        let differs = |name| other.case.facts.get(name) != case.facts.get(name);
        differs(Facts::TYPE) && differs(Facts::TARGET)
    };
    let mut others = cases.iter().filter(elsewhere);
    let found = cases.iter().filter(elsewhere).find(unlike).or_else(|| others.next());
    found.map(|other| other.case.instruction.as_str())
}

/// Judges the probes like any other data set, and reads what came of it.
fn judge(
    args: &ProbeArgs,
    folder: &Path,
    probes: &[ProbeCase],
    prompts: Option<&Path>,
) -> anyhow::Result<Vec<Answer>> {
    let cases = write(&folder.join("cases"), probes)?;
    let (mut judge, access) = args.options.judge()?;
    if let Some(prompts) = prompts {
        judge.prompts = Some(prompts.display().to_string());
    }
    let mut spec = RunSpec { judge, ..RunSpec::of(cases) };
    spec.criteria = cli::criteria(&args.criterion);
    spec.modes = [args.mode].into();
    spec.keep.folder = Some(folder.join("run"));
    // Probes without boxes or a reference are fewer, not wrong.
    spec.data.allow_partial = true;
    let summary = super::eval::judge(Run::new(spec).access(access), Watching::new(true, false))?;
    if let Some(why) = &summary.reason {
        bail!("the judge was not asked everything, because {why}; the same command goes on");
    }
    let lines: Vec<ResultLine> = summary.lines.into_values().collect();
    let answered = [Some(OutcomeName::Verdict), Some(OutcomeName::Abstained)];
    if !lines.iter().any(|line| answered.contains(&line.outcome())) {
        let why = lines.iter().find_map(|line| line.reason.as_deref());
        bail!("the judge could not be asked: {}", why.unwrap_or("there is nothing to judge"));
    }
    let by_id: BTreeMap<&str, &ProbeCase> =
        probes.iter().map(|made| (made.case.id.as_str(), made)).collect();
    Ok(lines
        .into_iter()
        .filter_map(|line| {
            let made = by_id.get(line.case.as_str())?;
            let label = line.label;
            Some(Answer {
                probe: made.probe,
                case: made.of.clone(),
                criterion: line.criterion,
                label,
            })
        })
        .collect())
}

/// Writes the probes as a data set. What is there from before is the same: pictures are named by
/// their content.
fn write(folder: &Path, probes: &[ProbeCase]) -> anyhow::Result<PathBuf> {
    files::create_folder(folder)?;
    let save = |picture: &InputPicture| -> anyhow::Result<String> {
        let extension = extension_of(picture.bytes()).unwrap_or("png");
        let name = format!("{}.{extension}", &Hash::of(picture.bytes()).as_str()[..24]);
        let path = folder.join(&name);
        if !received::is_file(&path) {
            files::write_atomically(&path, picture.bytes())?;
        }
        Ok(name)
    };
    let mut text = String::new();
    for ProbeCase { case, .. } in probes {
        let editor = case.editor.clone().unwrap_or_default();
        let record = CaseRecord {
            id: case.id.clone(),
            source: save(&case.source)?,
            reference: case.reference().map(save).transpose()?,
            instruction: case.instruction.clone(),
            kind: case.facts.text(Facts::TYPE).map(Cow::into_owned),
            target: case.facts.text(Facts::TARGET).map(Cow::into_owned),
            boxes: case.targets().to_vec(),
            edits: BTreeMap::from([(editor, save(&case.edited)?)]),
        };
        text += &serde_json::to_string(&record)?;
        text.push('\n');
    }
    let path = folder.join("cases.jsonl");
    let known = received::read(&path, received::LARGEST_TABLE);
    if known.ok().as_deref() != Some(text.as_bytes()) {
        files::write_atomically(&path, text.as_bytes()).context("cannot write the probes")?;
    }
    Ok(path)
}

fn print(assessed: &[Assessment], folder: &Path, floor: f64) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let mut grid =
        Grid::new(4, ["probe", "criterion", "right is", "what was shown", "right", "told"]);
    for one in assessed {
        grid.row(vec![
            one.probe.to_owned(),
            one.criterion.clone(),
            one.expected.clone(),
            one.about.to_owned(),
            format!("{}/{}", one.right, one.told),
            format!("{}/{}", one.told, one.asked),
        ]);
    }
    write!(out, "{grid}")?;
    let failed: Vec<&Assessment> = assessed.iter().filter(|one| one.passed != Some(true)).collect();
    for one in &failed {
        let red = Style::BOLD_RED;
        let what = if one.passed.is_none() { "could not be told" } else { "not passed" };
        writeln!(
            out,
            "{red}{what}{red:#}: {}, {} ({} expected)",
            one.probe, one.criterion, one.expected
        )?;
        for (case, label) in one.wrong.iter().take(3) {
            writeln!(out, "    {case:?} got {label}")?;
        }
    }
    if failed.is_empty() {
        let green = Style::BOLD_GREEN;
        writeln!(
            out,
            "{green}passed{green:#}: at least {:.0} % right in every probe",
            100.0 * floor
        )?;
    }
    writeln!(out, "traces: {}", folder.display())?;
    Ok(())
}

//! `deeplook experiment run`: every cell of a plan is a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::super::grid::Grid;
use super::super::progress::Watching;
use super::super::{eval, hints, prompts, summary};
use super::{CellRecord, RECORD, Record, report};
use crate::cli::{self, RunExperimentArgs};
use crate::dataset::DataSet;
use crate::experiment::analysis::RightAnswers;
use crate::experiment::plan::{Cell, Plan, PromptsEntry};
use crate::experiment::sample;
use crate::model::{Rules, Simulated, is_known_server};
use crate::prompt::{Pack, workshop};
use crate::received;
use crate::run::{ASSUMPTIONS, DataSpec, JudgeSpec, Recordings, Run, RunSpec, ToolOptions, Total};
use crate::terminal::{self, Style};
use crate::transcript::cost_text;
use crate::{config, files};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

/// Edits by case and editor.
type Edits = BTreeSet<(String, String)>;

/// The folder of each pack by the name of its prompts; `None` for the usual one.
type Packs = BTreeMap<String, Option<PathBuf>>;

pub(super) fn run(args: &RunExperimentArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::load(&args.plan, args.from_traces.as_deref())?;
    let folder = args.out.clone().unwrap_or_else(|| {
        Path::new("traces/runs").join(files::slug(&format!("experiment {}", plan.name)))
    });
    let cells = plan.cells();
    let edits = chosen_edits(&plan, args)?;
    // All cells are looked at before the first is judged and anything is written.
    let scratch = tempfile::tempdir().context("cannot write a temporary folder")?;
    let packs = write_packs(&plan, scratch.path())?;
    let runs = cells.iter().map(|cell| cell_run(cell, &plan, &folder, &packs, &edits, args));
    if args.only_plan {
        return show_plan(&cells, runs);
    }
    check_servers(&plan, &args.allow_servers)?;
    let mut places = Vec::new();
    for (cell, run) in cells.iter().zip(runs) {
        let run = run.and_then(|run| run.check().map_err(hints::told));
        let run = run.with_context(|| in_cell(cell))?.unwrap_or_default();
        // Where the settings are others now, it is another folder than the last time.
        let run = run.strip_prefix(&folder).map_or(run.clone(), Path::to_owned);
        places.push(CellRecord { name: cell.name.clone(), run });
    }

    files::create_folder(&folder)?;
    let record = Record {
        name: plan.name.clone(),
        labels: plan.labels.as_deref().map(|labels| keep_labels(labels, &folder)).transpose()?,
        baseline: plan.baseline_cell().map_err(anyhow::Error::msg)?,
        cells: places,
        edits: edits.len(),
    };
    files::write_atomically(&folder.join(RECORD), &serde_json::to_vec_pretty(&record)?)?;
    let packs = write_packs(&plan, &folder.join("prompts"))?;
    for (number, cell) in cells.iter().enumerate() {
        let mark = if number == record.baseline { ", the baseline" } else { "" };
        let count = format!("cell {} of {}{mark}", number + 1, cells.len());
        writeln!(terminal::stderr(), "{BOLD}{}{BOLD:#} {DIM}{count}{DIM:#}", cell.name)?;
        let run = cell_run(cell, &plan, &folder, &packs, &edits, args)?;
        let summary = eval::judge(run, Watching::new(args.quiet, false));
        let summary = summary.with_context(|| in_cell(cell))?;
        if !args.quiet {
            writeln!(terminal::stderr(), "{}", summary::counted(&summary))?;
        }
        if let Some(why) = &summary.reason {
            writeln!(
                terminal::stderr(),
                "the experiment is not finished, because in the cell {:?} {why}; the same command goes on",
                cell.name
            )?;
            return Ok(ExitCode::from(1));
        }
    }
    report::run(&folder, None, None, false)
}

fn in_cell(cell: &Cell) -> String {
    format!("in the cell {:?}", cell.name)
}

/// A plan may be anybody's: whom it asks with the user's keys, beyond this machine and the servers
/// that have keys of their own, is the user's to say.
fn check_servers(plan: &Plan, allowed: &[String]) -> anyhow::Result<()> {
    for entry in &plan.models {
        let model = entry.model.as_deref().unwrap_or(&entry.name);
        if [Rules::NAME, Simulated::NAME].contains(&model) {
            continue;
        }
        let base_url = entry.base_url.clone().or_else(config::usual_server);
        let profile = config::profile_for(entry.profile.as_deref(), model, base_url.as_deref())?;
        let Some(url) = base_url.or(profile.base_url) else { continue };
        let key = profile.key_env.as_deref();
        let is_wanted =
            |by_user: &String| by_user.trim_end_matches('/') == url.trim_end_matches('/');
        let by_user =
            allowed.iter().cloned().chain(config::usual_server()).any(|by| is_wanted(&by));
        if !by_user && !is_known_server(&url, key) {
            bail!(
                "the plan asks {model:?} at {url:?}, with the key in {}; if that is what you want, allow it with \
                 --allow-server {url}",
                key.unwrap_or("no variable")
            );
        }
    }
    Ok(())
}

/// A copy of the labels in the experiment's folder: its record names no file elsewhere.
fn keep_labels(labels: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let name = match labels.extension() {
        Some(ending) => Path::new("labels").with_extension(ending),
        None => PathBuf::from("labels"),
    };
    let text = received::read_named(labels, received::LARGEST_TABLE)
        .with_context(|| format!("cannot read {}", labels.display()))?;
    files::write_atomically(&folder.join(&name), &text)?;
    Ok(name)
}

/// The edits that every cell judges.
fn chosen_edits(plan: &Plan, args: &RunExperimentArgs) -> anyhow::Result<Edits> {
    let (from, cases) = match (&plan.cases, &plan.from_traces) {
        (Some(path), _) => (path, DataSet::open(path, &data(plan, args)?.options())?.cases),
        (None, Some(run)) => (run, Recordings::open(run)?.cases),
        (None, None) => bail!("the plan names neither cases nor traces"),
    };
    let truth = match &plan.labels {
        Some(path) => {
            let PromptsEntry { pack, variant, .. } = &plan.prompts[0];
            super::truth(path, &super::rankings(pack, variant.as_deref())?)?
        }
        None => RightAnswers::new(),
    };
    let choices = super::choices(&cases, &truth);
    let chosen: Edits = match &plan.sample {
        Some(sample) => sample::choose(&choices, sample).into_iter().collect(),
        None => choices.into_iter().map(|choice| (choice.case, choice.editor)).collect(),
    };
    if chosen.is_empty() {
        bail!(
            "{} has no edits to judge; name their folder with `edits` in the plan",
            from.display()
        );
    }
    Ok(chosen)
}

/// The data that every cell reads.
fn data(plan: &Plan, args: &RunExperimentArgs) -> anyhow::Result<DataSpec> {
    let typed = args.reading.data(plan.cases.as_deref())?;
    Ok(DataSpec {
        from_traces: plan.from_traces.clone(),
        edits: typed.edits.or_else(|| plan.edits.clone()),
        map: plan.map.clone().replaced_by(typed.map),
        preset: typed.preset.or_else(|| plan.preset.clone()),
        ..typed
    })
}

/// The run of a cell.
fn cell_run(
    cell: &Cell,
    plan: &Plan,
    folder: &Path,
    packs: &Packs,
    edits: &Edits,
    args: &RunExperimentArgs,
) -> anyhow::Result<Run<'static>> {
    let Cell { model, tools, .. } = cell;
    let mut judge = JudgeSpec {
        model: model.model.clone().unwrap_or_else(|| model.name.clone()),
        profile: model.profile.clone(),
        dialect: model.dialect,
        params: model.params.clone(),
        ..JudgeSpec::default()
    };
    let access = cli::served_at(&mut judge, model.base_url.as_deref());
    args.bounds.apply(&mut judge);
    judge.max_turns = tools.max_turns.or(judge.max_turns);
    judge.max_tool_calls = tools.max_tool_calls.or(judge.max_tool_calls);
    judge.tools = ToolOptions {
        detector: tools.detector.clone(),
        enhancer: tools.enhancer.clone(),
        without: tools.without.clone(),
        tool_settings: tools.settings.clone(),
    };
    let pack = packs.get(&cell.prompts.name).cloned().flatten();
    judge.prompts = pack.map(|folder| folder.display().to_string());
    judge.variant = cell.prompts.variant.clone();
    let mut spec = RunSpec { judge, ..RunSpec::default() };
    spec.data = data(plan, args)?;
    args.selection.apply(&mut spec);
    args.going.apply(&mut spec);
    let criteria: Vec<String> = plan.criterion.split(',').map(|id| id.trim().to_owned()).collect();
    spec.criteria = cli::criteria(&criteria);
    spec.modes = [cell.mode].into();
    spec.repeats = plan.repeats;
    spec.select.only = Some(edits.clone());
    spec.keep.folder = Some(folder.join("cells").join(&cell.folder));
    Ok(Run::new(spec).access(access))
}

/// Every pack of the plan, checked; those with files exchanged are written into `folder`.
fn write_packs(plan: &Plan, folder: &Path) -> anyhow::Result<Packs> {
    let names: Vec<&str> = plan.prompts.iter().map(|entry| entry.name.as_str()).collect();
    let mut packs = Packs::new();
    for (entry, name) in plan.prompts.iter().zip(files::slugs(&names)) {
        let pack = match write_pack(entry, &name, &folder.join(&name)) {
            Ok(pack) => pack,
            Err(error) => return Err(error.context(format!("the prompts {:?}", entry.name))),
        };
        packs.insert(entry.name.clone(), pack);
    }
    Ok(packs)
}

/// As large as a file of a pack may be.
const LARGEST_TEMPLATE: u64 = 1 << 20;

fn write_pack(entry: &PromptsEntry, name: &str, place: &Path) -> anyhow::Result<Option<PathBuf>> {
    if entry.replace.is_empty() && entry.pack == crate::prompt::DEFAULT {
        return Ok(None);
    }
    let mut pack = workshop::files_of(&entry.pack)?;
    if entry.replace.is_empty() {
        Pack::checked(pack)?.varied(entry.variant.as_deref())?;
        return Ok(Some(PathBuf::from(&entry.pack)));
    }
    for (file, path) in &entry.replace {
        if !pack.contains_key(file) {
            let known: Vec<&str> = pack.keys().map(String::as_str).collect();
            bail!("they replace {file:?}, which is none of {}", known.join(", "));
        }
        let bytes = received::read_named(path, LARGEST_TEMPLATE).with_context(|| {
            format!("cannot read {}, which they take for {file:?}", path.display())
        })?;
        pack.insert(file.clone(), bytes);
    }
    let pack = workshop::renamed(pack, name);
    Pack::checked(pack.clone())?.varied(entry.variant.as_deref())?;
    prompts::write_pack(place, &pack)?;
    Ok(Some(place.to_owned()))
}

/// The matrix, with what each cell and all together will ask for.
fn show_plan<'a>(
    cells: &[Cell],
    runs: impl Iterator<Item = anyhow::Result<Run<'a>>>,
) -> anyhow::Result<ExitCode> {
    let head = ["cell", "judgements", "pictures", "calls", "tokens in", "tokens out", "cost"];
    let mut grid = Grid::new(1, head);
    let mut row = |name: &str, total: &Total| {
        let Total { judgements, pictures, calls, prompt_tokens, completion_tokens, cost } = total;
        let numbers = [judgements, pictures, calls, prompt_tokens, completion_tokens];
        let mut cells = vec![name.to_owned()];
        cells.extend(numbers.map(u64::to_string));
        cells.push(cost_text(*cost));
        grid.row(cells);
    };
    let mut all = Total { cost: Some(0.0), ..Total::default() };
    for (cell, run) in cells.iter().zip(runs) {
        let forecast = run.and_then(|run| run.forecast().map_err(hints::told));
        let forecast = forecast.with_context(|| in_cell(cell))?;
        row(&cell.name, &forecast.total);
        all = all.plus(forecast.total);
    }
    row("all together", &all);
    let mut out = terminal::stdout();
    write!(out, "{grid}")?;
    if all.calls > 0 {
        writeln!(out, "{ASSUMPTIONS}")?;
    }
    writeln!(out, "nobody was asked, and nothing was written")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_plan_asks_is_the_users_to_say() {
        let check = |model: &str, allowed: &[&str]| {
            let plan = format!("name = \"x\"\ncases = \"set\"\n[[models]]\n{model}\n");
            let plan: Plan = toml::from_str(&plan).unwrap();
            let allowed: Vec<String> = allowed.iter().map(|url| (*url).to_owned()).collect();
            check_servers(&plan, &allowed)
        };
        check("name = \"rules\"", &[]).unwrap();
        check("name = \"gpt-5.1\"", &[]).unwrap();
        check("name = \"m\"\nprofile = \"ollama\"", &[]).unwrap();
        check("name = \"m\"\nbase_url = \"http://localhost:9/v1\"", &[]).unwrap();
        let theirs = "name = \"m\"\nbase_url = \"https://gpu.example/v1\"";
        let error = check(theirs, &["https://gpu.example"]).unwrap_err().to_string();
        assert!(error.contains("OPENAI_API_KEY") && error.contains("--allow-server"), "{error}");
        check(theirs, &["https://other.example/v1", "https://gpu.example/v1/"]).unwrap();
    }
}

//! `deeplook experiment run`: every cell of a plan is a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::Style;
use anyhow::{Context as _, bail};

use super::super::forecast::Total;
use super::super::grid::Grid;
use super::super::{eval, prompts};
use super::{CellRecord, RECORD, Record, report};
use crate::cli::{EvalArgs, RunExperimentArgs};
use crate::dataset::{DataSet, LoadOptions};
use crate::experiment::analysis::Truth;
use crate::experiment::plan::{Cell, Plan, PromptsEntry};
use crate::experiment::sample;
use crate::files;
use crate::prompt::{Pack, workshop};
use crate::run::{ASSUMPTIONS, Recordings};
use crate::transcript::cost_text;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

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
    let edits = chosen_edits(&plan)?;
    // All cells are looked at before the first is judged and anything is written.
    let scratch = tempfile::tempdir().context("cannot write a temporary folder")?;
    let packs = write_packs(&plan, scratch.path())?;
    let evals = evals(&cells, &plan, &folder, &packs, &edits, args)?;
    if args.only_plan {
        return show_plan(&evals);
    }
    for (cell, eval) in &evals {
        eval::check(eval).with_context(|| in_cell(cell))?;
    }

    let place = |cell: &Cell| CellRecord { name: cell.name.clone(), run: place(cell) };
    let record = Record {
        name: plan.name.clone(),
        labels: plan.labels.as_deref().map(std::path::absolute).transpose()?,
        baseline: plan.baseline_cell().map_err(anyhow::Error::msg)?,
        cells: cells.iter().map(place).collect(),
        edits: edits.len(),
    };
    files::create_folder(&folder)?;
    files::write_atomically(&folder.join(RECORD), &serde_json::to_vec_pretty(&record)?)?;
    let packs = write_packs(&plan, &folder.join("prompts"))?;
    for (number, (cell, eval)) in
        self::evals(&cells, &plan, &folder, &packs, &edits, args)?.into_iter().enumerate()
    {
        let mark = if number == record.baseline { ", the baseline" } else { "" };
        let count = format!("cell {} of {}{mark}", number + 1, cells.len());
        writeln!(anstream::stderr(), "{BOLD}{}{BOLD:#} {DIM}{count}{DIM:#}", cell.name)?;
        let summary = eval::judge(&eval).with_context(|| in_cell(cell))?;
        if !eval.quiet {
            writeln!(anstream::stderr(), "{}", summary.counted())?;
        }
        if let Some(why) = summary.stopped() {
            writeln!(
                anstream::stderr(),
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

fn place(cell: &Cell) -> PathBuf {
    Path::new("cells").join(&cell.folder)
}

/// The edits that every cell judges.
fn chosen_edits(plan: &Plan) -> anyhow::Result<Edits> {
    let (from, cases) = match (&plan.cases, &plan.from_traces) {
        (Some(path), _) => {
            let options = LoadOptions { edits: plan.edits.clone(), ..LoadOptions::default() };
            (path, DataSet::open(path, &options)?.cases)
        }
        (None, Some(run)) => (run, Recordings::open(run)?.cases),
        (None, None) => bail!("the plan names neither cases nor traces"),
    };
    let truth = plan.labels.as_deref().map_or(Ok(Truth::new()), super::truth)?;
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

/// The runs of all cells, as `deeplook eval` would be told.
fn evals<'a>(
    cells: &'a [Cell],
    plan: &Plan,
    folder: &Path,
    packs: &Packs,
    edits: &Edits,
    args: &RunExperimentArgs,
) -> anyhow::Result<Vec<(&'a Cell, EvalArgs)>> {
    let one = |cell: &'a Cell| {
        let mut eval =
            EvalArgs::with(plan.cases.as_deref(), plan.from_traces.as_deref(), &args.more)?;
        eval.reading.edits = plan.edits.clone();
        eval.run = Some(folder.join(place(cell)));
        eval.criterion = plan.criterion.clone();
        eval.repeats = plan.repeats;
        eval.mode = vec![cell.mode];
        eval.only = Some(edits.clone());
        eval.plan = args.only_plan;
        let options = &mut eval.options;
        options.model = cell.model.model.clone().unwrap_or_else(|| cell.model.name.clone());
        options.base_url_flag = cell.model.base_url.clone();
        options.profile = cell.model.profile.clone();
        options.dialect = cell.model.dialect;
        let params = cell.model.params.iter();
        options.params = params.map(|(key, value)| format!("{key}={value}")).collect();
        options.prompts = packs.get(&cell.prompts.name).cloned().flatten();
        options.tools.detector = cell.tools.detector.clone();
        options.tools.enhancer = cell.tools.enhancer.clone();
        options.tools.without = cell.tools.without.clone();
        options.tools.tool_settings = cell.tools.settings.clone();
        options.max_turns = cell.tools.max_turns.unwrap_or(options.max_turns);
        options.max_tool_calls = cell.tools.max_tool_calls.unwrap_or(options.max_tool_calls);
        anyhow::Ok((cell, eval))
    };
    cells.iter().map(one).collect()
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

fn write_pack(entry: &PromptsEntry, name: &str, place: &Path) -> anyhow::Result<Option<PathBuf>> {
    if entry.replace.is_empty() && entry.pack == crate::prompt::DEFAULT {
        return Ok(None);
    }
    let mut pack = workshop::files_of(&entry.pack)?;
    let is_folder = !Pack::list().any(|id| id == entry.pack);
    if entry.replace.is_empty() && is_folder {
        Pack::checked(pack)?;
        return Ok(Some(PathBuf::from(&entry.pack)));
    }
    for (file, path) in &entry.replace {
        if !pack.contains_key(file) {
            let known: Vec<&str> = pack.keys().map(String::as_str).collect();
            bail!("they replace {file:?}, which is none of {}", known.join(", "));
        }
        let bytes = fs::read(path).with_context(|| {
            format!("cannot read {}, which they take for {file:?}", path.display())
        })?;
        pack.insert(file.clone(), bytes);
    }
    let pack = workshop::renamed(pack, name);
    Pack::checked(pack.clone())?;
    prompts::write_pack(place, &pack)?;
    Ok(Some(place.to_owned()))
}

/// The matrix, with what each cell and all together will ask for.
fn show_plan(evals: &[(&Cell, EvalArgs)]) -> anyhow::Result<ExitCode> {
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
    for (cell, eval) in evals {
        let forecast = eval::forecast(eval).with_context(|| in_cell(cell))?;
        row(&cell.name, &forecast.total);
        all = all.plus(forecast.total);
    }
    row("all together", &all);
    let mut out = anstream::stdout().lock();
    write!(out, "{grid}")?;
    if all.calls > 0 {
        writeln!(out, "{ASSUMPTIONS}")?;
    }
    writeln!(out, "nobody was asked, and nothing was written")?;
    Ok(ExitCode::SUCCESS)
}

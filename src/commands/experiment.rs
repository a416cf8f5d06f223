//! `deeplook experiment`: prompts, models, modes and tools against each other on the same edits.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::Style;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::grid::Grid;
use crate::agreement::{Labels, Scale, Truth as Annotators};
use crate::cli::{EvalArgs, ExperimentCommand, RunExperimentArgs};
use crate::dataset::{DataSet, LoadOptions};
use crate::experiment::analysis::{self, Analysis, CellLines, Comparison, Truth};
use crate::experiment::page;
use crate::experiment::plan::{Cell, Plan, PromptsEntry};
use crate::experiment::sample::{self, Choice};
use crate::files;
use crate::prompt::{Pack, workshop};
use crate::stats::Finding;
use crate::trace;
use crate::transcript::cost_text;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
/// What an experiment's folder is known by.
const RECORD: &str = "experiment.json";

pub(super) fn run(command: &ExperimentCommand) -> anyhow::Result<ExitCode> {
    match command {
        ExperimentCommand::Run(args) => run_plan(args),
        ExperimentCommand::Report { folder, labels, out, json } => {
            report(folder, labels.as_deref(), out.as_deref(), *json)
        }
        ExperimentCommand::Watch(args) => super::watch::run(args),
    }
}

/// `experiment.json`: what the report must know.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    name: String,
    /// What is right, if a file says it.
    labels: Option<PathBuf>,
    /// The number of the cell that the others are compared with.
    baseline: usize,
    cells: Vec<CellRecord>,
    /// How many edits every cell judges.
    edits: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct CellRecord {
    name: String,
    /// The folder of its run, under the experiment's.
    run: PathBuf,
}

fn run_plan(args: &RunExperimentArgs) -> anyhow::Result<ExitCode> {
    let plan = Plan::load(&args.plan)?;
    let folder = args.out.clone().unwrap_or_else(|| {
        Path::new("traces/runs").join(files::slug(&format!("experiment {}", plan.name)))
    });
    let cells = plan.cells();
    let edits = chosen_edits(&plan)?;
    let baseline = plan.baseline_cell().map_err(anyhow::Error::msg)?;
    let record = Record {
        name: plan.name.clone(),
        labels: plan.labels.as_deref().map(std::path::absolute).transpose()?,
        baseline,
        cells: cells
            .iter()
            .map(|cell| CellRecord { name: cell.name.clone(), run: place(cell) })
            .collect(),
        edits: edits.len(),
    };
    if !args.only_plan {
        let text = serde_json::to_vec_pretty(&record)?;
        files::create_folder(&folder)?;
        files::write_atomically(&folder.join(RECORD), &text)?;
    }
    for (number, cell) in cells.iter().enumerate() {
        let mark = if number == baseline { ", the baseline" } else { "" };
        let count = format!("cell {} of {}{mark}", number + 1, cells.len());
        writeln!(anstream::stderr(), "{BOLD}{}{BOLD:#} {DIM}{count}{DIM:#}", cell.name)?;
        let eval = eval_of(cell, &plan, &folder, &edits, args)?;
        super::eval::run(&eval).with_context(|| format!("in the cell {:?}", cell.name))?;
    }
    if args.only_plan {
        return Ok(ExitCode::SUCCESS);
    }
    report(&folder, None, None, false)
}

fn place(cell: &Cell) -> PathBuf {
    Path::new("cells").join(&cell.folder)
}

/// The edits that every cell judges.
fn chosen_edits(plan: &Plan) -> anyhow::Result<BTreeSet<(String, String)>> {
    let options = LoadOptions { edits: plan.edits.clone(), ..LoadOptions::default() };
    let set = DataSet::open(&plan.cases, &options)?;
    let labels = match &plan.labels {
        Some(path) => truth(path)?,
        None => Truth::new(),
    };
    let mut choices = Vec::new();
    for case in &set.cases {
        let area = case.boxes.iter().map(|area| area.area()).reduce(f64::min);
        for editor in case.edits.keys() {
            let label = labels
                .iter()
                .find(|((of, by, _), _)| *of == case.id && by == editor)
                .map(|(_, label)| label.clone());
            choices.push(Choice {
                case: case.id.clone(),
                editor: editor.clone(),
                kind: case.kind.clone(),
                label,
                area,
            });
        }
    }
    let chosen: BTreeSet<_> = match &plan.sample {
        Some(sample) => sample::choose(&choices, sample).into_iter().collect(),
        None => choices.into_iter().map(|choice| (choice.case, choice.editor)).collect(),
    };
    if chosen.is_empty() {
        bail!(
            "{} has no edits to judge; name their folder with `edits` in the plan",
            plan.cases.display()
        );
    }
    Ok(chosen)
}

/// The run of a cell, as `deeplook eval` would be told.
fn eval_of(
    cell: &Cell,
    plan: &Plan,
    folder: &Path,
    edits: &BTreeSet<(String, String)>,
    args: &RunExperimentArgs,
) -> anyhow::Result<EvalArgs> {
    let mut eval = EvalArgs::with(&plan.cases, &args.more)?;
    eval.data.edits = plan.edits.clone();
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
    options.params =
        cell.model.params.iter().map(|(key, value)| format!("{key}={value}")).collect();
    options.prompts = prompts_of(&cell.prompts, folder, args.only_plan)?;
    options.tools.detector = cell.tools.detector.clone();
    options.tools.enhancer = cell.tools.enhancer.clone();
    options.tools.without = cell.tools.without.clone();
    options.tools.tool_settings = cell.tools.settings.clone();
    if let Some(turns) = cell.tools.max_turns {
        options.max_turns = turns;
    }
    if let Some(calls) = cell.tools.max_tool_calls {
        options.max_tool_calls = calls;
    }
    Ok(eval)
}

/// The folder of the cell's pack; `None` for the usual one. A pack with files exchanged is written
/// beside the cells.
fn prompts_of(
    entry: &PromptsEntry,
    folder: &Path,
    only_plan: bool,
) -> anyhow::Result<Option<PathBuf>> {
    let is_built_in = Pack::list().any(|id| id == entry.pack);
    if entry.replace.is_empty() && !is_built_in {
        return Ok(Some(PathBuf::from(&entry.pack)));
    }
    if entry.replace.is_empty() && entry.pack == crate::prompt::DEFAULT {
        return Ok(None);
    }
    let mut pack = workshop::files_of(&entry.pack)?;
    for (name, path) in &entry.replace {
        if !pack.contains_key(name) {
            let known: Vec<&str> = pack.keys().map(String::as_str).collect();
            bail!(
                "the prompts {:?} replace {name:?}, which is none of {}",
                entry.name,
                known.join(", ")
            );
        }
        let bytes = fs::read(path).with_context(|| {
            format!(
                "cannot read {}, which the prompts {:?} take for {name:?}",
                path.display(),
                entry.name
            )
        })?;
        pack.insert(name.clone(), bytes);
    }
    let pack = workshop::renamed(pack, &files::slug(&entry.name));
    Pack::checked(pack.clone()).with_context(|| format!("the prompts {:?}", entry.name))?;
    let place = match only_plan {
        true => std::env::temp_dir().join(format!("deeplook-plan-{}", std::process::id())),
        false => folder.to_owned(),
    };
    let place = place.join("prompts").join(files::slug(&entry.name));
    super::prompts::write_pack(&place, &pack)?;
    Ok(Some(place))
}

/// What is right: what most annotators say.
fn truth(path: &Path) -> anyhow::Result<Truth> {
    let pack = Pack::embedded(crate::prompt::DEFAULT)?;
    let labels = Labels::read(path, &Scale::of_pack(&pack))?;
    let mut truth = Truth::new();
    for item in labels.items.keys() {
        let rank = labels.truth(item, Annotators::Majority);
        let criterion = pack.criterion(&item.criterion)?;
        let label = criterion.labels().iter().find(|label| Some(f64::from(label.rank)) == rank);
        if let Some(label) = label {
            let unit = (item.case.clone(), item.editor.clone(), item.criterion.clone());
            truth.insert(unit, label.name.clone());
        }
    }
    Ok(truth)
}

fn report(
    folder: &Path,
    labels: Option<&Path>,
    out: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let path = folder.join(RECORD);
    let text = fs::read(&path).with_context(|| {
        format!("{} is no experiment: cannot read {}", folder.display(), path.display())
    })?;
    let record: Record = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not what `experiment run` writes", path.display()))?;
    let cells = record.cells.iter().map(|cell| {
        let lines = match folder.join(&cell.run) {
            run if run.is_dir() => trace::read_results(&run)?,
            _ => Vec::new(),
        };
        anyhow::Ok(CellLines { name: cell.name.clone(), lines })
    });
    let cells = cells.collect::<anyhow::Result<Vec<_>>>()?;
    let truth = match labels.or(record.labels.as_deref()) {
        Some(path) => truth(path)?,
        None => Truth::new(),
    };
    let pack = Pack::embedded(crate::prompt::DEFAULT)?;
    let analysis = analysis::analyse(&cells, record.baseline, &truth, &pack);
    match out {
        _ if json => super::print_json(&analysis)?,
        Some(out) => {
            let page = page::render(&record.name, &analysis, !truth.is_empty())?;
            files::write_atomically(out, page.as_bytes())?;
            writeln!(anstream::stderr(), "wrote {}", out.display())?;
        }
        None => print(&record, &analysis, folder, !truth.is_empty())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(record: &Record, analysis: &Analysis, folder: &Path, known: bool) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {} cells, {} edits each",
        record.name,
        record.cells.len(),
        record.edits
    )?;
    if !known {
        writeln!(
            out,
            "nobody said what is right: name a file of labels with --labels, to know which is better"
        )?;
    }
    let mut grid = Grid::new(
        2,
        ["cell", "criterion", "right", "labels off", "verdicts", "turns", "cost each"],
    );
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    for score in &analysis.scores {
        grid.row(vec![
            score.cell.clone(),
            score.criterion.clone(),
            score.agreement.to_string(),
            number(score.off_by),
            format!("{}/{}", score.coverage.answered, score.coverage.all),
            number(score.turns),
            cost_text(score.cost),
        ]);
    }
    writeln!(out, "{grid}")?;
    if analysis.comparisons.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "against {:?}, over the edits on which both have a verdict; p values are corrected for {} comparisons",
        analysis.baseline,
        analysis.comparisons.len()
    )?;
    let mut grid =
        Grid::new(3, ["cell", "criterion", "is", "more right by", "p", "edits", "flips"]);
    for comparison in &analysis.comparisons {
        grid.row(vec![
            comparison.cell.clone(),
            comparison.criterion.clone(),
            finding(comparison.finding).to_owned(),
            comparison.difference.to_string(),
            comparison.corrected_p.map_or("–".to_owned(), |p| format!("{p:.3}")),
            comparison.edits.to_string(),
            comparison.flips.len().to_string(),
        ]);
    }
    writeln!(out, "{grid}")?;
    for comparison in &analysis.comparisons {
        remarks(&mut out, comparison)?;
    }
    writeln!(
        out,
        "{DIM}a page with all flips: deeplook experiment report {} --out report.html{DIM:#}",
        folder.display()
    )?;
    Ok(())
}

/// What the tables do not show.
fn remarks(out: &mut impl std::io::Write, comparison: &Comparison) -> anyhow::Result<()> {
    let (cell, criterion) = (&comparison.cell, &comparison.criterion);
    for (list, word) in [(&comparison.worse_on, "worse"), (&comparison.better_on, "better")] {
        for one in list {
            let kind = if one.kind.is_empty() { "edits without a type" } else { &one.kind };
            writeln!(
                out,
                "{cell}, {criterion}: {word} on {kind} ({}, not corrected)",
                one.difference
            )?;
        }
    }
    if let (Finding::NoEvidence, Some(needed)) = (comparison.finding, comparison.cases_needed) {
        writeln!(
            out,
            "{cell}, {criterion}: to be sure of such a difference takes about {needed} cases"
        )?;
    }
    Ok(())
}

pub(super) fn finding(finding: Finding) -> &'static str {
    match finding {
        Finding::Better => "better",
        Finding::Worse => "worse",
        Finding::NoEvidence => "no evidence",
    }
}

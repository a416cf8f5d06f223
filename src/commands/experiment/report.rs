//! `deeplook experiment report`: how each cell did, and what is more than luck.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::super::grid::Grid;
use super::super::{print_json, read_run, report};
use super::{CellRecord, RECORD, Record, truth};
use crate::experiment::analysis::{self, Analysis, CellLines, Comparison, RightAnswers};
use crate::experiment::page;
use crate::files;
use crate::prompt::Pack;
use crate::received;
use crate::report::Run;
use crate::stats::Finding;
use crate::terminal::{self, Style};
use crate::trace::Rubrics;
use crate::transcript::cost_text;
use crate::visible::visible_line;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

pub(super) fn run(
    folder: &Path,
    labels: Option<&Path>,
    out: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let path = folder.join(RECORD);
    let text = received::read(&path, received::LARGEST_TABLE).with_context(|| {
        format!("{} is no experiment: cannot read {}", folder.display(), path.display())
    })?;
    let record: Record = serde_json::from_slice(&text)
        .with_context(|| format!("{} is not what `experiment run` writes", path.display()))?;
    // An experiment may be anybody's: its record leads nowhere else.
    for named in record.cells.iter().map(|cell| &cell.run) {
        if !received::stays_below(named) {
            bail!(
                "{} names {} as a run, which is not in its folder",
                path.display(),
                named.display()
            );
        }
    }
    if let (None, Some(named)) =
        (labels, record.labels.as_deref().filter(|l| !received::stays_below(l)))
    {
        bail!(
            "{} names {} for its labels, which is not in its folder; if that is what you want, name it with \
             --labels",
            path.display(),
            named.display()
        );
    }
    let otherwise = Arc::clone(Pack::embedded(crate::prompt::DEFAULT)?.rubric());
    let cells = record.cells.iter().map(|cell| {
        let name = cell.name.clone();
        let Some(run) = run_of(folder, cell) else {
            let rubrics = Rubrics::only(Arc::clone(&otherwise));
            return anyhow::Ok(CellLines { name, lines: Vec::new(), rubrics });
        };
        let Run { lines, rubrics, .. } = read_run(&run, &otherwise)?;
        Ok(CellLines { name, lines, rubrics })
    });
    let cells = cells.collect::<anyhow::Result<Vec<_>>>()?;
    let own = record.labels.as_ref().map(|labels| folder.join(labels));
    let truth = match labels.or(own.as_deref()) {
        Some(path) => truth(path, &analysis::rankings(&cells, record.baseline))?,
        None => RightAnswers::new(),
    };
    let analysis = analysis::analyse(&cells, record.baseline, &truth);
    match out {
        _ if json => print_json(&analysis)?,
        Some(out) => {
            let mut links = BTreeMap::new();
            for cell in &record.cells {
                if let Some(run) = run_of(folder, cell) {
                    links
                        .extend(report::link(&run, Some(out))?.map(|way| (cell.name.clone(), way)));
                }
            }
            let page = page::render(&record.name, &analysis, !truth.is_empty(), &links)?;
            files::write_atomically(out, page.as_bytes())?;
            writeln!(terminal::stderr(), "wrote {}", out.display())?;
        }
        None => print(&record, &analysis, folder, !truth.is_empty())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of a cell's run, if it is there and in the experiment's.
fn run_of(folder: &Path, cell: &CellRecord) -> Option<PathBuf> {
    received::folder_below(folder, cell.run.to_str()?)
}

fn print(record: &Record, analysis: &Analysis, folder: &Path, known: bool) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {} cells, {} edits each",
        visible_line(&record.name),
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
    let mut grid = Grid::new(
        3,
        ["cell", "criterion", "is", "more right by", "p", "nearer by", "p", "edits", "flips"],
    );
    for comparison in &analysis.comparisons {
        grid.row(vec![
            comparison.cell.clone(),
            comparison.criterion.clone(),
            comparison.finding.to_string(),
            comparison.difference.to_string(),
            p_text(comparison.corrected_p),
            comparison.nearer.difference.to_string(),
            p_text(comparison.nearer.corrected_p),
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

fn p_text(p: Option<f64>) -> String {
    p.map_or("–".to_owned(), |p| format!("{p:.3}"))
}

/// What the tables do not show.
fn remarks(out: &mut impl std::io::Write, comparison: &Comparison) -> anyhow::Result<()> {
    let (cell, criterion) = (visible_line(&comparison.cell), visible_line(&comparison.criterion));
    for (list, word) in [(&comparison.worse_on, "worse"), (&comparison.better_on, "better")] {
        for one in list {
            let kind = if one.kind.is_empty() { "edits without a type" } else { &one.kind };
            let kind = visible_line(kind);
            writeln!(
                out,
                "{cell}, {criterion}: {word} on {kind} ({}, not corrected)",
                one.difference
            )?;
        }
    }
    if comparison.shift.finding != Finding::NoEvidence {
        let way = if comparison.shift.finding == Finding::Better { "rose" } else { "fell" };
        writeln!(
            out,
            "{cell}, {criterion}: scores {way} by {} points, whatever is right (p {})",
            comparison.shift.difference,
            p_text(comparison.shift.corrected_p)
        )?;
    }
    if let (Finding::NoEvidence, Some(needed)) = (comparison.finding, comparison.cases_needed) {
        writeln!(
            out,
            "{cell}, {criterion}: to be sure of such a difference takes about {needed} cases"
        )?;
    }
    Ok(())
}

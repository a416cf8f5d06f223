//! `deeplook experiment report`: how each cell did, and what is more than luck.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use anyhow::Context as _;

use super::super::grid::Grid;
use super::super::{print_json, report};
use super::{RECORD, Record, truth};
use crate::experiment::analysis::{self, Analysis, CellLines, Comparison, Truth};
use crate::experiment::page;
use crate::files;
use crate::prompt::Pack;
use crate::stats::Finding;
use crate::trace;
use crate::transcript::cost_text;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

pub(super) fn run(
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
        _ if json => print_json(&analysis)?,
        Some(out) => {
            let mut links = BTreeMap::new();
            for cell in &record.cells {
                let run = folder.join(&cell.run);
                if run.is_dir() {
                    links
                        .extend(report::link(&run, Some(out))?.map(|way| (cell.name.clone(), way)));
                }
            }
            let page = page::render(&record.name, &analysis, !truth.is_empty(), &links)?;
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
            comparison.finding.to_string(),
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

//! `deeplook dataset stats`: what a data set consists of.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::{counted, open, overview};
use crate::cli::DataSetArgs;
use crate::dataset::chart::{self, Chart};
use crate::dataset::stats::short;
use crate::dataset::{Stats, on_terminal};
use crate::files;
use crate::terminal;

pub(super) fn run(args: &DataSetArgs, out: Option<&Path>, json: bool) -> anyhow::Result<ExitCode> {
    let draw: fn(&str, &[Chart]) -> String = match out.map(extension) {
        None | Some("svg") => chart::svg,
        Some("html") => chart::html,
        Some(_) => bail!("--out must end in .svg or .html, which says what to draw"),
    };
    let set = open(&args.dataset, &args.reading)?;
    let stats = Stats::of(&set);
    let charts = stats.charts();
    if let Some(path) = out {
        let name = set.file.parent().and_then(Path::file_name).unwrap_or(set.file.as_os_str());
        let title = format!("{}: {}", name.to_string_lossy(), counted(stats.cases, "case"));
        files::write_atomically(path, draw(&title, &charts).as_bytes())?;
    }
    if json {
        super::super::print_json(&stats)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = overview(&set);
    text.push_str(&types(&stats));
    for chart in charts.iter().filter(|chart| !chart.in_table) {
        text.push_str(&format!("\n{}", chart.text()));
    }
    if stats.unmeasured > 0 {
        let cases = counted(stats.unmeasured, "case");
        text.push_str(&format!(
            "\n{cases} could not be measured: `deeplook dataset check` says why\n"
        ));
    }
    if set.problems.errors() > 0 {
        let errors = counted(set.problems.errors(), "error");
        text.push_str(&format!(
            "\n{errors} found on the way: `deeplook dataset check` lists them\n"
        ));
    }
    if let Some(path) = out {
        text.push_str(&format!("\nplots: {}\n", path.display()));
    }
    terminal::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn types(stats: &Stats) -> String {
    let names: Vec<String> = stats
        .types
        .iter()
        .map(|of| of.kind.as_deref().map_or("(no type)".to_owned(), on_terminal))
        .collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("\n  {:width$}  cases  share  targets  median area\n", "type");
    for (name, of) in names.iter().zip(&stats.types) {
        let share = 100.0 * of.cases as f64 / stats.cases.max(1) as f64;
        let area = of.median_area.map_or("–".to_owned(), |area| format!("{} %", short(area)));
        text.push_str(&format!(
            "  {name:width$}  {:5}  {share:4.0} %  {:7}  {area:>11}\n",
            of.cases, of.targets
        ));
    }
    text
}

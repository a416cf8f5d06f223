//! `deeplook dataset`: make and inspect data sets.

mod check;
mod convert;
mod stats;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{DatasetCommand, ReadingOptions};
use crate::commands::grid::Grid;
use crate::dataset::{DataSet, DataSetError, EditorFiles, Preset, adapter, on_terminal};
use crate::terminal;
use crate::visible::visible_line;

pub(super) fn run(command: &DatasetCommand) -> anyhow::Result<ExitCode> {
    match command {
        DatasetCommand::Make { out, cases, benchmark, seed } => {
            let draw = adapter::draw(benchmark)
                .with_context(|| format!("there is no way to draw {benchmark:?}"))?;
            let bar = super::progress("drawing", *cases)?;
            let made = draw(out, *cases, *seed, &|| bar.inc(1))?;
            bar.finish_and_clear();
            writeln!(
                terminal::stdout(),
                "drew {} cases with {} edits and {} labels:\n  {}\n  {}",
                made.cases,
                made.edits,
                made.labels,
                made.cases_file.display(),
                made.labels_file.display()
            )?;
            Ok(ExitCode::SUCCESS)
        }
        DatasetCommand::Check { data, strict, json } => check::run(data, *strict, *json),
        DatasetCommand::Stats { data, out, json } => stats::run(data, out.as_deref(), *json),
        DatasetCommand::Convert { src, reading, out, in_place, json } => {
            convert::run(src, reading, out, *in_place, *json)
        }
        DatasetCommand::Presets { json } => presets(*json),
    }
}

/// Opens the data set that was named on the command line.
pub(super) fn open(path: &Path, how: &ReadingOptions) -> Result<DataSet, DataSetError> {
    DataSet::open(path, &how.data(Some(path))?.options())
}

/// The presets by name.
fn presets(json: bool) -> anyhow::Result<ExitCode> {
    if json {
        let all = Preset::all().iter();
        let all = all.map(|one| serde_json::json!({"name": one.name, "about": one.about}));
        super::print_json(&all.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut grid = Grid::new(2, ["preset", "data set"]);
    for one in Preset::all() {
        grid.row(vec![one.name.clone(), one.about.clone()]);
    }
    write!(terminal::stdout(), "{grid}")?;
    Ok(ExitCode::SUCCESS)
}

/// What there is, in a few lines: cases, and what was found of each editor.
pub(super) fn overview(set: &DataSet) -> String {
    let mut text = format!(
        "{}: {}, {} by {}\n",
        on_terminal(&set.file.to_string_lossy()),
        counted(set.cases.len(), "case"),
        counted(set.edits(), "edit"),
        counted(set.editors.len(), "editor")
    );
    for note in &set.notes {
        text.push_str(&format!("{}\n", visible_line(note)));
    }
    if set.editors.is_empty() {
        text.push_str("no edits are named; say where they are with --edits DIR\n");
        return text;
    }
    let names: Vec<String> = set.editors.iter().map(|one| on_terminal(&one.editor)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(6);
    text.push_str(&format!(
        "  {:width$}  found  missing  unreadable  ambiguous  extra\n",
        "editor"
    ));
    for (name, one) in names.iter().zip(&set.editors) {
        let EditorFiles { found, missing, unreadable, ambiguous, extra, .. } = one;
        text.push_str(&format!(
            "  {name:width$}  {found:5}  {missing:7}  {unreadable:10}  {ambiguous:9}  {extra:5}\n"
        ));
    }
    for one in set.editors.iter().filter(|one| one.extra > 0) {
        let names: Vec<String> = one.extra_names.iter().map(|name| on_terminal(name)).collect();
        text.push_str(&format!(
            "files of {} that belong to no case: {}{}\n",
            on_terminal(&one.editor),
            names.join(", "),
            if one.extra > names.len() { ", …" } else { "" }
        ));
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

//! `deeplook report`: from finished runs to tables and plots.

use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::hints;
use crate::cli::ReportArgs;
use crate::cli::words::ReportFormat;
use crate::dataset::adapter::{self, Exported, ExportedFile};
use crate::files;
use crate::prompt::{Pack, Rubric};
use crate::report::{self, Format, Report, ReportOptions, Run};
use crate::run::RunRecord;
use crate::terminal;
use crate::trace::{self, Rubrics, RunResults, TraceError};

pub(super) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    if let Some(ReportFormat::Files(name)) = args.format {
        return export(args, name);
    }
    let format = format(args)?;
    let mut unreadable = Vec::new();
    let otherwise = Arc::clone(Pack::find_varied(&args.prompts, args.variant.as_deref())?.rubric());
    let read = |path: &PathBuf| read(path, args.out.as_deref(), &otherwise, &mut unreadable);
    let runs: Vec<Run> = args.runs.iter().map(read).collect::<Result<_, _>>()?;
    let options = ReportOptions { by: args.by.clone(), conditions: args.conditions.clone() };
    let report = Report::of(&runs, &options).map_err(hints::of_report)?;
    let bytes = match format {
        Format::Parquet => report::parquet(&runs, &options)?,
        _ => report.render(format, &runs)?.into_bytes(),
    };
    match &args.out {
        Some(out) => {
            files::write_atomically(out, &bytes)?;
            writeln!(terminal::stderr(), "wrote {}", out.display())?;
        }
        None if format == Format::Parquet => bail!("Parquet is no text; name a file with --out"),
        None => terminal::stdout().write_all(&bytes)?,
    }
    for error in &unreadable {
        writeln!(terminal::stderr(), "left out: {error}")?;
    }
    if !unreadable.is_empty() {
        return Ok(ExitCode::from(2));
    }
    let below = args.min_coverage.map(|floor| report.below_coverage(floor)).unwrap_or_default();
    if below.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let floor = 100.0 * args.min_coverage.unwrap_or_default();
    writeln!(terminal::stderr(), "coverage is below --min-coverage {floor} %:")?;
    for line in below {
        writeln!(terminal::stderr(), "  {line}")?;
    }
    Ok(ExitCode::from(1))
}

/// The files that a benchmark's own scripts take.
fn export(args: &ReportArgs, name: &'static str) -> anyhow::Result<ExitCode> {
    let [path] = args.runs.as_slice() else { bail!("--format {name} is about one run; name one") };
    let Some(out) = &args.out else {
        bail!("--format {name} writes several files; say where with --out DIR")
    };
    let export = adapter::export(name).with_context(|| format!("there is no format {name:?}"))?;
    let otherwise = Arc::clone(Pack::find_varied(&args.prompts, args.variant.as_deref())?.rubric());
    let mut unreadable = Vec::new();
    let run = read(path, None, &otherwise, &mut unreadable)?;
    if let Some(error) = unreadable.first() {
        bail!("{error}");
    }
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let record = RunRecord::read(folder)?;
    let data_set = record.as_ref().map(|record| record.data_set.as_path());
    let files = export(&Exported { run: &run, folder, data_set })
        .map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))?;
    for ExportedFile { path, bytes } in files {
        // Names come from data sets: they stay inside the folder that was named.
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!("{} is no file inside {}", path.display(), out.display());
        }
        let path = out.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the folder {}", parent.display()))?;
        }
        crate::files::write_atomically(&path, &bytes)?;
        writeln!(terminal::stderr(), "wrote {}", path.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What was asked for, else what the name of the file says.
fn format(args: &ReportArgs) -> anyhow::Result<Format> {
    if let Some(ReportFormat::Text(format)) = args.format {
        return Ok(format);
    }
    let Some(out) = &args.out else { return Ok(Format::Md) };
    let extension = out.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    Ok(match extension.as_str() {
        "html" | "htm" => Format::Html,
        "md" | "markdown" => Format::Md,
        "csv" => Format::Csv,
        "json" => Format::Json,
        "tex" => Format::Latex,
        "parquet" => Format::Parquet,
        _ => bail!(
            "{} does not say what to write: name it .html, .md, .csv, .json, .tex or .parquet, or add --format",
            out.display()
        ),
    })
}

/// A run; a trace of which nothing can be read is told apart, and does not end the others.
fn read(
    path: &Path,
    out: Option<&Path>,
    otherwise: &Arc<Rubric>,
    unreadable: &mut Vec<TraceError>,
) -> anyhow::Result<Run> {
    let RunResults { mut lines, unreadable: found } = trace::read_run(path)?;
    unreadable.extend(found);
    let rubrics = Rubrics::of_run(path, &lines, otherwise);
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    if let Some(record) = folder.map(RunRecord::read).transpose()?.flatten() {
        lines.extend(record.open_lines(&lines));
    }
    let link = folder.and_then(|folder| link(folder, out).transpose()).transpose()?;
    Ok(Run { name: path.display().to_string(), lines, rubrics, link })
}

/// How `folder` is reached from where the page will lie; `None` where there is no way that a link
/// could say.
pub(super) fn link(folder: &Path, out: Option<&Path>) -> anyhow::Result<Option<String>> {
    let real = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
    };
    let from = real(out.and_then(Path::parent).unwrap_or(Path::new(".")))?;
    Ok(relative(&from, &real(folder)?).to_str().map(|path| path.replace('\\', "/")))
}

/// The way from one absolute folder to another.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.components().skip(shared)).collect();
    if way.as_os_str().is_empty() { PathBuf::from(".") } else { way }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_one_folder_to_another() {
        let way = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(way("/a/b", "/a/b/c"), Path::new("c"));
        assert_eq!(way("/a/b", "/a/c/d"), Path::new("../c/d"));
        assert_eq!(way("/a/b", "/a/b"), Path::new("."));
    }
}

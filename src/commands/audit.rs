//! `deeplook audit`: what a score file of others hides.

use std::io::Write as _;
use std::process::ExitCode;

use super::grid::Grid;
use crate::audit::{Audit, read};
use crate::cli::AuditArgs;
use crate::dataset::{DataSet, LoadOptions};
use crate::terminal::{self, Style};
use crate::visible::visible_line;

pub(super) fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    let expected = args.expect.as_deref().map(|path| DataSet::open(path, &LoadOptions::default()));
    let expected: Option<Vec<String>> =
        expected.transpose()?.map(|set| set.cases.into_iter().map(|entry| entry.case.id).collect());
    let scores = read(&args.file, args.scale.map(|scale| scale.0))?;
    let audit = Audit::of(&scores, expected.as_deref());
    let code = ExitCode::from(u8::from(!audit.trusted));
    if args.json {
        super::print_json(&audit)?;
        return Ok(code);
    }
    let mut out = terminal::stdout();
    let name = visible_line(&args.file.to_string_lossy());
    writeln!(out, "{name}: {}, {} items\n", audit.form, audit.items)?;
    let number =
        |number: Option<f64>| number.map_or("–".to_owned(), |number| format!("{number:.4}"));
    let mut grid =
        Grid::new(1, ["metric", "mean", "answers", "of", "mean of answers", "at least", "at most"]);
    for one in &audit.metrics {
        grid.row(vec![
            visible_line(&one.metric),
            number(one.mean),
            one.coverage.answered.to_string(),
            one.coverage.all.to_string(),
            number(one.mean_of_answers),
            number(one.bounds.map(|[low, _]| low)),
            number(one.bounds.map(|[_, high]| high)),
        ]);
    }
    write!(out, "{grid}")?;
    let style = Style::BOLD_RED;
    for finding in &audit.findings {
        writeln!(out, "\n{style}{} times{style:#}: {}", finding.count, finding.message)?;
        for example in &finding.examples {
            writeln!(out, "  {example}")?;
        }
        if finding.count > finding.examples.len() {
            writeln!(out, "  … and {} more", finding.count - finding.examples.len())?;
        }
    }
    writeln!(out)?;
    for note in &audit.notes {
        writeln!(out, "note: {note}")?;
    }
    if args.expect.is_none() {
        writeln!(out, "hint: --expect CASES says which items there should be")?;
    }
    writeln!(
        out,
        "{}",
        match audit.trusted {
            true => "nothing was found",
            false => "these numbers cannot be trusted as they stand",
        }
    )?;
    Ok(code)
}

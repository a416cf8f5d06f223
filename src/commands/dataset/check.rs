//! `deeplook dataset check`: everything that is wrong, with line numbers.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::{counted, open, overview};
use crate::cli::DataSetArgs;
use crate::dataset::{EditorFiles, Problem, Severity, on_terminal};
use crate::terminal::{self, Style};

/// So many are told a person; `--json` has more.
pub(super) const MOST_SHOWN: usize = 50;

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    ok: bool,
    file: &'a Path,
    records: usize,
    cases: usize,
    edits: usize,
    editors: &'a [EditorFiles],
    unused_fields: &'a [String],
    errors: usize,
    warnings: usize,
    problems: &'a [Problem],
    problems_left_out: usize,
}

pub(super) fn run(args: &DataSetArgs, strict: bool, json: bool) -> anyhow::Result<ExitCode> {
    let mut set = open(&args.dataset, &args.reading)?;
    let bar = super::super::progress("decoding", set.cases.len())?;
    set.check_pictures(&|| bar.inc(1));
    bar.finish_and_clear();
    let problems = &set.problems;
    let ok = problems.errors() == 0 && !(strict && problems.warnings() > 0);
    let total = problems.errors() + problems.warnings();
    if json {
        super::super::print_json(&Printed {
            ok,
            file: &set.file,
            records: set.records,
            cases: set.cases.len(),
            edits: set.edits(),
            editors: &set.editors,
            unused_fields: &set.unused_fields,
            errors: problems.errors(),
            warnings: problems.warnings(),
            problems: problems.kept(),
            problems_left_out: total - problems.kept().len(),
        })?;
    } else {
        let mut text = overview(&set);
        if !set.unused_fields.is_empty() {
            let names: Vec<String> =
                set.unused_fields.iter().map(|name| on_terminal(name)).collect();
            text.push_str(&format!("fields that are not used: {}\n", names.join(", ")));
        }
        for problem in problems.kept().iter().take(MOST_SHOWN) {
            text.push_str(&told(problem));
        }
        if total > MOST_SHOWN {
            text.push_str(&format!("… and {} more; --json lists them\n", total - MOST_SHOWN));
        }
        text.push_str(&match total {
            0 => "no problems: every picture can be read\n".to_owned(),
            _ => format!(
                "{}, {}\n",
                counted(problems.errors(), "error"),
                counted(problems.warnings(), "warning")
            ),
        });
        if set.edits() == 0 {
            text.push_str("it names no edited pictures: say where they are with --edits DIR\n");
        }
        terminal::stdout().write_all(text.as_bytes())?;
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

pub(super) fn told(problem: &Problem) -> String {
    let (word, style) = match problem.severity {
        Severity::Error => ("error", Style::BOLD_RED),
        Severity::Warning => ("warning", Style::BOLD_YELLOW),
    };
    format!("{style}{word}{style:#}: {problem}\n")
}

//! `deeplook dataset convert`: a data set of others in our own form.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::check::{MOST_SHOWN, told};
use super::counted;
use crate::cli::ReadingOptions;
use crate::dataset::{DataSet, convert, on_terminal};
use crate::terminal::{self, Style};
use crate::visible::visible_line;

pub(super) fn run(
    src: &Path,
    reading: &ReadingOptions,
    out: &Path,
    in_place: bool,
    json: bool,
) -> anyhow::Result<ExitCode> {
    convert::prepare(out)?;
    let mut options = reading.data(Some(src))?.options();
    options.unpack = Some(out.join(convert::PICTURES));
    let set = match DataSet::open(src, &options) {
        Ok(set) => set,
        Err(error) => {
            // Nothing was made of it: the folder stays as it was, if nothing was unpacked.
            let _ = std::fs::remove_dir(out.join(convert::PICTURES));
            let _ = std::fs::remove_dir(out);
            return Err(error.into());
        }
    };
    let bar = super::super::progress("writing", set.cases.len())?;
    let converted = convert::convert(&set, out, in_place, &|| bar.inc(1))?;
    bar.finish_and_clear();
    let whole = converted.left_out.is_empty() && set.problems.errors() == 0;
    if json {
        super::super::print_json(&converted)?;
        return Ok(ExitCode::from(u8::from(!whole)));
    }
    let mut text: String =
        set.notes.iter().map(|note| format!("{}\n", visible_line(note))).collect();
    let errors = set.problems.kept().iter().take(MOST_SHOWN);
    text.extend(errors.map(told));
    let style = Style::BOLD_YELLOW;
    for what in converted.left_out.iter().take(MOST_SHOWN) {
        text.push_str(&format!("{style}left out{style:#}: {}\n", visible_line(what)));
    }
    let shown =
        set.problems.kept().len().min(MOST_SHOWN) + converted.left_out.len().min(MOST_SHOWN);
    let all = set.problems.errors() + set.problems.warnings() + converted.left_out.len();
    if all > shown {
        text.push_str(&format!(
            "… and {} more; --json and `dataset check` list them\n",
            all - shown
        ));
    }
    text.push_str(&format!(
        "{}: {} with {}, {}, {}",
        on_terminal(&out.to_string_lossy()),
        counted(converted.cases, "case"),
        counted(converted.edits, "edit"),
        counted(converted.labels, "label"),
        counted(converted.votes, "vote")
    ));
    for (judge, answers) in &converted.judges {
        text.push_str(&format!(", {} of {}", counted(*answers, "answer"), on_terminal(judge)));
    }
    text.push('\n');
    if in_place {
        let src = on_terminal(&set.root.to_string_lossy());
        text.push_str(&format!("pictures stay where they are: read it with --root {src}\n"));
    }
    terminal::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(!whole)))
}

//! `deeplook dataset`: make and inspect data sets.

use std::io::Write as _;
use std::process::ExitCode;

use crate::cli::DatasetCommand;
use crate::dataset::draw;

pub(super) fn run(command: &DatasetCommand) -> anyhow::Result<ExitCode> {
    match command {
        DatasetCommand::Make { out, cases, seed } => {
            let bar = super::progress("drawing", *cases)?;
            let made = draw::make(out, *cases, *seed, &|| bar.inc(1))?;
            bar.finish_and_clear();
            writeln!(
                anstream::stdout(),
                "drew {} cases with {} edits and {} labels:\n  {}\n  {}",
                made.cases,
                made.edits,
                made.labels,
                made.cases_file.display(),
                made.labels_file.display()
            )?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

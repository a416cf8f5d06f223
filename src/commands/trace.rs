//! `deeplook trace`: show, pack, unpack and export saved traces.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::Style;
use anyhow::{Context as _, anyhow};

use crate::cli::{ExportedPictures, TraceCommand};
use crate::trace::{self, Bundle, ChatPictures, Judgement, TraceError};
use crate::transcript::{Transcript, cost_text, outcome_text, printable, usage_text};

const TITLE: Style = Style::new().bold().underline();
const DIM: Style = Style::new().dimmed();

pub(super) fn run(command: &TraceCommand) -> anyhow::Result<ExitCode> {
    match command {
        TraceCommand::Show { paths } => {
            for bundle in bundles(paths)? {
                show(&Bundle::read(&bundle)?)?;
            }
        }
        TraceCommand::Pack { path, out } => {
            let number = trace::pack(path, out)?;
            anstream::println!("{number} files in {}", out.display());
        }
        TraceCommand::Unpack { file, out } => {
            let number = trace::unpack(file, out)?;
            anstream::println!("{number} files in {}", out.display());
        }
        TraceCommand::Export { paths, pictures } => {
            let pictures = match pictures {
                ExportedPictures::Inline => ChatPictures::Inline,
                ExportedPictures::Paths => ChatPictures::Paths,
            };
            let mut out = io::BufWriter::new(io::stdout().lock());
            for folder in bundles(paths)? {
                let lines = trace::conversations(&Bundle::read(&folder)?, pictures);
                let lines = lines
                    .map_err(anyhow::Error::msg)
                    .with_context(|| format!("cannot export {}", folder.display()))?;
                for line in lines {
                    writeln!(out, "{line}")?;
                }
            }
            out.flush()?;
        }
        TraceCommand::Schema => super::print_json(&trace::schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn bundles(paths: &[PathBuf]) -> Result<Vec<PathBuf>, TraceError> {
    let mut bundles = Vec::new();
    for path in paths {
        bundles.extend(trace::find(path)?.into_iter().flat_map(|run| run.bundles));
    }
    Ok(bundles)
}

/// The transcript of a trace, as it was shown while it was made.
fn show(bundle: &Bundle) -> anyhow::Result<()> {
    let Bundle { manifest, events, .. } = bundle;
    let blobs = bundle.blobs();
    let pack = bundle.prompts().map_err(|problem| anyhow!("its prompts: {problem}"))?;
    let criterion = pack.criterion(&manifest.criterion)?;
    let parts = manifest.parts.iter().map(|part| part.name.clone()).collect();
    let transcript = Transcript::new(criterion.form(), parts, blobs);

    let case = &manifest.case;
    let mut text = format!(
        "{TITLE}{}: {}{TITLE:#}\n{}\n{DIM}{} · {} · {} · {}/{}{DIM:#}\n\n",
        criterion.name,
        printable(&case.id),
        printable(&case.instruction),
        printable(case.editor.as_deref().unwrap_or("editor unknown")),
        manifest.mode,
        printable(&manifest.model.id),
        printable(&manifest.pack.name),
        printable(&manifest.pack.version),
    );
    for event in events {
        text.push_str(&transcript.lines(event));
    }
    let Judgement { outcome, usage, cost, .. } = trace::reduce(manifest, events);
    let outcome = outcome.as_ref().map_or("interrupted".to_owned(), outcome_text);
    text.push_str(&format!(
        "\n{outcome}\n{DIM}{}, {}\ndigest {}{DIM:#}\n\n",
        usage_text(usage),
        cost_text(cost),
        bundle.digest
    ));
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

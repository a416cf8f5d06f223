//! `deeplook trace`: show, pack, unpack and export saved traces.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, anyhow};

use crate::cli::{ExportedPictures, TraceCommand};
use crate::terminal::{self, Style};
use crate::trace::{self, Bundle, ChatPictures, Judgement, TraceError};
use crate::transcript::{Transcript, cost_text, outcome_text, usage_text};
use crate::visible::{honest_json, visible_line};

const TITLE: Style = Style::TITLE;
const DIM: Style = Style::DIM;

pub(super) fn run(command: &TraceCommand) -> anyhow::Result<ExitCode> {
    match command {
        TraceCommand::Show { paths } => return each(paths, show),
        TraceCommand::Pack { path, out } => {
            let number = trace::pack(path, out)?;
            writeln!(terminal::stdout(), "{number} files in {}", out.display())?;
        }
        TraceCommand::Unpack { file, out } => {
            let number = trace::unpack(file, out)?;
            writeln!(terminal::stdout(), "{number} files in {}", out.display())?;
        }
        TraceCommand::Export { paths, pictures } => {
            let pictures = match pictures {
                ExportedPictures::Inline => ChatPictures::Inline,
                ExportedPictures::Paths => ChatPictures::Paths,
            };
            let mut out = io::BufWriter::new(terminal::stdout());
            let code = each(paths, |bundle| {
                let lines = trace::conversations(bundle, pictures).map_err(anyhow::Error::msg);
                let lines =
                    lines.with_context(|| format!("cannot export {}", bundle.folder.display()))?;
                for line in lines {
                    writeln!(out, "{}", honest_json(&line.to_string()))?;
                }
                Ok(())
            })?;
            out.flush()?;
            return Ok(code);
        }
        TraceCommand::Schema => super::print_json(&trace::schema())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Does something with every trace under the paths. What is wrong with one does not end the others:
/// it is told, and the exit code is 2.
fn each(
    paths: &[PathBuf],
    mut work: impl FnMut(&Bundle) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in paths {
        for run in trace::find(path)? {
            for folder in &run.unbegun {
                let error = TraceError::Unbegun { path: folder.clone() };
                writeln!(terminal::stderr(), "{error}")?;
            }
            for folder in &run.bundles {
                let done =
                    Bundle::read(folder).map_err(Into::into).and_then(|bundle| work(&bundle));
                match done {
                    Ok(()) => {}
                    // What cannot be printed is about all of them.
                    Err(error) if error.is::<io::Error>() => return Err(error),
                    Err(error) => {
                        writeln!(terminal::stderr(), "{}: {error:#}", folder.display())?;
                        code = ExitCode::from(2);
                    }
                }
            }
        }
    }
    Ok(code)
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
        visible_line(&criterion.name),
        visible_line(&case.id),
        visible_line(&case.instruction),
        visible_line(case.editor.as_deref().unwrap_or("editor unknown")),
        manifest.mode,
        visible_line(&manifest.model.id),
        visible_line(&manifest.pack.name),
        visible_line(&manifest.pack.version),
    );
    for event in events {
        text.push_str(&transcript.lines(event));
    }
    let Judgement { outcome, usage, cost, .. } = trace::reduce(manifest, events).judgement;
    let outcome = outcome.as_ref().map_or("interrupted".to_owned(), outcome_text);
    text.push_str(&format!(
        "\n{outcome}\n{DIM}{}, {}\ndigest {}{DIM:#}\n\n",
        usage_text(usage),
        cost_text(cost),
        bundle.digest
    ));
    terminal::stdout().write_all(text.as_bytes())?;
    Ok(())
}

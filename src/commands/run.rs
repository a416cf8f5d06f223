//! `deeplook run`: see, join and mend runs.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::hints;
use super::summary::{MOST_REASONS, kept_text, paid_text};
use crate::cli::RunCommand;
use crate::received;
use crate::run::{Ledger, Merged, RunLock, Status, merge, status};
use crate::terminal;
use crate::trace::RunFolder;
use crate::transcript::{cost_text, usage_text};

pub(super) fn run(command: &RunCommand) -> anyhow::Result<ExitCode> {
    match command {
        RunCommand::Status { run, json } => {
            let status = status(run)?;
            if *json {
                super::print_json(&status)?
            } else {
                show(run, &status)?
            }
            Ok(ExitCode::SUCCESS)
        }
        RunCommand::Merge { parts, into, mix, keep_first } => {
            joined(into, &merge(parts, into, *mix, *keep_first).map_err(hints::told)?)
        }
        RunCommand::Rebuild { run } => {
            if !received::is_folder(&run.join("judgements")) {
                bail!("{} is not the folder of a run: it has no judgements/", run.display());
            }
            let _lock = RunLock::take(run)?;
            let run = RunFolder::new(run);
            let before = Ledger::look(&run)?;
            let (after, lost) = Ledger::rebuild(&run)?;
            let same =
                after.lines().iter().filter(|(key, line)| before.lines().get(key) == Some(line));
            writeln!(
                terminal::stdout(),
                "made {} lines from the traces; {} of them were there before and are the same",
                after.lines().len(),
                same.count()
            )?;
            for note in &after.notes {
                writeln!(terminal::stderr(), "{note}")?;
            }
            for key in &lost {
                writeln!(terminal::stderr(), "lost, because its trace is damaged or gone: {key}")?;
            }
            Ok(if lost.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
    }
}

fn show(run: &Path, status: &Status) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let running = status.running.as_deref().unwrap_or("nobody is at work in it");
    let part = status.shard.as_ref().map_or(String::new(), |shard| format!(", part {shard}"));
    writeln!(out, "{}{part}: {running}\n\n{}", run.display(), status.table)?;
    let counts: Vec<String> =
        status.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let Status { planned, done, .. } = status;
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    writeln!(out, "{done} of {planned} judgements have an outcome{counts}")?;
    for key in &status.open {
        writeln!(out, "  open: {key}")?;
    }
    let more = (planned - done).saturating_sub(status.open.len());
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    if status.others > 0 {
        writeln!(out, "{} more were judged than the last command wanted", status.others)?;
    }
    if status.other_traces > 0 {
        let what = "traces have no line: under way, interrupted, or judged again since";
        writeln!(out, "{} {what}", status.other_traces)?;
    }
    for reason in status.without_verdict.iter().take(MOST_REASONS) {
        writeln!(out, "{reason}")?;
    }
    for note in &status.notes {
        writeln!(out, "{note}")?;
    }
    let Status { usage, cost, paid, calls, cached, .. } = status;
    let (paid, kept) = (paid_text(*paid, *cost), kept_text(*cached));
    writeln!(out, "{}, {calls} calls, {}{paid}{kept}", usage_text(*usage), cost_text(*cost))?;
    Ok(())
}

fn joined(into: &Path, merged: &Merged) -> anyhow::Result<ExitCode> {
    const MOST_NAMED: usize = 10;
    let mut out = terminal::stdout();
    for note in &merged.notes {
        writeln!(terminal::stderr(), "{note}")?;
    }
    writeln!(out, "{} judgements in {}", merged.lines, into.display())?;
    for (what, keys) in [("missing", &merged.missing), ("double", &merged.double)] {
        for key in keys.iter().take(MOST_NAMED) {
            writeln!(out, "  {what}: {key}")?;
        }
        if keys.len() > MOST_NAMED {
            writeln!(out, "  {what}: {} more", keys.len() - MOST_NAMED)?;
        }
    }
    Ok(if merged.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

//! `deeplook prompts diff`: what two packs say differently, and what that did.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deeplook_tools::{BoxConvention, Toolbox};
use serde_json::json;

use super::super::{compare, print_json};
use super::{BOLD, DIM, heading};
use crate::prompt::{self, Change, Line, Pack, PackDiff};
use crate::run::{RunRecord, differences};
use crate::terminal::{self, Style};
use crate::trace::{self, Bundle};

const GONE: Style = Style::RED;
const NEW: Style = Style::GREEN;
/// How many flips are printed.
const MOST_FLIPS: usize = 20;

/// Compares the packs, or those of the runs where none are named.
pub(super) fn run(
    packs: &[String],
    variants: &[String],
    runs: &[PathBuf],
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let named = |place: usize| {
        let name = variants.get(place).or(variants.first()).map(String::as_str);
        name.filter(|name| *name != "-")
    };
    let (before, after) = match (packs, runs) {
        ([before, after], _) => {
            (Pack::find_varied(before, named(0))?, Pack::find_varied(after, named(1))?)
        }
        ([], [before, after]) => (pack_of(before)?, pack_of(after)?),
        _ => bail!("name two packs, or two runs with --runs RUN_A RUN_B, or both"),
    };
    let tools = Toolbox::standard().specs(BoxConvention::PIXELS);
    let diff = prompt::diff(&before, &after, &tools)?;
    let [first, second] = runs else {
        match as_json {
            true => print_json(&diff)?,
            false => print(&mut terminal::stdout(), &diff)?,
        }
        return Ok(ExitCode::SUCCESS);
    };
    for (run, pack) in [(first, &before), (second, &after)] {
        let used = pack_of(run)?;
        if used.hash != pack.hash || used.rubric().variant != pack.rubric().variant {
            bail!(
                "{} was judged with the prompts {} ({}), which are not those of {} ({}); leave out the packs to \
                 compare what the runs used",
                run.display(),
                used.id(),
                &used.hash.as_str()[..12],
                pack.id(),
                &pack.hash.as_str()[..12]
            );
        }
    }
    let compared = compare::runs(first, second, before.rubric())?;
    let others = other_differences(first, second)?;
    if as_json {
        print_json(&json!({ "prompts": diff, "runs": compared, "other_differences": others }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::stdout();
    print(&mut out, &diff)?;
    for other in &others {
        writeln!(out, "\n{BOLD}not only the prompts differ{BOLD:#}: {other}")?;
    }
    compare::print_flips(&mut out, &compared.flips, MOST_FLIPS)?;
    Ok(ExitCode::SUCCESS)
}

/// The prompts of a run, from its first trace.
fn pack_of(run: &Path) -> anyhow::Result<Pack> {
    let found = trace::find(run)?;
    let Some(folder) = found.iter().flat_map(|run| &run.bundles).next() else {
        bail!("{} has no trace, and so nobody knows its prompts", run.display());
    };
    let prompts = Bundle::read(folder)?.prompts().map_err(anyhow::Error::msg);
    prompts.with_context(|| format!("the prompts of {} cannot be read", folder.display()))
}

/// What else differs between the settings of two runs, where both are known.
fn other_differences(first: &Path, second: &Path) -> anyhow::Result<Vec<String>> {
    let (Some(first), Some(second)) = (RunRecord::read(first)?, RunRecord::read(second)?) else {
        return Ok(Vec::new());
    };
    let found = differences(&first.settings, &second.settings);
    let others = found.iter().filter(|one| !one.field.starts_with("pack."));
    Ok(others.map(ToString::to_string).collect())
}

fn print(out: &mut impl Write, diff: &PackDiff) -> io::Result<()> {
    if diff.is_empty() {
        return writeln!(out, "no model would see a difference");
    }
    if !diff.rules.is_empty() {
        heading(out, "rules")?;
    }
    for rule in &diff.rules {
        match (&rule.before, &rule.after) {
            (Some(before), None) => writeln!(out, "{GONE}- {}: {}{GONE:#}", rule.id, before.text)?,
            (None, Some(after)) => writeln!(out, "{NEW}+ {}: {}{NEW:#}", rule.id, after.text)?,
            (Some(before), Some(after)) => {
                writeln!(out, "{BOLD}{}{BOLD:#}", rule.id)?;
                print_lines(out, &prompt::diff_lines(&before.in_words(), &after.in_words()))?;
            }
            (None, None) => {}
        }
    }
    for change in &diff.prompts {
        writeln!(out)?;
        heading(out, &format!("{}: {}", change.criterion, change.title))?;
        print_lines(out, &change.lines)?;
    }
    Ok(())
}

fn print_lines(out: &mut impl Write, lines: &[Option<Line>]) -> io::Result<()> {
    for line in lines {
        let Some(Line { change, pieces }) = line else {
            writeln!(out, "{DIM}…{DIM:#}")?;
            continue;
        };
        let (sign, style, strong) = match change {
            Change::Same => (' ', Style::NONE, Style::TITLE),
            Change::Gone => ('-', GONE, Style::STRONG_RED),
            Change::New => ('+', NEW, Style::STRONG_GREEN),
        };
        write!(out, "{style}{sign} {style:#}")?;
        for (differs, text) in pieces {
            let style = if *differs { strong } else { style };
            write!(out, "{style}{text}{style:#}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

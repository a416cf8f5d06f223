//! The end of a run: what came out, with which coverage, and what to do next.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use super::progress::print_line;
use crate::run::{End, RunSummary};
use crate::terminal;
use crate::trace::OutcomeName;
use crate::transcript::{cost_text, usage_text};

pub(super) fn show(summary: &RunSummary, quiet: bool, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(summary);
    }
    if quiet {
        return Ok(());
    }
    let text = format!("\n{}\n{}", summary.table, words(summary));
    if json {
        write!(terminal::stderr(), "{text}")?;
    } else {
        write!(terminal::stdout(), "{text}")?;
    }
    Ok(())
}

/// How many have which outcome.
pub(super) fn counted(summary: &RunSummary) -> String {
    let RunSummary { outcomes, done, planned, .. } = summary;
    let counts: Vec<String> =
        outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    format!("{done} of {planned} judgements have an outcome: {counts}")
}

/// Why it has stopped before the end, and what helps.
fn stopped(summary: &RunSummary) -> Option<String> {
    let why = summary.reason.as_ref()?;
    Some(match summary.end {
        End::Hopeless => format!(
            "{why}; mend that, and judge what failed again with --retry failed (or go on all the same with \
             --keep-going)"
        ),
        End::Limit => format!("{why} (--max-calls, --max-cost)"),
        _ => why.clone(),
    })
}

fn words(summary: &RunSummary) -> String {
    let mut text = counted(summary) + "\n";
    if summary.unusable_records > 0 {
        text.push_str(&format!(
            "{} records of the data set make no case and are in none of these numbers\n",
            summary.unusable_records
        ));
    }
    text.push_str(&format!("{}, {}", usage_text(summary.usage), cost_text(summary.cost)));
    text.push_str(&paid_text(summary.paid, summary.cost));
    text.push_str(&kept_text(summary.cached));
    text.push('\n');
    for reason in summary.without_verdict.iter().take(MOST_REASONS) {
        text.push_str(&format!("{reason}\n"));
    }
    if let Some(why) = stopped(summary) {
        text.push_str(&format!("not finished, because {why}\n"));
    }
    text.push_str("next:\n");
    if summary.end == End::Limit {
        text.push_str("  the same command with a higher limit goes on from here\n");
    } else if summary.done < summary.planned {
        text.push_str("  the same command again goes on from here\n");
    }
    let without: Vec<String> = summary
        .outcomes
        .keys()
        .filter(|outcome| **outcome != OutcomeName::Verdict)
        .map(|outcome| outcome.to_string())
        .collect();
    if !without.is_empty() {
        text.push_str(&format!("  the same command with --retry {}\n", without.join(",")));
    }
    if let Some(run) = summary.run.as_deref().map(shown) {
        text.push_str(&format!("  deeplook report {run} --out report.html\n"));
        text.push_str(&format!("  deeplook view {run}\n"));
    }
    text
}

/// 0 where every judgement has an outcome, one of them a verdict, and the coverage is enough.
pub(super) fn exit_code(
    summary: &RunSummary,
    min_coverage: Option<f64>,
    quiet: bool,
) -> anyhow::Result<ExitCode> {
    if let Some(least) = min_coverage
        && summary.coverage.is_none_or(|coverage| coverage < least)
    {
        if !quiet {
            let coverage = summary.coverage.unwrap_or(0.0);
            writeln!(
                terminal::stderr(),
                "the coverage is {coverage:.3}, less than the {least} of --min-coverage"
            )?;
        }
        return Ok(ExitCode::from(1));
    }
    // Nothing that could be worked with came out.
    let fruitless = summary.planned > 0 && !summary.outcomes.contains_key(&OutcomeName::Verdict);
    Ok(match summary.is_finished() && !fruitless {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// How many replies nobody was asked for, if any.
pub(super) fn kept_text(cached: u64) -> String {
    match cached {
        0 => String::new(),
        1 => "; 1 reply was kept from before".to_owned(),
        _ => format!("; {cached} replies were kept from before"),
    }
}

/// How many reasons are told.
pub(super) const MOST_REASONS: usize = 3;

/// What a run paid, where that is not what its replies cost: some were kept, others came to nothing.
pub(super) fn paid_text(paid: Option<f64>, cost: Option<f64>) -> String {
    match paid.zip(cost) {
        Some((paid, cost)) if (paid - cost).abs() > 1e-9 => {
            format!("; paid by this run, with what was judged again: ${paid:.4}")
        }
        _ => String::new(),
    }
}

/// A path as one would type it.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(char::is_whitespace) { format!("{text:?}") } else { text }
}

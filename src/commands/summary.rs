//! The end of a run: what came out, with which coverage, and what to do next.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::progress::print_line;
use crate::judge::Spent;
use crate::message::Usage;
use crate::run::{End, JobKey, Ledger, Planned, Reason, reasons, table};
use crate::stats::Coverage;
use crate::trace::{OutcomeName, ResultLine, RunFolder};
use crate::transcript::{cost_text, usage_text};

/// What came out of all that was planned, whenever it was judged.
#[derive(Serialize)]
pub(super) struct Summary {
    event: &'static str,
    run: PathBuf,
    planned: usize,
    done: usize,
    outcomes: BTreeMap<OutcomeName, usize>,
    coverage: Option<f64>,
    usage: Usage,
    /// What the replies cost when they were made.
    cost: Option<f64>,
    /// What this run has paid, also for what came to nothing.
    paid: Option<f64>,
    calls: u64,
    /// Records of the data set that make no case and are in no number.
    unusable_records: usize,
    end: &'static str,
    /// Why it is not finished.
    reason: Option<String>,
    /// Why there are judgements without a verdict, the most frequent first.
    without_verdict: Vec<Reason>,
    #[serde(skip)]
    table: String,
}

impl Summary {
    pub(super) fn new(
        run: &RunFolder,
        planned: &Planned,
        ledger: &Ledger,
        end: End,
        spent: Spent,
        unusable_records: usize,
    ) -> Self {
        let keys: Vec<JobKey> = planned.keys().collect();
        let lines: Vec<&ResultLine> =
            keys.iter().filter_map(|key| ledger.lines().get(key)).collect();
        let mut outcomes = BTreeMap::new();
        for outcome in lines.iter().filter_map(|line| line.outcome()) {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        let answered = outcomes.get(&OutcomeName::Verdict).copied().unwrap_or(0);
        let (name, stopped) = match end {
            End::Done => ("done", None),
            End::Interrupted => ("interrupted", Some("it was interrupted".to_owned())),
            End::Limit(limit) => ("limit", Some(format!("a limit is reached: {limit}"))),
            End::Hopeless(reason) => (
                "hopeless",
                Some(format!(
                    "everything fails: {reason}; mend that, and judge what failed again with --retry failed (or go \
                     on all the same with --keep-going)"
                )),
            ),
            End::Crashed(count) => (
                "crashed",
                Some(format!("{count} judgements crashed, a defect of deeplook; please report it")),
            ),
        };
        let cost: Option<f64> = lines.iter().map(|line| line.cost).sum();
        Self {
            event: "summary",
            run: run.path().to_owned(),
            planned: keys.len(),
            done: outcomes.values().sum(),
            coverage: Coverage { answered, all: keys.len() }.fraction().ok(),
            usage: lines.iter().fold(Usage::default(), |sum, line| sum.plus(line.usage)),
            cost,
            paid: cost.map(|_| spent.cost),
            calls: spent.calls,
            unusable_records,
            end: name,
            reason: stopped,
            without_verdict: reasons(lines.into_iter()),
            table: table(keys.into_iter(), ledger.lines()),
            outcomes,
        }
    }

    /// Why it has stopped before the end, if so.
    pub(super) fn stopped(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    pub(super) fn show(&self, quiet: bool, json: bool) -> anyhow::Result<()> {
        if json {
            print_line(self);
        }
        if quiet {
            return Ok(());
        }
        let text = format!("\n{}\n{}", self.table, self.words());
        if json {
            write!(anstream::stderr(), "{text}")?;
        } else {
            write!(anstream::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// How many have which outcome.
    pub(super) fn counted(&self) -> String {
        let counts: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        format!("{} of {} judgements have an outcome: {counts}", self.done, self.planned)
    }

    fn words(&self) -> String {
        let mut text = self.counted() + "\n";
        if self.unusable_records > 0 {
            text.push_str(&format!(
                "{} records of the data set make no case and are in none of these numbers\n",
                self.unusable_records
            ));
        }
        text.push_str(&format!("{}, {}", usage_text(self.usage), cost_text(self.cost)));
        text.push_str(&paid_text(self.paid, self.cost));
        text.push('\n');
        for reason in self.without_verdict.iter().take(MOST_REASONS) {
            text.push_str(&format!("{reason}\n"));
        }
        if let Some(why) = &self.reason {
            text.push_str(&format!("not finished, because {why}\n"));
        }
        text.push_str("next:\n");
        if self.end == "limit" {
            text.push_str("  the same command with a higher limit goes on from here\n");
        } else if self.done < self.planned {
            text.push_str("  the same command again goes on from here\n");
        }
        let run = shown(&self.run);
        if self.outcomes.keys().any(|outcome| *outcome != OutcomeName::Verdict) {
            let again: Vec<String> = self
                .outcomes
                .keys()
                .filter(|outcome| **outcome != OutcomeName::Verdict)
                .map(|outcome| outcome.to_string())
                .collect();
            text.push_str(&format!("  the same command with --retry {}\n", again.join(",")));
        }
        text.push_str(&format!("  deeplook report {run} --out report.html\n"));
        text.push_str(&format!("  deeplook view {run}\n"));
        text
    }

    /// 0 where every judgement has an outcome and the coverage is enough.
    pub(super) fn exit_code(
        &self,
        min_coverage: Option<f64>,
        quiet: bool,
    ) -> anyhow::Result<ExitCode> {
        if let Some(least) = min_coverage
            && self.coverage.is_none_or(|coverage| coverage < least)
        {
            if !quiet {
                let coverage = self.coverage.unwrap_or(0.0);
                writeln!(
                    anstream::stderr(),
                    "the coverage is {coverage:.3}, less than the {least} of --min-coverage"
                )?;
            }
            return Ok(ExitCode::from(1));
        }
        let finished = self.done == self.planned && self.reason.is_none();
        Ok(if finished { ExitCode::SUCCESS } else { ExitCode::from(1) })
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

//! How a run shows that it goes on: a bar on a terminal, now and then a line elsewhere, objects for
//! machines, or nothing.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::time::Instant;

use crate::model::Gate;
use crate::run::{Progress, Tally};
use crate::trace::{OutcomeName, ResultLine};

/// How often a line is printed where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// How to show it.
pub(super) struct Watching<'a> {
    shown: Shown,
    gate: &'a Gate,
    /// What the run has paid so far, where that is known.
    paid: Box<dyn Fn() -> Option<f64> + 'a>,
    json: bool,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next: Instant },
    Nothing,
}

/// A line for machines.
#[derive(Serialize)]
struct Judged<'a> {
    event: &'static str,
    done: usize,
    total: usize,
    result: &'a ResultLine,
}

impl<'a> Watching<'a> {
    pub(super) fn new(
        total: usize,
        quiet: bool,
        json: bool,
        gate: &'a Gate,
        paid: impl Fn() -> Option<f64> + 'a,
    ) -> anyhow::Result<Self> {
        let shown = if quiet || total == 0 {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}")?;
            Shown::Bar(ProgressBar::new(total as u64).with_style(style))
        } else {
            Shown::Lines { next: Instant::now() + BETWEEN_LINES }
        };
        Ok(Self { shown, gate, paid: Box::new(paid), json })
    }

    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        let tally = match progress {
            Progress::Judged(line, tally) => {
                if self.json {
                    let Tally { done, total, .. } = **tally;
                    print_line(&Judged { event: "judged", done, total, result: line });
                }
                tally
            }
            Progress::Moment(tally) => tally,
            Progress::Stopping(why) => return self.say(why),
        };
        let doing = self.doing(tally);
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(tally.done as u64);
                bar.set_message(doing);
            }
            Shown::Lines { next } if *next <= Instant::now() || tally.done == tally.total => {
                *next = Instant::now() + BETWEEN_LINES;
                // Where nobody reads any more, the judging goes on.
                let _ = writeln!(anstream::stderr(), "{}/{} {doing}", tally.done, tally.total);
            }
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }

    fn say(&self, what: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| drop(writeln!(anstream::stderr(), "{what}"))),
            Shown::Lines { .. } => drop(writeln!(anstream::stderr(), "{what}")),
            Shown::Nothing => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn doing(&self, tally: &Tally) -> String {
        let mut parts = vec![format!("{:.1}/s", tally.rate())];
        let without = [OutcomeName::Abstained, OutcomeName::Failed, OutcomeName::Missing];
        for outcome in without {
            let count = tally.count(outcome);
            if count > 0 {
                parts.push(format!("{count} {outcome}"));
            }
        }
        let inside = self.gate.inside();
        if inside > 0 {
            parts.push(format!("{inside} of {} requests", self.gate.allowed()));
        }
        if let Some(paid) = (self.paid)() {
            parts.push(format!("${paid:.2}"));
        }
        if let Some(left) = tally.time_left() {
            parts.push(format!("{} left", HumanDuration(left)));
        }
        parts.join(", ")
    }
}

/// One object on one line of stdout. Where nobody reads any more, the judging goes on.
pub(super) fn print_line(value: &impl Serialize) {
    if let Ok(mut text) = serde_json::to_vec(value) {
        text.push(b'\n');
        let _ = std::io::stdout().write_all(&text);
    }
}

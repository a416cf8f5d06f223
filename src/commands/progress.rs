//! How a run shows that it goes on: a bar on a terminal, now and then a line elsewhere, objects for
//! machines, or nothing.

use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::dataset::DataSet;
use crate::run::{Beginning, Progress, Tally};
use crate::terminal;
use crate::trace::{OutcomeName, ResultLine};
use crate::visible::honest_json;

/// How often a line is printed where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// So many problems of a data set are told.
const MOST_PROBLEMS: usize = 20;

/// How to show it.
pub(super) struct Watching {
    shown: Shown,
    /// What was found in the data set, until it is told.
    overview: Option<String>,
    talk: Talk,
    json: bool,
}

/// What is said besides how far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Talk {
    All,
    /// Only how far it is.
    Progress,
    Nothing,
}

enum Shown {
    Bar(ProgressBar),
    Lines { next: Instant },
    Nothing,
}

/// A line for machines.
#[derive(Serialize)]
struct JudgedLine<'a> {
    event: &'static str,
    done: usize,
    total: usize,
    result: &'a ResultLine,
}

impl Watching {
    pub(super) fn new(quiet: bool, json: bool) -> Self {
        let talk = if quiet { Talk::Nothing } else { Talk::All };
        Self { talk, shown: Shown::Nothing, overview: None, json }
    }

    /// Shows how far it is, and nothing else.
    pub(super) fn only_progress() -> Self {
        Self { talk: Talk::Progress, shown: Shown::Nothing, overview: None, json: false }
    }

    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        let tally = match progress {
            Progress::Opened(set) => return self.open(set),
            Progress::Begins(beginning) => return self.begin(beginning),
            Progress::Judged(line, tally) => {
                if self.json {
                    let Tally { done, total, .. } = **tally;
                    print_line(&JudgedLine { event: "judged", done, total, result: line });
                }
                tally
            }
            Progress::Moment(tally) => tally,
            Progress::Stopping => {
                let what = "stopping when what is under way is finished; once more to stop at once";
                return self.say(what);
            }
        };
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(tally.done as u64);
                bar.set_message(doing(tally));
            }
            Shown::Lines { next } if *next <= Instant::now() || tally.done == tally.total => {
                *next = Instant::now() + BETWEEN_LINES;
                // Where nobody reads any more, the judging goes on.
                let doing = doing(tally);
                let _ = writeln!(terminal::stderr(), "{}/{} {doing}", tally.done, tally.total);
            }
            Shown::Lines { .. } | Shown::Nothing => {}
        }
    }

    /// What is wrong with the data set, line by line.
    fn open(&mut self, set: &DataSet) {
        if self.talk != Talk::All {
            return;
        }
        let problems = &set.problems;
        for problem in problems.kept().iter().take(MOST_PROBLEMS) {
            say(&format!("{}, {problem}", set.file.display()));
        }
        let more = (problems.errors() + problems.warnings()).saturating_sub(MOST_PROBLEMS);
        if more > 0 {
            say(&format!("and {more} more; see `deeplook dataset check`"));
        }
        self.overview = Some(super::dataset::overview(set));
    }

    /// What will happen, before it does.
    fn begin(&mut self, beginning: &Beginning) {
        if self.talk != Talk::Nothing && beginning.to_do > 0 {
            self.shown = shown(beginning.to_do);
        }
        if self.talk != Talk::All {
            return;
        }
        let Beginning { run, from_traces, data, notes, unavailable, to_do, there, .. } = beginning;
        match (self.overview.take(), from_traces) {
            (Some(overview), _) => say(overview.trim_end()),
            (None, Some(from)) => {
                say(&format!("{}: {} cases, {} edits", from.display(), data.0, data.1));
            }
            (None, None) => {}
        }
        if let Some(asked) = &beginning.asked {
            say(asked);
        }
        if beginning.simulated {
            say(
                "SIMULATED: the answers come from the data set's own truth; they say nothing about any judge",
            );
        }
        if beginning.offline {
            say("the offline judge `rules` is a baseline; ask a model with --model");
        }
        if let Some(from) = from_traces {
            say(&format!("judged again from what was seen in {}", from.display()));
        }
        for note in notes {
            say(note);
        }
        for (tool, why) in unavailable {
            say(&format!("without {tool}: {why}"));
        }
        let before =
            if *there > 0 { format!(", {there} are there already") } else { String::new() };
        let judgements = if *to_do == 1 { "judgement" } else { "judgements" };
        let place = run.as_ref().map(|run| format!("; the run is {}", run.display()));
        say(&format!("{to_do} {judgements} to make{before}{}", place.unwrap_or_default()));
    }

    fn say(&self, what: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| drop(writeln!(terminal::stderr(), "{what}"))),
            Shown::Lines { .. } => drop(writeln!(terminal::stderr(), "{what}")),
            Shown::Nothing => {}
        }
    }
}

impl Drop for Watching {
    /// Takes the bar away.
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn shown(total: usize) -> Shown {
    if !terminal::is_watched() {
        return Shown::Lines { next: Instant::now() + BETWEEN_LINES };
    }
    match ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}") {
        Ok(style) => Shown::Bar(ProgressBar::new(total as u64).with_style(style)),
        // The template is ours, and sound.
        Err(_) => Shown::Nothing,
    }
}

fn doing(tally: &Tally) -> String {
    let mut parts = vec![format!("{:.1}/s", tally.rate())];
    let without = [OutcomeName::Abstained, OutcomeName::Failed, OutcomeName::Missing];
    for outcome in without {
        let count = tally.count(outcome);
        if count > 0 {
            parts.push(format!("{count} {outcome}"));
        }
    }
    let (asking, allowed) = tally.asking;
    if asking > 0 {
        parts.push(format!("{asking} of {allowed} requests"));
    }
    if let Some(paid) = tally.paid {
        parts.push(format!("${paid:.2}"));
    }
    if let Some(left) = tally.time_left() {
        parts.push(format!("{} left", HumanDuration(left)));
    }
    parts.join(", ")
}

/// A line on stderr. Where nobody reads any more, the judging goes on.
fn say(text: &str) {
    let _ = writeln!(terminal::stderr(), "{text}");
}

/// One object on one line of stdout. Where nobody reads any more, the judging goes on.
pub(super) fn print_line(value: &impl Serialize) {
    if let Ok(text) = serde_json::to_string(value) {
        let _ = writeln!(terminal::stdout(), "{}", honest_json(&text));
    }
}

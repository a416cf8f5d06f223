//! `deeplook replay`: are saved traces what they say, and would it be the same today?

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;
use serde_json::Value;

use crate::cli::{Looks, ReplayArgs};
use crate::equipment::RecordedEquipment;
use crate::hash::Hash;
use crate::replay::{Divergence, Replayed, Replayer, Tools, missing_traces};
use crate::terminal::{self, Style};
use crate::trace::{self, ToolsRecord, TraceError};
use crate::transcript::outcome_text;
use crate::visible::visible_line;

const DIM: Style = Style::DIM;
/// A longer value is cut in the middle of a terminal; `--json` has all of it.
const LONGEST: usize = 160;

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    if let Some(turn) = args.fork.from_turn {
        return super::fork::run(args, turn);
    }
    let Found { bundles, lost, unbegun } = find(&args.paths)?;
    let equipment = RecordedEquipment::new(args.detector.clone(), args.enhancer.clone());
    let toolbox = |record: &ToolsRecord| equipment.toolbox(record);
    let replayer = Replayer::new(match args.tools {
        Looks::Live => Tools::Live(&toolbox),
        Looks::Recorded => Tools::Recorded,
    });
    let replayed = all(&replayer, &bundles)?;

    let mut report = Report { lost, unbegun, ..Report::default() };
    report.digests_not_found = args.digests.iter().cloned().collect();
    for (path, result) in bundles.into_iter().zip(replayed) {
        match result {
            Ok(mut one) => {
                if !args.digests.is_empty() && !report.digests_not_found.remove(&one.digest) {
                    one.divergences.push(wrong_digest(&one.digest, &args.digests));
                }
                match one.passes(args.strict) {
                    true => report.passed += 1,
                    false => report.diverged += 1,
                }
                report.traces.push(one);
            }
            Err(error) => report.unreadable.push(Unreadable { trace: path, error }),
        }
    }
    if args.json {
        super::print_json(&report)?;
    } else {
        terminal::stdout().write_all(report.text(args.strict).as_bytes())?;
    }
    Ok(match () {
        () if report.diverged > 0 || !report.lost.is_empty() => ExitCode::from(1),
        () if args.strict && !report.unbegun.is_empty() => ExitCode::from(1),
        () if !report.unreadable.is_empty() => ExitCode::from(2),
        () if !report.digests_not_found.is_empty() => ExitCode::from(1),
        () => ExitCode::SUCCESS,
    })
}

/// What is under the paths.
#[derive(Default)]
struct Found {
    bundles: Vec<PathBuf>,
    /// What results name that is not there.
    lost: Vec<PathBuf>,
    unbegun: Vec<PathBuf>,
}

fn find(paths: &[PathBuf]) -> Result<Found, TraceError> {
    let mut found = Found::default();
    for path in paths {
        for run in trace::find(path)? {
            if run.results.is_some() {
                let gone = missing_traces(&run.folder).into_iter();
                found.lost.extend(gone.map(|trace| run.folder.join(trace)));
            }
            found.bundles.extend(run.bundles);
            found.unbegun.extend(run.unbegun);
        }
    }
    // What a line tells of is more than interrupted.
    let lost: BTreeSet<&PathBuf> = found.lost.iter().collect();
    found.unbegun.retain(|folder| !lost.contains(folder));
    Ok(found)
}

/// Replays on all cores; results are in the order of the bundles.
fn all(
    replayer: &Replayer<'_>,
    bundles: &[PathBuf],
) -> anyhow::Result<Vec<Result<Replayed, String>>> {
    let bar = super::progress("replaying", bundles.len())?;
    let results: Vec<OnceLock<_>> = bundles.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((bundle, result)) = Some(next.fetch_add(1, Ordering::Relaxed))
            .and_then(|i| bundles.get(i).zip(results.get(i)))
        {
            result.get_or_init(|| one(replayer, bundle));
            bar.inc(1);
        }
    };
    // Threads of our own: a tool that waits for the common pool must not sit in it.
    let threads = thread::available_parallelism().map_or(2, usize::from).min(bundles.len());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    bar.finish_and_clear();
    Ok(results.into_iter().filter_map(OnceLock::into_inner).collect())
}

/// Replays one trace; whatever happens, the others go on.
fn one(replayer: &Replayer<'_>, bundle: &Path) -> Result<Replayed, String> {
    match panic::catch_unwind(AssertUnwindSafe(|| replayer.replay(bundle))) {
        Ok(replayed) => replayed.map_err(|error| error.to_string()),
        Err(_) => Err(format!(
            "{} cannot be replayed: deeplook broke over it; please report it, with the trace",
            bundle.display()
        )),
    }
}

fn wrong_digest(found: &Hash, wanted: &[Hash]) -> Divergence {
    let wanted: Vec<&str> = wanted.iter().map(Hash::as_str).collect();
    Divergence {
        part: None,
        turn: None,
        field: "digest".to_owned(),
        before: wanted.join(" or ").into(),
        after: found.as_str().into(),
        pixels: None,
    }
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    passed: usize,
    diverged: usize,
    traces: Vec<Replayed>,
    unreadable: Vec<Unreadable>,
    /// Traces that the results of a run name and that are not there.
    lost: Vec<PathBuf>,
    /// Judgements that were interrupted before anything was recorded.
    unbegun: Vec<PathBuf>,
    /// Digests that no trace has.
    digests_not_found: BTreeSet<Hash>,
}

#[derive(Serialize)]
struct Unreadable {
    trace: PathBuf,
    error: String,
}

impl Report {
    fn text(&self, strict: bool) -> String {
        let mut text = String::new();
        for one in &self.traces {
            line(&mut text, one, strict);
        }
        let red = Style::BOLD_RED;
        for Unreadable { error, .. } in &self.unreadable {
            let _ = writeln!(text, "{red}!{red:#} {}", visible_line(error));
        }
        for path in &self.lost {
            let name = visible_line(&path.to_string_lossy());
            let _ = writeln!(text, "{red}≠{red:#} {name}: results.jsonl names it, and it is gone");
        }
        for path in &self.unbegun {
            let yellow = Style::BOLD_YELLOW;
            let name = visible_line(&name_of(path));
            let _ = writeln!(
                text,
                "{yellow}…{yellow:#} {name}: interrupted before anything was recorded"
            );
        }
        for digest in &self.digests_not_found {
            let _ = writeln!(text, "{red}≠{red:#} no trace has the digest {digest}");
        }
        let mut sum = format!("{} of {} traces pass", self.passed, self.total());
        for (number, what) in [
            (self.diverged, "diverged"),
            (self.unreadable.len(), "cannot be read"),
            (self.lost.len(), "gone"),
            (self.traces.iter().filter(|one| !one.complete).count(), "interrupted"),
            (self.unbegun.len(), "not begun"),
        ] {
            if number > 0 {
                let _ = write!(sum, ", {number} {what}");
            }
        }
        let _ = writeln!(text, "{sum}");
        text
    }

    fn total(&self) -> usize {
        self.traces.len() + self.unreadable.len() + self.lost.len()
    }
}

/// One trace: a line, and what is to be said about it under it.
fn line(text: &mut String, one: &Replayed, strict: bool) {
    let (mark, style) = match (one.divergences.is_empty(), one.passes(strict), one.complete) {
        (false, ..) => ("≠", Style::BOLD_RED),
        (_, false, _) => ("≠", Style::BOLD_RED),
        (_, _, false) => ("…", Style::BOLD_YELLOW),
        _ => ("✓", Style::BOLD_GREEN),
    };
    let outcome = one.outcome.as_ref().map_or("interrupted".to_owned(), outcome_text);
    let _ = writeln!(
        text,
        "{style}{mark}{style:#} {}: {outcome} {DIM}{} {}, {} {} again, {}{DIM:#}",
        visible_line(&name_of(&one.trace)),
        one.questions,
        if one.questions == 1 { "question" } else { "questions" },
        one.looks,
        if one.looks == 1 { "look" } else { "looks" },
        one.digest,
    );
    for divergence in &one.divergences {
        describe(text, divergence, "");
    }
    for divergence in &one.within_tolerance {
        describe(text, divergence, " (within tolerance)");
    }
    for (tool, why) in &one.not_rerun {
        let _ = writeln!(
            text,
            "    {} could not be used again: {}",
            visible_line(tool),
            visible_line(why)
        );
    }
    if !one.complete {
        let _ = writeln!(text, "    the judgement was interrupted, or its end was cut off");
    }
}

fn name_of(trace: &Path) -> String {
    let name = trace.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| trace.display().to_string())
}

fn describe(text: &mut String, divergence: &Divergence, note: &str) {
    let Divergence { part, turn, field, before, after, pixels } = divergence;
    let mut place = String::new();
    if let Some(part) = part.filter(|part| *part > 0) {
        let _ = write!(place, "part {} · ", part + 1);
    }
    if let Some(turn) = turn {
        let _ = write!(place, "turn {turn} · ");
    }
    let _ = writeln!(text, "    {place}{}{note}", visible_line(field));
    if let Some(pixels) = pixels {
        let _ = writeln!(
            text,
            "      {} of {} pixels differ, by at most {} of 255, within {}",
            pixels.different, pixels.of, pixels.largest, pixels.bbox
        );
    }
    let (before, after) = excerpts(&shown(before), &shown(after));
    let _ = writeln!(text, "      − {before}\n      + {after}");
}

fn shown(value: &Value) -> String {
    visible_line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Two values, cut to the surroundings of the first place in which they differ.
fn excerpts(before: &str, after: &str) -> (String, String) {
    let (before, after): (Vec<char>, Vec<char>) =
        (before.chars().collect(), after.chars().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let cut = |text: &[char]| {
        if text.len() <= LONGEST {
            return text.iter().collect::<String>();
        }
        let start = same.saturating_sub(LONGEST / 4).min(text.len());
        let end = (start + LONGEST).min(text.len());
        let lead = if start > 0 { "…" } else { "" };
        let tail = if end < text.len() { "…" } else { "" };
        format!("{lead}{}{tail}", text[start..end].iter().collect::<String>())
    };
    (cut(&before), cut(&after))
}

//! `deeplook experiment watch`: judge a few edits again whenever a template is saved.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::super::progress::Watching;
use super::super::{eval, signals};
use crate::case::Facts;
use crate::cli::WatchArgs;
use crate::experiment::analysis::RightAnswers;
use crate::experiment::plan::{Sample, Trait};
use crate::experiment::sample;
use crate::hash::Hash;
use crate::key::Item;
use crate::prompt::{Finding, lint, workshop};
use crate::run::{Run, RunSpec};
use crate::terminal::{self, Style};
use crate::trace::ResultLine;
use crate::visible::visible_line;

/// How often the pack is looked at.
const PAUSE: Duration = Duration::from_millis(400);

pub(super) fn run(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let truth = match &args.labels {
        Some(path) => {
            let pack = args.pack.to_string_lossy();
            super::truth(path, &super::rankings(&pack, args.variant.as_deref())?)?
        }
        None => RightAnswers::new(),
    };
    let edits = edits(args, &truth)?;
    let mut before: Option<Labels> = None;
    let mut seen: Option<Result<Hash, String>> = None;
    let mut rounds = 0;
    loop {
        // While a template is being saved, it may not be there for a moment.
        let files = workshop::files_of(&args.pack.display().to_string());
        let now = files.as_ref().map(workshop::hash).map_err(ToString::to_string);
        if seen.as_ref() == Some(&now) {
            if signals::stop().is_asked() {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(PAUSE);
            continue;
        }
        let first = seen.replace(now).is_none();
        let files = match files {
            Ok(files) => files,
            Err(error) if first => return Err(error.into()),
            Err(error) => {
                writeln!(terminal::stderr(), "not judged: {error}")?;
                continue;
            }
        };
        let findings = lint(&files);
        if findings.is_empty() {
            let labels = round(args, folder.path(), &edits, rounds)?;
            show(&labels, before.as_ref(), &truth, rounds)?;
            before = Some(labels);
        } else {
            complain(&findings)?;
        }
        rounds += 1;
        if args.rounds.is_some_and(|most| rounds >= most) {
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(terminal::stderr(), "watching {}; Ctrl-C ends", args.pack.display())?;
    }
}

/// What each edit got, by criterion.
type Labels = BTreeMap<Item, String>;

/// A few edits of every type.
fn edits(args: &WatchArgs, truth: &RightAnswers) -> anyhow::Result<BTreeSet<(String, String)>> {
    let set = super::super::dataset::open(&args.cases, &args.reading)?;
    let choices = super::choices(&set.cases, truth);
    let balance = vec![Trait::Fact(Facts::TYPE.to_owned()), Trait::Label, Trait::Editor];
    let sample = Sample { edits: args.edits_at_most, seed: 0, balance };
    Ok(sample::choose(&choices, &sample).into_iter().collect())
}

fn round(
    args: &WatchArgs,
    folder: &Path,
    edits: &BTreeSet<(String, String)>,
    number: u32,
) -> anyhow::Result<Labels> {
    let (mut judge, access) = args.options().judge()?;
    judge.prompts = Some(args.pack.display().to_string());
    let mut spec = RunSpec { judge, ..RunSpec::default() };
    spec.data = args.reading.data(Some(&args.cases))?;
    args.asked.apply(&mut spec);
    args.going.apply(&mut spec);
    spec.select.only = Some(edits.clone());
    spec.keep.folder = Some(folder.join(number.to_string()));
    let run = Run::new(spec).access(access);
    let summary = eval::judge(run, Watching::new(true, false))?;
    let label = |line: ResultLine| {
        let outcome = line.outcome().map(|outcome| outcome.to_string());
        let label = line.label.or(outcome).unwrap_or_default();
        let editor = line.editor.unwrap_or_default();
        (Item { criterion: line.criterion, case: line.case, editor }, label)
    };
    Ok(summary.lines.into_values().map(label).collect())
}

fn show(
    labels: &Labels,
    before: Option<&Labels>,
    truth: &RightAnswers,
    round: u32,
) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let bold = Style::BOLD;
    write!(out, "{bold}round {}{bold:#}: {} judgements", round + 1, labels.len())?;
    let known = labels.iter().filter_map(|(item, label)| Some((truth.get(item)?, label)));
    let (right, known) = known.fold((0, 0), |(right, known), (truth, label)| {
        (right + usize::from(truth == label), known + 1)
    });
    if known > 0 {
        write!(out, ", {right} of {known} right")?;
    }
    writeln!(out)?;
    let mut flips = 0;
    for (item, after) in labels {
        let Item { criterion, case, editor } = item;
        let is_right = match truth.get(item) {
            Some(truth) if truth == after => " (right)".to_owned(),
            Some(truth) => format!(" (right is {truth})"),
            None => String::new(),
        };
        let of = format!("  {}:", visible_line(&format!("{case} by {editor}, {criterion}")));
        let after = visible_line(after);
        match before.map(|before| before.get(item)) {
            None => writeln!(out, "{of} {after}{is_right}")?,
            Some(Some(old)) if visible_line(old) != after => {
                let old = visible_line(old);
                writeln!(out, "{of} {old} → {bold}{after}{bold:#}{is_right}")?;
                flips += 1;
            }
            Some(_) => {}
        }
    }
    if before.is_some() {
        writeln!(out, "  {flips} flipped")?;
    }
    Ok(())
}

fn complain(findings: &[Finding]) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    writeln!(out, "not judged: the pack has something to mend")?;
    for finding in findings {
        writeln!(out, "  {finding}")?;
    }
    Ok(())
}

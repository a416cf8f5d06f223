//! `deeplook experiment watch`: judge a few edits again whenever a template is saved.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anstyle::Style;

use crate::cli::{EvalArgs, WatchArgs};
use crate::dataset::{DataSet, LoadOptions};
use crate::experiment::plan::{Sample, Trait};
use crate::experiment::sample::{self, Choice};
use crate::hash::Hash;
use crate::prompt::{Finding, lint, workshop};
use crate::trace::{self, ResultLine};

/// How often the pack is looked at.
const PAUSE: Duration = Duration::from_millis(400);

pub(super) fn run(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let edits = edits(args)?;
    let mut before: Option<Labels> = None;
    let mut seen: Option<Hash> = None;
    let mut rounds = 0;
    loop {
        let files = workshop::files_of(&args.pack.display().to_string())?;
        let now = workshop::hash(&files);
        if seen.as_ref() == Some(&now) {
            std::thread::sleep(PAUSE);
            continue;
        }
        seen = Some(now);
        let findings = lint(&files);
        if findings.is_empty() {
            let labels = round(args, folder.path(), &edits, rounds)?;
            show(&labels, before.as_ref(), rounds)?;
            before = Some(labels);
        } else {
            complain(&findings)?;
        }
        rounds += 1;
        if args.rounds.is_some_and(|most| rounds >= most) {
            return Ok(ExitCode::SUCCESS);
        }
        writeln!(anstream::stderr(), "watching {}; Ctrl-C ends", args.pack.display())?;
    }
}

/// What each edit got, by case, editor and criterion.
type Labels = BTreeMap<(String, String, String), String>;

/// A few edits of every type.
fn edits(args: &WatchArgs) -> anyhow::Result<BTreeSet<(String, String)>> {
    let set = DataSet::open(&args.cases, &LoadOptions::default())?;
    let choices: Vec<Choice> = set
        .cases
        .iter()
        .flat_map(|case| {
            case.edits.keys().map(|editor| Choice {
                case: case.id.clone(),
                editor: editor.clone(),
                kind: case.kind.clone(),
                label: None,
                area: None,
            })
        })
        .collect();
    let sample =
        Sample { edits: args.edits_at_most, seed: 0, balance: vec![Trait::Type, Trait::Editor] };
    Ok(sample::choose(&choices, &sample).into_iter().collect())
}

fn round(
    args: &WatchArgs,
    folder: &Path,
    edits: &BTreeSet<(String, String)>,
    number: u32,
) -> anyhow::Result<Labels> {
    let mut eval = EvalArgs::with(&args.cases, &args.more)?;
    let run = folder.join(number.to_string());
    eval.run = Some(run.clone());
    eval.only = Some(edits.clone());
    eval.options.prompts = Some(args.pack.clone());
    eval.quiet = true;
    super::eval::run(&eval)?;
    let label = |line: ResultLine| {
        let outcome = line.outcome().map(|outcome| format!("{outcome:?}").to_lowercase());
        let label = line.label.or(outcome).unwrap_or_default();
        ((line.case, line.editor.unwrap_or_default(), line.criterion), label)
    };
    Ok(trace::read_results(&run)?.into_iter().map(label).collect())
}

fn show(labels: &Labels, before: Option<&Labels>, round: u32) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let bold = Style::new().bold();
    writeln!(out, "{bold}round {}{bold:#}: {} judgements", round + 1, labels.len())?;
    let Some(before) = before else {
        for ((case, editor, criterion), label) in labels {
            writeln!(out, "  {case} by {editor}, {criterion}: {label}")?;
        }
        return Ok(());
    };
    let mut flips = 0;
    for (unit, after) in labels {
        let Some(old) = before.get(unit).filter(|old| *old != after) else { continue };
        let (case, editor, criterion) = unit;
        writeln!(out, "  {case} by {editor}, {criterion}: {old} → {bold}{after}{bold:#}")?;
        flips += 1;
    }
    writeln!(out, "  {flips} flipped")?;
    Ok(())
}

fn complain(findings: &[Finding]) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "not judged: the pack has something to mend")?;
    for finding in findings {
        writeln!(out, "  {finding}")?;
    }
    Ok(())
}

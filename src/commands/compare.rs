//! `deeplook compare`: two runs on the same cases.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::grid::Grid;
use super::read_run;
use crate::cli::CompareArgs;
use crate::comparison::{Comparison, CriterionComparison, Flip, OneSide, Scored, Side};
use crate::key::PairKey;
use crate::prompt::{Pack, Rubric};
use crate::report::{self, Run};
use crate::stats::{Bootstrap, Coverage, Finding};
use crate::terminal::{self, Style};
use crate::visible::visible_line;

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let otherwise = Arc::clone(Pack::find_varied(&args.prompts, args.variant.as_deref())?.rubric());
    let comparison = runs(&args.first, &args.second, &otherwise)?;
    if args.json {
        let mut object: Map<String, Value> =
            serde_json::from_value(serde_json::to_value(&comparison)?)?;
        object.insert("runs".to_owned(), json!([args.first, args.second]));
        super::print_json(&object)?;
    } else {
        print(args, &comparison)?;
    }
    super::gate(&gates(args, &comparison))
}

/// Compares two runs.
pub(super) fn runs(
    first: &Path,
    second: &Path,
    otherwise: &Arc<Rubric>,
) -> anyhow::Result<Comparison> {
    let runs = [read_run(first, otherwise)?, read_run(second, otherwise)?];
    let (by_editor, by_mode) =
        (differ(&runs, |line| &line.editor), differ(&runs, |line| &line.mode));
    let side = |run: &Run, path: &Path| side(run, path, [by_editor, by_mode]);
    let sides = [side(&runs[0], first)?, side(&runs[1], second)?];
    let Some(mut comparison) = Comparison::new(&sides[0], &sides[1], &Bootstrap::default()) else {
        bail!(
            "{} and {} have no judgement in common; they need the same cases, criteria and repetitions{}",
            first.display(),
            second.display(),
            if by_editor { ", and the same editors" } else { "" }
        );
    };
    comparison.different_prompts = different_prompts(&runs);
    Ok(comparison)
}

/// By which prompts each run was judged, where they are not the same.
fn different_prompts(runs: &[Run; 2]) -> Option<[Vec<String>; 2]> {
    let of = |run: &Run| -> BTreeSet<String> {
        run.lines.iter().filter_map(|line| line.prompts.clone()).collect()
    };
    let [first, second] = [of(&runs[0]), of(&runs[1])];
    let known = !first.is_empty() && !second.is_empty();
    (known && first != second).then(|| [first, second].map(|set| set.into_iter().collect()))
}

/// The prompts of both runs, for people.
fn both_prompts(prompts: &[Vec<String>; 2]) -> String {
    let [first, second] = prompts.each_ref().map(|one| one.join(", "));
    visible_line(&format!("{first} and {second}"))
}

/// Whether judgements must share this to be compared: where each run has one of a kind, they may be
/// what is compared.
fn differ<T: Ord>(runs: &[Run; 2], of: impl Fn(&crate::trace::ResultLine) -> &T) -> bool {
    runs.iter().any(|run| run.lines.iter().map(&of).collect::<BTreeSet<_>>().len() > 1)
}

fn side(run: &Run, path: &Path, [by_editor, by_mode]: [bool; 2]) -> anyhow::Result<Side> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let mut side = Side::default();
    for (_, group) in report::groups(std::slice::from_ref(run))? {
        for one in group.judgements {
            let key = PairKey {
                case: one.line.case.clone(),
                editor: one.line.editor.clone().filter(|_| by_editor),
                criterion: one.criterion.clone(),
                mode: one.line.mode.filter(|_| by_mode),
                repeat: one.line.repeat,
            };
            let label = || one.line.label.clone().unwrap_or_default();
            let verdict = one.score.map(|score| Scored { label: label(), score });
            let trace =
                one.line.trace.as_ref().map(|trace| folder.join(trace).display().to_string());
            let what = format!("case {:?} by {}", key.case, key.criterion);
            if side.judgements.insert(key, OneSide { verdict, trace }).is_some() {
                bail!(
                    "{} has two judgements of {what}, by different models or prompts; compare one judge at a time",
                    run.name
                );
            }
        }
    }
    Ok(side)
}

fn print(args: &CompareArgs, comparison: &Comparison) -> anyhow::Result<()> {
    let bootstrap = Bootstrap::default();
    let mut out = terminal::stdout();
    let bold = Style::BOLD;
    writeln!(out, "A: {}\nB: {}", args.first.display(), args.second.display())?;
    writeln!(
        out,
        "{} judgements in both; {} only in A, {} only in B; {} have a verdict only in A, {} only in B\n",
        comparison.pairs,
        comparison.only_in[0],
        comparison.only_in[1],
        comparison.lost_and_won[0],
        comparison.lost_and_won[1]
    )?;
    if let Some(prompts) = &comparison.different_prompts {
        writeln!(
            out,
            "{bold}A and B were judged by different prompts{bold:#}, {}: what differs below can come from the words alone.\n",
            both_prompts(prompts)
        )?;
    }
    for one in &comparison.criteria {
        writeln!(out, "{bold}{}{bold:#}: {}", visible_line(name(one)), in_words(one))?;
    }
    let head = [
        "criterion",
        "pairs",
        "cases",
        "coverage A",
        "coverage B",
        "A",
        "B",
        "B − A",
        "better",
        "worse",
        "same",
        "p (flips)",
        "p (signs)",
    ];
    let mut grid = Grid::new(1, head);
    for one in &comparison.criteria {
        grid.row(row(one));
    }
    writeln!(out, "\n{grid}")?;
    writeln!(
        out,
        "Scores are over judgements with a verdict in both runs; better, worse and same count cases.\n\
         p (flips): sign-flip permutation test over cases; p (signs): exact sign test. [95 % intervals: bootstrap over\n\
         cases, {} resamples, seed {}] Better or worse is said where the interval leaves out 0 and p (flips) is at most 0.05.",
        bootstrap.resamples, bootstrap.seed
    )?;
    print_flips(&mut out, &comparison.flips, args.flips)?;
    let more = comparison.flips.len().saturating_sub(args.flips);
    if more > 0 {
        writeln!(out, "  (all: --flips {})", comparison.flips.len())?;
    }
    Ok(())
}

/// The largest flips, at most so many.
pub(super) fn print_flips(
    out: &mut impl std::io::Write,
    flips: &[Flip],
    most: usize,
) -> anyhow::Result<()> {
    let bold = Style::BOLD;
    writeln!(out, "\n{bold}{} flips{bold:#}, the largest first", flips.len())?;
    for flip in flips.iter().take(most) {
        let PairKey { case, editor, criterion, mode, repeat } = &flip.judged;
        let mut what = vec![case.clone()];
        what.extend(editor.clone());
        what.push(criterion.clone());
        what.extend(mode.map(|mode| mode.to_string()));
        if *repeat > 0 {
            what.push(format!("repeat {repeat}"));
        }
        writeln!(
            out,
            "  {:+7.2}  {}: {} → {}",
            flip.difference,
            visible_line(&what.join(" · ")),
            visible_line(&flip.first.label),
            visible_line(&flip.second.label)
        )?;
        for (side, trace) in ["A", "B"].iter().zip(&flip.traces) {
            if let Some(trace) = trace {
                writeln!(out, "           {side}: {}", visible_line(trace))?;
            }
        }
    }
    if flips.len() > most {
        writeln!(out, "  … and {} more", flips.len() - most)?;
    }
    Ok(())
}

fn name(one: &CriterionComparison) -> &str {
    one.criterion.as_deref().unwrap_or("all")
}

fn in_words(one: &CriterionComparison) -> String {
    match (one.finding, one.more_cases) {
        (Finding::Better, _) => "B is better".to_owned(),
        (Finding::Worse, _) => "B is worse".to_owned(),
        (Finding::NoEvidence, _) if one.pairs == 0 => {
            "no evidence either way: no judgement has a verdict in both runs".to_owned()
        }
        (Finding::NoEvidence, None) => {
            "no evidence either way: no difference that more cases like these would show".to_owned()
        }
        (Finding::NoEvidence, Some(more)) => format!(
            "no evidence either way; to tell a difference of {} points from none it would take about {more} more cases",
            one.difference.value.map(|value| format!("{value:+.2}")).unwrap_or_default()
        ),
    }
}

fn row(one: &CriterionComparison) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.2}"));
    let p = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
    let covered =
        |coverage: Coverage| number(coverage.fraction().ok().map(|part| 100.0 * part)) + " %";
    let [better, worse, same] = one.better_worse_same.map(|count| count.to_string());
    vec![
        name(one).to_owned(),
        one.pairs.to_string(),
        one.cases.to_string(),
        covered(one.coverage[0]),
        covered(one.coverage[1]),
        number(one.means[0]),
        number(one.means[1]),
        one.difference.to_string(),
        better,
        worse,
        same,
        p(one.p_permutation),
        p(one.p_sign),
    ]
}

fn gates(args: &CompareArgs, comparison: &Comparison) -> Vec<String> {
    const ROUNDING: f64 = 1e-9;
    let mut complaints = Vec::new();
    if let (Some(most), Some(prompts)) = (args.max_regression, &comparison.different_prompts) {
        complaints.push(format!(
            "the runs were judged by different prompts, {}, so that --max-regression {most} cannot be shown to hold; judge both by the same",
            both_prompts(prompts)
        ));
    }
    for one in comparison.criteria.iter().filter(|one| one.criterion.is_some()) {
        if let Some(most) = args.max_regression {
            match one.difference.value {
                Ok(difference) if difference + ROUNDING < -most => complaints.push(format!(
                    "{}: the mean falls by {:.2} points, more than --max-regression {most}",
                    name(one),
                    -difference
                )),
                Ok(_) => {}
                Err(_) => complaints.push(format!(
                    "{}: no judgement has a verdict in both runs, so that --max-regression {most} is not shown to hold",
                    name(one)
                )),
            }
        }
        let covered = one.coverage[1].fraction().unwrap_or(0.0);
        if let Some(floor) = args.min_coverage.filter(|floor| covered + ROUNDING < *floor) {
            complaints.push(format!(
                "{}: coverage of B {:.2} % is below --min-coverage {:.2} %",
                name(one),
                100.0 * covered,
                100.0 * floor
            ));
        }
    }
    complaints
}

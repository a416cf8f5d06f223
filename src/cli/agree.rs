use std::path::PathBuf;

use clap::Args;

use super::{ReadingOptions, part, words};
use crate::agreement::{Measure, Truth};
use crate::prompt::DEFAULT;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook agree runs/monday --labels labels.jsonl
  deeplook agree runs/tool runs/oracle --labels labels.csv          # side by side, with paired differences
  deeplook agree runs/monday --labels labels.csv --min-agreement spearman=0.6 --min-coverage 95%
  deeplook agree judges/gpt.jsonl --labels labels.jsonl --out agreement.html   # with the cases they disagree on
  deeplook agree --table ratings.csv --json                         # any table of ratings

Labels are JSONL or CSV with case, editor, criterion, annotator and label. In a table rows are items, columns are
raters, an empty cell is a missing rating; a first column named item, case or id names the rows.")]
pub(crate) struct AgreeArgs {
    /// Folders of runs, or files like a run's results.jsonl.
    #[arg(value_name = "RUN", required_unless_present = "table")]
    pub(crate) runs: Vec<PathBuf>,
    /// What people say.
    #[arg(long, value_name = "FILE", required_unless_present = "table")]
    pub(crate) labels: Option<PathBuf>,
    /// The pack by which lines are read that no trace stands behind: a built-in name or a folder.
    #[arg(long, value_name = "PACK", default_value = DEFAULT)]
    pub(crate) prompts: String,
    /// A variant that this pack has.
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// What counts as the truth where annotators differ.
    #[arg(long, value_name = "RULE", default_value = "mean", value_parser = words::truth())]
    pub(crate) truth: Truth,
    /// Measure the agreement of the columns of a CSV file instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "labels", "truth", "min_coverage"])]
    pub(crate) table: Option<PathBuf>,
    /// Exit with 1 if a judge has fewer verdicts by a criterion: 0.95 or 95%.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub(crate) min_coverage: Option<f64>,
    /// Exit with 1 if a judge agrees less by a criterion: a number for spearman, or e.g. kappa_quadratic=0.6.
    #[arg(long, value_name = "[MEASURE=]NUMBER", value_parser = floor, allow_hyphen_values = true)]
    pub(crate) min_agreement: Option<AgreementFloor>,
    /// Also write a page: the confusion, and the cases on which judge and people disagree, worst first.
    #[arg(long, value_name = "FILE", conflicts_with = "table")]
    pub(crate) out: Option<PathBuf>,
    /// The data set whose pictures the page shows [default: cases.jsonl beside the labels].
    #[arg(long, value_name = "DATASET", requires = "out")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingOptions,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The least that a measure must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AgreementFloor {
    pub(crate) measure: Measure,
    pub(crate) least: f64,
}

fn floor(text: &str) -> Result<AgreementFloor, String> {
    let (measure, number) = text.split_once('=').unwrap_or(("spearman", text));
    let all = || Measure::OF_PAIRS.into_iter().chain(Measure::OF_RATERS);
    let mut known = all().filter(|one| *one != Measure::Mae);
    let is_it = |one: &Measure| one.key().eq_ignore_ascii_case(measure.trim());
    let measure = known.find(is_it).ok_or_else(|| {
        let known = all().filter(|one| *one != Measure::Mae);
        let known: Vec<&str> = known.map(Measure::key).collect();
        format!("{measure:?} is no measure of agreement; use one of {}", known.join(", "))
    })?;
    let least = number.trim().parse().ok().filter(|least| (-1.0..=1.0).contains(least));
    let least = least.ok_or("write a number from -1 to 1")?;
    Ok(AgreementFloor { measure, least })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_a_number_for_a_measure() {
        let floor_of = |measure, least| Ok(AgreementFloor { measure, least });
        assert_eq!(floor("0.6"), floor_of(Measure::Spearman, 0.6));
        assert_eq!(floor("kappa_quadratic=0.6"), floor_of(Measure::KappaQuadratic, 0.6));
        assert_eq!(floor("exact = 1"), floor_of(Measure::Exact, 1.0));
        for wrong in ["mae=0.1", "60", "NaN", "", "love=1", "spearman="] {
            assert!(floor(wrong).is_err(), "{wrong}");
        }
    }
}

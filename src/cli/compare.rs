use std::path::PathBuf;

use clap::Args;

use super::part;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook compare runs/old runs/new
  deeplook compare runs/old runs/new --max-regression 2      # exit code 1 if a mean falls by more than 2 points
  deeplook compare old/results.jsonl new/results.jsonl --json

Judgements are paired by case, editor, criterion, mode and repetition. Where each run has one editor, or one mode, that
may differ: two editors on the same cases, two modes of the same judge.")]
pub(crate) struct CompareArgs {
    /// The first run: its folder, or a file like its results.jsonl.
    #[arg(value_name = "RUN_A")]
    pub(crate) first: PathBuf,
    /// The second run.
    #[arg(value_name = "RUN_B")]
    pub(crate) second: PathBuf,
    /// The pack by which lines are read that no trace stands behind: a built-in name or a folder.
    #[arg(long, value_name = "PACK", default_value = crate::prompt::DEFAULT)]
    pub(crate) prompts: String,
    /// A variant that this pack has.
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// How many flips to print.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) flips: usize,
    /// Exit with 1 if the mean score of a criterion falls by more points than this.
    #[arg(long, value_name = "POINTS", value_parser = points)]
    pub(crate) max_regression: Option<f64>,
    /// Exit with 1 if the second run has fewer verdicts by a criterion: 0.95 or 95%.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub(crate) min_coverage: Option<f64>,
    /// Print JSON, with all flips.
    #[arg(long)]
    pub(crate) json: bool,
}

fn points(text: &str) -> Result<f64, String> {
    let points = text.trim().parse().ok().filter(|points| (0.0..=100.0).contains(points));
    points.ok_or_else(|| "write a number of points from 0 to 100".to_owned())
}

use std::path::PathBuf;

use clap::Args;

use super::words::ReportFormat;
use crate::case::Condition;
use crate::prompt::DEFAULT;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook report runs/monday                                 # Markdown on the terminal
  deeplook report runs/monday --out report.html               # one page with plots
  deeplook report runs/tool runs/oracle --format latex        # side by side, for a paper
  deeplook report results.jsonl --format csv --out scores.csv
  deeplook report runs/monday --out judgements.parquet        # a row for each judgement, for pandas or DuckDB
  deeplook report runs/monday --by law --where difficulty=explicit
  deeplook report runs/monday --min-coverage 95%              # exit code 1 below

A results.jsonl from elsewhere needs `case`, `editor`, `criterion` and `label` (or `score`) on each line; --prompts names
the pack whose labels they are. Runs, models, modes and prompts stand side by side; they are never averaged together.")]
pub(crate) struct ReportArgs {
    /// Folders of runs, or files like a run's results.jsonl.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// What to write [default: what the name in --out ends in, else md].
    #[arg(long, value_name = "FORMAT", value_parser = super::words::format())]
    pub format: Option<ReportFormat>,
    /// Group by this fact of the cases [default: what the pack says, else type].
    #[arg(long, value_name = "FACT")]
    pub by: Option<String>,
    /// Only cases of which this is known, e.g. --where law=Reflection.
    #[arg(long = "where", value_name = "FACT=VALUE")]
    pub conditions: Vec<Condition>,
    /// The pack by which lines are read that no trace stands behind: a built-in name or a folder.
    #[arg(long, value_name = "PACK", default_value = DEFAULT)]
    pub prompts: String,
    /// A variant that this pack has.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// The file to write, or the folder for a benchmark's own files [default: stdout].
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Exit with 1 if fewer judgements of an editor by a criterion have a verdict: 0.95 or 95%.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub min_coverage: Option<f64>,
}

/// A part of a whole: `0.95` or `95%`.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().map_err(|error| error.to_string());
    let part = match text.trim().strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    match (0.0..=1.0).contains(&part) {
        true => Ok(part),
        false => Err("write a part from 0 to 1, or a percentage such as 95%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_part_is_a_fraction_or_a_percentage() {
        assert_eq!(part("0.95"), Ok(0.95));
        assert_eq!(part("95%"), Ok(0.95));
        assert_eq!(part("100 %"), Ok(1.0));
        for wrong in ["95", "-0.1", "NaN", "inf", "", "%", "many"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}

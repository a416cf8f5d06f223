use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook audit gedit_scores.csv
  deeplook audit answers/SC.json --expect cases.jsonl
  deeplook audit scores.jsonl --scale 0..10 --json

Score files of VIEScore, GEdit-Bench, ImgEdit, PICAEval, VIBE and EditScore are known by their fields, and tables with
columns that are named score or rater. Told are replies that could not be read and have a score all the same, items that
are missing or stand twice, and raters that are one; beside each mean stand its coverage and bounds.
Exit codes: 0 nothing was found, 1 a number cannot be trusted, 2 the file cannot be read.")]
pub(crate) struct AuditArgs {
    /// The file of scores: CSV, TSV, JSON or JSON lines.
    pub(crate) file: PathBuf,
    /// The data set whose cases should all be there, by id.
    #[arg(long, value_name = "DATASET")]
    pub(crate) expect: Option<PathBuf>,
    /// The lowest and the highest score that there is [default: that of the known form].
    #[arg(long, value_name = "LOW..HIGH", value_parser = scale)]
    pub(crate) scale: Option<Scale>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The ends of a scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale(pub(crate) [f64; 2]);

fn scale(text: &str) -> Result<Scale, String> {
    let ends = text.split_once("..").and_then(|(low, high)| {
        Some([low.trim().parse::<f64>().ok()?, high.trim().parse::<f64>().ok()?])
    });
    match ends {
        Some([low, high]) if low.is_finite() && high.is_finite() && low < high => {
            Ok(Scale([low, high]))
        }
        _ => Err("write the lowest and the highest score, such as 0..10".to_owned()),
    }
}

use std::path::PathBuf;

use clap::Args;

use super::dataset::ReadingOptions;
use super::judge::JudgeOptions;
use crate::prompt::Mode;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook probe scenes/                                          # is the offline judge sound?
  deeplook probe scenes/ --cases 3 --model gemini-3.1-pro-preview --mode plain
  deeplook probe dlebench/ --run traces/runs/probe --model qwen3-vl --base-url http://localhost:8000/v1

Every case of the data set becomes a dozen questions whose answer is known: the source as its own edit, the
reference as the edit, another case's instruction, a blank picture, … and the same edit in another format, size,
order and under other names, which must not move the label. Exit codes: 0 the judge passed, 1 it did not, 2 it
could not be asked.")]
pub(crate) struct ProbeArgs {
    /// The data set; cases with a reference and boxes make more probes.
    pub dataset: PathBuf,
    #[command(flatten)]
    pub reading: ReadingOptions,
    /// How many cases to make probes of.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub cases: u32,
    /// By which criterion to judge.
    #[arg(long, value_name = "ID,…|all", value_delimiter = ',', default_value = "all")]
    pub criterion: Vec<String>,
    /// What the judge gets to see.
    #[arg(long, value_parser = super::words::mode(), default_value = "tool")]
    pub mode: Mode,
    /// The folder of the run; the same command goes on there [default: one in traces/runs/].
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// The share of right answers that passes.
    #[arg(long, value_name = "X", default_value_t = 0.8, value_parser = super::part)]
    pub floor: f64,
    #[command(flatten)]
    pub options: JudgeOptions,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

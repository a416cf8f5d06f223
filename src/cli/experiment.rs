use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::dataset::ReadingOptions;
use super::eval::{AskedOptions, GoingOptions, SelectionOptions};
use super::judge::{BoundOptions, JudgeOptions, ModelOptions, ToolFlags};

#[derive(Debug, Subcommand)]
pub(crate) enum ExperimentCommand {
    /// Judge the same edits with every combination of prompts, models, modes and tools of a plan.
    #[command(after_help = "\
Examples:
  deeplook experiment run plan.toml --plan      # the matrix, the calls and the cost
  deeplook experiment run plan.toml             # the same command again goes on where it was stopped
  deeplook experiment run plan.toml --concurrency 32 --max-cost 5      # in every cell
  deeplook experiment run plan.toml --from-traces traces/runs/base    # other words on what was seen there

A plan is a small file:
  name = \"wording\"
  cases = \"scenes/cases.jsonl\"
  labels = \"scenes/labels.jsonl\"
  criterion = \"vc\"
  sample = { edits = 60, seed = 1 }             # balanced by type, label and area
  [[prompts]]
  name = \"as it is\"
  [[prompts]]
  name = \"stricter\"
  pack = \"stricter\"                             # made with `deeplook prompts new stricter`
  [[tools]]
  name = \"all\"
  [[tools]]
  name = \"no difference\"
  without = [\"localize_differences\"]")]
    Run(Box<RunExperimentArgs>),
    /// Compare the cells: agreement, coverage, cost, and what is more than luck.
    #[command(after_help = "\
Examples:
  deeplook experiment report traces/runs/wording
  deeplook experiment report traces/runs/wording --out wording.html")]
    Report {
        /// The folder of the experiment.
        folder: PathBuf,
        /// What is right, where the plan does not name a file.
        #[arg(long, value_name = "FILE")]
        labels: Option<PathBuf>,
        /// Write a page instead.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print one JSON object.
        #[arg(long, conflicts_with = "out")]
        json: bool,
    },
    /// Judge a few edits again whenever a template of a pack is saved, and show what flipped.
    #[command(after_help = "\
Example:
  deeplook experiment watch stricter/ scenes/ --labels scenes/labels.jsonl --edits-at-most 12")]
    Watch(Box<WatchArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct RunExperimentArgs {
    /// The plan.
    pub plan: PathBuf,
    /// The folder of the experiment [default: one in traces/runs/, named as the plan].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Judge again what was seen in the traces of this run, in every cell: no tool runs, so that only
    /// the wording differs; takes the place of `from_traces` in the plan.
    #[arg(long, value_name = "RUN")]
    pub from_traces: Option<PathBuf>,
    /// Print the matrix, the calls and the cost, and ask nobody.
    #[arg(long = "plan")]
    pub only_plan: bool,
    /// A server that the plan may ask, besides this machine and those of built-in profiles with
    /// their own keys; once for each.
    #[arg(long = "allow-server", value_name = "URL")]
    pub allow_servers: Vec<String>,
    #[command(flatten)]
    pub reading: ReadingOptions,
    #[command(flatten)]
    pub selection: SelectionOptions,
    #[command(flatten)]
    pub going: GoingOptions,
    #[command(flatten)]
    pub bounds: BoundOptions,
    /// Say nothing of how the cells go.
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The pack that is being edited.
    pub pack: PathBuf,
    /// The data set.
    pub cases: PathBuf,
    /// A variant that the pack has.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// What is right: how many are is said in every round, and of each flip.
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// How many edits are judged each time.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub edits_at_most: usize,
    /// Stop after so many rounds [default: go on until Ctrl-C].
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    #[command(flatten)]
    pub reading: ReadingOptions,
    #[command(flatten)]
    pub asked: AskedOptions,
    #[command(flatten)]
    pub going: GoingOptions,
    #[command(flatten)]
    pub model: ModelOptions,
    #[command(flatten)]
    pub bounds: BoundOptions,
    #[command(flatten)]
    pub tools: ToolFlags,
}

impl WatchArgs {
    /// Who judges; the prompts are the pack that is watched.
    pub(crate) fn options(&self) -> JudgeOptions {
        JudgeOptions {
            model: self.model.clone(),
            prompts: None,
            variant: self.variant.clone(),
            bounds: self.bounds.clone(),
            tools: self.tools.clone(),
        }
    }
}

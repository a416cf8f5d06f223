use std::path::PathBuf;

use clap::Args;

use super::judge::ModelOptions;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook doctor --model gemini-3.1-pro-preview
  deeplook doctor --model qwen3-vl --base-url http://localhost:8000

One tiny question with a picture and a tool; where that is refused, the same without the tool, and on the other
wires. Exit codes: 0 these options judge, 1 they do not (it says which do, if any), 2 nobody is there.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub model: ModelOptions,
    /// Seconds to wait for a reply.
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Prices of models in a file of your own, which replace the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

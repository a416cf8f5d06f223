use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// Draw a small benchmark whose right answers are known.
    #[command(after_help = "\
Example:
  deeplook dataset make --out scenes/ --cases 28 --seed 7

The folder gets cases.jsonl, labels.jsonl, and the pictures. Same seed, same bytes.")]
    Make {
        /// The folder to write; it must be new or empty.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// How many cases; seven or more cover every type of instruction.
        #[arg(long, value_name = "N", default_value_t = 14)]
        cases: usize,
        /// Another seed draws other scenes.
        #[arg(long, value_name = "S", default_value_t = 1)]
        seed: u64,
    },
}

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::judge::{CaseFacts, ToolFlags};
use super::words;
use crate::message::Dialect;
use crate::prompt::Mode;

#[derive(Debug, Subcommand)]
pub(crate) enum PromptsCommand {
    /// List the packs in this binary.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print exactly what a model would get.
    #[command(after_help = "\
Examples:
  deeplook prompts show
  deeplook prompts show --criterion vc --mode oracle --dialect tags
  deeplook prompts show --prompts my-pack/ before.png after.png -i 'Make the boat green.'
  deeplook prompts show before.png after.png -i 'Remove the cup' --mode oracle --box 210,80,260,140")]
    Show(Box<ShowPromptsArgs>),
    /// Copy a pack to a new folder, to edit it.
    #[command(after_help = "\
Example:
  deeplook prompts new stricter --from dlebench/v1
  deeplook prompts lint stricter/
  deeplook judge before.png after.png -i 'Remove the cup' --prompts stricter/")]
    New {
        /// The name of the new pack and of its folder.
        #[arg(value_name = "NAME")]
        name: String,
        /// A pack in this binary, or a folder.
        #[arg(long, value_name = "PACK", default_value = crate::prompt::DEFAULT)]
        from: String,
    },
    /// Check a pack: exit code 0 if it is clean, 1 if there is something to mend.
    #[command(after_help = "Example:\n  deeplook prompts lint my-pack/")]
    Lint {
        /// A folder, or a pack in this binary such as dlebench/v1 [default: every pack in it].
        #[arg(value_name = "DIR")]
        pack: Option<String>,
        /// Only this variant of it [default: the pack and all of them].
        #[arg(long, value_name = "NAME", requires = "pack")]
        variant: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what two packs would tell a model differently, and which rules differ.
    #[command(after_help = "\
Examples:
  deeplook prompts diff dlebench/v1 my-pack/
  deeplook prompts diff my-pack/ my-pack/ --variant paper released
  deeplook prompts diff --runs runs/v1 runs/my-pack     # the wording of both runs, and the labels that flipped")]
    Diff {
        /// Two packs to compare: packs in this binary such as dlebench/v1, or folders.
        #[arg(value_names = ["A", "B"], num_args = 2, required_unless_present = "runs")]
        packs: Vec<String>,
        /// The variant of both packs, or two names: of the first and of the second; `-` for none.
        #[arg(long, value_name = "NAME", num_args = 1..=2, allow_hyphen_values = true, requires = "packs")]
        variant: Vec<String>,
        /// Two runs that were judged with them: also show which labels flipped.
        #[arg(long, num_args = 2, value_names = ["RUN_A", "RUN_B"])]
        runs: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ShowPromptsArgs {
    /// The pictures before and after the edit; without them, an example stands in.
    #[arg(value_name = "IMAGE", num_args = 0..=2)]
    pub images: Vec<PathBuf>,
    /// The criterion's id, e.g. if or vc [default: the pack's first].
    #[arg(long, value_name = "ID")]
    pub criterion: Option<String>,
    /// How much help the judge gets.
    #[arg(long, value_parser = words::mode(), default_value = "tool")]
    pub mode: Mode,
    /// How the model calls tools [default: native, or the profile's].
    #[arg(long, value_parser = words::dialect())]
    pub dialect: Option<Dialect>,
    #[command(flatten)]
    pub facts: CaseFacts,
    /// Judge every target on its own, also where the instruction is about their number.
    #[arg(long)]
    pub per_target: bool,
    /// The profile of a server: how it takes boxes, and how large pictures may be.
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// A folder, or a pack in this binary.
    #[arg(long, value_name = "DIR", default_value = crate::prompt::DEFAULT)]
    pub prompts: String,
    /// A variant that the pack has.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub tools: ToolFlags,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

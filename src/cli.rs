//! What can be typed. Types only: what is made of it stands in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::message::Dialect;
use crate::prompt::Mode;

/// Judges image edits closely: zooms, compares, and records why.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with:\n  deeplook demo\n  deeplook tool localize_differences before.png after.png --out crops/"
)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Use one of the judge's tools on pictures of your own.
    Tool(ToolArgs),
    /// List, show, check and compare prompt packs.
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Make and inspect data sets.
    #[command(subcommand)]
    Dataset(DatasetCommand),
    /// Show on drawn scenes what deeplook does: no key, no server, no download.
    Demo(DemoArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  deeplook completions bash > ~/.local/share/bash-completion/completions/deeplook"
    )]
    Completions {
        /// The shell to complete in.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook tool list
  deeplook tool localize_differences before.png after.png --out crops/
  deeplook tool zoom_in photo.jpg --args '{\"bbox\": [10, 20, 60, 80]}'
  deeplook tool zoom_in before.png after.png --args '{\"target_image\": \"both\", \"bbox\": [10, 20, 60, 80]}'")]
pub(crate) struct ToolArgs {
    /// The tool to use, or `list` to see all of them with their arguments.
    pub name: String,
    /// Pictures; they get the names "Original Image", "Edited Image" and "Reference Image".
    #[arg(value_name = "IMAGE", num_args = 0..=3)]
    pub images: Vec<PathBuf>,
    /// The tool's arguments as a JSON object; boxes are [x1, y1, x2, y2] in pixels.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Where to write the pictures that the tool makes [default: a new temporary folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object: {"text", "data", "images": [{"name", "path"}]}.
    #[arg(long)]
    pub json: bool,
}

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
  deeplook prompts show --prompts my-pack/ -i 'Make the boat green.'")]
    Show(ShowPromptsArgs),
    /// Check a pack: exit code 0 if it is clean, 1 if there is something to mend.
    #[command(after_help = "Example:\n  deeplook prompts lint my-pack/")]
    Lint {
        /// A folder, or a pack in this binary such as dlebench/v1 [default: every pack in it].
        #[arg(value_name = "DIR")]
        pack: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what two packs would tell a model differently, and which rules differ.
    #[command(after_help = "Example:\n  deeplook prompts diff dlebench/v1 my-pack/")]
    Diff {
        /// A pack in this binary such as dlebench/v1, or a folder.
        #[arg(value_name = "A")]
        before: String,
        /// The same, to compare with.
        #[arg(value_name = "B")]
        after: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ShowPromptsArgs {
    /// The criterion's id, e.g. if or vc [default: the pack's first].
    #[arg(long, value_name = "ID")]
    pub criterion: Option<String>,
    /// How much help the judge gets.
    #[arg(long, value_enum, default_value_t = Mode::Tool)]
    pub mode: Mode,
    /// How the model calls tools.
    #[arg(long, value_enum, default_value_t = Dialect::Native)]
    pub dialect: Dialect,
    /// The editor's instruction.
    #[arg(
        short,
        long,
        value_name = "TEXT",
        default_value = "Change the colour of the small boat from white to green."
    )]
    pub instruction: String,
    /// A folder, or a pack in this binary.
    #[arg(long, value_name = "DIR", default_value = "dlebench/v1")]
    pub prompts: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

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

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  deeplook demo --out /tmp/deeplook-demo")]
pub(crate) struct DemoArgs {
    /// The folder to write; what an earlier demo left there is replaced.
    #[arg(long, value_name = "DIR", default_value = "traces/runs/demo")]
    pub out: PathBuf,
}

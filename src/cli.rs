//! What can be typed. Types only: what is made of it stands in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use deeplook_tools::PixelBox;

use crate::message::Dialect;
use crate::prompt::Mode;

/// Judges image edits closely: zooms, compares, and records why.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with:\n  deeplook demo\n  deeplook tool localize_differences before.png after.png --out crops/"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge one edit: two labels, with the reasoning and the crops that they rest on.
    Judge(Box<JudgeArgs>),
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
  deeplook judge before.jpg after.png -i \"Change the woman's scarf from red to green\"
  deeplook judge before.jpg after.png -i \"Remove the cup\" --model gpt-5.1
  deeplook judge before.jpg after.png -i \"Remove the cup\" --model qwen3-vl --base-url http://localhost:8000/v1
  deeplook judge before.jpg after.png -i \"Remove the cup\" --mode oracle --box 210,80,260,140 --reference good.png

Without --model (or DEEPLOOK_MODEL) the offline judge `rules` decides: a baseline that needs no key.
The key for a server comes from the environment: OPENAI_API_KEY, or what the profile names.")]
pub(crate) struct JudgeArgs {
    /// The picture before the edit.
    pub source: PathBuf,
    /// The picture after the edit.
    pub edited: PathBuf,
    #[command(flatten)]
    pub facts: CaseFacts,
    /// By which criterion to judge.
    #[arg(long, value_name = "if|vc|both", default_value = "both")]
    pub criterion: String,
    #[command(flatten)]
    pub options: JudgeOptions,
    /// Where to write the trace [default: a new folder in traces/runs/].
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Print one JSON object on stdout, everything else on stderr.
    #[arg(long)]
    pub json: bool,
}

/// What is known about an edit besides its pictures.
#[derive(Debug, Args)]
pub(crate) struct CaseFacts {
    /// What the editor was told.
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub instruction: String,
    /// Where a target is, in pixels of the source; once for each target.
    #[arg(long = "box", value_name = "X1,Y1,X2,Y2", value_parser = crate::config::parse_box, allow_hyphen_values = true)]
    pub boxes: Vec<PixelBox>,
    /// What a good edit looks like.
    #[arg(long, value_name = "IMAGE")]
    pub reference: Option<PathBuf>,
    /// A phrase for the target; kept in the trace.
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The type of the instruction, e.g. "Change Count", whose targets are judged together.
    #[arg(long = "type", value_name = "T")]
    pub kind: Option<String>,
}

/// What everything that judges takes.
#[derive(Debug, Args)]
pub(crate) struct JudgeOptions {
    /// What the judge gets to see: tools to search with, crops and masks from boxes, or one look.
    #[arg(long, value_enum, default_value = "tool")]
    pub mode: Mode,
    /// Judge every target on its own, also where the instruction is about their number.
    #[arg(long)]
    pub per_target: bool,
    /// The model to ask, or `rules` for the offline judge.
    #[arg(long, value_name = "M", env = "DEEPLOOK_MODEL", default_value = "rules")]
    pub model: String,
    /// An OpenAI-compatible server [default: OPENAI_BASE_URL, else the profile's].
    #[arg(long = "base-url", value_name = "U")]
    pub base_url_flag: Option<String>,
    /// openai, gemini, vllm, ollama, lmstudio, openrouter, llamacpp, or a file of your own
    /// [default: guessed from model and URL].
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// How the model calls tools [default: the profile's].
    #[arg(long, value_enum)]
    pub dialect: Option<Dialect>,
    /// Something for the server, e.g. temperature=0, seed=7, reasoning_effort=low, max_tokens=4000.
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
    /// Seconds to wait for a reply.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// The most turns; in the last one the judge must answer.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_turns: u32,
    /// The most tool calls over all turns.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub max_calls: u32,
    /// The most tokens that a question and all its turns may use; beyond them it has failed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
    /// Prices of models in a file of your own, which replace the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// A prompt pack of your own.
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
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
  deeplook prompts show --prompts my-pack/ before.png after.png -i 'Make the boat green.'
  deeplook prompts show before.png after.png -i 'Remove the cup' --mode oracle --box 210,80,260,140")]
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
    /// The pictures before and after the edit; without them, an example stands in.
    #[arg(value_name = "IMAGE", num_args = 0..=2)]
    pub images: Vec<PathBuf>,
    /// The criterion's id, e.g. if or vc [default: the pack's first].
    #[arg(long, value_name = "ID")]
    pub criterion: Option<String>,
    /// How much help the judge gets.
    #[arg(long, value_enum, default_value_t = Mode::Tool)]
    pub mode: Mode,
    /// How the model calls tools [default: native, or the profile's].
    #[arg(long, value_enum)]
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

use std::path::PathBuf;

use clap::Args;
use deeplook_tools::PixelBox;

use crate::message::Dialect;
use crate::prompt::Mode;

#[derive(Debug, Args)]
#[command(override_usage = "deeplook judge [OPTIONS] <SOURCE> <EDITED> -i <TEXT>")]
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
    /// What the judge gets to see: tools to search with, crops and masks from boxes, or one look.
    #[arg(long, value_enum, default_value = "tool")]
    pub mode: Mode,
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
#[derive(Debug, Clone, Args)]
pub(crate) struct JudgeOptions {
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
    pub max_tool_calls: u32,
    /// The most tokens that a question and all its turns may use; beyond them it has failed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
    /// Prices of models in a file of your own, which replace the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// A prompt pack of your own.
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
    #[command(flatten)]
    pub tools: ToolOptions,
}

/// Which tools there are, and which model files they use.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToolOptions {
    /// What finds objects: a name from `deeplook models list`, an ONNX file of your own, or `none`
    /// [default: grounding-dino-tiny if it was fetched].
    #[arg(long, value_name = "NAME|FILE")]
    pub detector: Option<String>,
    /// What enlarges crops: a name from `deeplook models list`, an ONNX file of your own, or
    /// `lanczos` [default: the photo model if it was fetched].
    #[arg(long, value_name = "NAME|FILE")]
    pub enhancer: Option<String>,
    /// Leave a tool out; once for each.
    #[arg(long, value_name = "TOOL")]
    pub without: Vec<String>,
    /// Other settings of the tools than the usual ones: a TOML file with a table for each tool, as
    /// the traces show them.
    #[arg(long, value_name = "FILE")]
    pub tool_settings: Option<PathBuf>,
}

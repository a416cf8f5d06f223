use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::hash::Hash;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook replay traces/runs/2026-01-31T12-00-00Z-judge
  deeplook replay RUN --strict --tools live
  deeplook replay RUN/judgements/NAME --digest 5f0c…
  deeplook replay RUN/judgements/NAME --from-turn 2 --model gpt-5.1
  deeplook replay RUN/judgements/NAME --from-turn 1 --prompts my-pack/

No key and no network are needed, and nothing is fetched: a tool whose network is not here counts as recorded.
Only --from-turn asks a model: which one, where and with which key is never taken from a trace. Exit code 1 means that something is not as the record has it.
An interrupted trace, a tool that could not be used again and a network's rounding are told; with
--strict they count too.")]
pub(crate) struct ReplayArgs {
    /// Bundles, runs, or folders that hold them.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Also fail on an interrupted trace, a tool that could not be used again, and a difference
    /// within the tolerance for networks.
    #[arg(long)]
    pub strict: bool,
    /// Where looks come from: today's tools on the stored pictures, or the record.
    #[arg(long, value_enum, default_value = "live")]
    pub tools: Looks,
    /// The digest that the trace must have, as `judge` printed it; once for each trace.
    #[arg(long = "digest", value_name = "HEX", value_parser = parse_hash)]
    pub digests: Vec<Hash>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub fork: ForkOptions,
    /// Where the trace's detector is, if it was a file of your own: what a trace says of files is not
    /// followed.
    #[arg(long, value_name = "FILE")]
    pub detector: Option<String>,
    /// Where the trace's enhancer is, if it was a file of your own.
    #[arg(long, value_name = "FILE")]
    pub enhancer: Option<String>,
}

/// Keeps the first turns of a trace and goes on with another model or other prompts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fork")]
pub(crate) struct ForkOptions {
    /// Ask anew from this turn on; the turns before it are kept. The new trace names its parent.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub from_turn: Option<u32>,
    /// The model to go on with, or `rules` [default: the trace's].
    #[arg(long, value_name = "M", requires = "from_turn")]
    pub model: Option<String>,
    /// Its server [default: OPENAI_BASE_URL, else the profile's]. A trace never decides who is asked.
    #[arg(long, value_name = "U", requires = "from_turn")]
    pub base_url: Option<String>,
    /// Its profile, which also says where the key is [default: guessed from model and URL].
    #[arg(long, value_name = "NAME|FILE", requires = "from_turn")]
    pub profile: Option<String>,
    /// Something for the server, e.g. temperature=0.
    #[arg(long = "param", value_name = "KEY=VALUE", requires = "from_turn")]
    pub params: Vec<String>,
    /// Seconds to wait for a reply.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Fork a trace although it is not as it was written: a seal is broken, or a line was moved.
    #[arg(long, requires = "from_turn")]
    pub despite_flaws: bool,
    /// A prompt pack to go on with [default: the trace's].
    #[arg(long, value_name = "DIR", requires = "from_turn")]
    pub prompts: Option<PathBuf>,
    /// A variant of that pack.
    #[arg(long, value_name = "NAME", requires = "prompts")]
    pub variant: Option<String>,
    /// Where to write the new trace [default: a new folder in traces/runs/].
    #[arg(long, value_name = "DIR", requires = "from_turn")]
    pub trace: Option<PathBuf>,
}

/// Where the looks of a replay come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Looks {
    /// Every tool is used again.
    Live,
    /// No picture is decoded: fast, and needs no networks.
    Recorded,
}

fn parse_hash(text: &str) -> Result<Hash, String> {
    Hash::try_from(text.trim().to_owned())
}

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::hash::Hash;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook replay traces/runs/2026-01-31T12-00-00Z-judge
  deeplook replay RUN --strict --tools live
  deeplook replay RUN/judgements/NAME --digest 5f0c…

No key and no network are needed. Exit code 1 means that something is not as the record has it.
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
    /// Where the trace's detector is, if it was a file of your own.
    #[arg(long, value_name = "FILE")]
    pub detector: Option<String>,
    /// Where the trace's enhancer is, if it was a file of your own.
    #[arg(long, value_name = "FILE")]
    pub enhancer: Option<String>,
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

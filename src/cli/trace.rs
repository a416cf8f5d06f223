use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Show what was thought, called, seen and decided, as `judge` does.
    #[command(
        after_help = "Example:\n  deeplook trace show traces/runs/2026-01-31T12-00-00Z-judge"
    )]
    Show {
        /// Bundles, runs, or folders that hold them.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Put a bundle or a run into one file for sending, a zip archive.
    #[command(after_help = "Example:\n  deeplook trace pack traces/runs/mine -o mine.zip")]
    Pack {
        /// A bundle, also one inside a run, or a run.
        path: PathBuf,
        /// The archive to write.
        #[arg(short, long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Take a bundle or a run out of its archive.
    #[command(after_help = "Example:\n  deeplook trace unpack mine.zip -o mine/")]
    Unpack {
        /// The archive.
        file: PathBuf,
        /// The folder to make.
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Print conversations as chat-format JSONL, for fine-tuning and other programs.
    #[command(
        after_help = "Example:\n  deeplook trace export traces/runs/mine > conversations.jsonl"
    )]
    Export {
        /// Bundles, runs, or folders that hold them.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Pictures inside of the lines, or as the paths of their files.
        #[arg(long, value_enum, default_value = "inline")]
        pictures: ExportedPictures,
    },
    /// Print the JSON schemas of the files of a trace.
    #[command(
        after_help = "Rewrite the committed one with:\n  deeplook trace schema > traces/schema.json"
    )]
    Schema,
}

/// How exported pictures are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportedPictures {
    /// As data URLs.
    Inline,
    /// As paths.
    Paths,
}

//! What can be typed, one verb per file. Types only: what is made of it stands in `commands`.

mod agree;
mod audit;
mod compare;
mod dataset;
mod demo;
mod doctor;
mod eval;
mod experiment;
mod judge;
mod models;
mod probe;
mod prompts;
mod replay;
mod report;
mod tool;
mod trace;
mod view;
pub(crate) mod words;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub(crate) use self::agree::{AgreeArgs, AgreementFloor};
pub(crate) use self::audit::AuditArgs;
pub(crate) use self::compare::CompareArgs;
pub(crate) use self::dataset::{DataSetArgs, DatasetCommand, ReadingOptions};
pub(crate) use self::demo::DemoArgs;
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::eval::{EvalArgs, RunCommand};
pub(crate) use self::experiment::{ExperimentCommand, RunExperimentArgs, WatchArgs};
pub(crate) use self::judge::{CaseFacts, JudgeArgs, JudgeOptions, criteria, params, served_at};
pub(crate) use self::models::ModelsCommand;
pub(crate) use self::probe::ProbeArgs;
pub(crate) use self::prompts::{PromptsCommand, ShowPromptsArgs};
pub(crate) use self::replay::{ForkOptions, Looks, ReplayArgs};
pub(crate) use self::report::ReportArgs;
use self::report::part;
pub(crate) use self::tool::ToolArgs;
pub(crate) use self::trace::{ExportedPictures, TraceCommand};
pub(crate) use self::view::ViewArgs;

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

impl Cli {
    /// What was typed. Options of the cells of an experiment used to stand behind two dashes; they
    /// may, and mean the same.
    pub(crate) fn typed() -> Result<Self, clap::Error> {
        let mut words: Vec<OsString> = std::env::args_os().collect();
        let dashes = words.iter().position(|word| word == "--");
        if let (Some("experiment"), Some(dashes)) =
            (words.get(1).and_then(|verb| verb.to_str()), dashes)
        {
            words.remove(dashes);
        }
        Self::try_parse_from(words)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Judge one edit: two labels, with the reasoning and the crops that they rest on.
    Judge(Box<JudgeArgs>),
    /// Check saved traces: is this what was said, seen and decided, and would it be today?
    Replay(Box<ReplayArgs>),
    /// Show, pack and export saved traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Look at judgements in the browser: pictures, reasoning, evidence.
    View(ViewArgs),
    /// Try a server with one tiny question: what works, what it costs, what to type.
    Doctor(Box<DoctorArgs>),
    /// Judge a whole data set; the same command again goes on where it was stopped.
    Eval(Box<EvalArgs>),
    /// See, join and mend runs.
    #[command(subcommand)]
    Run(RunCommand),
    /// Use one of the judge's tools on pictures of your own.
    Tool(ToolArgs),
    /// See, fetch and check the model files that some tools need.
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Try prompts, models, modes and tools against each other on the same edits.
    #[command(subcommand)]
    Experiment(Box<ExperimentCommand>),
    /// Find out whether a judge is sound: questions whose answers are known.
    Probe(Box<ProbeArgs>),
    /// List, show, check and compare prompt packs.
    #[command(subcommand)]
    Prompts(PromptsCommand),
    /// Tables and plots of finished runs, as a page, Markdown, CSV, JSON or LaTeX.
    Report(ReportArgs),
    /// How far judges agree with people, people with each other, or any raters in a table.
    Agree(AgreeArgs),
    /// Score files of others: what their means hide.
    Audit(AuditArgs),
    /// Two runs on the same cases: what flipped, and whether one is better.
    Compare(CompareArgs),
    /// Make and inspect data sets.
    #[command(subcommand)]
    Dataset(DatasetCommand),
    /// Show on drawn scenes what deeplook does: no key, no server.
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

//! One verb per file. A command turns what was typed into work and shows the outcome.

mod agree;
mod compare;
mod dataset;
mod demo;
mod eval;
mod experiment;
mod forecast;
mod fork;
mod grid;
mod judge;
mod models;
mod probe;
mod progress;
mod prompts;
mod replay;
mod report;
mod run;
mod summary;
mod tool;
mod trace;
mod view;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::{Cli, Command};
use crate::report::Run;
use crate::trace::read_results;

/// The whole program: parse, run, report errors, exit with a code that scripts can use.
pub fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => code,
        // The reader went away (`deeplook … | head`): nobody is left to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error);
            ExitCode::from(2)
        }
    }
}

/// Runs the command; an error means that it could not be done (exit code 2).
fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let log = match &cli.command {
        Command::Eval(args) => args.log.as_deref(),
        _ => None,
    };
    crate::logging::start(log)?;
    match cli.command {
        Command::Judge(args) => judge::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Trace(command) => trace::run(&command),
        Command::View(args) => view::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Run(command) => run::run(&command),
        Command::Tool(args) => tool::run(&args),
        Command::Models(command) => models::run(&command),
        Command::Dataset(command) => dataset::run(&command),
        Command::Demo(args) => demo::run(&args),
        Command::Experiment(command) => experiment::run(&command),
        Command::Probe(args) => probe::run(&args),
        Command::Prompts(command) => prompts::run(&command),
        Command::Agree(args) => agree::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "deeplook", &mut script);
            io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints an error with its causes to stderr.
fn report_error(error: &anyhow::Error) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    // Names of files and words of servers are in it: nothing that a terminal would obey.
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Many say themselves what they come from.
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    let text = text.replace(|c: char| c.is_control() && c != '\n', "");
    // Where stderr is gone, the exit code still tells.
    let _ = writeln!(anstream::stderr(), "{red}error:{red:#} {text}");
}

/// True where the error is only that the reader of our output has gone.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a value as JSON to stdout.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    // In memory first: half an object is worse than none.
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    io::stdout().write_all(&text)?;
    Ok(())
}

/// The judgements of a run, under the name that was typed.
fn read_run(path: &Path) -> anyhow::Result<Run> {
    Ok(Run { name: path.display().to_string(), lines: read_results(path)?, link: None })
}

/// Exit code 1 and why, if there is something to complain about.
fn gate(complaints: &[String]) -> anyhow::Result<ExitCode> {
    for complaint in complaints {
        writeln!(anstream::stderr(), "{complaint}")?;
    }
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A bar on stderr that is only seen on a terminal.
fn progress(doing: &'static str, steps: usize) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")?;
    Ok(ProgressBar::new(steps as u64).with_message(doing).with_style(style))
}

/// The runtime that models are asked on.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

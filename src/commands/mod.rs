//! One verb per file. A command turns what was typed into work and shows the outcome.

mod agree;
mod audit;
mod compare;
mod dataset;
mod demo;
mod doctor;
mod eval;
mod experiment;
mod forecast;
mod fork;
mod grid;
mod hints;
mod judge;
mod models;
mod probe;
mod progress;
mod prompts;
mod replay;
mod report;
mod run;
mod signals;
mod summary;
mod tool;
mod trace;
mod view;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::CommandFactory as _;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::{Cli, Command};
use crate::prompt::Rubric;
use crate::report::Run;
use crate::terminal::{self, Style};
use crate::trace::{Rubrics, RunResults};
use crate::visible::{honest_json, visible};

/// The whole program: parse, run, report errors, exit with a code that scripts can use.
pub fn main() -> ExitCode {
    let cli = match Cli::typed() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(cli) {
        Ok(code) => code,
        // The reader went away (`deeplook … | head`): nobody is left to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report_error(&error);
            ExitCode::from(2)
        }
    }
}

/// Shows help, or what is wrong with what was typed. What was typed may be names that a shell put in
/// for `*`: only where they are plain does the parser print its own colours.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let _ = match visible(&text) == text {
        true => error.print(),
        false => write!(terminal::stderr(), "{text}"),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
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
        Command::Doctor(args) => doctor::run(&args),
        Command::Experiment(command) => experiment::run(&command),
        Command::Probe(args) => probe::run(&args),
        Command::Prompts(command) => prompts::run(&command),
        Command::Agree(args) => agree::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "deeplook", &mut script);
            terminal::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints an error with its causes to stderr.
fn report_error(error: &anyhow::Error) {
    let red = Style::BOLD_RED;
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Many say themselves what they come from.
        if !text.contains(&cause) {
            text.push_str(if text.is_empty() { "" } else { ": " });
            text.push_str(&cause);
        }
    }
    // Where stderr is gone, the exit code still tells.
    let _ = writeln!(terminal::stderr(), "{red}error:{red:#} {text}");
}

/// True where the error is only that the reader of our output has gone.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Prints a value as JSON to stdout.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    // In memory first: half an object is worse than none.
    let text = honest_json(&serde_json::to_string_pretty(value)?);
    writeln!(terminal::stdout(), "{text}")?;
    Ok(())
}

/// The judgements of a run, under the name that was typed.
fn read_run(path: &Path, otherwise: &Arc<Rubric>) -> anyhow::Result<Run> {
    let RunResults { lines, unreadable } = crate::trace::read_run(path)?;
    for error in &unreadable {
        writeln!(terminal::stderr(), "left out, because it cannot be read: {error}")?;
    }
    let rubrics = Rubrics::of_run(path, &lines, otherwise);
    for note in &rubrics.notes {
        writeln!(terminal::stderr(), "{note}")?;
    }
    Ok(Run { name: path.display().to_string(), lines, rubrics, link: None })
}

/// Exit code 1 and why, if there is something to complain about.
fn gate(complaints: &[String]) -> anyhow::Result<ExitCode> {
    for complaint in complaints {
        writeln!(terminal::stderr(), "{complaint}")?;
    }
    Ok(if complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A bar on stderr that is only seen on a terminal.
fn progress(doing: &'static str, steps: usize) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")?;
    Ok(ProgressBar::new(steps as u64).with_message(doing).with_style(style))
}

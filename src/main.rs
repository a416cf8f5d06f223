//! The `deeplook` command: parse, run, report errors, exit with a code that scripts can use.

use std::process::ExitCode;

use clap::Parser;
use deeplook::cli::Cli;
use deeplook::commands;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(code) => code,
        // The reader went away (`deeplook … | head`): nobody is left to tell.
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            commands::report_error(&error);
            ExitCode::from(2)
        }
    }
}

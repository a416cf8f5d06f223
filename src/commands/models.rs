//! `deeplook models`: what is here, and getting the rest.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::Serialize;

use crate::cli::ModelsCommand;
use crate::terminal::{self, Style};
use crate::weights::{Presence, Progress, Weights, WeightsEntry, is_offline};

/// The name by which the runtime is fetched and checked like a model.
const RUNTIME: &str = "runtime";

pub(super) fn run(command: &ModelsCommand) -> anyhow::Result<ExitCode> {
    let weights = Weights::open()?;
    match command {
        ModelsCommand::List { json } => list(&weights, *json),
        ModelsCommand::Fetch { names, again } => fetch(&weights, names, *again),
        ModelsCommand::Check { names, json } => check(&weights, names, *json),
        ModelsCommand::Path { name } => path(&weights, name),
    }
}

/// A line of the list.
#[derive(Serialize)]
struct Line {
    name: String,
    alias: Option<String>,
    kind: Option<String>,
    about: String,
    megabytes: f64,
    licence: String,
    present: bool,
    /// Part of this program, so that it need not be fetched.
    built_in: bool,
    damage: Option<String>,
    path: Option<PathBuf>,
}

fn line_of(weights: &Weights, model: &WeightsEntry, thorough: bool) -> Line {
    let presence = weights.presence(model, thorough);
    Line {
        name: model.name.clone(),
        alias: model.alias.clone(),
        kind: Some(model.kind.clone()),
        about: model.about.clone(),
        megabytes: model.megabytes,
        licence: model.licence.clone(),
        present: presence == Presence::Present,
        built_in: model.is_in_program(),
        path: (presence != Presence::Absent).then(|| weights.folder(model)),
        damage: match presence {
            Presence::Damaged(what) => Some(what),
            _ => None,
        },
    }
}

fn runtime_line(weights: &Weights, thorough: bool) -> Line {
    let runtime = &weights.table.runtime;
    let library = weights.library();
    let damage = library
        .as_ref()
        .filter(|_| thorough)
        .and_then(|_| weights.check_runtime().err().map(|error| format!("{error:#}")));
    Line {
        name: RUNTIME.to_owned(),
        alias: None,
        kind: None,
        about: format!("ONNX Runtime {}, which runs the models", runtime.version),
        megabytes: 24.0,
        licence: runtime.licence.clone(),
        present: library.is_some() && damage.is_none(),
        built_in: false,
        damage,
        path: library,
    }
}

fn list(weights: &Weights, json: bool) -> anyhow::Result<ExitCode> {
    let lines = std::iter::once(runtime_line(weights, false))
        .chain(weights.table.models.iter().map(|model| line_of(weights, model, false)));
    let lines: Vec<Line> = lines.collect();
    if json {
        super::print_json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::stdout();
    let (bold, dim) = (Style::BOLD, Style::DIM);
    for line in &lines {
        writeln!(out, "{bold}{:<20}{bold:#} {}", line.name, state(line))?;
        writeln!(out, "  {}", line.about)?;
        let alias = line.alias.as_ref().map(|alias| format!(", also called {alias}"));
        writeln!(
            out,
            "  {dim}{} MB, {}{}{dim:#}",
            line.megabytes,
            line.licence,
            alias.unwrap_or_default()
        )?;
    }
    writeln!(out, "\nGet one with `deeplook models fetch NAME`.")?;
    Ok(ExitCode::SUCCESS)
}

fn state(line: &Line) -> String {
    let (green, red) = (Style::GREEN, Style::RED);
    match (&line.damage, &line.path, line.present) {
        (Some(damage), ..) => format!("{red}damaged{red:#}: {damage}"),
        (None, Some(path), true) => format!("{green}here{green:#}: {}", path.display()),
        _ if line.built_in => "in this program; unpacked when it is first used".to_owned(),
        _ => "not fetched".to_owned(),
    }
}

fn fetch(weights: &Weights, names: &[String], again: bool) -> anyhow::Result<ExitCode> {
    // A wrong name is said before anything is fetched.
    for name in names.iter().filter(|name| *name != RUNTIME) {
        weights.entry(name)?;
    }
    let progress = Progress::shown();
    let mut out = terminal::stdout();
    for name in names {
        let (found, path) = if name == RUNTIME {
            match weights.library().filter(|_| !again) {
                Some(path) => (true, path),
                None => (false, weights.fetch_runtime(&progress)?),
            }
        } else {
            let model = weights.entry(name)?;
            match weights.presence(model, false) {
                Presence::Present if !again => (true, weights.folder(model)),
                _ => (false, weights.fetch(model, again, &progress)?),
            }
        };
        let done = if found { "is here already" } else { "fetched" };
        writeln!(out, "{name} {done}: {}", path.display())?;
    }
    // A model without the runtime does nothing, so it comes along.
    if weights.library().is_none() {
        match is_offline() {
            true => writeln!(out, "the runtime is still missing: `deeplook models fetch runtime`")?,
            false => drop(weights.fetch_runtime(&progress)?),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(weights: &Weights, names: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let lines: Vec<Line> = if names.is_empty() {
        let all = weights.table.models.iter().map(|model| line_of(weights, model, true));
        std::iter::once(runtime_line(weights, true))
            .chain(all)
            .filter(|l| l.path.is_some())
            .collect()
    } else {
        let line = |name: &String| match name == RUNTIME {
            true => Ok(runtime_line(weights, true)),
            false => Ok(line_of(weights, weights.entry(name)?, true)),
        };
        names.iter().map(line).collect::<anyhow::Result<_>>()?
    };
    if json {
        super::print_json(&lines)?;
    } else {
        let mut out = terminal::stdout();
        for line in &lines {
            writeln!(out, "{:<20} {}", line.name, state(line))?;
        }
        if lines.is_empty() {
            writeln!(out, "nothing was fetched yet; see `deeplook models list`")?;
        }
        for line in lines.iter().filter(|line| line.damage.is_some()) {
            writeln!(out, "get it anew with `deeplook models fetch --again {}`", line.name)?;
        }
    }
    let well = lines.iter().all(|line| line.present);
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn path(weights: &Weights, name: &str) -> anyhow::Result<ExitCode> {
    let path = if name == RUNTIME {
        weights.library().context("the runtime is not here; run `deeplook models fetch runtime`")?
    } else {
        let model = weights.entry(name)?;
        match weights.presence(model, false) {
            Presence::Present => weights.folder(model).join("model.onnx"),
            Presence::Absent => bail!("{name} is not here; run `deeplook models fetch {name}`"),
            Presence::Damaged(what) => {
                bail!("{what}; run `deeplook models fetch --again {name}`")
            }
        }
    };
    writeln!(terminal::stdout(), "{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

//! `deeplook tool`: the judge's tools in a person's hands.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deeplook_tools::scene::{EDITED, View, cut};
use deeplook_tools::{
    BoxConvention, Picture, PictureError, Scene, TOOLS, ToolError, ToolOutput, Toolbox,
};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::ToolArgs;
use crate::equipment::{self, DEMO_DETECTOR, Effort};
use crate::files;
use crate::terminal::{self, Style};
use crate::weights::Progress;

pub(super) fn run(args: &ToolArgs) -> anyhow::Result<ExitCode> {
    if args.name == "list" {
        return list(
            &equipment::toolbox(&args.tools.options(), Effort::default(), &Progress::shown())?,
            args.json,
        );
    }
    if !TOOLS.iter().any(|tool| tool.name == args.name) {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        bail!(
            "there is no tool {:?}; use one of {}, or `deeplook tool list`",
            args.name,
            known.join(", ")
        );
    }
    let effort = Effort {
        only: Some(&args.name),
        last_resort: Some(DEMO_DETECTOR),
        fetching: true,
        ..Effort::default()
    };
    let toolbox = equipment::toolbox(&args.tools.options(), effort, &Progress::shown())?;
    if let Some(why) = toolbox.unavailable().get(&args.name) {
        bail!("{} cannot be used: {why}", args.name);
    }
    if args.images.is_empty() {
        bail!("no picture given; try `deeplook tool {} before.png after.png`", args.name);
    }
    let tool_args = parse_args(args.args.as_deref())?;
    let pictures: Result<Vec<Picture>, PictureError> =
        args.images.par_iter().map(|path| Picture::load(path)).collect();
    let output = toolbox
        .call(&args.name, &tool_args, &Scene::new(pictures?))
        .map_err(|error| anyhow::anyhow!("{error}{}", hint(args, &error)))?;
    let saved = save(&output.pictures, args.out.as_deref())?;
    if args.json { print_json(&output, &saved) } else { print_text(&output, &saved) }
}

/// What helps a person where the refusal was written for a model.
fn hint(args: &ToolArgs, error: &ToolError) -> &'static str {
    if args.images.len() == 1 && error.to_string().contains(EDITED) {
        "; you named one picture: name the edited one behind it"
    } else {
        ""
    }
}

fn parse_args(text: Option<&str>) -> anyhow::Result<Value> {
    let Some(text) = text else { return Ok(json!({})) };
    let value: Value = serde_json::from_str(text).with_context(|| {
        let text = cut(text, 200);
        format!("--args is not JSON: {text}; write e.g. --args '{{\"bbox\": [10, 20, 60, 80]}}'")
    })?;
    if !value.is_object() {
        let text = cut(text, 200);
        bail!("--args must be a JSON object such as {{\"bbox\": [10, 20, 60, 80]}}, not {text}");
    }
    Ok(value)
}

/// Writes each picture under its name; returns the paths in the same order.
fn save(pictures: &[View], out: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    if pictures.is_empty() {
        return Ok(Vec::new());
    }
    let folder = match out {
        Some(folder) => {
            files::create_folder(folder)?;
            folder.to_owned()
        }
        None => tempfile::Builder::new()
            .prefix("deeplook-")
            .tempdir()
            .context("cannot create a temporary folder; name one with --out DIR")?
            .keep(),
    };
    pictures
        .par_iter()
        .map(|view| {
            let path = folder.join(format!("{}.png", files::slug(&view.name)));
            files::write_atomically(&path, &view.picture.to_png())?;
            Ok(path)
        })
        .collect()
}

/// The object that `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    text: &'a str,
    data: &'a Value,
    images: Vec<PrintedImage<'a>>,
}

#[derive(Serialize)]
struct PrintedImage<'a> {
    name: &'a str,
    path: &'a Path,
}

fn print_json(output: &ToolOutput, saved: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let images = output.pictures.iter().zip(saved);
    let images = images.map(|(view, path)| PrintedImage { name: &view.name, path }).collect();
    super::print_json(&Printed { text: &output.text, data: &output.data, images })?;
    Ok(ExitCode::SUCCESS)
}

fn print_text(output: &ToolOutput, saved: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let mut out = terminal::stdout();
    writeln!(out, "{}", output.text)?;
    if !saved.is_empty() {
        writeln!(out)?;
    }
    let dim = Style::DIM;
    for (view, path) in output.pictures.iter().zip(saved) {
        writeln!(out, "{}: {} {dim}{}{dim:#}", view.name, path.display(), view.picture.size())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list(toolbox: &Toolbox, as_json: bool) -> anyhow::Result<ExitCode> {
    let specs = toolbox.specs(BoxConvention::PIXELS);
    if as_json {
        super::print_json(&specs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = terminal::stdout();
    let bold = Style::BOLD;
    for spec in specs {
        writeln!(out, "{bold}{}{bold:#}\n  {}", spec.name, spec.description)?;
        let required = spec.parameters["required"].as_array().cloned().unwrap_or_default();
        for (name, field) in spec.parameters["properties"].as_object().into_iter().flatten() {
            let need = if required.iter().any(|r| r == name) { "" } else { " (optional)" };
            writeln!(
                out,
                "    {bold}{name}{bold:#}{need}: {}",
                field["description"].as_str().unwrap_or_default()
            )?;
        }
        writeln!(out)?;
    }
    for (what, why) in toolbox.unavailable() {
        writeln!(out, "{bold}{what}{bold:#}: {why}")?;
    }
    Ok(ExitCode::SUCCESS)
}

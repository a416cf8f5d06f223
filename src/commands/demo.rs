//! `deeplook demo`: what deeplook does, on scenes that it draws itself.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deeplook_tools::{Picture, Scene, ToolOutput, Toolbox};
use indicatif::{ParallelProgressIterator as _, ProgressBar, ProgressStyle};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use crate::cli::DemoArgs;
use crate::dataset::draw;
use crate::files;

/// Two of each type of instruction.
const CASES: usize = 14;
const SEED: u64 = 1;
/// The folder is ours to replace if this is in it.
const PAGE: &str = "index.html";
const MARK: &str = "<!-- deeplook demo -->";

pub(super) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let out = &args.out;
    make_room(out)?;
    let bar = ProgressBar::new(CASES as u64).with_message("drawing and comparing");
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}")?);
    let cases: anyhow::Result<Vec<ShownCase>> =
        (0..CASES).into_par_iter().progress_with(bar).map(|index| show_case(out, index)).collect();
    let cases = cases?;
    let found = cases.iter().map(|case| case.regions.len()).sum::<usize>();
    let page = out.join(PAGE);
    files::write_atomically(&page, render(&cases)?.as_bytes())?;
    writeln!(
        anstream::stdout(),
        "drew {CASES} scenes, each with an edit, and found {found} changed regions.\nOpen {}",
        page.display()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Empties the folder of an earlier demo; anything else is not ours to touch.
fn make_room(out: &Path) -> anyhow::Result<()> {
    if out.exists() {
        let is_empty = fs::read_dir(out)
            .with_context(|| format!("cannot read {}", out.display()))?
            .next()
            .is_none();
        let is_ours = fs::read_to_string(out.join(PAGE)).is_ok_and(|page| page.contains(MARK));
        if !is_empty && !is_ours {
            bail!(
                "{} is not empty and not from an earlier demo; name another folder with --out",
                out.display()
            );
        }
        fs::remove_dir_all(out).with_context(|| format!("cannot replace {}", out.display()))?;
    }
    files::create_folder(out)
}

#[derive(Serialize)]
struct ShownCase {
    id: String,
    kind: &'static str,
    instruction: String,
    editor: &'static str,
    source: PathBuf,
    edited: PathBuf,
    text: String,
    regions: Vec<PathBuf>,
    target: PathBuf,
}

/// Draws a case, takes one editor's picture of it, and looks at the pair.
fn show_case(out: &Path, index: usize) -> anyhow::Result<ShownCase> {
    let case = draw::case(SEED, index)?;
    // Another editor each time, so that the page shows all of them.
    let edit = &case.edits[index % case.edits.len()];
    let folder = PathBuf::from(&case.id);
    files::create_folder(&out.join(&folder))?;
    let save = |name: &str, picture: &Picture| -> anyhow::Result<PathBuf> {
        let path = folder.join(format!("{name}.png"));
        files::write_atomically(&out.join(&path), &picture.to_png())?;
        Ok(path)
    };
    let source = save("source", &case.source)?;
    let edited = save("edited", &edit.picture)?;
    let scene = Scene::new([case.source, edit.picture.clone()]);
    let toolbox = Toolbox::standard();
    let differences = toolbox.call("localize_differences", &json!({}), &scene)?;
    let target = toolbox.call(
        "zoom_in",
        &json!({ "target_image": "both", "bbox": case.boxes[0] }),
        &scene,
    )?;
    let save_all = |output: &ToolOutput, prefix: &str| -> anyhow::Result<Vec<PathBuf>> {
        let name = |i: usize| format!("{prefix}-{}", i + 1);
        output.pictures.iter().enumerate().map(|(i, view)| save(&name(i), &view.picture)).collect()
    };
    Ok(ShownCase {
        id: case.id.clone(),
        kind: case.kind.name(),
        instruction: case.instruction.clone(),
        editor: edit.editor.name(),
        source,
        edited,
        regions: save_all(&differences, "difference")?,
        target: save_all(&target, "target")?.remove(0),
        text: differences.text,
    })
}

fn render(cases: &[ShownCase]) -> anyhow::Result<String> {
    let mut templates = minijinja::Environment::new();
    templates.add_template("demo.html", include_str!("demo.html"))?;
    Ok(templates.get_template("demo.html")?.render(minijinja::context! {
        cases => minijinja::value::Serde(cases),
        mark => MARK,
    })?)
}

//! The tools that can be had on this machine.

mod recorded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use deeplook_tools::enhancer::{self, Enhancer};
use deeplook_tools::grounding::{self, DetectObject, Detector, DetectorFiles};
use deeplook_tools::onnx::Session;
use deeplook_tools::{ToolSettings, Toolbox};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::files;
use crate::hash::Hash;
use crate::prompt::Mode;
use crate::weights::{Kind, Presence, Progress, Weights, WeightsEntry, file_hash};
pub(crate) use recorded::RecordedEquipment;

/// The models that are taken where none was named.
const ENHANCER: &str = "enhancer-photo";
const DETECTOR: &str = "grounding-dino-tiny";
/// Knows drawn scenes only; for the demo, and for a first try of the tool.
pub(crate) const DEMO_DETECTOR: &str = "demo-detector";
const NOT_WANTED: &str = "it was not wanted";

/// Which tools there are, and which model files they use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolOptions {
    /// What finds objects: the name of a model, an ONNX file, or `none`; absent for the usual one if
    /// it is here.
    pub detector: Option<String>,
    /// What enlarges crops: the name of a model, an ONNX file, or `lanczos`; absent for the usual one
    /// if it is here.
    pub enhancer: Option<String>,
    /// Tools that are left out.
    pub without: Vec<String>,
    /// A TOML file with a table for each tool whose settings are not the usual ones.
    pub tool_settings: Option<PathBuf>,
}

/// The tools for a judge: none of them needs a model file where it has no tools at all.
pub(crate) fn for_judge(mode: Mode, options: &ToolOptions) -> anyhow::Result<Toolbox> {
    match mode {
        Mode::Plain => Ok(Toolbox::standard()),
        Mode::Tool | Mode::Oracle => toolbox(options, None, &Progress::shown()),
    }
}

/// Every tool that works with what was chosen.
///
/// What was asked for by name must work. What is only the default may be missing: the toolbox then
/// says why. `last_resort` is the detector to take where the usual one was not fetched.
pub(crate) fn toolbox(
    options: &ToolOptions,
    last_resort: Option<&str>,
    progress: &Progress,
) -> anyhow::Result<Toolbox> {
    let settings = settings(options.tool_settings.as_deref())?;
    let weights = Weights::open()?;
    let (enhancer, why) = enlarging(&weights, options.enhancer.as_deref(), progress)?;
    let mut toolbox = Toolbox::enlarging_with(Arc::new(enhancer), &settings);
    if let Some(why) = why {
        toolbox = toolbox.without(enhancer::NETWORK, why);
    }
    toolbox = match detecting(&weights, options, last_resort, progress)? {
        Ok(found) => {
            toolbox.with(DetectObject::with_settings(Arc::new(found), settings.detect_object))
        }
        Err(why) => toolbox.without(grounding::NAME, why),
    };
    for name in &options.without {
        if !toolbox.names().any(|known| known == name) && !toolbox.unavailable().contains_key(name)
        {
            let known: Vec<&str> = toolbox.names().collect();
            bail!("there is no tool {name:?} to leave out; the tools are {}", known.join(", "));
        }
        toolbox = toolbox.without(name, NOT_WANTED);
    }
    Ok(toolbox)
}

/// Settings of tools from a file.
fn settings(path: Option<&Path>) -> anyhow::Result<ToolSettings> {
    let Some(path) = path else { return Ok(ToolSettings::default()) };
    let wrong = |reason: String| {
        anyhow::anyhow!(
            "{} holds no settings of tools: {reason}; write e.g. [localize_differences] and under it \
             max_regions = 4",
            path.display()
        )
    };
    let text = files::read_small_text(path).map_err(wrong)?;
    let settings: ToolSettings = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    settings.check().map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))?;
    Ok(settings)
}

/// The detector, or why there is none.
fn detecting(
    weights: &Weights,
    options: &ToolOptions,
    last_resort: Option<&str>,
    progress: &Progress,
) -> anyhow::Result<Result<Detector, String>> {
    // Nobody waits for a model that is not used.
    if options.without.iter().any(|name| name == grounding::NAME) {
        return Ok(Err(NOT_WANTED.to_owned()));
    }
    let chosen = match options.detector.as_deref() {
        Some("none") => return Ok(Err(NOT_WANTED.to_owned())),
        Some(chosen) => return Ok(Ok(detector(weights, chosen, progress)?)),
        None => match (weights.presence(weights.entry(DETECTOR)?, false), last_resort) {
            (Presence::Present, _) => DETECTOR,
            (_, Some(other)) => other,
            (Presence::Damaged(what), None) => {
                let why = format!("{what}; run `deeplook models fetch --again detector`");
                return Ok(Err(why));
            }
            (Presence::Absent, None) => {
                let why = "no detector was fetched; get one with `deeplook models fetch detector`";
                return Ok(Err(why.to_owned()));
            }
        },
    };
    Ok(detector(weights, chosen, progress).map_err(|error| format!("{error:#}")))
}

/// What enlarges crops; and why it is not the usual model, where that cannot be had.
fn enlarging(
    weights: &Weights,
    chosen: Option<&str>,
    progress: &Progress,
) -> anyhow::Result<(Enhancer, Option<String>)> {
    match chosen {
        Some("lanczos" | "none") => return Ok((Enhancer::none(), None)),
        Some(chosen) => return Ok((enhancer(weights, chosen, progress)?, None)),
        None => {}
    }
    if weights.presence(weights.entry(ENHANCER)?, false) == Presence::Absent {
        let why = "none was fetched, so crops are enlarged by interpolation; get one with `deeplook \
                   models fetch enhancer`";
        return Ok((Enhancer::none(), Some(why.to_owned())));
    }
    Ok(match enhancer(weights, ENHANCER, progress) {
        Ok(enhancer) => (enhancer, None),
        Err(error) => (Enhancer::none(), Some(format!("{error:#}"))),
    })
}

/// The enhancer of this name, or in this file.
fn enhancer(weights: &Weights, chosen: &str, progress: &Progress) -> anyhow::Result<Enhancer> {
    let (name, path, budget) = match weights.table.model(chosen) {
        Some(entry) => {
            let path = ready(weights, entry, Kind::Enhancer, progress)?;
            (entry.name.clone(), path, entry.budget)
        }
        None => {
            let path = own_file(weights, chosen)?;
            (name_of(path), path.to_owned(), None)
        }
    };
    let hash = file_hash(&path)?;
    let session = Session::load(weights.runtime(progress)?, &path)?;
    let enhancer = Enhancer::load(session, &name, hash.as_str())?;
    Ok(match budget {
        Some(pixels) => enhancer.with_budget(pixels),
        None => enhancer,
    })
}

/// A model file of the user's own.
fn own_file<'a>(weights: &Weights, chosen: &'a str) -> anyhow::Result<&'a Path> {
    let path = Path::new(chosen);
    if !path.is_file() {
        bail!("{chosen:?} is neither a file nor a model; the models are {}", weights.table.names());
    }
    Ok(path)
}

/// The detector of this name, or in this file.
fn detector(weights: &Weights, chosen: &str, progress: &Progress) -> anyhow::Result<Detector> {
    let (files, identity) = match weights.table.model(chosen) {
        Some(entry) => {
            let folder = ready(weights, entry, Kind::Detector, progress)?;
            (DetectorFiles::beside(&folder)?, identity(entry, weights.hashes(entry)?))
        }
        None => {
            let path = own_file(weights, chosen)?;
            let files = DetectorFiles::beside(path)?;
            let hash = |path: &Path| anyhow::Ok((name_of(path), file_hash(path)?));
            let hashes = [Some(&files.model), Some(&files.tokenizer), files.preprocessor.as_ref()]
                .into_iter()
                .flatten()
                .map(|path| hash(path))
                .collect::<anyhow::Result<BTreeMap<_, _>>>()?;
            let identity = json!({ "name": name_of(path), "files": hashes });
            (files, identity)
        }
    };
    let runtime = weights.runtime(progress)?;
    let mut identity = identity;
    identity["runtime"] = Value::String(runtime.description().to_owned());
    Ok(Detector::load(runtime, &files, identity)?)
}

/// The model's file; a model in this program is unpacked first.
fn ready(
    weights: &Weights,
    entry: &WeightsEntry,
    kind: Kind,
    progress: &Progress,
) -> anyhow::Result<PathBuf> {
    if entry.kind != kind {
        bail!("{} is a model of another kind; see `deeplook models list`", entry.name);
    }
    let folder = match weights.presence(entry, false) {
        Presence::Present => weights.folder(entry),
        _ if entry.is_in_program() => weights.fetch(entry, false, progress)?,
        Presence::Absent => {
            bail!("{0} is not here; run `deeplook models fetch {0}`", entry.name)
        }
        Presence::Damaged(what) => {
            bail!("{what}; run `deeplook models fetch --again {}`", entry.name)
        }
    };
    Ok(folder.join("model.onnx"))
}

fn identity(entry: &WeightsEntry, hashes: BTreeMap<String, Hash>) -> Value {
    match &entry.note {
        Some(note) => json!({ "name": entry.name, "note": note, "files": hashes }),
        None => json!({ "name": entry.name, "files": hashes }),
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

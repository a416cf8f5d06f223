//! The tools that can be had on this machine.

mod recorded;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use deeplook_tools::declaration::{Loaded, NetworkKind};
use deeplook_tools::enhancer::{self, Enhancer};
use deeplook_tools::grounding::DETECTOR;
use deeplook_tools::onnx::Session;
use deeplook_tools::{Networks, TOOLS, ToolSettings, Toolbox};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::files;
use crate::hash::Hash;
use crate::prompt::Mode;
use crate::weights::{Presence, Progress, Weights, WeightsEntry, file_hash};
pub(crate) use recorded::RecordedEquipment;

/// What enlarges crops, in the table of model files.
const ENHANCER: &str = "enhancer";
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

impl ToolOptions {
    /// The network of this kind that was named.
    fn chosen(&self, kind: &NetworkKind) -> Option<&str> {
        if kind.name == DETECTOR.name { self.detector.as_deref() } else { None }
    }
}

/// How far to go for networks that nobody named.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort<'a> {
    /// Only this tool gets its network.
    pub(crate) only: Option<&'a str>,
    /// The model to take, for its kind, where the usual one was not fetched.
    pub(crate) last_resort: Option<&'a str>,
    /// Whether the usual one is fetched where it is not here and nothing else will do.
    pub(crate) fetching: bool,
    /// Whether even what was named may be missing: the toolbox then says why.
    pub(crate) making_do: bool,
}

/// The tools for a judge: none of them needs a model file where it has no tools at all.
pub(crate) fn for_judge(mode: Mode, options: &ToolOptions) -> anyhow::Result<Toolbox> {
    match mode {
        Mode::Plain => Ok(Toolbox::standard()),
        Mode::Tool | Mode::Oracle => toolbox(options, Effort::default(), &Progress::shown()),
    }
}

/// Every tool that works with what was chosen.
///
/// What was asked for by name must work. What is only the default may be missing: the toolbox then
/// says why.
pub(crate) fn toolbox(
    options: &ToolOptions,
    effort: Effort<'_>,
    progress: &Progress,
) -> anyhow::Result<Toolbox> {
    let settings = settings(options.tool_settings.as_deref())?;
    let weights = Weights::open()?;
    let (enhancer, why) = enlarging(&weights, options.enhancer.as_deref(), progress)?;
    let mut networks = Networks::enlarging_with(Arc::new(enhancer));
    for tool in TOOLS {
        let Some(kind) = &tool.network else { continue };
        // Nobody waits for a model that is not used.
        let unused = options.without.iter().any(|name| name == tool.name)
            || effort.only.is_some_and(|only| only != tool.name);
        let found = match unused {
            true => Err(NOT_WANTED.to_owned()),
            false => found(&weights, kind, options.chosen(kind), effort, progress)?,
        };
        networks.add(kind, found);
    }
    let mut toolbox = Toolbox::equipped(TOOLS, &settings, &networks);
    if let Some(why) = why {
        toolbox = toolbox.without(enhancer::NETWORK, why);
    }
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
            "{} holds no settings of tools: {reason}; write e.g. [{}] and under it a setting, as \
             traces show them",
            path.display(),
            TOOLS.first().map_or("tool", |tool| tool.name)
        )
    };
    let text = files::read_small_text(path).map_err(wrong)?;
    let settings: ToolSettings = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    settings.check().map_err(|problem| anyhow::anyhow!("{}: {problem}", path.display()))?;
    Ok(settings)
}

/// The network of a kind, or why there is none.
fn found(
    weights: &Weights,
    kind: &NetworkKind,
    chosen: Option<&str>,
    effort: Effort<'_>,
    progress: &Progress,
) -> anyhow::Result<Result<Loaded, String>> {
    let why = |error: anyhow::Error| format!("{error:#}");
    let without_record = |(network, _): (Loaded, Value)| network;
    match chosen {
        Some("none") => return Ok(Err(NOT_WANTED.to_owned())),
        Some(chosen) if effort.making_do => {
            return Ok(network(weights, kind, chosen, progress).map(without_record).map_err(why));
        }
        Some(chosen) => {
            return network(weights, kind, chosen, progress).map(without_record).map(Ok);
        }
        None => {}
    }
    let Some(usual) = weights.table.usual(kind.name) else {
        return Ok(Err(format!("there is no {} to be had", kind.name)));
    };
    let last_resort = effort
        .last_resort
        .filter(|name| weights.table.model(name).is_some_and(|model| model.kind == kind.name));
    let taken = match (weights.presence(usual, false), last_resort) {
        (Presence::Present, _) => usual.name.as_str(),
        (_, Some(other)) => other,
        (Presence::Absent, None) if effort.fetching && weights.fetches() => {
            if let Err(error) = weights.fetch(usual, false, progress) {
                return Ok(Err(why(error)));
            }
            usual.name.as_str()
        }
        (Presence::Absent, None) => {
            let (kind, name) = (kind.name, usual.short_name());
            return Ok(Err(format!(
                "no {kind} was fetched; get one with `deeplook models fetch {name}`"
            )));
        }
        (Presence::Damaged(what), None) => {
            let name = usual.short_name();
            return Ok(Err(format!("{what}; run `deeplook models fetch --again {name}`")));
        }
    };
    Ok(network(weights, kind, taken, progress).map(without_record).map_err(why))
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
    let usual = weights.table.usual(ENHANCER);
    let Some(usual) = usual.filter(|usual| weights.presence(usual, false) != Presence::Absent)
    else {
        let why = "none was fetched, so crops are enlarged by interpolation; get one with `deeplook \
                   models fetch enhancer`";
        return Ok((Enhancer::none(), Some(why.to_owned())));
    };
    Ok(match enhancer(weights, &usual.name, progress) {
        Ok(enhancer) => (enhancer, None),
        Err(error) => (Enhancer::none(), Some(format!("{error:#}"))),
    })
}

/// The enhancer of this name, or in this file.
fn enhancer(weights: &Weights, chosen: &str, progress: &Progress) -> anyhow::Result<Enhancer> {
    let (name, path, budget) = match weights.table.model(chosen) {
        Some(entry) => {
            let folder = ready(weights, entry, ENHANCER, progress)?;
            (entry.name.clone(), folder.join("model.onnx"), entry.budget)
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

/// The network of this name, or in this file; and what the record says of it.
fn network(
    weights: &Weights,
    kind: &NetworkKind,
    chosen: &str,
    progress: &Progress,
) -> anyhow::Result<(Loaded, Value)> {
    let (path, mut identity) = match weights.table.model(chosen) {
        Some(entry) => {
            let folder = ready(weights, entry, kind.name, progress)?;
            (folder, identity(entry, weights.hashes(entry)?))
        }
        None => {
            let path = own_file(weights, chosen)?;
            let files = (kind.files)(path).map_err(anyhow::Error::msg)?;
            let hash = |path: &PathBuf| anyhow::Ok((name_of(path), file_hash(path)?));
            let hashes = files.iter().map(hash).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
            (path.to_owned(), json!({ "name": name_of(path), "files": hashes }))
        }
    };
    let runtime = weights.runtime(progress)?;
    identity["runtime"] = Value::String(runtime.description().to_owned());
    let loaded = (kind.load)(runtime, &path, identity.clone()).map_err(anyhow::Error::msg)?;
    Ok((loaded, identity))
}

/// The model's folder; a model in this program is unpacked first.
fn ready(
    weights: &Weights,
    entry: &WeightsEntry,
    kind: &str,
    progress: &Progress,
) -> anyhow::Result<PathBuf> {
    if entry.kind != kind {
        bail!("{} is a model of another kind; see `deeplook models list`", entry.name);
    }
    match weights.presence(entry, false) {
        Presence::Present => Ok(weights.folder(entry)),
        _ if entry.is_in_program() => weights.fetch(entry, false, progress),
        Presence::Absent => {
            bail!("{0} is not here; run `deeplook models fetch {0}`", entry.name)
        }
        Presence::Damaged(what) => {
            bail!("{what}; run `deeplook models fetch --again {}`", entry.name)
        }
    }
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

//! `plan.toml`: what is tried against what, on which cases.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Facts;
use crate::dataset::Mapping;
use crate::files;
use crate::message::Dialect;
use crate::model::parameters::refuse_secrets_in;
use crate::prompt::Mode;

/// More cells than this are a slip of the pen.
const MOST_CELLS: usize = 500;

/// An experiment: every combination of prompts, models, modes and tools is a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// The data set, relative to the plan.
    #[serde(default)]
    pub cases: Option<PathBuf>,
    /// A run whose observations every cell judges again: no tool runs, and only the wording (or the
    /// model) differs. Without `cases`, what it judged is judged again.
    #[serde(default)]
    pub from_traces: Option<PathBuf>,
    /// The editors' pictures, where the data set does not name them.
    #[serde(default)]
    pub edits: Option<PathBuf>,
    /// What the data set's fields mean, as for `--map`.
    #[serde(default)]
    pub map: Mapping,
    /// The preset that the data set is read by, as for `--preset`.
    #[serde(default)]
    pub preset: Option<String>,
    /// What people, or the drawing, say of the edits.
    #[serde(default)]
    pub labels: Option<PathBuf>,
    /// `if`, `vc` or `both`.
    #[serde(default = "both")]
    pub criterion: String,
    /// How often every edit is judged.
    #[serde(default = "once")]
    pub repeats: u32,
    /// A part of the edits instead of all of them.
    #[serde(default)]
    pub sample: Option<Sample>,
    /// What the others are compared with: one name of each axis; the first where none is named.
    #[serde(default)]
    pub baseline: Baseline,
    /// The prompts to try.
    #[serde(default = "default_prompts")]
    pub prompts: Vec<PromptsEntry>,
    /// The models to try.
    #[serde(default = "default_models")]
    pub models: Vec<ModelEntry>,
    /// The modes to try.
    #[serde(default = "default_modes")]
    pub modes: Vec<Mode>,
    /// The tools to try.
    #[serde(default = "default_tools")]
    pub tools: Vec<ToolsEntry>,
}

/// Which edits are judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// How many.
    pub edits: usize,
    /// Another seed, other edits.
    #[serde(default)]
    pub seed: u64,
    /// What they are balanced by.
    #[serde(default = "all_traits")]
    pub balance: Vec<Trait>,
}

/// What a sample can be balanced by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Trait {
    /// What people say of the edit.
    Label,
    /// Which part of the picture the target covers.
    Area,
    /// Who edited.
    Editor,
    /// A fact of the case by its name, such as its `type`.
    Fact(String),
}

impl From<String> for Trait {
    fn from(name: String) -> Self {
        match name.as_str() {
            "label" => Self::Label,
            "area" => Self::Area,
            "editor" => Self::Editor,
            _ => Self::Fact(name),
        }
    }
}

impl From<Trait> for String {
    fn from(which: Trait) -> Self {
        match which {
            Trait::Label => "label".to_owned(),
            Trait::Area => "area".to_owned(),
            Trait::Editor => "editor".to_owned(),
            Trait::Fact(name) => name,
        }
    }
}

/// One name of each axis.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The name of a [`PromptsEntry`].
    #[serde(default)]
    pub prompts: Option<String>,
    /// The name of a [`ModelEntry`].
    #[serde(default)]
    pub model: Option<String>,
    /// A mode.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// The name of a [`ToolsEntry`].
    #[serde(default)]
    pub tools: Option<String>,
}

/// A prompt pack, or one with some files exchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptsEntry {
    /// What it is called in the report.
    pub name: String,
    /// A pack in the binary, or a folder relative to the plan.
    #[serde(default = "default_pack")]
    pub pack: String,
    /// A variant that the pack has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Files of the pack that are replaced by others, relative to the plan.
    #[serde(default)]
    pub replace: BTreeMap<String, PathBuf>,
}

/// A model and how it is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// What it is called in the report.
    pub name: String,
    /// The model's own name; without it, the same.
    #[serde(default)]
    pub model: Option<String>,
    /// The server.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The profile, as for `--profile`.
    #[serde(default)]
    pub profile: Option<String>,
    /// How it calls tools.
    #[serde(default)]
    pub dialect: Option<Dialect>,
    /// What the server takes, as for `--param`.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
}

/// A set of tools and the bounds of their use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsEntry {
    /// What it is called in the report.
    pub name: String,
    /// Tools that are left out.
    #[serde(default)]
    pub without: Vec<String>,
    /// As for `--detector`.
    #[serde(default)]
    pub detector: Option<String>,
    /// As for `--enhancer`.
    #[serde(default)]
    pub enhancer: Option<String>,
    /// As for `--tool-settings`, relative to the plan.
    #[serde(default)]
    pub settings: Option<PathBuf>,
    /// As for `--max-turns`.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// As for `--max-tool-calls`.
    #[serde(default)]
    pub max_tool_calls: Option<u32>,
}

fn both() -> String {
    "both".to_owned()
}

fn once() -> u32 {
    1
}

fn default_pack() -> String {
    crate::prompt::DEFAULT.to_owned()
}

fn default_prompts() -> Vec<PromptsEntry> {
    let pack = default_pack();
    vec![PromptsEntry { name: pack.clone(), pack, variant: None, replace: BTreeMap::new() }]
}

fn default_models() -> Vec<ModelEntry> {
    vec![ModelEntry {
        name: crate::model::Rules::NAME.to_owned(),
        model: None,
        base_url: None,
        profile: None,
        dialect: None,
        params: BTreeMap::new(),
    }]
}

fn default_modes() -> Vec<Mode> {
    vec![Mode::Tool]
}

fn default_tools() -> Vec<ToolsEntry> {
    vec![ToolsEntry {
        name: "all".to_owned(),
        without: Vec::new(),
        detector: None,
        enhancer: None,
        settings: None,
        max_turns: None,
        max_tool_calls: None,
    }]
}

fn all_traits() -> Vec<Trait> {
    vec![Trait::Fact(Facts::TYPE.to_owned()), Trait::Label, Trait::Area]
}

/// One combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The names of what differs between the cells, e.g. `stricter, no difference`.
    pub name: String,
    /// The folder of its run, under the experiment's.
    pub folder: String,
    /// The prompts.
    pub prompts: PromptsEntry,
    /// The model.
    pub model: ModelEntry,
    /// The mode.
    pub mode: Mode,
    /// The tools.
    pub tools: ToolsEntry,
}

impl Plan {
    /// Reads a plan and makes its paths relative to where the program runs.
    ///
    /// `from_traces` takes the place of what the plan says of it.
    pub fn load(path: &Path, from_traces: Option<&Path>) -> Result<Self, PlanError> {
        let wrong = |reason: String| PlanError { path: path.display().to_string(), reason };
        let text = files::read_small_text(path).map_err(wrong)?;
        let in_words = |error: toml::de::Error| wrong(error.to_string());
        let table: toml::Table = toml::from_str(&text).map_err(in_words)?;
        let models = table.get("models").and_then(toml::Value::as_array);
        for model in models.into_iter().flatten().filter_map(toml::Value::as_table) {
            refuse_secrets_in(model).map_err(|error| wrong(format!("models: {error}")))?;
        }
        let mut plan: Self = toml::from_str(&text).map_err(in_words)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        plan.cases = plan.cases.map(|cases| folder.join(cases));
        plan.from_traces = match from_traces {
            Some(run) => Some(run.to_owned()),
            None => plan.from_traces.map(|run| folder.join(run)),
        };
        plan.edits = plan.edits.map(|edits| folder.join(edits));
        plan.labels = plan.labels.map(|labels| folder.join(labels));
        for entry in &mut plan.prompts {
            if !crate::prompt::Pack::list().any(|id| id == entry.pack) {
                entry.pack = folder.join(&entry.pack).display().to_string();
            }
            for file in entry.replace.values_mut() {
                *file = folder.join(&*file);
            }
        }
        for entry in &mut plan.models {
            // A file of the user's own, or the name of a built-in profile.
            if let Some(profile) = entry.profile.as_mut().filter(|p| p.ends_with(".toml")) {
                *profile = folder.join(&*profile).display().to_string();
            }
        }
        for entry in &mut plan.tools {
            entry.settings = entry.settings.take().map(|settings| folder.join(settings));
        }
        plan.check().map_err(wrong)?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if !(1..=1000).contains(&self.repeats) {
            return Err("repeats must be from 1 to 1000".to_owned());
        }
        for tools in &self.tools {
            if tools.max_turns.is_some_and(|turns| !(1..=100).contains(&turns)) {
                return Err(format!(
                    "max_turns of the tools {:?} must be from 1 to 100",
                    tools.name
                ));
            }
            if tools.max_tool_calls.is_some_and(|calls| calls > 1000) {
                return Err(format!(
                    "max_tool_calls of the tools {:?} must be 1000 at most",
                    tools.name
                ));
            }
        }
        if self.sample.as_ref().is_some_and(|sample| sample.edits == 0) {
            return Err("sample.edits must be 1 or more".to_owned());
        }
        if self.cases.is_none() && self.from_traces.is_none() {
            return Err(
                "it names nothing to judge; add cases = \"…\" or from_traces = \"…\"".to_owned()
            );
        }
        if self.from_traces.is_some() && self.tools != default_tools() {
            return Err(
                "with from_traces the tools are those of the traces; leave out tools".to_owned()
            );
        }
        let count = [self.prompts.len(), self.models.len(), self.modes.len(), self.tools.len()];
        let count = count.iter().fold(1usize, |product, n| product.saturating_mul(*n));
        if count > MOST_CELLS {
            return Err(format!("it has {count} cells, more than {MOST_CELLS}; try fewer at once"));
        }
        let names = |what: &str, names: Vec<&str>| {
            if names.is_empty() {
                return Err(format!("{what} is empty; name at least one, or leave it out"));
            }
            let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
            match twice {
                Some((_, name)) => {
                    Err(format!("{what} has {name:?} twice; give each a name of its own"))
                }
                None if names.iter().any(|name| name.trim().is_empty()) => {
                    Err(format!("{what} has an entry without a name; give it one"))
                }
                None => Ok(()),
            }
        };
        names("prompts", self.prompts.iter().map(|entry| entry.name.as_str()).collect())?;
        names("models", self.models.iter().map(|entry| entry.name.as_str()).collect())?;
        names("tools", self.tools.iter().map(|entry| entry.name.as_str()).collect())?;
        names("modes", self.modes.iter().map(|mode| mode_name(*mode)).collect())?;
        self.baseline_cell().map(|_| ())
    }

    /// All combinations, in the plan's order.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for prompts in &self.prompts {
            for model in &self.models {
                for &mode in &self.modes {
                    for tools in &self.tools {
                        cells.push(self.cell(prompts, model, mode, tools));
                    }
                }
            }
        }
        let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        let folders = files::slugs(&names);
        for (cell, folder) in cells.iter_mut().zip(folders) {
            cell.folder = folder;
        }
        cells
    }

    fn cell(
        &self,
        prompts: &PromptsEntry,
        model: &ModelEntry,
        mode: Mode,
        tools: &ToolsEntry,
    ) -> Cell {
        let axes = [
            (self.prompts.len(), prompts.name.as_str()),
            (self.models.len(), model.name.as_str()),
            (self.modes.len(), mode_name(mode)),
            (self.tools.len(), tools.name.as_str()),
        ];
        let names: Vec<&str> =
            axes.iter().filter(|(count, _)| *count > 1).map(|(_, name)| *name).collect();
        let name = if names.is_empty() { prompts.name.clone() } else { names.join(", ") };
        Cell {
            name,
            folder: String::new(),
            prompts: prompts.clone(),
            model: model.clone(),
            mode,
            tools: tools.clone(),
        }
    }

    /// The number of the cell that the others are compared with.
    pub fn baseline_cell(&self) -> Result<usize, String> {
        let Baseline { prompts, model, mode, tools } = &self.baseline;
        let find = |axis: &str, wanted: &Option<String>, names: Vec<&str>| match wanted {
            None => Ok(0),
            Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
                format!("baseline.{axis} is {wanted:?}, which is none of {}", names.join(", "))
            }),
        };
        let prompts =
            find("prompts", prompts, self.prompts.iter().map(|e| e.name.as_str()).collect())?;
        let model = find("model", model, self.models.iter().map(|e| e.name.as_str()).collect())?;
        let mode = mode.map(|mode| mode_name(mode).to_owned());
        let mode = find("mode", &mode, self.modes.iter().map(|mode| mode_name(*mode)).collect())?;
        let tools = find("tools", tools, self.tools.iter().map(|e| e.name.as_str()).collect())?;
        Ok(((prompts * self.models.len() + model) * self.modes.len() + mode) * self.tools.len()
            + tools)
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Tool => "tool",
        Mode::Oracle => "oracle",
        Mode::Plain => "plain",
    }
}

/// A plan that cannot be carried out.
#[derive(Debug, thiserror::Error)]
#[error("{path} is not a plan: {reason}")]
pub struct PlanError {
    /// Which file.
    pub path: String,
    /// What is wrong and what to do.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Plan, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        Plan::load(&path, None).map_err(|error| error.to_string())
    }

    const SMALL: &str = r#"
        name = "wording"
        cases = "cases.jsonl"
        [[prompts]]
        name = "v1"
        [[prompts]]
        name = "stricter"
        replace = { "vc.j2" = "vc.j2" }
        [[tools]]
        name = "all"
        [[tools]]
        name = "no difference"
        without = ["localize_differences"]
    "#;

    #[test]
    fn every_combination_is_a_cell_with_a_name_and_a_folder() {
        let plan = load(SMALL).unwrap();
        let cells = plan.cells();
        let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(
            names,
            ["v1, all", "v1, no difference", "stricter, all", "stricter, no difference"]
        );
        assert_eq!(cells[3].folder, "stricter-no-difference");
        assert_eq!(plan.baseline_cell(), Ok(0));
        let plan = load(&format!("baseline = {{ prompts = \"stricter\" }}\n{SMALL}")).unwrap();
        assert_eq!(plan.baseline_cell(), Ok(2));
        assert!(plan.cases.is_some_and(|cases| cases.is_absolute()), "relative to the plan");
    }

    #[test]
    fn cells_that_are_alike_in_name_have_folders_of_their_own() {
        let text =
            "name = \"x\"\ncases = \"c\"\n[[prompts]]\nname = \"A b\"\n[[prompts]]\nname = \"a-b\"";
        let folders: Vec<String> =
            load(text).unwrap().cells().into_iter().map(|c| c.folder).collect();
        assert_eq!(folders, ["a-b", "a-b-2"]);
    }

    #[test]
    fn a_plan_that_makes_no_sense_is_refused_in_words() {
        let head = "name = \"x\"\ncases = \"c\"\n";
        for (text, word) in [
            ("", "name"),
            ("name = \"x\"", "nothing to judge"),
            (
                "name = \"x\"\nfrom_traces = \"r\"\n[[tools]]\nname = \"t\"\nwithout = [\"zoom_in\"]",
                "leave out tools",
            ),
            ("name = \"x\"\ncases = \"c\"\nrepeats = 0", "repeats"),
            ("name = \"x\"\ncases = \"c\"\nmodels = []", "models is empty"),
            ("name = \"x\"\ncases = \"c\"\nrepeat = 2", "unknown field"),
            ("name = \"x\"\ncases = \"c\"\nbaseline = { prompts = \"y\" }", "baseline.prompts"),
            ("name = \"x\"\ncases = \"c\"\n[sample]\nedits = 0", "sample.edits"),
            (
                "name = \"x\"\ncases = \"c\"\n[[models]]\nname = \"m\"\nparams = { token = \"t\" }",
                "params.token",
            ),
            (
                "name = \"x\"\ncases = \"c\"\n[[models]]\nname = \"m\"\napi_key = \"t\"",
                "environment",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        let twice = format!("{head}[[tools]]\nname = \"a\"\n[[tools]]\nname = \"a\"");
        assert!(load(&twice).unwrap_err().contains("twice"));
        let many: String = (0..600).map(|n| format!("[[prompts]]\nname = \"{n}\"\n")).collect();
        assert!(load(&format!("{head}{many}")).unwrap_err().contains("600 cells"));
    }
}

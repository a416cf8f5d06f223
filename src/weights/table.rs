//! `tools/models.toml`: the one table of the runtime and the model files.

use serde::Deserialize;

use crate::hash::Hash;

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightsTable {
    pub(crate) runtime: RuntimeEntry,
    #[serde(rename = "model")]
    pub(crate) models: Vec<WeightsEntry>,
}

/// ONNX Runtime, as the Python package ships it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuntimeEntry {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) licence: String,
    #[serde(rename = "build")]
    pub(crate) builds: Vec<RuntimeBuild>,
}

/// The runtime for one kind of machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuntimeBuild {
    /// Operating system and architecture, as Rust names them.
    pub(crate) machine: String,
    /// The same as pip names it.
    pub(crate) platform: String,
    pub(crate) wheel_sha256: Hash,
    /// The library inside the wheel.
    pub(crate) library: String,
    pub(crate) library_sha256: Hash,
}

/// A model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightsEntry {
    pub(crate) name: String,
    /// A shorter name, for the model that most people want.
    pub(crate) alias: Option<String>,
    /// What it is for, as the tools that use it say.
    pub(crate) kind: String,
    pub(crate) about: String,
    /// What whoever sees its results must know.
    pub(crate) note: Option<String>,
    pub(crate) licence: String,
    /// Megabytes, for those who wonder whether to fetch it.
    pub(crate) megabytes: f64,
    /// How many pixels an enhancer is fed for one observation.
    pub(crate) budget: Option<u64>,
    pub(crate) source: Source,
    #[serde(rename = "file")]
    pub(crate) files: Vec<FileEntry>,
}

/// Where a model comes from.
#[derive(Debug, Deserialize)]
#[serde(tag = "from", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Source {
    /// It is part of this program.
    Program,
    /// The public model hub.
    Hub { repository: String, revision: String },
    /// Inside a Python package: as ONNX files, or as `weights` that are converted once.
    Package { package: String, version: String, wheel_sha256: Hash, weights: Option<String> },
}

/// A file of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileEntry {
    /// Its name in our cache.
    pub(crate) name: String,
    /// Its place at the source, where that is another.
    pub(crate) path: Option<String>,
    /// Absent where it was never seen by us: then what was fetched first is what counts.
    pub(crate) sha256: Option<Hash>,
}

impl WeightsTable {
    /// The table in this program.
    pub(crate) fn embedded() -> anyhow::Result<Self> {
        Ok(toml::from_str(deeplook_tools::shipped::MODELS)?)
    }

    /// The model of this name or alias.
    pub(crate) fn model(&self, name: &str) -> Option<&WeightsEntry> {
        self.models.iter().find(|model| model.name == name || model.alias.as_deref() == Some(name))
    }

    /// The model of this kind that is taken where none was named: the first one that is fetched.
    pub(crate) fn usual(&self, kind: &str) -> Option<&WeightsEntry> {
        self.models.iter().find(|model| model.kind == kind && !model.is_in_program())
    }

    /// What can be fetched, in words.
    pub(crate) fn names(&self) -> String {
        let names = self.models.iter().map(|model| match &model.alias {
            Some(alias) => format!("{} (or {alias})", model.name),
            None => model.name.clone(),
        });
        std::iter::once("runtime".to_owned()).chain(names).collect::<Vec<_>>().join(", ")
    }
}

impl WeightsEntry {
    /// The name that most people fetch it by.
    pub(crate) fn short_name(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// True where nothing has to be downloaded.
    pub(crate) fn is_in_program(&self) -> bool {
        matches!(self.source, Source::Program)
    }
}

impl RuntimeEntry {
    /// The build for this machine.
    pub(crate) fn build(&self) -> Option<&RuntimeBuild> {
        let machine = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
        self.builds.iter().find(|build| build.machine == machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let table = WeightsTable::embedded().unwrap();
        let mut names: Vec<&str> = Vec::new();
        for model in &table.models {
            names.push(&model.name);
            names.extend(model.alias.as_deref());
            assert!(model.files.iter().any(|f| f.name.ends_with(".onnx")), "{}", model.name);
            assert!(model.files.iter().all(|f| !f.name.contains(['/', '\\'])), "{}", model.name);
            // What does not come from the hub was seen by us, so its hash is known.
            if !matches!(model.source, Source::Hub { .. }) {
                assert!(model.files.iter().all(|file| file.sha256.is_some()), "{}", model.name);
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name is there twice");
        assert!(table.runtime.builds.iter().any(|build| build.machine == "linux-x86_64"));
    }
}

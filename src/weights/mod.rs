//! The runtime and the model files on this machine: what is there, where, and how to get the rest.

mod fetch;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use deeplook_tools::onnx::Runtime;

use crate::files;
use crate::hash::Hash;
pub(crate) use fetch::Progress;
use table::RuntimeBuild;
pub(crate) use table::{WeightsEntry, WeightsTable};

/// Where a working library is, if the user has one.
const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";
/// Where fetched files are kept, if not in the usual place.
const CACHE_VARIABLE: &str = "DEEPLOOK_CACHE";
/// Set to anything but 0, it keeps us from fetching what was not asked for by name.
const OFFLINE_VARIABLE: &str = "DEEPLOOK_OFFLINE";
/// The hashes of a model's files as they were fetched.
const FETCHED: &str = "fetched.json";

/// The table, and the folder in which fetched files are kept.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) table: WeightsTable,
    cache: PathBuf,
    /// Whether what was not asked for by name may be fetched.
    fetches: bool,
}

/// What is known of a model on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Every file is there.
    Present,
    /// No file is there.
    Absent,
    /// A file is missing or is not what it should be.
    Damaged(String),
}

/// The folder of this program in the user's cache.
pub(crate) fn cache_folder() -> anyhow::Result<PathBuf> {
    let set = std::env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty());
    let cache = match set {
        Some(folder) => PathBuf::from(folder),
        None => dirs::cache_dir()
            .with_context(|| format!("there is no folder for caches; set {CACHE_VARIABLE}"))?
            .join("deeplook"),
    };
    Ok(std::path::absolute(cache)?)
}

impl Weights {
    /// The table in this program, with the user's cache.
    pub(crate) fn open() -> anyhow::Result<Self> {
        Ok(Self {
            table: WeightsTable::embedded()?,
            cache: cache_folder()?,
            fetches: !is_offline(),
        })
    }

    /// The same for whoever makes do with what is here.
    pub(crate) fn without_network(self) -> Self {
        Self { fetches: false, ..self }
    }

    /// Whether what was not asked for by name may be fetched.
    pub(crate) fn fetches(&self) -> bool {
        self.fetches
    }

    /// The model of this name or alias.
    pub(crate) fn entry(&self, name: &str) -> anyhow::Result<&WeightsEntry> {
        self.table.model(name).with_context(|| {
            format!("there is no model {name:?}; there are {}", self.table.names())
        })
    }

    /// Where the files of a model are, or would be.
    pub(crate) fn folder(&self, model: &WeightsEntry) -> PathBuf {
        self.cache.join("models").join(&model.name)
    }

    /// Whether the files of a model are there; `thorough` reads them and compares their hashes.
    pub(crate) fn presence(&self, model: &WeightsEntry, thorough: bool) -> Presence {
        let folder = self.folder(model);
        if !folder.is_dir() {
            return Presence::Absent;
        }
        let fetched = fs::read(folder.join(FETCHED))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<BTreeMap<String, Hash>>(&bytes).ok())
            .unwrap_or_default();
        for file in &model.files {
            let path = folder.join(&file.name);
            if !path.is_file() {
                return Presence::Damaged(format!("{} is missing", path.display()));
            }
            let then = fetched.get(&file.name);
            let Some(expected) = file.sha256.as_ref().or(then) else {
                return Presence::Damaged(format!("the hash of {} is unknown", path.display()));
            };
            if then.is_some_and(|then| then != expected) {
                let path = path.display();
                return Presence::Damaged(format!("{path} belongs to another version of deeplook"));
            }
            if thorough && !file_hash(&path).is_ok_and(|found| found == *expected) {
                return Presence::Damaged(format!("{} is not what was fetched", path.display()));
            }
        }
        Presence::Present
    }

    /// The library that would be loaded, if there is one without fetching it.
    pub(crate) fn library(&self) -> Option<PathBuf> {
        named_library().or_else(|| {
            let path = self.library_path(self.table.runtime.build()?);
            path.is_file().then_some(path)
        })
    }

    /// Loads the runtime, and fetches it first where it is not there and that may be.
    pub(crate) fn runtime(&self, progress: &Progress) -> anyhow::Result<Runtime> {
        let library = match self.library() {
            Some(library) => library,
            None if !self.fetches => bail!(
                "ONNX Runtime is not here, and it is not fetched now{}; run `deeplook models fetch runtime`, or \
                 set {LIBRARY_VARIABLE} to a library",
                if is_offline() {
                    format!(", because {OFFLINE_VARIABLE} is set")
                } else {
                    String::new()
                }
            ),
            None => self.fetch_runtime(progress)?,
        };
        Ok(Runtime::load(&library)?)
    }

    /// Whether the library that is here works, and is the one that was fetched.
    pub(crate) fn check_runtime(&self) -> anyhow::Result<()> {
        let Some(library) = self.library() else { bail!("ONNX Runtime is not there") };
        if let Some(build) = self.table.runtime.build()
            && library == self.library_path(build)
            && file_hash(&library)? != build.library_sha256
        {
            bail!("{} is not what was fetched", library.display());
        }
        Runtime::load(&library)?;
        Ok(())
    }

    /// Where the library is kept once it was fetched.
    fn library_path(&self, build: &RuntimeBuild) -> PathBuf {
        let name = Path::new(&build.library).file_name().unwrap_or_default();
        self.cache.join("runtime").join(&self.table.runtime.version).join(name)
    }

    /// Fetches the runtime, whatever is there already.
    pub(crate) fn fetch_runtime(&self, progress: &Progress) -> anyhow::Result<PathBuf> {
        let runtime = &self.table.runtime;
        let build = runtime.build().with_context(|| {
            format!(
                "ONNX Runtime cannot be fetched for {} on {}; install it (version 1.19 or newer) and \
                 set {LIBRARY_VARIABLE} to its library",
                std::env::consts::OS,
                std::env::consts::ARCH
            )
        })?;
        let path = self.library_path(build);
        let library = fetch::library(runtime, build, progress).with_context(|| {
            format!(
                "ONNX Runtime {} cannot be fetched; it takes python3 with pip and a network, or set \
                 {LIBRARY_VARIABLE} to a library that you have",
                runtime.version
            )
        })?;
        files::create_folder(path.parent().unwrap_or(&self.cache))?;
        files::write_atomically(&path, &library)?;
        Ok(path)
    }

    /// Fetches a model where it is not there as it should be, or `again`.
    pub(crate) fn fetch(
        &self,
        model: &WeightsEntry,
        again: bool,
        progress: &Progress,
    ) -> anyhow::Result<PathBuf> {
        let folder = self.folder(model);
        files::create_folder(folder.parent().unwrap_or(&self.cache))?;
        // Two at once would replace each other's files. No lock is better than no model.
        let lock = self.cache.join(format!(".fetching-{}", model.name));
        let lock = fs::File::create(&lock)
            .with_context(|| format!("cannot write in {}", self.cache.display()))?;
        let _ = lock.lock();
        if !again && self.presence(model, false) == Presence::Present {
            return Ok(folder);
        }
        // Everything is made beside its place: nobody ever sees half a model. What a killed run left
        // there goes first.
        let beside = folder.with_file_name(format!(".unfinished-{}", model.name));
        let old = folder.with_file_name(format!(".old-{}", model.name));
        let _ = fs::remove_dir_all(&beside);
        let _ = fs::remove_dir_all(&old);
        let made = fetch_into(&beside, model, progress).and_then(|()| {
            // A folder cannot be replaced in one step; what is there is moved away first.
            let _ = fs::rename(&folder, &old);
            fs::rename(&beside, &folder)
                .with_context(|| format!("cannot write {}", folder.display()))
        });
        let _ = fs::remove_dir_all(&beside);
        let _ = fs::remove_dir_all(&old);
        made.map(|()| folder)
    }

    /// The hashes of a model's files, for the record.
    pub(crate) fn hashes(&self, model: &WeightsEntry) -> anyhow::Result<BTreeMap<String, Hash>> {
        let folder = self.folder(model);
        model
            .files
            .iter()
            .map(|f| Ok((f.name.clone(), file_hash(&folder.join(&f.name))?)))
            .collect()
    }
}

/// Puts a model's files, checked, and their hashes into a new folder.
fn fetch_into(folder: &Path, model: &WeightsEntry, progress: &Progress) -> anyhow::Result<()> {
    files::create_folder(folder)?;
    fetch::model(model, folder, progress)
        .with_context(|| format!("{} cannot be fetched", model.name))?;
    let mut hashes = BTreeMap::new();
    for file in &model.files {
        let found = file_hash(&folder.join(&file.name))?;
        if let Some(expected) = file.sha256.as_ref().filter(|expected| **expected != found) {
            bail!(
                "{} of {} is not what it should be: its sha256 is {found}, expected {expected}; \
                 nothing was kept",
                file.name,
                model.name
            );
        }
        hashes.insert(file.name.clone(), found);
    }
    files::write_atomically(&folder.join(FETCHED), &serde_json::to_vec(&hashes)?)
}

/// The library that the user named.
fn named_library() -> Option<PathBuf> {
    std::env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// True where nothing may be fetched that was not asked for by name.
pub(crate) fn is_offline() -> bool {
    std::env::var_os(OFFLINE_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The hash of a file that may be too large to be read at once.
pub(crate) fn file_hash(path: &Path) -> anyhow::Result<Hash> {
    let read = || Hash::of_reader(&mut fs::File::open(path)?);
    read().with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(folder: &Path) -> Weights {
        let table = WeightsTable::embedded().unwrap();
        Weights { table, cache: folder.to_owned(), fetches: false }
    }

    #[test]
    fn what_is_not_what_it_should_be_is_refused_and_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut models = models(folder.path());
        for model in &mut models.table.models {
            model.files[0].sha256 = Some(Hash::of(b"something else"));
        }
        let model = models.entry("demo-detector").unwrap();
        let error = models.fetch(model, false, &Progress::hidden()).unwrap_err();
        assert!(format!("{error:#}").contains("expected"), "{error:#}");
        assert_eq!(models.presence(model, false), Presence::Absent);
        let left = fs::read_dir(folder.path().join("models")).unwrap().count();
        assert_eq!(left, 0, "an unfinished folder was left");
    }

    #[test]
    fn a_model_is_there_whole_and_damage_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let models = models(folder.path());
        let model = models.entry("demo-detector").unwrap();
        assert_eq!(models.presence(model, true), Presence::Absent);
        let unfinished = models.folder(model).with_file_name(".unfinished-demo-detector");
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("model.onnx"), b"half").unwrap();
        for again in [false, true] {
            models.fetch(model, again, &Progress::hidden()).unwrap();
            assert_eq!(models.presence(model, true), Presence::Present);
        }
        let left = fs::read_dir(folder.path().join("models")).unwrap().count();
        assert_eq!(left, 1, "what a killed run left is still there");
        let file = models.folder(model).join("model.onnx");
        let mut bytes = fs::read(&file).unwrap();
        bytes[0] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert!(matches!(models.presence(model, true), Presence::Damaged(_)));
        fs::remove_file(&file).unwrap();
        assert!(matches!(models.presence(model, false), Presence::Damaged(_)));
        models.fetch(model, false, &Progress::hidden()).unwrap();
        assert_eq!(models.presence(model, true), Presence::Present);
    }

    #[test]
    fn what_another_version_fetched_is_fetched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut models = models(folder.path());
        let model = models.entry("demo-detector").unwrap();
        models.fetch(model, false, &Progress::hidden()).unwrap();
        for model in &mut models.table.models {
            model.files[0].sha256 = Some(Hash::of(b"a newer one"));
        }
        let model = models.entry("demo-detector").unwrap();
        let Presence::Damaged(why) = models.presence(model, false) else { panic!("it is old") };
        assert!(why.contains("another version"), "{why}");
    }
}

//! Blobs as evidence: each is read and hashed once, however many traces name it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::hash::Hash;
use crate::received;
use crate::trace::LARGEST_BLOB as LARGEST;

/// All the blob stores that were looked into.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    stores: Mutex<HashMap<PathBuf, Arc<Store>>>,
}

/// One folder of blobs.
#[derive(Debug)]
pub(super) struct Store {
    files: HashMap<String, Vec<PathBuf>>,
    checked: Mutex<HashMap<Hash, Arc<OnceLock<Option<String>>>>>,
}

impl Evidence {
    /// The store in `folder`.
    pub(super) fn store(&self, folder: &Path) -> Arc<Store> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(folder.to_owned());
        Arc::clone(store.or_insert_with(|| Arc::new(Store::open(folder))))
    }
}

impl Store {
    /// A folder that cannot be read is an empty one: every blob is missing then.
    fn open(folder: &Path) -> Self {
        let mut files: HashMap<String, Vec<PathBuf>> = HashMap::new();
        let folder = received::is_folder(folder).then(|| fs::read_dir(folder));
        for entry in folder.into_iter().flatten().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let stem = name.split('.').next().unwrap_or_default().to_owned();
            // A link could lead anywhere, and a pipe may never end.
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                files.entry(stem).or_default().push(entry.path());
            }
        }
        Self { files, checked: Mutex::default() }
    }

    /// What is wrong with a blob, if anything.
    pub(super) fn problem(&self, hash: &Hash) -> Option<String> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let cell = Arc::clone(checked.entry(hash.clone()).or_default());
        drop(checked);
        cell.get_or_init(|| self.check(hash)).clone()
    }

    fn check(&self, hash: &Hash) -> Option<String> {
        let Some(files) = self.files.get(hash.as_str()) else {
            return Some("it is missing".to_owned());
        };
        files.iter().find_map(|path| match hash_of(path) {
            Ok(found) if found == *hash => None,
            Ok(found) => Some(format!("it was changed: what is in it has the hash {found}")),
            Err(error) => Some(format!("it cannot be read: {error}")),
        })
    }

    /// The bytes of a blob, if they are what its name says.
    pub(super) fn get(&self, hash: &Hash) -> Result<Vec<u8>, String> {
        if let Some(problem) = self.problem(hash) {
            return Err(problem);
        }
        let path = self.files.get(hash.as_str()).and_then(|files| files.first());
        path.map_or_else(
            || Err("it is missing".to_owned()),
            |path| received::read(path, LARGEST).map_err(|error| error.to_string()),
        )
    }
}

fn hash_of(path: &Path) -> io::Result<Hash> {
    let file = received::open(path)?;
    let length = file.metadata()?.len();
    if length > LARGEST {
        return Err(io::Error::other("it is larger than 1 GiB"));
    }
    Hash::of_reader(&mut file.take(length))
}

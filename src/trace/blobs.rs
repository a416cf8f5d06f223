//! Content-addressed files: named by the hash of what is in them, so that each is kept once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sink::Blob;
use crate::files::{self, Unsynced};
use crate::hash::Hash;
use crate::received;

/// No picture and no prompt is larger.
pub(crate) const LARGEST: u64 = 1 << 30;

/// A folder of blobs, `<hash>.<extension>` each.
#[derive(Debug, Clone)]
pub struct BlobStore {
    folder: PathBuf,
    unsynced: Arc<Unsynced>,
}

impl BlobStore {
    /// The store in `folder`; the folder appears with the first blob.
    pub fn new(folder: PathBuf) -> Self {
        Self::writing(folder, Arc::default())
    }

    /// The same; what is put into it is noted in `unsynced`.
    pub(super) fn writing(folder: PathBuf, unsynced: Arc<Unsynced>) -> Self {
        Self { folder, unsynced }
    }

    /// Keeps a file.
    pub(super) fn put(&self, Blob { hash, bytes, extension }: &Blob) -> io::Result<()> {
        let path = self.folder.join(format!("{hash}.{extension}"));
        // One of another length was cut by a full disk or a power cut, and is written again.
        let same = |meta: fs::Metadata| meta.is_file() && meta.len() == bytes.len() as u64;
        if fs::symlink_metadata(&path).is_ok_and(same) {
            return Ok(());
        }
        self.unsynced.make_folder(&self.folder)?;
        files::replace_quickly(&path, bytes)?;
        self.unsynced.note([path, self.folder.clone()]);
        Ok(())
    }

    /// The bytes of `hash`, checked against it.
    pub fn get(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        self.get_small(hash, LARGEST)
    }

    /// The same, where more than `largest` bytes would be a mistake.
    pub(crate) fn get_small(&self, hash: &Hash, largest: u64) -> io::Result<Vec<u8>> {
        let path = self.find(hash)?;
        let bytes = received::read(&path, largest)?;
        if Hash::of(&bytes) == *hash {
            Ok(bytes)
        } else {
            let text =
                format!("{} does not hold what its name says: it was changed", path.display());
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
    }

    /// The file of `hash`, whatever its extension.
    pub fn find(&self, hash: &Hash) -> io::Result<PathBuf> {
        const EXTENSIONS: [&str; 11] =
            ["png", "jpg", "json", "txt", "toml", "j2", "md", "webp", "bmp", "tiff", "gif"];
        let named = |extension| self.folder.join(format!("{hash}.{extension}"));
        let is_there = |path: &PathBuf| received::is_there(path);
        let found = received::is_folder(&self.folder)
            .then(|| EXTENSIONS.into_iter().map(named).find(is_there));
        match found.flatten() {
            Some(path) if received::is_file(&path) => Ok(path),
            Some(_) => {
                let text = format!("the blob {hash} is a link, or no ordinary file: refused");
                Err(io::Error::new(io::ErrorKind::InvalidInput, text))
            }
            None => {
                let text = format!("the blob {hash} is not in {}", self.folder.display());
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    /// Where the blobs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

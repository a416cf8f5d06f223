//! Content-addressed files: named by the hash of what is in them, so that each is kept once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{self, Unsynced};
use crate::hash::Hash;

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

    /// Keeps `bytes` whose hash the caller has computed.
    pub(crate) fn put_hashed(&self, hash: &Hash, bytes: &[u8], extension: &str) -> io::Result<()> {
        let path = self.folder.join(format!("{hash}.{extension}"));
        // One of another length was cut by a full disk or a power cut, and is written again.
        if fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes.len() as u64) {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        files::replace_quickly(&path, bytes)?;
        self.unsynced.note([path, self.folder.clone()]);
        Ok(())
    }

    /// The bytes of `hash`, checked against it.
    pub fn get(&self, hash: &Hash) -> io::Result<Vec<u8>> {
        let path = self.find(hash)?;
        let bytes = fs::read(&path)?;
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
        EXTENSIONS.into_iter().map(named).find(|path| path.is_file()).ok_or_else(|| {
            let text = format!("the blob {hash} is not in {}", self.folder.display());
            io::Error::new(io::ErrorKind::NotFound, text)
        })
    }

    /// Where the blobs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

//! Reading a bundle back, whole or interrupted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::blobs::BlobStore;
use super::events::{Event, What};
use super::manifest::{FORMAT, Manifest};
use crate::hash::Hash;

/// A bundle in memory; blobs stay on disk.
#[derive(Debug)]
pub struct Bundle {
    /// Where it is.
    pub folder: PathBuf,
    /// What was known before the first question.
    pub manifest: Manifest,
    /// What happened.
    pub events: Vec<Event>,
    /// False where the judgement was interrupted: the last event is missing or cut.
    pub complete: bool,
    /// Stands for the whole bundle.
    pub digest: Hash,
}

impl Bundle {
    /// Reads the bundle in `folder`.
    pub fn read(folder: &Path) -> Result<Self, TraceError> {
        let manifest_path = folder.join("manifest.json");
        let text = read(&manifest_path)?;
        check_version(&manifest_path, &text)?;
        let manifest = serde_json::from_slice(&text)
            .map_err(|e| TraceError::Malformed { path: manifest_path, problem: e.to_string() })?;
        let (events, cut) = read_events(&folder.join("events.jsonl"))?;
        let finished = matches!(events.last(), Some(Event { event: What::Finished(_), .. }));
        let digest = digest_of(folder)
            .map_err(|source| TraceError::Unreadable { path: folder.to_owned(), source })?;
        Ok(Self { folder: folder.to_owned(), manifest, events, complete: finished && !cut, digest })
    }

    /// Where its blobs are: its own, else those of the run that it is in.
    pub fn blobs(&self) -> BlobStore {
        let own = self.folder.join("blobs");
        let of_run = self.folder.parent().and_then(Path::parent).map(|run| run.join("blobs"));
        match of_run {
            Some(shared) if !own.is_dir() => BlobStore::new(shared),
            _ => BlobStore::new(own),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TraceError> {
    fs::read(path).map_err(|source| TraceError::Unreadable { path: path.to_owned(), source })
}

/// Before anything else is believed: is this a format we know?
fn check_version(path: &Path, text: &[u8]) -> Result<(), TraceError> {
    let malformed = |problem: String| TraceError::Malformed { path: path.to_owned(), problem };
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| malformed(e.to_string()))?;
    let major = value["format"]["major"]
        .as_u64()
        .ok_or_else(|| malformed("it has no format.major".to_owned()))?;
    if major == u64::from(FORMAT.major) {
        Ok(())
    } else {
        Err(TraceError::Version { path: path.to_owned(), found: major })
    }
}

/// The events, and whether the last line was cut off in the middle of writing.
fn read_events(path: &Path) -> Result<(Vec<Event>, bool), TraceError> {
    let text = read(path)?;
    let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let mut events = Vec::new();
    for (number, line) in text[..whole].split(|&b| b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        let event = serde_json::from_slice(line).map_err(|e| TraceError::Malformed {
            path: path.to_owned(),
            problem: format!("line {}: {e}", number + 1),
        })?;
        events.push(event);
    }
    Ok((events, whole < text.len()))
}

/// The root digest of a bundle. Manifest and events name every blob by its hash, so it covers
/// those too.
pub(super) fn digest_of(folder: &Path) -> io::Result<Hash> {
    let manifest = Hash::of(&fs::read(folder.join("manifest.json"))?);
    let events = Hash::of(&fs::read(folder.join("events.jsonl"))?);
    Ok(Hash::of(format!("deeplook trace {}\n{manifest}\n{events}\n", FORMAT.major).as_bytes()))
}

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file system said no.
    #[error("cannot read {}: {source}; is this the folder of a trace?", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not what we write.
    #[error("{} is not a trace of ours: {problem}; copy it again from where it was made", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Another major version.
    #[error("{} has format {found}, this program reads format {}; use a version of deeplook that wrote it, or a newer one", path.display(), FORMAT.major)]
    Version {
        /// Which file.
        path: PathBuf,
        /// What it says.
        found: u64,
    },
}

//! Reading a bundle back, whole or interrupted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::blobs::BlobStore;
use super::events::{Event, Unknown, What};
use super::manifest::Manifest;
use super::seal;
use super::sink::Kept;
use super::stored::{self, FORMAT, FormatVersion, KINDS, Line, format1};
use crate::hash::Hash;
use crate::received;

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
    /// Lines of `events.jsonl` that can be read and yet are not as they were written.
    pub flaws: Vec<Flaw>,
    /// Stands for the whole bundle.
    pub digest: Hash,
}

impl Bundle {
    /// Reads the bundle in `folder`.
    pub fn read(folder: &Path) -> Result<Self, TraceError> {
        if is_unbegun(folder) {
            return Err(TraceError::Unbegun { path: folder.to_owned() });
        }
        let (manifest, text) = read_manifest(folder)?;
        let events_path = folder.join("events.jsonl");
        // A merge that was killed has brought the manifest alone: nothing happened yet, as far as
        // this folder goes.
        let lines =
            if is_nothing(&events_path) { Vec::new() } else { read(&events_path, LARGEST_EVENTS)? };
        let digest = digest_of(manifest.format, &Hash::of(&text), &Hash::of(&lines));
        let Lines { events, cut, flaws } =
            read_lines(&events_path, &lines, Hash::of(&text), manifest.format)?;
        let finished = matches!(events.last(), Some(Event { event: What::Finished(_), .. }));
        let complete = finished && !cut;
        Ok(Self { folder: folder.to_owned(), manifest, events, complete, flaws, digest })
    }

    /// Reads nothing but the manifest of the bundle in `folder`.
    pub fn manifest_in(folder: &Path) -> Result<Manifest, TraceError> {
        read_manifest(folder).map(|(manifest, _)| manifest)
    }

    /// Where it is, and what stands for it.
    pub fn kept(&self) -> Kept {
        // "." has no name of its own.
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        Kept { folder, digest: self.digest.clone() }
    }

    /// Where its blobs are: its own, else those of the run that it is in.
    pub fn blobs(&self) -> BlobStore {
        let own = self.folder.join("blobs");
        // A relative name may not tell of the folders above it.
        let whole = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let of_run = whole.parent().and_then(Path::parent).map(|run| run.join("blobs"));
        match of_run {
            Some(shared) if !received::is_there(&own) => BlobStore::new(shared),
            _ => BlobStore::new(own),
        }
    }
}

/// Whether nothing was recorded in the folder of a judgement: whoever made it was killed before its
/// first event, or between its two files.
pub(crate) fn is_unbegun(folder: &Path) -> bool {
    ["manifest.json", "events.jsonl"].iter().all(|name| is_nothing(&folder.join(name)))
}

/// No file at all, or an ordinary one without a byte, as a power cut leaves it.
fn is_nothing(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(meta) => meta.is_file() && meta.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The oldest format that can be read.
const FIRST: u64 = 1;

/// More is no manifest.
const LARGEST_MANIFEST: u64 = 16 << 20;
/// More is no judgement: a turn has a few kilobytes.
const LARGEST_EVENTS: u64 = 64 << 20;

fn read_manifest(folder: &Path) -> Result<(Manifest, Vec<u8>), TraceError> {
    let path = folder.join("manifest.json");
    let text = read(&path, LARGEST_MANIFEST)?;
    let malformed =
        |e: serde_json::Error| TraceError::Malformed { path: path.clone(), problem: e.to_string() };
    let mut value: Value = serde_json::from_slice(&text).map_err(malformed)?;
    // Before anything else is believed: is this a format we know?
    let Some(major) = value["format"]["major"].as_u64() else {
        let problem = "it has no format.major".to_owned();
        return Err(TraceError::Malformed { path, problem });
    };
    if major == FIRST {
        value = format1::today(value).map_err(malformed)?;
    } else if major != u64::from(FORMAT.major) {
        return Err(TraceError::Version { path, found: major });
    }
    let stored: stored::Manifest = serde_json::from_value(value).map_err(malformed)?;
    Ok((stored.into(), text))
}

fn read(path: &Path, largest: u64) -> Result<Vec<u8>, TraceError> {
    received::read(path, largest)
        .map_err(|source| TraceError::Unreadable { path: path.to_owned(), source })
}

/// A line of `events.jsonl` that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// What `events.jsonl` holds.
struct Lines {
    events: Vec<Event>,
    /// Whether the last line was cut off in the middle of writing.
    cut: bool,
    flaws: Vec<Flaw>,
}

fn read_lines(
    path: &Path,
    text: &[u8],
    manifest: Hash,
    format: FormatVersion,
) -> Result<Lines, TraceError> {
    let whole = text.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let cut = whole < text.len();
    let (mut events, mut flaws) = (Vec::<Event>::new(), Vec::new());
    let mut before = manifest;
    for (index, line) in text[..whole.saturating_sub(1)].split(|&b| b == b'\n').enumerate() {
        if whole == 0 {
            break;
        }
        let number = index + 1;
        let mut flaw = |problem: String| flaws.push(Flaw { line: number, problem });
        if line.is_empty() {
            flaw("it is empty".to_owned());
            continue;
        }
        let (Event { seq, at, event }, seal) = read_line(line, format).map_err(|e| {
            TraceError::Malformed { path: path.to_owned(), problem: format!("line {number}: {e}") }
        })?;
        if seq != events.len() as u64 {
            flaw(format!("its number is {seq}, and {} comes here", events.len()));
        }
        if !seal::holds(&before, line) {
            let manifest = if index == 0 { ", or the manifest," } else { "" };
            flaw(format!(
                "its seal is broken: it{manifest} was changed, or something before it is missing"
            ));
        }
        if matches!(events.last(), Some(Event { event: What::Finished(_), .. })) {
            flaw("it comes after the end".to_owned());
        }
        before = seal;
        events.push(Event { seq, at, event });
    }
    let ended = matches!(events.last(), Some(Event { event: What::Finished(_), .. }));
    if cut && ended {
        flaws.push(Flaw { line: events.len() + 1, problem: "it comes after the end".to_owned() });
    }
    Ok(Lines { events, cut, flaws })
}

/// An event and its seal. What a newer minor version has added is kept as it is.
fn read_line(line: &[u8], format: FormatVersion) -> serde_json::Result<(Event, Hash)> {
    let error = match serde_json::from_slice::<Line>(line) {
        Ok(Line { seq, at, event, seal }) => {
            return Ok((Event { seq, at, event: event.back() }, seal));
        }
        Err(error) => error,
    };
    if !format.is_newer() {
        return Err(error);
    }
    let Ok(Line { seq, at, event, seal }) =
        serde_json::from_slice::<Line<serde_json::Map<String, Value>>>(line)
    else {
        return Err(error);
    };
    match event.into_iter().next() {
        Some((kind, content)) if !KINDS.contains(&kind.as_str()) => {
            Ok((Event { seq, at, event: What::Unknown(Unknown { kind, content }) }, seal))
        }
        _ => Err(error),
    }
}

/// The root digest of a bundle with these files. Manifest and events name every blob by its hash, so
/// it covers those too.
pub(super) fn digest_of(format: FormatVersion, manifest: &Hash, events: &Hash) -> Hash {
    Hash::of(format!("deeplook trace {}\n{manifest}\n{events}\n", format.major).as_bytes())
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
    /// Nothing was recorded yet.
    #[error("{} was interrupted before anything was recorded: there is nothing in it", path.display())]
    Unbegun {
        /// The folder of the judgement.
        path: PathBuf,
    },
    /// There is none.
    #[error("there is no trace in {}; name a bundle, a run, or a folder that holds them", path.display())]
    Nothing {
        /// Where.
        path: PathBuf,
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
    #[error("{} has format {found}, this program reads formats {FIRST} to {}; use the version of deeplook that wrote it, or a newer one", path.display(), FORMAT.major)]
    Version {
        /// Which file.
        path: PathBuf,
        /// What it says.
        found: u64,
    },
}

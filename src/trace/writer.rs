//! Writing a trace while the judgement goes on. A trace that cannot be written is fatal: it is the
//! evidence.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::blobs::BlobStore;
use super::events::{Event, What};
use super::manifest::Manifest;
use super::reader::digest_of;
use super::seal;
use crate::files::{self, Unsynced};
use crate::hash::Hash;

/// A folder of bundles with a common blob store.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
    unsynced: Arc<Unsynced>,
}

impl RunFolder {
    /// The run in `path`; its folders appear as they are needed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), unsynced: Arc::default() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The blobs of all its bundles.
    pub fn blobs(&self) -> BlobStore {
        BlobStore::writing(self.path.join("blobs"), Arc::clone(&self.unsynced))
    }

    /// Returns when everything that was written to this run survives a power cut. One sync for many
    /// judgements costs little more than one for each.
    pub fn sync(&self) -> io::Result<()> {
        self.unsynced.sync()
    }

    /// Starts the bundle of `manifest`.
    pub fn start(&self, manifest: &Manifest) -> io::Result<TraceWriter> {
        let judgements = self.path.join("judgements");
        fs::create_dir_all(&judgements)?;
        let name = bundle_name(manifest);
        // A trace is never overwritten: judging again gives another one.
        for number in 1u32.. {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            match fs::create_dir(judgements.join(&name)) {
                Ok(()) => {
                    let folder = judgements.join(name);
                    self.unsynced.note([judgements, folder.clone()]);
                    return TraceWriter::create(folder, self, manifest);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there is no free name for another trace"))
    }
}

/// A readable name that no other job of the run has.
pub(crate) fn bundle_name(manifest: &Manifest) -> String {
    let case = &manifest.case;
    let editor = case.editor.as_deref().unwrap_or("edited");
    let mode = manifest.mode.to_string();
    let job =
        [&case.id, editor, &manifest.criterion, &mode, &manifest.repeat.to_string()].join("\n");
    let readable = files::slug(&format!("{} {editor} {} {mode}", case.id, manifest.criterion));
    let readable: String = readable.chars().take(80).collect();
    let hash = Hash::of(job.as_bytes());
    format!("{readable}-{}", &hash.as_str()[..8])
}

/// An open trace.
#[derive(Debug)]
pub struct TraceWriter {
    folder: PathBuf,
    blobs: BlobStore,
    unsynced: Arc<Unsynced>,
    /// The file, and what is in it.
    events: Mutex<(File, Vec<Event>)>,
    manifest: Hash,
}

impl TraceWriter {
    fn create(folder: PathBuf, run: &RunFolder, manifest: &Manifest) -> io::Result<Self> {
        let [manifest_path, events_path] =
            ["manifest.json", "events.jsonl"].map(|n| folder.join(n));
        let events = File::create(&events_path)?;
        let mut json = serde_json::to_vec_pretty(manifest)?;
        json.push(b'\n');
        files::replace_quickly(&manifest_path, &json)?;
        run.unsynced.note([manifest_path]);
        let manifest = Hash::of(&json);
        let (blobs, unsynced) = (run.blobs(), Arc::clone(&run.unsynced));
        Ok(Self { folder, blobs, unsynced, events: Mutex::new((events, Vec::new())), manifest })
    }

    /// Where the bundle is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where blobs go; each must be there before the event that names it.
    pub fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// Appends an event: one line, one write. `watch` is called with it right after.
    pub fn record(&self, what: What, watch: &dyn Fn(&Event)) -> io::Result<()> {
        let mut guard = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (file, events) = &mut *guard;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let before = events.last().map_or(&self.manifest, |event| &event.seal);
        let (event, line) = seal::sealed(before, events.len() as u64, at, what)?;
        file.write_all(&line)?;
        watch(&event);
        events.push(event);
        Ok(())
    }

    /// Closes the trace: what was recorded, and the digest of the bundle. It survives a power cut
    /// after [`RunFolder::sync`].
    pub fn close(self) -> io::Result<(Vec<Event>, Hash)> {
        let (_, events) = self.events.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.unsynced.note([self.folder.join("events.jsonl")]);
        let read = |name: &str| fs::read(self.folder.join(name));
        let digest = digest_of(&read("manifest.json")?, &read("events.jsonl")?);
        Ok((events, digest))
    }
}

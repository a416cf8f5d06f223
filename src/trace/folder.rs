//! A run on disk: bundles that are written while the judgements go on. A trace that cannot be
//! written is fatal: it is the evidence.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blobs::BlobStore;
use super::events::Event;
use super::manifest::Manifest;
use super::reader::digest_of;
use super::seal;
use super::sink::{Blob, Kept, OpenTrace, Sink, Waiting};
use super::stored::FORMAT;
use crate::files::{self, Unsynced};
use crate::hash::{Hash, Hasher};

/// A folder of bundles with a common blob store: the sink of runs, and of `deeplook judge`.
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

    /// Starts the bundle of `manifest`.
    fn open(&self, manifest: &Manifest) -> io::Result<OpenBundle> {
        let judgements = self.path.join("judgements");
        self.unsynced.make_folder(&judgements)?;
        let name = bundle_name(manifest);
        // A trace is never overwritten: judging again gives another one.
        for number in 1u32.. {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            match fs::create_dir(judgements.join(&name)) {
                Ok(()) => {
                    let folder = judgements.join(name);
                    self.unsynced.note([judgements, folder.clone()]);
                    return OpenBundle::create(folder, self, manifest);
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

impl Sink for RunFolder {
    fn keeps_files(&self) -> bool {
        true
    }

    fn keep(&self, files: Vec<Blob>) -> Waiting<'_, ()> {
        let store = self.blobs();
        on_disk(move || files.iter().try_for_each(|file| store.put(file)))
    }

    fn start<'a>(&'a self, manifest: &'a Manifest) -> Waiting<'a, Box<dyn OpenTrace>> {
        let (run, manifest) = (self.clone(), manifest.clone());
        on_disk(move || Ok(Box::new(run.open(&manifest)?) as Box<dyn OpenTrace>))
    }

    fn sync(&self) -> Waiting<'_, ()> {
        let unsynced = Arc::clone(&self.unsynced);
        on_disk(move || unsynced.sync())
    }
}

/// Does what waits for the disk where it holds up no other judgement.
fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Waiting<'static, T> {
    Box::pin(async { tokio::task::spawn_blocking(work).await.map_err(io::Error::other)? })
}

/// A bundle that is being written.
#[derive(Debug)]
struct OpenBundle {
    folder: PathBuf,
    unsynced: Arc<Unsynced>,
    events: File,
    manifest: Hash,
    /// Of the lines so far.
    written: Hasher,
    /// The seal of the line before, or the hash of the manifest.
    seal: Hash,
}

impl OpenBundle {
    fn create(folder: PathBuf, run: &RunFolder, manifest: &Manifest) -> io::Result<Self> {
        let [manifest_path, events_path] =
            ["manifest.json", "events.jsonl"].map(|n| folder.join(n));
        let events = File::create(&events_path)?;
        let mut json = serde_json::to_vec_pretty(manifest)?;
        json.push(b'\n');
        files::replace_quickly(&manifest_path, &json)?;
        run.unsynced.note([manifest_path]);
        let manifest = Hash::of(&json);
        let (unsynced, seal) = (Arc::clone(&run.unsynced), manifest.clone());
        Ok(Self { folder, unsynced, events, manifest, written: Hasher::default(), seal })
    }
}

impl OpenTrace for OpenBundle {
    /// One line, one write.
    fn append(&mut self, event: &Event) -> io::Result<()> {
        let (seal, line) = seal::sealed(&self.seal, event)?;
        self.events.write_all(&line)?;
        self.written.update(&line);
        self.seal = seal;
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<Option<Kept>> {
        let Self { folder, unsynced, manifest, written, .. } = *self;
        unsynced.note([folder.join("events.jsonl")]);
        Ok(Some(Kept { folder, digest: digest_of(FORMAT, &manifest, &written.finish()) }))
    }
}

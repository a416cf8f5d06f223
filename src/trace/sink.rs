//! Where traces go: a folder on disk, or nowhere, so that a judge needs no disk.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::events::{Event, What};
use super::manifest::Manifest;
use crate::hash::Hash;

/// What a sink does, which may wait for a disk.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// A file that a trace names by the hash of what is in it.
#[derive(Clone)]
pub struct Blob {
    /// Its name.
    pub hash: Hash,
    /// What is in it.
    pub bytes: Arc<[u8]>,
    /// The extension of its file, without the dot.
    pub extension: String,
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} ({} bytes)", self.hash, self.extension, self.bytes.len())
    }
}

/// Where the traces of judgements go. Many judgements use one sink at the same time.
///
/// An error means that the evidence cannot be kept: the judgement ends with it.
pub trait Sink: fmt::Debug + Send + Sync {
    /// Whether files are kept. Where they are not, [`Sink::keep`] is never called, and no picture is
    /// encoded for the trace alone.
    fn keeps_files(&self) -> bool;

    /// Keeps files. Called before the manifest or the event that names them; the same file may come
    /// again.
    fn keep(&self, files: Vec<Blob>) -> Waiting<'_, ()>;

    /// Starts the trace of a judgement: called once for each, before its first event.
    fn start<'a>(&'a self, manifest: &'a Manifest) -> Waiting<'a, Box<dyn OpenTrace>>;

    /// Returns when everything that was kept and recorded before survives a power cut. One call for
    /// many judgements costs little more than one for each.
    fn sync(&self) -> Waiting<'_, ()>;
}

/// The trace of one judgement under way.
pub trait OpenTrace: fmt::Debug + Send {
    /// Takes the next event. It is called from where judgements go on, so it must be quick.
    fn append(&mut self, event: &Event) -> io::Result<()>;

    /// Called once, after the last event: where the trace is, unless it is nowhere.
    fn close(self: Box<Self>) -> io::Result<Option<Kept>>;
}

/// A finished trace on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The folder of the bundle.
    pub folder: PathBuf,
    /// Stands for the whole trace: keep it elsewhere, and nobody can change the trace unnoticed.
    pub digest: Hash,
}

/// Keeps nothing: what came of a judgement is in [`Judged`](crate::Judged) and goes with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

impl Sink for Memory {
    fn keeps_files(&self) -> bool {
        false
    }

    fn keep(&self, _: Vec<Blob>) -> Waiting<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn start<'a>(&'a self, _: &'a Manifest) -> Waiting<'a, Box<dyn OpenTrace>> {
        Box::pin(std::future::ready(Ok(Box::new(*self) as Box<dyn OpenTrace>)))
    }

    fn sync(&self) -> Waiting<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl OpenTrace for Memory {
    fn append(&mut self, _: &Event) -> io::Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> io::Result<Option<Kept>> {
        Ok(None)
    }
}

/// Numbers the events of one judgement and hands them on.
#[derive(Debug)]
pub(crate) struct Recorder {
    under_way: Mutex<(Box<dyn OpenTrace>, Vec<Event>)>,
}

impl Recorder {
    pub(crate) fn new(trace: Box<dyn OpenTrace>) -> Self {
        Self { under_way: Mutex::new((trace, Vec::new())) }
    }

    /// Appends an event. `watch` is called with it right after.
    pub(crate) fn record(&self, what: What, watch: &dyn Fn(&Event)) -> io::Result<()> {
        let mut guard = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let (trace, events) = &mut *guard;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let event = Event { seq: events.len() as u64, at, event: what };
        trace.append(&event)?;
        watch(&event);
        events.push(event);
        Ok(())
    }

    /// Closes the trace: everything that was recorded, and where it is.
    pub(crate) fn close(self) -> io::Result<(Vec<Event>, Option<Kept>)> {
        let (trace, events) = self.under_way.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((events, trace.close()?))
    }
}

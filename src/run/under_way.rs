//! Which judgements are under way, on the disk: one in which processes die must not stop a run again
//! each time it is started.
//!
//! While a judgement is made, a file in `under-way/` says how many processes have died in it, if this
//! one does too. Whoever finds it afterwards judges the others first. A stop that was wished for leaves
//! none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::select::Job;
use crate::files;
use crate::hash::Hash;
use crate::key::JudgementKey;
use crate::received;

/// After so many deaths a judgement is made with nothing else beside it.
const ALONE: u32 = 2;
/// After so many it is not made any more.
const GIVEN_UP: u32 = 3;

const LARGEST: u64 = 1 << 16;
const MOST: usize = 100_000;

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    key: JudgementKey,
    deaths: u32,
}

/// How to go about a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    /// Like all others.
    None,
    /// After the others: a process died while it was under way, perhaps for another reason.
    Later,
    /// At the end, and one at a time.
    Alone,
}

/// The judgements that are under way in a run.
#[derive(Debug)]
pub(crate) struct UnderWay {
    /// Empty where the run is nowhere on the disk: then nothing is noted.
    folder: PathBuf,
    /// How many processes died in the middle of each.
    deaths: BTreeMap<JudgementKey, u32>,
    now: Mutex<BTreeMap<JudgementKey, u32>>,
}

impl UnderWay {
    /// What earlier processes have left. A note that cannot be read is none.
    pub(crate) fn open(run: Option<&Path>) -> Self {
        let Some(run) = run else {
            let (folder, deaths) = (PathBuf::new(), BTreeMap::new());
            return Self { folder, deaths, now: Mutex::default() };
        };
        let folder = run.join("under-way");
        let entries = received::is_folder(&folder).then(|| fs::read_dir(&folder).ok()).flatten();
        let note = |entry: fs::DirEntry| {
            let bytes = received::read(&entry.path(), LARGEST).ok()?;
            let Note { key, deaths } = serde_json::from_slice(&bytes).ok()?;
            Some((key, deaths))
        };
        let deaths = entries.into_iter().flatten().flatten().take(MOST).filter_map(note).collect();
        Self { folder, deaths, now: Mutex::default() }
    }

    /// What is to be said of it before the run goes on.
    pub(crate) fn remark(&self, jobs: &[Job]) -> Option<String> {
        let count = jobs.iter().filter(|job| self.deaths(&job.key) > 0).count();
        let judgements = if count == 1 { "judgement was" } else { "judgements were" };
        let text = format!(
            "{count} {judgements} under way when a process died: the others come first (after {GIVEN_UP} times it \
             counts as failed)"
        );
        (count > 0).then_some(text)
    }

    fn deaths(&self, key: &JudgementKey) -> u32 {
        self.deaths.get(key).copied().unwrap_or(0)
    }

    pub(super) fn care(&self, key: &JudgementKey) -> Care {
        match self.deaths(key) {
            0 | GIVEN_UP.. => Care::None,
            ALONE.. => Care::Alone,
            _ => Care::Later,
        }
    }

    /// Why a judgement is not made any more.
    pub(super) fn given_up(&self, key: &JudgementKey) -> Option<String> {
        let deaths = self.deaths(key);
        (deaths >= GIVEN_UP).then(|| {
            format!(
                "{deaths} processes died in the middle of this judgement, the last one with nothing else under way; \
                 does it take more memory than there is? It is judged again with what failed"
            )
        })
    }

    /// Notes that a judgement begins. The note goes when what is returned does, unless a crash does it.
    pub(super) fn begin<'a>(&'a self, key: &'a JudgementKey) -> Begun<'a> {
        let before = self.deaths(key);
        self.now().insert(key.clone(), before);
        self.note(key, before.saturating_add(1));
        Begun { of: self, key, left: before }
    }

    /// Takes back all notes: we stop because somebody said so.
    pub(super) fn forgive(&self) {
        for (key, before) in std::mem::take(&mut *self.now()) {
            self.note(&key, before);
        }
    }

    /// Only a help: where it cannot be written, the trace cannot be either, and that is told.
    fn note(&self, key: &JudgementKey, deaths: u32) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        let name = Hash::of(key.to_string().as_bytes());
        let path = self.folder.join(format!("{}.json", &name.as_str()[..32]));
        if deaths == 0 {
            let _ = fs::remove_file(path);
        } else if let Ok(text) = serde_json::to_vec(&Note { key: key.clone(), deaths }) {
            // Not the folders above it: where the run's is gone, it stays gone.
            if received::is_folder(&self.folder) || fs::create_dir(&self.folder).is_ok() {
                let _ = files::replace_quickly(&path, &text);
            }
        }
    }

    fn now(&self) -> MutexGuard<'_, BTreeMap<JudgementKey, u32>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A judgement that is under way.
pub(super) struct Begun<'a> {
    of: &'a UnderWay,
    key: &'a JudgementKey,
    /// The deaths that stay on record.
    left: u32,
}

impl Begun<'_> {
    /// It has an outcome, and nothing is left to remember.
    pub(super) fn finish(mut self) {
        self.left = 0;
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let ours = self.of.now().remove(self.key).is_some();
        // A crash leaves its note, like a death.
        if ours && !std::thread::panicking() {
            self.of.note(self.key, self.left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Mode;

    fn key(case: &str) -> JudgementKey {
        let (editor, criterion) = ("e".to_owned(), "if".to_owned());
        JudgementKey { case: case.to_owned(), editor, criterion, mode: Mode::Plain, repeat: 0 }
    }

    #[test]
    fn deaths_are_counted_and_stops_are_not() {
        let run = tempfile::tempdir().unwrap();
        let (bad, good) = (key("bad"), key("good"));
        let open = || UnderWay::open(Some(run.path()));
        for (deaths, care) in [(0, Care::None), (1, Care::Later), (2, Care::Alone)] {
            let under_way = open();
            assert_eq!(under_way.deaths(&bad), deaths);
            assert_eq!(under_way.care(&bad), care);
            assert_eq!(under_way.given_up(&bad), None);
            // A stop between deaths changes nothing.
            let begun = under_way.begin(&bad);
            under_way.forgive();
            drop(begun);
            drop(under_way.begin(&bad));
            assert_eq!(open().deaths(&bad), deaths);
            under_way.begin(&good).finish();
            // The process dies.
            std::mem::forget(under_way.begin(&bad));
        }
        let under_way = open();
        assert_eq!(under_way.deaths(&good), 0);
        assert!(under_way.given_up(&bad).unwrap().contains("3 processes died"));
        under_way.begin(&bad).finish();
        assert_eq!(open().deaths(&bad), 0);
    }

    #[test]
    fn a_crash_is_a_death() {
        let run = tempfile::tempdir().unwrap();
        let under_way = UnderWay::open(Some(run.path()));
        let key = key("bad");
        let crash = std::panic::catch_unwind(|| {
            let _begun = under_way.begin(&key);
            panic!("a defect");
        });
        assert!(crash.is_err());
        under_way.forgive();
        assert_eq!(UnderWay::open(Some(run.path())).deaths(&key), 1);
    }
}

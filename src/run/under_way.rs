//! Which judgements are worked on, on the disk: one in which processes die must not stop a run again
//! each time it is started, and one that only happened to be there when somebody killed us must not
//! suffer for it.
//!
//! While a judgement keeps this machine busy (never while it waits for a server), a file in `under-way/`
//! says so. Whoever finds it afterwards judges the others first, and in the end one at a time. Only
//! deaths that were the process's own doing ([`super::death`]) can make it give a judgement up: kills
//! never do, however many there are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::death::{self, AtWork, End};
use super::select::Job;
use crate::files;
use crate::hash::Hash;
use crate::key::JudgementKey;
use crate::received;

/// After so many deaths, of whatever cause, a judgement is made with nothing else beside it.
const ALONE: u32 = 2;
/// After so many of the process's own doing it is not made any more; all but the first [`ALONE`] had
/// nothing else that could have been the cause.
const GIVEN_UP: u32 = 5;

const LARGEST: u64 = 1 << 16;
const MOST: usize = 100_000;

#[derive(Debug, Serialize, Deserialize)]
struct Note {
    key: JudgementKey,
    /// It is worked on at this moment.
    at_work: bool,
    #[serde(flatten)]
    deaths: Deaths,
}

/// How many processes died while they worked on a judgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Deaths {
    /// Of whatever cause.
    deaths: u32,
    /// By their own doing.
    by_itself: u32,
}

impl Deaths {
    fn and_one_more(self, end: End) -> Self {
        let (dead, by_itself) = match end {
            End::Ended => (0, 0),
            End::Killed => (1, 0),
            End::ByItself => (1, 1),
        };
        Self {
            deaths: self.deaths.saturating_add(dead),
            by_itself: self.by_itself.saturating_add(by_itself),
        }
    }
}

/// How to go about a judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Care {
    /// Like all others.
    None,
    /// After the others: a process died while it worked on it, perhaps for another reason.
    Later,
    /// At the end, and one at a time.
    Alone,
}

/// The judgements that are under way in a run.
#[derive(Debug)]
pub(crate) struct UnderWay {
    notes: Arc<Notes>,
    deaths: BTreeMap<JudgementKey, Deaths>,
    /// Until the run comes to its end.
    process: Mutex<Option<AtWork>>,
}

impl UnderWay {
    /// What earlier processes have left. A note that cannot be read is none.
    pub(crate) fn open(run: Option<&Path>) -> Self {
        let Some(run) = run else {
            let notes = Arc::new(Notes(None));
            return Self { notes, deaths: BTreeMap::new(), process: Mutex::default() };
        };
        let folder = run.join("under-way");
        // Not the folders above it: where the run's is gone, it stays gone.
        if !received::is_folder(&folder) {
            let _ = fs::create_dir(&folder);
        }
        let process = folder.join("process");
        // Told and taken away before anything is counted: no death counts twice.
        let end = death::of_the_last(&process);
        let entries = received::is_folder(&folder).then(|| fs::read_dir(&folder).ok()).flatten();
        let read = |entry: fs::DirEntry| -> Option<Note> {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != "json") {
                // A note that a kill left half-written; the lock of the run is ours.
                if path != process {
                    let _ = fs::remove_file(path);
                }
                return None;
            }
            let bytes = received::read(&path, LARGEST).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        let left: Vec<Note> =
            entries.into_iter().flatten().flatten().take(MOST).filter_map(read).collect();
        let notes = Notes(Some(folder));
        let mut all = BTreeMap::new();
        for Note { key, at_work, deaths } in left {
            let deaths = if at_work { deaths.and_one_more(end) } else { deaths };
            if at_work {
                notes.write(&key, false, deaths);
            }
            all.insert(key, deaths);
        }
        let process = Mutex::new(AtWork::begin(process));
        Self { notes: Arc::new(notes), deaths: all, process }
    }

    /// What is to be said of it before the run goes on.
    pub(crate) fn remark(&self, jobs: &[Job]) -> Option<String> {
        let count = jobs.iter().filter(|job| self.deaths(&job.key).deaths > 0).count();
        let judgements = if count == 1 { "judgement was" } else { "judgements were" };
        let text = format!(
            "{count} {judgements} being worked on when a process died: the others come first (one that makes it \
             abort {GIVEN_UP} times counts as failed)"
        );
        (count > 0).then_some(text)
    }

    fn deaths(&self, key: &JudgementKey) -> Deaths {
        self.deaths.get(key).copied().unwrap_or_default()
    }

    pub(super) fn care(&self, key: &JudgementKey) -> Care {
        match self.deaths(key).deaths {
            0 => Care::None,
            ALONE.. => Care::Alone,
            _ => Care::Later,
        }
    }

    /// Why a judgement is not made any more.
    pub(super) fn given_up(&self, key: &JudgementKey) -> Option<String> {
        let Deaths { by_itself, .. } = self.deaths(key);
        (by_itself >= GIVEN_UP).then(|| {
            format!(
                "{by_itself} processes aborted in the middle of this judgement, the last ones with nothing else under \
                 way; does it take more memory than there is? It is judged again with what failed"
            )
        })
    }

    /// A judgement begins.
    pub(super) fn begin<'a>(&'a self, key: &'a JudgementKey) -> Begun<'a> {
        Begun { of: self, key, left: self.deaths(key) }
    }

    /// We stop because all is done, or because somebody said so: no note means anything from now on.
    pub(super) fn end(&self) {
        drop(self.process.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The notes on the disk; none where the run is nowhere on it.
#[derive(Debug)]
struct Notes(Option<PathBuf>);

impl Notes {
    /// Only a help: where it cannot be written, the trace cannot be either, and that is told.
    fn write(&self, key: &JudgementKey, at_work: bool, deaths: Deaths) {
        let Some(folder) = &self.0 else { return };
        let name = Hash::of(key.to_string().as_bytes());
        let path = folder.join(format!("{}.json", &name.as_str()[..32]));
        if !at_work && deaths == Deaths::default() {
            let _ = fs::remove_file(path);
        } else if let Ok(text) = serde_json::to_vec(&Note { key: key.clone(), at_work, deaths })
            && received::is_folder(folder)
        {
            let _ = files::replace_quickly(&path, &text);
        }
    }
}

/// A judgement that is under way.
pub(super) struct Begun<'a> {
    of: &'a UnderWay,
    key: &'a JudgementKey,
    /// The deaths that stay on record.
    left: Deaths,
}

impl Begun<'_> {
    /// Is to be told whenever it is worked on.
    pub(super) fn watch(&self) -> Arc<dyn Fn(bool) + Send + Sync> {
        let (notes, key, deaths) = (Arc::clone(&self.of.notes), self.key.clone(), self.left);
        Arc::new(move |at_work| notes.write(&key, at_work, deaths))
    }

    /// It has an outcome, and nothing is left to remember.
    pub(super) fn finish(mut self) {
        self.left = Deaths::default();
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        let before = self.of.deaths(self.key);
        // A crash that was caught is our own doing, too.
        let crashed = std::thread::panicking();
        let left = if crashed { self.left.and_one_more(End::ByItself) } else { self.left };
        if left != before {
            self.of.notes.write(self.key, false, left);
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

    /// A process begins to work on `keys`, and dies in the middle of it.
    fn dies(run: &Path, keys: &[&JudgementKey], aborts: bool) {
        let under_way = UnderWay::open(Some(run));
        for key in keys {
            under_way.begin(key).watch()(true);
        }
        let process = std::mem::take(&mut *under_way.process.lock().unwrap());
        std::mem::forget(process);
        if aborts {
            let path = run.join("under-way/process");
            let left = fs::read_to_string(&path).unwrap();
            fs::write(path, format!("{left}X")).unwrap();
        }
    }

    #[test]
    fn aborts_are_counted_and_stops_are_not() {
        let run = tempfile::tempdir().unwrap();
        let (bad, good) = (key("bad"), key("good"));
        let open = || UnderWay::open(Some(run.path()));
        for (deaths, care) in
            [Care::None, Care::Later, Care::Alone, Care::Alone, Care::Alone].into_iter().enumerate()
        {
            let under_way = open();
            assert_eq!(under_way.deaths(&bad).by_itself as usize, deaths);
            assert_eq!(under_way.care(&bad), care);
            assert_eq!(under_way.given_up(&bad), None);
            // A stop between deaths changes nothing, and neither does what has an outcome.
            under_way.begin(&bad).watch()(true);
            under_way.begin(&good).watch()(true);
            under_way.begin(&good).watch()(false);
            under_way.begin(&good).finish();
            under_way.end();
            assert_eq!(open().deaths(&bad).by_itself as usize, deaths);
            dies(run.path(), &[&bad], true);
        }
        let under_way = open();
        assert_eq!(under_way.deaths(&good), Deaths::default());
        assert!(under_way.given_up(&bad).unwrap().contains("5 processes aborted"));
        under_way.begin(&bad).finish();
        under_way.end();
        assert_eq!(open().deaths(&bad), Deaths::default());
    }

    #[test]
    fn no_number_of_kills_gives_a_judgement_up() {
        let run = tempfile::tempdir().unwrap();
        let (one, other) = (key("one"), key("other"));
        for _ in 0..200 {
            dies(run.path(), &[&one, &other], false);
        }
        let under_way = UnderWay::open(Some(run.path()));
        for key in [&one, &other] {
            assert_eq!(under_way.deaths(key), Deaths { deaths: 200, by_itself: 0 });
            assert_eq!((under_way.care(key), under_way.given_up(key)), (Care::Alone, None));
        }
    }

    #[test]
    fn who_waits_is_not_to_blame() {
        let run = tempfile::tempdir().unwrap();
        let (waits, works) = (key("waits"), key("works"));
        let under_way = UnderWay::open(Some(run.path()));
        for at_work in [true, false] {
            under_way.begin(&waits).watch()(at_work);
        }
        std::mem::forget(under_way);
        fs::write(run.path().join("under-way/process"), "0\n").unwrap();
        dies(run.path(), &[&works], true);
        let under_way = UnderWay::open(Some(run.path()));
        assert_eq!(under_way.deaths(&waits), Deaths::default());
        assert_eq!(under_way.deaths(&works), Deaths { deaths: 1, by_itself: 1 });
    }

    #[test]
    fn a_crash_is_a_death() {
        let run = tempfile::tempdir().unwrap();
        let under_way = UnderWay::open(Some(run.path()));
        let key = key("bad");
        let crash = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _begun = under_way.begin(&key);
            panic!("a defect");
        }));
        assert!(crash.is_err());
        under_way.end();
        let left = UnderWay::open(Some(run.path())).deaths(&key);
        assert_eq!(left, Deaths { deaths: 1, by_itself: 1 });
    }
}

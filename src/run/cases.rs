//! Pictures, decoded when they are needed and dropped soon after.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use deeplook_tools::picture::size_of_file;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::case::{Case, EditCase, Named};
use crate::dataset::{Entry, PictureFile};
use crate::judge::Looks;
use crate::trace::CaseRecord;

/// Edits that stay in memory for a moment after their last use: the judgements of one edit follow
/// each other.
const RECENT: usize = 4;

/// What the decoded pictures of all edits that are judged at a time may take, in KiB. One edit
/// always may.
const ROOM: u32 = 1 << 20;

/// An edit, or why its pictures cannot be had.
pub(super) type Loaded = Result<Arc<EditCase>, String>;

/// Which edit: the place of the case, and the editor.
type Place = (usize, String);

#[derive(Debug)]
pub(super) struct Cases {
    all: Arc<Vec<Entry>>,
    /// In KiB.
    most: u32,
    room: Arc<Semaphore>,
    state: Mutex<State>,
}

/// An edit in memory, for as long as somebody holds it.
#[derive(Debug, Default)]
pub(super) struct InMemory {
    loaded: OnceCell<(Loaded, Option<OwnedSemaphorePermit>)>,
}

#[derive(Debug, Default)]
struct State {
    known: Vec<(Place, Weak<InMemory>)>,
    recent: VecDeque<Arc<InMemory>>,
    /// How many wait for room: meanwhile nothing stays for longer than it is used.
    waiting: usize,
}

/// Somebody who waits for room, and takes it from what only stays for a moment.
struct Waiting<'a>(&'a Cases);

impl<'a> Waiting<'a> {
    fn of(cases: &'a Cases) -> Self {
        let mut state = cases.state();
        state.waiting += 1;
        state.recent.clear();
        Self(cases)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

impl InMemory {
    /// What was read; the pictures go when this does.
    pub(super) fn case(&self) -> Loaded {
        let never = || Err("its pictures were not read".to_owned());
        self.loaded.get().map_or_else(never, |(loaded, _)| loaded.clone())
    }
}

impl Cases {
    pub(super) fn new(all: Arc<Vec<Entry>>) -> Self {
        Self::with_room(all, ROOM)
    }

    fn with_room(all: Arc<Vec<Entry>>, most: u32) -> Self {
        let room = Arc::new(Semaphore::new(most as usize));
        Self { all, most, room, state: Mutex::default() }
    }

    /// The pictures of an edit, read once for all judgements that want them at about the same time.
    /// It waits until there is room for them.
    pub(super) async fn load(&self, place: usize, editor: &str, looks: &Looks) -> Arc<InMemory> {
        let edit = self.edit((place, editor.to_owned()));
        let read = async {
            let room = self.wait_for_room(self.weight(place, editor)).await;
            let _core = looks.core().await;
            let (all, editor) = (Arc::clone(&self.all), editor.to_owned());
            let load = move || match all.get(place).map(|case| case.load(&editor)) {
                Some(Ok(case)) => Ok(Arc::new(case)),
                Some(Err(missing)) => Err(missing.to_string()),
                None => Err("the case is not in the data set".to_owned()),
            };
            let loaded = tokio::task::spawn_blocking(load).await;
            let loaded =
                loaded.unwrap_or_else(|_| Err("its pictures crash the decoder".to_owned()));
            let room = room.filter(|_| loaded.is_ok());
            (loaded, room)
        };
        edit.loaded.get_or_init(|| read).await;
        edit
    }

    /// What an edit takes in memory, in KiB; at most all that there is.
    fn weight(&self, place: usize, editor: &str) -> u32 {
        let Some(entry) = self.all.get(place) else { return 0 };
        let files = [&entry.case.source].into_iter().chain(entry.edits().get(editor));
        let files = files.chain(entry.case.others.values());
        let bytes = files.filter_map(PictureFile::path).map(|path| {
            let pixels = size_of_file(path).map_or(0, |size| size.area());
            3 * pixels + path.metadata().map_or(0, |meta| meta.len())
        });
        u32::try_from(bytes.sum::<u64>() >> 10).unwrap_or(u32::MAX).min(self.most)
    }

    /// Whoever has room never asks for more before it is given back, so that everybody is served.
    async fn wait_for_room(&self, kib: u32) -> Option<OwnedSemaphorePermit> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(kib) {
            return Some(room);
        }
        let _waiting = Waiting::of(self);
        // Never closed, so that it is never without.
        Arc::clone(&self.room).acquire_many_owned(kib).await.ok()
    }

    fn edit(&self, place: Place) -> Arc<InMemory> {
        let mut state = self.state();
        state.known.retain(|(_, edit)| edit.strong_count() > 0);
        let known = state.known.iter().find(|(known, _)| *known == place);
        if let Some(edit) = known.and_then(|(_, edit)| edit.upgrade()) {
            return edit;
        }
        let edit = Arc::default();
        state.known.push((place, Arc::downgrade(&edit)));
        if state.waiting == 0 {
            if state.recent.len() >= RECENT {
                state.recent.pop_front();
            }
            state.recent.push_back(Arc::clone(&edit));
        }
        edit
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of an edit without its pictures.
    pub(super) fn record(&self, place: usize, editor: &str) -> Option<CaseRecord> {
        Some(record(self.all.get(place)?, editor))
    }
}

/// What is known of an edit without its pictures.
pub(super) fn record(entry: &Entry, editor: &str) -> CaseRecord {
    let case = entry.case.with_pictures(None, None, Named::new());
    Case { editor: Some(editor.to_owned()), ..case }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::dataset::{DataSet, LoadOptions};

    #[tokio::test]
    async fn no_more_is_in_memory_than_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: u8| {
            // 24 KiB for the two pictures, and their files.
            let name = format!("{id}.png");
            let pixels = image::RgbImage::from_pixel(64, 64, image::Rgb([id; 3]));
            pixels.save(folder.path().join(&name)).unwrap();
            let edits = serde_json::json!({ "e": name });
            let line = serde_json::json!({ "source": name, "instruction": "edit", "edits": edits });
            format!("{line}\n")
        };
        let path = folder.path().join("cases.jsonl");
        std::fs::write(&path, (0..4).map(line).collect::<String>()).unwrap();
        let all = Arc::new(DataSet::open(&path, &LoadOptions::default()).unwrap().cases);
        let (cases, looks) = (Cases::with_room(Arc::clone(&all), 60), Looks::default());
        let (short, long) = (Duration::from_millis(100), Duration::from_secs(60));
        let first = cases.load(0, "e", &looks).await;
        let second = cases.load(1, "e", &looks).await;
        let shared = cases.load(0, "e", &looks).await;
        assert!(Arc::ptr_eq(&first, &shared), "once for all that want it");
        assert!(timeout(short, cases.load(2, "e", &looks)).await.is_err());
        drop(second);
        let third = timeout(long, cases.load(2, "e", &looks)).await.unwrap();
        assert!(third.case().is_ok());
        assert!(timeout(short, cases.load(3, "e", &looks)).await.is_err());
        drop((first, shared, third));
        // What is used no more makes room, and one that is larger than all is alone.
        assert!(timeout(long, cases.load(3, "e", &looks)).await.unwrap().case().is_ok());
        let small = Cases::with_room(all, 1);
        let only = small.load(0, "e", &looks).await;
        assert!(only.case().is_ok());
        assert!(timeout(short, small.load(1, "e", &looks)).await.is_err());
    }
}

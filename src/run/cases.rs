//! Pictures, decoded when they are needed and dropped soon after.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::case::EditCase;
use crate::dataset::Case;
use crate::judge::Looks;
use crate::trace::CaseRecord;

/// Edits that stay in memory for a moment after their last use: the judgements of one edit follow
/// each other.
const RECENT: usize = 4;

/// An edit, or why its pictures cannot be had.
pub(super) type Loaded = Result<Arc<EditCase>, String>;

/// Which edit: the place of the case, and the editor.
type Place = (usize, String);

#[derive(Debug)]
pub(super) struct Cases {
    all: Arc<Vec<Case>>,
    recent: Mutex<VecDeque<(Place, Arc<OnceCell<Loaded>>)>>,
}

impl Cases {
    pub(super) fn new(all: Arc<Vec<Case>>) -> Self {
        Self { all, recent: Mutex::default() }
    }

    /// The pictures of an edit, read once for all judgements that want them at about the same time.
    pub(super) async fn load(&self, place: usize, editor: &str, looks: &Looks) -> Loaded {
        let cell = self.cell((place, editor.to_owned()));
        let read = async {
            let _core = looks.core().await;
            let (all, editor) = (Arc::clone(&self.all), editor.to_owned());
            let load = move || match all.get(place).map(|case| case.load(&editor)) {
                Some(Ok(case)) => Ok(Arc::new(case)),
                Some(Err(missing)) => Err(missing.to_string()),
                None => Err("the case is not in the data set".to_owned()),
            };
            let loaded = tokio::task::spawn_blocking(load).await;
            loaded.unwrap_or_else(|_| Err("its pictures crash the decoder".to_owned()))
        };
        cell.get_or_init(|| read).await.clone()
    }

    fn cell(&self, place: Place) -> Arc<OnceCell<Loaded>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cell)) = recent.iter().find(|(known, _)| *known == place) {
            return Arc::clone(cell);
        }
        if recent.len() >= RECENT {
            recent.pop_front();
        }
        let cell = Arc::default();
        recent.push_back((place, Arc::clone(&cell)));
        cell
    }

    /// What is known of an edit without its pictures.
    pub(super) fn record(&self, place: usize, editor: &str) -> Option<CaseRecord> {
        Some(record(self.all.get(place)?, editor))
    }
}

/// What is known of an edit without its pictures.
pub(super) fn record(case: &Case, editor: &str) -> CaseRecord {
    CaseRecord {
        id: case.id.clone(),
        editor: Some(editor.to_owned()),
        instruction: case.instruction.clone(),
        kind: case.kind.clone(),
        target: case.target.clone(),
        boxes: case.boxes.clone(),
        source: None,
        edited: None,
        reference: None,
    }
}

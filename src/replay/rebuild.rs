//! A judge and its case, made again from a trace.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use deeplook_tools::Toolbox;

use super::evidence::Store;
use crate::case::{EditCase, InputPicture};
use crate::hash::Hash;
use crate::judge::{Judge, JudgeSettings};
use crate::message::SentPicture;
use crate::prompt::{Files, Pack};
use crate::trace::{
    Bundle, FileRecord, Manifest, StoredMessage, StoredPart, StoredPicture, TraceError, What,
};

/// More turns or files than any judgement has: what would be made of them is refused beforehand.
const MOST_TURNS: u32 = 1000;
const MOST_FILES: usize = 100;
const LARGEST_FILE: usize = 1 << 20;

/// Refuses what would take all memory.
pub(super) fn check_limits(bundle: &Bundle) -> Result<(), TraceError> {
    let manifest = &bundle.manifest;
    let problem = if manifest.limits.turns > MOST_TURNS {
        format!("limits.turns is {}, more than {MOST_TURNS}", manifest.limits.turns)
    } else if manifest.pack.files.len() > MOST_FILES {
        format!("pack.files are {}, more than {MOST_FILES}", manifest.pack.files.len())
    } else {
        return Ok(());
    };
    Err(TraceError::Malformed { path: bundle.folder.join("manifest.json"), problem })
}

/// Prompt packs by the hashes of their files.
#[derive(Debug, Default)]
pub(super) struct Packs(Mutex<HashMap<BTreeMap<String, Hash>, Arc<Pack>>>);

impl Packs {
    /// The pack of a trace, from its blobs.
    pub(super) fn of(&self, manifest: &Manifest, store: &Store) -> Result<Arc<Pack>, String> {
        let hashes = &manifest.pack.files;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pack) = known.get(hashes) {
            return Ok(Arc::clone(pack));
        }
        let mut files = Files::new();
        for (name, hash) in hashes {
            let bytes = store.get(hash).map_err(|problem| format!("{name}: {problem}"))?;
            if bytes.len() > LARGEST_FILE {
                return Err(format!("{name} is larger than 1 MB"));
            }
            files.insert(name.clone(), bytes);
        }
        let pack = Arc::new(Pack::from_files(files).map_err(|error| error.to_string())?);
        known.insert(hashes.clone(), Arc::clone(&pack));
        Ok(pack)
    }
}

/// A judge with the settings of a trace.
pub(super) fn judge(manifest: &Manifest, pack: Arc<Pack>, toolbox: Toolbox) -> Judge<()> {
    let settings = settings(manifest);
    let tools = &manifest.tools;
    let toolbox = toolbox.as_recorded(&tools.specs, &tools.settings);
    Judge::new((), manifest.model.clone(), pack, toolbox, settings)
}

/// The settings of a trace.
pub(super) fn settings(manifest: &Manifest) -> JudgeSettings {
    JudgeSettings {
        mode: manifest.mode,
        targets: manifest.preprocessing.targets,
        limits: manifest.limits,
        preparation: manifest.preprocessing.sending,
        max_images: manifest.preprocessing.max_images,
    }
}

/// The case of a trace, its pictures decoded; `None` where there were none to judge.
pub(super) fn case(manifest: &Manifest, store: &Store) -> Result<Option<EditCase>, String> {
    let record = &manifest.case;
    let picture = |role: &str, file: &FileRecord| {
        let bytes = store.get(&file.blob).map_err(|problem| format!("{role}: {problem}"))?;
        InputPicture::decode(role, bytes).map_err(|error| error.to_string())
    };
    let (Some(source), Some(edited)) = (&record.source, &record.edited) else { return Ok(None) };
    let (source, edited) = (picture("source", source)?, picture("edited", edited)?);
    let reference = record.reference.as_ref().map(|file| picture("reference", file)).transpose()?;
    Ok(Some(EditCase {
        id: record.id.clone(),
        editor: record.editor.clone(),
        source,
        edited,
        reference,
        instruction: record.instruction.clone(),
        kind: record.kind.clone(),
        target: record.target.clone(),
        boxes: record.boxes.clone(),
    }))
}

/// The pictures that the task of a part shows, as the record has them.
pub(super) fn task_pictures(bundle: &Bundle, part: usize) -> Vec<Arc<SentPicture>> {
    let asked = bundle.events.iter().find_map(|event| match &event.event {
        What::Asked(asked) if asked.part == part => Some(asked),
        _ => None,
    });
    let messages = asked.map_or(&[][..], |asked| &asked.messages);
    let parts = messages.iter().filter_map(|message| match message {
        StoredMessage::User { parts, .. } => Some(parts),
        _ => None,
    });
    let pictures = parts.flatten().filter_map(|part| match part {
        StoredPart::Picture(picture) => Some(Arc::new(sent(picture))),
        StoredPart::Text(_) => None,
    });
    pictures.collect()
}

/// A recorded picture as it was sent, without its bytes: the hash stands for them.
pub(super) fn sent(picture: &StoredPicture) -> SentPicture {
    let StoredPicture { name, caption, blob, media, size } = picture.clone();
    SentPicture { name, caption, size, media, bytes: Arc::default(), hash: blob }
}

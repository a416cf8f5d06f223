//! A judge and its case, made again from a trace.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use deeplook_tools::scene::{Panel, View};
use deeplook_tools::{Picture, Toolbox};

use super::evidence::Store;
use crate::case::{EditCase, InputPicture};
use crate::hash::Hash;
use crate::judge::{Judge, JudgeSettings};
use crate::message::SentPicture;
use crate::prompt::Pack;
use crate::trace::{
    Bundle, FileRecord, Manifest, Seen, StoredMessage, StoredPart, StoredPicture, TraceError,
    TurnAccount, pack_of,
};

/// More turns than any judgement has: what would be made of them is refused beforehand.
const MOST_TURNS: u32 = 1000;
/// More targets, parts or pictures than any case has: each is decoded or cut.
const MOST_TARGETS: usize = 200;
/// More than any server takes.
const MOST_SIDE: u32 = 1 << 16;

/// What in the settings of a trace no judgement can have had: it would take all memory, or lead
/// arithmetic astray. Nobody vouches for a trace, so this comes before anything is made of it.
pub(crate) fn impossible_setting(manifest: &Manifest) -> Option<String> {
    let (limits, sending) = (&manifest.limits, &manifest.preprocessing.sending);
    let case = &manifest.case;
    let counted = [
        ("case.regions", case.regions.values().map(Vec::len).sum()),
        ("case.pictures", case.others.len()),
        ("parts", manifest.parts.len()),
    ];
    if let Some((name, count)) = counted.into_iter().find(|(_, count)| *count > MOST_TARGETS) {
        Some(format!("{name} are {count}, more than {MOST_TARGETS}"))
    } else if limits.turns > MOST_TURNS {
        Some(format!("limits.turns is {}, more than {MOST_TURNS}", limits.turns))
    } else if !(1..=MOST_SIDE).contains(&sending.max_side) {
        let side = sending.max_side;
        Some(format!("preprocessing.sending.max_side is {side}, not from 1 to {MOST_SIDE}"))
    } else if !(1..=100).contains(&sending.jpeg_quality) {
        let quality = sending.jpeg_quality;
        Some(format!("preprocessing.sending.jpeg_quality is {quality}, not from 1 to 100"))
    } else {
        None
    }
}

/// The same as an error of its manifest.
pub(super) fn check_settings(bundle: &Bundle) -> Result<(), TraceError> {
    impossible_setting(&bundle.manifest).map_or(Ok(()), |problem| {
        Err(TraceError::Malformed { path: bundle.folder.join("manifest.json"), problem })
    })
}

/// A recorded picture as tools look at it; `None` where it says of itself what cannot be: nobody
/// vouches for a record, and a tool must not be led outside of a picture.
pub(super) fn view(seen: &Seen, picture: Picture) -> Option<View> {
    let inside = |panel: &Panel| {
        !panel.area.is_empty()
            && !panel.region.is_empty()
            && panel.area.clipped(picture.size()) == panel.area
    };
    let fits = seen.panels.iter().all(inside)
        && seen.sent.as_ref().is_none_or(|sent| sent.size.area() > 0);
    let (name, panels) = (seen.name.clone(), seen.panels.clone());
    fits.then(|| View { name, picture: Arc::new(picture), panels })
}

/// Prompt packs by what they are.
#[derive(Debug, Default)]
pub(super) struct Packs(Mutex<HashMap<PackKey, Arc<Pack>>>);

/// The hashes of a pack's files, and its variant.
type PackKey = (BTreeMap<String, Hash>, Option<String>);

impl Packs {
    /// The pack of a trace, from its blobs.
    pub(super) fn of(&self, manifest: &Manifest, store: &Store) -> Result<Arc<Pack>, String> {
        let (hashes, variant) = (&manifest.pack.files, &manifest.pack.variant);
        let key = (hashes.clone(), variant.clone());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pack) = known.get(&key) {
            return Ok(Arc::clone(pack));
        }
        let pack = pack_of(&manifest.pack, |hash, largest| match store.get(hash)? {
            bytes if bytes.len() as u64 > largest => {
                Err(format!("it is larger than {} MiB", largest >> 20))
            }
            bytes => Ok(bytes),
        });
        let pack = Arc::new(pack?);
        known.insert(key, Arc::clone(&pack));
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
    let others = record.others.iter().filter_map(|(name, file)| Some((name, file.as_ref()?)));
    let others = others.map(|(name, file)| Ok((name, picture(name, file)?)));
    Ok(Some(record.with_pictures(source, edited, others.collect::<Result<_, String>>()?)))
}

/// The pictures that the task of a part shows, as the record has them.
pub(super) fn task_pictures(turns: &BTreeMap<u32, TurnAccount<'_>>) -> Vec<Arc<SentPicture>> {
    let asked = turns.values().find_map(|turn| turn.asked);
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

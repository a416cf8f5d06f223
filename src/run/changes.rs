//! Whether what was judged is still what the data set holds.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;

use super::cases;
use super::ledger::Ledger;
use super::select::Job;
use crate::dataset::{Entry, PictureFile};
use crate::hash::Hash;
use crate::trace::{Inputs, ResultLine};

/// File systems round their times.
const ROUNDING: Duration = Duration::from_secs(2);

/// The judgements whose case or pictures are others now: their places in `jobs`, and what changed.
///
/// Pictures are read only where their file is younger than the judgement.
pub(crate) fn changed(jobs: &[Job], cases: &[Entry], ledger: &Ledger) -> Vec<(usize, String)> {
    let check = |(place, job): (usize, &Job)| {
        let line = ledger.lines().get(&job.key)?;
        let what = change(line, cases.get(job.case)?, &job.key.editor)?;
        Some((place, what))
    };
    jobs.par_iter().enumerate().filter_map(check).collect()
}

fn change(line: &ResultLine, entry: &Entry, editor: &str) -> Option<String> {
    let judged = line.inputs.as_ref()?;
    if judged.facts != Inputs::of(&cases::record(entry, editor)).facts {
        return Some("the instruction, its facts, boxes or questions".to_owned());
    }
    // A judgement without pictures had none to compare.
    if judged.source.is_some() && judged.reference.is_some() != entry.case.reference().is_some() {
        return Some("the reference".to_owned());
    }
    let since = judged_since(line)?;
    let pictures = [
        ("the source", Some(&entry.case.source), judged.source.as_ref()),
        ("the edited picture", entry.edits().get(editor), judged.edited.as_ref()),
        ("the reference", entry.case.reference(), judged.reference.as_ref()),
    ];
    let others = judged.pictures.iter();
    let others =
        others.map(|(name, hash)| (name.as_str(), entry.case.others.get(name), Some(hash)));
    pictures.into_iter().chain(others).find_map(|(name, file, judged)| {
        let (path, judged) = (file.and_then(PictureFile::path)?, judged?);
        let other = is_younger(path, since) && hash_of(path).is_some_and(|hash| hash != *judged);
        other.then(|| name.to_owned())
    })
}

/// When the pictures of a judgement were certainly not read yet.
fn judged_since(line: &ResultLine) -> Option<SystemTime> {
    let took = Duration::from_secs_f64(line.seconds.unwrap_or(0.0).clamp(0.0, 1e9));
    // They are read before the first event; a busy machine may take a while in between.
    let before = took + ROUNDING + Duration::from_secs(60);
    let at = UNIX_EPOCH + Duration::from_millis(line.at?);
    // A clock that ran ahead tells nothing.
    if at > SystemTime::now() { Some(UNIX_EPOCH) } else { at.checked_sub(before) }
}

fn is_younger(path: &Path, since: SystemTime) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        // A file that was moved here keeps its old time of writing, but not this one.
        let changed = u64::try_from(meta.ctime()).unwrap_or(0);
        if UNIX_EPOCH + Duration::from_secs(changed) >= since {
            return true;
        }
    }
    meta.modified().is_ok_and(|written| written >= since)
}

fn hash_of(path: &Path) -> Option<Hash> {
    // The data set's own file: one that is a link is checked where it is found.
    let file = fs::File::open(path).ok()?;
    let length = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
    Hash::of_reader(&mut file.take(length)).ok()
}

//! Writing a drawn benchmark to disk.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use deeplook_tools::Picture;
use rayon::prelude::*;
use serde::Serialize;

use super::DrawnCase;
use crate::dataset::case_file::{CaseRecord, LabelRecord};

/// The most cases that are drawn at once.
pub const MOST_CASES: usize = 5_000;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The file of [`CaseRecord`]s.
    pub cases_file: PathBuf,
    /// The file of [`LabelRecord`]s.
    pub labels_file: PathBuf,
    /// How many cases there are.
    pub cases: usize,
    /// How many edits they have in all.
    pub edits: usize,
    /// How many labels these have.
    pub labels: usize,
}

/// Draws a benchmark into the folder `out`, which must be new or empty.
///
/// Everything is written beside it first and renamed at the end: the folder is complete or not
/// there. What a run that was killed has left there is taken away. `drawn` is called after each
/// case.
pub fn make(
    out: &Path,
    cases: usize,
    seed: u64,
    drawn: &(dyn Fn() + Sync),
) -> Result<Made, DrawError> {
    if cases == 0 {
        return Err(DrawError::NoCases);
    }
    if cases > MOST_CASES {
        return Err(DrawError::TooManyCases { cases });
    }
    let out = std::path::absolute(out).map_err(|source| DrawError::io(out, source))?;
    let (Some(parent), Some(name)) = (out.parent(), out.file_name()) else {
        return Err(DrawError::NotEmpty { out });
    };
    refuse_what_is_there(&out)?;
    fs::create_dir_all(parent).map_err(|source| DrawError::io(parent, source))?;
    let unfinished = parent.join(format!(".{}.unfinished", name.to_string_lossy()));
    let lock = take_over(&unfinished)?;
    let made = write_all(&unfinished, cases, seed, drawn).and_then(|made| {
        drop(lock);
        let lock = unfinished.join(LOCK);
        fs::remove_file(&lock).map_err(|source| DrawError::io(&lock, source))?;
        // An empty folder may be in the way.
        match fs::remove_dir(&out) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(DrawError::io(&out, source));
            }
            _ => {}
        }
        fs::rename(&unfinished, &out).map_err(|source| DrawError::io(&out, source))?;
        Ok(Made { cases_file: out.join(CASES), labels_file: out.join(LABELS), ..made })
    });
    if made.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
}

const CASES: &str = "cases.jsonl";
const LABELS: &str = "labels.jsonl";
const LOCK: &str = ".lock";

/// Makes the folder ours alone, and empty. The lock goes with the process that holds it.
fn take_over(unfinished: &Path) -> Result<File, DrawError> {
    let path = unfinished.join(LOCK);
    let fail = |source| DrawError::io(unfinished, source);
    fs::create_dir_all(unfinished).map_err(fail)?;
    let lock = File::create(&path).map_err(fail)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(DrawError::Busy { unfinished: unfinished.to_owned() });
        }
        Err(TryLockError::Error(source)) => return Err(fail(source)),
    }
    for entry in fs::read_dir(unfinished).map_err(fail)? {
        let left = entry.map_err(fail)?.path();
        if left.is_dir() {
            fs::remove_dir_all(&left).map_err(fail)?;
        } else if left != path {
            fs::remove_file(&left).map_err(fail)?;
        }
    }
    Ok(lock)
}

fn refuse_what_is_there(out: &Path) -> Result<(), DrawError> {
    match fs::read_dir(out) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(DrawError::NotEmpty { out: out.to_owned() }),
        },
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(DrawError::io(out, source)),
    }
}

fn write_all(
    folder: &Path,
    cases: usize,
    seed: u64,
    drawn: &(dyn Fn() + Sync),
) -> Result<Made, DrawError> {
    let written: Vec<(CaseRecord, Vec<LabelRecord>)> = (0..cases)
        .into_par_iter()
        .map(|index| write_case(folder, super::case(seed, index)?).inspect(|_| drawn()))
        .collect::<Result<_, _>>()?;
    let (records, labels): (Vec<_>, Vec<_>) = written.into_iter().unzip();
    let labels = labels.concat();
    let made = Made {
        cases_file: folder.join(CASES),
        labels_file: folder.join(LABELS),
        cases,
        edits: records.iter().map(|record| record.edits.len()).sum(),
        labels: labels.len(),
    };
    write_lines(&made.cases_file, &records)?;
    write_lines(&made.labels_file, &labels)?;
    Ok(made)
}

fn write_case(folder: &Path, case: DrawnCase) -> Result<(CaseRecord, Vec<LabelRecord>), DrawError> {
    let file = format!("{}.png", case.id);
    let save = |part: &str, picture: &Picture| {
        let path = folder.join(part).join(&file);
        write_file(&path, &picture.to_png())?;
        Ok::<_, DrawError>(format!("{part}/{file}"))
    };
    let mut edits = BTreeMap::new();
    let mut labels = Vec::new();
    for edit in &case.edits {
        let editor = edit.editor.name();
        edits.insert(editor.to_owned(), save(&format!("edits/{editor}"), &edit.picture)?);
        for (criterion, label) in [("if", edit.if_label), ("vc", edit.vc_label)] {
            labels.push(LabelRecord {
                case: case.id.clone(),
                editor: editor.to_owned(),
                criterion: criterion.to_owned(),
                annotator: "truth".to_owned(),
                label: label.to_owned(),
                scale: None,
            });
        }
    }
    let record = CaseRecord {
        source: save("sources", &case.source)?,
        reference: Some(save("references", &case.reference)?),
        id: case.id,
        instruction: case.instruction,
        kind: Some(case.kind.name().to_owned()),
        target: Some(case.target),
        boxes: case.boxes,
        edits,
    };
    Ok((record, labels))
}

fn write_lines<T: Serialize>(path: &Path, records: &[T]) -> Result<(), DrawError> {
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(record)
            .map_err(|source| DrawError::io(path, std::io::Error::from(source)))?;
        text.push_str(&line);
        text.push('\n');
    }
    write_file(path, text.as_bytes())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), DrawError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| DrawError::io(folder, source))?;
    }
    fs::write(path, bytes).map_err(|source| DrawError::io(path, source))
}

/// Why nothing was drawn.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// None asked for.
    #[error("a benchmark of no cases is of no use; ask for at least one (seven cover every type)")]
    NoCases,
    /// More than a disk wants to hold.
    #[error(
        "{cases} cases are more than the {MOST_CASES} that are drawn at once; ask for fewer, or draw several seeds into several folders"
    )]
    TooManyCases {
        /// How many were asked for.
        cases: usize,
    },
    /// Nothing is ever overwritten.
    #[error("{} is not empty, and nothing is overwritten; name a new folder or remove it first", out.display())]
    NotEmpty {
        /// The folder.
        out: PathBuf,
    },
    /// Somebody else is at it.
    #[error("another run is drawing the same data set, in {}; wait for it, or name another folder", unfinished.display())]
    Busy {
        /// Where it does.
        unfinished: PathBuf,
    },
    /// No layout was found.
    #[error("found no room for the objects of case {index} of seed {seed}; take another seed")]
    NoRoom {
        /// The benchmark's seed.
        seed: u64,
        /// The case's number from 0.
        index: usize,
    },
    /// The file system said no.
    #[error("cannot write {}: {source}; check the path, the rights and the space", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
}

impl DrawError {
    fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

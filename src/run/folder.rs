//! The folder of a run: which one it is, whether it may be gone on with, and making it ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;

use super::error::RunError;
use super::ledger::Ledger;
use super::lock::RunLock;
use super::record::{RunRecord, differences, is_vacant};
use super::spec::{IfOtherSettings, RunSpec};
use crate::files;
use crate::received;
use crate::trace::{RunFolder, Sink};

/// The folder for a run over the data in `root`, whose settings must be ours. Nothing is written.
pub(super) fn find(spec: &RunSpec, root: &Path, record: &RunRecord) -> Result<PathBuf, RunError> {
    let asked: PathBuf = match &spec.keep.folder {
        // Without a slash at the end, so that a number can follow.
        Some(folder) => folder.components().collect(),
        None => {
            let data = root.file_name().unwrap_or_default().to_string_lossy();
            let mut name = files::slug(&format!("{data} {}", spec.judge.model));
            if let Some(shard) = spec.select.shard {
                name.push_str(&format!("-part-{}", files::slug(&shard.to_string())));
            }
            Path::new("traces/runs").join(name)
        }
    };
    let whole = |folder: &Path| fs::canonicalize(folder).ok();
    if let Some(from) = spec.data.from_traces.as_deref().and_then(whole)
        && whole(&asked) == Some(from)
    {
        return Err(RunError::IntoItself { folder: asked });
    }
    for number in 1u32.. {
        let mut folder = asked.clone().into_os_string();
        if number > 1 {
            folder.push(format!("-{number}"));
        }
        let folder = PathBuf::from(folder);
        let mix = spec.keep.if_other_settings == IfOtherSettings::Mix;
        let Some(known) = RunRecord::read(&folder)? else {
            refuse_foreign(&folder, mix)?;
            return Ok(folder);
        };
        match may_go_on(&folder, &known, record, mix) {
            Ok(()) => return Ok(folder),
            Err(RunError::OtherSettings { .. } | RunError::OldRun { .. })
                if spec.keep.if_other_settings == IfOtherSettings::NewRun => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Err(anyhow!("there is no free name beside {}", asked.display()).into())
}

/// Whether the run that `known` tells of can be gone on with as `ours`.
fn may_go_on(
    folder: &Path,
    known: &RunRecord,
    ours: &RunRecord,
    mix: bool,
) -> Result<(), RunError> {
    let folder = || folder.to_owned();
    if known.is_old() {
        return Err(RunError::OldRun { folder: folder(), format: known.format });
    }
    if let (Some(theirs), Some(ours), false) = (known.planned.shard, ours.planned.shard, mix)
        && theirs != ours
    {
        let (theirs, ours) = (theirs.to_string(), ours.to_string());
        return Err(RunError::OtherPart { folder: folder(), theirs, ours });
    }
    let differences = differences(&known.settings, &ours.settings);
    if differences.is_empty() || mix {
        return Ok(());
    }
    Err(RunError::OtherSettings { folder: folder(), differences })
}

/// What is in the folder must be a run, or nothing.
fn refuse_foreign(folder: &Path, mix: bool) -> Result<(), RunError> {
    if let Some(holder) = RunLock::holder(folder) {
        let folder = folder.display();
        return Err(
            anyhow!("another deeplook is at work in {folder} ({holder}); wait for it").into()
        );
    }
    if is_vacant(folder) {
        return Ok(());
    }
    let folder = folder.to_owned();
    match received::is_folder(&folder.join("judgements")) {
        false => Err(RunError::NotARun { folder }),
        true if !mix => Err(RunError::NoRecord { folder }),
        true => Ok(()),
    }
}

/// A run that is ours alone.
pub(super) struct OpenRun {
    pub sink: Arc<dyn Sink>,
    pub ledger: Ledger,
    pub _lock: Option<RunLock>,
}

impl OpenRun {
    /// One whose traces go to a sink of somebody's own, and that is nowhere else.
    pub(super) fn elsewhere(sink: Arc<dyn Sink>) -> Self {
        Self { sink, ledger: Ledger::default(), _lock: None }
    }
}

/// Makes the run ours and reads what is there.
pub(super) fn open(folder: &Path, record: &RunRecord, mix: bool) -> Result<OpenRun, RunError> {
    files::create_folder(folder)?;
    let lock = RunLock::take(folder)?;
    let run = RunFolder::new(folder);
    let ledger = Ledger::open(&run)?;
    let mut record = record.clone();
    if let Some(known) = RunRecord::read(folder)? {
        // Once more under the lock: somebody may have been quicker.
        may_go_on(folder, &known, &record, mix)?;
        record.started = known.started;
        let ours = record.settings;
        record.settings = known.settings;
        record.settings.extend(ours);
    }
    record.write(folder)?;
    Ok(OpenRun { sink: Arc::new(run), ledger, _lock: Some(lock) })
}

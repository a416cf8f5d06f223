//! One process at a time in the folder of a run.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::received;

/// Held as long as it lives; it goes with the process, however that ends.
#[derive(Debug)]
pub(crate) struct RunLock(#[expect(dead_code, reason = "open, it holds the lock")] File);

impl RunLock {
    /// Makes the run ours alone; the error says whose it is.
    pub(crate) fn take(run: &Path) -> anyhow::Result<Self> {
        let path = path(run);
        let cannot = || format!("cannot lock {}", path.display());
        // What somebody sent us may hold a link, and whose the lock is will be written into it.
        drop(received::append(&path).with_context(cannot)?);
        let mut options = File::options();
        let mut file =
            received::open_with(&path, options.read(true).write(true)).with_context(cannot)?;
        // Somebody who only asks for the status may hold it for a moment.
        for patience in (0..5).rev() {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if patience == 0 => bail!(
                    "another deeplook is at work in {} ({}); wait for it, or end it and start again",
                    run.display(),
                    said(&mut file)
                ),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(40)),
                Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
            }
        }
        let mut note = || {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "process {} on {}", std::process::id(), machine())?;
            file.sync_data()
        };
        note().with_context(cannot)?;
        Ok(Self(file))
    }

    /// Who is at work in the run, if anybody is.
    pub(crate) fn holder(run: &Path) -> Option<String> {
        let path = path(run);
        let mut file = received::open(&path).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(said(&mut file)),
            _ => None,
        }
    }
}

fn path(run: &Path) -> PathBuf {
    run.join(".lock")
}

/// What the holder wrote about itself.
fn said(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(200).read_to_string(&mut text);
    match text.trim() {
        "" => "unknown process".to_owned(),
        _ if read.is_err() => "unknown process".to_owned(),
        text => text.to_owned(),
    }
}

fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or("this machine".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(RunLock::holder(run.path()), None);
        let first = RunLock::take(run.path()).unwrap();
        let id = format!("process {}", std::process::id());
        let error = RunLock::take(run.path()).unwrap_err().to_string();
        assert!(error.contains(&id), "{error}");
        assert!(RunLock::holder(run.path()).unwrap().starts_with(&id));
        drop(first);
        assert_eq!(RunLock::holder(run.path()), None);
        RunLock::take(run.path()).unwrap();
    }
}

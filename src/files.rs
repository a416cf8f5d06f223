//! Writing files so that nobody ever sees half of one.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::received;

/// Creates a folder and its parents.
pub(crate) fn create_folder(path: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot create the folder {}", path.display()))
}

/// The text of a file of settings; the error says what is wrong with it.
pub(crate) fn read_small_text(path: &Path) -> Result<String, String> {
    const LARGEST: u64 = 1 << 20;
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    // A device or a pipe may never end.
    if !meta.is_file() || meta.len() > LARGEST {
        return Err("it is not a small ordinary file".to_owned());
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// Writes a whole file beside its place and then moves it there.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The same with the plain error. The bytes are on the disk before the name is: after a power cut,
/// too, the file is whole or not there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, bytes, fs::File::sync_data)
}

/// The same, but a power cut may leave an empty file: for what can be had again, or is noted in
/// [`Unsynced`].
pub(crate) fn replace_quickly(path: &Path, bytes: &[u8]) -> io::Result<()> {
    place(path, bytes, |_| Ok(()))
}

fn place(path: &Path, bytes: &[u8], sync: fn(&fs::File) -> io::Result<()>) -> io::Result<()> {
    let (mut file, beside) = create_beside(path)?;
    let mut write = || {
        file.write_all(bytes)?;
        sync(&file)?;
        fs::rename(&beside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// A new file beside `path`: never one that is there, which may be a link.
fn create_beside(path: &Path) -> io::Result<(fs::File, PathBuf)> {
    loop {
        let beside = beside(path);
        match fs::File::options().write(true).create_new(true).open(&beside) {
            // Left by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return Ok((opened?, beside)),
        }
    }
}

/// Makes the names in a folder survive a power cut.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Only Unix can open a folder; elsewhere the system sees to it.
    if cfg!(unix) { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Files and folders that are written, but that a power cut may still take.
#[derive(Debug, Default)]
pub(crate) struct Unsynced {
    noted: Mutex<BTreeSet<PathBuf>>,
    made: Mutex<BTreeSet<PathBuf>>,
}

impl Unsynced {
    pub(crate) fn note(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
    }

    /// Makes a folder, once: where it is gone later, so is what was kept in it, and nobody must go on
    /// as if it were there.
    pub(crate) fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(folder) {
            return match received::is_folder(folder) {
                true => Ok(()),
                false => Err(removed(folder)),
            };
        }
        received::create_folder(folder)?;
        made.insert(folder.to_owned());
        Ok(())
    }

    /// Returns when all that was noted before is on the disk. A disk writes what it is asked for at
    /// the same time in one go, hence the threads: they only wait.
    pub(crate) fn sync(&self) -> io::Result<()> {
        const THREADS: usize = 32;
        let noted = std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) =
            noted.into_iter().partition(|path| path.is_dir());
        let next = AtomicUsize::new(0);
        let some = || {
            while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                fs::File::options().write(true).open(path)?.sync_all()?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            // As many as can be had; we are one of them, so that there is always one.
            let spawned = |_| thread::Builder::new().spawn_scoped(scope, some).ok();
            let threads: Vec<_> = (1..files.len().min(THREADS)).map_while(spawned).collect();
            let crashed = |_| Err(io::Error::other("a sync crashed"));
            let ours = some();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(crashed))?;
            ours
        })?;
        // Names after what they name.
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }
}

/// What we had written is no longer there.
pub(crate) fn removed(path: &Path) -> io::Error {
    let text = format!("{} was removed while deeplook was at work in it", path.display());
    io::Error::new(io::ErrorKind::NotFound, text)
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Two threads may write the same blob at the same time.
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()))
}

/// A name for a file: lower-case letters, digits and dashes only, whatever was in `text`.
pub(crate) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "picture".to_owned() } else { slug.to_owned() }
}

/// A slug for each name; those of names that are alike but for signs and case are numbered.
pub(crate) fn slugs(names: &[&str]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |name: &&str| {
        let slug = slug(name);
        let numbered = (2u32..).map(|number| format!("{slug}-{number}"));
        let mut tries = std::iter::once(slug.clone()).chain(numbered);
        tries.find(|one| taken.insert(one.clone())).unwrap_or_default()
    };
    names.iter().map(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_harmless() {
        assert_eq!(slug("Crop 3"), "crop-3");
        assert_eq!(slug("../../etc/passwd"), "etc-passwd");
        assert_eq!(slug("\u{0}"), "picture");
        assert_eq!(slugs(&["A b", "a-b", "a-b-2", "c"]), ["a-b", "a-b-2", "a-b-2-2", "c"]);
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_atomically(&folder.path().join("no/such/folder.txt"), b"x").is_err());
    }
}

//! The folder that a data set may read from, and nothing outside it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A folder out of which no path leads.
#[derive(Debug)]
pub(super) struct Root {
    folder: PathBuf,
    real: PathBuf,
    /// Whether the folders of files lie inside: asked once for each, not once for each file.
    inside: Mutex<HashMap<PathBuf, bool>>,
}

/// Why a path is not a file of the data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathProblem {
    /// It leads, or could lead, out of the root.
    Refused(String),
    /// Nothing is there.
    Missing,
    /// It is there, but cannot be read.
    Unreadable(String),
}

impl Root {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        Ok(Self {
            folder: folder.to_owned(),
            real: folder.canonicalize()?,
            inside: Mutex::default(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of this name, if it is an ordinary file inside the root.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, PathProblem> {
        let path = self.folder.join(relative(name).map_err(PathProblem::Refused)?);
        self.check(&path)?;
        Ok(path)
    }

    /// Refuses what is not an ordinary file inside the root.
    pub(super) fn check(&self, path: &Path) -> Result<(), PathProblem> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if is_absence(&error) => return Err(PathProblem::Missing),
            Err(error) => return Err(PathProblem::Unreadable(error.to_string())),
        };
        let link = meta.is_symlink();
        let meta = if link {
            match fs::metadata(path) {
                Ok(meta) => meta,
                Err(error) => {
                    return Err(PathProblem::Unreadable(format!("a link to nowhere: {error}")));
                }
            }
        } else {
            meta
        };
        if !self.holds(path, link) {
            return Err(PathProblem::Refused(
                "a link leads out of the data set's folder; copy the files into it, e.g. with `cp -rL`".into(),
            ));
        }
        if meta.is_dir() {
            return Err(PathProblem::Unreadable("it is a folder; name a file in it".to_owned()));
        }
        if !meta.is_file() {
            return Err(PathProblem::Unreadable("it is not an ordinary file".to_owned()));
        }
        if meta.len() == 0 {
            return Err(PathProblem::Unreadable("the file is empty".to_owned()));
        }
        Ok(())
    }

    fn holds(&self, path: &Path, link: bool) -> bool {
        let real_inside =
            |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(&self.real));
        if link {
            return real_inside(path);
        }
        let Some(folder) = path.parent() else { return false };
        let mut known = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inside) = known.get(folder) {
            return *inside;
        }
        let inside = real_inside(folder);
        known.insert(folder.to_owned(), inside);
        inside
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A path that stays below where it starts; a backslash separates folders, too.
fn relative(name: &str) -> Result<PathBuf, String> {
    let rule = "paths are relative to the data set's folder and stay in it";
    let name = name.trim().replace('\\', "/");
    let drive = name.as_bytes().get(1) == Some(&b':')
        && name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if name.is_empty() {
        Err("the path is empty".to_owned())
    } else if name.contains('\0') {
        Err(format!("the path has a NUL byte; {rule}"))
    } else if name.starts_with('/') || drive {
        Err(format!("the path is absolute; {rule}"))
    } else if name.contains("://") {
        Err(format!("this is an address, not a path; fetch the file first: {rule}"))
    } else if name.split('/').any(|part| part == "..") {
        Err(format!("the path goes up with \"..\"; {rule}"))
    } else {
        Ok(name.split('/').filter(|part| !part.is_empty() && *part != ".").collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_leave() {
        for name in [
            "/etc/passwd",
            "../a.png",
            "a/../../b.png",
            "a\\..\\..\\b.png",
            "C:\\a.png",
            "c:a.png",
            "\\\\server\\share\\a.png",
            "a\0.png",
            "",
            "  ",
            "https://example.org/a.png",
        ] {
            assert!(relative(name).is_err(), "{name:?}");
        }
        for (name, path) in [
            ("a.png", "a.png"),
            ("./b/a.png", "b/a.png"),
            ("b\\a.png", "b/a.png"),
            ("..a/..b", "..a/..b"),
        ] {
            assert_eq!(relative(name).unwrap(), Path::new(path), "{name:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_cannot_leave_either() {
        use std::os::unix::fs::symlink;

        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("a.png"), "x").unwrap();
        let inside = tempfile::tempdir().unwrap();
        fs::write(inside.path().join("a.png"), "x").unwrap();
        fs::write(inside.path().join("empty.png"), "").unwrap();
        let link = |target: &Path, name: &str| symlink(target, inside.path().join(name)).unwrap();
        link(&outside.path().join("a.png"), "file.png");
        link(outside.path(), "folder");
        link(Path::new("a.png"), "good.png");
        link(Path::new("nowhere.png"), "dead.png");
        let root = Root::new(inside.path()).unwrap();
        for (name, expected) in [
            ("a.png", "ok"),
            ("good.png", "ok"),
            ("file.png", "Refused"),
            ("folder/a.png", "Refused"),
            ("dead.png", "Unreadable"),
            ("empty.png", "Unreadable"),
            ("folder", "Refused"),
            ("none.png", "Missing"),
            ("a.png/b.png", "Missing"),
        ] {
            // Twice: the second answer is remembered.
            for _ in 0..2 {
                let found =
                    root.file(name).map_or_else(|error| format!("{error:?}"), |_| "ok".into());
                assert!(found.starts_with(expected), "{name}: {found}");
            }
        }
    }
}

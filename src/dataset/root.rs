//! The folders that a data set may read from, and nothing outside them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::problem::shown;

/// Folders out of which no path leads: the data set's own, and those that the user named.
#[derive(Debug)]
pub(super) struct Root {
    /// Its own folder first.
    folders: Vec<Folder>,
    /// Whether the folders of files lie inside: asked once for each, not once for each file.
    inside: Mutex<HashMap<PathBuf, bool>>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    real: PathBuf,
    /// The user said that files may be there: absolute paths below it are meant.
    named: bool,
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
        let real = folder.canonicalize()?;
        let own = Folder { path: folder.to_owned(), real, named: false };
        Ok(Self { folders: vec![own], inside: Mutex::default() })
    }

    /// The same, and a folder that the user named.
    pub(super) fn with(mut self, folder: &Path) -> io::Result<Self> {
        let real = folder.canonicalize()?;
        match self.folders.iter_mut().find(|known| known.real == real) {
            Some(known) => known.named = true,
            None => self.folders.push(Folder { path: folder.to_owned(), real, named: true }),
        }
        Ok(self)
    }

    /// The data set's own.
    pub(super) fn folder(&self) -> &Path {
        &self.folders[0].path
    }

    /// All of them, for people.
    pub(super) fn in_words(&self) -> String {
        let names = self.folders.iter().map(|folder| shown(&folder.path.to_string_lossy()));
        names.collect::<Vec<_>>().join(" or ")
    }

    /// The file of this name, if it is an ordinary file inside. A relative name that means different
    /// files in several folders means none.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, PathProblem> {
        let way = match relative(name) {
            Ok(way) => way,
            Err(why) => return self.absolute(name).ok_or(PathProblem::Refused(why))?,
        };
        let mut found: Option<PathBuf> = None;
        let mut problem = PathProblem::Missing;
        for folder in &self.folders {
            let path = folder.path.join(&way);
            match self.check(&path) {
                Ok(()) => match &found {
                    Some(first) if first.canonicalize().ok() != path.canonicalize().ok() => {
                        return Err(PathProblem::Unreadable(format!(
                            "it is both in {} and in {}; name one root, or make the paths longer",
                            shown(&self.folder_of(first).to_string_lossy()),
                            shown(&folder.path.to_string_lossy())
                        )));
                    }
                    Some(_) => {}
                    None => found = Some(path),
                },
                Err(PathProblem::Missing) => {}
                Err(other) if problem == PathProblem::Missing => problem = other,
                Err(_) => {}
            }
        }
        found.ok_or(problem)
    }

    fn folder_of(&self, path: &Path) -> &Path {
        let mut paths = self.folders.iter().map(|folder| folder.path.as_path());
        paths.find(|folder| path.starts_with(folder)).unwrap_or(self.folder())
    }

    /// The file of an absolute name, where it lies below a folder that the user named; `None` where it
    /// does not.
    fn absolute(&self, name: &str) -> Option<Result<PathBuf, PathProblem>> {
        let path = Path::new(name.trim());
        let plain = path.is_absolute()
            && !name.contains('\0')
            && path.components().all(|part| part != std::path::Component::ParentDir);
        let holds = |one: &Folder| {
            one.named && (path.starts_with(&one.path) || path.starts_with(&one.real))
        };
        let below = plain && self.folders.iter().any(holds);
        below.then(|| self.check(path).map(|()| path.to_owned()))
    }

    /// Refuses what is not an ordinary file inside.
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
                "a link leads out of the data set's folder; name where it leads to with --root DIR"
                    .into(),
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
        let real_inside = |path: &Path| {
            let inside = |real: PathBuf| self.folders.iter().any(|one| real.starts_with(&one.real));
            path.canonicalize().is_ok_and(inside)
        };
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
        Err(format!(
            "the path is absolute; {rule}, or name the folder that it is in with --root DIR"
        ))
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

    #[test]
    fn folders_that_the_user_names_hold_files_too() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(own.path().join("a.png"), "x").unwrap();
        fs::write(own.path().join("both.png"), "x").unwrap();
        fs::write(other.path().join("both.png"), "y").unwrap();
        fs::write(other.path().join("b.png"), "y").unwrap();
        let absolute = other.path().join("b.png").to_string_lossy().into_owned();
        let root = Root::new(own.path()).unwrap();
        assert!(
            matches!(root.file(&absolute), Err(PathProblem::Refused(why)) if why.contains("--root"))
        );
        assert_eq!(root.file("b.png"), Err(PathProblem::Missing));
        let root = root.with(other.path()).unwrap();
        assert_eq!(root.file("a.png").unwrap(), own.path().join("a.png"));
        assert_eq!(root.file("b.png").unwrap(), other.path().join("b.png"));
        assert_eq!(root.file(&absolute).unwrap(), Path::new(&absolute));
        assert!(
            matches!(root.file("both.png"), Err(PathProblem::Unreadable(why)) if why.contains("both in"))
        );
        let up = format!("{}/../x", other.path().display());
        for out in ["/etc/passwd", up.as_str()] {
            assert!(matches!(root.file(out), Err(PathProblem::Refused(_))), "{out}");
        }
        // Its own folder, where the user names it.
        let inside = own.path().join("a.png").to_string_lossy().into_owned();
        assert!(matches!(root.file(&inside), Err(PathProblem::Refused(_))));
        assert!(root.with(own.path()).unwrap().file(&inside).is_ok());
    }
}

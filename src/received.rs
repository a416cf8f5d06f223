//! Opening what somebody sent. A folder from elsewhere may hold links that lead out of it, pipes
//! that never end, and files without bounds.
//!
//! The path that a user names may be a link; what lies below it may not.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// The largest `results.jsonl`: that of a million judgements.
pub(crate) const LARGEST_RESULTS: u64 = 2 << 30;
/// The largest file of labels, ratings or settings that a user may name.
pub(crate) const LARGEST_TABLE: u64 = 256 << 20;

/// Opens an ordinary file for reading; a link is not followed.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file to write behind its end, or makes it; a link is not followed.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    match open_with(path, OpenOptions::new().append(true)) {
        // Made only where nothing is, so that nothing can come in between.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenOptions::new().append(true).create_new(true).open(path)
        }
        opened => opened,
    }
}

/// Opens an ordinary file that is there; a link is not followed.
pub(crate) fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Before it is opened: that alone can do something to a device.
    refuse(&fs::symlink_metadata(path)?)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        // And again while it is, in case it has become something else.
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    refuse(&file.metadata()?)?;
    Ok(file)
}

/// The bytes of an ordinary file of at most `largest`; a link is not followed.
pub(crate) fn read(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    bounded(open(path)?, largest)
}

/// The same for a file that the user has named: links are followed, and a pipe may be one of the
/// user's own making.
pub(crate) fn read_named(path: &Path, largest: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        return bounded(file, largest);
    }
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest { Err(too_large(largest)) } else { Ok(bytes) }
}

/// As many bytes as the file has now: more may be added while it is read, and a file of the system
/// may say that it has none and never end.
fn bounded(file: File, largest: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    if length > largest {
        return Err(too_large(largest));
    }
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn too_large(largest: u64) -> io::Error {
    let text = match largest >> 20 {
        0 => format!("it is larger than {} KiB", largest >> 10),
        mib => format!("it is larger than {mib} MiB"),
    };
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

fn refuse(meta: &fs::Metadata) -> io::Result<()> {
    let what = if meta.is_file() {
        return Ok(());
    } else if meta.is_symlink() {
        "it is a link, and links in here are not followed; put the file itself in its place"
    } else if meta.is_dir() {
        "it is a folder, not a file"
    } else {
        "it is not an ordinary file; remove it"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// Whether a folder is there: itself, not a link to one.
pub(crate) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Whether an ordinary file is there: itself, not a link to one.
pub(crate) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Whether anything is there, also what cannot be opened: whoever opens it then says why.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Makes a folder in one that was received. A link in its place would lead what is written away.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => {
            let text =
                format!("{} is not a folder but a link or a file; remove it", path.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
        Err(_) => fs::create_dir_all(path),
    }
}

/// The folder `name` below `root`, if it is one and no link leads to it.
pub(crate) fn folder_below(root: &Path, name: &str) -> Option<PathBuf> {
    let mut path = root.to_owned();
    let is_real = |part| {
        path.push(part);
        is_folder(&path)
    };
    let name = Path::new(name);
    (stays_below(name) && name.components().all(is_real)).then_some(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn only_ordinary_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("nowhere", at("dead")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert_eq!(read(&at("file"), 4).unwrap(), b"text");
        assert!(read(&at("file"), 3).unwrap_err().to_string().contains("larger"));
        for (name, expected) in [
            ("link", "link"),
            ("zero", "link"),
            ("dead", "link"),
            ("folder", "folder"),
            ("pipe", "not an ordinary file"),
            ("absent", "No such file"),
        ] {
            let error = read(&at(name), 100).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
            if name != "absent" {
                let error = append(&at(name)).unwrap_err().to_string();
                assert!(error.contains(expected), "{name}: {error}");
            }
        }
        assert!(!at("nowhere").exists(), "nothing is made through a link");
        assert_eq!(read_named(&at("link"), 4).unwrap(), b"text");
        assert!(read_named(&at("zero"), 1000).is_err());
        // The system says that it has no bytes.
        assert_eq!(read_named(Path::new("/proc/self/status"), 1000).unwrap(), b"");
    }

    #[test]
    fn no_link_leads_below() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        symlink("a", folder.path().join("link")).unwrap();
        assert_eq!(folder_below(folder.path(), "a/b"), Some(folder.path().join("a/b")));
        for name in ["link", "link/b", "..", "a/../a", "/", "", ".", "a/none"] {
            assert_eq!(folder_below(folder.path(), name), None, "{name}");
        }
        assert!(create_folder(&folder.path().join("link")).is_err());
        create_folder(&folder.path().join("a")).unwrap();
        create_folder(&folder.path().join("new")).unwrap();
    }
}

/// Whether a path that a file names stays below the folder that it starts at.
pub(crate) fn stays_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

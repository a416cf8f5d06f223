//! A bundle or a run as one file for sending: an ordinary zip archive with the same files in it.
//!
//! The same traces give the same bytes. What is unpacked was written by anybody: only the names of
//! a trace's own files are accepted, and nothing appears before all of it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use zip::read::ZipReadOptions;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::blobs::BlobStore;
use super::named::blobs_named;
use super::reader::{Bundle, TraceError, is_unbegun};
use crate::hash::Hash;
use crate::received::{self, LARGEST_RESULTS};
use crate::visible::visible_line;

/// The files of a bundle beside its blobs.
const OF_BUNDLE: [&str; 2] = ["manifest.json", "events.jsonl"];
/// The files of a run beside its judgements.
const OF_RUN: [&str; 2] = ["results.jsonl", "run.json"];
/// More than any run has.
const MOST_FILES: usize = 4_000_000;
/// The largest file of a trace.
const LARGEST: u64 = 1 << 30;
/// Text is seldom packed better than this: what says so is a bomb.
const BEST_RATIO: u64 = 100;
/// Small archives may be packed better.
const ALWAYS_ALLOWED: u64 = 64 << 20;

/// An archive that could not be made or opened.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A trace in it cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not an archive of traces.
    #[error("{} is not an archive of a trace: {problem}; pack it again with `deeplook trace pack`", path.display())]
    Refused {
        /// Which archive.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The folder is not free.
    #[error("{} is there already; name a folder that is not", .0.display())]
    Exists(PathBuf),
}

/// A file for an archive.
enum Packed {
    File(PathBuf),
    /// Only if it holds what its name says.
    Blob(BlobStore, Hash),
}

impl Packed {
    fn read(&self) -> Result<Vec<u8>, ArchiveError> {
        let (path, bytes) = match self {
            Self::File(path) => (path.clone(), received::read(path, LARGEST_RESULTS)),
            Self::Blob(store, hash) => (store.folder().to_owned(), store.get(hash)),
        };
        bytes.map_err(|source| ArchiveError::Io { path, source })
    }
}

/// Packs the bundle or run in `folder` into the file `to`; the number of files in it.
pub fn pack(folder: &Path, to: &Path) -> Result<usize, ArchiveError> {
    let files = files_of(folder)?;
    let failed = |source| ArchiveError::Io { path: to.to_owned(), source };
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let part = tempfile::NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).map_err(failed)?;
    let write = || -> Result<(), ArchiveError> {
        let mut zip = ZipWriter::new(part.as_file());
        for (name, file) in &files {
            let bytes = file.read()?;
            // Pictures are packed already.
            let method = match name.rsplit_once('.') {
                Some((_, "png" | "jpg" | "webp" | "gif")) => CompressionMethod::Stored,
                _ => CompressionMethod::Deflated,
            };
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .last_modified_time(zip::DateTime::default())
                .unix_permissions(0o644);
            zip.start_file(name, options).map_err(|error| failed(error.into()))?;
            zip.write_all(&bytes).map_err(failed)?;
        }
        let file = zip.finish().map_err(|error| failed(error.into()))?;
        file.sync_all().map_err(failed)
    };
    write()?;
    part.persist(to).map_err(|error| failed(error.error))?;
    make_readable(to, 0o644);
    Ok(files.len())
}

/// Every file of a bundle or run by its name in the archive. Blobs that no trace names stay out.
fn files_of(folder: &Path) -> Result<BTreeMap<String, Packed>, ArchiveError> {
    let mut files = BTreeMap::new();
    let judgements = folder.join("judgements");
    if !received::is_folder(&judgements) {
        let bundle = Bundle::read(folder)?;
        add(&mut files, "", &bundle)?;
        return Ok(files);
    }
    let failed = |source| ArchiveError::Io { path: judgements.clone(), source };
    for entry in fs::read_dir(&judgements).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // What was interrupted before anything was recorded has nothing to send.
        if entry.file_type().map_err(failed)?.is_dir() && !is_unbegun(&entry.path()) {
            let name = entry.file_name().to_string_lossy().into_owned();
            add(&mut files, &format!("judgements/{name}/"), &Bundle::read(&entry.path())?)?;
        }
    }
    for name in OF_RUN {
        let path = folder.join(name);
        if received::is_there(&path) {
            files.insert(name.to_owned(), Packed::File(path));
        }
    }
    Ok(files)
}

fn add(
    files: &mut BTreeMap<String, Packed>,
    prefix: &str,
    bundle: &Bundle,
) -> Result<(), ArchiveError> {
    for name in OF_BUNDLE {
        let path = bundle.folder.join(name);
        // Where a judgement was interrupted early, there may be no events yet.
        if received::is_there(&path) {
            files.insert(format!("{prefix}{name}"), Packed::File(path));
        }
    }
    let store: BlobStore = bundle.blobs();
    for hash in blobs_named(&bundle.manifest, &bundle.events).into_keys() {
        let failed = |source| ArchiveError::Io { path: bundle.folder.clone(), source };
        let path = store.find(hash).map_err(failed)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(format!("blobs/{name}"), Packed::Blob(store.clone(), hash.clone()));
    }
    Ok(())
}

/// Unpacks the archive `from` into the new folder `to`; the number of files in it.
pub fn unpack(from: &Path, to: &Path) -> Result<usize, ArchiveError> {
    if to.exists() {
        return Err(ArchiveError::Exists(to.to_owned()));
    }
    let failed = |source| ArchiveError::Io { path: from.to_owned(), source };
    let refused = |problem: String| ArchiveError::Refused { path: from.to_owned(), problem };
    let file = File::open(from).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut archive = ZipArchive::new(file).map_err(|error| refused(error.to_string()))?;
    if archive.len() > MOST_FILES {
        return Err(refused(format!("it has {} files", archive.len())));
    }
    // What other programs would unpack from it must be what we do.
    if archive.has_duplicate_names() {
        return Err(refused("a file is in it twice".to_owned()));
    }
    if archive.offset() > 0 {
        return Err(refused("something stands before its beginning".to_owned()));
    }
    if archive.has_overlapping_entries().map_err(|error| refused(error.to_string()))? {
        return Err(refused("files lie over each other in it".to_owned()));
    }
    let has = |of: fn(&[u8]) -> bool| archive.file_names_raw().any(of);
    let of_run = |name: &[u8]| {
        name.starts_with(b"judgements/") || OF_RUN.iter().any(|of| of.as_bytes() == name)
    };
    if has(|name| OF_BUNDLE.iter().any(|of| of.as_bytes() == name)) && has(of_run) {
        return Err(refused("it holds a trace and a run at once".to_owned()));
    }
    let parent = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let written = |source| ArchiveError::Io { path: to.to_owned(), source };
    fs::create_dir_all(parent).map_err(written)?;
    // Beside its place first, so that nobody sees half of it; dropped where something is wrong.
    let beside = tempfile::tempdir_in(parent).map_err(written)?;
    let mut left = length.saturating_mul(BEST_RATIO).saturating_add(ALWAYS_ALLOWED);
    let mut names = BTreeSet::new();
    for index in 0..archive.len() {
        let same = ZipReadOptions::new().enforce_header_consistency(true);
        let entry = archive.by_index_with_options(index, same);
        let mut entry = entry.map_err(|error| refused(error.to_string()))?;
        let name = entry.name().map_err(|error| refused(error.to_string()))?.into_owned();
        let shown = visible_line(&name);
        if entry.is_dir() && is_folder(&name) {
            continue;
        }
        if entry.is_symlink() || !is_file_of_trace(&name) {
            return Err(refused(format!("{shown:?} is no file of a trace")));
        }
        if !names.insert(name.clone()) {
            return Err(refused(format!("{shown:?} is in it twice")));
        }
        let mut bytes = Vec::new();
        let most = left.min(LARGEST);
        let read = entry.by_ref().take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| refused(format!("{shown:?}: {error}")))?;
        if bytes.len() as u64 > most {
            return Err(refused(format!("{shown:?} is far larger than the archive")));
        }
        left -= bytes.len() as u64;
        let path = beside.path().join(&name);
        fs::create_dir_all(path.parent().unwrap_or(to)).map_err(written)?;
        fs::write(&path, bytes).map_err(written)?;
    }
    fs::rename(beside.keep(), to).map_err(written)?;
    make_readable(to, 0o755);
    Ok(names.len())
}

/// What is temporary is its owner's alone; a trace is for whoever may read the folder it is in.
fn make_readable(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Where it cannot be done, the owner can still read.
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
}

/// The only names that are accepted: nothing else can leave the folder or hide in it.
fn is_file_of_trace(name: &str) -> bool {
    let of_bundle = |name: &str| OF_BUNDLE.contains(&name);
    match name.split('/').collect::<Vec<_>>()[..] {
        [file] => of_bundle(file) || OF_RUN.contains(&file),
        ["blobs", file] => file.split_once('.').is_some_and(|(hash, extension)| {
            Hash::try_from(hash.to_owned()).is_ok()
                && (1..=8).contains(&extension.len())
                && extension.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        }),
        ["judgements", bundle, file] => is_name(bundle) && of_bundle(file),
        _ => false,
    }
}

fn is_folder(name: &str) -> bool {
    match name.trim_end_matches('/').split('/').collect::<Vec<_>>()[..] {
        ["blobs" | "judgements"] => true,
        ["judgements", bundle] => is_name(bundle),
        _ => false,
    }
}

fn is_name(name: &str) -> bool {
    !name.starts_with('.')
        && (1..=200).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_a_trace_have_a_place() {
        let hash = "0".repeat(64);
        for name in [
            "manifest.json",
            "events.jsonl",
            "results.jsonl",
            "judgements/a-b/manifest.json",
            &format!("blobs/{hash}.png"),
        ] {
            assert!(is_file_of_trace(name), "{name}");
        }
        for name in [
            "../manifest.json",
            "/etc/passwd",
            "judgements/../manifest.json",
            "judgements/./manifest.json",
            "judgements/a/b/manifest.json",
            "judgements//manifest.json",
            "blobs/../events.jsonl",
            "blobs/short.png",
            "judgements\\a\\manifest.json",
            "manifest.json/",
            "C:manifest.json",
            "",
            &format!("blobs/{hash}.p/../x"),
            &format!("blobs/{hash}"),
        ] {
            assert!(!is_file_of_trace(name), "{name}");
        }
    }
}

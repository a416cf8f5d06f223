//! Pictures that stand inside a data set's file: each is written to a folder under the hash of its
//! bytes, once.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;
use crate::hash::Hash;

/// The folder of unpacked pictures.
#[derive(Debug, Clone)]
pub(in crate::dataset) struct Unpacked(PathBuf);

/// A larger file is no picture that anybody edits.
const LARGEST: usize = 256 << 20;

impl Unpacked {
    pub(in crate::dataset) fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    pub(in crate::dataset) fn folder(&self) -> &Path {
        &self.0
    }

    /// Keeps a picture; returns its path in the folder.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<String, String> {
        if bytes.len() > LARGEST {
            return Err(format!("a picture has more than {} MiB", LARGEST >> 20));
        }
        let hash = Hash::of(bytes);
        let name = hash.as_str();
        // What is no picture is kept all the same: whoever opens it says so.
        let name = format!("{}/{name}.{}", &name[..2], ending(bytes).unwrap_or("bin"));
        let path = self.0.join(&name);
        // A file that a power cut has shortened is written anew.
        if !fs::metadata(&path).is_ok_and(|meta| meta.len() == bytes.len() as u64) {
            let told = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
            fs::create_dir_all(path.parent().unwrap_or(&self.0)).map_err(told)?;
            files::replace_quickly(&path, bytes).map_err(told)?;
        }
        Ok(name)
    }
}

/// The ending of a picture's name, by its first bytes.
pub(super) fn ending(bytes: &[u8]) -> Option<&'static str> {
    let starts = |start: &[u8]| bytes.starts_with(start);
    if starts(b"\x89PNG\r\n\x1a\n") {
        Some("png")
    } else if starts(b"\xff\xd8\xff") {
        Some("jpg")
    } else if starts(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("webp")
    } else if starts(b"GIF8") {
        Some("gif")
    } else if starts(b"II*\0") || starts(b"MM\0*") {
        Some("tiff")
    } else if starts(b"BM") && bytes.len() > 26 && bytes.get(6..10) == Some(&[0; 4]) {
        Some("bmp")
    } else {
        None
    }
}

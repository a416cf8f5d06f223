//! The same pages as files, which open from disk without a server.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, bail};
use rayon::prelude::*;

use super::index::{Index, IndexRow};
use super::page::Pages;
use super::pictures::PictureNames;
use super::{ASSETS, ROWS_IN_A_CHUNK, chunks};
use crate::files;
use crate::hash::Hash;
use crate::received;
use crate::visible::script_json;

/// On disk a page is its own origin, so that its policy stands in it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'";

/// The page of the list is far smaller.
const LARGEST_PAGE: u64 = 16 << 20;

/// Writes everything into `out`, which must be new, empty, or an earlier export; `progress` is told
/// of each page. The folder appears whole or not at all.
pub(crate) fn export(
    index: &Index,
    out: &Path,
    progress: &(dyn Fn() + Sync),
) -> anyhow::Result<()> {
    let replaces = check(out)?;
    let parent = match out.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    files::create_folder(parent)?;
    let building = tempfile::Builder::new()
        .prefix(".deeplook-view-")
        .tempdir_in(parent)
        .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
    let folder = building.path().join("new");
    write(index, &folder, progress)?;
    if replaces {
        fs::rename(out, building.path().join("old"))
            .with_context(|| format!("cannot replace {}", out.display()))?;
    }
    fs::rename(&folder, out).with_context(|| format!("cannot write {}", out.display()))
}

/// Whether there is something to replace; what is not ours is left alone.
fn check(out: &Path) -> anyhow::Result<bool> {
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => bail!("cannot write the folder {}: {error}", out.display()),
    };
    let page = received::read(&out.join("index.html"), LARGEST_PAGE).unwrap_or_default();
    let page = String::from_utf8_lossy(&page);
    let is_ours = page.contains("<meta name=\"generator\" content=\"deeplook ")
        && received::is_file(&out.join("assets/local.js"));
    if entries.count() > 0 && !is_ours {
        bail!("{} is not empty and holds no earlier export; name another folder", out.display());
    }
    Ok(true)
}

fn write(index: &Index, folder: &Path, progress: &(dyn Fn() + Sync)) -> anyhow::Result<()> {
    let pages = Pages::new(Some(POLICY))?;
    for inner in ["assets", "blobs", "case", "data"] {
        files::create_folder(&folder.join(inner))?;
    }
    for (name, _, content) in ASSETS {
        put(folder.join("assets").join(name), content)?;
    }
    put(folder.join("index.html"), &pages.list(index, chunks(index))?)?;
    for (number, entries) in index.entries.chunks(ROWS_IN_A_CHUNK).enumerate() {
        let rows: Vec<&IndexRow> = entries.iter().map(|entry| &entry.row).collect();
        let json = script_json(&serde_json::to_string(&rows)?);
        put(
            folder.join(format!("data/{:04}.js", number + 1)),
            &format!("deeplook.add({json});\n"),
        )?;
    }
    let copies = Copies { index, folder: folder.join("blobs"), made: Mutex::default() };
    (0..index.len()).into_par_iter().try_for_each(|n| -> anyhow::Result<()> {
        let page = pages.case(index, n, &copies)?.unwrap_or_default();
        put(folder.join(format!("case/{n}.html")), &page)?;
        progress();
        Ok(())
    })?;
    copies.finish()
}

/// Copies pictures as pages name them. Copies, not links: the evidence is nobody's to change.
struct Copies<'a> {
    index: &'a Index,
    folder: PathBuf,
    /// By hash: the name of the copy, or why there is none.
    made: Mutex<BTreeMap<Hash, Result<String, Problem>>>,
}

/// Why there is no copy.
#[derive(Clone)]
enum Problem {
    /// A page can say so.
    Picture(String),
    /// Nothing can be written.
    Disk(String),
}

impl Copies<'_> {
    fn copy(&self, hash: &Hash) -> Result<String, Problem> {
        let picture = self.index.pictures.get(hash).map_err(Problem::Picture)?;
        let name = format!("{hash}.{}", picture.extension);
        let path = self.folder.join(&name);
        fs::write(&path, picture.bytes)
            .map_err(|error| Problem::Disk(format!("cannot write {}: {error}", path.display())))?;
        Ok(name)
    }

    fn finish(self) -> anyhow::Result<()> {
        let made = self.made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let full = made.into_values().find_map(|copy| match copy {
            Err(Problem::Disk(problem)) => Some(problem),
            _ => None,
        });
        full.map_or(Ok(()), |problem| bail!(problem))
    }
}

impl PictureNames for Copies<'_> {
    fn file_name(&self, hash: &Hash) -> Result<String, String> {
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(hash).cloned();
        let copy = known.unwrap_or_else(|| {
            // Two threads may write the same bytes; nobody reads them before all is there.
            let copy = self.copy(hash);
            lock().insert(hash.clone(), copy.clone());
            copy
        });
        copy.map_err(|problem| match problem {
            Problem::Picture(problem) | Problem::Disk(problem) => problem,
        })
    }
}

fn put(path: PathBuf, text: &str) -> anyhow::Result<()> {
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

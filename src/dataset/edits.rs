//! The outputs of editors in a folder: which file belongs to which case.
//!
//! A file belongs to a case by its name alone: the case's id, or the name of its source picture, with
//! any extension. Where two files could be meant, or one file for two cases, nothing is guessed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use deeplook_tools::picture::size_of_file;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::cases::stem;
use super::problem::{DataSetError, Problems, listed, shown};
use super::root::{PathProblem, Root};
use super::{Entry, PictureFile};

/// By what the files of editors are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchBy {
    /// By the id of the case.
    Id,
    /// By the file name of the source picture.
    Source,
}

/// How much of an editor's work is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EditorFiles {
    /// The editor.
    pub editor: String,
    /// Pictures that are there.
    pub found: usize,
    /// Cases without one.
    pub missing: usize,
    /// Files that are no pictures.
    pub unreadable: usize,
    /// Cases for which several files could be meant.
    pub ambiguous: usize,
    /// Pictures that belong to no case.
    pub extra: usize,
    /// The first of these.
    pub extra_names: Vec<String>,
}

impl EditorFiles {
    fn count(&mut self, file: &PictureFile) {
        match file {
            PictureFile::Found(_) => self.found += 1,
            PictureFile::Missing(_) => self.missing += 1,
            PictureFile::Unreadable(_) => self.unreadable += 1,
            PictureFile::Ambiguous(_) => self.ambiguous += 1,
        }
    }

    /// Puts this editor's output into its case, and tells what is wrong with it.
    pub(super) fn take(&mut self, entry: &mut Entry, output: PictureFile, problems: &mut Problems) {
        let (line, id) = (entry.line, Some(entry.case.id.as_str()));
        self.count(&output);
        let what = output.problem().map(|why| format!("edit by {}: {why}", shown(&self.editor)));
        match (&output, what) {
            // Editors refuse some instructions; that is a result, not a mistake.
            (PictureFile::Missing(_), Some(what)) => problems.warning(line, id, what),
            (_, Some(what)) => problems.error(line, id, what),
            (_, None) => {}
        }
        entry.case.edited.insert(self.editor.clone(), output);
    }
}

/// The editors that the cases name themselves.
pub(super) fn named_in_file(cases: &[Entry]) -> Vec<EditorFiles> {
    let mut editors: BTreeMap<&str, EditorFiles> = BTreeMap::new();
    for (editor, file) in cases.iter().flat_map(Entry::edits) {
        let named = || EditorFiles { editor: editor.to_owned(), ..EditorFiles::default() };
        editors.entry(editor).or_insert_with(named).count(file);
    }
    editors.into_values().collect()
}

/// Finds the editors' outputs in `folder` and puts them into the cases.
pub(super) fn find(
    folder: &Path,
    by: Option<MatchBy>,
    cases: &mut [Entry],
    problems: &mut Problems,
) -> Result<Vec<EditorFiles>, DataSetError> {
    let fail = |what: String| DataSetError::Edits { folder: folder.to_owned(), what };
    let keys = Keys::of(cases, by);
    let mut editors = Vec::new();
    for (editor, place) in editor_folders(folder, &keys).map_err(fail)? {
        let files = files_below(&place).map_err(fail)?;
        if !files.is_empty() {
            editors.push((editor, place, files));
        }
    }
    if editors.is_empty() {
        return Err(fail(format!("there are no pictures in it; {}", expected(cases))));
    }
    let mut summaries = Vec::new();
    for (editor, place, files) in editors {
        let matched = matches(&keys, &files, cases);
        if matched.belonging.iter().all(Vec::is_empty) {
            let found = files.iter().take(3).map(|file| file.name.as_str());
            return Err(fail(format!(
                "no file of the folder {} belongs to a case; {}; found names such as {}; rename the files, or name another folder",
                shown(&editor),
                expected(cases),
                listed(found)
            )));
        }
        let root = Root::new(&place).map_err(|error| fail(error.to_string()))?;
        let mut summary = EditorFiles { editor: editor.clone(), ..EditorFiles::default() };
        summary.extra = matched.extra.len();
        summary.extra_names =
            matched.extra.iter().take(3).map(|at| files[*at].name.clone()).collect();
        let outputs: Vec<PictureFile> = cases
            .par_iter()
            .enumerate()
            .map(|(at, entry)| {
                output(entry, &matched.belonging[at], &files, &matched, &keys, &root)
            })
            .collect();
        for (entry, output) in cases.iter_mut().zip(outputs) {
            summary.take(entry, output, problems);
        }
        summaries.push(summary);
    }
    Ok(summaries)
}

fn expected(cases: &[Entry]) -> String {
    let names: Vec<String> =
        cases.iter().take(3).map(|entry| format!("{}.png", entry.case.id)).collect();
    format!("expected names such as {}", listed(names.iter().map(String::as_str)))
}

/// The names under which a case's output may be filed, lower-case.
struct Keys {
    ids: Vec<Option<String>>,
    sources: Vec<Option<String>>,
    /// How many cases have a source of this name.
    sharing: HashMap<String, usize>,
}

impl Keys {
    fn of(cases: &[Entry], by: Option<MatchBy>) -> Self {
        let source = |entry: &Entry| {
            let name = entry.case.source.path()?.file_name()?.to_string_lossy().into_owned();
            Some(stem(&name).to_lowercase())
        };
        let sources: Vec<Option<String>> = cases.iter().map(source).collect();
        let mut sharing = HashMap::new();
        for source in sources.iter().flatten() {
            *sharing.entry(source.clone()).or_default() += 1;
        }
        let wanted = |kind: MatchBy| by.is_none_or(|by| by == kind);
        Self {
            ids: cases
                .iter()
                .map(|entry| wanted(MatchBy::Id).then(|| entry.case.id.to_lowercase()))
                .collect(),
            sources: if wanted(MatchBy::Source) { sources } else { vec![None; cases.len()] },
            sharing,
        }
    }

    fn any(&self, names: &BTreeSet<String>) -> bool {
        self.ids.iter().chain(&self.sources).flatten().any(|key| names.contains(key))
    }
}

/// A picture file of an editor.
struct OutputFile {
    path: PathBuf,
    /// Its path below the editor's folder.
    name: String,
}

impl OutputFile {
    /// What it may be called by: with and without its folder and its extension.
    fn names(&self) -> BTreeSet<String> {
        let name = self.name.to_lowercase();
        let bare = name.rsplit('/').next().unwrap_or(&name);
        let without = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
        [without(&name), without(bare), bare.to_owned(), name.clone()].into()
    }
}

/// Which files belong to which case.
struct Matches {
    /// For each case the files that could be its output.
    belonging: Vec<Vec<usize>>,
    /// For each file how many cases want it.
    wanted: Vec<usize>,
    /// Files that nobody wants.
    extra: Vec<usize>,
}

fn matches(keys: &Keys, files: &[OutputFile], cases: &[Entry]) -> Matches {
    let mut index: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        for name in file.names() {
            index.entry(name).or_default().push(at);
        }
    }
    let under = |key: &Option<String>| -> &[usize] {
        key.as_ref().and_then(|key| index.get(key)).map_or(&[], Vec::as_slice)
    };
    let mut wanted = vec![0; files.len()];
    let belonging = (0..cases.len())
        .map(|at| {
            let by_id = under(&keys.ids[at]);
            let shared = keys.sources[at].as_ref().is_some_and(|name| keys.sharing[name] > 1);
            // The name of a picture that several cases share tells nothing where the id does.
            let by_source =
                if shared && !by_id.is_empty() { &[] } else { under(&keys.sources[at]) };
            let all: BTreeSet<usize> = by_id.iter().chain(by_source).copied().collect();
            all.iter().for_each(|file| wanted[*file] += 1);
            all.into_iter().collect()
        })
        .collect();
    let extra = (0..files.len()).filter(|at| wanted[*at] == 0).collect();
    Matches { belonging, wanted, extra }
}

/// What an editor made of one case.
fn output(
    entry: &Entry,
    candidates: &[usize],
    files: &[OutputFile],
    matched: &Matches,
    keys: &Keys,
    root: &Root,
) -> PictureFile {
    let names = listed(candidates.iter().map(|at| files[*at].name.as_str()));
    let [only] = candidates else {
        if candidates.is_empty() {
            let source = entry.case.source.path().and_then(Path::file_stem).unwrap_or_default();
            let names: BTreeSet<String> =
                [shown(&entry.case.id), shown(&source.to_string_lossy())].into();
            return PictureFile::Missing(format!(
                "there is no picture named {} in {}",
                Vec::from_iter(names).join(" or "),
                shown(&root.folder().to_string_lossy())
            ));
        }
        let stem = |at: &usize| files[*at].path.file_stem();
        let alike = candidates.iter().all(|at| stem(at) == stem(&candidates[0]));
        let hint = if alike { "" } else { ", or say --match id or --match source" };
        return PictureFile::Ambiguous(format!(
            "several files could be it: {names}; keep one{hint}"
        ));
    };
    if matched.wanted[*only] > 1 {
        let shared = keys.sharing.values().any(|count| *count > 1);
        let hint =
            if shared { "name the outputs by id" } else { "say --match id or --match source" };
        return PictureFile::Ambiguous(format!(
            "{names} could be the output for {} cases; {hint}",
            matched.wanted[*only]
        ));
    }
    looked_at(&files[*only].path, &names, root)
}

/// A file that was found, if it is a picture inside the root.
pub(super) fn looked_at(path: &Path, name: &str, root: &Root) -> PictureFile {
    match root.check(path) {
        Ok(()) => match size_of_file(path) {
            Ok(_) => PictureFile::Found(path.to_owned()),
            Err(error) => PictureFile::Unreadable(format!("{name}: {}", error.problem)),
        },
        Err(PathProblem::Missing) => PictureFile::Missing(format!("{name} is gone")),
        Err(PathProblem::Refused(why) | PathProblem::Unreadable(why)) => {
            PictureFile::Unreadable(format!("{name}: {why}"))
        }
    }
}

/// The folders of the editors: this one, if pictures of cases lie directly in it, else those in it.
fn editor_folders(folder: &Path, keys: &Keys) -> Result<Vec<(String, PathBuf)>, String> {
    let (files, folders) = entries(folder)?;
    let direct = files.iter().any(|(name, path)| {
        let (name, path) = (name.clone(), path.clone());
        keys.any(&OutputFile { name, path }.names())
    });
    if direct || folders.is_empty() {
        let real = folder.canonicalize().map_err(|error| error.to_string())?;
        let name = real.file_name().map_or(SOMEBODY.into(), |name| name.to_string_lossy());
        return Ok(vec![(name.into_owned(), folder.to_owned())]);
    }
    Ok(folders)
}

/// The editor of outputs that nobody is named for.
pub(super) const SOMEBODY: &str = "edited";

type Named = Vec<(String, PathBuf)>;

/// The picture files and the folders directly in a folder, sorted by name.
fn entries(folder: &Path) -> Result<(Named, Named), String> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(|error| format!("{error}; check the path"))? {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Other systems leave files such as `._a.png` behind.
        if name.starts_with('.') {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        if kind.is_dir() || kind.is_symlink() && path.is_dir() {
            folders.push((name, path));
        } else if looks_like_picture(&path) {
            files.push((name, path));
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// The pictures in a folder and in the folders directly in it.
fn files_below(folder: &Path) -> Result<Vec<OutputFile>, String> {
    let (files, folders) = entries(folder)?;
    let mut all: Vec<OutputFile> =
        files.into_iter().map(|(name, path)| OutputFile { path, name }).collect();
    for (below, place) in folders {
        let named = |(name, path)| OutputFile { path, name: format!("{below}/{name}") };
        all.extend(entries(&place)?.0.into_iter().map(named));
    }
    Ok(all)
}

/// By its extension; also formats that are not read, so that they are told as such and not as missing.
fn looks_like_picture(path: &Path) -> bool {
    const EXTENSIONS: [&str; 16] = [
        "png", "jpg", "jpeg", "jpe", "jfif", "webp", "bmp", "tif", "tiff", "gif", "avif", "heic",
        "heif", "jxl", "jp2", "ppm",
    ];
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

//! Benchmarks on disk, and the one that is drawn here.
//!
//! [`DataSet::open`] reads our own files (`cases.jsonl`, or a CSV of the same columns) and DLEBench's
//! folder, finds the outputs of editors, and collects every problem with its line. No picture is
//! decoded before [`Entry::load`]. [`case_file`] holds the records that are written; [`draw`] makes a
//! small benchmark whose truth is known because we drew it.
//!
//! ```
//! use deeplook::dataset::{DataSet, LoadOptions, draw};
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("scenes");
//! draw::make(&out, 1, 7, &|| ())?;
//!
//! let set = DataSet::open(&out, &LoadOptions::default())?;
//! assert!(set.problems.is_empty());
//! for entry in &set.cases {
//!     for editor in entry.edits().keys() {
//!         let edit = entry.load(editor)?;
//!         println!("{} by {editor}: {}", edit.id, edit.instruction);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod adapter;
mod boxes;
mod brought;
pub mod case_file;
mod cases;
pub(crate) mod chart;
mod check;
mod columnar;
pub(crate) mod convert;
mod dlebench;
mod document;
pub mod draw;
mod edits;
mod fields;
mod pattern;
mod patterned;
mod preset;
mod problem;
mod root;
mod rows;
mod source;
pub(crate) mod stats;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use deeplook_tools::picture::size_of_file;

pub use self::boxes::BoxForm;
pub use self::edits::{EditorFiles, MatchBy};
pub use self::fields::{Field, Mapping};
pub use self::preset::Preset;
pub use self::problem::{DataSetError, Problem, Problems, Severity};
pub(crate) use self::problem::{on_terminal, shown};
pub use self::stats::{Bin, Histogram, Stats, TypeStats};
use crate::case::{Case, EditCase, Facts, InputPicture, Named};

/// How to open a data set.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// What the file's fields mean, where their names do not say it.
    pub mapping: Mapping,
    /// A folder of editors' outputs, or a pattern of their names such as `out/{editor}/{id}_*.png`;
    /// where there is one, it replaces what the file names.
    pub edits: Option<PathBuf>,
    /// By what the outputs in that folder are named; `None` takes both, if they do not disagree.
    pub match_by: Option<MatchBy>,
    /// Further folders that paths may start from; absolute paths below them are allowed.
    pub roots: Vec<PathBuf>,
    /// The name of the [`Preset`] that the data set is read by; `None` recognises it, if it can.
    pub preset: Option<String>,
    /// Where pictures that stand inside the data set's file go; `None` for the user's cache.
    pub unpack: Option<PathBuf>,
}

/// A benchmark: cases, the editors' outputs for them, and what is wrong with it.
#[derive(Debug)]
#[non_exhaustive]
pub struct DataSet {
    /// The file of cases.
    pub file: PathBuf,
    /// The folder that its paths start from and cannot leave.
    pub root: PathBuf,
    /// How many records the file has, also those that make no case.
    pub records: usize,
    /// What can be used, in the file's order; also cases whose pictures are not there.
    pub cases: Vec<Entry>,
    /// What is wrong with single lines.
    pub problems: Problems,
    /// Who edited, and how many outputs were found, by name.
    pub editors: Vec<EditorFiles>,
    /// The file's fields that are only kept as facts.
    pub unused_fields: Vec<String>,
    /// How it was read, where nobody said so: by which preset, and what four numbers of a box mean.
    pub notes: Vec<String>,
    source: source::Source,
}

/// A picture, what was to be done to it, and what editors made of it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The line of the file, from 1; 0 where it stands in none.
    pub line: usize,
    /// The case, whose id is unique within the data set.
    pub case: Case<PictureFile, Edits>,
}

/// What each editor made of a case, by the editor's name.
pub type Edits = Named<PictureFile>;

/// A picture that a data set names or an editor should have made. Nothing is decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PictureFile {
    /// It is there.
    Found(PathBuf),
    /// It is not there: which one.
    Missing(String),
    /// It is there and cannot be used: which one, and why.
    Unreadable(String),
    /// Several could be it: which ones.
    Ambiguous(String),
}

impl PictureFile {
    /// Where it is, if it is there.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Found(path) => Some(path),
            _ => None,
        }
    }

    /// Why it cannot be used, if so.
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Found(_) => None,
            Self::Missing(why) | Self::Unreadable(why) | Self::Ambiguous(why) => Some(why),
        }
    }
}

/// A picture of a case that cannot be had: the judgement is missing, not failed.
#[derive(Debug, thiserror::Error)]
#[error("the {picture} picture cannot be used: {why}")]
pub struct MissingPicture {
    /// `source`, `edited`, or the name of another picture.
    pub picture: String,
    /// What is wrong with it.
    pub why: String,
}

impl Entry {
    /// Its id, and what is known of it.
    pub(crate) fn known(&self) -> (String, Facts) {
        (self.case.id.clone(), self.case.facts.clone())
    }

    /// What each editor made of it.
    pub fn edits(&self) -> &Edits {
        &self.case.edited
    }

    /// The part of the picture that its smallest target covers. Only the header of the source is read.
    pub(crate) fn smallest_share(&self) -> Option<f64> {
        let targets = self.case.targets().iter();
        let smallest = targets.map(|area| area.area()).reduce(f64::min)?;
        let size = size_of_file(self.case.source.path()?).ok()?;
        Some(smallest / size.area() as f64)
    }

    /// Reads and decodes the pictures of one edit.
    pub fn load(&self, editor: &str) -> Result<EditCase, MissingPicture> {
        let unknown = PictureFile::Missing(format!("there is none by {}", shown(editor)));
        let edited = self.edits().get(editor).unwrap_or(&unknown);
        let (source, edited) = (load("source", &self.case.source)?, load("edited", edited)?);
        let others = self.case.others.iter();
        let others = others.map(|(name, file)| Ok((name, load(name, file)?)));
        let case = self.case.with_pictures(source, edited, others.collect::<Result<_, _>>()?);
        Ok(EditCase { editor: Some(editor.to_owned()), ..case })
    }
}

fn load(picture: &str, file: &PictureFile) -> Result<InputPicture, MissingPicture> {
    let fail = |why: String| MissingPicture { picture: picture.to_owned(), why };
    match file {
        PictureFile::Found(path) => {
            InputPicture::load(path).map_err(|error| fail(error.to_string()))
        }
        other => Err(fail(other.problem().unwrap_or_default().to_owned())),
    }
}

impl DataSet {
    /// Opens a file of cases, or the folder that holds one. Files are looked for, never decoded.
    pub fn open(path: &Path, options: &LoadOptions) -> Result<Self, DataSetError> {
        let source = source::Source::find(path, options)?;
        let mut problems = Problems::default();
        let unreadable = |path: &Path, source| DataSetError::Io { path: path.to_owned(), source };
        let mut root =
            root::Root::new(&source.folder).map_err(|error| unreadable(&source.folder, error))?;
        // A file that the user named may be a link; one that was found in a folder may not lead out.
        source.check(&root, path)?;
        for named in &options.roots {
            root = root.with(named).map_err(|error| unreadable(named, error))?;
        }
        if let Some(unpacked) = source.unpacked() {
            root = root.with(unpacked).map_err(|error| unreadable(unpacked, error))?;
        }
        let is_there = |name: &str| root.file(name).is_ok();
        // Twice: what the fields mean is known when all of them are seen, and all rows at once would
        // take many times the room of the file.
        let (mut seen, mut readable) = (BTreeSet::new(), 0);
        let records = source.read(false, &is_there, &mut problems, &mut |rows| {
            readable += rows.len();
            for (name, _) in rows.into_iter().flat_map(|row| row.fields) {
                if seen.len() <= rows::MOST_COLUMNS {
                    seen.insert(name);
                }
            }
        })?;
        let seen: Vec<String> = seen.into_iter().collect();
        if seen.len() > rows::MOST_COLUMNS {
            let most = rows::MOST_COLUMNS;
            let what = format!("its lines have more than {most} different fields; leave some out");
            return Err(DataSetError::Fields { path: source.file, what });
        }
        let mut set = Self {
            root: root.folder().to_owned(),
            records,
            cases: Vec::new(),
            problems,
            editors: Vec::new(),
            unused_fields: Vec::new(),
            notes: source.note().into_iter().collect(),
            file: source.file.clone(),
            source,
        };
        if readable == 0 {
            // Not a single line could be read: there are no fields to ask for.
            return Ok(set);
        }
        let names = fields::Names::find(&set.file, &seen, &set.source.mapping())?;
        let reader = cases::Reader::new(&root, &names, options.edits.is_some());
        let read = reader.read(&set.source, &is_there, &mut set.problems)?;
        set.cases = read.cases;
        set.notes.extend(read.boxes_read);
        set.unused_fields = names.unused;
        set.editors = set.find_edits(options)?;
        Ok(set)
    }

    /// The outputs of editors: in the folder or by the pattern that the user names, where the preset
    /// knows them to be, or as the file names them.
    fn find_edits(&mut self, options: &LoadOptions) -> Result<Vec<EditorFiles>, DataSetError> {
        if let (Some((adapter, _)), Some(folder)) = (&self.source.adapter, &options.edits) {
            let (cases, problems) = (&mut self.cases, &mut self.problems);
            if let Some(found) = adapter.edits(folder, options, cases, problems) {
                return found;
            }
        }
        let known = self.source.preset.and_then(Preset::outputs);
        let Some(named) = &options.edits else {
            if let Some(known) = known {
                let base = self.source.folder.clone();
                let wanted =
                    patterned::Wanted { base: &base, pattern: &known.files, except: &known.except };
                let found = patterned::find(&wanted, &mut self.cases, &mut self.problems)?;
                if let Some(found) = found {
                    return Ok(found);
                }
            }
            return Ok(edits::named_in_file(&self.cases));
        };
        let text = named.to_string_lossy();
        if pattern::is_pattern(&text) && !named.exists() {
            let wanted = patterned::Wanted { base: Path::new(""), pattern: &text, except: &[] };
            let found = patterned::find(&wanted, &mut self.cases, &mut self.problems)?;
            return found.ok_or_else(|| DataSetError::Edits {
                folder: named.clone(),
                what: "no file fits; the pattern starts where you are, and * and {…} stay within one folder".to_owned(),
            });
        }
        if let Some(known) = known {
            let wanted =
                patterned::Wanted { base: named, pattern: &known.files, except: &known.except };
            if let Some(found) = patterned::find(&wanted, &mut self.cases, &mut self.problems)? {
                return Ok(found);
            }
        }
        edits::find(named, options.match_by, &mut self.cases, &mut self.problems)
    }

    /// How many edits there are to judge, also those whose pictures are not there.
    pub fn edits(&self) -> usize {
        self.cases.iter().map(|entry| entry.edits().len()).sum()
    }
}

/// The names under which a folder holds its cases.
const FILES: [&str; 4] = ["cases.jsonl", "cases.csv", "data.jsonl", "data.csv"];

fn locate(path: &Path) -> Result<PathBuf, DataSetError> {
    let meta =
        fs::metadata(path).map_err(|source| DataSetError::Io { path: path.to_owned(), source })?;
    if !meta.is_dir() {
        return Ok(path.to_owned());
    }
    let fail = |what| DataSetError::Folder { folder: path.to_owned(), what };
    let there: Vec<&str> = FILES.into_iter().filter(|name| path.join(name).is_file()).collect();
    match there[..] {
        [name] => Ok(path.join(name)),
        [] => Err(fail(format!(
            "holds no data set: none of {} is in it, and it is none of `deeplook dataset presets`; name the file itself, or the folder that has it",
            FILES.join(", ")
        ))),
        _ => Err(fail(format!("holds {}; name the one that you mean", there.join(" and ")))),
    }
}

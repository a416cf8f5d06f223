//! Benchmarks with files of their own: what each can do, and the one list of them.
//!
//! An adapter turns a benchmark's layout into rows as `cases.jsonl` has them, so that paths, boxes, questions
//! and problems are treated like everybody's. It may also find editors' outputs in a layout of its own, draw
//! a small benchmark in its layout, and write the files that its own scripts take. To add one, write a file
//! with an [`Adapter`] and name it in [`ADAPTERS`].

use std::path::{Path, PathBuf};

use super::draw::{DrawError, Made};
use super::rows::{self, Row};
use super::{DataSetError, EditorFiles, Entry, LoadOptions, Problems, dlebench};
use crate::report::Run;

/// All benchmarks that are known by name.
static ADAPTERS: &[&dyn Adapter] = &[&dlebench::DleBench];

/// What is known of a benchmark's own files.
pub(crate) trait Adapter: Sync + std::fmt::Debug {
    /// By which it is named on the command line.
    fn name(&self) -> &'static str;

    /// Where the cases are, if `path` (a file, or a folder) is laid out as this benchmark is. Only names
    /// are looked at, or the beginning of a file.
    fn recognise(&self, _path: &Path) -> Option<Layout> {
        None
    }

    /// Hands every record to `take`, as a row of `cases.jsonl`, piece by piece and in order; one that cannot
    /// be read is a problem of its line. Returns how many records there are. It is called twice.
    fn rows(
        &self,
        layout: &Layout,
        problems: &mut Problems,
        take: &mut dyn FnMut(Vec<Row>),
    ) -> Result<usize, DataSetError> {
        rows::read(&layout.file, problems, take)
    }

    /// Puts the outputs in `folder` into the cases; `None` where they are named as everybody's.
    fn edits(
        &self,
        _folder: &Path,
        _options: &LoadOptions,
        _cases: &mut [Entry],
        _problems: &mut Problems,
    ) -> Option<Result<Vec<EditorFiles>, DataSetError>> {
        None
    }

    /// Draws one whose right answers are known.
    fn draw(&self) -> Option<Draw> {
        None
    }

    /// Writes the files that its own scripts take, from a run.
    fn export(&self) -> Option<Export> {
        None
    }
}

/// Draws so many cases with a seed into a new folder, and tells of each.
pub(crate) type Draw = fn(&Path, usize, u64, &(dyn Fn() + Sync)) -> Result<Made, DrawError>;

/// The files of a run in a benchmark's own form. The error says what the run lacks.
pub(crate) type Export = fn(&Exported<'_>) -> Result<Vec<ExportedFile>, String>;

/// What is exported.
#[expect(dead_code, reason = "read by the benchmarks that write files of their own")]
pub(crate) struct Exported<'a> {
    /// The lines, also of what is not judged yet, and by what they were judged.
    pub(crate) run: &'a Run,
    /// The folder of the run.
    pub(crate) folder: &'a Path,
    /// The file of cases that was judged, where the run tells.
    pub(crate) data_set: Option<&'a Path>,
}

/// A file that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExportedFile {
    /// Where, within the folder that was named.
    pub(crate) path: PathBuf,
    /// What it holds.
    pub(crate) bytes: Vec<u8>,
}

/// Where a benchmark's cases are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The folder that its paths start from and cannot leave.
    pub(crate) root: PathBuf,
    /// The file of cases, or the first of them.
    pub(crate) file: PathBuf,
}

/// The benchmark of this name.
fn named(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().copied().find(|adapter| adapter.name() == name)
}

/// The benchmark that is laid out like this, and where its cases are.
pub(super) fn recognise(path: &Path) -> Option<(&'static dyn Adapter, Layout)> {
    ADAPTERS.iter().find_map(|adapter| Some((*adapter, adapter.recognise(path)?)))
}

/// The benchmarks that can be drawn, by name.
pub(crate) fn drawn() -> Vec<&'static str> {
    ADAPTERS.iter().filter(|adapter| adapter.draw().is_some()).map(|one| one.name()).collect()
}

/// How the benchmark of this name is drawn.
pub(crate) fn draw(name: &str) -> Option<Draw> {
    named(name)?.draw()
}

/// The benchmarks whose own files can be written, by name.
pub(crate) fn exports() -> Vec<&'static str> {
    ADAPTERS.iter().filter(|adapter| adapter.export().is_some()).map(|one| one.name()).collect()
}

/// How the files of this benchmark are written.
pub(crate) fn export(name: &str) -> Option<Export> {
    named(name)?.export()
}

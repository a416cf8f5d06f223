//! Where the records of a data set come from: one file, or several of a layout that a preset knows.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::adapter::{self, Adapter};
use super::columnar::{self, Unpacked};
use super::document::{self, Layout};
use super::fields::Mapping;
use super::pattern::{Gaps, Pattern};
use super::preset::Preset;
use super::problem::{DataSetError, Problems};
use super::root::{PathProblem, Root};
use super::rows::{self, Row};
use super::{LoadOptions, locate};
use crate::hash::Hash;

/// The records of a data set, and how they become rows.
#[derive(Debug)]
pub(super) struct Source {
    /// The file, or the folder of several.
    pub(super) file: PathBuf,
    /// The folder that its paths start from.
    pub(super) folder: PathBuf,
    pub(super) preset: Option<&'static Preset>,
    /// Nobody named the preset: it was recognised.
    pub(super) recognised: bool,
    /// The benchmark whose own layout it has, where no preset says it.
    pub(super) adapter: Option<(&'static dyn Adapter, adapter::Layout)>,
    files: Vec<(PathBuf, Gaps)>,
    mapping: Mapping,
    /// Where pictures that stand inside the files go, if there may be any.
    unpacked: Option<Unpacked>,
}

/// The kinds of files that hold records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rows,
    Document,
    Columns,
}

/// So many rows are handed on at a time.
const PIECE: usize = 1024;

impl Source {
    /// Finds out what is at `path`.
    pub(super) fn find(path: &Path, options: &LoadOptions) -> Result<Self, DataSetError> {
        let meta = fs::metadata(path)
            .map_err(|source| DataSetError::Io { path: path.to_owned(), source })?;
        let source = |preset: Option<&'static Preset>, files, recognised| {
            let folder = if meta.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
            Self {
                file: path.to_owned(),
                folder: folder.to_owned(),
                preset,
                recognised,
                adapter: None,
                files,
                mapping: options.mapping.clone(),
                unpacked: None,
            }
        };
        let source = |preset, files: Vec<(PathBuf, Gaps)>, recognised| {
            let mut source: Self = source(preset, files, recognised);
            if source.files.iter().any(|(file, _)| kind_of(file) == Kind::Columns) {
                source.unpacked = Some(unpacked(options)?);
            }
            Ok::<Self, DataSetError>(source)
        };
        let single = |file: PathBuf| vec![(file, Gaps::new())];
        if let Some(name) = &options.preset {
            let preset = Preset::named(name)?;
            let files = if meta.is_dir() { preset.files(path)? } else { single(path.to_owned()) };
            return source(Some(preset), files, false);
        }
        if let Some((known, layout)) = adapter::recognise(path) {
            let found = source(None, single(layout.file.clone()), true)?;
            let (file, folder) = (layout.file.clone(), layout.root.clone());
            return Ok(Self { file, folder, adapter: Some((known, layout)), ..found });
        }
        if !meta.is_dir() {
            return source(None, single(path.to_owned()), false)?.recognise();
        }
        match locate(path) {
            Ok(file) => {
                let mut found = source(None, single(file.clone()), false)?;
                found.file = file;
                Ok(found)
            }
            Err(none) => match Preset::of_folder(path) {
                Some(preset) => source(Some(preset), preset.files(path)?, true),
                None => match shards(path) {
                    shards if shards.is_empty() => Err(none),
                    shards => source(None, shards, false)?.recognise(),
                },
            },
        }
    }

    /// The same as what its records certainly are.
    fn recognise(mut self) -> Result<Self, DataSetError> {
        if self.files.iter().all(|(file, _)| kind_of(file) == Kind::Rows) {
            return Ok(self);
        }
        let seen = match &self.files[..] {
            [(file, _), ..] if kind_of(file) == Kind::Columns => columnar::names(file).ok(),
            _ => {
                let mut seen = None;
                // The first record is enough.
                let _ = self.records(false, &mut Problems::default(), &mut |rows| {
                    let names = |row: &Row| row.fields.keys().cloned().collect::<BTreeSet<_>>();
                    seen = seen.take().or_else(|| rows.first().map(names));
                });
                seen
            }
        };
        self.preset = seen.as_ref().and_then(Preset::of_fields);
        self.recognised = self.preset.is_some();
        Ok(self)
    }

    /// What is told of it, where nobody said so.
    pub(super) fn note(&self) -> Option<String> {
        if let Some((adapter, _)) = &self.adapter {
            return Some(format!("recognised as {}", adapter.name()));
        }
        let preset = self.preset.filter(|_| self.recognised)?;
        Some(format!("recognised as {}: {}", preset.name, preset.about))
    }

    /// Refuses files that lie behind links out of the folder in which they were found.
    pub(super) fn check(&self, root: &Root, named: &Path) -> Result<(), DataSetError> {
        for (file, _) in self.files.iter().filter(|(file, _)| file != named) {
            if let Err(PathProblem::Refused(why)) = root.check(file) {
                let what = format!("holds {:?}: {why}", file.file_name().unwrap_or_default());
                return Err(DataSetError::Folder { folder: named.to_owned(), what });
            }
        }
        Ok(())
    }

    /// Where pictures are unpacked to, if there may be any.
    pub(super) fn unpacked(&self) -> Option<&Path> {
        self.unpacked.as_ref().map(Unpacked::folder)
    }

    /// Rows in our own words or in the file's, piece by piece; `is_there` tells whether a file is.
    /// Without `pictures` those inside the file are passed over. Returns how many records there are.
    pub(super) fn read(
        &self,
        pictures: bool,
        is_there: &dyn Fn(&str) -> bool,
        problems: &mut Problems,
        take: &mut dyn FnMut(Vec<Row>),
    ) -> Result<usize, DataSetError> {
        if let Some((adapter, layout)) = &self.adapter {
            return adapter.rows(layout, problems, take);
        }
        let Some(preset) = self.preset.filter(|preset| preset.makes_rows()) else {
            return self.records(pictures, problems, take);
        };
        let mut known: HashMap<String, Hash> = HashMap::new();
        self.records(pictures, problems, &mut |records| {
            let rows = records.into_iter().filter_map(|record| {
                let fields = self.row(preset, &record, is_there);
                if preset.merges()
                    && let Some(id) = fields.get("id").and_then(Value::as_str)
                {
                    let same = same_of(&fields);
                    match known.get(id) {
                        Some(other) if *other == same => return None,
                        _ => drop(known.insert(id.to_owned(), same)),
                    }
                }
                Some(Row { line: record.line, fields })
            });
            take(rows.collect());
        })
    }

    /// A record in our own words.
    pub(super) fn row(
        &self,
        preset: &Preset,
        record: &Row,
        is_there: &dyn Fn(&str) -> bool,
    ) -> Map<String, Value> {
        preset.row(&record.fields, &self.mapping, is_there)
    }

    /// What the user says of fields, as far as it is not in the rows already.
    pub(super) fn mapping(&self) -> Mapping {
        match self.preset.is_some_and(Preset::makes_rows) {
            true => self.mapping.only_forms(),
            false => self.mapping.clone(),
        }
    }

    /// The records as they stand in the files.
    pub(super) fn records(
        &self,
        pictures: bool,
        problems: &mut Problems,
        take: &mut dyn FnMut(Vec<Row>),
    ) -> Result<usize, DataSetError> {
        if let [(file, _)] = &self.files[..]
            && kind_of(file) == Kind::Rows
        {
            let Some(_) = self.preset.filter(|preset| preset.makes_rows()) else {
                return rows::read(file, problems, take);
            };
            return rows::read(file, problems, &mut |rows| take(numbered(rows)));
        }
        problems.count_in("record");
        let mut records = 0;
        for (file, gaps) in &self.files {
            let with_gaps = |mut fields: Map<String, Value>| {
                for (name, value) in gaps {
                    fields.entry(name).or_insert_with(|| value.as_str().into());
                }
                fields
            };
            match kind_of(file) {
                Kind::Rows => {
                    let before = records;
                    records += rows::read(file, problems, &mut |rows| {
                        let rows = rows.into_iter().map(|row| Row {
                            line: before + row.line,
                            fields: with_gaps(row.fields),
                        });
                        take(numbered(rows.collect()));
                    })?;
                }
                kind => {
                    let mut piece = Vec::new();
                    let mut take_one = |record: Result<Map<String, Value>, String>| {
                        records += 1;
                        match record {
                            Ok(fields) => {
                                piece.push(Row { line: records, fields: with_gaps(fields) })
                            }
                            Err(what) => problems.error(records, None, what),
                        }
                        if piece.len() == PIECE {
                            take(numbered(std::mem::take(&mut piece)));
                        }
                    };
                    let done = if kind == Kind::Columns {
                        let unpacked = self.unpacked.as_ref().filter(|_| pictures);
                        columnar::read(file, unpacked, &mut |record| take_one(Ok(record)))
                    } else {
                        let layout = Layout {
                            at: self.preset.and_then(Preset::list_at),
                            keyed: self.preset.is_some_and(Preset::is_keyed),
                        };
                        document::read(file, layout, &mut take_one)
                    };
                    done.map_err(|what| DataSetError::NotCases { path: file.clone(), what })?;
                    take(numbered(piece));
                }
            }
        }
        match records {
            0 => Err(DataSetError::Empty { path: self.file.clone() }),
            records => Ok(records),
        }
    }
}

/// The records with their numbers, for sets whose records have no names.
fn numbered(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        row.fields.insert(ROW.to_owned(), row.line.into());
    }
    rows
}

/// The field that holds a record's number.
pub(super) const ROW: &str = "_row";

fn kind_of(path: &Path) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" if !is_lines(path) => Kind::Document,
        "parquet" => Kind::Columns,
        _ => Kind::Rows,
    }
}

/// Whether a `.json` file has an object on each line: its first line is one, and it is not all.
fn is_lines(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(1 << 16).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let object = |line: &str| serde_json::from_str::<Map<String, Value>>(line).is_ok();
    read.is_ok()
        && object(first)
        && lines.next().is_some_and(|line| line.trim_start().starts_with('{'))
}

/// What makes two records of one id the same case.
fn same_of(fields: &Map<String, Value>) -> Hash {
    let parts = ["source", "instruction", "edits", "reference", "pictures"];
    let parts: Vec<Option<&Value>> = parts.iter().map(|name| fields.get(*name)).collect();
    Hash::of(serde_json::json!(parts).to_string().as_bytes())
}

/// Where pictures go that stand inside files: where the user says, else into the cache.
fn unpacked(options: &LoadOptions) -> Result<Unpacked, DataSetError> {
    let folder = match &options.unpack {
        Some(folder) => folder.clone(),
        None => crate::weights::cache_folder()
            .map_err(|error| DataSetError::Unpack { what: error.to_string() })?
            .join("pictures"),
    };
    fs::create_dir_all(&folder)
        .map_err(|error| DataSetError::Unpack { what: format!("{}: {error}", folder.display()) })?;
    Ok(Unpacked::new(&folder))
}

/// The shards of a folder, where it has any.
fn shards(folder: &Path) -> Vec<(PathBuf, Gaps)> {
    for pattern in ["*.parquet", "data/*.parquet"] {
        let found = Pattern::parse(pattern).and_then(|pattern| pattern.find(folder));
        let found = found.unwrap_or_default().into_iter().map(|one| (one.path, Gaps::new()));
        let found: Vec<(PathBuf, Gaps)> = found.collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

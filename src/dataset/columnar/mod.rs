//! Parquet files: records put together from columns, a batch at a time. Pictures inside them are
//! unpacked, so that a record holds their paths.
//!
//! What stands in a file is untrusted: `guard` looks at its bones first.

mod guard;
mod leaf;
mod pictures;
mod tree;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use parquet::file::reader::FileReader as _;
use parquet::file::serialized_reader::SerializedFileReader;
use serde_json::{Map, Value};

use self::leaf::Leaf;
pub(super) use self::pictures::Unpacked;
use super::rows::MOST_COLUMNS;

/// So many rows are put together at a time, or fewer where they are long.
const BATCH: usize = 1024;
/// So much of a column may be in a batch.
const LARGEST_BATCH: i64 = 32 << 20;

/// Takes a record.
type Take<'a> = &'a mut dyn FnMut(Map<String, Value>);

/// The names of the fields of its records.
pub(super) fn names(path: &Path) -> Result<BTreeSet<String>, String> {
    let names = || {
        let mut file = File::open(path).map_err(|error| error.to_string())?;
        guard::check_footer(&mut file)?;
        let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
        let schema = reader.metadata().file_metadata().schema_descr();
        Ok(schema.root_schema().get_fields().iter().map(|one| one.name().to_owned()).collect())
    };
    quietly(names)
}

thread_local! {
    /// Whether this thread reads a file that may be broken.
    static READING: Cell<bool> = const { Cell::new(false) };
}

/// Turns a panic into an error. The crate promises no more than to do well on good files, and what it
/// says when it gives up on a broken one is of no use to anybody.
fn quietly<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !READING.get() {
                usual(info);
            }
        }));
    });
    READING.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(read));
    READING.set(false);
    done.unwrap_or_else(|_| Err(BROKEN.to_owned()))
}

const BROKEN: &str = "it is broken in a way that cannot be told";

/// Hands every record to `take`. Without a place for pictures they are passed over, and only their
/// paths are read. The error says why the file cannot be read, or not any further.
pub(super) fn read(path: &Path, unpacked: Option<&Unpacked>, take: Take<'_>) -> Result<(), String> {
    quietly(|| read_file(path, unpacked, take))
}

fn read_file(path: &Path, unpacked: Option<&Unpacked>, take: Take<'_>) -> Result<(), String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    guard::check_footer(&mut file)?;
    let pages = file.try_clone().map_err(|error| error.to_string())?;
    let told = |error: parquet::errors::ParquetError| format!("it is broken: {error}");
    let reader = SerializedFileReader::new(file).map_err(told)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    if schema.num_columns() > MOST_COLUMNS {
        return Err(format!("it has {} columns, more than {MOST_COLUMNS}", schema.num_columns()));
    }
    let nodes = tree::nodes(schema.root_schema());
    let types: Vec<_> = schema.columns().iter().map(|column| column.physical_type()).collect();
    let mut wanted = vec![true; types.len()];
    if unpacked.is_none() {
        let mut heavy = Vec::new();
        nodes.iter().for_each(|node| node.heavy(&types, &mut heavy));
        heavy.into_iter().for_each(|column| wanted[column] = false);
    }
    let keep = |bytes: &[u8]| match unpacked {
        Some(unpacked) => unpacked.keep(bytes),
        None => Ok(String::new()),
    };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(told)?;
        let meta = group.metadata();
        if meta.num_columns() != types.len() {
            return Err("a group of rows has other columns than the file".to_owned());
        }
        let names: Vec<String> = schema.columns().iter().map(|one| one.path().string()).collect();
        let mut chunks = Vec::new();
        let mut batch = BATCH;
        for column in (0..types.len()).filter(|column| wanted[*column]) {
            let chunk = meta.column(column);
            let (start, length) = chunk.byte_range();
            chunks.push(guard::Chunk { name: &names[column], start, length });
            let row = chunk.uncompressed_size() / meta.num_rows().max(1);
            let fitting = usize::try_from(LARGEST_BATCH / row.max(1)).unwrap_or(1);
            batch = batch.min(fitting.max(1));
        }
        guard::check_pages(&pages, &chunks)?;
        let mut leaves: Vec<Option<Leaf>> = Vec::new();
        for (column, wanted) in wanted.iter().enumerate() {
            let most = schema.column(column).max_def_level();
            let open = || group.get_column_reader(column).map(|reader| Leaf::new(reader, most));
            leaves.push(wanted.then(open).transpose().map_err(told)?);
        }
        let rows = usize::try_from(meta.num_rows()).map_err(|_| "it has fewer than no rows")?;
        read_rows(&nodes, &mut leaves, rows, batch, &keep, take)?;
    }
    Ok(())
}

fn read_rows(
    nodes: &[tree::Node],
    leaves: &mut [Option<Leaf>],
    rows: usize,
    batch: usize,
    keep: &tree::Keep<'_>,
    take: Take<'_>,
) -> Result<(), String> {
    let mut done = 0;
    while done < rows {
        let wanted = batch.min(rows - done);
        for leaf in leaves.iter_mut().flatten() {
            if leaf.read(wanted)? != wanted {
                return Err("a column has fewer values than its rows".to_owned());
            }
        }
        for _ in 0..wanted {
            let mut record = Map::new();
            for node in nodes {
                let value =
                    node.take(leaves, keep).map_err(|what| format!("{:?}: {what}", node.name))?;
                record.insert(node.name.clone(), value);
            }
            take(record);
        }
        done += wanted;
    }
    Ok(())
}

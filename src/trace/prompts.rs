//! The prompts of a judgement, from its trace.

use super::PackRecord;
use super::reader::Bundle;
use crate::hash::Hash;
use crate::prompt::{Files, Pack};

/// More than any pack has: a trace from elsewhere must not take all memory.
const MOST_FILES: usize = 100;
const LARGEST_FILE: u64 = 1 << 20;

impl Bundle {
    /// The pack that the judge was given; the error says which of its files is wrong.
    pub fn prompts(&self) -> Result<Pack, String> {
        let blobs = self.blobs();
        pack_of(&self.manifest.pack, |hash, largest| {
            blobs.get_small(hash, largest).map_err(|error| error.to_string())
        })
    }
}

/// The pack of a record. `get` has a blob that is at most so large.
pub(crate) fn pack_of(
    record: &PackRecord,
    get: impl Fn(&Hash, u64) -> Result<Vec<u8>, String>,
) -> Result<Pack, String> {
    if record.files.len() > MOST_FILES {
        return Err(format!("it names {} files, more than {MOST_FILES}", record.files.len()));
    }
    let mut files = Files::new();
    for (name, hash) in &record.files {
        let bytes = get(hash, LARGEST_FILE).map_err(|problem| format!("{name}: {problem}"))?;
        files.insert(name.clone(), bytes);
    }
    let pack = Pack::from_files(files).and_then(|pack| pack.varied(record.variant.as_deref()));
    pack.map_err(|error| error.to_string())
}

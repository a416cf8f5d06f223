//! The prompts of a judgement, from its trace.

use super::reader::Bundle;
use crate::prompt::{Files, Pack};

/// More than any pack has: a trace from elsewhere must not take all memory.
const MOST_FILES: usize = 100;
const LARGEST_FILE: u64 = 1 << 20;

impl Bundle {
    /// The pack that the judge was given; the error says which of its files is wrong.
    pub fn prompts(&self) -> Result<Pack, String> {
        let record = &self.manifest.pack;
        if record.files.len() > MOST_FILES {
            return Err(format!("it names {} files, more than {MOST_FILES}", record.files.len()));
        }
        let blobs = self.blobs();
        let mut files = Files::new();
        for (name, hash) in &record.files {
            let bytes = blobs.get_small(hash, LARGEST_FILE);
            files.insert(name.clone(), bytes.map_err(|problem| format!("{name}: {problem}"))?);
        }
        let pack = Pack::from_files(files).and_then(|pack| pack.varied(record.variant.as_deref()));
        pack.map_err(|error| error.to_string())
    }
}

//! Reading the small files that lie beside a model.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// More than any vocabulary has.
const LARGEST: u64 = 64 << 20;

/// The bytes of an ordinary file that is not large. A pipe or a device may never end.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let meta = path.metadata()?;
    if !meta.is_file() || meta.len() > LARGEST {
        let text = format!("it is not an ordinary file of at most {} MiB", LARGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(meta.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

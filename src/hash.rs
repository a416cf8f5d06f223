//! SHA-256 in lower-case hex: the name of everything that a trace refers to.

use std::{fmt, io};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes, written as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash(String);

impl Hash {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::in_hex(&Sha256::digest(bytes))
    }

    /// The hash of everything that `reader` gives, read in pieces.
    pub fn of_reader(reader: &mut impl io::Read) -> io::Result<Self> {
        let mut hasher = Sha256::new();
        let mut piece = vec![0; 1 << 20];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Self::in_hex(&hasher.finalize())),
                Ok(length) => hasher.update(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The hash of a value as JSON, which is never in memory as a whole.
    pub fn of_json(value: &impl Serialize) -> serde_json::Result<Self> {
        let mut hasher = Hasher::default();
        serde_json::to_writer(&mut hasher, value)?;
        Ok(hasher.finish())
    }

    fn in_hex(digest: &[u8]) -> Self {
        Self(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Makes the hash of what comes piece by piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Hash {
        Hash::in_hex(&self.0.finalize())
    }
}

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() == 64 && is_hex {
            Ok(Self(text))
        } else {
            Err(format!("{text:?} is not a hash: 64 lower-case hex digits are expected"))
        }
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.0
    }
}

impl JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

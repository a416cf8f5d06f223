//! Replies kept on disk, so that the same question is not paid for twice.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::files;
use crate::hash::Hash;
use crate::message::{Reply, Served, Usage, Wire};
use crate::wire;

/// How many new replies may come before the size is looked at again.
const BETWEEN_LOOKS: u64 = 500;

/// A folder of replies, each under the hash of the exact request that it answers. Several processes
/// may use it at the same time. What cannot be read is not there, and what cannot be written is
/// not kept: that costs a call, never a verdict.
#[derive(Debug)]
pub struct KeptReplies {
    folder: PathBuf,
    most_bytes: u64,
    added: AtomicU64,
    /// Whether those from before are of no use.
    anew: bool,
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    message: Value,
    wire: Wire,
    repairs: Vec<String>,
    finish_reason: Option<String>,
    usage: Usage,
    served: Served,
}

impl From<Kept> for Reply {
    /// What it says follows from the message.
    fn from(kept: Kept) -> Self {
        let Kept { message, wire, repairs, finish_reason, usage, served, .. } = kept;
        let said = wire::said(wire, &message);
        Self { said, message, wire, repairs, finish_reason, usage, served }
    }
}

const FORMAT: u32 = 2;

impl KeptReplies {
    /// The replies in `folder`, which holds at most `most_bytes` of them.
    pub fn new(folder: PathBuf, most_bytes: u64) -> Self {
        Self { folder, most_bytes, added: AtomicU64::new(0), anew: false }
    }

    /// The same for whoever wants new replies: they are kept in place of the old ones.
    pub fn anew(self) -> Self {
        Self { anew: true, ..self }
    }

    /// The reply to this request in this repetition.
    pub fn get(&self, request: &Hash, repeat: u32) -> Option<Reply> {
        if self.anew {
            return None;
        }
        let path = self.path(request, repeat);
        // A pipe would never end.
        fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let kept: Kept = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        if kept.format != FORMAT {
            return None;
        }
        // What is used lately goes last; where that cannot be noted, it goes earlier.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(kept.into())
    }

    /// Keeps a reply.
    pub fn put(&self, request: &Hash, repeat: u32, reply: &Reply) {
        if let Err(error) = self.write(request, repeat, reply) {
            tracing::warn!(folder = %self.folder.display(), %error, "a reply could not be kept");
        }
        if self.added.fetch_add(1, Ordering::Relaxed) % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 {
            // Nobody waits for it.
            let (folder, most_bytes) = (self.folder.clone(), self.most_bytes);
            std::thread::spawn(move || trim(&folder, most_bytes));
        }
    }

    fn write(&self, request: &Hash, repeat: u32, reply: &Reply) -> io::Result<()> {
        let path = self.path(request, repeat);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let Reply { message, wire, repairs, finish_reason, usage, served, .. } = reply.clone();
        let kept = Kept { format: FORMAT, message, wire, repairs, finish_reason, usage, served };
        files::replace_quickly(&path, &serde_json::to_vec(&kept)?)
    }

    /// Two levels, so that no folder gets too many files.
    fn path(&self, request: &Hash, repeat: u32) -> PathBuf {
        let (first, rest) = request.as_str().split_at(2);
        self.folder.join(first).join(format!("{rest}-{repeat}.json"))
    }
}

/// Takes away what was used longest ago, until nine tenths of the size are left.
fn trim(folder: &Path, most_bytes: u64) {
    let mut files = Vec::new();
    for folder in entries(folder).filter(|entry| entry.is_dir()) {
        files.extend(entries(&folder).filter_map(|path| {
            let meta = fs::metadata(&path).ok()?;
            Some((meta.modified().ok()?, meta.len(), path))
        }));
    }
    let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
    if bytes <= most_bytes {
        return;
    }
    files.sort();
    for (_, length, path) in files {
        if bytes <= most_bytes / 10 * 9 {
            break;
        }
        // Another process may have been quicker.
        let _ = fs::remove_file(path);
        bytes = bytes.saturating_sub(length);
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn reply(text: &str) -> Reply {
        wire::unserved(json!({ "role": "assistant", "content": text }))
    }

    #[test]
    fn a_reply_belongs_to_one_request_and_one_repetition() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptReplies::new(folder.path().join("replies"), 1 << 20);
        let (one, other) = (Hash::of(b"one"), Hash::of(b"other"));
        assert_eq!(kept.get(&one, 0), None);
        kept.put(&one, 0, &reply("yes"));
        assert_eq!(kept.get(&one, 0), Some(reply("yes")));
        assert_eq!(kept.get(&one, 1), None);
        assert_eq!(kept.get(&other, 0), None);
        fs::write(kept.path(&one, 0), "{\"format\": 2, \"mes").unwrap();
        assert_eq!(kept.get(&one, 0), None, "half a file is no reply");
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptReplies::new(folder.path().to_owned(), u64::MAX);
        let names: Vec<Hash> = (0..10u8).map(|n| Hash::of(&[n])).collect();
        for (age, name) in names.iter().enumerate() {
            kept.put(name, 0, &reply(&"x".repeat(1000)));
            let time = SystemTime::now() - Duration::from_secs(1000 - age as u64);
            File::options()
                .append(true)
                .open(kept.path(name, 0))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        assert!(kept.get(&names[0], 0).is_some(), "the oldest, but just used");
        trim(folder.path(), 5600);
        let left: Vec<bool> = names.iter().map(|name| kept.get(name, 0).is_some()).collect();
        assert!(left[0] && left[9] && !left[1] && !left[2], "{left:?}");
        assert!(left.iter().filter(|left| **left).count() <= 5, "{left:?}");
    }
}

//! Where the files of a pack come from: this binary, or a folder that nobody vouches for.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use super::PromptError;
use crate::hash::Hash;
use crate::received;

/// The files of a pack by name.
pub type Files = BTreeMap<String, Vec<u8>>;

const MOST_FILES: usize = 100;
const MOST_BYTES: u64 = 1 << 20;
const ENDINGS: [&str; 3] = [".toml", ".j2", ".md"];

macro_rules! packs {
    ($($id:literal: [$($file:literal),+ $(,)?]),+ $(,)?) => {
        /// Every pack in this binary with its files; a test holds the list against `prompts/`.
        pub(super) const EMBEDDED: &[(&str, &[(&str, &str)])] = &[$(
            ($id, &[$(
                ($file, include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"), "/prompts/", $id, "/", $file
                ))),
            )+]),
        )+];
    };
}

packs! {
    "dlebench/v1": [
        "answer.j2",
        "final_form.j2",
        "if.j2",
        "if_tools.j2",
        "labels.j2",
        "last_turn.j2",
        "no_more_tools.j2",
        "pack.toml",
        "reminder.j2",
        "repair.j2",
        "rules.toml",
        "task.j2",
        "tool_form.j2",
        "tool_habits.j2",
        "vc.j2",
        "vc_tools.j2",
    ],
    "dlebench/v2": [
        "answer.j2",
        "final_form.j2",
        "if.j2",
        "if_tools.j2",
        "labels.j2",
        "last_turn.j2",
        "no_more_tools.j2",
        "pack.toml",
        "reminder.j2",
        "repair.j2",
        "rules.toml",
        "task.j2",
        "tool_form.j2",
        "tool_habits.j2",
        "vc.j2",
        "vc_tools.j2",
    ],
    "edits/v1": [
        "answer.j2",
        "final_form.j2",
        "last_turn.j2",
        "no_more_tools.j2",
        "object.j2",
        "pack.toml",
        "pq.j2",
        "reminder.j2",
        "repair.j2",
        "rules.toml",
        "sc.j2",
        "sc_checked.j2",
        "sc_rules.j2",
        "task.j2",
        "tool_form.j2",
        "tools.j2",
    ],
}

/// The files of the pack of this id in the binary.
pub(super) fn embedded(id: &str) -> Option<Files> {
    let (_, files) = EMBEDDED.iter().find(|(known, _)| *known == id)?;
    Some(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
}

/// The files of a pack in a folder. Hidden files are passed over; a link, a subfolder, another kind
/// of file, and too much of anything are refused.
pub(super) fn read_folder(folder: &Path) -> Result<Files, PromptError> {
    let refuse = |what: String| PromptError::Folder { folder: folder.to_owned(), what };
    let unreadable = |what: &str, error: std::io::Error| {
        refuse(format!("{what} cannot be read ({error}); give a folder that holds a pack.toml"))
    };
    let mut files = Files::new();
    for entry in fs::read_dir(folder).map_err(|e| unreadable("it", e))? {
        let entry = entry.map_err(|e| unreadable("it", e))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        // Of the entry itself, not of what a link points to.
        let kind = entry.file_type().map_err(|e| unreadable(&name, e))?;
        if !kind.is_file() || !ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            let kinds = ENDINGS.join(", ");
            return Err(refuse(format!(
                "{name:?} does not belong in a pack; keep plain {kinds} files only"
            )));
        }
        if files.len() == MOST_FILES {
            return Err(refuse(format!(
                "it has more than {MOST_FILES} files; give a pack's own folder"
            )));
        }
        let mut bytes = Vec::new();
        received::open(&entry.path())
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|e| unreadable(&name, e))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(refuse(format!("{name:?} is larger than 1 MB; shorten it")));
        }
        files.insert(name.into_owned(), bytes);
    }
    Ok(files)
}

/// The hash of all names and contents. Lengths go in too, so that no two packs read alike.
pub(super) fn hash(files: &Files) -> Hash {
    let mut bytes = Vec::new();
    for (name, content) in files {
        bytes.extend_from_slice(format!("{} {name}\n{}\n", name.len(), content.len()).as_bytes());
        bytes.extend_from_slice(content);
    }
    Hash::of(&bytes)
}

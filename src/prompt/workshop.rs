//! Making one pack of another: a copy to edit, a template exchanged, pictures in another order.

use super::source::{self, Files};
use super::{Pack, PromptError};
use crate::hash::Hash;

const PACK: &str = "pack.toml";
/// What a copy is called until somebody thinks that it is finished.
const DRAFT: &str = "draft";

/// The files of the pack of this id in the binary, or else of the one in the folder of this name.
/// They are not checked.
pub fn files_of(id_or_folder: &str) -> Result<Files, PromptError> {
    match source::embedded(id_or_folder) {
        Some(files) => Ok(files),
        None if std::path::Path::new(id_or_folder).is_dir() => {
            source::read_folder(std::path::Path::new(id_or_folder))
        }
        None => Err(PromptError::unknown(id_or_folder)),
    }
}

/// The hash of all names and contents.
pub fn hash(files: &Files) -> Hash {
    source::hash(files)
}

/// The same pack under another name, as a draft; comments and order stay as they are.
pub fn renamed(mut files: Files, name: &str) -> Files {
    if let Some(text) = text_of(&files) {
        let mut top_level = true;
        let lines = text.lines().map(|line| {
            top_level &= !line.trim_start().starts_with('[');
            match line.split_once('=').map(|(key, _)| key.trim()).filter(|_| top_level) {
                Some("name") => format!("name = {name:?}\n"),
                Some("version") => format!("version = {DRAFT:?}\n"),
                _ => format!("{line}\n"),
            }
        });
        let text: String = lines.collect();
        files.insert(PACK.to_owned(), text.into_bytes());
    }
    files
}

/// The same pack with every mode's pictures in the opposite order: what a judge sees second it sees
/// first. `None` where `pack.toml` does not list them in the usual way.
pub fn with_pictures_reversed(mut files: Files) -> Option<Files> {
    // Of format 1, and of format 2.
    const KEYS: [&str; 2] = ["pictures = [", "views = ["];
    let text = text_of(&files)?;
    let mut rest = text.as_str();
    let mut reversed = String::new();
    while let Some((at, key)) = KEYS.iter().filter_map(|k| Some((rest.find(k)?, k))).min() {
        let (before, list) = rest.split_at(at + key.len());
        let (items, end) = items(list)?;
        reversed += before;
        reversed += &items.into_iter().rev().collect::<Vec<_>>().join(", ");
        rest = &list[end..];
    }
    reversed += rest;
    (reversed != text).then(|| {
        files.insert(PACK.to_owned(), reversed.into_bytes());
        files
    })
}

/// The items of a list whose bracket has been read, and where it ends; `None` where a comment or the
/// end of the text comes first.
fn items(list: &str) -> Option<(Vec<&str>, usize)> {
    let (mut items, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '#' => return None,
            '[' | '{' => depth += 1,
            ',' | ']' if depth == 0 => {
                items.push(list[start..at].trim());
                start = at + 1;
                if c == ']' {
                    items.retain(|item| !item.is_empty());
                    return Some((items, at));
                }
            }
            ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn text_of(files: &Files) -> Option<String> {
    files.get(PACK).and_then(|bytes| String::from_utf8(bytes.clone()).ok())
}

/// About how many tokens a text is for the tokenizers in use: four letters of prose each, and one
/// for every piece of punctuation. An estimate: models differ by a fifth.
pub fn estimated_tokens(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let of_words: usize = words.map(|word| word.chars().count().div_ceil(6).max(1)).sum();
    let signs = text.chars().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()).count();
    of_words + signs
}

impl Pack {
    /// The pack of these files, if it passes [`super::lint()`].
    pub fn checked(files: Files) -> Result<Self, PromptError> {
        let findings = super::lint(&files);
        if findings.is_empty() {
            Self::from_files(files)
        } else {
            Err(PromptError::Wrong(findings))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_differs_only_in_its_name() {
        let original = Pack::embedded("dlebench/v1").unwrap();
        let copy = Pack::checked(renamed(files_of("dlebench/v1").unwrap(), "mine")).unwrap();
        assert_eq!((copy.id().as_str(), copy.about.as_str()), ("mine/draft", &*original.about));
        assert!(super::super::diff(&original, &copy, &[]).unwrap().is_empty());
        let names =
            |pack: &Pack| pack.criteria().iter().map(|c| c.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&copy), names(&original));
    }

    #[test]
    fn pictures_come_in_the_opposite_order() {
        for id in Pack::list() {
            let files = files_of(id).unwrap();
            let turned = with_pictures_reversed(files.clone()).unwrap();
            let pack = Pack::checked(turned.clone()).unwrap();
            let original = Pack::embedded(id).unwrap();
            for (ours, theirs) in pack.criteria().iter().zip(original.criteria()) {
                for (mode, view) in &ours.modes {
                    let mut back = view.views.clone();
                    back.reverse();
                    assert_eq!(back, theirs.modes[mode].views);
                }
            }
            assert_eq!(with_pictures_reversed(turned).unwrap().len(), files.len());
        }
        let files = files_of("dlebench/v1").unwrap();
        let turned = with_pictures_reversed(files.clone()).unwrap();
        assert_eq!(with_pictures_reversed(turned).unwrap(), files);
    }

    #[test]
    fn tokens_are_estimated_within_reason() {
        assert_eq!(estimated_tokens(""), 0);
        let prose = "The judge looks at both pictures and decides which of the labels fits best.";
        assert!((12..=20).contains(&estimated_tokens(prose)), "{}", estimated_tokens(prose));
    }
}

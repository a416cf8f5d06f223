//! File names with gaps, such as `out/{editor}/{id}_*.png`: what is in the gaps is told apart by
//! name. A gap stays within one part of a path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A name with gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Where it has no gaps yet.
    folder: PathBuf,
    parts: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `*`: anything, also nothing.
    Any,
    /// `{name}`: something.
    Named(String),
}

/// What stands in the gaps, by name.
pub(super) type Gaps = BTreeMap<String, String>;

/// A file that fits, and every way in which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitting {
    pub(super) path: PathBuf,
    pub(super) readings: Vec<Gaps>,
}

/// So many files and folders are looked at; more are a slip, such as a pattern that starts at `/`.
const MOST_LOOKED_AT: usize = 5_000_000;
/// More gaps in one name cannot be told apart.
const MOST_GAPS: usize = 6;
/// A name that could be read in more ways is read in none of the others.
const MOST_READINGS: usize = 64;

/// Whether a text is meant as a pattern.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains('{') || text.contains('*')
}

impl Pattern {
    /// The error says what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut folder = PathBuf::from(if text.starts_with('/') { "/" } else { "" });
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        let names: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        for (place, part) in names.iter().enumerate() {
            let pieces = pieces(part)?;
            let gaps = pieces.iter().any(|piece| !matches!(piece, Piece::Text(_)));
            if parts.is_empty() && !gaps && place + 1 < names.len() {
                folder.push(part);
            } else if *part == ".." {
                return Err("\"..\" cannot stand behind a gap".to_owned());
            } else if *part != "." {
                parts.push(pieces);
            }
        }
        if parts.is_empty() {
            return Err("it names no file".to_owned());
        }
        Ok(Self { folder, parts })
    }

    /// The names of its gaps.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for piece in self.parts.iter().flatten() {
            match piece {
                Piece::Named(name) if !names.contains(&name.as_str()) => names.push(name),
                _ => {}
            }
        }
        names
    }

    /// The names of the gaps that stand before the part with the gap `name`.
    pub(super) fn names_before(&self, name: &str) -> Vec<&str> {
        let is_it = |piece: &Piece| matches!(piece, Piece::Named(own) if own == name);
        let before = self.parts.iter().take_while(|part| !part.iter().any(is_it));
        let named = before.flatten().filter_map(|piece| match piece {
            Piece::Named(name) => Some(name.as_str()),
            _ => None,
        });
        if self.parts.iter().flatten().any(is_it) { named.collect() } else { Vec::new() }
    }

    /// The folder below `base` that it starts at.
    pub(super) fn start(&self, base: &Path) -> PathBuf {
        base.join(&self.folder)
    }

    /// All files below `base` that fit, by name. Links are followed: whoever opens a file checks where
    /// it is.
    pub(super) fn find(&self, base: &Path) -> Result<Vec<Fitting>, String> {
        let start = self.start(base);
        let start = if start.as_os_str().is_empty() { PathBuf::from(".") } else { start };
        let mut looked_at = 0;
        let mut here = vec![Fitting { path: start, readings: vec![Gaps::new()] }];
        for (depth, pieces) in self.parts.iter().enumerate() {
            let last = depth + 1 == self.parts.len();
            let mut below = Vec::new();
            for Fitting { path, readings } in here {
                for (name, path) in listed(&path)? {
                    looked_at += 1;
                    if looked_at > MOST_LOOKED_AT {
                        return Err(format!("more than {MOST_LOOKED_AT} files are below it"));
                    }
                    let fits = |gaps: &Gaps| readings_of(pieces, &name, gaps);
                    let readings: Vec<Gaps> =
                        readings.iter().flat_map(fits).take(MOST_READINGS).collect();
                    if !readings.is_empty() && path.is_dir() != last {
                        below.push(Fitting { path, readings });
                    }
                }
            }
            here = below;
        }
        Ok(here)
    }
}

/// What is in a folder, by name; nothing where there is none. Other systems leave files such as
/// `._a.png` behind.
fn listed(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            all.push((name, entry.path()));
        }
    }
    all.sort();
    Ok(all)
}

fn pieces(part: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = part;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('*') {
            rest = behind;
            if pieces.last() != Some(&Piece::Any) {
                pieces.push(Piece::Any);
            }
        } else if let Some(behind) = rest.strip_prefix('{') {
            let (name, behind) = behind.split_once('}').ok_or("a { has no }")?;
            if name.is_empty() || name.contains(['{', '*']) {
                return Err("write a name between { and }".to_owned());
            }
            pieces.push(Piece::Named(name.to_owned()));
            rest = behind;
        } else {
            let end = rest.find(['{', '*']).unwrap_or(rest.len());
            pieces.push(Piece::Text(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    match pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).count() > MOST_GAPS {
        true => Err(format!("one name has more than {MOST_GAPS} gaps")),
        false => Ok(pieces),
    }
}

/// Every way in which a name fits, given what stands in gaps before it.
fn readings_of(pieces: &[Piece], name: &str, before: &Gaps) -> Vec<Gaps> {
    let mut found = Vec::new();
    read(pieces, name, before, &mut found);
    found
}

fn read(pieces: &[Piece], rest: &str, gaps: &Gaps, found: &mut Vec<Gaps>) {
    if found.len() >= MOST_READINGS {
        return;
    }
    let Some((piece, behind)) = pieces.split_first() else {
        if rest.is_empty() && !found.contains(gaps) {
            found.push(gaps.clone());
        }
        return;
    };
    match piece {
        Piece::Text(text) => {
            if let Some(rest) = rest.strip_prefix(text.as_str()) {
                read(behind, rest, gaps, found);
            }
        }
        Piece::Any => {
            for end in ends(rest, 0, behind) {
                read(behind, &rest[end..], gaps, found);
            }
        }
        Piece::Named(name) => match gaps.get(name) {
            Some(known) => {
                if let Some(rest) = rest.strip_prefix(known.as_str()) {
                    read(behind, rest, gaps, found);
                }
            }
            None => {
                for end in ends(rest, 1, behind) {
                    let mut gaps = gaps.clone();
                    gaps.insert(name.clone(), rest[..end].to_owned());
                    read(behind, &rest[end..], &gaps, found);
                }
            }
        },
    }
}

/// Where a gap of at least `least` bytes may end, so that what stands behind it can follow.
fn ends(rest: &str, least: usize, behind: &[Piece]) -> Vec<usize> {
    match behind.first() {
        None => {
            if rest.len() >= least {
                vec![rest.len()]
            } else {
                Vec::new()
            }
        }
        Some(Piece::Text(text)) => {
            rest.match_indices(text.as_str()).map(|(at, _)| at).filter(|at| *at >= least).collect()
        }
        Some(_) => {
            let all = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            all.filter(|at| *at >= least).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(pattern: &str, name: &str) -> Vec<String> {
        let pattern = Pattern::parse(pattern).unwrap();
        let found = readings_of(&pattern.parts[0], name, &Gaps::new());
        found
            .iter()
            .map(|gaps| gaps.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_name_is_read_in_every_way() {
        assert_eq!(readings("{id}.png", "a.b.png"), ["id=a.b"]);
        assert_eq!(readings("{id}_*.png", "a_b_1.png"), ["id=a", "id=a_b"]);
        assert_eq!(readings("{id}_{editor}.png", "7_x.png"), ["editor=x id=7"]);
        assert_eq!(readings("{a}-{a}.png", "xy-xy.png"), ["a=xy"]);
        for (pattern, name) in [("{id}.png", ".png"), ("{a}-{a}", "x-y"), ("a*", "b"), ("{id}", "")]
        {
            assert!(readings(pattern, name).is_empty(), "{pattern} {name}");
        }
        // Bounded, whatever stands in it.
        assert!(readings("{a}*{b}*{c}*", &"x".repeat(250)).len() <= MOST_READINGS);
    }

    #[test]
    fn files_are_found_by_their_gaps() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "out/one/a_1.png",
            "out/one/b_2.png",
            "out/two/a_1.png",
            "out/two/.a_1.png",
            "out/x.png",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let pattern = Pattern::parse("out/{editor}/{id}_*.png").unwrap();
        assert_eq!(pattern.names(), ["editor", "id"]);
        assert!(pattern.names_before("editor").is_empty());
        let pattern_of_tasks = Pattern::parse("{task}/{editor}/{id}").unwrap();
        assert_eq!(pattern_of_tasks.names_before("editor"), ["task"]);
        let found = pattern.find(folder.path()).unwrap();
        let ids: Vec<&str> = found.iter().map(|one| one.readings[0]["id"].as_str()).collect();
        assert_eq!(ids, ["a", "b", "a"]);
        assert!(Pattern::parse("none/{id}").unwrap().find(folder.path()).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for wrong in ["{id", "{}/a", "{a}{b}{c}{d}{e}{f}{g}", "{a}/../b", "/"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}

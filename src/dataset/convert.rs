//! A data set of others in our own form: `cases.jsonl`, and beside it what people and judges said.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::preset::{People, Said};
use super::problem::Problems;
use super::{DataSet, Entry, PictureFile};
use crate::case::{Facts, REFERENCE, TARGET};
use crate::files;
use crate::hash::Hash;

/// What was written.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Converted {
    pub(crate) cases: usize,
    pub(crate) edits: usize,
    pub(crate) labels: usize,
    pub(crate) votes: usize,
    /// How many answers each recorded judge gave.
    pub(crate) judges: BTreeMap<String, usize>,
    /// What could not be taken along, besides what `dataset check` tells of the cases.
    pub(crate) left_out: Vec<String>,
}

/// Refuses a folder that has something in it, before anything is unpacked there.
pub(crate) fn prepare(out: &Path) -> anyhow::Result<()> {
    if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; name a new folder", out.display());
    }
    files::create_folder(out)
}

/// The folder of pictures in a converted data set.
pub(crate) const PICTURES: &str = "pictures";

/// Writes `set` into the folder `out`, which [`prepare`] has made. Pictures are linked or copied into
/// it, unless they stay where they are or are there already. `step` is called for each case.
pub(crate) fn convert(
    set: &DataSet,
    out: &Path,
    in_place: bool,
    step: &dyn Fn(),
) -> anyhow::Result<Converted> {
    let mut pictures = Pictures { out, root: &set.root, in_place, placed: HashMap::new() };
    let mut converted = Converted::default();
    let mut cases = String::new();
    for entry in &set.cases {
        step();
        match line(entry, &mut pictures)? {
            Some(line) => {
                converted.cases += 1;
                converted.edits += line["edits"].as_object().map_or(0, Map::len);
                cases.push_str(&format!("{line}\n"));
            }
            None => converted
                .left_out
                .push(format!("case {:?}: it has no source picture", entry.case.id)),
        }
    }
    let said = said(set)?;
    write_lines(out, "labels.jsonl", said.labels.iter().map(|one| json!(one)))?;
    write_lines(out, "votes.jsonl", said.votes.iter().map(|one| json!(one)))?;
    converted.labels = said.labels.len();
    converted.votes = said.votes.len();
    let names: Vec<&str> = said.judges.keys().map(String::as_str).collect();
    for (name, lines) in names.iter().zip(said.judges.values()) {
        files::create_folder(&out.join("judges"))?;
        let file = Path::new("judges").join(format!("{}.jsonl", file_name(name)));
        write_lines(out, &file.to_string_lossy(), lines.iter().cloned())?;
        converted.judges.insert((*name).to_owned(), lines.len());
    }
    converted.left_out.extend(said.problems);
    // Last: a folder with cases is whole.
    files::write_atomically(&out.join("cases.jsonl"), cases.as_bytes())?;
    Ok(converted)
}

/// What people and judges said of the records.
fn said(set: &DataSet) -> anyhow::Result<Said> {
    let Some(preset) = set.source.preset else { return Ok(Said::default()) };
    let mut people = People::new(preset);
    set.source.records(true, &mut Problems::default(), &mut |records| {
        for record in records {
            let row = set.source.row(preset, &record, &|_| false);
            people.record(record.line, &record.fields, &row);
        }
    })?;
    Ok(people.finish(&set.source.folder))
}

fn write_lines(out: &Path, name: &str, lines: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    if text.is_empty() { Ok(()) } else { files::write_atomically(&out.join(name), text.as_bytes()) }
}

/// A name that stays one file, and stays itself where it can.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match !name.is_empty() && !name.starts_with('.') && name.chars().all(plain) {
        true => name.to_owned(),
        false => files::slug(name),
    }
}

/// A case as a line; `None` without a source.
fn line(entry: &Entry, pictures: &mut Pictures<'_>) -> anyhow::Result<Option<Value>> {
    let case = &entry.case;
    let Some(source) = pictures.place(&case.source)? else { return Ok(None) };
    let mut line = json!({"id": case.id, "source": source, "instruction": case.instruction});
    let mut facts = case.facts.clone();
    for name in [Facts::TYPE, Facts::TARGET] {
        if let Some(fact) = facts.remove(name) {
            line[name] = json!(fact.text());
        }
    }
    facts.remove(super::source::ROW);
    let mut others = Map::new();
    for (name, file) in &case.others {
        match pictures.place(file)? {
            Some(path) if name == REFERENCE => line[REFERENCE] = json!(path),
            Some(path) => drop(others.insert(name.to_owned(), path.into())),
            None => {}
        }
    }
    let mut edits = Map::new();
    for (editor, file) in &case.edited {
        if let Some(path) = pictures.place(file)? {
            edits.insert(editor.to_owned(), path.into());
        }
    }
    let mut regions = case.regions.clone();
    if let Some(boxes) = regions.remove(TARGET) {
        line["boxes"] = json!(boxes);
    }
    for (name, value) in [
        ("pictures", json!(others)),
        ("edits", json!(edits)),
        ("regions", json!(regions)),
        ("questions", json!(case.questions)),
        ("facts", json!(facts)),
    ] {
        let empty = value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        if !empty {
            line[name] = value;
        }
    }
    Ok(Some(line))
}

/// Where pictures go.
struct Pictures<'a> {
    out: &'a Path,
    root: &'a Path,
    in_place: bool,
    placed: HashMap<PathBuf, String>,
}

impl Pictures<'_> {
    /// The name of a picture in the new file; `None` where it is not there.
    fn place(&mut self, file: &PictureFile) -> anyhow::Result<Option<String>> {
        let Some(path) = file.path() else { return Ok(None) };
        if let Some(known) = self.placed.get(path) {
            return Ok(Some(known.clone()));
        }
        // Unpacked from the data set's file.
        if let Ok(own) = path.strip_prefix(self.out) {
            return Ok(Some(own.to_string_lossy().into_owned()));
        }
        let below = path.strip_prefix(self.root).ok().filter(|way| {
            way.components().all(|part| matches!(part, Component::Normal(_)))
                && way.to_str().is_some_and(|name| !name.contains('\\'))
        });
        let name = match (below, self.in_place) {
            (Some(way), true) => way.to_string_lossy().into_owned(),
            (None, true) => path.canonicalize()?.to_string_lossy().into_owned(),
            (Some(way), false) => format!("{PICTURES}/{}", way.to_string_lossy()),
            // From another root, where the same names may mean other files.
            (None, false) => {
                let hash = Hash::of(path.to_string_lossy().as_bytes());
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{PICTURES}/elsewhere/{}/{name}", &hash.as_str()[..12])
            }
        };
        if !self.in_place {
            let to = self.out.join(&name);
            files::create_folder(to.parent().unwrap_or(self.out))?;
            take(path, &to).with_context(|| format!("cannot copy {}", path.display()))?;
        }
        self.placed.insert(path.to_owned(), name.clone());
        Ok(Some(name))
    }
}

/// Another name for the same file, or a copy where the disk is another.
fn take(from: &Path, to: &Path) -> io::Result<()> {
    let from = from.canonicalize()?;
    fs::hard_link(&from, to).or_else(|_| fs::copy(&from, to).map(drop))
}

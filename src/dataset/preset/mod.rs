//! Data sets of others, each described by a small table: where its records are, what their fields
//! mean, and what people and judges said of them. The tables are `src/dataset/presets/*.toml`.
//!
//! A benchmark that needs more than a table (questions, masks, an order of its own) is an adapter;
//! its preset names the files, and everything else is the adapter's.

mod expression;
mod people;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::expression::Expression;
pub(super) use self::expression::at;
pub(super) use self::people::{People, Said};
use super::fields::Mapping;
use super::pattern::{Gaps, Pattern};
use super::problem::DataSetError;

/// What is known of a data set of others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What `--preset` calls it.
    pub name: String,
    /// What it is.
    pub about: String,
    /// What must be there for it to be this one and no other.
    #[serde(default)]
    recognised: Recognised,
    records: RecordsAt,
    /// What makes a case of a record; without it our own names and the usual ones are looked for.
    #[serde(default)]
    case: Option<CaseTable>,
    /// Where the outputs of editors are, if they are in its folder.
    #[serde(default)]
    outputs: Option<Outputs>,
    #[serde(default)]
    labels: Vec<people::LabelTable>,
    #[serde(default)]
    votes: Option<people::VoteTable>,
    #[serde(default)]
    judges: Vec<people::JudgeTable>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Recognised {
    /// Files that its folder has: each of these patterns fits one.
    files: Vec<String>,
    /// Fields that its records have: all of them.
    fields: Vec<String>,
}

/// Where its records are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordsAt {
    /// Patterns of file names; the first that fits any file counts. What stands in their gaps belongs
    /// to the record.
    files: Vec<String>,
    /// The field of a JSON file that holds the list of them.
    #[serde(default)]
    at: Option<String>,
    /// A JSON file is one object, whose names become the field `_key` of its records.
    #[serde(default)]
    keyed: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    #[serde(default)]
    id: Option<Expression>,
    source: Expression,
    instruction: Expression,
    #[serde(default, rename = "type")]
    kind: Option<Expression>,
    #[serde(default)]
    target: Option<Expression>,
    #[serde(default)]
    boxes: Option<Expression>,
    #[serde(default)]
    reference: Option<Expression>,
    #[serde(default)]
    pictures: BTreeMap<String, Expression>,
    #[serde(default)]
    edits: Vec<EditAt>,
    /// Records of the same id that say the same are one case.
    #[serde(default)]
    merge: bool,
}

/// One edit of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditAt {
    editor: Expression,
    picture: Expression,
}

/// Where the outputs of editors are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outputs {
    pub(super) files: String,
    /// What stands where an editor's name would, and is none.
    #[serde(default)]
    pub(super) except: Vec<String>,
}

const TABLES: [&str; 13] = [
    include_str!("../presets/dlebench.toml"),
    include_str!("../presets/editreward-bench.toml"),
    include_str!("../presets/editreward-compass.toml"),
    include_str!("../presets/editscore-bench.toml"),
    include_str!("../presets/emu-edit.toml"),
    include_str!("../presets/gedit-bench.toml"),
    include_str!("../presets/humanedit.toml"),
    include_str!("../presets/imagenhub.toml"),
    include_str!("../presets/imgedit.toml"),
    include_str!("../presets/kris-bench.toml"),
    include_str!("../presets/magicbrush.toml"),
    include_str!("../presets/mmrb2.toml"),
    include_str!("../presets/vcreward-bench.toml"),
];

/// Every preset, by name. A table that cannot be read is left out; a test holds that there is none.
static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| TABLES.iter().filter_map(|table| toml::from_str(table).ok()).collect());

impl Preset {
    /// All of them, by name.
    pub fn all() -> &'static [Self] {
        &PRESETS
    }

    /// The one of this name.
    pub fn named(name: &str) -> Result<&'static Self, DataSetError> {
        let found = Self::all().iter().find(|one| one.name.eq_ignore_ascii_case(name.trim()));
        found.ok_or_else(|| DataSetError::NoPreset {
            name: name.to_owned(),
            known: Self::all().iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// The one that a folder certainly is.
    pub(super) fn of_folder(folder: &Path) -> Option<&'static Self> {
        let fits = |pattern: &String| {
            let pattern = Pattern::parse(pattern);
            pattern.and_then(|pattern| pattern.find(folder)).is_ok_and(|found| !found.is_empty())
        };
        let is_it =
            |one: &&Self| !one.recognised.files.is_empty() && one.recognised.files.iter().all(fits);
        only(Self::all().iter().filter(is_it))
    }

    /// The one that records with these fields certainly are.
    pub(super) fn of_fields(seen: &BTreeSet<String>) -> Option<&'static Self> {
        let is_it = |one: &&Self| {
            let fields = &one.recognised.fields;
            !fields.is_empty() && fields.iter().all(|field| seen.contains(field))
        };
        only(Self::all().iter().filter(is_it))
    }

    /// The files of its records in a folder, with what stands in the gaps of their names.
    pub(super) fn files(&self, folder: &Path) -> Result<Vec<(PathBuf, Gaps)>, DataSetError> {
        let fail = |what| DataSetError::Folder { folder: folder.to_owned(), what };
        for pattern in &self.records.files {
            let found = Pattern::parse(pattern).and_then(|pattern| pattern.find(folder));
            let found =
                found.map_err(|what| fail(format!("cannot be read as {}: {what}", self.name)))?;
            if !found.is_empty() {
                let first = |mut readings: Vec<Gaps>| readings.drain(..).next().unwrap_or_default();
                return Ok(found.into_iter().map(|one| (one.path, first(one.readings))).collect());
            }
        }
        Err(fail(format!(
            "is no {}: there is no file {} in it",
            self.name,
            self.records.files.join(" nor ")
        )))
    }

    /// The field that holds the list of records, if one does.
    pub(super) fn list_at(&self) -> Option<&str> {
        self.records.at.as_deref()
    }

    /// Whether a JSON file names its records.
    pub(super) fn is_keyed(&self) -> bool {
        self.records.keyed
    }

    pub(super) fn outputs(&self) -> Option<&Outputs> {
        self.outputs.as_ref()
    }

    /// Whether rows are made of its records, and not taken as they are.
    pub(super) fn makes_rows(&self) -> bool {
        self.case.is_some()
    }

    pub(super) fn merges(&self) -> bool {
        self.case.as_ref().is_some_and(|case| case.merge)
    }

    /// A record in our own words: the fields of `cases.jsonl`. What the table does not name is kept as
    /// facts; what the user says of a field counts before the table. `is_there` tells whether a file is.
    pub(super) fn row(
        &self,
        record: &Map<String, Value>,
        mapping: &Mapping,
        is_there: &dyn Fn(&str) -> bool,
    ) -> Map<String, Value> {
        let Some(table) = &self.case else { return record.clone() };
        let mut row = Map::new();
        let mut used: BTreeSet<&str> = BTreeSet::new();
        let values = [
            ("id", table.id.as_ref()),
            ("instruction", Some(&table.instruction)),
            ("type", table.kind.as_ref()),
            ("target", table.target.as_ref()),
            ("boxes", table.boxes.as_ref()),
        ];
        let values =
            values.into_iter().map(|(name, one)| (name, one.and_then(|one| one.value(record))));
        let pictures = [("source", Some(&table.source)), ("reference", table.reference.as_ref())];
        let pictures = pictures
            .into_iter()
            .map(|(name, one)| (name, one.and_then(|one| one.picture(record, is_there))));
        for (name, value) in values.chain(pictures) {
            row.extend(value.map(|value| (name.to_owned(), value)));
        }
        for id in ["id", "type"] {
            // Numbers are names here.
            if let Some(Value::Number(number)) = row.get(id).cloned() {
                row.insert(id.to_owned(), number.to_string().into());
            }
        }
        let pictures = table
            .pictures
            .iter()
            .filter_map(|(name, place)| Some((name.clone(), place.picture(record, is_there)?)));
        let pictures: Map<String, Value> = pictures.collect();
        let edits: Map<String, Value> = self.edits(record).into_iter().collect();
        let expressions = [Some(&table.source), Some(&table.instruction), table.kind.as_ref()]
            .into_iter()
            .chain([table.reference.as_ref(), table.boxes.as_ref(), table.target.as_ref()])
            .flatten()
            .chain(table.pictures.values())
            .chain(table.edits.iter().map(|edit| &edit.picture));
        used.extend(
            expressions
                .flat_map(Expression::fields)
                .map(|name| name.split('.').next().unwrap_or_default())
                // What stands in a path is also known of the case: outputs may be found by it.
                .filter(|name| !record.get(*name).is_some_and(|value| self.is_gap(name, value))),
        );
        for (name, value) in [("pictures", pictures), ("edits", edits)] {
            if !value.is_empty() {
                row.insert(name.to_owned(), value.into());
            }
        }
        for (field, name) in mapping.names() {
            match name {
                "" => drop(row.remove(field)),
                name => {
                    if let Some(value) = at(record, name) {
                        row.insert(field.to_owned(), value.clone());
                    }
                    used.insert(name.split('.').next().unwrap_or_default());
                }
            }
        }
        let facts: Map<String, Value> = record
            .iter()
            .filter(|(name, _)| !used.contains(name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !facts.is_empty() {
            row.insert("facts".to_owned(), json!(facts));
        }
        row
    }

    /// Whether a field of a record comes from the name of its file, or names it.
    fn is_gap(&self, name: &str, value: &Value) -> bool {
        let gap = format!("{{{name}}}");
        value.is_string()
            && (name == KEY || self.records.files.iter().any(|pattern| pattern.contains(&gap)))
    }

    /// The edits of a record, each with its editor. Where both have the same name, or none, they are
    /// told apart by their place.
    fn edits(&self, record: &Map<String, Value>) -> Vec<(String, Value)> {
        let Some(table) = &self.case else { return Vec::new() };
        let edits: Vec<(String, Value)> = table
            .edits
            .iter()
            .filter_map(|edit| Some((edit.editor.text(record)?, edit.picture.value(record)?)))
            .collect();
        let names: BTreeSet<&String> = edits.iter().map(|(name, _)| name).collect();
        if names.len() == edits.len() {
            return edits;
        }
        let letters = ["A", "B", "C", "D", "E", "F", "G", "H"];
        letters
            .iter()
            .map(ToString::to_string)
            .zip(edits.into_iter().map(|(_, file)| file))
            .collect()
    }
}

/// The field that holds a record's name in a JSON object of records.
pub(super) const KEY: &str = "_key";

fn only<T>(mut some: impl Iterator<Item = T>) -> Option<T> {
    let first = some.next();
    if some.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_can_be_read_and_has_a_name_of_its_own() {
        for table in TABLES {
            let preset = toml::from_str::<Preset>(table).unwrap();
            assert!(!preset.about.is_empty());
            for pattern in preset.records.files.iter().chain(&preset.recognised.files) {
                Pattern::parse(pattern).unwrap();
            }
        }
        let names: Vec<&str> = Preset::all().iter().map(|one| one.name.as_str()).collect();
        let sorted: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(Vec::from_iter(sorted), names);
        assert!(Preset::named("ImagenHub").is_ok() && Preset::named("none").is_err());
    }
}

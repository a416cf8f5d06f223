//! `run.json`: what is judged in a run and with which settings; and what differs where the settings
//! have changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use deeplook_tools::scene::cut;
use serde::Serialize;
use serde_json::{Value, json};

use super::select::Shard;
use crate::case::{Condition, Facts};
use crate::files;
use crate::key::JudgementKey;
use crate::model::parameters::hide_secrets;
use crate::prompt::Mode;
use crate::received;
use crate::trace::ResultLine;
use crate::trace::stored::{self, Form};

/// What this program writes; it reads the one before too, but does not go on with such a run.
const FORMAT: u64 = 2;
const OLDEST: u64 = 1;

/// More is no record, even of a million edits.
const LARGEST: u64 = 256 << 20;

/// More repetitions of a judgement are a mistake.
const MOST_REPEATS: u32 = 10_000;

/// What `run.json` says.
#[derive(Debug, Clone)]
pub(crate) struct RunRecord {
    pub format: u64,
    /// When the run was first started.
    pub started: String,
    /// The file of cases, and the folder of edits if one was named.
    pub data_set: PathBuf,
    pub edits: Option<PathBuf>,
    /// What the last command wanted to have judged.
    pub planned: Planned,
    /// Everything that can change a verdict, for each mode.
    pub settings: BTreeMap<Mode, Value>,
}

/// The judgements that were wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub criteria: BTreeSet<String>,
    /// The facts of the cases that a criterion applies to, where it does not apply to all.
    pub applies: BTreeMap<String, Vec<Condition>>,
    pub modes: BTreeSet<Mode>,
    pub repeats: u32,
    /// Of all shards together.
    pub edits: BTreeMap<String, BTreeSet<String>>,
    /// What is known of each case: what is not judged yet is reported under the same headings.
    pub facts: BTreeMap<String, Facts>,
    pub shard: Option<Shard>,
}

impl Planned {
    /// A fact of a case, in words.
    fn fact(&self, case: &str, name: &str) -> Option<String> {
        self.facts.get(case).and_then(|facts| facts.text(name)).map(Cow::into_owned)
    }

    /// The judgements of this run's shard.
    pub(crate) fn keys(&self) -> impl Iterator<Item = JudgementKey> + '_ {
        let edits = self.edits.iter().flat_map(|(case, editors)| {
            editors.iter().map(move |editor| (case.as_str(), editor.as_str()))
        });
        let ours =
            edits.filter(|(case, editor)| self.shard.is_none_or(|shard| shard.has(case, editor)));
        ours.flat_map(|(case, editor)| self.keys_of(case, editor))
    }

    /// Whether a criterion applies to a case: what does not apply is not wanted, and no gap.
    fn applies(&self, criterion: &str, case: &str) -> bool {
        let Some(conditions) = self.applies.get(criterion) else { return true };
        let nothing = Facts::default();
        Condition::all_met(conditions, self.facts.get(case).unwrap_or(&nothing))
    }

    /// The judgements of one edit.
    pub(crate) fn keys_of<'a>(
        &'a self,
        case: &'a str,
        editor: &'a str,
    ) -> impl Iterator<Item = JudgementKey> + 'a {
        let kinds = self
            .modes
            .iter()
            .flat_map(move |mode| self.criteria.iter().map(move |criterion| (*mode, criterion)))
            .filter(move |(_, criterion)| self.applies(criterion, case));
        kinds.flat_map(move |(mode, criterion)| {
            (0..self.repeats).map(move |repeat| JudgementKey {
                case: case.to_owned(),
                editor: editor.to_owned(),
                criterion: criterion.clone(),
                mode,
                repeat,
            })
        })
    }
}

impl RunRecord {
    pub(crate) fn new(
        data_set: PathBuf,
        edits: Option<PathBuf>,
        planned: Planned,
        settings: BTreeMap<Mode, Value>,
    ) -> Self {
        let started = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
        Self { format: FORMAT, started, data_set, edits, planned, settings }
    }

    /// What is stored of it.
    fn stored(&self) -> stored::Run {
        let Self { format, started, data_set, edits, planned, settings } = self.clone();
        let Planned { criteria, applies, modes, repeats, edits: of_cases, facts, shard } = planned;
        let in_words = |all: Vec<Condition>| all.into_iter().map(String::from).collect();
        let applies = applies.into_iter().map(|(id, all)| (id, in_words(all))).collect();
        let shard = shard.map(|shard| shard.to_string());
        let (modes, facts) = (Form::of(modes), Form::of(facts));
        let planned =
            stored::Planned::new(criteria, applies, modes, repeats, of_cases, facts, shard);
        let settings = Form::of(settings);
        stored::Run { format, started, data_set, edits, planned, settings }
    }

    /// What was stored.
    fn recalled(stored: stored::Run) -> Result<Self, String> {
        let stored::Run { format, started, data_set, edits, mut planned, settings } = stored;
        let facts = planned.all_facts().back();
        let shard = planned.shard.map(|shard| shard.parse()).transpose()?;
        let conditions = |all: Vec<String>| {
            all.into_iter().map(Condition::try_from).collect::<Result<Vec<_>, String>>()
        };
        let applies = planned.applies.into_iter();
        let applies = applies.map(|(id, all)| Ok::<_, String>((id, conditions(all)?)));
        let planned = Planned {
            criteria: planned.criteria,
            applies: applies.collect::<Result<_, _>>()?,
            modes: planned.modes.back(),
            repeats: planned.repeats,
            edits: planned.edits,
            facts,
            shard,
        };
        Ok(Self { format, started, data_set, edits, planned, settings: settings.back() })
    }

    fn path(run: &Path) -> PathBuf {
        run.join("run.json")
    }

    /// The record in the folder of a run; `None` where there is none yet.
    pub(crate) fn read(run: &Path) -> anyhow::Result<Option<Self>> {
        let path = Self::path(run);
        let text = match received::read(&path, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let broken = || {
            format!(
                "{} is not a record of a run; restore it, or remove it and start again: what was judged is kept",
                path.display()
            )
        };
        let value: Value = serde_json::from_slice(&text).with_context(broken)?;
        if !value["format"].as_u64().is_some_and(|format| (OLDEST..=FORMAT).contains(&format)) {
            bail!(
                "{} has format {}, this program reads formats {OLDEST} to {FORMAT}; use the version of deeplook that \
                 wrote it",
                path.display(),
                value["format"]
            );
        }
        let stored: stored::Run = serde_json::from_value(value).with_context(broken)?;
        let mut record = Self::recalled(stored).map_err(anyhow::Error::msg).with_context(broken)?;
        // Nobody should have kept one: it is not shown and not written again.
        for settings in record.settings.values_mut() {
            settings.pointer_mut("/model/params").map(hide_secrets);
        }
        if record.planned.repeats > MOST_REPEATS {
            bail!("{}: planned.repeats is more than {MOST_REPEATS}", path.display());
        }
        Ok(Some(record))
    }

    /// Whether an older deeplook has judged, whose settings cannot be compared with ours.
    pub(crate) fn is_old(&self) -> bool {
        self.format < FORMAT
    }

    /// What was wanted and is in none of the `lines`, as lines without an outcome: whoever reports on
    /// a run that is not finished says so.
    pub(crate) fn open_lines(&self, lines: &[ResultLine]) -> Vec<ResultLine> {
        let known: BTreeSet<JudgementKey> = lines.iter().filter_map(ResultLine::key).collect();
        let open = self.planned.keys().filter(|key| !known.contains(key));
        let line = |JudgementKey { case, editor, criterion, mode, repeat }: JudgementKey| {
            let settings = self.settings.get(&mode).unwrap_or(&Value::Null);
            let pack = |field: &str| settings["pack"][field].as_str();
            let prompts = || {
                let hash = pack("hash")?.get(..12)?;
                Some(format!("{}/{}@{hash}", pack("name")?, pack("version")?))
            };
            let line = json!({
                "case": case,
                "editor": editor,
                "type": self.planned.fact(&case, Facts::TYPE),
                "facts": self.planned.facts.get(&case),
                "criterion": criterion,
                "mode": mode,
                "repeat": repeat,
                "model": settings["model"]["id"],
                "prompts": prompts(),
                "variant": pack("variant"),
                "reason": "it is wanted, and not judged yet",
            });
            serde_json::from_value(line).ok()
        };
        open.filter_map(line).collect()
    }

    /// Writes the record, whole or not at all.
    pub(crate) fn write(&self, run: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(&self.stored())?;
        text.push(b'\n');
        files::write_atomically(&Self::path(run), &text)
    }
}

/// Whether a run can begin in `folder`: nothing is there but what one that was killed at its very
/// beginning leaves behind.
pub(crate) fn is_vacant(folder: &Path) -> bool {
    let left = |name: &str| name == ".lock" || name.starts_with(".run.json.");
    let Ok(mut entries) = fs::read_dir(folder) else { return true };
    entries.all(|entry| entry.is_ok_and(|entry| left(&entry.file_name().to_string_lossy())))
}

/// A setting that is not what it was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Which one, e.g. `model.params.temperature`.
    pub field: String,
    /// What it was.
    pub before: Value,
    /// What it is now.
    pub after: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |value: &Value| cut(&value.to_string(), 100);
        write!(f, "{}: {} before, {} now", self.field, short(&self.before), short(&self.after))
    }
}

/// What does not change a verdict: prices, and the words in which a missing tool is explained (that
/// it is missing shows in the specifications).
const IGNORED: [&str; 2] = ["model.price", "tools.unavailable"];

/// What differs between the settings of two runs, in the modes that both have.
pub(crate) fn differences(
    before: &BTreeMap<Mode, Value>,
    after: &BTreeMap<Mode, Value>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (mode, before) in before {
        if let Some(after) = after.get(mode) {
            compare("", before, after, &mut found);
        }
    }
    found.sort_by(|a, b| a.field.cmp(&b.field));
    found.dedup();
    found
}

fn compare(field: &str, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    if before == after || IGNORED.contains(&field) {
        return;
    }
    let within = |name: &str| match field {
        "" => name.to_owned(),
        _ => format!("{field}.{name}"),
    };
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let side = |map: &serde_json::Map<String, Value>| {
                    map.get(name).cloned().unwrap_or_default()
                };
                compare(&within(name), &side(a), &side(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (a, b)) in a.iter().zip(b).enumerate() {
                // The name of a tool says more than its place.
                let name = a["name"].as_str().map_or(place.to_string(), str::to_owned);
                compare(&within(&name), a, b, found);
            }
        }
        _ => found.push(Difference {
            field: field.to_owned(),
            before: before.clone(),
            after: after.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named_by_their_field() {
        let settings = |value: Value| BTreeMap::from([(Mode::Tool, value)]);
        let before = settings(json!({
            "model": { "id": "a", "price": { "input": 1 }, "params": {} },
            "tools": { "specs": [{ "name": "zoom_in", "description": "old" }], "unavailable": {} },
        }));
        let after = settings(json!({
            "model": { "id": "b", "price": null, "params": { "seed": 1 } },
            "tools": { "specs": [{ "name": "zoom_in", "description": "new" }], "unavailable": { "x": "y" } },
        }));
        let found = differences(&before, &after);
        let fields: Vec<&str> = found.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["model.id", "model.params.seed", "tools.specs.zoom_in.description"]);
        assert_eq!(found[1].to_string(), "model.params.seed: null before, 1 now");
        assert_eq!(differences(&before, &before), []);
        let other_mode = BTreeMap::from([(Mode::Plain, json!(1))]);
        assert_eq!(differences(&before, &other_mode), [], "a mode may be added");
    }
}

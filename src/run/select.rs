//! Which edits of a data set are judged, and which part of a run this is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use crate::case::Condition;
use crate::dataset::Entry;
use crate::hash::Hash;
use crate::key::JudgementKey;

/// A judgement to be made.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The place of the case in the data set.
    pub case: usize,
    pub key: JudgementKey,
}

/// Part I of N of a run's judgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    part: u64,
    of: u64,
}

impl Shard {
    /// Whether an edit is in this part. All judgements of one edit are in the same, so that they
    /// can share what tools saw.
    pub(crate) fn has(self, case: &str, editor: &str) -> bool {
        let hash = Hash::of(format!("{case}\n{editor}").as_bytes());
        let number = u64::from_str_radix(&hash.as_str()[..15], 16).unwrap_or(0);
        number % self.of == self.part - 1
    }
}

impl Shard {
    /// The part that a scheduler gives to this process: by Slurm's variables of an array, or by the
    /// index of a Kubernetes job, whose number of parts `DEEPLOOK_SHARDS` must say.
    pub(crate) fn of_environment(
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let number = |name: &str| {
            let text = variable(name).filter(|text| !text.trim().is_empty());
            let parsed = text.as_deref().map(|text| text.trim().parse::<u64>());
            parsed.transpose().map_err(|_| format!("{name} is {text:?}, not a number"))
        };
        let of = number("DEEPLOOK_SHARDS")?;
        let (part, count) = if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(1);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            (
                task.checked_sub(first).map(|behind| behind / step + 1),
                number("SLURM_ARRAY_TASK_COUNT")?,
            )
        } else if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            (index.checked_add(1), None)
        } else {
            return Err("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set; \
                        start it in an array or an indexed job, or name the part, such as 2/8"
                .to_owned());
        };
        let of = of.or(count).ok_or("set DEEPLOOK_SHARDS to the number of parts")?;
        let part = part.unwrap_or(0);
        format!("{part}/{of}").parse().map_err(|_| format!("there is no part {part} of {of}"))
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(part, of)| {
            Some((part.trim().parse::<u64>().ok()?, of.trim().parse::<u64>().ok()?))
        });
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err("expected I/N with I from 1 to N, such as 2/8".to_owned()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

/// Which edits of a data set are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Selection {
    /// Only these, if any.
    pub editors: Vec<String>,
    /// Only these, if any.
    pub cases: Vec<String>,
    /// Only cases whose facts meet these.
    #[serde(rename = "where")]
    pub conditions: Vec<Condition>,
    /// Only the first so many cases.
    pub limit: Option<NonZeroUsize>,
    /// Only these, by case and editor.
    pub only: Option<BTreeSet<(String, String)>>,
    /// Only this part of them.
    pub shard: Option<Shard>,
}

impl Selection {
    /// A condition that no case meets is a slip: what there is, is told.
    fn check_conditions(&self, cases: &[Entry]) -> anyhow::Result<()> {
        for condition in &self.conditions {
            let facts = || cases.iter().map(|entry| &entry.case.facts);
            if facts().any(|facts| condition.is_met_by(facts)) {
                continue;
            }
            let values: BTreeSet<String> = facts()
                .filter_map(|facts| Some(facts.text(&condition.name)?.into_owned()))
                .collect();
            let names: BTreeSet<&str> = facts().flatten().map(|(name, _)| name).collect();
            let some = |all: Vec<String>| all.into_iter().take(12).collect::<Vec<_>>().join(", ");
            match values.is_empty() {
                true => bail!(
                    "no case has a fact {:?}; there are {}",
                    condition.name,
                    some(names.into_iter().map(str::to_owned).collect())
                ),
                false => bail!(
                    "no case has {condition}; there {:?} is {}",
                    condition.name,
                    some(values.into_iter().collect())
                ),
            }
        }
        Ok(())
    }

    /// The edits that are wanted: each case's place in the data set, and its editors.
    pub(crate) fn edits<'a>(
        &self,
        cases: &'a [Entry],
    ) -> anyhow::Result<Vec<(usize, Vec<&'a str>)>> {
        let known = |what: &str, wanted: &[String], known: &BTreeMap<&str, ()>| {
            let Some(name) = wanted.iter().find(|name| !known.contains_key(name.as_str())) else {
                return Ok(());
            };
            let mut names: Vec<&str> = known.keys().copied().take(12).collect();
            if known.len() > names.len() {
                names.push("…");
            }
            bail!("there is no {what} {name:?} in the data set; there are {}", names.join(", "))
        };
        let ids = cases.iter().map(|entry| (entry.case.id.as_str(), ())).collect();
        known("case", &self.cases, &ids)?;
        let editors = cases.iter().flat_map(|entry| entry.edits().keys());
        known("editor", &self.editors, &editors.map(|name| (name, ())).collect())?;
        let wanted =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|n| n == name);
        self.check_conditions(cases)?;
        let is_wanted = |entry: &Entry| {
            wanted(&self.cases, &entry.case.id)
                && Condition::all_met(&self.conditions, &entry.case.facts)
        };
        let chosen = cases.iter().enumerate().filter(|(_, entry)| is_wanted(entry));
        let chosen = chosen.take(self.limit.map_or(usize::MAX, NonZeroUsize::get));
        Ok(chosen
            .map(|(place, entry)| {
                let editors = entry.edits().keys().filter(|name| wanted(&self.editors, name));
                let is_chosen = |editor: &&str| {
                    let edit = || (entry.case.id.clone(), (*editor).to_owned());
                    self.only.as_ref().is_none_or(|only| only.contains(&edit()))
                };
                (place, editors.filter(is_chosen).collect::<Vec<_>>())
            })
            .filter(|(_, editors)| self.only.is_none() || !editors.is_empty())
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_cover_everything() {
        for of in [1, 3, 7] {
            let shards: Vec<Shard> =
                (1..=of).map(|part| format!("{part}/{of}").parse().unwrap()).collect();
            let mut sizes = vec![0; shards.len()];
            for case in 0..200 {
                let mut holders =
                    (0..shards.len()).filter(|place| shards[*place].has(&case.to_string(), "e"));
                sizes[holders.next().unwrap()] += 1;
                assert_eq!(holders.next(), None);
            }
            assert!(sizes.iter().all(|size| *size > 100 / shards.len()), "{sizes:?}");
        }
    }

    #[test]
    fn a_scheduler_says_which_part_it_is() {
        let shard = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
            };
            Shard::of_environment(&variable).map(|shard| shard.to_string())
        };
        let slurm = |id: &str, first: &str, count: &str, step: &str| {
            shard(&[
                ("SLURM_ARRAY_TASK_ID", id),
                ("SLURM_ARRAY_TASK_MIN", first),
                ("SLURM_ARRAY_TASK_COUNT", count),
                ("SLURM_ARRAY_TASK_STEP", step),
            ])
        };
        assert_eq!(slurm("3", "1", "8", "1").unwrap(), "3/8");
        assert_eq!(slurm("0", "0", "4", "1").unwrap(), "1/4");
        assert_eq!(slurm("7", "1", "4", "2").unwrap(), "4/4");
        assert!(slurm("9", "1", "8", "1").is_err() && slurm("x", "1", "8", "1").is_err());
        // One task of an array that is started alone keeps its part.
        let alone = [
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_TASK_COUNT", "1"),
            ("DEEPLOOK_SHARDS", "8"),
        ];
        assert_eq!(shard(&alone).unwrap(), "3/8");
        let indexed = [("JOB_COMPLETION_INDEX", "0"), ("DEEPLOOK_SHARDS", "5")];
        assert_eq!(shard(&indexed).unwrap(), "1/5");
        assert!(shard(&indexed[..1]).unwrap_err().contains("DEEPLOOK_SHARDS"));
        assert!(shard(&[]).unwrap_err().contains("JOB_COMPLETION_INDEX"));
    }

    #[test]
    fn only_parts_that_exist_are_shards() {
        for bad in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/3", "1/3/5"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!("2/8".parse::<Shard>().unwrap().to_string(), "2/8");
    }
}

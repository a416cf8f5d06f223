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
    fn only_parts_that_exist_are_shards() {
        for bad in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/3", "1/3/5"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!("2/8".parse::<Shard>().unwrap().to_string(), "2/8");
    }
}

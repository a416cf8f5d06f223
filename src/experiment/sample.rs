//! A part of the edits that is balanced: as many of every kind as there are.

use std::collections::BTreeMap;

use super::plan::{Sample, Trait};
use crate::case::Facts;
use crate::hash::Hash;

/// An edit that can be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The case.
    pub case: String,
    /// Who edited.
    pub editor: String,
    /// What is known of the case.
    pub facts: Facts,
    /// What people say of it.
    pub label: Option<String>,
    /// The part of the picture that the target covers.
    pub area: Option<f64>,
}

/// Chooses edits: the kinds take turns, so that a rare kind is not lost, and within a kind the seed
/// decides. The same choices and seed give the same sample, in whatever order the choices come.
pub fn choose(choices: &[Choice], sample: &Sample) -> Vec<(String, String)> {
    let area_of = area_classes(choices);
    let mut strata: BTreeMap<Vec<String>, Vec<(Hash, &Choice)>> = BTreeMap::new();
    for choice in choices {
        let of = |which: &Trait| match which {
            Trait::Label => choice.label.clone().unwrap_or_default(),
            Trait::Area => area_of(choice.area),
            Trait::Editor => choice.editor.clone(),
            Trait::Fact(name) => choice.facts.text(name).unwrap_or_default().into_owned(),
        };
        let stratum = sample.balance.iter().map(of).collect();
        strata.entry(stratum).or_default().push((draw(sample.seed, choice), choice));
    }
    let mut strata: Vec<_> = strata.into_values().collect();
    for stratum in &mut strata {
        stratum.sort_by(|a, b| a.0.cmp(&b.0));
    }
    // Which kind comes first is drawn too: the last round does not reach all of them.
    strata.sort_by(|a, b| a[0].0.cmp(&b[0].0));
    let rounds = strata.iter().map(Vec::len).max().unwrap_or(0);
    let mut chosen: Vec<(String, String)> = (0..rounds)
        .flat_map(|round| strata.iter().filter_map(move |stratum| stratum.get(round)))
        .take(sample.edits)
        .map(|(_, choice)| (choice.case.clone(), choice.editor.clone()))
        .collect();
    chosen.sort();
    chosen
}

/// A number for each edit that only the seed changes.
fn draw(seed: u64, choice: &Choice) -> Hash {
    Hash::of(format!("{seed}\n{}\n{}", choice.case, choice.editor).as_bytes())
}

/// Small, middling and large targets, a third of the edits each.
fn area_classes(choices: &[Choice]) -> impl Fn(Option<f64>) -> String {
    let mut areas: Vec<f64> = choices.iter().filter_map(|choice| choice.area).collect();
    areas.sort_by(f64::total_cmp);
    let bound = |third: usize| areas.get(areas.len() * third / 3).copied().unwrap_or(f64::MAX);
    let bounds = [bound(1), bound(2)];
    move |area| match area {
        None => String::new(),
        Some(area) => bounds.iter().filter(|bound| area >= **bound).count().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Vec<Choice> {
        // Ninety of one kind, ten of another.
        (0..100)
            .map(|n| Choice {
                case: format!("case {n}"),
                editor: "e".to_owned(),
                facts: [("type".to_owned(), if n < 90 { "common" } else { "rare" }.into())]
                    .into_iter()
                    .collect(),
                label: None,
                area: Some(f64::from(n) / 1000.0),
            })
            .collect()
    }

    fn sample(edits: usize, seed: u64, balance: &[Trait]) -> Sample {
        Sample { edits, seed, balance: balance.to_vec() }
    }

    #[test]
    fn a_rare_kind_is_as_frequent_as_a_common_one() {
        let chosen = choose(&choices(), &sample(20, 1, &[Trait::Fact("type".to_owned())]));
        let rare =
            chosen.iter().filter(|(case, _)| case.len() == 7 && case > &"case 89".to_owned());
        assert_eq!((chosen.len(), rare.count()), (20, 10));
    }

    #[test]
    fn the_seed_decides_and_nothing_else() {
        let (all, mut backwards) = (choices(), choices());
        backwards.reverse();
        let traits = [Trait::Fact("type".to_owned()), Trait::Area];
        let chosen = choose(&all, &sample(15, 1, &traits));
        assert_eq!(choose(&backwards, &sample(15, 1, &traits)), chosen);
        assert_ne!(choose(&all, &sample(15, 2, &traits)), chosen);
    }

    #[test]
    fn no_more_than_there_are() {
        assert_eq!(choose(&choices(), &sample(1000, 1, &[])).len(), 100);
        assert!(choose(&[], &sample(5, 1, &[Trait::Area])).is_empty());
    }
}

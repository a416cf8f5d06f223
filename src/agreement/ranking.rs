//! What is compared of an answer: the rank of its label, or what it is worth where it has none.

use crate::prompt::{Criterion, Rubric};

/// The labels of a criterion and their ranks; higher is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The criterion's id.
    pub criterion: String,
    /// The criterion's name.
    pub name: String,
    /// From the worst to the best; none where answers are compared as numbers.
    pub labels: Vec<(String, f64)>,
}

impl Ranking {
    /// The rankings of all criteria of a pack.
    pub fn of_rubric(rubric: &Rubric) -> Vec<Self> {
        rubric.criteria.iter().map(Self::of).collect()
    }

    /// What is compared as numbers, because no pack knows it.
    pub fn of_numbers(criterion: &str) -> Self {
        let criterion = criterion.trim().to_owned();
        Self { name: criterion.clone(), criterion, labels: Vec::new() }
    }

    fn of(criterion: &Criterion) -> Self {
        // A label that is right in one case and wrong in another has no rank.
        let ranked = criterion.labels().iter().filter(|one| criterion.score(&one.name).is_some());
        let mut labels: Vec<(String, f64)> =
            ranked.map(|label| (label.name.clone(), f64::from(label.rank))).collect();
        labels.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self { criterion: criterion.id.clone(), name: criterion.name.clone(), labels }
    }

    /// The ranking of the criterion of this id or name, whatever its case.
    pub fn find<'a>(rankings: &'a [Self], criterion: &str) -> Option<&'a Self> {
        let same = |name: &str| name.eq_ignore_ascii_case(criterion.trim());
        rankings.iter().find(|one| same(&one.criterion) || same(&one.name))
    }

    /// What is compared of a label: its rank, whatever its case; a rank stands for its label. Where
    /// there are no labels, the number that it is.
    pub fn rank(&self, label: &str) -> Option<f64> {
        let label = label.trim();
        if self.labels.is_empty() {
            return label.parse().ok().filter(|number: &f64| number.is_finite());
        }
        let same =
            |name: &str, rank: f64| name.eq_ignore_ascii_case(label) || rank.to_string() == label;
        self.labels.iter().find(|(name, rank)| same(name, *rank)).map(|(_, rank)| *rank)
    }

    /// Its labels, for people.
    pub fn names(&self) -> String {
        match self.labels.is_empty() {
            true => "any number".to_owned(),
            false => {
                self.labels.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

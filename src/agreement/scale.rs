//! The labels of a criterion as ranks.

use crate::prompt::{Criterion, Pack};

/// The labels of a criterion and their ranks; higher is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// The criterion's id.
    pub criterion: String,
    /// The criterion's name.
    pub name: String,
    /// From the worst to the best.
    pub labels: Vec<(String, f64)>,
}

impl Scale {
    /// The scales of all criteria of a pack.
    pub fn of_pack(pack: &Pack) -> Vec<Self> {
        pack.criteria().iter().map(Self::of).collect()
    }

    fn of(criterion: &Criterion) -> Self {
        let labels = criterion.labels().iter();
        let mut labels: Vec<(String, f64)> =
            labels.map(|label| (label.name.clone(), f64::from(label.rank))).collect();
        labels.sort_by(|a, b| a.1.total_cmp(&b.1));
        Self { criterion: criterion.id.clone(), name: criterion.name.clone(), labels }
    }

    /// The scale of the criterion of this id or name, whatever its case.
    pub fn find<'a>(scales: &'a [Self], criterion: &str) -> Option<&'a Self> {
        let same = |name: &str| name.eq_ignore_ascii_case(criterion.trim());
        scales.iter().find(|scale| same(&scale.criterion) || same(&scale.name))
    }

    /// The rank of a label, whatever its case; a rank stands for its label.
    pub fn rank(&self, label: &str) -> Option<f64> {
        let label = label.trim();
        let same =
            |name: &str, rank: f64| name.eq_ignore_ascii_case(label) || rank.to_string() == label;
        self.labels.iter().find(|(name, rank)| same(name, *rank)).map(|(_, rank)| *rank)
    }

    /// Its labels, for people.
    pub fn names(&self) -> String {
        self.labels.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

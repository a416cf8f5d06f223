//! The measures of agreement, by name, with intervals.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::stats::{
    Bootstrap, Estimate, Level, Pairs, RatingWeights, Ratings, Statistic, Undefined,
};

/// A measure of agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Spearman's rank correlation.
    Spearman,
    /// Pearson's correlation.
    Pearson,
    /// Mean absolute error, in steps of the scale.
    Mae,
    /// Cohen's κ with quadratic weights.
    KappaQuadratic,
    /// The part that is equal.
    Exact,
    /// Krippendorff's α, the same or not.
    AlphaNominal,
    /// Krippendorff's α of ranks.
    AlphaOrdinal,
    /// Krippendorff's α of numbers.
    AlphaInterval,
}

impl Measure {
    /// Those of two columns.
    pub const OF_PAIRS: [Self; 5] =
        [Self::Spearman, Self::Pearson, Self::Mae, Self::KappaQuadratic, Self::Exact];
    /// Those of any number of raters.
    pub const OF_RATERS: [Self; 3] = [Self::AlphaNominal, Self::AlphaOrdinal, Self::AlphaInterval];

    /// The name for machines.
    pub fn key(self) -> &'static str {
        match self {
            Self::Spearman => "spearman",
            Self::Pearson => "pearson",
            Self::Mae => "mae",
            Self::KappaQuadratic => "kappa_quadratic",
            Self::Exact => "exact",
            Self::AlphaNominal => "alpha_nominal",
            Self::AlphaOrdinal => "alpha_ordinal",
            Self::AlphaInterval => "alpha_interval",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Spearman => "Spearman ρ",
            Self::Pearson => "Pearson r",
            Self::Mae => "MAE",
            Self::KappaQuadratic => "quadratic κ",
            Self::Exact => "exact",
            Self::AlphaNominal => "α nominal",
            Self::AlphaOrdinal => "α ordinal",
            Self::AlphaInterval => "α interval",
        }
    }
}

/// What the values are, and so which measures mean something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Words that nobody ranked: only the same or not.
    Words,
    /// Labels of this criterion, by rank.
    Labels(String),
    /// Numbers, all of them whole.
    Whole,
    /// Numbers.
    Numbers,
    /// Numbers on two scales, which can only be compared in their order.
    OtherScale,
}

/// Measures with their names.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// How many items they rest on.
    pub n: usize,
    /// The numbers.
    pub estimates: BTreeMap<Measure, Estimate>,
}

impl Measured {
    /// One of the numbers.
    pub fn get(&self, measure: Measure) -> Estimate {
        let none = Estimate::new(Err(Undefined::TooFew { n: 0, needed: 1 }), None);
        self.estimates.get(&measure).copied().unwrap_or(none)
    }

    /// Why some numbers do not exist.
    pub fn undefined(&self) -> impl Iterator<Item = (Measure, Undefined)> {
        self.estimates.iter().filter_map(|(measure, one)| Some((*measure, one.value.err()?)))
    }

    /// These and those of another.
    pub fn with(mut self, other: Self) -> Self {
        self.estimates.extend(other.estimates);
        self
    }
}

/// `n`, the measures by key, and `undefined` with the reasons where there are any.
impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("n", &self.n)?;
        for (measure, estimate) in &self.estimates {
            map.serialize_entry(measure.key(), estimate)?;
        }
        let reasons: BTreeMap<&str, String> =
            self.undefined().map(|(measure, why)| (measure.key(), why.to_string())).collect();
        if !reasons.is_empty() {
            map.serialize_entry("undefined", &reasons)?;
        }
        map.end()
    }
}

/// Two columns of values beside each other.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    values: Values,
    numbers: Pairs,
    /// Each distinct pair with both sides as categories, where that is not what they are.
    categories: Option<Pairs>,
}

impl Columns {
    pub(super) fn new(pairs: &[(f64, f64)], values: Values) -> Self {
        Self { values, numbers: Pairs::new(pairs), categories: None }
    }

    /// Ranks beside a truth that may lie between two of them. For measures of categories the truth
    /// is the nearest rank, and the worse one where two are as near.
    pub(super) fn of_ranks(pairs: &[(f64, f64)]) -> Self {
        let numbers = Pairs::new(pairs);
        let distinct = numbers.distinct();
        let nearest: Vec<(f64, f64)> =
            distinct.iter().map(|&(rank, truth)| (rank, nearest_rank(truth))).collect();
        let categories = (nearest != distinct).then(|| Pairs::new(&nearest));
        Self { values: Values::Whole, numbers, categories }
    }

    /// The measures in the order of [`Measure::OF_PAIRS`], where the pair at place `i` counts
    /// `weight(i)` times.
    pub(super) fn measure(&self, weight: impl Fn(usize) -> f64) -> [Statistic; 5] {
        let numbers = self.numbers.weights(weight);
        let others = self
            .categories
            .as_ref()
            .map(|pairs| (pairs, pairs.weights(|place| numbers.of_distinct(place))));
        let (categories, counted) = match &others {
            Some((pairs, weights)) => (*pairs, weights),
            None => (&self.numbers, &numbers),
        };
        let ordered = |number: Statistic| match self.values {
            Values::Words => Err(Undefined::NoOrder),
            _ => number,
        };
        let scaled = |number: Statistic| match self.values {
            Values::OtherScale => Err(Undefined::OtherScale),
            _ => number,
        };
        let kappa = match self.values {
            Values::Numbers => Err(Undefined::NotWhole),
            _ => ordered(categories.kappa_quadratic(counted)),
        };
        [
            ordered(self.numbers.spearman(&numbers)),
            ordered(self.numbers.pearson(&numbers)),
            scaled(ordered(self.numbers.mean_absolute_error(&numbers))),
            scaled(kappa),
            scaled(categories.exact(counted)),
        ]
    }
}

/// The nearest whole rank; the lower of two that are as near.
pub(super) fn nearest_rank(truth: f64) -> f64 {
    (truth - 0.5).ceil()
}

/// Krippendorff's α in the order of [`Measure::OF_RATERS`].
pub(super) fn alphas(ratings: &Ratings, ordered: bool, weights: &RatingWeights) -> [Statistic; 3] {
    [Level::Nominal, Level::Ordinal, Level::Interval].map(|level| {
        match level == Level::Nominal || ordered {
            true => ratings.alpha(level, weights),
            false => Err(Undefined::NoOrder),
        }
    })
}

/// The measures with bootstrap intervals over `units`. `statistics` gets how often each of them was
/// drawn and gives a number for each of `measures`.
pub(super) fn measured(
    measures: &[Measure],
    n: usize,
    units: usize,
    bootstrap: &Bootstrap,
    statistics: impl Fn(&[u32]) -> Vec<Statistic> + Sync,
) -> Measured {
    let values = statistics(&vec![1; units]);
    let intervals = bootstrap
        .intervals(units, |drawn| statistics(drawn).into_iter().map(Statistic::ok).collect());
    let estimates =
        values.into_iter().zip(intervals).map(|(value, interval)| Estimate::new(value, interval));
    Measured { n, estimates: measures.iter().copied().zip(estimates).collect() }
}

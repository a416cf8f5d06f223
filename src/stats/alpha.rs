//! Krippendorff's α: how far raters agree, whoever of them rated what.

use std::collections::BTreeMap;

use super::{Statistic, Undefined, finite};

/// What the values mean, and so how far apart two of them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Names: the same or not.
    Nominal,
    /// Ranks: by how many ratings lie between.
    Ordinal,
    /// Numbers: by their difference.
    Interval,
}

/// Ratings of units, counted; a unit with fewer than two ratings says nothing about agreement.
#[derive(Debug, Clone)]
pub struct Ratings {
    /// Every value that occurs, in order.
    values: Vec<f64>,
    /// Every set of ratings that some unit has.
    patterns: Vec<Pattern>,
    /// The pattern of each unit; `None` for one with fewer than two ratings.
    pattern_of: Vec<Option<u32>>,
}

/// How often a unit got each value.
#[derive(Debug, Clone)]
struct Pattern {
    /// Places in `Ratings::values` and counts.
    counts: Vec<(u32, u32)>,
    raters: u32,
}

impl Ratings {
    /// Counts finite ratings; each unit comes with those that it has, in any order.
    pub fn new(units: &[Vec<f64>]) -> Self {
        let mut values: Vec<f64> = units.iter().flatten().copied().collect();
        values.sort_by(f64::total_cmp);
        values.dedup_by(|a, b| a == b);
        let place = |value: &f64| values.partition_point(|other| other < value) as u32;
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut patterns = Vec::new();
        let mut pattern_of = Vec::new();
        for unit in units {
            let mut places: Vec<u32> = unit.iter().map(place).collect();
            places.sort_unstable();
            pattern_of.push((places.len() > 1).then(|| {
                *known.entry(places).or_insert_with_key(|places| {
                    patterns.push(Pattern::new(places));
                    patterns.len() as u32 - 1
                })
            }));
        }
        Self { values, patterns, pattern_of }
    }

    /// How many units have at least two ratings.
    pub fn pairable(&self) -> usize {
        self.pattern_of.iter().flatten().count()
    }

    /// The weights of the units as they were given.
    pub fn ones(&self) -> RatingWeights {
        self.weights(|_| 1.0)
    }

    /// The weights of patterns and values, where the unit at place `i` counts `weight(i)` times.
    pub fn weights(&self, weight: impl Fn(usize) -> f64) -> RatingWeights {
        let mut patterns = vec![0.0; self.patterns.len()];
        for (i, pattern) in self.pattern_of.iter().enumerate() {
            if let Some(pattern) = pattern {
                patterns[*pattern as usize] += weight(i);
            }
        }
        let mut totals = vec![0.0; self.values.len()];
        for (pattern, weight) in self.patterns.iter().zip(&patterns) {
            for &(value, count) in &pattern.counts {
                totals[value as usize] += weight * f64::from(count);
            }
        }
        RatingWeights { patterns, totals }
    }

    /// Which part of the pairs of ratings of a unit is equal, in the mean over units.
    pub fn exact(&self, weights: &RatingWeights) -> Statistic {
        let all: f64 = weights.patterns.iter().sum();
        if all == 0.0 {
            return Err(Undefined::TooFew { n: 0, needed: 1 });
        }
        let equal = self.patterns.iter().zip(&weights.patterns);
        finite(equal.map(|(pattern, weight)| weight * pattern.equal()).sum::<f64>() / all)
    }

    /// α as the package `krippendorff` computes it.
    pub fn alpha(&self, level: Level, weights: &RatingWeights) -> Statistic {
        let RatingWeights { patterns: weights, totals } = weights;
        let all: f64 = totals.iter().sum();
        if all < 2.0 {
            return Err(Undefined::TooFew { n: 0, needed: 1 });
        }
        if totals.iter().filter(|&&total| total > 0.0).count() < 2 {
            return Err(Undefined::OneValue);
        }
        let places = self.places(level, totals);
        let apart = |i: u32, j: u32| match level {
            Level::Nominal => f64::from(u8::from(i != j)),
            Level::Ordinal | Level::Interval => (places[i as usize] - places[j as usize]).powi(2),
        };
        let observed: f64 = self
            .patterns
            .iter()
            .zip(weights)
            .map(|(pattern, weight)| weight * pattern.disagreement(apart))
            .sum();
        let expected = match level {
            Level::Nominal => all * all - totals.iter().map(|total| total * total).sum::<f64>(),
            Level::Ordinal | Level::Interval => 2.0 * all * scatter(&places, totals, all),
        };
        finite(1.0 - (all - 1.0) * observed / expected)
    }

    /// Where the values stand, scaled so that no square overflows.
    fn places(&self, level: Level, totals: &[f64]) -> Vec<f64> {
        match level {
            Level::Nominal => Vec::new(),
            // Half of those with the same value lie before: the distance of two values is then what
            // lies between them.
            Level::Ordinal => {
                let mut before = 0.0;
                let place = |total: &f64| {
                    before += total;
                    before - total / 2.0
                };
                totals.iter().map(place).collect()
            }
            Level::Interval => {
                let (first, last) = (self.values.first(), self.values.last());
                let (low, range) =
                    first.zip(last).map_or((0.0, 1.0), |(low, high)| (*low, high - low));
                self.values.iter().map(|value| (value - low) / range).collect()
            }
        }
    }
}

/// How often each set of ratings and each value occurs.
#[derive(Debug, Clone)]
pub struct RatingWeights {
    patterns: Vec<f64>,
    totals: Vec<f64>,
}

impl Pattern {
    fn new(places: &[u32]) -> Self {
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for &place in places {
            match counts.last_mut() {
                Some((last, count)) if *last == place => *count += 1,
                _ => counts.push((place, 1)),
            }
        }
        Self { counts, raters: places.len() as u32 }
    }

    /// Which part of its pairs of ratings is equal.
    fn equal(&self) -> f64 {
        let pairs = |count: u32| f64::from(count) * (f64::from(count) - 1.0);
        self.counts.iter().map(|&(_, count)| pairs(count)).sum::<f64>() / pairs(self.raters)
    }

    /// The sum over its ordered pairs of ratings, each weighed by one less than there are raters.
    fn disagreement(&self, apart: impl Fn(u32, u32) -> f64) -> f64 {
        let mut sum = 0.0;
        for (place, &(i, first)) in self.counts.iter().enumerate() {
            for &(j, second) in &self.counts[place + 1..] {
                sum += f64::from(first) * f64::from(second) * apart(i, j);
            }
        }
        2.0 * sum / f64::from(self.raters - 1)
    }
}

/// The weighted sum of squares around the weighted mean.
fn scatter(places: &[f64], weights: &[f64], all: f64) -> f64 {
    let weighted = || places.iter().zip(weights);
    let mean = weighted().map(|(place, weight)| place * weight).sum::<f64>() / all;
    weighted().map(|(place, weight)| weight * (place - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVELS: [Level; 3] = [Level::Nominal, Level::Ordinal, Level::Interval];

    fn all(units: &[Vec<f64>]) -> [Statistic; 3] {
        let ratings = Ratings::new(units);
        LEVELS.map(|level| ratings.alpha(level, &ratings.ones()))
    }

    #[test]
    fn the_example_of_krippendorff() {
        // "Computing Krippendorff's Alpha-Reliability" (2011), four observers, twelve units.
        let columns: [[u8; 4]; 12] = [
            [1, 1, 0, 1],
            [2, 2, 3, 2],
            [3, 3, 3, 3],
            [3, 3, 3, 3],
            [2, 2, 2, 2],
            [1, 2, 3, 4],
            [4, 4, 4, 4],
            [1, 1, 2, 1],
            [2, 2, 2, 2],
            [0, 5, 5, 5],
            [0, 0, 1, 1],
            [0, 3, 0, 0],
        ];
        let units: Vec<Vec<f64>> = columns
            .iter()
            .map(|unit| unit.iter().filter(|&&v| v > 0).map(|&v| f64::from(v)).collect())
            .collect();
        let [nominal, ordinal, interval] = all(&units).map(Result::unwrap);
        assert!((nominal - 0.743).abs() < 5e-4, "{nominal}");
        assert!((ordinal - 0.815).abs() < 5e-4, "{ordinal}");
        assert!((interval - 0.849).abs() < 5e-4, "{interval}");
        assert_eq!(Ratings::new(&units).pairable(), 11);
    }

    #[test]
    fn equal_pairs_by_hand() {
        // One of three pairs, and all of one; the third unit has none.
        let ratings = Ratings::new(&[vec![1.0, 1.0, 2.0], vec![3.0, 3.0], vec![4.0]]);
        assert_eq!(ratings.exact(&ratings.ones()), Ok(2.0 / 3.0));
        assert!(ratings.exact(&ratings.weights(|i| f64::from(u8::from(i == 2)))).is_err());
    }

    #[test]
    fn where_nothing_can_disagree_there_is_no_agreement() {
        for nothing in [vec![], vec![vec![]], vec![vec![1.0], vec![2.0]]] {
            assert_eq!(all(&nothing), [Err(Undefined::TooFew { n: 0, needed: 1 }); 3]);
        }
        // The 9 has no second rating: only one value can be compared.
        let one = vec![vec![4.0, 4.0], vec![4.0, 4.0, 4.0], vec![9.0]];
        assert_eq!(all(&one), [Err(Undefined::OneValue); 3]);
        // Two units of two ratings, all disagreeing in the same way.
        let against = all(&[vec![1.0, 2.0], vec![1.0, 2.0]]).map(Result::unwrap);
        assert_eq!(against, [-0.5; 3]);
    }

    proptest! {
        #[test]
        fn a_number_or_a_reason(
            units in prop::collection::vec(prop::collection::vec(-1e300..1e300f64, 0..4), 0..9)
        ) {
            for value in all(&units).into_iter().flatten() {
                prop_assert!(value.is_finite() && value <= 1.0 + 1e-12);
            }
        }

        #[test]
        fn weights_are_repetitions(
            units in prop::collection::vec((prop::collection::vec(1u8..5, 0..4), 0u8..3), 1..12)
        ) {
            let each: Vec<Vec<f64>> = units
                .iter()
                .map(|(unit, _)| unit.iter().map(|&v| f64::from(v)).collect())
                .collect();
            let repeated: Vec<Vec<f64>> = each
                .iter()
                .zip(&units)
                .flat_map(|(unit, (_, times))| vec![unit.clone(); usize::from(*times)])
                .collect();
            let ratings = Ratings::new(&each);
            let weights = ratings.weights(|i| f64::from(units[i].1));
            for (level, theirs) in LEVELS.into_iter().zip(all(&repeated)) {
                match (ratings.alpha(level, &weights), theirs) {
                    (Ok(a), Ok(b)) => prop_assert!((a - b).abs() < 1e-12),
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
        }
    }
}

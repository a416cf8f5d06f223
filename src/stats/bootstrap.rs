//! Percentile bootstrap: how far a number would move if other cases had been drawn.

use rayon::prelude::*;

use super::Interval;
use crate::random::Random;

/// How to resample. Same settings and same input, same interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// How often.
    pub resamples: u32,
    /// Which chance.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { resamples: 2000, seed: 7 }
    }
}

/// A sum and how many values went into it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// The sum.
    pub total: f64,
    /// How many.
    pub count: u32,
}

impl Sum {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.total += value;
        self.count += 1;
    }
}

impl Bootstrap {
    /// How much of the resamples an interval leaves out at each end: it holds 95 %.
    const TAIL: f64 = 0.025;
    /// A number that is undefined in more than this part of the resamples has no interval.
    const MOST_UNDEFINED: f64 = 0.05;

    /// The 95 % interval of the mean of independent values.
    pub fn mean(&self, values: &[f64]) -> Option<Interval> {
        let sums: Vec<Sum> = values.iter().map(|&value| Sum { total: value, count: 1 }).collect();
        self.clustered_mean(&sums)
    }

    /// The 95 % interval of a mean over values that belong together in clusters, such as all
    /// judgements of one case: whole clusters are drawn.
    pub fn clustered_mean(&self, clusters: &[Sum]) -> Option<Interval> {
        if clusters.len() < 2 {
            return None;
        }
        let resample = |number| {
            let mut random = self.random(number);
            let (mut total, mut count) = (0.0, 0u64);
            for _ in clusters {
                let drawn = clusters[random.below(clusters.len())];
                total += drawn.total;
                count += u64::from(drawn.count);
            }
            (count > 0).then(|| total / count as f64)
        };
        self.percentiles((0..self.resamples).into_par_iter().map(resample).collect())
    }

    /// The 95 % intervals of several numbers at once. `statistics` gets how often each of `units` was
    /// drawn and gives the numbers, always in the same order.
    pub fn intervals(
        &self,
        units: usize,
        statistics: impl Fn(&[u32]) -> Vec<Option<f64>> + Sync,
    ) -> Vec<Option<Interval>> {
        self.stratified(&[units], statistics)
    }

    /// The same where units belong to strata, such as the types of instructions: so many in the first,
    /// so many in the next. From each as many are drawn as it has.
    pub fn stratified(
        &self,
        strata: &[usize],
        statistics: impl Fn(&[u32]) -> Vec<Option<f64>> + Sync,
    ) -> Vec<Option<Interval>> {
        let units = strata.iter().sum();
        let resample = |number| {
            let mut random = self.random(number);
            let mut drawn = vec![0; units];
            let mut rest = drawn.as_mut_slice();
            for &count in strata {
                let (stratum, behind) = rest.split_at_mut(count);
                for _ in 0..count {
                    stratum[random.below(count)] += 1;
                }
                rest = behind;
            }
            statistics(&drawn)
        };
        let numbers = statistics(&vec![1; units]).len();
        if units < 2 {
            return vec![None; numbers];
        }
        let all: Vec<Vec<Option<f64>>> =
            (0..self.resamples).into_par_iter().map(resample).collect();
        (0..numbers)
            .map(|i| {
                self.percentiles(all.iter().map(|one| one.get(i).copied().flatten()).collect())
            })
            .collect()
    }

    fn random(&self, number: u32) -> Random {
        Random::new(self.seed, u64::from(number), 0)
    }

    fn percentiles(&self, values: Vec<Option<f64>>) -> Option<Interval> {
        let all = values.len() as f64;
        let mut values: Vec<f64> =
            values.into_iter().flatten().filter(|value| value.is_finite()).collect();
        if values.is_empty() || (values.len() as f64) < (1.0 - Self::MOST_UNDEFINED) * all {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Interval {
            low: quantile(&values, Self::TAIL),
            high: quantile(&values, 1.0 - Self::TAIL),
        })
    }
}

/// Between the two nearest of sorted values; 0 of none.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * sorted.len().saturating_sub(1) as f64;
    let below = place as usize;
    let at = |i: usize| sorted.get(i).or(sorted.last()).copied().unwrap_or(0.0);
    at(below) + (at(below + 1) - at(below)) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_nearest() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 1.0), 4.0);
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_the_normal_distribution() {
        // 400 values, half 0 and half 100: the standard error is 100 · 0.5 / 20 = 2.5.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i % 2 * 100)).collect();
        let Interval { low, high } = Bootstrap::default().mean(&values).unwrap();
        assert!((low - (50.0 - 1.96 * 2.5)).abs() < 0.5, "{low}");
        assert!((high - (50.0 + 1.96 * 2.5)).abs() < 0.5, "{high}");
        assert_eq!(Bootstrap::default().mean(&values), Some(Interval { low, high }));
    }

    #[test]
    fn clusters_are_drawn_whole() {
        // Ten cases with forty equal values each tell as much as ten values.
        let clusters: Vec<Sum> =
            (0..10).map(|i| Sum { total: f64::from(i % 2) * 4000.0, count: 40 }).collect();
        let values: Vec<f64> = (0..10).map(|i| f64::from(i % 2) * 100.0).collect();
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.clustered_mean(&clusters), bootstrap.mean(&values));
    }

    #[test]
    fn one_case_and_mostly_undefined_numbers_have_no_interval() {
        let bootstrap = Bootstrap::default();
        assert_eq!(bootstrap.mean(&[3.0]), None);
        assert_eq!(bootstrap.mean(&[]), None);
        assert_eq!(bootstrap.intervals(0, |_| vec![Some(1.0)]), [None]);
        let often = bootstrap.intervals(3, |drawn| vec![(drawn[0] > 0).then_some(1.0), Some(2.0)]);
        assert_eq!(often, [None, Some(Interval { low: 2.0, high: 2.0 })]);
    }
}

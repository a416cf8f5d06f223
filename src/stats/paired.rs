//! Is one better than the other, on the same cases?

use rayon::prelude::*;

use super::special::incomplete_beta;
use super::{Bootstrap, Interval, Statistic, Sum, Undefined, finite};
use crate::random::Random;

/// What the differences of pairs say.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// How many pairs.
    pub pairs: usize,
    /// How many cases they belong to.
    pub cases: usize,
    /// The mean difference over pairs.
    pub mean: Statistic,
    /// Its 95 % bootstrap interval over cases.
    pub interval: Option<Interval>,
    /// The two-sided p value of the sign-flip permutation test over cases.
    pub p: Statistic,
    /// Cases whose sum of differences is above, below and at 0.
    pub signs: [usize; 3],
    /// The two-sided p value of the exact sign test.
    pub p_sign: Statistic,
}

/// What that comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// This data cannot tell.
    NoEvidence,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoEvidence => "no evidence either way",
        })
    }
}

impl Paired {
    /// The level of the tests.
    pub const LEVEL: f64 = 0.05;

    /// Looks at differences (second minus first), one sum for each case.
    pub fn new(cases: &[Sum], bootstrap: &Bootstrap) -> Self {
        let pairs = cases.iter().map(|case| case.count as usize).sum();
        let total: f64 = cases.iter().map(|case| case.total).sum();
        // Thirds of 100 that cancel leave a rest, which is no difference.
        const ROUNDING: f64 = 1e-9;
        let rest = |sum: f64| if sum.abs() < ROUNDING { 0.0 } else { sum };
        let sums: Vec<f64> = cases.iter().map(|case| rest(case.total)).collect();
        let above = sums.iter().filter(|sum| **sum > 0.0).count();
        let below = sums.iter().filter(|sum| **sum < 0.0).count();
        Self {
            pairs,
            cases: cases.len(),
            mean: match pairs {
                0 => Err(Undefined::TooFew { n: 0, needed: 1 }),
                _ => finite(total / pairs as f64),
            },
            interval: bootstrap.clustered_mean(cases),
            p: sign_flip_test(&sums, bootstrap.seed),
            signs: [above, below, cases.len() - above - below],
            p_sign: sign_test(above, below),
        }
    }

    /// Better or worse only where the interval leaves out 0 and the permutation test agrees: an
    /// interval from a handful of cases is too sure of itself.
    pub fn finding(&self) -> Finding {
        let sure = self.p.is_ok_and(|p| p <= Self::LEVEL);
        match self.interval {
            Some(interval) if sure && interval.low > 0.0 => Finding::Better,
            Some(interval) if sure && interval.high < 0.0 => Finding::Worse,
            _ => Finding::NoEvidence,
        }
    }
}

/// How many cases it takes to tell a difference like this from none, four times in five, by a test at
/// the level of 5 %; `None` where there is no difference, or too little to tell how much it scatters.
pub fn cases_needed(cases: &[Sum]) -> Option<usize> {
    /// The normal quantiles of 0.975 and 0.8.
    const QUANTILES: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914_2;
    /// Fewer can never pass a two-sided permutation test at 5 %.
    const FEWEST: f64 = 6.0;
    const MOST: f64 = 1e9;
    let n = cases.len() as f64;
    let mean = cases.iter().map(|case| case.total).sum::<f64>() / n;
    let squares: f64 = cases.iter().map(|case| (case.total - mean).powi(2)).sum();
    let needed = squares / (n - 1.0) * (QUANTILES / mean).powi(2);
    (cases.len() > 1 && mean != 0.0 && needed < MOST).then(|| needed.max(FEWEST).ceil() as usize)
}

/// The two-sided exact sign test: is up as probable as down?
pub fn sign_test(up: usize, down: usize) -> Statistic {
    let (n, more) = (up + down, up.max(down));
    if n == 0 {
        return Err(Undefined::OneValue);
    }
    // P(X ≥ more) of the binomial distribution with probability ½.
    let tail = incomplete_beta(0.5, more as f64, (n - more) as f64 + 1.0);
    finite((2.0 * tail).min(1.0))
}

/// The two-sided sign-flip permutation test: how often would the sum be at least this far from 0 if
/// the sign of each difference were chance? All flips of few differences, else a fixed sample of them,
/// the observed one included, so that the level holds.
pub fn sign_flip_test(differences: &[f64], seed: u64) -> Statistic {
    const ALL_FLIPS_UP_TO: usize = 14;
    const FLIPS: u64 = 20_000;
    let differences: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if differences.is_empty() {
        return Err(Undefined::OneValue);
    }
    let size: f64 = differences.iter().map(|d| d.abs()).sum();
    // What rounding could do to a sum must not decide.
    let observed = finite(differences.iter().sum::<f64>())?.abs() - 1e-12 * size;
    let far = |sum: f64| u64::from(sum.abs() >= observed);
    if differences.len() <= ALL_FLIPS_UP_TO {
        let flips = 1u64 << differences.len();
        let count: u64 = (0..flips).map(|signs| far(flipped_sum(&differences, || signs))).sum();
        return finite(count as f64 / flips as f64);
    }
    let count: u64 = (0..FLIPS)
        .into_par_iter()
        .map(|flip| {
            let mut random = Random::new(seed, flip, 1);
            far(flipped_sum(&differences, || random.bits()))
        })
        .sum();
    finite((count + 1) as f64 / (FLIPS + 1) as f64)
}

/// The sum with other signs: one bit for each, 64 from each word.
fn flipped_sum(differences: &[f64], mut word: impl FnMut() -> u64) -> f64 {
    let mut sum = 0.0;
    for chunk in differences.chunks(64) {
        let mut signs = word();
        for difference in chunk {
            sum += if signs & 1 == 0 { *difference } else { -difference };
            signs >>= 1;
        }
    }
    sum
}

/// Holm's correction: p values that hold for all comparisons together, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut corrected = vec![0.0; p_values.len()];
    let mut largest = 0.0f64;
    for (before, &i) in order.iter().enumerate() {
        let left = (p_values.len() - before) as f64;
        largest = largest.max((left * p_values[i]).min(1.0));
        corrected[i] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singles(differences: &[f64]) -> Vec<Sum> {
        differences.iter().map(|&total| Sum { total, count: 1 }).collect()
    }

    #[test]
    fn sign_tests_by_hand() {
        // Five of five: 2 / 2⁵. Eight of ten: 2 · (1 + 10 + 45) / 2¹⁰.
        assert!((sign_test(5, 0).unwrap() - 0.0625).abs() < 1e-12);
        assert!((sign_test(2, 8).unwrap() - 0.109_375).abs() < 1e-12);
        assert_eq!(sign_test(3, 3), Ok(1.0));
        assert_eq!(sign_test(0, 0), Err(Undefined::OneValue));
    }

    #[test]
    fn sign_flips_by_hand() {
        // ±1 ±2 ±3: 6 and −6 of eight sums.
        assert_eq!(sign_flip_test(&[1.0, 2.0, 3.0], 7), Ok(0.25));
        // −1 +2 +3: 4 or more in 6, 4, −4, −6.
        assert_eq!(sign_flip_test(&[-1.0, 2.0, 3.0, 0.0], 7), Ok(0.5));
        assert_eq!(sign_flip_test(&[0.0, 0.0], 7), Err(Undefined::OneValue));
        // Many equal differences: as the sign test, to chance.
        let many: Vec<f64> = (0..100).map(|i| if i < 60 { 0.1 } else { -0.1 }).collect();
        let p = sign_flip_test(&many, 7).unwrap();
        assert!((p - sign_test(60, 40).unwrap()).abs() < 0.01, "{p}");
    }

    #[test]
    fn three_wins_prove_nothing_and_thirty_do() {
        let bootstrap = Bootstrap::default();
        let few = Paired::new(&singles(&[100.0, 66.0, 100.0]), &bootstrap);
        assert!(few.interval.unwrap().low > 0.0);
        assert_eq!(few.finding(), Finding::NoEvidence);
        let many: Vec<f64> = (0..30).map(|i| f64::from(i % 3) * 33.0).collect();
        assert_eq!(Paired::new(&singles(&many), &bootstrap).finding(), Finding::Better);
        let many: Vec<f64> = many.iter().map(|d| -d).collect();
        let worse = Paired::new(&singles(&many), &bootstrap);
        assert_eq!((worse.finding(), worse.signs), (Finding::Worse, [0, 20, 10]));
        let same = Paired::new(&singles(&[0.0; 9]), &bootstrap);
        assert_eq!((same.finding(), same.mean), (Finding::NoEvidence, Ok(0.0)));
        assert!(Paired::new(&[], &bootstrap).mean.is_err());
        let thirds = Sum { total: 200.0 / 3.0 - 100.0 / 3.0 - (100.0 - 200.0 / 3.0), count: 2 };
        assert_eq!(Paired::new(&[thirds; 3], &bootstrap).signs, [0, 0, 3]);
    }

    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let bootstrap = Bootstrap { resamples: 200, seed: 7 };
        let mut random = Random::new(1, 2, 3);
        let mut alarms = 0;
        for _ in 0..400 {
            let steps: Vec<f64> = (0..20).map(|_| random.below(7) as f64 - 3.0).collect();
            alarms += u32::from(
                Paired::new(&singles(&steps), &bootstrap).finding() != Finding::NoEvidence,
            );
        }
        assert!(alarms <= 30, "{alarms} of 400");
    }

    #[test]
    fn more_cases_for_smaller_differences() {
        // Mean 1, variance 4 · 100 / 99: (1.96 + 0.84)² · 4.04.
        let differences: Vec<f64> = (0..100).map(|i| 1.0 + f64::from(i % 2 * 4 - 2)).collect();
        assert_eq!(cases_needed(&singles(&differences)), Some(32));
        assert_eq!(cases_needed(&singles(&[1.0, -1.0])), None);
        assert_eq!(cases_needed(&singles(&[1.0])), None);
        assert_eq!(cases_needed(&singles(&[1.0, 1.0])), Some(6));
    }

    #[test]
    fn holm_by_hand() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }
}

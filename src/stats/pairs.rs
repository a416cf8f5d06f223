//! Two columns of numbers beside each other: correlation and agreement.
//!
//! Everything is computed from how often each pair of values occurs, so that the same few lines serve
//! the numbers themselves and thousands of resamples.

use super::special::incomplete_beta;
use super::{Statistic, Undefined, finite};

/// Pairs of values, counted.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// Every value that occurs on either side, in order.
    values: Vec<f64>,
    /// Every pair that occurs, as places in `values`.
    cells: Vec<(u32, u32)>,
    /// The cell of each pair that was given.
    cell_of: Vec<u32>,
}

/// A correlation, and how probable one at least as strong would be if there were none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// From −1 to 1.
    pub r: f64,
    /// Two-sided, by Student's t distribution with n − 2 degrees of freedom.
    pub p: Statistic,
}

/// Pearson's r with its p value, as `scipy.stats.pearsonr`.
pub fn pearson(pairs: &[(f64, f64)]) -> Result<Correlation, Undefined> {
    let counted = Pairs::new(pairs);
    let r = counted.pearson(&counted.ones())?;
    // Two points are always on a line: nothing is surprising.
    let p = if pairs.len() == 2 { Ok(1.0) } else { p_of(r, pairs.len()) };
    Ok(Correlation { r, p })
}

/// Spearman's ρ, ties at their mean rank, with its p value, as `scipy.stats.spearmanr`.
pub fn spearman(pairs: &[(f64, f64)]) -> Result<Correlation, Undefined> {
    let counted = Pairs::new(pairs);
    let r = counted.spearman(&counted.ones())?;
    Ok(Correlation { r, p: p_of(r, pairs.len()) })
}

fn p_of(r: f64, n: usize) -> Statistic {
    match n.checked_sub(2) {
        None | Some(0) => Err(Undefined::TooFew { n, needed: 3 }),
        Some(freedom) => finite(incomplete_beta((1.0 - r) * (1.0 + r), freedom as f64 / 2.0, 0.5)),
    }
}

impl Pairs {
    /// Counts pairs of finite numbers.
    pub fn new(pairs: &[(f64, f64)]) -> Self {
        let mut values: Vec<f64> = pairs.iter().flat_map(|&(x, y)| [x, y]).collect();
        values.sort_by(f64::total_cmp);
        // 0 and −0 are one value.
        values.dedup_by(|a, b| a == b);
        let place = |value: f64| values.partition_point(|&other| other < value) as u32;
        let placed: Vec<(u32, u32)> = pairs.iter().map(|&(x, y)| (place(x), place(y))).collect();
        let mut cells = placed.clone();
        cells.sort_unstable();
        cells.dedup();
        let cell_of =
            placed.iter().map(|pair| cells.partition_point(|cell| cell < pair) as u32).collect();
        Self { values, cells, cell_of }
    }

    /// Every pair that occurs, once.
    pub fn distinct(&self) -> Vec<(f64, f64)> {
        let value = |place: u32| self.values[place as usize];
        self.cells.iter().map(|&(x, y)| (value(x), value(y))).collect()
    }

    /// The weights of the pairs as they were given.
    pub fn ones(&self) -> Weights {
        self.weights(|_| 1.0)
    }

    /// The weights of the cells, where the pair at place `i` counts `weight(i)` times.
    pub fn weights(&self, weight: impl Fn(usize) -> f64) -> Weights {
        let mut cells = vec![0.0; self.cells.len()];
        for (i, &cell) in self.cell_of.iter().enumerate() {
            cells[cell as usize] += weight(i);
        }
        let (mut first, mut second) = (vec![0.0; self.values.len()], vec![0.0; self.values.len()]);
        for (&(x, y), weight) in self.cells.iter().zip(&cells) {
            first[x as usize] += weight;
            second[y as usize] += weight;
        }
        let total = cells.iter().sum();
        Weights { cells, first, second, total }
    }

    /// Pearson's r.
    pub fn pearson(&self, weights: &Weights) -> Statistic {
        self.correlation(weights, &self.values, &self.values)
    }

    /// Spearman's ρ: Pearson's r of the ranks, ties at their mean rank.
    pub fn spearman(&self, weights: &Weights) -> Statistic {
        self.correlation(weights, &mid_ranks(&weights.first), &mid_ranks(&weights.second))
    }

    fn correlation(&self, weights: &Weights, xs: &[f64], ys: &[f64]) -> Statistic {
        weights.at_least(2)?;
        let x = Centred::new(&weights.first, xs, weights.total).ok_or(Undefined::Constant)?;
        let y = Centred::new(&weights.second, ys, weights.total).ok_or(Undefined::Constant)?;
        let products = self
            .cells
            .iter()
            .zip(&weights.cells)
            .map(|(&(i, j), weight)| weight * x.values[i as usize] * y.values[j as usize]);
        let r = finite(products.sum::<f64>() / (x.squares * y.squares).sqrt())?;
        Ok(r.clamp(-1.0, 1.0))
    }

    /// The mean absolute difference.
    pub fn mean_absolute_error(&self, weights: &Weights) -> Statistic {
        self.mean_over_cells(weights, |x, y| (self.values[x] - self.values[y]).abs())
    }

    /// Which part is equal.
    pub fn exact(&self, weights: &Weights) -> Statistic {
        self.mean_over_cells(weights, |x, y| f64::from(u8::from(x == y)))
    }

    fn mean_over_cells(&self, weights: &Weights, of: impl Fn(usize, usize) -> f64) -> Statistic {
        weights.at_least(1)?;
        let cells = self.cells.iter().zip(&weights.cells);
        let sum: f64 = cells.map(|(&(x, y), weight)| weight * of(x as usize, y as usize)).sum();
        finite(sum / weights.total)
    }

    /// Cohen's κ with quadratic weights, as `sklearn.metrics.cohen_kappa_score`: the weight is the
    /// square of how many places two values are apart among those that occur.
    pub fn kappa_quadratic(&self, weights: &Weights) -> Statistic {
        weights.at_least(1)?;
        let mut occurring =
            (0..self.values.len()).filter(|&i| weights.first[i] > 0.0 || weights.second[i] > 0.0);
        if occurring.next().is_none() || occurring.next().is_none() {
            return Err(Undefined::OneValue);
        }
        let observed: f64 = self
            .cells
            .iter()
            .zip(&weights.cells)
            .map(|(&(x, y), weight)| weight * (f64::from(x) - f64::from(y)).powi(2))
            .sum();
        let moment = |marginal: &[f64], power: i32| -> f64 {
            marginal.iter().enumerate().map(|(i, weight)| weight * (i as f64).powi(power)).sum()
        };
        let (first, second) = (&weights.first, &weights.second);
        let expected = moment(first, 2) + moment(second, 2)
            - 2.0 * moment(first, 1) * (moment(second, 1) / weights.total);
        finite(1.0 - observed / expected)
    }
}

/// How often each pair and each value occurs.
#[derive(Debug, Clone)]
pub struct Weights {
    cells: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    total: f64,
}

impl Weights {
    /// How often the pair at this place of [`Pairs::distinct`] occurs.
    pub fn of_distinct(&self, place: usize) -> f64 {
        self.cells[place]
    }

    fn at_least(&self, needed: usize) -> Result<(), Undefined> {
        let n = self.total as usize;
        if n < needed { Err(Undefined::TooFew { n, needed }) } else { Ok(()) }
    }
}

/// Values with their mean taken away, scaled so that no square overflows, and the sum of squares.
struct Centred {
    values: Vec<f64>,
    squares: f64,
}

impl Centred {
    /// `None` where fewer than two different values have a weight.
    fn new(weights: &[f64], values: &[f64], total: f64) -> Option<Self> {
        let weighted = || weights.iter().zip(values).filter(|(weight, _)| **weight > 0.0);
        let (_, some) = weighted().next()?;
        weighted().find(|(_, value)| *value != some)?;
        // Relative to one of them: large numbers that differ little keep their digits.
        let shift = weighted().map(|(weight, value)| weight * (value - some)).sum::<f64>() / total;
        let centred: Vec<f64> = weights
            .iter()
            .zip(values)
            .map(|(weight, value)| if *weight > 0.0 { (value - some) - shift } else { 0.0 })
            .collect();
        let scale = centred.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let values: Vec<f64> = centred.iter().map(|value| value / scale).collect();
        let squares: f64 =
            weights.iter().zip(&values).map(|(weight, value)| weight * value * value).sum();
        Some(Self { values, squares })
    }
}

/// The mean rank of each value, where it occurs so often; counted from 1.
fn mid_ranks(counts: &[f64]) -> Vec<f64> {
    let mut below = 0.0;
    let rank = |count: &f64| {
        let rank = below + (count + 1.0) / 2.0;
        below += count;
        rank
    };
    counts.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    fn all(pairs: &[(f64, f64)]) -> [Statistic; 5] {
        let counted = Pairs::new(pairs);
        let ones = counted.ones();
        [
            counted.pearson(&ones),
            counted.spearman(&ones),
            counted.mean_absolute_error(&ones),
            counted.kappa_quadratic(&ones),
            counted.exact(&ones),
        ]
    }

    #[test]
    fn by_hand() {
        // x = 1 2 3 4, y = 1 3 2 4: Σ(x−x̄)(y−ȳ) = 4, Σ(x−x̄)² = 5; ranks are the values.
        // κ: observed squares 2, expected 20/8 · 4 = 10.
        let [r, rho, mae, kappa, exact] =
            all(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)]).map(Result::unwrap);
        assert!(close(r, 0.8) && close(rho, 0.8), "{r} {rho}");
        assert!(close(mae, 0.5) && close(kappa, 0.8) && close(exact, 0.5), "{mae} {kappa} {exact}");
    }

    #[test]
    fn ties_have_their_mean_rank() {
        // Ranks of x: 1.5 1.5 3; of y: 1 2 3. Σ = 1.5, norms √1.5 and √2.
        let rho = spearman(&[(5.0, 1.0), (5.0, 2.0), (9.0, 3.0)]).unwrap();
        assert!(close(rho.r, 1.5 / 3f64.sqrt()));
    }

    #[test]
    fn p_values() {
        // With three points p = 1 − 2/π asin |r|.
        let pairs = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)];
        let found = pearson(&pairs).unwrap();
        assert!(close(found.r, 0.5) && close(found.p.unwrap(), 2.0 / 3.0));
        let two = [(1.0, 4.0), (2.0, 3.0)];
        assert_eq!(pearson(&two).unwrap(), Correlation { r: -1.0, p: Ok(1.0) });
        assert!(spearman(&two).unwrap().p.is_err());
    }

    #[test]
    fn what_is_not_defined_says_so() {
        let too_few = |n, needed| Err(Undefined::TooFew { n, needed });
        let [r, rho, mae, kappa, exact] = all(&[]);
        assert_eq!((r, rho), (too_few(0, 2), too_few(0, 2)));
        assert_eq!((mae, kappa, exact), (too_few(0, 1), too_few(0, 1), too_few(0, 1)));
        // One item, two different values: chance would do no worse.
        assert_eq!(all(&[(1.0, 3.0)])[2..], [Ok(2.0), Ok(0.0), Ok(0.0)]);
        let constant = all(&[(2.0, 2.0), (2.0, 2.0)]);
        assert_eq!(constant[..2], [Err(Undefined::Constant), Err(Undefined::Constant)]);
        assert_eq!(constant[2..], [Ok(0.0), Err(Undefined::OneValue), Ok(1.0)]);
    }

    #[test]
    fn large_and_nearly_equal_numbers_keep_their_digits() {
        let pairs: Vec<(f64, f64)> =
            [1.0, 2.0, 4.0].iter().map(|x| (x * 1e200, 1e9 + x / 1e3)).collect();
        assert!((pearson(&pairs).unwrap().r - 1.0).abs() < 1e-6);
        let endless = [(f64::MAX, 0.0), (f64::MIN, 1.0), (0.0, 2.0)];
        assert_eq!(all(&endless)[0], Err(Undefined::TooLarge));
    }

    proptest! {
        #[test]
        fn a_number_or_a_reason(pairs in prop::collection::vec((-1e300..1e300f64, -3i8..3), 0..9)) {
            let pairs: Vec<(f64, f64)> = pairs.iter().map(|&(x, y)| (x, f64::from(y))).collect();
            for value in all(&pairs).into_iter().flatten() {
                prop_assert!(value.is_finite());
            }
        }

        #[test]
        fn weights_are_repetitions(
            pairs in prop::collection::vec((1u8..5, 1u8..5, 0u8..4), 1..20)
        ) {
            let each: Vec<(f64, f64)> =
                pairs.iter().map(|&(x, y, _)| (f64::from(x), f64::from(y))).collect();
            let counted = Pairs::new(&each);
            let weights = counted.weights(|i| f64::from(pairs[i].2));
            let repeated: Vec<(f64, f64)> = each
                .iter()
                .zip(&pairs)
                .flat_map(|(&pair, &(_, _, times))| vec![pair; usize::from(times)])
                .collect();
            let [r, rho, mae, _, exact] = all(&repeated);
            for (ours, theirs) in [
                (counted.pearson(&weights), r),
                (counted.spearman(&weights), rho),
                (counted.mean_absolute_error(&weights), mae),
                (counted.exact(&weights), exact),
            ] {
                match (ours, theirs) {
                    (Ok(a), Ok(b)) => prop_assert!((a - b).abs() < 1e-12),
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
        }

        #[test]
        fn sides_can_be_swapped(pairs in prop::collection::vec((0u8..9, 0u8..9), 0..20)) {
            let there: Vec<(f64, f64)> =
                pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).collect();
            let back: Vec<(f64, f64)> = there.iter().map(|&(x, y)| (y, x)).collect();
            for pair in all(&there).into_iter().zip(all(&back)) {
                match pair {
                    (Ok(a), Ok(b)) => prop_assert!((a - b).abs() < 1e-12),
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
        }
    }
}

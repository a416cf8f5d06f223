//! Scores as they are printed: a fixed number of decimals, rounded half up, and means of printed
//! scores, so that whoever reads a table can check it with a pocket calculator.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

/// A score in units of its last decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Points {
    units: i64,
    decimals: u8,
}

/// More decimals than this are noise.
const MOST_DECIMALS: usize = 9;

impl Points {
    /// The nearest score that is printed with so many decimals.
    pub fn of(score: f64, decimals: usize) -> Self {
        let decimals = decimals.min(MOST_DECIMALS) as u8;
        // What is half in decimal need not be half in binary: 1e-7 is far below what a label is worth.
        let units = (score * power(decimals) as f64 + 0.5 + 1e-7).floor() as i64;
        Self { units, decimals }
    }

    /// The mean of printed scores, with as many decimals as the finest of them; `None` of nothing.
    pub fn mean(scores: impl IntoIterator<Item = Self>) -> Option<Self> {
        let scores: Vec<Self> = scores.into_iter().collect();
        let decimals = scores.iter().map(|score| score.decimals).max()?;
        let count = i128::try_from(scores.len()).ok()?;
        let sum: i128 = scores
            .iter()
            .map(|score| i128::from(score.units) * i128::from(power(decimals - score.decimals)))
            .sum();
        // Half up, also below zero.
        let units = (2 * sum + count).div_euclid(2 * count);
        Some(Self { units: i64::try_from(units).ok()?, decimals })
    }

    /// As a number.
    pub fn value(self) -> f64 {
        self.units as f64 / power(self.decimals) as f64
    }
}

fn power(decimals: u8) -> i64 {
    10_i64.pow(u32::from(decimals))
}

impl PartialOrd for Points {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Points {
    fn cmp(&self, other: &Self) -> Ordering {
        let finest = self.decimals.max(other.decimals);
        let units = |one: &Self| i128::from(one.units) * i128::from(power(finest - one.decimals));
        units(self).cmp(&units(other)).then(self.decimals.cmp(&other.decimals))
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { units, decimals } = *self;
        let sign = if units < 0 { "-" } else { "" };
        let (whole, rest) = (units.abs() / power(decimals), units.abs() % power(decimals));
        match usize::from(decimals) {
            0 => f.pad(&format!("{sign}{whole}")),
            width => f.pad(&format!("{sign}{whole}.{rest:0width$}")),
        }
    }
}

impl Serialize for Points {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_decimals_as_asked_half_up() {
        let two = |score| Points::of(score, 2).to_string();
        assert_eq!(two(100.0 * 151.0 / 252.0), "59.92");
        assert_eq!(two(3.125), "3.13");
        assert_eq!(two(200.0 / 3.0), "66.67");
        assert_eq!(two(0.0), "0.00");
        // 1.005 is a little less than that in binary.
        assert_eq!(two(1.005), "1.01");
        assert_eq!(two(-0.254), "-0.25");
        assert_eq!(Points::of(27.25, 1).to_string(), "27.3");
        assert_eq!(Points::of(27.5, 0).to_string(), "28");
        assert_eq!(serde_json::to_string(&Points::of(12.7, 2)).unwrap(), "12.7");
        assert!(Points::of(1.0, 2) < Points::of(1.1, 1));
    }

    #[test]
    fn means_are_those_of_printed_scores() {
        let mean = |scores: &[f64]| Points::mean(scores.iter().map(|score| Points::of(*score, 2)));
        // Table 1 of the DLEBench paper: the means of Table 4's two criteria.
        assert_eq!(mean(&[59.92, 88.10]).unwrap().to_string(), "74.01");
        assert_eq!(mean(&[54.07, 34.54]).unwrap().to_string(), "44.31");
        assert_eq!(mean(&[12.70, 35.77]).unwrap().to_string(), "24.24");
        assert_eq!(mean(&[]), None);
        assert_eq!(
            Points::mean([Points::of(1.0, 0), Points::of(2.5, 1)]).unwrap().to_string(),
            "1.8"
        );
    }
}

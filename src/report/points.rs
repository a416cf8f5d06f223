//! Scores as they are printed: two decimals, rounded half up, and means of printed scores.
//!
//! The paper's averages are the means of its printed cells, and so are ours: whoever reads a table
//! can check it with a pocket calculator.

use std::fmt;

use serde::{Serialize, Serializer};

/// A score from 0.00 to 100.00, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Points(i64);

impl Points {
    /// The worst.
    pub const WORST: Self = Self(0);
    /// The best.
    pub const BEST: Self = Self(10_000);

    /// The nearest printed score.
    pub fn of(score: f64) -> Self {
        // What is half in decimal need not be half in binary: 1e-7 is far below what a label is worth.
        Self((score * 100.0 + 0.5 + 1e-7).floor() as i64)
    }

    /// The mean of printed scores; `None` of nothing.
    pub fn mean(scores: impl IntoIterator<Item = Self>) -> Option<Self> {
        let (sum, count) = scores.into_iter().fold((0, 0), |(sum, n), p| (sum + p.0, n + 1));
        (count > 0).then(|| Self((2 * sum + count) / (2 * count)))
    }

    /// As a number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 100.0
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:02}", self.0 / 100, self.0 % 100))
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
    fn two_decimals_half_up() {
        assert_eq!(Points::of(100.0 * 151.0 / 252.0).to_string(), "59.92");
        assert_eq!(Points::of(3.125).to_string(), "3.13");
        assert_eq!(Points::of(200.0 / 3.0).to_string(), "66.67");
        assert_eq!(Points::of(0.0).to_string(), "0.00");
        assert_eq!(Points::of(100.0), Points::BEST);
        // 1.005 is a little less than that in binary.
        assert_eq!(Points::of(1.005).to_string(), "1.01");
        assert_eq!(serde_json::to_string(&Points::of(12.7)).unwrap(), "12.7");
    }

    #[test]
    fn means_are_those_of_printed_scores() {
        let mean = |scores: &[f64]| Points::mean(scores.iter().copied().map(Points::of));
        // Table 1 of the paper: the means of Table 4's two criteria.
        assert_eq!(mean(&[59.92, 88.10]).unwrap().to_string(), "74.01");
        assert_eq!(mean(&[54.07, 34.54]).unwrap().to_string(), "44.31");
        assert_eq!(mean(&[12.70, 35.77]).unwrap().to_string(), "24.24");
        assert_eq!(mean(&[]), None);
    }
}

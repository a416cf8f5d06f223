//! Statistics: pure functions, no I/O, the same numbers on every machine.
//!
//! A number that does not exist is [`Undefined`] with its reason, never NaN and never 0. Where the
//! definition is shared with scipy, scikit-learn or the package `krippendorff`, so is the number.

mod alpha;
mod bootstrap;
mod estimate;
mod paired;
mod pairs;
mod special;

use std::fmt;

pub use self::alpha::{Level, RatingWeights, Ratings};
pub use self::bootstrap::{Bootstrap, Sum};
pub use self::estimate::Estimate;
pub use self::paired::{Finding, Paired, cases_needed, holm, sign_flip_test, sign_test};
pub use self::pairs::{Correlation, Pairs, Weights, pearson, spearman};

/// A number, or why there is none.
pub type Statistic = Result<f64, Undefined>;

/// Why a number does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undefined {
    /// Nothing to count, or not enough of it.
    #[error("{n} of at least {needed} items")]
    TooFew {
        /// How many there are.
        n: usize,
        /// How many it takes.
        needed: usize,
    },
    /// A correlation with something that never changes.
    #[error("one side is constant")]
    Constant,
    /// Agreement by chance is certain where everybody always says the same.
    #[error("only one value occurs")]
    OneValue,
    /// Words that nobody ranked.
    #[error("the labels have no order")]
    NoOrder,
    /// A category is a label or a whole number.
    #[error("not all numbers are whole")]
    NotWhole,
    /// Numbers that are not on one scale can only be compared in their order.
    #[error("people's numbers are on another scale")]
    OtherScale,
    /// Beyond what floating point holds.
    #[error("the numbers are too large")]
    TooLarge,
}

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "[{}, {}]", rounded(self.low, digits), rounded(self.high, digits))
    }
}

/// The plain mean.
pub fn mean(values: &[f64]) -> Statistic {
    let sum: f64 = values.iter().sum();
    match values.len() {
        0 => Err(Undefined::TooFew { n: 0, needed: 1 }),
        n => finite(sum / n as f64),
    }
}

/// How many of all gave an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Coverage {
    /// Those with an answer.
    pub answered: usize,
    /// All.
    pub all: usize,
}

impl Coverage {
    /// From 0 to 1; of nothing there is no fraction.
    pub fn fraction(self) -> Statistic {
        match self.all {
            0 => Err(Undefined::TooFew { n: 0, needed: 1 }),
            all => Ok(self.answered as f64 / all as f64),
        }
    }

    /// Where the mean over all would be if those without an answer were all as bad (`scale.low`) or
    /// all as good (`scale.high`) as can be. `sum` is over those with an answer.
    pub fn bounds(self, sum: f64, scale: Interval) -> Option<Interval> {
        let (silent, all) = (self.all.checked_sub(self.answered)? as f64, self.all as f64);
        let with = |value: f64| (sum + silent * value) / all;
        (self.all > 0).then(|| Interval { low: with(scale.low), high: with(scale.high) })
    }
}

/// A number with so many decimals; what rounds to 0 has no sign.
fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.chars().all(|c| matches!(c, '0' | '.')) => zero.to_owned(),
        _ => text,
    }
}

/// Nothing that is not a number leaves this module.
fn finite(value: f64) -> Statistic {
    if value.is_finite() { Ok(value) } else { Err(Undefined::TooLarge) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_mean_and_no_coverage() {
        assert_eq!(mean(&[]), Err(Undefined::TooFew { n: 0, needed: 1 }));
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Ok(3.0));
        assert_eq!(mean(&[f64::MAX, f64::MAX]), Err(Undefined::TooLarge));
        assert!(Coverage::default().fraction().is_err());
        assert_eq!(Coverage { answered: 3, all: 4 }.fraction(), Ok(0.75));
    }

    #[test]
    fn bounds_hold_what_the_silent_could_have_said() {
        let scale = Interval { low: 0.0, high: 100.0 };
        let bounds = |answered, all, sum| Coverage { answered, all }.bounds(sum, scale);
        assert_eq!(bounds(3, 4, 150.0), Some(Interval { low: 37.5, high: 62.5 }));
        assert_eq!(bounds(2, 2, 150.0), Some(Interval { low: 75.0, high: 75.0 }));
        assert_eq!(bounds(0, 2, 0.0), Some(scale));
        assert_eq!(bounds(0, 0, 0.0), None);
    }
}

//! The one special function that tests need.

/// The regularised incomplete beta function `I_x(a, b)` for `a, b > 0`, to about 1e-12.
pub(super) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly on this side only; the other follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = libm::exp(a * libm::log(x) + b * libm::log1p(-x) - ln_beta) / a;
    (front * continued_fraction(x, a, b)).clamp(0.0, 1.0)
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const CLOSE: f64 = 1e-15;
    const MOST_STEPS: u32 = 100_000;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=MOST_STEPS {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < CLOSE {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_of_the_incomplete_beta_function() {
        // I_x(1, 1) = x; I_x(2, 1) = x²; I_x(1/2, 1/2) = 2/π asin √x.
        assert!((incomplete_beta(0.3, 1.0, 1.0) - 0.3).abs() < 1e-14);
        assert!((incomplete_beta(0.3, 2.0, 1.0) - 0.09).abs() < 1e-14);
        assert!((incomplete_beta(0.25, 0.5, 0.5) - 1.0 / 3.0).abs() < 1e-14);
        assert_eq!(incomplete_beta(0.0, 2.0, 3.0), 0.0);
        assert_eq!(incomplete_beta(1.0, 2.0, 3.0), 1.0);
        assert!((incomplete_beta(0.5, 1e6, 1e6) - 0.5).abs() < 1e-9);
    }
}

//! CIELAB, and how far apart two colours look: CIEDE2000.
//!
//! The constants are those of sRGB (IEC 61966-2-1) and of the standard observer (2°) under D65, with the
//! digits that scikit-image uses, so that the numbers can be checked against it. Powers and angles come from
//! `libm`: they must be the same on every platform.

use libm::{atan2, cbrt, cos, exp, hypot, pow, sin};
use serde::Serialize;

/// Lightness 0 to 100, green to red, blue to yellow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lab(pub [f64; 3]);

const XYZ_OF_RGB: [[f64; 3]; 3] = [
    [0.412453, 0.357580, 0.180423],
    [0.212671, 0.715160, 0.072169],
    [0.019334, 0.119193, 0.950227],
];
const WHITE: [f64; 3] = [0.95047, 1.0, 1.08883];

impl Lab {
    /// Of a colour in 8-bit sRGB.
    pub fn of(rgb: [u8; 3]) -> Self {
        let linear = rgb.map(|value| {
            let value = f64::from(value) / 255.0;
            if value > 0.04045 { pow((value + 0.055) / 1.055, 2.4) } else { value / 12.92 }
        });
        let [x, y, z] = std::array::from_fn(|row| {
            let [r, g, b] = XYZ_OF_RGB[row];
            let part = (r * linear[0] + g * linear[1] + b * linear[2]) / WHITE[row];
            if part > 0.008856 { cbrt(part) } else { 7.787 * part + 16.0 / 116.0 }
        });
        Self([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])
    }

    /// The square of the plain distance: enough to tell which of two colours is nearer.
    pub(super) fn distance_squared(self, other: Self) -> f64 {
        (0..3).map(|i| (self.0[i] - other.0[i]) * (self.0[i] - other.0[i])).sum()
    }

    /// CIEDE2000 with all weights 1: about 1 is the least that people see.
    pub fn delta_e(self, other: Self) -> f64 {
        let ([l1, a1, b1], [l2, a2, b2]) = (self.0, other.0);
        let mean_chroma7 = pow((hypot(a1, b1) + hypot(a2, b2)) / 2.0, 7.0);
        let stretch = 1.5 - 0.5 * (mean_chroma7 / (mean_chroma7 + TWENTY_FIVE_7)).sqrt();
        let (a1, a2) = (a1 * stretch, a2 * stretch);
        let (c1, c2) = (hypot(a1, b1), hypot(a2, b2));
        let (h1, h2) = (hue(a1, b1), hue(a2, b2));

        let (lightness, chroma) = (l2 - l1, c2 - c1);
        // Grey has no hue, and so no difference of hue to anything.
        let grey = c1 * c2 == 0.0;
        let turn = match h2 - h1 {
            _ if grey => 0.0,
            turn if turn > 180.0 => turn - 360.0,
            turn if turn < -180.0 => turn + 360.0,
            turn => turn,
        };
        let hue_difference = 2.0 * (c1 * c2).sqrt() * sin((turn / 2.0).to_radians());

        let (mean_l, mean_c) = ((l1 + l2) / 2.0, (c1 + c2) / 2.0);
        let mean_h = match h1 + h2 {
            sum if grey => sum,
            sum if (h1 - h2).abs() <= 180.0 => sum / 2.0,
            sum if sum < 360.0 => (sum + 360.0) / 2.0,
            sum => (sum - 360.0) / 2.0,
        };
        let wave = |times: f64, shift: f64| cos((times * mean_h + shift).to_radians());
        let t = 1.0 - 0.17 * wave(1.0, -30.0) + 0.24 * wave(2.0, 0.0) + 0.32 * wave(3.0, 6.0)
            - 0.20 * wave(4.0, -63.0);
        let from_middle = (mean_l - 50.0) * (mean_l - 50.0);
        let weight_l = 1.0 + 0.015 * from_middle / (20.0 + from_middle).sqrt();
        let (weight_c, weight_h) = (1.0 + 0.045 * mean_c, 1.0 + 0.015 * mean_c * t);
        let blueness = (mean_h - 275.0) / 25.0;
        let mean_c7 = pow(mean_c, 7.0);
        let turning = -2.0
            * (mean_c7 / (mean_c7 + TWENTY_FIVE_7)).sqrt()
            * sin((60.0 * exp(-blueness * blueness)).to_radians());

        let (l, c, h) = (lightness / weight_l, chroma / weight_c, hue_difference / weight_h);
        (l * l + c * c + h * h + turning * c * h).max(0.0).sqrt()
    }
}

/// 25⁷
const TWENTY_FIVE_7: f64 = 6_103_515_625.0;

/// In degrees, 0 to 360.
fn hue(a: f64, b: f64) -> f64 {
    if a == 0.0 && b == 0.0 {
        return 0.0;
    }
    let degrees = atan2(b, a).to_degrees();
    if degrees < 0.0 { degrees + 360.0 } else { degrees }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scikit_image_says() {
        // tools/tests/golden/colour/make.py: pairs of colours, their Lab values and CIEDE2000.
        let golden = include_str!("../../tests/golden/colour/ciede2000.csv");
        let mut count = 0;
        for line in golden.lines().skip(1) {
            let values: Vec<f64> = line.split(',').map(|v| v.parse().unwrap()).collect();
            let rgb = |at: usize| [0, 1, 2].map(|i| values[at + i] as u8);
            let (first, second) = (Lab::of(rgb(0)), Lab::of(rgb(3)));
            for (lab, at) in [(first, 6), (second, 9)] {
                for i in 0..3 {
                    assert!((lab.0[i] - values[at + i]).abs() < 1e-4, "{line}: {lab:?}");
                }
            }
            let own = first.delta_e(second);
            assert!((own - values[12]).abs() < 1e-4, "{line}: {own}");
            assert!((own - second.delta_e(first)).abs() < 1e-9, "{line}: it depends on the order");
            count += 1;
        }
        assert!(count > 300, "{count}");
    }

    #[test]
    fn the_published_test_data() {
        // Four of the pairs with which Sharma, Wu and Dalal (2005) check implementations: they lie where
        // the mean hue jumps.
        for (a, b, expected) in [
            ([50.0, 2.6772, -79.7751], [50.0, 0.0, -82.7485], 2.0425),
            ([50.0, 2.4900, -0.0010], [50.0, -2.4900, 0.0011], 7.2195),
            ([50.0, -0.0010, 2.4900], [50.0, 0.0011, -2.4900], 4.7461),
            ([2.0776, 0.0795, -1.1350], [0.9033, -0.0636, -0.5514], 0.9082),
        ] {
            assert!((Lab(a).delta_e(Lab(b)) - expected).abs() < 1e-4, "{a:?} {b:?}");
        }
    }
}

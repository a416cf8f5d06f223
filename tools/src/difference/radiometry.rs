//! What changed in tone, sharpness and lighting over the whole picture, and what remains without it.

use multiversion::multiversion;
use rayon::prelude::*;

use super::settings::Settings;
use crate::registration::plane::Plane;
use crate::registration::relighting::Relighting;

/// Values beyond these are clipped and tell nothing about the curve.
const USABLE: std::ops::RangeInclusive<f32> = 2.0..=253.0;
/// Steps of iterative reweighting of the tone curve.
const TONE_STEPS: usize = 8;
/// Pull of the curve toward no change, as if this part of the pixels said so.
const TONE_RIDGE: f64 = 0.02;
/// Blurs that are tried to match the sharpness of both pictures, in pixels of the frame.
const BLURS: [f32; 9] = [0.0, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2];
/// A blur must lower the residual by this factor to be believed.
const BLUR_GAIN: f64 = 0.995;
/// Quarter-size pixels per cell of the relighting field.
const RELIGHT_CELL: usize = 4;

/// Both pictures made alike, and their difference.
pub(crate) struct Alike {
    /// The first, with the second one's tone, smoothed.
    pub(crate) first: [Plane; 3],
    /// The second, smoothed.
    pub(crate) second: [Plane; 3],
    /// Second minus first, without relighting.
    pub(crate) residual: [Plane; 3],
    /// The tone curves, one per channel.
    pub(crate) curves: [Curve; 3],
    /// Blur of the second against the first, in pixels of the frame; negative if it is sharper.
    pub(crate) blur: f32,
    /// The strongest relighting, as a part of the brightness.
    pub(crate) relighting: f32,
}

/// A tone curve: what the second picture makes of a value of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Curve([f32; 4]);

impl Curve {
    /// `value + Σ cₖ·tᵏ` with `t` from −1 to 1.
    #[inline(always)]
    pub(crate) fn apply(&self, value: f32) -> f32 {
        let t = value * (2.0 / 255.0) - 1.0;
        let [a, b, c, d] = self.0;
        value + (a + t * (b + t * (c + t * d)))
    }

    /// Mean absolute change over the values 0 to 255.
    pub(crate) fn strength(&self) -> f32 {
        (0..=16).map(|i| i as f32 * 255.0 / 16.0).map(|v| (self.apply(v) - v).abs()).sum::<f32>()
            / 17.0
    }

    /// Fits `second ≈ curve(first)` robustly where the mask is set.
    fn fit(first: &Plane, second: &Plane, mask: &Plane) -> Self {
        // A large flat ground must not outvote everything else.
        let mut counts = [1.0f32; 32];
        let bin = |v: f32| ((v / 8.0) as usize).min(31);
        first.data.iter().for_each(|&v| counts[bin(v)] += 1.0);
        let samples: Vec<(f32, f32, f32)> = first
            .data
            .iter()
            .zip(&second.data)
            .zip(&mask.data)
            .filter(|((a, b), m)| **m > 0.99 && USABLE.contains(*a) && USABLE.contains(*b))
            .map(|((&a, &b), _)| (a, b, 1.0 / counts[bin(a)].sqrt()))
            .collect();
        let mut curve = Self([0.0; 4]);
        if samples.len() < 64 {
            return curve;
        }
        let mut sigma = 24.0f32;
        for _ in 0..TONE_STEPS {
            let mut matrix = [[0.0f64; 4]; 4];
            let mut right = [0.0f64; 4];
            let mut total = 0.0;
            let soft = 1.0 / (4.0 * sigma * sigma);
            let (mut spread, mut weights) = (0.0f64, 0.0f64);
            for &(a, b, weight) in &samples {
                let r = b - curve.apply(a);
                let w = weight / (1.0 + r * r * soft);
                let t = a * (2.0 / 255.0) - 1.0;
                let powers = [1.0, t, t * t, t * t * t];
                for i in 0..4 {
                    for j in 0..=i {
                        matrix[i][j] += f64::from(w * powers[i] * powers[j]);
                    }
                    right[i] += f64::from(w * powers[i] * (b - a));
                }
                total += f64::from(w);
                spread += f64::from(w * r.abs());
                weights += f64::from(w);
            }
            for i in 0..4 {
                matrix[i][i] += TONE_RIDGE * total * if i == 0 { 0.1 } else { 1.0 };
            }
            let Some(solved) = solve4(&matrix, &right) else { break };
            curve = Self(solved.map(|v| v as f32));
            sigma = ((1.25 * spread / weights.max(1e-9)) as f32).clamp(2.0, 24.0);
        }
        curve
    }
}

/// Cholesky for a symmetric matrix of which the lower half is given.
fn solve4(matrix: &[[f64; 4]; 4], right: &[f64; 4]) -> Option<[f64; 4]> {
    let mut l = [[0.0; 4]; 4];
    for i in 0..4 {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            let value = matrix[i][j] - inner;
            if i == j {
                if !(value > 1e-12) {
                    return None;
                }
                l[i][i] = value.sqrt();
            } else {
                l[i][j] = value / l[j][j];
            }
        }
    }
    let mut x = [0.0; 4];
    for i in 0..4 {
        x[i] = (right[i] - (0..i).map(|k| l[i][k] * x[k]).sum::<f64>()) / l[i][i];
    }
    for i in (0..4).rev() {
        x[i] = (x[i] - (i + 1..4).map(|k| l[k][i] * x[k]).sum::<f64>()) / l[i][i];
    }
    Some(x)
}

/// Makes the pictures alike.
pub(crate) fn alike(
    first: &[Plane; 3],
    second: &[Plane; 3],
    mask: &Plane,
    settings: &Settings,
) -> Alike {
    let quarter = |plane: &Plane| plane.halved().halved();
    let small_mask = quarter(mask);
    let curves: Vec<Curve> = (0..3)
        .into_par_iter()
        .map(|c| Curve::fit(&quarter(&first[c]), &quarter(&second[c]), &small_mask))
        .collect();
    let curves = [curves[0], curves[1], curves[2]];
    let toned: Vec<Plane> = (0..3).map(|c| toned(&first[c], &curves[c])).collect();
    let blur = match_blur(&luma(&toned), &luma(second), mask);
    let base = settings.smoothing;
    let own = (blur.max(0.0).powi(2) + base * base).sqrt();
    let their = (blur.min(0.0).powi(2) + base * base).sqrt();
    let first: Vec<Plane> = toned.iter().map(|p| p.blurred(own)).collect();
    let second: Vec<Plane> = second.iter().map(|p| p.blurred(their)).collect();
    let small = |planes: &[Plane]| planes.par_iter().map(quarter).collect::<Vec<Plane>>();
    let long = mask.width.max(mask.height) as f32;
    let sigma = settings.relighting * long / 4.0;
    let light =
        Relighting::estimate(&small(&first), &small(&second), &small_mask, RELIGHT_CELL, sigma);
    let first: Vec<Plane> = (0..3).map(|c| light.apply(c, &first[c], 4.0)).collect();
    let residual: Vec<Plane> = (0..3)
        .map(|c| first[c].map_rows(|y, out| subtract(first[c].row(y), second[c].row(y), out)))
        .collect();
    let relighting = light.reach();
    Alike {
        first: three(first),
        second: three(second),
        residual: three(residual),
        curves,
        blur,
        relighting,
    }
}

fn three(planes: Vec<Plane>) -> [Plane; 3] {
    let mut planes = planes.into_iter();
    std::array::from_fn(|_| planes.next().unwrap_or_default())
}

fn toned(plane: &Plane, curve: &Curve) -> Plane {
    plane.map_rows(|y, out| apply_curve(curve, plane.row(y), out))
}

#[multiversion(targets("x86_64+avx2"))]
fn apply_curve(curve: &Curve, row: &[f32], out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        *out = curve.apply(*v).clamp(0.0, 255.0);
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn subtract(first: &[f32], second: &[f32], out: &mut [f32]) {
    for ((out, a), b) in out.iter_mut().zip(first).zip(second) {
        *out = b - a;
    }
}

pub(crate) fn luma(rgb: &[Plane]) -> Plane {
    rgb[0].map_rows(|y, out| {
        let (r, g, b) = (rgb[0].row(y), rgb[1].row(y), rgb[2].row(y));
        for (((out, r), g), b) in out.iter_mut().zip(r).zip(g).zip(b) {
            *out = r * 0.299 + g * 0.587 + b * 0.114;
        }
    })
}

/// How much more blurred the second picture is, in pixels; negative if the first one is.
fn match_blur(first: &Plane, second: &Plane, mask: &Plane) -> f32 {
    let (first, second, mask) = (Strips::of(first), Strips::of(second), Strips::of(mask));
    let plain = first.distance(&second.0, &mask);
    let best = |changed: &Strips, fixed: &Strips| {
        let mut best = (0.0, plain);
        for &sigma in &BLURS[1..] {
            let cost = fixed.distance(&changed.0.blurred(sigma), &mask);
            if cost >= best.1 * BLUR_GAIN {
                break;
            }
            best = (sigma, cost);
        }
        best
    };
    let forward = best(&first, &second);
    if forward.0 > 0.0 { forward.0 } else { -best(&second, &first).0 }
}

/// A few strips of a picture, one below the other: enough to tell its sharpness from.
struct Strips(Plane);

impl Strips {
    const ROWS: usize = 24;
    const MARGIN: usize = 6;

    fn of(plane: &Plane) -> Self {
        let count = (plane.height / (4 * Self::ROWS)).max(1);
        let mut strips = Plane { width: plane.width, ..Plane::default() };
        for i in 0..count {
            let start = plane.height * (2 * i + 1) / (2 * count);
            let start = start.saturating_sub(Self::ROWS / 2);
            let end = (start + Self::ROWS).min(plane.height);
            strips.data.extend_from_slice(&plane.data[start * plane.width..end * plane.width]);
            strips.height += end - start;
        }
        Self(strips)
    }

    /// Mean capped difference to `other`, away from the strips' ends.
    fn distance(&self, other: &Plane, mask: &Self) -> f64 {
        let (mut sum, mut count) = (0.0f64, 1e-9f64);
        for y in 0..self.0.height {
            let inside = y % Self::ROWS;
            if inside < Self::MARGIN || inside >= Self::ROWS - Self::MARGIN {
                continue;
            }
            let (mut line, mut seen) = (0.0f32, 0.0f32);
            for ((a, b), m) in self.0.row(y).iter().zip(other.row(y)).zip(mask.0.row(y)) {
                line += (a - b).abs().min(20.0) * m;
                seen += m;
            }
            sum += f64::from(line);
            count += f64::from(seen);
        }
        sum / count
    }
}

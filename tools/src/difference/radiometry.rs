//! What changed in tone, sharpness and lighting over the whole picture.

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
const BLURS: [f32; 8] = [0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2];
/// A blur must lower the residual by this factor to be believed.
const BLUR_GAIN: f64 = 0.995;
/// Quarter-size pixels per cell of the relighting field.
const RELIGHT_CELL: usize = 4;
/// The size of the frame against the planes from which tone and lighting are told.
pub(crate) const QUARTER: f32 = 4.0;
/// Weights of red, green and blue in brightness.
pub(crate) const LUMA: [f32; 3] = [0.299, 0.587, 0.114];

/// How the second picture's tone, sharpness and lighting differ from the first's.
pub(crate) struct Radiometry {
    /// The tone curves, one per channel.
    pub(crate) curves: [Curve; 3],
    /// Blur of the second against the first, in pixels of the frame; negative if it is sharper.
    pub(crate) blur: f32,
    /// The lighting, by channel, after tone.
    pub(crate) light: Relighting,
}

impl Radiometry {
    /// Tells them from the frames, the second one brought onto the first.
    pub(crate) fn estimate(
        first: &[Plane; 3],
        second: &[Plane; 3],
        mask: &Plane,
        settings: &Settings,
    ) -> Self {
        let small_mask = mask.quartered();
        let small: Vec<(Curve, Plane, Plane)> = (0..3)
            .into_par_iter()
            .map(|c| {
                let (mut a, b) = (first[c].quartered(), second[c].quartered());
                let curve = Curve::fit(&a, &b, &small_mask);
                apply_curve(&curve, &mut a.data);
                (curve, a, b)
            })
            .collect();
        let mut curves = [Curve::default(); 3];
        let (mut own, mut their) = (Vec::new(), Vec::new());
        for (slot, (curve, a, b)) in curves.iter_mut().zip(small) {
            *slot = curve;
            own.push(a);
            their.push(b);
        }
        let long = mask.width.max(mask.height) as f32;
        let sigma = settings.relighting * long / QUARTER;
        let (light, blur) = rayon::join(
            || Relighting::estimate(&own, &their, &small_mask, RELIGHT_CELL, sigma),
            || match_blur(first, second, &curves, mask),
        );
        Self { curves, blur, light }
    }

    /// Nothing changed.
    pub(crate) fn none() -> Self {
        let light = Relighting::none(3, RELIGHT_CELL);
        Self { curves: [Curve::default(); 3], blur: 0.0, light }
    }

    /// A value of the first picture as the second one would show it.
    pub(crate) fn predicted(&self, channel: usize, value: f32, x: usize, y: usize) -> f32 {
        let gain = self.light.at(channel, x, y, QUARTER);
        (self.curves[channel].apply(value).clamp(0.0, 255.0) * (1.0 + gain)).min(255.0)
    }

    /// Smoothing of the first and of the second picture that makes them equally sharp.
    pub(crate) fn smoothing(&self, base: f32) -> (f32, f32) {
        let with = |blur: f32| (blur * blur + base * base).sqrt();
        (with(self.blur.max(0.0)), with(self.blur.min(0.0)))
    }
}

/// A tone curve: what the second picture makes of a value of the first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Curve([f32; 4]);

impl Curve {
    /// `value + Σ cₖ·tᵏ` with `t` from −1 to 1.
    #[inline(always)]
    pub(crate) fn apply(&self, value: f32) -> f32 {
        let t = value * (2.0 / 255.0) - 1.0;
        let [a, b, c, d] = self.0;
        value + (a + t * (b + t * (c + t * d)))
    }

    /// What becomes of each of the 256 levels.
    pub(crate) fn table(&self) -> [f32; 256] {
        std::array::from_fn(|v| self.apply(v as f32).clamp(0.0, 255.0))
    }

    /// Mean absolute change over the values 0 to 255.
    pub(crate) fn strength(&self) -> f32 {
        let values = (0..=16).map(|i| i as f32 * 255.0 / 16.0);
        values.map(|v| (self.apply(v) - v).abs()).sum::<f32>() / 17.0
    }

    /// Fits `second ≈ curve(first)` robustly where the mask is set.
    fn fit(first: &Plane, second: &Plane, mask: &Plane) -> Self {
        // A large flat ground must not outvote everything else.
        let mut counts = [1.0f32; 32];
        let bin = |v: f32| ((v / 8.0) as usize).min(31);
        first.data.iter().for_each(|&v| counts[bin(v)] += 1.0);
        let say = counts.map(|count| 1.0 / count.sqrt());
        let weights: Vec<f32> = first
            .data
            .iter()
            .zip(&second.data)
            .zip(&mask.data)
            .map(|((a, b), m)| {
                let usable = *m > 0.99 && USABLE.contains(a) && USABLE.contains(b);
                if usable { say[bin(*a)] } else { 0.0 }
            })
            .collect();
        let mut curve = Self::default();
        if weights.iter().filter(|w| **w > 0.0).count() < 64 {
            return curve;
        }
        let mut sigma = 24.0f32;
        for _ in 0..TONE_STEPS {
            let sums = tone_sums(&curve, sigma, &first.data, &second.data, &weights);
            let mut matrix = [[0.0f64; 4]; 4];
            for (i, row) in matrix.iter_mut().enumerate() {
                for (j, value) in row.iter_mut().enumerate() {
                    *value = sums[i + j];
                }
                row[i] += TONE_RIDGE * sums[0] * if i == 0 { 0.1 } else { 1.0 };
            }
            let right = [sums[7], sums[8], sums[9], sums[10]];
            let Some(solved) = solve4(&matrix, &right) else { break };
            curve = Self(solved.map(|v| v as f32));
            sigma = ((1.25 * sums[11] / sums[0].max(1e-9)) as f32).clamp(2.0, 24.0);
        }
        curve
    }
}

/// `Σ w·t⁰…⁶`, `Σ w·t⁰…³·(b − a)` and `Σ w·|r|` with robust weights.
#[multiversion(targets("x86_64+avx2"))]
fn tone_sums(curve: &Curve, sigma: f32, first: &[f32], second: &[f32], say: &[f32]) -> [f64; 12] {
    const LANES: usize = 8;
    /// Values after which the lanes are added up, so that they stay exact enough.
    const BLOCK: usize = 2048;
    let soft = 1.0 / (4.0 * sigma * sigma);
    let mut total = [0.0f64; 12];
    let blocks = first.chunks(BLOCK).zip(second.chunks(BLOCK)).zip(say.chunks(BLOCK));
    for ((first, second), say) in blocks {
        let mut sums = [[0.0f32; LANES]; 12];
        let chunks =
            first.chunks_exact(LANES).zip(second.chunks_exact(LANES)).zip(say.chunks_exact(LANES));
        for ((a, b), say) in chunks {
            for i in 0..LANES {
                let r = b[i] - curve.apply(a[i]);
                let w = say[i] / (1.0 + r * r * soft);
                let t = a[i] * (2.0 / 255.0) - 1.0;
                let change = b[i] - a[i];
                let mut power = w;
                for (k, sum) in sums[..7].iter_mut().enumerate() {
                    sum[i] += power;
                    if k < 6 {
                        power *= t;
                    }
                }
                let mut power = w * change;
                for sum in &mut sums[7..11] {
                    sum[i] += power;
                    power *= t;
                }
                sums[11][i] += w * r.abs();
            }
        }
        // What does not fill the lanes is too little to matter.
        for (total, sum) in total.iter_mut().zip(&sums) {
            *total += f64::from(sum.iter().sum::<f32>());
        }
    }
    total
}

/// Cholesky for a symmetric matrix.
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

/// Replaces values by what the curve makes of them.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn apply_curve(curve: &Curve, row: &mut [f32]) {
    for v in row {
        *v = curve.apply(*v).clamp(0.0, 255.0);
    }
}

/// How much more blurred the second picture is, in pixels; negative if the first one is.
fn match_blur(first: &[Plane; 3], second: &[Plane; 3], curves: &[Curve; 3], mask: &Plane) -> f32 {
    let none = [Curve::default(); 3];
    let (own, their) = (Strips::of(first, curves), Strips::of(second, &none));
    let rows: Vec<&[f32]> = own.rows.iter().map(|&y| mask.row(y)).collect();
    let plain = own.distance(&their.luma, &rows);
    let best = |changed: &Strips, fixed: &Strips| {
        let mut best = (0.0, plain);
        for sigma in BLURS {
            let cost = fixed.distance(&changed.luma.blurred(sigma), &rows);
            if cost >= best.1 * BLUR_GAIN {
                break;
            }
            best = (sigma, cost);
        }
        best
    };
    let forward = best(&own, &their);
    if forward.0 > 0.0 { forward.0 } else { -best(&their, &own).0 }
}

/// The brightness of a few strips of a picture, one below the other: enough to tell its sharpness.
struct Strips {
    luma: Plane,
    /// The row of the picture that each row is.
    rows: Vec<usize>,
}

impl Strips {
    const ROWS: usize = 24;
    /// Rows at a strip's ends that know their neighbours only in part.
    const MARGIN: usize = 6;

    fn of(rgb: &[Plane; 3], curves: &[Curve; 3]) -> Self {
        let (width, height) = (rgb[0].width, rgb[0].height);
        let count = (height / (4 * Self::ROWS)).max(1);
        let mut rows = Vec::new();
        for i in 0..count {
            let start = (height * (2 * i + 1) / (2 * count)).saturating_sub(Self::ROWS / 2);
            rows.extend(start..(start + Self::ROWS).min(height));
        }
        let mut luma = Plane::new(width, rows.len());
        luma.fill_rows(|y, out| {
            for c in 0..3 {
                add_toned(rgb[c].row(rows[y]), &curves[c], LUMA[c], out);
            }
        });
        Self { luma, rows }
    }

    /// Mean capped difference to `other`, away from the strips' ends.
    fn distance(&self, other: &Plane, mask: &[&[f32]]) -> f64 {
        let (mut sum, mut count) = (0.0f64, 1e-9f64);
        for (y, mask) in mask.iter().enumerate() {
            let inside = y % Self::ROWS;
            if (Self::MARGIN..Self::ROWS - Self::MARGIN).contains(&inside) {
                let [line, seen] = capped_distance(self.luma.row(y), other.row(y), mask);
                sum += f64::from(line);
                count += f64::from(seen);
            }
        }
        sum / count
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn add_toned(row: &[f32], curve: &Curve, weight: f32, out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        *out += curve.apply(*v) * weight;
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn capped_distance(a: &[f32], b: &[f32], mask: &[f32]) -> [f32; 2] {
    const LANES: usize = 8;
    let mut sums = [[0.0f32; LANES]; 2];
    let chunks = a.chunks_exact(LANES).zip(b.chunks_exact(LANES)).zip(mask.chunks_exact(LANES));
    for ((a, b), m) in chunks {
        for i in 0..LANES {
            let d = (a[i] - b[i]).abs();
            sums[0][i] += if d < 20.0 { d } else { 20.0 } * m[i];
            sums[1][i] += m[i];
        }
    }
    sums.map(|lanes| lanes.iter().sum())
}

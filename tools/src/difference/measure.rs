//! How strongly each pixel differs, in grey levels and in units of the pair's own noise.

use multiversion::multiversion;
use rayon::prelude::*;

use super::radiometry::{Alike, luma};
use super::settings::Settings;
use crate::registration::plane::{Histogram, Plane};

/// Bins of equal count over the texture, each with a noise of its own.
const BINS: usize = 12;
/// Resolution of the tables over texture and difference, per grey level, and their reach.
const PER_LEVEL: f32 = 8.0;
const LEVELS: usize = 2048;

/// The measured difference.
pub(crate) struct Measure {
    /// In grey levels, pooled.
    pub(crate) difference: Plane,
    /// In units of noise, pooled.
    pub(crate) z: Plane,
    /// The noise of the pair on flat ground, in grey levels.
    pub(crate) noise: f32,
    /// The largest gradient around each pixel, in the first and the second picture.
    pub(crate) steepness: [Plane; 2],
}

/// Measures the difference of pictures that were made alike; `mask` says where they can be.
pub(crate) fn measure(alike: &Alike, mask: &Plane, settings: &Settings) -> Measure {
    let [r, g, b] = &alike.residual;
    let raw = r.map_rows(|y, out| length(r.row(y), g.row(y), b.row(y), mask.row(y), out));
    let (own, their) =
        rayon::join(|| steepness(&luma(&alike.first)), || steepness(&luma(&alike.second)));
    // The smaller of both: the new edge of an edit must not excuse itself.
    let texture = own
        .map_rows(|y, out| {
            for ((out, a), b) in out.iter_mut().zip(own.row(y)).zip(their.row(y)) {
                *out = a.min(*b);
            }
        })
        .blurred(1.0);
    let noise = NoiseCurve::of(&raw, &texture, mask, settings);
    let z = raw.map_rows(|y, out| {
        for ((out, d), t) in out.iter_mut().zip(raw.row(y)).zip(texture.row(y)) {
            *out = d * noise.inverse(*t);
        }
    });
    let (difference, z) =
        rayon::join(|| raw.blurred(settings.pooling), || z.blurred(settings.pooling));
    Measure {
        difference,
        z,
        noise: noise.table.first().copied().unwrap_or(0.0),
        steepness: [own, their],
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn length(r: &[f32], g: &[f32], b: &[f32], mask: &[f32], out: &mut [f32]) {
    let n = out.len();
    let (r, g, b, mask) = (&r[..n], &g[..n], &b[..n], &mask[..n]);
    for x in 0..n {
        let sum = r[x] * r[x] + g[x] * g[x] + b[x] * b[x];
        out[x] = (sum * (1.0 / 3.0)).sqrt() * mask[x];
    }
}

/// The largest gradient in the 3×3 neighbourhood.
fn steepness(luma: &Plane) -> Plane {
    let gradient = luma.map_rows(|y, out| {
        let above = luma.row_clamped(y as isize - 1);
        let below = luma.row_clamped(y as isize + 1);
        gradients(above, luma.row(y), below, out);
    });
    gradient.map_rows(|y, out| {
        let above = gradient.row_clamped(y as isize - 1);
        let below = gradient.row_clamped(y as isize + 1);
        maxima(above, gradient.row(y), below, out);
    })
}

#[multiversion(targets("x86_64+avx2"))]
fn gradients(above: &[f32], row: &[f32], below: &[f32], out: &mut [f32]) {
    let n = out.len();
    let (above, row, below) = (&above[..n], &row[..n], &below[..n]);
    for x in 1..n.saturating_sub(1) {
        let (gx, gy) = ((row[x + 1] - row[x - 1]) * 0.5, (below[x] - above[x]) * 0.5);
        out[x] = (gx * gx + gy * gy).sqrt();
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn maxima(above: &[f32], row: &[f32], below: &[f32], out: &mut [f32]) {
    let n = out.len();
    let (above, row, below) = (&above[..n], &row[..n], &below[..n]);
    let max = |a: f32, b: f32| if a > b { a } else { b };
    let column = |x: usize| max(max(above[x], row[x]), below[x]);
    for x in 1..n.saturating_sub(1) {
        out[x] = max(max(column(x - 1), column(x)), column(x + 1));
    }
}

/// How much difference a texture brings by itself.
struct NoiseCurve {
    table: Vec<f32>,
    inverse: Vec<f32>,
}

impl NoiseCurve {
    fn of(difference: &Plane, texture: &Plane, mask: &Plane, settings: &Settings) -> Self {
        let rows: Vec<usize> = (0..texture.height).step_by(2).collect();
        let mut textures = Histogram::new(LEVELS, PER_LEVEL);
        for &y in &rows {
            for (t, m) in texture.row(y).iter().zip(mask.row(y)) {
                if *m > 0.5 {
                    textures.add(*t);
                }
            }
        }
        let edges: Vec<f32> =
            (1..BINS).map(|i| textures.quantile(i as f64 / BINS as f64)).collect();
        // The bin of each texture, by table.
        let bins: Vec<u8> = (0..LEVELS)
            .map(|i| edges.iter().filter(|e| **e < i as f32 / PER_LEVEL).count() as u8)
            .collect();
        let slot = |t: f32| ((t * PER_LEVEL) as usize).min(LEVELS - 1);
        let parts: Vec<Vec<Histogram>> = rows
            .par_chunks(32)
            .map(|rows| {
                let mut differences = vec![Histogram::new(LEVELS, PER_LEVEL * 2.0); BINS];
                for &y in rows {
                    let row = texture.row(y).iter().zip(difference.row(y)).zip(mask.row(y));
                    for ((t, d), m) in row {
                        if *m > 0.5 {
                            differences[usize::from(bins[slot(*t)])].add(*d);
                        }
                    }
                }
                differences
            })
            .collect();
        let mut differences = vec![Histogram::new(LEVELS, PER_LEVEL * 2.0); BINS];
        for part in &parts {
            differences.iter_mut().zip(part).for_each(|(a, b)| a.merge(b));
        }
        // Points of the curve: texture and noise of each bin that holds anything.
        let mut points: Vec<(f32, f32)> = differences
            .iter()
            .enumerate()
            .filter(|(_, histogram)| histogram.total() > 0)
            .map(|(i, histogram)| {
                let at = textures.quantile((i as f64 + 0.5) / BINS as f64);
                let cap = settings.noise_cap + settings.noise_slope * at;
                (at, (settings.noise_reach * histogram.median()).min(cap))
            })
            .collect();
        for i in (1..points.len()).rev() {
            points[i - 1].1 = points[i - 1].1.min(points[i].1);
        }
        let table: Vec<f32> = (0..LEVELS)
            .map(|i| interpolated(&points, i as f32 / PER_LEVEL, settings.noise_slope))
            .collect();
        let least = settings.least_noise * settings.least_noise;
        let inverse = table.iter().map(|n| 1.0 / (least + n * n).sqrt()).collect();
        Self { table, inverse }
    }

    fn inverse(&self, texture: f32) -> f32 {
        self.inverse[((texture * PER_LEVEL) as usize).min(LEVELS - 1)]
    }
}

/// The curve through `points`, continued at its end with its last slope, 0 to `steepest`.
fn interpolated(points: &[(f32, f32)], at: f32, steepest: f32) -> f32 {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
    if at <= first.0 {
        return first.1;
    }
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        if at <= b.0 {
            return a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0).max(1e-6);
        }
    }
    let before = points[points.len().saturating_sub(2)];
    let slope = ((last.1 - before.1) / (last.0 - before.0).max(1e-6)).clamp(0.0, steepest);
    last.1 + slope * (at - last.0)
}

//! How strongly each pixel differs, in grey levels and in units of the pair's own noise.
//!
//! Everything runs in bands of rows with a halo, so that the intermediate rows stay in the cache.

use multiversion::multiversion;
use rayon::prelude::*;

use super::radiometry::{LUMA, QUARTER, Radiometry, apply_curve};
use super::settings::Settings;
use crate::registration::plane::{Histogram, Plane, Smoother, gaussian};
use crate::registration::relighting::lit;

/// Rows that one task works on.
const ROWS: usize = 27;
/// Bins of equal count over the texture, each with a noise of its own.
const BINS: usize = 12;
/// Resolution of the tables over texture and difference, per grey level, and their reach.
const PER_LEVEL: f32 = 8.0;
const LEVELS: usize = 2048;
/// About this many rows of the frame are enough to tell the noise.
const NOISE_ROWS: usize = 108;
/// Rows of which one task makes a histogram.
const NOISE_CHUNK: usize = 27;
/// Smoothing of the texture, in pixels of the frame.
const TEXTURE_BLUR: f32 = 1.0;

/// The measured difference.
pub(crate) struct Measure {
    /// In grey levels, pooled.
    pub(crate) difference: Plane,
    /// In units of noise, pooled.
    pub(crate) z: Plane,
    /// The noise of the pair on flat ground, in grey levels.
    pub(crate) noise: f32,
    /// Brightness of both pictures, made alike.
    pub(crate) luma: [Plane; 2],
}

/// Measures the difference of frames, the second brought onto the first, where `mask` is set.
pub(crate) fn measure(
    first: &[Plane; 3],
    second: &[Plane; 3],
    mask: &Plane,
    radiometry: &Radiometry,
    moved: bool,
    settings: &Settings,
) -> Measure {
    let (raw, luma) = compared(first, second, mask, radiometry, settings);
    let texture = textured(&luma[0], &luma[1]);
    let noise = NoiseCurve::of(&raw, &texture, mask, moved, settings);
    let (difference, z) = pooled(&raw, &texture, &noise, settings.pooling);
    Measure { difference, z, noise: noise.table.first().copied().unwrap_or(0.0), luma }
}

/// Rows around a band, as far as the picture goes.
struct Halo {
    top: usize,
    bottom: usize,
}

impl Halo {
    fn new(band: usize, reach: usize, height: usize) -> Self {
        let top = (band * ROWS).saturating_sub(reach);
        Self { top, bottom: ((band + 1) * ROWS + reach).min(height) }
    }

    fn len(&self) -> usize {
        self.bottom - self.top
    }

    /// The row `y` of the picture, or the nearest, in a buffer of these rows.
    fn row<'b>(&self, buffer: &'b [f32], width: usize, y: isize) -> &'b [f32] {
        let y = y.clamp(self.top as isize, self.bottom as isize - 1) as usize - self.top;
        &buffer[y * width..(y + 1) * width]
    }
}

/// The difference in grey levels, and both pictures' brightness, everything global made up for.
fn compared(
    first: &[Plane; 3],
    second: &[Plane; 3],
    mask: &Plane,
    radiometry: &Radiometry,
    settings: &Settings,
) -> (Plane, [Plane; 2]) {
    let (width, height) = (mask.width, mask.height);
    let (own, their) = radiometry.smoothing(settings.smoothing);
    let (own, their) = (gaussian(own), gaussian(their));
    let [mut raw, mut luma, mut second_luma] = [(); 3].map(|()| Plane::unset(width, height));
    let bands = (
        raw.data.par_chunks_mut(width * ROWS),
        luma.data.par_chunks_mut(width * ROWS),
        second_luma.data.par_chunks_mut(width * ROWS),
    );
    bands.into_par_iter().enumerate().for_each(|(band, (raw, luma, second_luma))| {
        let halo = Halo::new(band, own.len() - 1, height);
        let (mut smooth_own, mut smooth_their) =
            (Smoother::new(&own, width), Smoother::new(&their, width));
        let mut toned = vec![0.0; halo.len() * width];
        let (mut a, mut b) = (vec![0.0; width], vec![0.0; width]);
        let (mut gain, mut blend) = (vec![0.0; width], Vec::new());
        raw.fill(0.0);
        luma.fill(0.0);
        second_luma.fill(0.0);
        for c in 0..3 {
            toned.copy_from_slice(&first[c].data[halo.top * width..halo.bottom * width]);
            apply_curve(&radiometry.curves[c], &mut toned);
            let outs = raw
                .chunks_exact_mut(width)
                .zip(luma.chunks_exact_mut(width))
                .zip(second_luma.chunks_exact_mut(width));
            for (i, ((raw, luma), second_luma)) in outs.enumerate() {
                let y = band * ROWS + i;
                smooth_own.row(|k| halo.row(&toned, width, y as isize + k), &mut a);
                smooth_their.row(|k| second[c].row_clamped(y as isize + k), &mut b);
                radiometry.light.row(c, y, QUARTER, &mut blend, &mut gain);
                lit(&a, &mut gain);
                add_channel(&gain, &b, LUMA[c], raw, luma, second_luma);
            }
        }
        for (i, raw) in raw.chunks_exact_mut(width).enumerate() {
            finish(mask.row(band * ROWS + i), raw);
        }
    });
    (raw, [luma, second_luma])
}

#[multiversion(targets("x86_64+avx2"))]
fn add_channel(
    a: &[f32],
    b: &[f32],
    weight: f32,
    raw: &mut [f32],
    luma: &mut [f32],
    second_luma: &mut [f32],
) {
    let n = raw.len();
    let (a, b, luma, second_luma) = (&a[..n], &b[..n], &mut luma[..n], &mut second_luma[..n]);
    for x in 0..n {
        let r = b[x] - a[x];
        raw[x] += r * r;
        luma[x] += a[x] * weight;
        second_luma[x] += b[x] * weight;
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn finish(mask: &[f32], raw: &mut [f32]) {
    for (raw, m) in raw.iter_mut().zip(mask) {
        *raw = (*raw * (1.0 / 3.0)).sqrt() * m;
    }
}

/// The largest gradient around each pixel, in the picture that has less of it: the new edge of an
/// edit must not excuse itself.
fn textured(first: &Plane, second: &Plane) -> Plane {
    let (width, height) = (first.width, first.height);
    let kernel = gaussian(TEXTURE_BLUR);
    let radius = kernel.len() - 1;
    let mut texture = Plane::unset(width, height);
    texture.data.par_chunks_mut(width * ROWS).enumerate().for_each(|(band, out)| {
        let steep = Halo::new(band, radius + 1, height);
        let mut gradients = [(); 2].map(|()| vec![0.0; steep.len() * width]);
        for (plane, gradients) in [first, second].into_iter().zip(&mut gradients) {
            for (i, out) in gradients.chunks_exact_mut(width).enumerate() {
                let y = (steep.top + i) as isize;
                let rows = [-1, 0, 1].map(|k| plane.row_clamped(y + k));
                gradient(rows, out);
            }
        }
        let halo = Halo::new(band, radius, height);
        let mut least = vec![0.0; halo.len() * width];
        let mut other = vec![0.0; width];
        for (i, out) in least.chunks_exact_mut(width).enumerate() {
            let y = (halo.top + i) as isize;
            let rows = |g: usize| [-1, 0, 1].map(|k| steep.row(&gradients[g], width, y + k));
            maxima(rows(0), out);
            maxima(rows(1), &mut other);
            smaller(&other, out);
        }
        let mut smoother = Smoother::new(&kernel, width);
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let y = (band * ROWS + i) as isize;
            smoother.row(|k| halo.row(&least, width, y + k), out);
        }
    });
    texture
}

#[multiversion(targets("x86_64+avx2"))]
pub(super) fn gradient([above, row, below]: [&[f32]; 3], out: &mut [f32]) {
    let n = out.len();
    let (above, row, below) = (&above[..n], &row[..n], &below[..n]);
    out[0] = 0.0;
    out[n - 1] = 0.0;
    for x in 1..n.saturating_sub(1) {
        let (gx, gy) = ((row[x + 1] - row[x - 1]) * 0.5, (below[x] - above[x]) * 0.5);
        out[x] = (gx * gx + gy * gy).sqrt();
    }
}

#[multiversion(targets("x86_64+avx2"))]
pub(super) fn maxima([above, row, below]: [&[f32]; 3], out: &mut [f32]) {
    let n = out.len();
    let (above, row, below) = (&above[..n], &row[..n], &below[..n]);
    let max = |a: f32, b: f32| if a > b { a } else { b };
    let column = |x: usize| max(max(above[x], row[x]), below[x]);
    out[0] = column(0);
    out[n - 1] = column(n - 1);
    for x in 1..n.saturating_sub(1) {
        out[x] = max(max(column(x - 1), column(x)), column(x + 1));
    }
}

#[multiversion(targets("x86_64+avx2"))]
pub(super) fn smaller(row: &[f32], out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        *out = if *v < *out { *v } else { *out };
    }
}

/// The difference, plain and in units of noise, averaged over a small neighbourhood.
fn pooled(raw: &Plane, texture: &Plane, noise: &NoiseCurve, sigma: f32) -> (Plane, Plane) {
    let (width, height) = (raw.width, raw.height);
    let kernel = gaussian(sigma);
    let (mut difference, mut z) = (Plane::unset(width, height), Plane::unset(width, height));
    let bands = (difference.data.par_chunks_mut(width * ROWS), z.data.par_chunks_mut(width * ROWS));
    bands.into_par_iter().enumerate().for_each(|(band, (difference, z))| {
        let halo = Halo::new(band, kernel.len() - 1, height);
        let range = halo.top * width..halo.bottom * width;
        let mut sharp = vec![0.0; halo.len() * width];
        let pixels = raw.data[range.clone()].iter().zip(&texture.data[range]);
        for (out, (d, t)) in sharp.iter_mut().zip(pixels) {
            *out = d * noise.inverse(*t);
        }
        let mut smoother = Smoother::new(&kernel, width);
        let outs = difference.chunks_exact_mut(width).zip(z.chunks_exact_mut(width));
        for (i, (difference, z)) in outs.enumerate() {
            let y = (band * ROWS + i) as isize;
            smoother.row(|k| raw.row_clamped(y + k), difference);
            smoother.row(|k| halo.row(&sharp, width, y + k), z);
        }
    });
    (difference, z)
}

/// How much difference a texture brings by itself.
struct NoiseCurve {
    table: Vec<f32>,
    inverse: Vec<f32>,
}

impl NoiseCurve {
    fn of(
        difference: &Plane,
        texture: &Plane,
        mask: &Plane,
        moved: bool,
        settings: &Settings,
    ) -> Self {
        let step = (texture.height / NOISE_ROWS).max(1);
        let rows: Vec<usize> = (0..texture.height).step_by(step).collect();
        let parts: Vec<Histogram> = rows
            .par_chunks(NOISE_CHUNK)
            .map(|rows| {
                let mut textures = Histogram::new(LEVELS, PER_LEVEL);
                for &y in rows {
                    for (t, m) in texture.row(y).iter().zip(mask.row(y)) {
                        if *m > 0.5 {
                            textures.add(*t);
                        }
                    }
                }
                textures
            })
            .collect();
        let mut textures = Histogram::new(LEVELS, PER_LEVEL);
        parts.iter().for_each(|part| textures.merge(part));
        let edges: Vec<f32> =
            (1..BINS).map(|i| textures.quantile(i as f64 / BINS as f64)).collect();
        // The bin of each texture, by table.
        let bins: Vec<u8> = (0..LEVELS)
            .map(|i| edges.iter().filter(|e| **e < i as f32 / PER_LEVEL).count() as u8)
            .collect();
        let slot = |t: f32| ((t * PER_LEVEL) as usize).min(LEVELS - 1);
        let parts: Vec<Vec<Histogram>> = rows
            .par_chunks(NOISE_CHUNK)
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
        let slope = if moved { settings.misplacement } else { 0.0 } / PER_LEVEL;
        let inverse = table
            .iter()
            .enumerate()
            .map(|(i, n)| {
                let misplaced = slope * i as f32;
                1.0 / (least + n * n + misplaced * misplaced).sqrt()
            })
            .collect();
        Self { table, inverse }
    }

    fn inverse(&self, texture: f32) -> f32 {
        self.inverse[((texture * PER_LEVEL) as usize).min(LEVELS - 1)]
    }
}

/// The curve through `points`, continued at its end with its last slope, 0 to `steepest`.
pub(super) fn interpolated(points: &[(f32, f32)], at: f32, steepest: f32) -> f32 {
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

//! How much difference a texture brings by itself, told from a sample of the grid.

use super::frames::Area;
use super::residual::{Residual, smoothed};
use crate::difference::measure::interpolated;
use crate::difference::settings::Settings;
use crate::registration::plane::{Histogram, Plane, gaussian};

/// Quantiles of the texture between which noise is told apart.
const EDGES: [f64; 16] =
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0];
/// Below this quantile of the texture, noise is at least a part of what hardly any pixel exceeds: redrawn
/// texture differs in few places, and strongly.
const REDRAWN_BELOW: f64 = 0.95;
const RARE: f64 = 0.99;
const RARE_PART: f32 = 1.0 / 4.5;
/// Of the sample, every third pixel across and down.
const STRIDE: usize = 3;
/// Resolution of the tables over texture and difference, per grey level, and their reach.
const PER_LEVEL: f32 = 8.0;
const LEVELS: usize = 2048;
/// σ over which differences are pooled, in pixels.
const POOLING: f32 = 1.0;

/// The noise of the pair, by texture.
pub(super) struct Noise {
    inverse: Vec<f32>,
}

/// A part of the grid with its differences in units of noise.
pub(super) struct Pooled {
    pub(super) area: Area,
    /// In grey levels.
    pub(super) difference: Plane,
    /// In units of noise.
    pub(super) z: Plane,
}

impl Noise {
    /// From parts of the grid, each with what of it counts.
    pub(super) fn of(sample: &[(Area, &Residual)], settings: &Settings) -> Self {
        let mut textures = Histogram::new(LEVELS, PER_LEVEL);
        each(sample, |texture, _| textures.add(texture));
        let edges: Vec<f32> =
            EDGES[1..EDGES.len() - 1].iter().map(|q| textures.quantile(*q)).collect();
        let bins: Vec<u8> = (0..LEVELS)
            .map(|i| edges.iter().filter(|e| **e < i as f32 / PER_LEVEL).count() as u8)
            .collect();
        let mut differences = vec![Histogram::new(LEVELS, PER_LEVEL * 2.0); EDGES.len() - 1];
        each(sample, |texture, difference| {
            differences[usize::from(bins[slot(texture)])].add(difference);
        });
        let mut points: Vec<(f32, f32)> = Vec::new();
        for (quantiles, histogram) in EDGES.windows(2).zip(&differences) {
            if histogram.total() == 0 {
                continue;
            }
            let at = textures.quantile((quantiles[0] + quantiles[1]) / 2.0);
            let mut noise = settings.noise_reach * histogram.median();
            if quantiles[1] <= REDRAWN_BELOW {
                noise = noise.max(histogram.quantile(RARE) * RARE_PART);
            }
            points.push((at, noise.min(settings.noise_cap + settings.noise_slope * at)));
        }
        for i in (1..points.len()).rev() {
            points[i - 1].1 = points[i - 1].1.min(points[i].1);
        }
        let least = settings.least_noise * settings.least_noise;
        let inverse = (0..LEVELS)
            .map(|i| {
                let noise = interpolated(&points, i as f32 / PER_LEVEL, settings.noise_slope);
                1.0 / (least + noise * noise).sqrt()
            })
            .collect();
        Self { inverse }
    }

    /// Differences in units of noise, averaged over a small neighbourhood.
    pub(super) fn pooled(&self, residual: &Residual) -> Pooled {
        let mut difference = residual.difference.clone();
        difference.data.iter_mut().for_each(|d| *d = d.max(0.0));
        let mut z = difference.clone();
        for (z, texture) in z.data.iter_mut().zip(&residual.texture.data) {
            *z *= self.inverse[slot(*texture)];
        }
        let kernel = gaussian(POOLING);
        Pooled {
            area: residual.area,
            difference: smoothed(&difference, &kernel),
            z: smoothed(&z, &kernel),
        }
    }
}

fn slot(texture: f32) -> usize {
    ((texture * PER_LEVEL) as usize).min(LEVELS - 1)
}

fn each(sample: &[(Area, &Residual)], mut with: impl FnMut(f32, f32)) {
    for (core, residual) in sample {
        for y in (core.y1..core.y2).step_by(STRIDE) {
            let y = y - residual.area.y1;
            let (textures, differences) = (residual.texture.row(y), residual.difference.row(y));
            for x in (core.x1..core.x2).step_by(STRIDE) {
                let x = x - residual.area.x1;
                if differences[x] >= 0.0 {
                    with(textures[x], differences[x]);
                }
            }
        }
    }
}

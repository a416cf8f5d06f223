//! Whether a difference stays when its surroundings are laid onto each other anew: an edge that merely
//! moved by a fraction of a pixel does not.

use super::Look;
use super::components::Component;
use super::frames::Area;
use super::noise::Noise;
use super::residual::{HALO, Pixels, smoothed};
use crate::difference::regions::Blob;
use crate::difference::settings::Native;
use crate::registration::plane::{Histogram, Plane, gaussian};

/// Pixels around a component in which its move is told.
const AROUND: usize = 10;
/// Smoothing for that.
const BLUR: f32 = 0.7;
/// Steps, and the longest move.
const STEPS: usize = 6;
const LONGEST: f32 = 1.5;
/// Residuals beyond this many σ lose their say, in the search that is robust.
const SOFT: f32 = 2.5;
const SIGMA_FLOOR: f32 = 1.5;
/// A part of the mean squared gradient that pulls toward no move.
const DAMPING: f32 = 1e-3;

/// What is left of a component when its surroundings are moved so that they fit best, or nothing where that
/// explains it.
pub(super) fn remaining(component: &Component, look: &Look<'_>, noise: &Noise) -> Option<Blob> {
    let (frames, alignment, settings) = (look.frames, look.alignment, look.settings);
    let native = &settings.native;
    let [x1, y1, x2, y2] = component.blob.area;
    let area = Area { x1, y1, x2, y2 }.grown(AROUND, frames.size());
    let pixels = Pixels::of(frames, alignment, area, (0.0, 0.0));
    let kernel = gaussian(BLUR);
    let luma = pixels.luma.each_ref().map(|plane| smoothed(plane, &kernel));
    let mut least = component.blob;
    for robust in [false, true] {
        let shift = moved(&luma, robust);
        if shift == (0.0, 0.0) {
            continue;
        }
        let halo = Area { x1, y1, x2, y2 }.grown(HALO, frames.size());
        let shifted = Pixels::of(frames, alignment, halo, shift).residual(look.sharpness);
        let pooled = noise.pooled(&shifted);
        let mut left = Blob {
            area: component.blob.area,
            pixels: 0,
            mass: 0.0,
            peak_z: 0.0,
            peak_difference: 0.0,
        };
        for run in &component.runs {
            // Grown by one pixel; what is counted twice is counted twice in all.
            for y in run.y.saturating_sub(1).max(halo.y1)..(run.y + 2).min(halo.y2) {
                let (zs, ds) = (pooled.z.row(y - halo.y1), pooled.difference.row(y - halo.y1));
                for x in run.x1.saturating_sub(1).max(halo.x1)..(run.x2 + 1).min(halo.x2) {
                    let (z, d) = (zs[x - halo.x1], ds[x - halo.x1]);
                    left.peak_z = left.peak_z.max(z);
                    left.peak_difference = left.peak_difference.max(d);
                    if y == run.y && (run.x1..run.x2).contains(&x) && z > settings.region_z {
                        left.mass += z - settings.region_z;
                        left.pixels += 1;
                    }
                }
            }
        }
        if left.mass < least.mass {
            least = left;
        }
    }
    let stays = is_strong(&least, native) && least.mass >= native.kept * component.blob.mass;
    stays.then_some(component.blob)
}

/// Whether a group of pixels is a change of its own.
pub(super) fn is_strong(blob: &Blob, native: &Native) -> bool {
    blob.peak_z > native.peak_z
        && blob.peak_difference > native.peak_difference
        && blob.mass > native.least_mass
}

/// The move of the second picture that fits best, by Lucas–Kanade with a bias.
fn moved(luma: &[Plane; 2], robust: bool) -> (f32, f32) {
    let [own, their] = luma;
    let (width, height) = (own.width, own.height);
    let mut shift = (0.0f32, 0.0f32);
    let mut sigma = f32::INFINITY;
    for step in 0..STEPS {
        let mut sums = [0.0f32; 9];
        let mut residuals = Histogram::new(2048, 16.0);
        for y in 1..height.saturating_sub(1) {
            for x in 1..width.saturating_sub(1) {
                let at = |dx: f32, dy: f32| {
                    their.sample(x as f32 + shift.0 + dx, y as f32 + shift.1 + dy)
                };
                let r = at(0.0, 0.0) - own.row(y)[x];
                residuals.add(r.abs());
                let own_x = own.row(y)[x + 1] - own.row(y)[x - 1];
                let own_y = own.row(y + 1)[x] - own.row(y - 1)[x];
                let gx = (own_x + at(1.0, 0.0) - at(-1.0, 0.0)) * 0.25;
                let gy = (own_y + at(0.0, 1.0) - at(0.0, -1.0)) * 0.25;
                let w = if robust && sigma.is_finite() {
                    let t = r / (SOFT * sigma);
                    1.0 / (1.0 + t * t)
                } else {
                    1.0
                };
                let terms = [gx * gx, gx * gy, gy * gy, gx * r, gy * r, 1.0, gx, gy, r];
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += w * term);
            }
        }
        sigma = (1.4826 * residuals.median()).max(SIGMA_FLOOR);
        if robust && step == 0 {
            // The first round only tells the scale.
            continue;
        }
        let [xx, xy, yy, xr, yr, one, x, y, r] = sums;
        let n = one.max(1e-3);
        let (mx, my) = (x / n, y / n);
        let (a, b, c) = (xx - mx * x, xy - mx * y, yy - my * y);
        let (p, q) = (xr - mx * r, yr - my * r);
        let pull = DAMPING * (a + c) + 1e-3;
        let (a, c) = (a + pull, c + pull);
        let det = a * c - b * b;
        if !(det > 0.0) {
            break;
        }
        let (du, dv) = ((b * q - c * p) / det, (b * p - a * q) / det);
        shift.0 = (shift.0 + du).clamp(-LONGEST, LONGEST);
        shift.1 = (shift.1 + dv).clamp(-LONGEST, LONGEST);
        if du.abs().max(dv.abs()) < 0.01 {
            break;
        }
    }
    shift
}

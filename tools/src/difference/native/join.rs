//! Characters of a word, and parts of a thing, become one region.

use super::components::Component;
use crate::difference::regions::{Blob, strongest_first};
use crate::difference::settings::Native;

/// Components that touch nearly, in pixels.
const TOUCH: usize = 8;
/// Those of a line of text overlap by this part of the lower one, …
const OVERLAP: f64 = 0.3;
/// … which has this part of the taller one's height.
const LOWER: f64 = 0.25;
/// A weak component is taken in where it is at most this much taller, …
const WEAK_TALLER: f64 = 1.5;
/// … within this many heights.
const WEAK_GAP: f64 = 1.5;
/// Rounds of that: letters that slid lie one behind the other.
const WEAK_ROUNDS: usize = 6;
/// It must have this peak, in units of noise or in grey levels.
const WEAK_Z: f32 = 5.0;
const WEAK_DIFFERENCE: f32 = 24.0;

/// Regions of components that are changes, with the weak ones that belong to them; `long` is the grid's long
/// side.
pub(super) fn regions(
    strong: Vec<Blob>,
    all: &[Component],
    long: usize,
    native: &Native,
) -> Vec<Blob> {
    let line = native.line * long as f64;
    let mut blobs = strong;
    lines(&mut blobs, long, native);
    let weak: Vec<&Blob> = all
        .iter()
        .map(|component| &component.blob)
        .filter(|blob| blob.peak_z > WEAK_Z || blob.peak_difference > WEAK_DIFFERENCE)
        .collect();
    for _ in 0..WEAK_ROUNDS {
        let before = blobs.clone();
        for (region, as_it_was) in blobs.iter_mut().zip(&before) {
            for blob in &weak {
                let fits = height(blob) <= WEAK_TALLER * height(as_it_was) && !inside(blob, region);
                if fits && near(as_it_was, blob, line, WEAK_GAP) {
                    *region = region.with(blob);
                }
            }
        }
    }
    lines(&mut blobs, long, native);
    strongest_first(&mut blobs);
    let least = blobs.first().map_or(0.0, |best| best.mass * native.least_share);
    blobs.retain(|blob| blob.mass >= least);
    blobs
}

/// Joins what touches nearly or stands on one line.
pub(crate) fn lines(blobs: &mut Vec<Blob>, long: usize, native: &Native) {
    merge(blobs, |a, b| near(a, b, native.line * long as f64, native.line_gap));
}

/// The region with what a reader needs around it: a little everywhere, and beside lettering about a
/// character; `ratio` is how many pixels of the grid one of the coarse frame has.
pub(crate) fn padded(
    blob: &Blob,
    (width, height_): (usize, usize),
    ratio: f64,
    native: &Native,
) -> [usize; 4] {
    let long = width.max(height_) as f64;
    let pad = (2.0 * ratio).round() as usize;
    let across = if height(blob) <= native.line * long {
        (height(blob).min(0.015 * long) as usize).max(pad)
    } else {
        pad
    };
    let [x1, y1, x2, y2] = blob.area;
    [
        x1.saturating_sub(across),
        y1.saturating_sub(pad),
        (x2 + across).min(width),
        (y2 + pad).min(height_),
    ]
}

fn height(blob: &Blob) -> f64 {
    (blob.area[3] - blob.area[1]) as f64
}

fn inside(blob: &Blob, region: &Blob) -> bool {
    let (a, b) = (blob.area, region.area);
    a[0] >= b[0] && a[1] >= b[1] && a[2] <= b[2] && a[3] <= b[3]
}

fn near(a: &Blob, b: &Blob, line: f64, heights: f64) -> bool {
    if a.is_near(b, TOUCH) {
        return true;
    }
    let (taller, lower) = if height(a) >= height(b) { (a, b) } else { (b, a) };
    if height(taller) > line || height(lower) < LOWER * height(taller) {
        return false;
    }
    let gap = |low: usize, high: usize| (low as f64 - high as f64).max(0.0);
    let across = gap(a.area[0], b.area[2]).max(gap(b.area[0], a.area[2]));
    let overlap = a.area[3].min(b.area[3]) as f64 - a.area[1].max(b.area[1]) as f64;
    across <= heights * height(taller) && overlap >= OVERLAP * height(lower)
}

fn merge(blobs: &mut Vec<Blob>, near: impl Fn(&Blob, &Blob) -> bool) {
    let mut i = 0;
    while i < blobs.len() {
        match (i + 1..blobs.len()).find(|&j| near(&blobs[i], &blobs[j])) {
            Some(j) => {
                let other = blobs.remove(j);
                blobs[i] = blobs[i].with(&other);
                i = 0;
            }
            None => i += 1,
        }
    }
}

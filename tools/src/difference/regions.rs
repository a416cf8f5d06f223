//! From pixels that differ to a handful of regions.

use super::measure::Measure;
use super::settings::Settings;

/// At most this many are merged: more are no handful, and merging is quadratic.
const MOST: usize = 60;

/// A group of pixels of the frame that differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Blob {
    /// Left, top, right, bottom in pixels of the frame, right and bottom exclusive.
    pub(crate) area: [usize; 4],
    /// Pixels that differ.
    pub(crate) pixels: usize,
    /// Σ (z − threshold).
    pub(crate) mass: f32,
    pub(crate) peak_z: f32,
    pub(crate) peak_difference: f32,
}

impl Blob {
    pub(crate) fn with(&self, other: &Self) -> Self {
        let (a, b) = (self.area, other.area);
        Self {
            area: [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])],
            pixels: self.pixels + other.pixels,
            mass: self.mass + other.mass,
            peak_z: self.peak_z.max(other.peak_z),
            peak_difference: self.peak_difference.max(other.peak_difference),
        }
    }

    pub(crate) fn is_near(&self, other: &Self, gap: usize) -> bool {
        let (a, b) = (self.area, other.area);
        a[0] <= b[2] + gap && b[0] <= a[2] + gap && a[1] <= b[3] + gap && b[1] <= a[3] + gap
    }
}

/// What was found: regions, the strongest first, and the part of the frame that differs at all.
pub(crate) struct Found {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) differing: f64,
}

/// Groups the pixels that differ.
pub(crate) fn find(measure: &Measure, settings: &Settings) -> Found {
    let all = components(measure, settings);
    let pixels: usize = all.iter().map(|blob| blob.pixels).sum();
    let differing = pixels as f64 / measure.z.data.len().max(1) as f64;
    let long = measure.z.width.max(measure.z.height) as f32;
    let mut blobs: Vec<Blob> = all
        .into_iter()
        .filter(|blob| {
            blob.peak_z > settings.peak_z && blob.peak_difference > settings.peak_difference
        })
        .collect();
    strongest_first(&mut blobs);
    blobs.truncate(MOST);
    merge(&mut blobs, (settings.gap * long).round() as usize);
    strongest_first(&mut blobs);
    let size = (long / 768.0).min(1.0);
    let least = blobs
        .first()
        .map_or(0.0, |best| best.mass * settings.least_share)
        .max(settings.least_mass * size * size);
    blobs.retain(|blob| blob.mass >= least);
    Found { blobs, differing }
}

pub(crate) fn strongest_first(blobs: &mut [Blob]) {
    blobs.sort_by(|a, b| b.mass.total_cmp(&a.mass).then(a.area.cmp(&b.area)));
}

fn merge(blobs: &mut Vec<Blob>, gap: usize) {
    let mut i = 0;
    while i < blobs.len() {
        match (i + 1..blobs.len()).find(|&j| blobs[i].is_near(&blobs[j], gap)) {
            Some(j) => {
                let other = blobs.remove(j);
                blobs[i] = blobs[i].with(&other);
                // Having grown, it may now be near an earlier one.
                i = 0;
            }
            None => i += 1,
        }
    }
}

/// A run of pixels in a row that differ.
struct Run {
    start: usize,
    end: usize,
    label: usize,
}

/// 8-connected components of the pixels above both thresholds.
fn components(measure: &Measure, settings: &Settings) -> Vec<Blob> {
    let (z, difference) = (&measure.z, &measure.difference);
    let mut parents: Vec<usize> = Vec::new();
    let mut blobs: Vec<Blob> = Vec::new();
    let mut above: Vec<Run> = Vec::new();
    for y in 0..z.height {
        let (zs, ds) = (z.row(y), difference.row(y));
        let differs = |x: usize| zs[x] > settings.region_z && ds[x] > settings.region_difference;
        let mut runs: Vec<Run> = Vec::new();
        let mut x = 0;
        while x < z.width {
            if !differs(x) {
                x += 1;
                continue;
            }
            let start = x;
            let mut blob = Blob {
                area: [start, y, start, y + 1],
                pixels: 0,
                mass: 0.0,
                peak_z: 0.0,
                peak_difference: 0.0,
            };
            while x < z.width && differs(x) {
                blob.mass += zs[x] - settings.region_z;
                blob.peak_z = blob.peak_z.max(zs[x]);
                blob.peak_difference = blob.peak_difference.max(ds[x]);
                x += 1;
            }
            blob.area[2] = x;
            blob.pixels = x - start;
            let label = parents.len();
            parents.push(label);
            blobs.push(blob);
            // Diagonal neighbours touch as well.
            for run in above.iter().filter(|run| run.start <= x && start <= run.end) {
                let (a, b) = (root(&mut parents, run.label), root(&mut parents, label));
                parents[a.max(b)] = a.min(b);
            }
            runs.push(Run { start, end: x, label });
        }
        above = runs;
    }
    let mut joined: Vec<Option<Blob>> = vec![None; blobs.len()];
    for (label, blob) in blobs.iter().enumerate() {
        let root = root(&mut parents, label);
        joined[root] = Some(joined[root].map_or(*blob, |sum| sum.with(blob)));
    }
    joined.into_iter().flatten().collect()
}

pub(crate) fn root(parents: &mut [usize], mut label: usize) -> usize {
    while parents[label] != label {
        parents[label] = parents[parents[label]];
        label = parents[label];
    }
    label
}

//! Separate changes inside a large region: hills of the difference with valleys between them.

use super::measure::Measure;
use super::regions::root;
use crate::coords::PixelBox;
use crate::registration::plane::Plane;

/// Differences beyond this many units of noise are all the same, so that one strong change does not flatten
/// the rest.
const HIGHEST: f32 = 60.0;
/// Smoothing of the order in which hills rise, in pixels of half the frame.
const ORDER: f32 = 1.5;
/// Two hills are one where the pass between them is higher than this part of the lower, …
const PASS: f32 = 0.8;
/// … or the lower one has less than this part of the pixels so far.
const SPECK: f64 = 0.0008;
/// Pixels of the frame for one of the half on which hills rise.
const HALF: f64 = 2.0;

/// What counts as a hill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ground {
    /// In units of noise and in grey levels: where it begins.
    pub(super) z: f32,
    pub(super) difference: f32,
    /// What it must reach.
    pub(super) peak_z: f32,
    pub(super) peak_difference: f32,
    /// Its mass above the ground, in pixels of the frame.
    pub(super) mass: f32,
}

/// A separate change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hill {
    /// In pixels of the frame.
    pub(super) area: PixelBox,
    /// Pixels of the frame.
    pub(super) pixels: f64,
    pub(super) mass: f64,
    pub(super) peak_z: f64,
    pub(super) peak_difference: f64,
}

/// The measured differences at half the frame's size, in which hills are found.
pub(super) struct Landscape {
    z: Plane,
    order: Plane,
    difference: Plane,
}

impl Landscape {
    pub(super) fn of(measure: &Measure) -> Self {
        let mut capped = measure.z.clone();
        capped.data.iter_mut().for_each(|z| *z = z.min(HIGHEST));
        let z = capped.halved();
        let order = z.blurred(ORDER);
        Self { z, order, difference: measure.difference.halved() }
    }

    /// The hills above a ground, the heaviest first.
    pub(super) fn hills(&self, ground: &Ground) -> Vec<Hill> {
        let (width, height) = (self.z.width, self.z.height);
        let above = |i: &u32| {
            let i = *i as usize;
            self.z.data[i] > ground.z && self.difference.data[i] > ground.difference
        };
        let mut pixels: Vec<u32> = (0..(width * height) as u32).filter(above).collect();
        let order = |i: u32| self.order.data[i as usize];
        pixels.sort_unstable_by(|a, b| order(*b).total_cmp(&order(*a)).then(a.cmp(b)));
        let speck = SPECK * (width * height) as f64;
        let mut rising = Rising::new(width * height);
        for &pixel in &pixels {
            let (x, y) = (pixel as usize % width, pixel as usize / width);
            let mut around: Vec<usize> = Vec::with_capacity(8);
            for ny in y.saturating_sub(1)..(y + 2).min(height) {
                for nx in x.saturating_sub(1)..(x + 2).min(width) {
                    if let Some(hill) = rising.hill_at(ny * width + nx)
                        && !around.contains(&hill)
                    {
                        around.push(hill);
                    }
                }
            }
            let level = order(pixel);
            // The highest first: it takes the pixel, and the lower ones that are no hills of their own.
            around.sort_by(|a, b| rising.peaks[*b].total_cmp(&rising.peaks[*a]).then(a.cmp(b)));
            let Some((&highest, lower)) = around.split_first() else {
                rising.found(pixel as usize, level);
                continue;
            };
            for &hill in lower {
                if level > PASS * rising.peaks[hill] || (rising.sizes[hill] as f64) < speck {
                    rising.join(highest, hill);
                }
            }
            rising.add(pixel as usize, highest);
        }
        self.measured(&pixels, &mut rising, ground)
    }

    fn measured(&self, pixels: &[u32], rising: &mut Rising, ground: &Ground) -> Vec<Hill> {
        let width = self.z.width;
        let mut hills: Vec<Option<Hill>> = vec![None; rising.peaks.len()];
        for &pixel in pixels {
            let at = pixel as usize;
            let Some(hill) = rising.hill_at(at) else { continue };
            let (x, y) = ((at % width) as f64 * HALF, (at / width) as f64 * HALF);
            let area = PixelBox::new(x, y, x + HALF, y + HALF);
            let (z, d) = (f64::from(self.z.data[at]), f64::from(self.difference.data[at]));
            let share = HALF * HALF;
            let mass = (z - f64::from(ground.z)) * share;
            let hill = hills[hill].get_or_insert(Hill {
                area,
                pixels: 0.0,
                mass: 0.0,
                peak_z: 0.0,
                peak_difference: 0.0,
            });
            hill.area = hill.area.union(&area);
            hill.pixels += share;
            hill.mass += mass;
            hill.peak_z = hill.peak_z.max(z);
            hill.peak_difference = hill.peak_difference.max(d);
        }
        let mut hills: Vec<Hill> = hills
            .into_iter()
            .flatten()
            .filter(|hill| {
                hill.peak_z > f64::from(ground.peak_z)
                    && hill.peak_difference > f64::from(ground.peak_difference)
                    && hill.mass > f64::from(ground.mass)
            })
            .collect();
        hills.sort_by(|a, b| b.mass.total_cmp(&a.mass));
        hills
    }
}

/// Hills while the water falls.
struct Rising {
    /// The hill of each pixel, 0 for none, else one more than its number.
    labels: Vec<u32>,
    parents: Vec<usize>,
    peaks: Vec<f32>,
    sizes: Vec<usize>,
}

impl Rising {
    fn new(pixels: usize) -> Self {
        Self { labels: vec![0; pixels], parents: Vec::new(), peaks: Vec::new(), sizes: Vec::new() }
    }

    fn hill_at(&mut self, pixel: usize) -> Option<usize> {
        let label = (self.labels[pixel] as usize).checked_sub(1)?;
        Some(root(&mut self.parents, label))
    }

    fn found(&mut self, pixel: usize, peak: f32) {
        self.parents.push(self.parents.len());
        self.peaks.push(peak);
        self.sizes.push(1);
        self.labels[pixel] = self.parents.len() as u32;
    }

    fn add(&mut self, pixel: usize, hill: usize) {
        self.labels[pixel] = hill as u32 + 1;
        self.sizes[hill] += 1;
    }

    fn join(&mut self, higher: usize, lower: usize) {
        self.parents[lower] = higher;
        self.sizes[higher] += self.sizes[lower];
    }
}

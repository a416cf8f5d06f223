//! What an editor changed: local differences that remain when everything that is no edit (size,
//! compression, tone, noise, small moves, a cut frame) is made up for.

mod measure;
mod radiometry;
mod regions;
mod report;
mod settings;
mod tool;

pub use settings::Settings;
pub use tool::{DifferenceArgs, LocalizeDifferences};

use self::measure::Measure;
use self::radiometry::Radiometry;
use self::regions::Blob;
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::flow::Flow;
use crate::registration::frame::{Frame, frame_size};
use crate::registration::global::pyramid;
use crate::registration::plane::Plane;
use crate::registration::warp::warp;
use crate::registration::{FRAME, Registration};

/// What differs between two pictures.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Where they differ, the most visible first.
    pub regions: Vec<Region>,
    /// Weaker regions that were left out.
    pub left_out: usize,
    /// Most of the picture changed: the regions are only the strongest places.
    pub changed_everywhere: bool,
    /// The part of the picture that differs, 0 to 1.
    pub differing: f64,
    /// How the second picture lies on the first.
    pub registration: Registration,
    /// What was made up for besides.
    pub nuisance: Nuisance,
}

/// Changes of the whole picture that are no edit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Nuisance {
    /// The farthest local move, in pixels of the first picture.
    pub warp: f64,
    /// Mean change of tone, in grey levels of 255.
    pub tone: f64,
    /// How much more blurred the second picture is, in pixels of the first; negative if sharper.
    pub blur: f64,
    /// The strongest relighting, as a part of the brightness.
    pub relighting: f64,
    /// Noise on flat ground, in grey levels of 255.
    pub noise: f64,
}

/// A place where two pictures differ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Region {
    /// In pixels of the first picture, inside it.
    pub bbox: PixelBox,
    /// The same place in pixels of the second picture, inside it.
    pub bbox_second: PixelBox,
    /// The part of the first picture that the box covers.
    pub area_fraction: f64,
    /// The strongest difference, in grey levels of 255.
    pub strength: f64,
    /// The strongest difference in units of the pair's own noise.
    pub significance: f64,
    /// What regions are ranked by: significance summed over the pixels that differ.
    pub mass: f64,
    /// Mean colour of the differing pixels in the first picture, with the second one's tone.
    pub colour_first: [f64; 3],
    /// Mean colour of the differing pixels in the second picture.
    pub colour_second: [f64; 3],
    /// How far edges came or went, in grey levels per pixel of the frame: near 0 for a recolouring.
    pub structure: f64,
}

/// Compares two pictures and returns at most `max_regions` regions.
pub fn compare(
    first: &Picture,
    second: &Picture,
    max_regions: usize,
    settings: &Settings,
) -> Comparison {
    // Once inside the pool, its threads share the work without waking one another for every step.
    rayon::scope(|_| compare_in_pool(first, second, max_regions, settings))
}

fn compare_in_pool(
    first: &Picture,
    second: &Picture,
    max_regions: usize,
    settings: &Settings,
) -> Comparison {
    let size = frame_size(first.size(), second.size(), FRAME);
    let (width, height) = (size.width as usize, size.height as usize);
    let source = Frame::of(first, size);
    let edited = Frame::of(second, size);
    // Frames are compared first: they are small, and nearly always tell the pictures apart.
    if source == edited && first == second {
        return Comparison {
            regions: Vec::new(),
            left_out: 0,
            changed_everywhere: false,
            differing: 0.0,
            registration: Registration::identity(first.size(), second.size()),
            nuisance: Nuisance::default(),
        };
    }
    let (mut levels, edited_levels) =
        rayon::join(|| pyramid(&source.luma), || pyramid(&edited.luma));
    let (registration, found) =
        Registration::of_levels(first.size(), second.size(), &mut levels, &edited_levels);
    let flow = if registration.is_reliable() {
        Flow::estimate(&levels, &edited_levels, (width, height), &found)
    } else {
        Flow::none(width, height)
    };
    let warped = warp(edited, &found.affine, &flow, settings.border);
    let (rgb, mask) = (&warped.rgb, &warped.mask);
    let radiometry = Radiometry::estimate(&source.rgb, rgb, mask, settings);
    let measure = measure::measure(&source.rgb, rgb, mask, &radiometry, warped.moved, settings);
    let found = regions::find(&measure, settings);

    let scale = f64::from(first.size().long_side()) / f64::from(size.long_side());
    let left_out = found.blobs.len().saturating_sub(max_regions);
    let regions = found
        .blobs
        .iter()
        .take(max_regions)
        .map(|blob| {
            let [own, their] = colours(blob, &source.rgb, rgb, &radiometry, &measure, settings);
            let mut region = region(blob, &registration, size, settings);
            (region.colour_first, region.colour_second) = (own, their);
            region.structure = structure(blob, &measure, settings);
            region
        })
        .collect();
    let tone = radiometry.curves.iter().map(|c| f64::from(c.strength())).sum::<f64>() / 3.0;
    Comparison {
        regions,
        left_out,
        changed_everywhere: found.differing > settings.everywhere || !registration.is_reliable(),
        differing: found.differing,
        registration,
        nuisance: Nuisance {
            warp: f64::from(flow.reach()) * scale,
            tone,
            blur: f64::from(radiometry.blur) * scale,
            relighting: f64::from(radiometry.light.reach()),
            noise: f64::from(measure.noise),
        },
    }
}

fn region(blob: &Blob, registration: &Registration, frame: Size, settings: &Settings) -> Region {
    let (first, second) = (registration.first(), registration.second());
    let [x1, y1, x2, y2] = blob.area.map(|v| v as f64);
    let bbox = PixelBox::new(x1, y1, x2, y2)
        .grown(settings.padding, settings.padding)
        .mapped(&PixelBox::whole(frame), &PixelBox::whole(first))
        .whole_pixels(first);
    Region {
        bbox,
        bbox_second: registration.to_second(&bbox).whole_pixels(second),
        area_fraction: bbox.area() / first.area().max(1) as f64,
        strength: f64::from(blob.peak_difference),
        significance: f64::from(blob.peak_z),
        mass: f64::from(blob.mass),
        colour_first: [0.0; 3],
        colour_second: [0.0; 3],
        structure: 0.0,
    }
}

/// The pixels of a blob's box that differ.
fn differing<'a>(
    blob: &'a Blob,
    measure: &'a Measure,
    settings: &'a Settings,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let [x1, y1, x2, y2] = blob.area;
    (y1..y2)
        .flat_map(move |y| (x1..x2).map(move |x| (x, y)))
        .filter(|&(x, y)| measure.z.row(y)[x] > settings.region_z)
}

/// Mean colours of the differing pixels, in the first picture as the second would show it, and in
/// the second.
fn colours(
    blob: &Blob,
    first: &[Plane; 3],
    second: &[Plane; 3],
    radiometry: &Radiometry,
    measure: &Measure,
    settings: &Settings,
) -> [[f64; 3]; 2] {
    let mut sums = [[0.0f64; 3]; 2];
    let mut count = 0.0f64;
    for (x, y) in differing(blob, measure, settings) {
        for c in 0..3 {
            let own = radiometry.predicted(c, first[c].row(y)[x], x, y);
            sums[0][c] += f64::from(own);
            sums[1][c] += f64::from(second[c].row(y)[x]);
        }
        count += 1.0;
    }
    sums.map(|sum| sum.map(|s| s / count.max(1.0)))
}

/// How far the brightness's slope changed, on average over the differing pixels.
fn structure(blob: &Blob, measure: &Measure, settings: &Settings) -> f64 {
    let slopes = |plane: &Plane, x: usize, y: usize| {
        let right = plane.row(y)[(x + 1).min(plane.width - 1)];
        let below = plane.row_clamped(y as isize + 1)[x];
        (right - plane.row(y)[x], below - plane.row(y)[x])
    };
    let (mut sum, mut count) = (0.0f64, 0.0f64);
    for (x, y) in differing(blob, measure, settings) {
        let (a, b) = (slopes(&measure.luma[0], x, y), slopes(&measure.luma[1], x, y));
        let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
        sum += (dx * dx + dy * dy).sqrt();
        count += 1.0;
    }
    sum / count.max(1.0)
}

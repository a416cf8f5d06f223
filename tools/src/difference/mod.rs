//! What an editor changed: local differences that remain when everything that is no edit (size,
//! compression, tone, noise, small moves, a cut frame) is made up for.

mod below;
mod coarse;
mod crops;
mod exact;
mod focus;
mod hills;
mod measure;
mod native;
mod objects;
mod radiometry;
mod regions;
mod report;
mod settings;
mod strips;
mod tool;
mod words;

pub use below::Below;
pub use focus::Focus;
pub use settings::{Native, Settings};
pub use tool::{DifferenceArgs, LocalizeDifferences};

use self::coarse::Coarse;
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::frame::{Frame, frame_size};
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
    /// How closely they were compared.
    pub closeness: Closeness,
    /// The largest differences that are in no region.
    pub below: Vec<Below>,
    /// Strips that only the first picture shows, in its pixels.
    pub only_in_first: Vec<PixelBox>,
    /// Strips that only the second picture shows, in its pixels.
    pub only_in_second: Vec<PixelBox>,
}

/// How closely two pictures were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closeness {
    /// They are the same to the bit.
    Same,
    /// To the bit: most of the pixels are the same, and nothing was made up for.
    Exact,
    /// On a grid of this size.
    Grid(Size),
}

/// Changes of the whole picture that are no edit, as measured where no region is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Nuisance {
    /// How far things moved locally, in pixels of the first picture; 0 where that explains nothing.
    pub warp: f64,
    /// Mean change of red, green and blue by tone and light, in grey levels of 255; 0 where that explains
    /// nothing.
    pub tone: [f64; 3],
    /// How much more blurred the second picture is, in pixels of the first; negative if sharper.
    pub blur: f64,
    /// The strongest darkening and brightening from place to place, as parts of the brightness.
    pub relighting: [f64; 2],
    /// Noise on flat ground, in grey levels of 255.
    pub noise: f64,
    /// How far fine detail is the same in both, −1 to 1.
    pub detail: f64,
    /// Fine detail was drawn anew all over the picture.
    pub redrawn: bool,
}

/// One of several separate changes inside a region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// In pixels of the first picture, inside it.
    pub bbox: PixelBox,
}

/// A place where two pictures differ.
#[derive(Debug, Clone, PartialEq)]
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
    /// The separate changes in it, where it is large and has several.
    pub parts: Vec<Part>,
    /// It shows together what other regions show one by one.
    pub overview: bool,
}

/// Compares two pictures and returns at most `max_regions` regions.
pub fn compare(
    first: &Picture,
    second: &Picture,
    max_regions: usize,
    settings: &Settings,
) -> Comparison {
    compare_within(first, second, max_regions, settings, &Focus::default())
}

/// The same for a part of the pictures.
pub fn compare_within(
    first: &Picture,
    second: &Picture,
    max_regions: usize,
    settings: &Settings,
    focus: &Focus,
) -> Comparison {
    let settings = focus.settings(settings);
    // Once inside the pool, its threads share the work without waking one another for every step.
    rayon::scope(|_| compare_in_pool(first, second, max_regions, &settings, focus))
}

fn compare_in_pool(
    first: &Picture,
    second: &Picture,
    max_regions: usize,
    settings: &Settings,
    focus: &Focus,
) -> Comparison {
    let size = frame_size(first.size(), second.size(), FRAME);
    let frames = (Frame::of(first, size), Frame::of(second, size));
    // Frames are compared first: they are small, and nearly always tell the pictures apart.
    if frames.0 == frames.1 && first == second {
        return Comparison {
            regions: Vec::new(),
            left_out: 0,
            changed_everywhere: false,
            differing: 0.0,
            registration: Registration::identity(first.size(), second.size()),
            nuisance: Nuisance { detail: 1.0, ..Nuisance::default() },
            closeness: Closeness::Same,
            below: Vec::new(),
            only_in_first: Vec::new(),
            only_in_second: Vec::new(),
        };
    }
    let exact = exact::changes(first, second, settings, focus);
    let mut coarse = Coarse::look((first, second), frames, size, exact.is_some(), settings);
    let nuisance = coarse.nuisance(settings);
    focus.apply(&mut coarse.measure, first.size());
    let components = coarse.components(settings);
    let registration = coarse.registration.clone();
    let closeness = match exact {
        Some(_) => Closeness::Exact,
        None => Closeness::Grid(size),
    };
    let mut seen = match exact {
        Some(blobs) => {
            let (told, below) = exact::regions(&blobs, first, second, &coarse, settings);
            Seen { regions: told, below, closeness }
        }
        None => {
            let regions: Vec<Region> =
                components.blobs.iter().map(|blob| coarse.region(blob, settings)).collect();
            if native::is_worthwhile(first.size(), second.size(), settings)
                && registration.is_reliable()
            {
                let fine = native::find(first, second, &coarse, settings, focus);
                Seen { regions: together(regions, fine.regions, &registration), ..fine }
            } else {
                Seen { regions, below: Vec::new(), closeness }
            }
        }
    };
    seen.regions.sort_by(|a, b| b.mass.total_cmp(&a.mass));
    let mut regions = objects::cut(seen.regions, &coarse, max_regions, settings);
    let below = below::threshold(seen.below, &coarse, &regions);
    let left_out = regions.len().saturating_sub(max_regions);
    regions.truncate(max_regions);
    let [only_in_first, only_in_second] = strips::of(&registration);
    // Flat pictures cannot be laid onto each other, and need not be.
    let another = !registration.is_reliable() && components.differing > settings.another;
    Comparison {
        regions,
        left_out,
        changed_everywhere: components.differing > settings.everywhere || another,
        differing: components.differing,
        registration,
        nuisance,
        closeness: seen.closeness,
        below,
        only_in_first,
        only_in_second,
    }
}

/// What one way of comparing saw.
struct Seen {
    regions: Vec<Region>,
    below: Vec<Below>,
    closeness: Closeness,
}

/// A fine region widens the coarse one that it overlaps, unless both together were much larger than
/// either.
fn together(
    mut coarse: Vec<Region>,
    fine: Vec<Region>,
    registration: &Registration,
) -> Vec<Region> {
    /// So many times larger.
    const MUCH: f64 = 4.0;
    let mut apart = Vec::new();
    for region in fine {
        let overlapped = coarse.iter_mut().find(|other| {
            let union = region.bbox.union(&other.bbox).area();
            !region.bbox.intersection(&other.bbox).is_empty()
                && union <= MUCH * region.bbox.area().max(other.bbox.area())
        });
        match overlapped {
            Some(other) => {
                let widened = Region::new(other.bbox.union(&region.bbox), registration);
                other.bbox = widened.bbox;
                other.bbox_second = widened.bbox_second;
                other.area_fraction = widened.area_fraction;
                other.strength = other.strength.max(region.strength);
                other.significance = other.significance.max(region.significance);
            }
            None => apart.push(region),
        }
    }
    coarse.extend(apart);
    coarse
}

impl Region {
    /// A place of which nothing is known yet but where it is.
    fn new(bbox: PixelBox, registration: &Registration) -> Self {
        let (first, second) = (registration.first(), registration.second());
        Self {
            bbox,
            bbox_second: registration.to_second(&bbox).whole_pixels(second),
            area_fraction: bbox.area() / first.area().max(1) as f64,
            strength: 0.0,
            significance: 0.0,
            mass: 0.0,
            colour_first: [0.0; 3],
            colour_second: [0.0; 3],
            structure: 0.0,
            parts: Vec::new(),
            overview: false,
        }
    }
}

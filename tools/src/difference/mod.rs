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
use self::radiometry::Alike;
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
    if first == second {
        return Comparison {
            regions: Vec::new(),
            left_out: 0,
            changed_everywhere: false,
            differing: 0.0,
            registration: Registration::identity(first.size(), second.size()),
            nuisance: Nuisance::default(),
        };
    }
    let size = frame_size(first.size(), second.size(), FRAME);
    let (width, height) = (size.width as usize, size.height as usize);
    let source = Frame::of(first, size);
    let edited = Frame::of(second, size);
    let (mut levels, edited_levels) =
        rayon::join(|| pyramid(&source.luma), || pyramid(&edited.luma));
    let (registration, found) =
        Registration::of_levels(first.size(), second.size(), &mut levels, &edited_levels);
    let flow = if registration.is_reliable() {
        Flow::estimate(&levels, &edited_levels, (width, height), &found)
    } else {
        Flow::none(width, height)
    };
    let warped = warp(edited, &found.affine, &flow);
    let alike = radiometry::alike(&source.rgb, &warped.rgb, &warped.mask, settings);
    let mask = if warped.moved { eroded(&warped.mask, settings.border) } else { warped.mask };
    let measure = measure::measure(&alike, &mask, settings);
    let found = regions::find(&measure, settings);

    let scale = f64::from(first.size().long_side()) / f64::from(size.long_side());
    let left_out = found.blobs.len().saturating_sub(max_regions);
    let regions = found
        .blobs
        .iter()
        .take(max_regions)
        .map(|blob| region(blob, &alike, &measure, &registration, size, settings))
        .collect();
    let tone = alike.curves.iter().map(|c| f64::from(c.strength())).sum::<f64>() / 3.0;
    Comparison {
        regions,
        left_out,
        changed_everywhere: found.differing > settings.everywhere || !registration.is_reliable(),
        differing: found.differing,
        registration,
        nuisance: Nuisance {
            warp: f64::from(flow.reach()) * scale,
            tone,
            blur: f64::from(alike.blur) * scale,
            relighting: f64::from(alike.relighting),
            noise: f64::from(measure.noise),
        },
    }
}

/// The mask without its outermost pixels, and those of the frame.
fn eroded(mask: &Plane, by: usize) -> Plane {
    let reach = by as isize;
    let rows = mask.map_rows(|y, out| {
        let y = y as isize;
        if y < reach || y + reach >= mask.height as isize {
            return;
        }
        out.copy_from_slice(mask.row_clamped(y));
        for near in y - reach..=y + reach {
            for (out, m) in out.iter_mut().zip(mask.row_clamped(near)) {
                *out *= m;
            }
        }
    });
    rows.map_rows(|y, out| {
        let row = rows.row(y);
        for x in by..row.len().saturating_sub(by) {
            out[x] = if row[x - by..=x + by].iter().all(|m| *m > 0.5) { 1.0 } else { 0.0 };
        }
    })
}

fn region(
    blob: &Blob,
    alike: &Alike,
    measure: &Measure,
    registration: &Registration,
    frame: Size,
    settings: &Settings,
) -> Region {
    let (first, second) = (registration.first(), registration.second());
    let [x1, y1, x2, y2] = blob.area.map(|v| v as f64);
    let bbox = PixelBox::new(x1, y1, x2, y2)
        .grown(settings.padding, settings.padding)
        .mapped(&PixelBox::whole(frame), &PixelBox::whole(first))
        .whole_pixels(first);
    let bbox_second = registration.to_second(&bbox).whole_pixels(second);
    let mut sums = [[0.0f64; 3]; 2];
    let mut structure = 0.0f64;
    let mut count = 0.0f64;
    for y in blob.area[1]..blob.area[3] {
        for x in blob.area[0]..blob.area[2] {
            let at = y * frame.width as usize + x;
            if measure.z.data[at] <= settings.region_z {
                continue;
            }
            for c in 0..3 {
                sums[0][c] += f64::from(alike.first[c].data[at]);
                sums[1][c] += f64::from(alike.second[c].data[at]);
            }
            structure +=
                f64::from((measure.steepness[0].data[at] - measure.steepness[1].data[at]).abs());
            count += 1.0;
        }
    }
    let count = count.max(1.0);
    Region {
        bbox,
        bbox_second,
        area_fraction: bbox.area() / first.area().max(1) as f64,
        strength: f64::from(blob.peak_difference),
        significance: f64::from(blob.peak_z),
        mass: f64::from(blob.mass),
        colour_first: sums[0].map(|s| s / count),
        colour_second: sums[1].map(|s| s / count),
        structure: structure / count,
    }
}

//! A second look, at the pictures' own resolution: what the coarse frame is too small to show.
//!
//! Everything is done in fixed parts of the grid, so that neither memory nor bytes depend on the number of
//! threads.

mod align;
mod check;
mod components;
mod frames;
pub(super) mod join;
mod noise;
mod residual;

use rayon::prelude::*;

use self::align::Alignment;
use self::components::{Component, Run};
use self::frames::{Area, Frames};
use self::noise::Noise;
use self::residual::{HALO, Pixels, Residual, Sharpness};
use super::coarse::Coarse;
use super::focus::Focus;
use super::regions::{Blob, strongest_first};
use super::settings::Settings;
use super::{Below, Closeness, Region, Seen, below};
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::plane::Plane;

/// Side of the parts in which the grid is worked on.
const TILE: usize = 256;
/// Of all parts, every fourth tells the noise; all, where there are few.
const SAMPLED: usize = 4;
const FEW: usize = 12;
/// Parts from which sharpness is told.
const SHARPEST: usize = 6;
/// A component that covers more pixels is not checked: it is no edge that moved.
const MOST_CHECKED: usize = 1 << 18;

/// Whether the pictures have more detail than the coarse frame shows.
pub(super) fn is_worthwhile(first: Size, second: Size, settings: &Settings) -> bool {
    first.long_side().min(second.long_side()) >= settings.native.least_side
}

/// Looks for changes, the strongest first.
pub(super) fn find(
    first: &Picture,
    second: &Picture,
    coarse: &Coarse,
    settings: &Settings,
    focus: &Focus,
) -> Seen {
    let native = &settings.native;
    let size = (coarse.size.width as usize, coarse.size.height as usize);
    let frames = Frames::new(first, second, native.longest, &coarse.radiometry, size);
    let alignment = Alignment::find(&frames, &coarse.found, &coarse.flow, size);
    let closeness = Closeness::Grid(Size::new(frames.width as u32, frames.height as u32));
    let boxes =
        (!focus.is_everything()).then(|| focus.on(frames.width, frames.height, first.size()));
    let mut look =
        Look { frames: &frames, alignment: &alignment, sharpness: Sharpness::of(&[]), settings };
    let tiles = look.tiles();
    let live: Vec<&Tile> = tiles.iter().filter(|tile| tile.live).collect();
    if live.is_empty() {
        return Seen { regions: Vec::new(), below: Vec::new(), closeness };
    }
    let all = tiles.len() <= FEW;
    let sampled: Vec<&Tile> = tiles.iter().filter(|tile| all || tile.sampled).collect();
    look.sharpness = look.told_sharpness(&live);
    let look = look;
    let sample: Vec<(Area, Residual)> =
        sampled.par_iter().map(|tile| (tile.core, look.residual(tile.core))).collect();
    let borrowed: Vec<(Area, &Residual)> =
        sample.iter().map(|(core, residual)| (*core, residual)).collect();
    let noise = Noise::of(&borrowed, settings);
    let runs: Vec<Vec<Run>> = live
        .par_iter()
        .map(|tile| {
            let kept = sample.binary_search_by_key(&(tile.core.y1, tile.core.x1), |(core, _)| {
                (core.y1, core.x1)
            });
            let pooled = match kept {
                Ok(at) => noise.pooled(&sample[at].1),
                Err(_) => noise.pooled(&look.residual(tile.core)),
            };
            components::runs(&tile.core, &pooled, settings, boxes.as_ref())
        })
        .collect();
    drop(sample);
    let all = components::joined(runs.into_iter().flatten().collect());
    let mut strong: Vec<&Component> =
        all.iter().filter(|c| check::is_strong(&c.blob, native)).collect();
    strong.sort_by(|a, b| b.blob.mass.total_cmp(&a.blob.mass).then(a.blob.area.cmp(&b.blob.area)));
    strong.truncate(native.most);
    let strong: Vec<Blob> = strong
        .par_iter()
        .filter_map(|component| {
            let [x1, y1, x2, y2] = component.blob.area;
            if (x2 - x1) * (y2 - y1) > MOST_CHECKED {
                return Some(component.blob);
            }
            check::remaining(component, &look, &noise)
        })
        .collect();
    let mut blobs = join::regions(strong, &all, frames.long(), native);
    strongest_first(&mut blobs);
    let mut rest: Vec<&Blob> = all
        .iter()
        .map(|component| &component.blob)
        .filter(|blob| !blobs.iter().any(|region| region.is_near(blob, 0)))
        .collect();
    rest.sort_by(|a, b| b.peak_z.total_cmp(&a.peak_z).then(a.area.cmp(&b.area)));
    let below = rest.iter().take(below::MOST).map(|blob| Below {
        bbox: look.on_first(blob.area, first.size()),
        strength: f64::from(blob.peak_difference),
        significance: f64::from(blob.peak_z),
    });
    let below = below.collect();
    let regions = blobs.par_iter().map(|blob| look.region(blob, &noise, coarse)).collect();
    Seen { regions, below, closeness }
}

/// A part of the grid.
struct Tile {
    core: Area,
    /// Whether it can differ at all.
    live: bool,
    /// Whether noise is told from it.
    sampled: bool,
}

/// Everything that is known before differences are measured.
struct Look<'a> {
    frames: &'a Frames<'a>,
    alignment: &'a Alignment,
    sharpness: Sharpness,
    settings: &'a Settings,
}

impl Look<'_> {
    /// The parts of the grid, row by row.
    fn tiles(&self) -> Vec<Tile> {
        let (width, height) = self.frames.size();
        let (cols, rows) = (width.div_ceil(TILE), height.div_ceil(TILE));
        (0..cols * rows)
            .into_par_iter()
            .map(|at| {
                let (i, j) = (at % cols, at / cols);
                let core = Area {
                    x1: i * TILE,
                    y1: j * TILE,
                    x2: ((i + 1) * TILE).min(width),
                    y2: ((j + 1) * TILE).min(height),
                };
                let live = self.alignment.moved()
                    || !self.frames.is_same(&core.grown(HALO, (width, height)));
                Tile { core, live, sampled: (i + 2 * j).is_multiple_of(SAMPLED) }
            })
            .collect()
    }

    /// How much more blurred the second picture is, told from the parts with most structure.
    fn told_sharpness(&self, live: &[&Tile]) -> Sharpness {
        let mut ranked: Vec<(u64, &&Tile)> =
            live.iter().map(|tile| (self.frames.structure(&tile.core), tile)).collect();
        ranked.sort_by_key(|(structure, tile)| {
            (std::cmp::Reverse(*structure), tile.core.y1, tile.core.x1)
        });
        let parts: Vec<Pixels> = ranked
            .par_iter()
            .take(SHARPEST)
            .map(|(_, tile)| Pixels::of(self.frames, self.alignment, tile.core, (0.0, 0.0)))
            .collect();
        Sharpness::of(&parts)
    }

    fn residual(&self, core: Area) -> Residual {
        let area = core.grown(HALO, self.frames.size());
        Pixels::of(self.frames, self.alignment, area, (0.0, 0.0)).residual(self.sharpness)
    }

    /// A box of the grid in pixels of the first picture.
    fn on_first(&self, area: [usize; 4], first: Size) -> PixelBox {
        let (width, height) = self.frames.size();
        let [x1, y1, x2, y2] = area.map(|v| v as f64);
        let grid = PixelBox::new(0.0, 0.0, width as f64, height as f64);
        PixelBox::new(x1, y1, x2, y2).mapped(&grid, &PixelBox::whole(first)).whole_pixels(first)
    }

    /// A region in pixels of the first picture, with what is told about it.
    fn region(&self, blob: &Blob, noise: &Noise, coarse: &Coarse) -> Region {
        let (width, height) = self.frames.size();
        let first = coarse.registration.first();
        let ratio = self.frames.long() as f64 / f64::from(coarse.size.long_side());
        let padded = join::padded(blob, (width, height), ratio, &self.settings.native);
        let bbox = self.on_first(padded, first);
        let mut region = Region::new(bbox, &coarse.registration);
        ([region.colour_first, region.colour_second], region.structure) = self.looks(blob, noise);
        // As the coarse frame would count it.
        region.mass = f64::from(blob.mass) / (ratio * ratio);
        region.significance = f64::from(blob.peak_z);
        region.strength = f64::from(blob.peak_difference);
        region
    }

    /// Mean colours of the pixels that differ, and how far the brightness's slope changed there; of a large
    /// region, those around its middle.
    fn looks(&self, blob: &Blob, noise: &Noise) -> ([[f64; 3]; 2], f64) {
        let [x1, y1, x2, y2] = blob.area;
        let middle = |low: usize, high: usize| {
            let spare = (high - low).saturating_sub(2 * TILE) / 2;
            (low + spare, high - spare)
        };
        let ((x1, x2), (y1, y2)) = (middle(x1, x2), middle(y1, y2));
        let core = Area { x1, y1, x2, y2 };
        let residual = self.residual(core);
        let pooled = noise.pooled(&residual);
        let area = residual.area;
        let [own_luma, their_luma] = &residual.luma;
        let width = core.width();
        let mut own = [(); 3].map(|()| vec![0.0; width]);
        let mut scratch = Vec::new();
        let second = Pixels::of(self.frames, self.alignment, core, (0.0, 0.0));
        let (mut sums, mut count, mut slopes) = ([[0.0f64; 3]; 2], 0.0f64, 0.0f64);
        for y in core.y1..core.y2 {
            self.frames.own_row(y, core.x1, &mut scratch, &mut own);
            let at = y - area.y1;
            let below = (at + 1).min(area.height() - 1);
            for k in 0..width {
                let x = core.x1 + k - area.x1;
                if pooled.z.row(at)[x] <= self.settings.region_z {
                    continue;
                }
                let right = (x + 1).min(area.width() - 1);
                let change = second.change(k, y - core.y1);
                for c in 0..3 {
                    sums[0][c] += f64::from(own[c][k]);
                    sums[1][c] += f64::from(own[c][k] + change[c]);
                }
                let slope = |plane: &Plane| {
                    let here = plane.row(at)[x];
                    (plane.row(at)[right] - here, plane.row(below)[x] - here)
                };
                let (a, b) = (slope(own_luma), slope(their_luma));
                let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
                slopes += (dx * dx + dy * dy).sqrt();
                count += 1.0;
            }
        }
        let count = count.max(1.0);
        (sums.map(|sum| sum.map(|s| s / count)), slopes / count)
    }
}

//! Pairs whose pixels are the same to the bit wherever nothing was edited: nothing needs to be made up for
//! there, and every pixel that differs was changed.

use rayon::prelude::*;

use super::coarse::Coarse;
use super::focus::Focus;
use super::native::join;
use super::radiometry::LUMA;
use super::regions::{Blob, root};
use super::settings::Settings;
use super::{Below, Region};
use crate::coords::PixelBox;
use crate::picture::Picture;

/// Side of the squares that are compared, in pixels.
const BLOCK: usize = 8;
/// A pair of which a smaller part of the squares is the same is no such pair.
const LEAST_SAME: f64 = 0.2;
/// Of the squares that have structure, this part must be the same: flat ground survives every encoder, …
const LEAST_TEXTURED: f64 = 0.25;
/// … unless hardly any square changed, …
const FEW: f64 = 0.05;
/// … and those mostly by more than an encoder's rounding, in grey levels.
const ROUNDING: u8 = 6;
/// A square with a wider range of values has structure.
const STRUCTURE: u8 = 16;
/// Differences below this, in grey levels, are the tail of a soft edge.
const LEAST: u8 = 3;
/// A change must reach this somewhere; less cannot be seen.
const PEAK: u8 = 6;
/// At most this many places are put together: more are no handful, and that is quadratic.
const MOST: usize = 256;

/// What one square shows.
#[derive(Debug, Clone, Copy, Default)]
struct Square {
    changed: bool,
    textured: bool,
    /// Pixels that differ by no more than rounding, and by more.
    slight: u32,
    clear: u32,
    blob: Option<Blob>,
}

/// The changed places of a pair that is otherwise the same to the bit, in pixels; nothing where the pair is
/// none such.
pub(super) fn changes(
    first: &Picture,
    second: &Picture,
    settings: &Settings,
    focus: &Focus,
) -> Option<Vec<Blob>> {
    if first.size() != second.size() {
        return None;
    }
    let (width, height) = (first.size().width as usize, first.size().height as usize);
    let boxes = (!focus.is_everything()).then(|| focus.on(width, height, first.size()));
    let asked = &|x: usize, y: usize| boxes.as_ref().is_none_or(|boxes| boxes.allow(x, y));
    let (cols, rows) = (width.div_ceil(BLOCK), height.div_ceil(BLOCK));
    let stride = width * 3;
    let (own, their) = (first.rgb().as_raw().as_slice(), second.rgb().as_raw().as_slice());
    let bands = own.par_chunks(stride * BLOCK).zip(their.par_chunks(stride * BLOCK));
    let squares: Vec<Square> = bands
        .enumerate()
        .flat_map_iter(|(j, (own, their))| {
            let same_band = own == their;
            (0..cols)
                .map(move |i| square((own, their), stride, (i, j), same_band, (settings, asked)))
        })
        .collect();
    let count = |which: fn(&Square) -> bool| squares.iter().filter(|s| which(s)).count() as f64;
    let all = squares.len() as f64;
    let changed = count(|s| s.changed);
    let (textured, textured_same) = (count(|s| s.textured), count(|s| s.textured && !s.changed));
    let sum = |of: fn(&Square) -> u32| squares.iter().map(|s| u64::from(of(s))).sum::<u64>();
    let is_same = all - changed >= LEAST_SAME * all
        && (textured > 0.0 && textured_same >= LEAST_TEXTURED * textured
            || changed <= FEW * all && sum(|s| s.slight) <= 2 * sum(|s| s.clear));
    is_same.then(|| put_together(&squares, cols, rows, (width, height), settings))
}

fn square(
    (own, their): (&[u8], &[u8]),
    stride: usize,
    (i, j): (usize, usize),
    same_band: bool,
    (settings, asked): (&Settings, &impl Fn(usize, usize) -> bool),
) -> Square {
    let (x1, x2) = (i * BLOCK, ((i + 1) * BLOCK).min(stride / 3));
    let mut square = Square::default();
    let rows = || own.chunks_exact(stride).zip(their.chunks_exact(stride));
    // Every third square is enough to tell how many have structure.
    if (i + j).is_multiple_of(3) {
        let green = rows().flat_map(|(own, _)| own[x1 * 3..x2 * 3].iter().skip(1).step_by(3));
        let (low, high) = green.fold((255u8, 0u8), |(low, high), v| (low.min(*v), high.max(*v)));
        square.textured = high.saturating_sub(low) >= STRUCTURE;
    }
    if same_band || rows().all(|(own, their)| own[x1 * 3..x2 * 3] == their[x1 * 3..x2 * 3]) {
        return square;
    }
    square.changed = true;
    for (k, (own, their)) in rows().enumerate() {
        let pixels = own[x1 * 3..x2 * 3]
            .as_chunks::<3>()
            .0
            .iter()
            .zip(their[x1 * 3..x2 * 3].as_chunks::<3>().0);
        for (dx, (a, b)) in pixels.enumerate() {
            let by: [u8; 3] = std::array::from_fn(|c| a[c].abs_diff(b[c]));
            let most = by[0].max(by[1]).max(by[2]);
            square.slight += u32::from((1..=ROUNDING).contains(&most));
            square.clear += u32::from(most > ROUNDING);
            let (x, y) = (x1 + dx, j * BLOCK + k);
            if most < LEAST || !asked(x, y) {
                continue;
            }
            let z = f32::from(most) / settings.least_noise;
            let pixel = Blob {
                area: [x, y, x + 1, y + 1],
                pixels: 1,
                mass: (z - settings.region_z).max(0.0),
                peak_z: z,
                peak_difference: f32::from(most),
            };
            square.blob = Some(square.blob.map_or(pixel, |blob| blob.with(&pixel)));
        }
    }
    square
}

/// Joins squares that touch, then what belongs to one line.
fn put_together(
    squares: &[Square],
    cols: usize,
    rows: usize,
    (width, height): (usize, usize),
    settings: &Settings,
) -> Vec<Blob> {
    let mut parents: Vec<usize> = (0..squares.len()).collect();
    for at in (0..squares.len()).filter(|&at| squares[at].blob.is_some()) {
        let (i, j) = (at % cols, at / cols);
        let before = [
            (i > 0, 1),
            (j > 0, cols),
            (i > 0 && j > 0, cols + 1),
            (j > 0 && i + 1 < cols, cols.max(2) - 1),
        ];
        for (_, back) in before.into_iter().filter(|(is, back)| *is && *back <= at) {
            if squares[at - back].blob.is_some() {
                let (a, b) = (root(&mut parents, at), root(&mut parents, at - back));
                parents[a.max(b)] = a.min(b);
            }
        }
    }
    debug_assert_eq!(squares.len(), cols * rows);
    let mut joined: Vec<Option<Blob>> = vec![None; squares.len()];
    for (at, square) in squares.iter().enumerate() {
        if let Some(blob) = square.blob {
            let root = root(&mut parents, at);
            joined[root] = Some(joined[root].map_or(blob, |sum| sum.with(&blob)));
        }
    }
    let mut blobs: Vec<Blob> = joined.into_iter().flatten().collect();
    super::regions::strongest_first(&mut blobs);
    blobs.truncate(MOST);
    join::lines(&mut blobs, width.max(height), &settings.native);
    super::regions::strongest_first(&mut blobs);
    blobs
}

/// The places that can be seen as regions, and the others.
pub(super) fn regions(
    blobs: &[Blob],
    first: &Picture,
    second: &Picture,
    coarse: &Coarse,
    settings: &Settings,
) -> (Vec<Region>, Vec<Below>) {
    let (seen, faint): (Vec<&Blob>, Vec<&Blob>) =
        blobs.iter().partition(|blob| blob.peak_difference >= f32::from(PEAK));
    let below = |blob: &&Blob| {
        let [x1, y1, x2, y2] = blob.area.map(|v| v as f64);
        Below {
            bbox: PixelBox::new(x1, y1, x2, y2),
            strength: f64::from(blob.peak_difference),
            significance: f64::from(blob.peak_z),
        }
    };
    let regions =
        seen.par_iter().map(|blob| region(blob, first, second, coarse, settings)).collect();
    (regions, faint.iter().map(below).collect())
}

/// A changed place as a region.
fn region(
    blob: &Blob,
    first: &Picture,
    second: &Picture,
    coarse: &Coarse,
    settings: &Settings,
) -> Region {
    let size = first.size();
    let ratio = f64::from(size.long_side()) / f64::from(coarse.size.long_side());
    let (width, height) = (size.width as usize, size.height as usize);
    let [x1, y1, x2, y2] =
        join::padded(blob, (width, height), ratio, &settings.native).map(|v| v as f64);
    let mut region = Region::new(PixelBox::new(x1, y1, x2, y2), &coarse.registration);
    ([region.colour_first, region.colour_second], region.structure) = looks(blob, first, second);
    region.mass = f64::from(blob.mass) / (ratio * ratio);
    region.significance = f64::from(blob.peak_z);
    region.strength = f64::from(blob.peak_difference);
    region
}

/// Mean colours of the pixels that differ, and how far the brightness's slope changed there.
fn looks(blob: &Blob, first: &Picture, second: &Picture) -> ([[f64; 3]; 2], f64) {
    let [x1, y1, x2, y2] = blob.area.map(|v| v as u32);
    let luma = |picture: &Picture, x: u32, y: u32| {
        let (right, bottom) = (picture.size().width - 1, picture.size().height - 1);
        let pixel = picture.rgb().get_pixel(x.min(right), y.min(bottom)).0;
        (0..3).map(|c| f64::from(pixel[c]) * f64::from(LUMA[c])).sum::<f64>()
    };
    let slope = |picture: &Picture, x: u32, y: u32| {
        let here = luma(picture, x, y);
        (luma(picture, x + 1, y) - here, luma(picture, x, y + 1) - here)
    };
    let (mut sums, mut count, mut slopes) = ([[0.0f64; 3]; 2], 0.0f64, 0.0f64);
    for (y, x) in (y1..y2).flat_map(|y| (x1..x2).map(move |x| (y, x))) {
        let (a, b) = (first.rgb().get_pixel(x, y).0, second.rgb().get_pixel(x, y).0);
        if (0..3).all(|c| a[c].abs_diff(b[c]) < LEAST) {
            continue;
        }
        for c in 0..3 {
            sums[0][c] += f64::from(a[c]);
            sums[1][c] += f64::from(b[c]);
        }
        let (own, their) = (slope(first, x, y), slope(second, x, y));
        let (dx, dy) = (their.0 - own.0, their.1 - own.1);
        slopes += (dx * dx + dy * dy).sqrt();
        count += 1.0;
    }
    let count = count.max(1.0);
    (sums.map(|sum| sum.map(|s| s / count)), slopes / count)
}

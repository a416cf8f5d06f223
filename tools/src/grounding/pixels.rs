//! Pixels as a detector takes them: resized exactly as Pillow's bilinear filter does it, then ImageNet's
//! mean and deviation, one plane a channel.
//!
//! By hand, because the resizing library rounds otherwise and a grey level more or less moves logits.

use rayon::prelude::*;

use crate::coords::{PixelBox, Size};
use crate::picture::Picture;

const MEAN: [f32; 3] = [0.485, 0.456, 0.406];
const DEVIATION: [f32; 3] = [0.229, 0.224, 0.225];
/// The weights are whole numbers of this many bits behind the point, as in Pillow.
const BITS: u32 = 22;
const HALF: i32 = 1 << (BITS - 1);

/// The part of a picture under `area`, in whole pixels, at the size `size`.
pub(super) fn planes(picture: &Picture, area: &PixelBox, size: Size) -> Vec<f32> {
    let area = area.whole_pixels(picture.size());
    let (left, top) = (area.x1 as usize, area.y1 as usize);
    let (width, height) = (size.width as usize, size.height as usize);
    let across = taps(area.width() as usize, width);
    let down = taps(area.height() as usize, height);
    let stride = picture.size().width as usize * 3;
    let pixels = picture.rgb().as_raw();

    // Across first, to whole grey levels; then down.
    let mut narrow = vec![0u8; width * 3 * area.height() as usize];
    narrow.par_chunks_mut((width * 3).max(1)).enumerate().for_each(|(y, out)| {
        let row = &pixels[(top + y) * stride + left * 3..][..area.width() as usize * 3];
        for (out, tap) in out.chunks_exact_mut(3).zip(&across) {
            let mut sums = [HALF; 3];
            let seen = row[tap.from * 3..].chunks_exact(3);
            for (weight, pixel) in tap.weights.iter().zip(seen) {
                for channel in 0..3 {
                    sums[channel] += weight * i32::from(pixel[channel]);
                }
            }
            out.copy_from_slice(&sums.map(level));
        }
    });

    let tables: [[f32; 256]; 3] = std::array::from_fn(|channel| {
        std::array::from_fn(|value| (value as f32 / 255.0 - MEAN[channel]) / DEVIATION[channel])
    });
    let mut planes = vec![0.0; 3 * width * height];
    let (red, others) = planes.split_at_mut(width * height);
    let (green, blue) = others.split_at_mut(width * height);
    let rows = |plane| <[f32]>::par_chunks_mut(plane, width.max(1));
    rows(red).zip(rows(green)).zip(rows(blue)).zip(&down).for_each(
        |(((red, green), blue), tap)| {
            let mut sums = vec![HALF; width * 3];
            for (weight, row) in
                tap.weights.iter().zip(narrow.chunks_exact(width * 3).skip(tap.from))
            {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += weight * i32::from(*value);
                }
            }
            for (x, sums) in sums.chunks_exact(3).enumerate() {
                red[x] = tables[0][usize::from(level(sums[0]))];
                green[x] = tables[1][usize::from(level(sums[1]))];
                blue[x] = tables[2][usize::from(level(sums[2]))];
            }
        },
    );
    planes
}

fn level(sum: i32) -> u8 {
    (sum >> BITS).clamp(0, 255) as u8
}

/// Which pixels make one new pixel, and by how much.
struct Tap {
    from: usize,
    weights: Vec<i32>,
}

/// A triangle as wide as a new pixel, and at least as wide as an old one, around each new pixel.
fn taps(before: usize, after: usize) -> Vec<Tap> {
    let scale = before as f64 / after as f64;
    let reach = scale.max(1.0);
    let tap = |at: usize| {
        let centre = (at as f64 + 0.5) * scale;
        let from = (centre - reach + 0.5).max(0.0) as usize;
        let to = ((centre + reach + 0.5) as usize).min(before);
        let weights: Vec<f64> = (from..to)
            .map(|x| (1.0 - ((x as f64 - centre + 0.5) / reach).abs()).max(0.0))
            .collect();
        let sum: f64 = weights.iter().sum();
        let whole = |weight: f64| (0.5 + weight / sum * f64::from(1 << BITS)) as i32;
        Tap { from, weights: weights.into_iter().map(whole).collect() }
    };
    (0..after).map(tap).collect()
}

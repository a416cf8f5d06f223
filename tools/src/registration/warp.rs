//! Bringing the second frame onto the first through the global map and the local field at once.

use rayon::prelude::*;

use super::flow::{Flow, Row};
use super::frame::Frame;
use super::global::Affine;
use super::plane::{BAND, Plane};

/// Moves shorter than this, in pixels, are left alone: interpolating would cost more sharpness
/// than the move costs likeness.
const NO_MOVE: f64 = 0.02;

/// The second frame on the first.
pub(crate) struct Warped {
    pub(crate) rgb: [Plane; 3],
    /// 1 where the second frame shows the place, else 0; without a border where anything moved.
    pub(crate) mask: Plane,
}

/// Looks the second frame up, once, by Catmull–Rom interpolation. Where anything moved, `border`
/// pixels at the edges of both frames are masked.
pub(crate) fn warp(second: Frame, affine: &Affine, flow: &Flow, border: usize) -> Warped {
    let (width, height) = (second.luma.width, second.luma.height);
    let mut mask = Plane::unset(width, height);
    if affine.reach(width, height) + f64::from(flow.reach()) < NO_MOVE {
        mask.data.fill(1.0);
        return Warped { rgb: second.rgb, mask };
    }
    let [mut r, mut g, mut b] = [(); 3].map(|()| Plane::unset(width, height));
    let pixels = interleaved(&second.rgb);
    let extent = (width as f64, height as f64);
    let bands = (
        r.data.par_chunks_mut(width * BAND),
        g.data.par_chunks_mut(width * BAND),
        b.data.par_chunks_mut(width * BAND),
        mask.data.par_chunks_mut(width * BAND),
    );
    bands.into_par_iter().enumerate().for_each(|(band, (r, g, b, mask))| {
        let (mut xs, mut ys, mut row) = (vec![0.0; width], vec![0.0; width], Row::new(width));
        let mut places = vec![Place::default(); width];
        for i in 0..r.len() / width {
            let y = band * BAND + i;
            affine.row(extent, y, &mut xs, &mut ys);
            flow.add_row(1, y, &mut row, &mut xs, &mut ys);
            let out = i * width..(i + 1) * width;
            let mask = &mut mask[out.clone()];
            locate((&xs, &ys), (width, height), border as f32, &mut places, mask);
            if y < border || y + border >= height {
                mask.fill(0.0);
            } else {
                mask.iter_mut().take(border).for_each(|m| *m = 0.0);
                mask.iter_mut().rev().take(border).for_each(|m| *m = 0.0);
            }
            let outs = r[out.clone()].iter_mut().zip(&mut g[out.clone()]).zip(&mut b[out]);
            for (((r, g), b), place) in outs.zip(&places) {
                let [red, green, blue, _] = lookup(&pixels, width, height, place);
                *r = red;
                *g = green;
                *b = blue;
            }
        }
    });
    Warped { rgb: [r, g, b], mask }
}

/// The three planes pixel by pixel, so that a lookup touches one place.
fn interleaved([r, g, b]: &[Plane; 3]) -> Vec<[f32; 4]> {
    let mut pixels = vec![[0.0; 4]; r.data.len()];
    let rows = r.width * BAND;
    let planes = (r.data.par_chunks(rows), g.data.par_chunks(rows), b.data.par_chunks(rows));
    pixels.par_chunks_mut(rows).zip(planes.into_par_iter()).for_each(|(out, (r, g, b))| {
        for (((out, r), g), b) in out.iter_mut().zip(r).zip(g).zip(b) {
            *out = [*r, *g, *b, 0.0];
        }
    });
    pixels
}

/// Where a point lies between pixels, and the Catmull–Rom weights of the four around it each way.
#[derive(Clone, Copy, Default)]
struct Place {
    x: u32,
    y: u32,
    across: [f32; 4],
    down: [f32; 4],
}

/// Catmull–Rom weights for a place `t` after the second of four.
#[inline(always)]
fn weights(t: f32) -> [f32; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [
        -0.5 * t3 + t2 - 0.5 * t,
        1.5 * t3 - 2.5 * t2 + 1.0,
        -1.5 * t3 + 2.0 * t2 + 0.5 * t,
        0.5 * t3 - 0.5 * t2,
    ]
}

fn locate(
    (xs, ys): (&[f32], &[f32]),
    (width, height): (usize, usize),
    border: f32,
    places: &mut [Place],
    mask: &mut [f32],
) {
    let (right, bottom) = ((width - 1) as f32, (height - 1) as f32);
    let within = |v: f32, end: f32| v >= border - 0.5 && v <= end + 0.5 - border;
    for (((place, mask), &x), &y) in places.iter_mut().zip(mask).zip(xs).zip(ys) {
        *mask = if within(x, right) && within(y, bottom) { 1.0 } else { 0.0 };
        let (x, y) = (x.max(0.0).min(right), y.max(0.0).min(bottom));
        (place.x, place.y) = (x as u32, y as u32);
        place.across = weights(x - place.x as f32);
        place.down = weights(y - place.y as f32);
    }
}

#[inline(always)]
fn lookup(pixels: &[[f32; 4]], width: usize, height: usize, place: &Place) -> [f32; 4] {
    let (x, y) = (place.x as usize, place.y as usize);
    let mut sum = [0.0f32; 4];
    if x >= 1 && y >= 1 && x + 2 < width && y + 2 < height {
        let start = (y - 1) * width + x - 1;
        for j in 0..4 {
            if let Some(four) = pixels[start + j * width..].first_chunk::<4>() {
                let line = blended(four, &place.across);
                for c in 0..4 {
                    sum[c] += line[c] * place.down[j];
                }
            }
        }
    } else {
        let at = |x: usize, k: usize, end: usize| (x + k).saturating_sub(1).min(end - 1);
        for j in 0..4 {
            let row = at(y, j, height) * width;
            let four = std::array::from_fn(|k| pixels[row + at(x, k, width)]);
            let line = blended(&four, &place.across);
            for c in 0..4 {
                sum[c] += line[c] * place.down[j];
            }
        }
    }
    sum
}

#[inline(always)]
fn blended(four: &[[f32; 4]; 4], weights: &[f32; 4]) -> [f32; 4] {
    let mut line = [0.0f32; 4];
    for (pixel, weight) in four.iter().zip(weights) {
        for c in 0..4 {
            line[c] += pixel[c] * weight;
        }
    }
    line
}

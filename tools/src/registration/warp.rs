//! Bringing the second frame onto the first through the global map and the local field at once.

use multiversion::multiversion;
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
    /// Whether anything moved.
    pub(crate) moved: bool,
}

/// Looks the second frame up, once, by Catmull–Rom interpolation. Where anything moved, `border`
/// pixels at the edges of both frames are masked.
pub(crate) fn warp(second: Frame, affine: &Affine, flow: &Flow, border: usize) -> Warped {
    let (width, height) = (second.luma.width, second.luma.height);
    let mut mask = Plane::unset(width, height);
    if affine.reach(width, height) + f64::from(flow.reach()) < NO_MOVE {
        mask.data.fill(1.0);
        return Warped { rgb: second.rgb, mask, moved: false };
    }
    let [mut r, mut g, mut b] = [(); 3].map(|()| Plane::unset(width, height));
    let pixels = interleaved(&second.rgb);
    let (pixels, _) = pixels.data.as_chunks::<4>();
    let extent = (width as f64, height as f64);
    let bands = (
        r.data.par_chunks_mut(width * BAND),
        g.data.par_chunks_mut(width * BAND),
        b.data.par_chunks_mut(width * BAND),
        mask.data.par_chunks_mut(width * BAND),
    );
    bands.into_par_iter().enumerate().for_each(|(band, (r, g, b, mask))| {
        let (mut xs, mut ys, mut row) = (vec![0.0; width], vec![0.0; width], Row::new(width));
        let mut looked = vec![[0.0; 4]; width];
        for i in 0..r.len() / width {
            let y = band * BAND + i;
            affine.row(extent, y, &mut xs, &mut ys);
            flow.add_row(1, y, &mut row, &mut xs, &mut ys);
            let out = i * width..(i + 1) * width;
            let mask = &mut mask[out.clone()];
            inside((&xs, &ys), (width, height), border as f32, mask);
            if y < border || y + border >= height {
                mask.fill(0.0);
            } else {
                mask.iter_mut().take(border).for_each(|m| *m = 0.0);
                mask.iter_mut().rev().take(border).for_each(|m| *m = 0.0);
            }
            look_up(pixels, (width, height), (&xs, &ys), &mut looked);
            let outs = r[out.clone()].iter_mut().zip(&mut g[out.clone()]).zip(&mut b[out]);
            for (((r, g), b), pixel) in outs.zip(&looked) {
                [*r, *g, *b, _] = *pixel;
            }
        }
    });
    Warped { rgb: [r, g, b], mask, moved: true }
}

/// The three planes pixel by pixel, in fours, so that a lookup touches one place.
fn interleaved([r, g, b]: &[Plane; 3]) -> Plane {
    let mut pixels = Plane::unset(r.width * 4, r.height);
    pixels.fill_rows(|y, out| {
        let rows = r.row(y).iter().zip(g.row(y)).zip(b.row(y));
        for (out, ((r, g), b)) in out.as_chunks_mut::<4>().0.iter_mut().zip(rows) {
            *out = [*r, *g, *b, 0.0];
        }
    });
    pixels
}

/// Places between two pixels that are told apart.
const STEPS: usize = 256;

/// Catmull–Rom weights of four pixels for each place after the second.
static WEIGHTS: [[f32; 4]; STEPS + 1] = {
    let mut table = [[0.0; 4]; STEPS + 1];
    let mut i = 0;
    while i <= STEPS {
        let t = i as f32 / STEPS as f32;
        let (t2, t3) = (t * t, t * t * t);
        table[i] = [
            -0.5 * t3 + t2 - 0.5 * t,
            1.5 * t3 - 2.5 * t2 + 1.0,
            -1.5 * t3 + 2.0 * t2 + 0.5 * t,
            0.5 * t3 - 0.5 * t2,
        ];
        i += 1;
    }
    table
};

#[inline(always)]
fn weights(t: f32) -> &'static [f32; 4] {
    &WEIGHTS[((t * STEPS as f32 + 0.5) as i32 as usize).min(STEPS)]
}

/// 1 where a point lies in the frame and `border` pixels from its edges, else 0.
#[multiversion(targets("x86_64+avx2"))]
fn inside(
    (xs, ys): (&[f32], &[f32]),
    (width, height): (usize, usize),
    border: f32,
    mask: &mut [f32],
) {
    let (low, right, bottom) =
        (border - 0.5, width as f32 - 0.5 - border, height as f32 - 0.5 - border);
    for ((mask, &x), &y) in mask.iter_mut().zip(xs).zip(ys) {
        let within = (x >= low) & (x <= right) & (y >= low) & (y <= bottom);
        *mask = if within { 1.0 } else { 0.0 };
    }
}

/// Looks a row of points up.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn look_up(
    pixels: &[[f32; 4]],
    (width, height): (usize, usize),
    (xs, ys): (&[f32], &[f32]),
    out: &mut [[f32; 4]],
) {
    let (right, bottom) = ((width - 1) as f32, (height - 1) as f32);
    for ((out, &x), &y) in out.iter_mut().zip(xs).zip(ys) {
        // Not a number goes to 0.
        let x = if x > 0.0 { if x < right { x } else { right } } else { 0.0 };
        let y = if y > 0.0 { if y < bottom { y } else { bottom } } else { 0.0 };
        let (x0, y0) = (x as i32, y as i32);
        let (across, down) = (weights(x - x0 as f32), weights(y - y0 as f32));
        let (x0, y0) = (x0 as usize, y0 as usize);
        let mut sum = [0.0f32; 4];
        if x0 >= 1 && y0 >= 1 && x0 + 2 < width && y0 + 2 < height {
            let around = &pixels[(y0 - 1) * width + x0 - 1..][..3 * width + 4];
            for j in 0..4 {
                if let Some(four) = around[j * width..].first_chunk::<4>() {
                    add(&mut sum, &blended(four, across), down[j]);
                }
            }
        } else {
            let at = |x: usize, k: usize, end: usize| (x + k).saturating_sub(1).min(end - 1);
            for j in 0..4 {
                let row = at(y0, j, height) * width;
                let four = std::array::from_fn(|k| pixels[row + at(x0, k, width)]);
                add(&mut sum, &blended(&four, across), down[j]);
            }
        }
        // All four, though the last is nothing: so that they stay in one register.
        *out = sum;
    }
}

#[inline(always)]
fn add(sum: &mut [f32; 4], line: &[f32; 4], weight: f32) {
    for c in 0..4 {
        sum[c] += line[c] * weight;
    }
}

#[inline(always)]
fn blended(four: &[[f32; 4]; 4], weights: &[f32; 4]) -> [f32; 4] {
    let mut line = [0.0f32; 4];
    for k in 0..4 {
        add(&mut line, &four[k], weights[k]);
    }
    line
}

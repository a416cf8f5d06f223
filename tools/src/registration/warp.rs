//! Bringing the second frame onto the first through the global map and the local field at once.

use rayon::prelude::*;

use super::flow::{Columns, Flow};
use super::frame::Frame;
use super::global::Affine;
use super::plane::{BAND, Plane};

/// Moves shorter than this, in pixels, are left alone: interpolating would cost more sharpness
/// than the move costs likeness.
const NO_MOVE: f64 = 0.02;

/// The second frame on the first.
pub(crate) struct Warped {
    pub(crate) rgb: [Plane; 3],
    /// 1 where the second frame shows the place, else 0.
    pub(crate) mask: Plane,
    /// Whether anything was moved at all.
    pub(crate) moved: bool,
}

/// Looks the second frame up, once, by Catmull–Rom interpolation.
pub(crate) fn warp(second: Frame, affine: &Affine, flow: &Flow) -> Warped {
    let (width, height) = (second.luma.width, second.luma.height);
    let mut mask = Plane::new(width, height);
    if affine.reach(width, height) + f64::from(flow.reach()) < NO_MOVE {
        mask.data.fill(1.0);
        return Warped { rgb: second.rgb, mask, moved: false };
    }
    let [mut r, mut g, mut b] = [(); 3].map(|()| Plane::new(width, height));
    let pixels = interleaved(&second.rgb);
    let columns = Columns::new(width, 1, flow.u.width);
    let bands = (
        r.data.par_chunks_mut(width * BAND),
        g.data.par_chunks_mut(width * BAND),
        b.data.par_chunks_mut(width * BAND),
        mask.data.par_chunks_mut(width * BAND),
    );
    bands.into_par_iter().enumerate().for_each(|(band, (r, g, b, mask))| {
        let (mut u, mut v, mut blend) = (vec![0.0; width], vec![0.0; width], Vec::new());
        for i in 0..r.len() / width {
            let y = band * BAND + i;
            let at = y as f32 + 0.5;
            Flow::row(&flow.u, &columns, at, &mut blend, &mut u);
            Flow::row(&flow.v, &columns, at, &mut blend, &mut v);
            let point = |x: f64| {
                let (w, h) = (width as f64, height as f64);
                let (px, py) = affine.apply(((x + 0.5) / w - 0.5, (y as f64 + 0.5) / h - 0.5));
                ((px + 0.5) * w - 0.5, (py + 0.5) * h - 0.5)
            };
            let (start, next) = (point(0.0), point(1.0));
            let (dx, dy) = ((next.0 - start.0) as f32, (next.1 - start.1) as f32);
            let (sx, sy) = (start.0 as f32, start.1 as f32);
            for x in 0..width {
                let px = sx + dx * x as f32 + u[x];
                let py = sy + dy * x as f32 + v[x];
                let inside = px >= -0.5
                    && py >= -0.5
                    && px <= width as f32 - 0.5
                    && py <= height as f32 - 0.5;
                let [red, green, blue, _] = lookup(&pixels, width, height, px, py);
                let at = i * width + x;
                r[at] = red;
                g[at] = green;
                b[at] = blue;
                mask[at] = if inside { 1.0 } else { 0.0 };
            }
        }
    });
    Warped { rgb: [r, g, b], mask, moved: true }
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

#[inline(always)]
fn lookup(pixels: &[[f32; 4]], width: usize, height: usize, x: f32, y: f32) -> [f32; 4] {
    let x = x.clamp(0.0, (width - 1) as f32);
    let y = y.clamp(0.0, (height - 1) as f32);
    let (x0, y0) = (x as usize, y as usize);
    let (wx, wy) = (weights(x - x0 as f32), weights(y - y0 as f32));
    let mut sum = [0.0f32; 4];
    let inner = x0 >= 1 && y0 >= 1 && x0 + 2 < width && y0 + 2 < height;
    for j in 0..4 {
        let mut line = [0.0f32; 4];
        if inner {
            let start = (y0 + j - 1) * width + x0 - 1;
            let four = &pixels[start..start + 4];
            for k in 0..4 {
                for c in 0..4 {
                    line[c] += four[k][c] * wx[k];
                }
            }
        } else {
            let row = (y0 + j).saturating_sub(1).min(height - 1) * width;
            for k in 0..4 {
                let pixel = pixels[row + (x0 + k).saturating_sub(1).min(width - 1)];
                for c in 0..4 {
                    line[c] += pixel[c] * wx[k];
                }
            }
        }
        for c in 0..4 {
            sum[c] += line[c] * wy[j];
        }
    }
    sum
}

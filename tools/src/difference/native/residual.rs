//! How much a part of the grid differs, everything global made up for.

use multiversion::multiversion;
use rayon::prelude::*;

use super::align::Alignment;
use super::frames::{Area, Frames};
use crate::difference::measure::{gradient, maxima, smaller};
use crate::difference::radiometry::LUMA;
use crate::registration::plane::{Histogram, Plane, Smoother, gaussian};
use crate::registration::warp::look_up;

/// Smoothing of both pictures, in pixels: what is finer is made anew by every encoder.
const SMOOTHING: f32 = 0.6;
/// Colour without brightness is smoothed further: encoders keep it at half the size.
const CHROMA: f32 = 2.1;
/// Smoothing of the texture.
const TEXTURE: f32 = 1.0;
/// Blurs that are tried to make the pictures equally sharp; a further one must lower the residual, capped, by
/// this factor.
const BLURS: [f32; 10] = [0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.25, 1.5, 1.8, 2.2];
const BLUR_GAIN: f64 = 0.995;
const BLUR_CAP: f32 = 40.0;
/// Sharpness is told from this quantile of the gradients on, and from this gradient on.
const STEEPEST: f64 = 0.9;
const LEAST_STEEP: f32 = 6.0;
/// Pixels around a part that its values depend on.
pub(super) const HALO: usize = 16;
/// Pixels at the edge of the second picture that are not compared where it moved.
const BORDER: f32 = 5.0;
/// Marks pixels that are not compared.
pub(super) const UNSEEN: f32 = -1.0;

/// The differences of a part of the grid.
pub(super) struct Residual {
    /// Which part, with its halo.
    pub(super) area: Area,
    /// In grey levels; [`UNSEEN`] where the second picture shows nothing.
    pub(super) difference: Plane,
    /// The steepest gradient around, in the picture that has less of it.
    pub(super) texture: Plane,
    /// Brightness of both, smoothed.
    pub(super) luma: [Plane; 2],
}

/// Both pictures on a part of the grid, the second brought onto the first.
pub(super) struct Pixels {
    /// Which part.
    pub(super) area: Area,
    pub(super) luma: [Plane; 2],
    /// Red and blue of the difference, without its brightness.
    red: Plane,
    blue: Plane,
    /// 1 where the second picture shows the place.
    seen: Option<Plane>,
}

impl Pixels {
    /// Looks a part up, the second picture moved by a further `shift`.
    pub(super) fn of(
        frames: &Frames<'_>,
        alignment: &Alignment,
        area: Area,
        shift: (f32, f32),
    ) -> Self {
        let (width, height) = (area.width(), area.height());
        let plane = || Plane::unset(width, height);
        let mut own_luma = plane();
        let mut their_luma = plane();
        let (mut red, mut blue) = (plane(), plane());
        let moves = alignment.moved() || shift != (0.0, 0.0);
        let moved = moves.then(|| Moved::of(frames, alignment, &area, shift));
        let row = || vec![0.0f32; width];
        let (mut own, mut their, mut scratch) =
            ([(); 3].map(|()| row()), [(); 3].map(|()| row()), Vec::new());
        for i in 0..height {
            let y = area.y1 + i;
            frames.own_row(y, area.x1, &mut scratch, &mut own);
            match &moved {
                Some(moved) => moved.row(i, &mut their),
                None => split(frames.their_bytes(y, (area.x1, area.x2)), &mut their),
            }
            let at = i * width..(i + 1) * width;
            let outs = (
                &mut own_luma.data[at.clone()],
                &mut their_luma.data[at.clone()],
                &mut red.data[at.clone()],
                &mut blue.data[at],
            );
            parted(&own, &their, outs);
        }
        let seen = moved.map(|moved| moved.seen);
        Self { area, luma: [own_luma, their_luma], red, blue, seen }
    }

    /// How far red, green and blue of a pixel changed.
    pub(super) fn change(&self, x: usize, y: usize) -> [f32; 3] {
        let l = self.luma[1].row(y)[x] - self.luma[0].row(y)[x];
        let (r, b) = (self.red.row(y)[x], self.blue.row(y)[x]);
        [r + l, l - (r * LUMA[0] + b * LUMA[2]) / LUMA[1], b + l]
    }

    /// The steepest pixels, in which sharpness shows: noise would be taken for it elsewhere.
    fn edges(&self) -> Vec<bool> {
        let luma = smoothed(&self.luma[0], &gaussian(TEXTURE));
        let mut steep = Plane::unset(luma.width, luma.height);
        for y in 0..luma.height {
            let rows = [-1, 0, 1].map(|k| luma.row_clamped(y as isize + k));
            gradient(rows, &mut steep.data[y * luma.width..(y + 1) * luma.width]);
        }
        let mut gradients = Histogram::new(2048, 16.0);
        steep.data.iter().for_each(|g| gradients.add(*g));
        let least = gradients.quantile(STEEPEST).max(LEAST_STEEP);
        let seen = |i: usize| self.seen.as_ref().is_none_or(|seen| seen.data[i] > 0.5);
        steep.data.iter().enumerate().map(|(i, g)| *g >= least && seen(i)).collect()
    }

    /// Brightness of both, made equally sharp.
    fn smooth_luma(&self, sharpness: Sharpness) -> [Plane; 2] {
        let with = |blur: f32| gaussian((blur * blur + SMOOTHING * SMOOTHING).sqrt());
        [
            smoothed(&self.luma[0], &with(sharpness.0.max(0.0))),
            smoothed(&self.luma[1], &with(sharpness.0.min(0.0))),
        ]
    }

    /// The difference, and the texture beneath it.
    pub(super) fn residual(self, sharpness: Sharpness) -> Residual {
        let luma = self.smooth_luma(sharpness);
        let kernel = gaussian(CHROMA);
        let (red, blue) = (smoothed(&self.red, &kernel), smoothed(&self.blue, &kernel));
        let mut difference = Plane::unset(self.area.width(), self.area.height());
        for y in 0..difference.height {
            let width = difference.width;
            let rows = [luma[0].row(y), luma[1].row(y), red.row(y), blue.row(y)];
            lengths(rows, &mut difference.data[y * width..(y + 1) * width]);
        }
        if let Some(seen) = &self.seen {
            for (d, seen) in difference.data.iter_mut().zip(&seen.data) {
                *d = if *seen > 0.5 { *d } else { UNSEEN };
            }
        }
        let texture = textured(&luma);
        Residual { area: self.area, difference, texture, luma }
    }
}

/// How much more blurred the second picture is, in pixels; negative if it is sharper.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sharpness(f32);

impl Sharpness {
    /// Tells it from the edges of a few parts.
    pub(super) fn of(parts: &[Pixels]) -> Self {
        let edges: Vec<Vec<bool>> = parts.iter().map(Pixels::edges).collect();
        let cost = |sharpness: Self| {
            let sums: Vec<(f64, f64)> = parts
                .par_iter()
                .zip(&edges)
                .map(|(part, edges)| {
                    let [own, their] = part.smooth_luma(sharpness);
                    let (mut sum, mut count) = (0.0f64, 0.0f64);
                    let pixels = own.data.iter().zip(&their.data).zip(edges);
                    for ((a, b), _) in pixels.filter(|(_, edge)| **edge) {
                        sum += f64::from((b - a).abs().min(BLUR_CAP));
                        count += 1.0;
                    }
                    (sum, count)
                })
                .collect();
            let (sum, count) =
                sums.iter().fold((0.0, 0.0), |(s, c), (sum, count)| (s + sum, c + count));
            sum / f64::max(count, 1.0)
        };
        let plain = cost(Self(0.0));
        for side in [1.0, -1.0] {
            let mut best = (0.0, plain);
            for blur in BLURS {
                let now = cost(Self(side * blur));
                if now > best.1 * BLUR_GAIN {
                    break;
                }
                best = (blur, now);
            }
            if best.0 > 0.0 {
                return Self(side * best.0);
            }
        }
        Self(0.0)
    }
}

/// A part of the second picture that is looked up between its pixels.
struct Moved {
    xs: Plane,
    ys: Plane,
    seen: Plane,
    /// The pixels that are needed, and how many there are across and down.
    pixels: Vec<[f32; 4]>,
    size: (usize, usize),
}

impl Moved {
    fn of(frames: &Frames<'_>, alignment: &Alignment, area: &Area, shift: (f32, f32)) -> Self {
        let (mut xs, mut ys) = alignment.places(area, shift);
        let mut seen = Plane::unset(xs.width, xs.height);
        let (right, bottom) = ((frames.width - 1) as f32, (frames.height - 1) as f32);
        let margin = if alignment.moved() { BORDER } else { 0.0 };
        for ((seen, x), y) in seen.data.iter_mut().zip(&xs.data).zip(&ys.data) {
            let inside =
                *x >= margin && *y >= margin && *x <= right - margin && *y <= bottom - margin;
            *seen = if inside { 1.0 } else { 0.0 };
        }
        // The block of pixels that is needed, two more on each side for the interpolation.
        let block = |places: &Plane, end: usize| {
            let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
            for v in &places.data {
                low = low.min(*v);
                high = high.max(*v);
            }
            let last = (end - 1) as f32;
            let low = (low.clamp(0.0, last) as usize).saturating_sub(2);
            (low, (high.clamp(0.0, last) as usize + 4).min(end))
        };
        let ((x1, x2), (y1, y2)) = (block(&xs, frames.width), block(&ys, frames.height));
        let mut pixels = Vec::with_capacity((x2 - x1) * (y2 - y1));
        for y in y1..y2 {
            let row = frames.their_bytes(y, (x1, x2)).as_chunks::<3>().0;
            pixels.extend(
                row.iter().map(|p| [f32::from(p[0]), f32::from(p[1]), f32::from(p[2]), 0.0]),
            );
        }
        xs.data.iter_mut().for_each(|x| *x -= x1 as f32);
        ys.data.iter_mut().for_each(|y| *y -= y1 as f32);
        Self { xs, ys, seen, pixels, size: (x2 - x1, y2 - y1) }
    }

    fn row(&self, y: usize, [r, g, b]: &mut [Vec<f32>; 3]) {
        let mut looked = vec![[0.0f32; 4]; r.len()];
        look_up(&self.pixels, self.size, (self.xs.row(y), self.ys.row(y)), &mut looked);
        for (((pixel, r), g), b) in looked.iter().zip(r).zip(g).zip(b) {
            [*r, *g, *b, _] = *pixel;
        }
    }
}

fn split(bytes: &[u8], [r, g, b]: &mut [Vec<f32>; 3]) {
    for (((pixel, r), g), b) in bytes.as_chunks::<3>().0.iter().zip(r).zip(g).zip(b) {
        (*r, *g, *b) = (f32::from(pixel[0]), f32::from(pixel[1]), f32::from(pixel[2]));
    }
}

/// Brightness of both rows, and what of their difference is red and blue beyond it.
#[multiversion(targets("x86_64+avx2"))]
fn parted(
    own: &[Vec<f32>; 3],
    their: &[Vec<f32>; 3],
    (own_luma, their_luma, red, blue): (&mut [f32], &mut [f32], &mut [f32], &mut [f32]),
) {
    let n = own_luma.len();
    let ([ar, ag, ab], [br, bg, bb]) =
        (own.each_ref().map(|v| &v[..n]), their.each_ref().map(|v| &v[..n]));
    let (their_luma, red, blue) = (&mut their_luma[..n], &mut red[..n], &mut blue[..n]);
    for x in 0..n {
        let a = ar[x] * LUMA[0] + ag[x] * LUMA[1] + ab[x] * LUMA[2];
        let b = br[x] * LUMA[0] + bg[x] * LUMA[1] + bb[x] * LUMA[2];
        own_luma[x] = a;
        their_luma[x] = b;
        red[x] = (br[x] - ar[x]) - (b - a);
        blue[x] = (bb[x] - ab[x]) - (b - a);
    }
}

/// The length of the difference; green follows from brightness, red and blue.
#[multiversion(targets("x86_64+avx2"))]
fn lengths([own, their, red, blue]: [&[f32]; 4], out: &mut [f32]) {
    let n = out.len();
    let (own, their, red, blue) = (&own[..n], &their[..n], &red[..n], &blue[..n]);
    for x in 0..n {
        let l = their[x] - own[x];
        let (r, b) = (red[x], blue[x]);
        let g = -(r * LUMA[0] + b * LUMA[2]) / LUMA[1];
        out[x] = (l * l + (r * r + g * g + b * b) * (1.0 / 3.0)).sqrt();
    }
}

fn textured(luma: &[Plane; 2]) -> Plane {
    let (width, height) = (luma[0].width, luma[0].height);
    let steep = luma.each_ref().map(|plane| {
        let mut out = Plane::unset(width, height);
        for y in 0..height {
            let rows = [-1, 0, 1].map(|k| plane.row_clamped(y as isize + k));
            gradient(rows, &mut out.data[y * width..(y + 1) * width]);
        }
        out
    });
    let mut least = Plane::unset(width, height);
    let mut other = vec![0.0; width];
    for y in 0..height {
        let rows = |plane: usize| [-1, 0, 1].map(|k| steep[plane].row_clamped(y as isize + k));
        let out = &mut least.data[y * width..(y + 1) * width];
        maxima(rows(0), out);
        maxima(rows(1), &mut other);
        smaller(&other, out);
    }
    smoothed(&least, &gaussian(TEXTURE))
}

/// Smooths a part in one thread: parts are many, and each has its own.
pub(super) fn smoothed(plane: &Plane, kernel: &[f32]) -> Plane {
    let width = plane.width;
    let mut out = Plane::unset(width, plane.height);
    let mut smoother = Smoother::new(kernel, width);
    for (y, out) in out.data.chunks_exact_mut(width).enumerate() {
        smoother.row(|k| plane.row_clamped(y as isize + k), out);
    }
    out
}

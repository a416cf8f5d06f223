//! Both pictures on one grid of pixels, as fine as the coarser of them.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::coords::Size;
use crate::difference::radiometry::{Curve, LUMA, QUARTER, Radiometry, apply_curve};
use crate::picture::Picture;
use crate::registration::plane::{BAND, Plane};
use crate::registration::relighting::lit;

/// Pixels of the grid per cell of the lighting.
pub(super) const LIGHT_CELL: usize = 16;
/// Lighting that changes less than this, as a part of the brightness, is not made up for: it would
/// only cost time.
const NO_LIGHT: f32 = 0.002;
/// The same for tone, in grey levels.
const NO_TONE: f32 = 0.05;

/// A part of the grid: left, top, right, bottom, the last two exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x1: usize,
    pub(super) y1: usize,
    pub(super) x2: usize,
    pub(super) y2: usize,
}

impl Area {
    pub(super) fn width(&self) -> usize {
        self.x2 - self.x1
    }

    pub(super) fn height(&self) -> usize {
        self.y2 - self.y1
    }

    /// With `by` pixels more on each side, as far as a grid of this size goes.
    pub(super) fn grown(&self, by: usize, (width, height): (usize, usize)) -> Self {
        Self {
            x1: self.x1.saturating_sub(by),
            y1: self.y1.saturating_sub(by),
            x2: (self.x2 + by).min(width),
            y2: (self.y2 + by).min(height),
        }
    }
}

/// The pictures on their common grid, and what makes the first one look like the second.
pub(super) struct Frames<'a> {
    pub(super) width: usize,
    pub(super) height: usize,
    first: Cow<'a, Picture>,
    second: Cow<'a, Picture>,
    /// Tone curves of the first, as tables; none where the tone is the same.
    tone: Option<Box<[[f32; 256]; 3]>>,
    curves: [Curve; 3],
    /// Gain minus one by channel and cell; none where the light is the same.
    light: Option<Vec<Plane>>,
}

impl<'a> Frames<'a> {
    /// The grid is that of the picture with the shorter long side, with at most `longest` pixels; the other
    /// picture is averaged, so that the coarser one keeps its own pixels. `coarse` is the frame in which the
    /// radiometry was told.
    pub(super) fn new(
        first: &'a Picture,
        second: &'a Picture,
        longest: u32,
        radiometry: &Radiometry,
        coarse: (usize, usize),
    ) -> Self {
        let size = grid(first.size(), second.size(), longest);
        let (width, height) = (size.width as usize, size.height as usize);
        let (first, second) = rayon::join(|| first.averaged(size), || second.averaged(size));
        let toned = radiometry.curves.iter().any(|curve| curve.strength() > NO_TONE);
        let tone = toned.then(|| Box::new(radiometry.curves.map(|curve| curve.table())));
        let light = (radiometry.light.reach() > NO_LIGHT).then(|| {
            let (across, down) = (coarse.0 as f32 / width as f32, coarse.1 as f32 / height as f32);
            let cells = (width.div_ceil(LIGHT_CELL), height.div_ceil(LIGHT_CELL));
            (0..3)
                .map(|c| {
                    let mut plane = Plane::new(cells.0, cells.1);
                    let at = |k: usize, ratio: f32| (k as f32 + 0.5) * LIGHT_CELL as f32 * ratio;
                    plane.fill_rows(|j, row| {
                        for (i, gain) in row.iter_mut().enumerate() {
                            let point = (at(i, across), at(j, down));
                            *gain = radiometry.light.at_point(c, point, QUARTER);
                        }
                    });
                    plane
                })
                .collect()
        });
        Self { width, height, first, second, tone, curves: radiometry.curves, light }
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    pub(super) fn long(&self) -> usize {
        self.width.max(self.height)
    }

    /// A row of the first picture's bytes, from `x1` to `x2`.
    pub(super) fn own_bytes(&self, y: usize, (x1, x2): (usize, usize)) -> &[u8] {
        let start = y * self.width * 3;
        &self.first.rgb().as_raw()[start + x1 * 3..start + x2 * 3]
    }

    /// The same of the second.
    pub(super) fn their_bytes(&self, y: usize, (x1, x2): (usize, usize)) -> &[u8] {
        let start = y * self.width * 3;
        &self.second.rgb().as_raw()[start + x1 * 3..start + x2 * 3]
    }

    /// Whether the pictures are compared as they are there, and are the same to the bit.
    pub(super) fn is_same(&self, area: &Area) -> bool {
        let span = (area.x1, area.x2);
        self.tone.is_none()
            && self.light.is_none()
            && (area.y1..area.y2).all(|y| self.own_bytes(y, span) == self.their_bytes(y, span))
    }

    /// How much the first picture's values vary along a few rows of a part.
    pub(super) fn structure(&self, area: &Area) -> u64 {
        let rows = (area.y1..area.y2).step_by(8);
        rows.map(|y| {
            let bytes = self.own_bytes(y, (area.x1, area.x2));
            bytes
                .iter()
                .zip(bytes.iter().skip(3))
                .map(|(a, b)| u64::from(a.abs_diff(*b)))
                .sum::<u64>()
        })
        .sum()
    }

    /// A row of the first picture as the second would show it, by channel.
    pub(super) fn own_row(
        &self,
        y: usize,
        x1: usize,
        scratch: &mut Vec<f32>,
        out: &mut [Vec<f32>; 3],
    ) {
        let width = out[0].len();
        let bytes = self.own_bytes(y, (x1, x1 + width));
        let [r, g, b] = out;
        let pixels = bytes.as_chunks::<3>().0.iter();
        let outs = pixels.zip(r.iter_mut()).zip(g.iter_mut()).zip(b.iter_mut());
        match &self.tone {
            Some(tone) => {
                for (((pixel, r), g), b) in outs {
                    *r = tone[0][usize::from(pixel[0])];
                    *g = tone[1][usize::from(pixel[1])];
                    *b = tone[2][usize::from(pixel[2])];
                }
            }
            None => {
                for (((pixel, r), g), b) in outs {
                    (*r, *g, *b) = (f32::from(pixel[0]), f32::from(pixel[1]), f32::from(pixel[2]));
                }
            }
        }
        if let Some(light) = &self.light {
            let mut gain = std::mem::take(scratch);
            gain.resize(width, 0.0);
            for (plane, row) in light.iter().zip(out.iter_mut()) {
                plane.expand_part(y as f32 + 0.5, LIGHT_CELL, x1, &mut gain);
                lit(row, &mut gain);
                row.copy_from_slice(&gain);
            }
            *scratch = gain;
        }
    }

    /// Brightness of both pictures at the grid's size, or at half of it; the first with the tone and the
    /// light of the second.
    pub(super) fn luma(&self, half: bool) -> [Plane; 2] {
        let step = if half { 2 } else { 1 };
        let (width, height) = (self.width.div_ceil(step), self.height.div_ceil(step));
        let plane = |own: bool| {
            let mut plane = Plane::unset(width, height);
            plane.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, rows)| {
                let mut rgb = [(); 3].map(|()| vec![0.0; width]);
                let mut gain = vec![0.0; width];
                for (i, out) in rows.chunks_exact_mut(width).enumerate() {
                    let y = band * BAND + i;
                    let row = |y: usize| {
                        let y = y.min(self.height - 1);
                        if own {
                            self.own_bytes(y, (0, self.width))
                        } else {
                            self.their_bytes(y, (0, self.width))
                        }
                    };
                    if half {
                        halved(row(2 * y), row(2 * y + 1), &mut rgb);
                    } else {
                        split(row(y), &mut rgb);
                    }
                    out.fill(0.0);
                    for c in 0..3 {
                        if own && self.tone.is_some() {
                            apply_curve(&self.curves[c], &mut rgb[c]);
                        }
                        if own && let Some(light) = &self.light {
                            let at = (y * step) as f32 + step as f32 / 2.0;
                            light[c].expand_part(at / step as f32, LIGHT_CELL / step, 0, &mut gain);
                            lit(&rgb[c], &mut gain);
                            rgb[c].copy_from_slice(&gain);
                        }
                        for (out, v) in out.iter_mut().zip(&rgb[c]) {
                            *out += v * LUMA[c];
                        }
                    }
                }
            });
            plane
        };
        let (own, their) = rayon::join(|| plane(true), || plane(false));
        [own, their]
    }
}

/// The grid on which two pictures are compared.
pub(super) fn grid(first: Size, second: Size, longest: u32) -> Size {
    let finer_first = first.long_side() > second.long_side();
    let size = if finer_first { second } else { first };
    size.with_long_side(size.long_side().min(longest))
}

fn split(row: &[u8], [r, g, b]: &mut [Vec<f32>; 3]) {
    let pixels = row.as_chunks::<3>().0.iter();
    for (((pixel, r), g), b) in pixels.zip(r).zip(g).zip(b) {
        (*r, *g, *b) = (f32::from(pixel[0]), f32::from(pixel[1]), f32::from(pixel[2]));
    }
}

/// Two rows at half their width; an odd last column counts twice.
fn halved(above: &[u8], below: &[u8], [r, g, b]: &mut [Vec<f32>; 3]) {
    let pairs = above.chunks(6).zip(below.chunks(6));
    for ((((above, below), r), g), b) in pairs.zip(r).zip(g).zip(b) {
        let mean = |c: usize| {
            let next = if above.len() == 6 { c + 3 } else { c };
            let sum = u16::from(above[c])
                + u16::from(above[next])
                + u16::from(below[c])
                + u16::from(below[next]);
            f32::from(sum) * 0.25
        };
        (*r, *g, *b) = (mean(0), mean(1), mean(2));
    }
}

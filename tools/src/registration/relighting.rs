//! Smooth changes of the light: a gain that varies slowly over the picture.

use multiversion::multiversion;
use rayon::prelude::*;

use super::plane::{BAND, Plane};

/// Residuals that relighting explains, in grey levels: wide at first, then narrow.
const SCALES: [f32; 4] = [24.0, 12.0, 8.0, 8.0];
/// Brightness squared that counts as evidence of no relighting: dark places tell little.
const RIDGE: f32 = 30.0;
/// Values from here on are clipped and tell nothing.
const CLIPPED: f32 = 250.0;

/// A field of gains, one value per square cell of pixels.
#[derive(Debug, Clone)]
pub(crate) struct Relighting {
    /// Gain minus one, by channel.
    pub(crate) gain: Vec<Plane>,
    /// Pixels per cell, on the planes that it was estimated from.
    cell: usize,
}

impl Relighting {
    /// Estimates `second ≈ first · (1 + gain)` where `mask` is set, with windows of `sigma` pixels.
    ///
    /// Each round adds what the last one left: windows alone would flatten the hills of the field.
    pub(crate) fn estimate(
        first: &[Plane],
        second: &[Plane],
        mask: &Plane,
        cell: usize,
        sigma: f32,
    ) -> Self {
        let (width, height) = (mask.width, mask.height);
        let (cols, rows) = (width.div_ceil(cell), height.div_ceil(cell));
        let channels = first.len();
        let columns = Columns::new(width, cell as f32, cols);
        let mut gain = vec![Plane::new(cols, rows); channels];
        let mut residual = vec![Plane::new(width, height); channels];
        for scale in SCALES {
            for (c, residual) in residual.iter_mut().enumerate() {
                residual.fill_rows(|y, out| {
                    columns.row(&gain[c], (y as f32 + 0.5) / cell as f32 - 0.5, out);
                    lit(first[c].row(y), out);
                    for (out, b) in out.iter_mut().zip(second[c].row(y)) {
                        *out = b - *out;
                    }
                });
            }
            let soft = 1.0 / (channels as f32 * scale * scale);
            let mut weights = Plane::new(width, height);
            weights.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, out)| {
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    let y = band * BAND + i;
                    residual.iter().for_each(|r| add_square(r.row(y), out));
                    weigh(mask.row(y), soft, out);
                }
            });
            gain.par_iter_mut().enumerate().for_each(|(c, gain)| {
                let (mut ra, mut aa) = (Plane::new(cols, rows), Plane::new(cols, rows));
                let area = (cell * cell) as f32;
                for y in 0..height {
                    let cells = y / cell * cols..(y / cell + 1) * cols;
                    let (ra, aa) = (&mut ra.data[cells.clone()], &mut aa.data[cells]);
                    let (w, a, b) = (weights.row(y), first[c].row(y), second[c].row(y));
                    let r = residual[c].row(y);
                    for x in 0..width {
                        let w = if b[x] < CLIPPED { w[x] } else { 0.0 } / area;
                        ra[x / cell] += w * r[x] * a[x];
                        aa[x / cell] += w * a[x] * a[x];
                    }
                }
                let (ra, aa) = (ra.blurred(sigma / cell as f32), aa.blurred(sigma / cell as f32));
                for ((g, ra), aa) in gain.data.iter_mut().zip(&ra.data).zip(&aa.data) {
                    *g += ra / (aa + RIDGE);
                }
            });
        }
        Self { gain, cell }
    }

    /// The strongest change, as a part of the brightness.
    pub(crate) fn reach(&self) -> f32 {
        self.gain.iter().flat_map(|g| &g.data).fold(0.0, |most, v| v.abs().max(most))
    }

    /// Lights `plane`, of whose pixels the planes that it was estimated from span `ratio` each.
    pub(crate) fn apply(&self, channel: usize, plane: &Plane, ratio: f32) -> Plane {
        let cell = self.cell as f32 * ratio;
        let field = &self.gain[channel];
        let columns = Columns::new(plane.width, cell, field.width);
        plane.map_rows(|y, out| {
            columns.row(field, (y as f32 + 0.5) / cell - 0.5, out);
            lit(plane.row(y), out);
        })
    }
}

/// `out = row · (1 + out)`, within what a picture can hold.
#[multiversion(targets("x86_64+avx2"))]
fn lit(row: &[f32], out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        let lit = v + v * *out;
        *out = if lit > 255.0 { 255.0 } else { lit };
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn add_square(row: &[f32], out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        *out += v * v;
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn weigh(mask: &[f32], soft: f32, out: &mut [f32]) {
    for (out, m) in out.iter_mut().zip(mask) {
        let w = 1.0 / (1.0 + *out * soft);
        *out = m * w * w;
    }
}

/// Where each pixel of a row lies between cells.
struct Columns(Vec<(u32, f32)>);

impl Columns {
    fn new(width: usize, cell: f32, cells: usize) -> Self {
        let place = |x: usize| {
            let at = ((x as f32 + 0.5) / cell - 0.5).clamp(0.0, (cells - 1) as f32);
            let index = (at as usize).min(cells.saturating_sub(2));
            (index as u32, at - index as f32)
        };
        Self((0..width).map(place).collect())
    }

    /// The values of a field at the pixels of a row that lies at `y` in cells.
    fn row(&self, field: &Plane, y: f32, out: &mut [f32]) {
        let y = y.clamp(0.0, (field.height - 1) as f32);
        let (above, below) = (field.row(y as usize), field.row_clamped(y as isize + 1));
        let t = y - (y as usize) as f32;
        let blend: Vec<f32> = above.iter().zip(below).map(|(a, b)| a + (b - a) * t).collect();
        let last = blend.len() - 1;
        for (out, &(i, t)) in out.iter_mut().zip(&self.0) {
            let (a, b) = (blend[i as usize], blend[(i as usize + 1).min(last)]);
            *out = a + (b - a) * t;
        }
    }
}

//! Smooth changes of the light: a gain that varies slowly over the picture.

use multiversion::multiversion;
use rayon::prelude::*;

use super::plane::{BAND, Plane};

/// Residuals that relighting explains, in grey levels: wide at first, then narrow.
const SCALES: [f32; 3] = [24.0, 8.0, 8.0];
/// Rounds in which the field is sharpened.
const SHARPENINGS: usize = 3;
/// Brightness squared that counts as evidence of no relighting: dark places tell little.
const RIDGE: f32 = 30.0;
/// Evidence that is not heard, because its residual is large or it is clipped, counts this much for
/// no relighting: where nearly everything is an edit, the rest must not decide.
const UNHEARD: f32 = 0.02;
/// Values from here on may be clipped and tell nothing.
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
    /// Every round starts anew with better weights, so that what an edit did to the first is
    /// forgotten.
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
        let mut gain = vec![Plane::new(cols, rows); channels];
        let everything: Vec<Plane> =
            first.par_iter().map(|plane| evidence([plane, plane], mask, cell).1).collect();
        let mut weights = Plane::unset(width, height);
        for scale in SCALES {
            let soft = 1.0 / (channels as f32 * scale * scale);
            weights.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, out)| {
                let (mut predicted, mut blend) = (vec![0.0; width], Vec::new());
                out.fill(0.0);
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    let y = band * BAND + i;
                    for c in 0..channels {
                        gain[c].expand_row(y as f32 + 0.5, cell as f32, &mut blend, &mut predicted);
                        lit(first[c].row(y), &mut predicted);
                        add_squared_distance(&predicted, second[c].row(y), out);
                    }
                    weigh(mask.row(y), soft, out);
                }
            });
            gain = (0..channels)
                .into_par_iter()
                .map(|c| fit([&first[c], &second[c]], &weights, &everything[c], cell, sigma))
                .collect();
        }
        Self { gain, cell }
    }

    /// The strongest change, as a part of the brightness.
    pub(crate) fn reach(&self) -> f32 {
        self.gain.iter().flat_map(|g| &g.data).fold(0.0, |most, v| v.abs().max(most))
    }

    /// Lights `plane`, whose pixels are `ratio` times smaller than those that it was estimated from.
    pub(crate) fn apply(&self, channel: usize, plane: &Plane, ratio: f32) -> Plane {
        plane.map_rows(|y, out| {
            self.row(channel, y, ratio, &mut Vec::new(), out);
            lit(plane.row(y), out);
        })
    }

    /// The gain minus one along a row; `blend` is scratch.
    pub(crate) fn row(
        &self,
        channel: usize,
        y: usize,
        ratio: f32,
        blend: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        self.gain[channel].expand_row(y as f32 + 0.5, self.cell as f32 * ratio, blend, out);
    }

    /// The gain minus one at a pixel.
    pub(crate) fn at(&self, channel: usize, x: usize, y: usize, ratio: f32) -> f32 {
        self.at_point(channel, (x as f32 + 0.5, y as f32 + 0.5), ratio)
    }

    /// The gain minus one at a point; pixels are squares of one.
    pub(crate) fn at_point(&self, channel: usize, (x, y): (f32, f32), ratio: f32) -> f32 {
        let cell = self.cell as f32 * ratio;
        self.gain[channel].sample(x / cell - 0.5, y / cell - 0.5)
    }

    /// No relighting of planes of this size.
    pub(crate) fn none(channels: usize, cell: usize) -> Self {
        Self { gain: vec![Plane::new(1, 1); channels], cell }
    }
}

/// What each cell says about the gain: residual times brightness, and brightness squared.
fn evidence([first, second]: [&Plane; 2], weights: &Plane, cell: usize) -> (Plane, Plane) {
    let (width, height) = (first.width, first.height);
    let (cols, rows) = (width.div_ceil(cell), height.div_ceil(cell));
    let (mut ra, mut aa) = (Plane::new(cols, rows), Plane::new(cols, rows));
    let share = 1.0 / (cell * cell) as f32;
    let (mut across_ra, mut across_aa) = (vec![0.0; width], vec![0.0; width]);
    for top in (0..height).step_by(cell) {
        across_ra.fill(0.0);
        across_aa.fill(0.0);
        for y in top..(top + cell).min(height) {
            let rows = [weights.row(y), first.row(y), second.row(y)];
            add_evidence(rows, share, &mut across_ra, &mut across_aa);
        }
        let cells = top / cell * cols..(top / cell + 1) * cols;
        sum_cells(&across_ra, cell, &mut ra.data[cells.clone()]);
        sum_cells(&across_aa, cell, &mut aa.data[cells]);
    }
    (ra, aa)
}

/// The gain of one channel, with weights that are known.
///
/// `everything` is the evidence that there would be if all pixels were heard.
fn fit(
    [first, second]: [&Plane; 2],
    weights: &Plane,
    everything: &Plane,
    cell: usize,
    sigma: f32,
) -> Plane {
    let (ra, aa) = evidence([first, second], weights, cell);
    let sigma = sigma / cell as f32;
    let heard = aa.blurred(sigma);
    let all = everything.blurred(sigma);
    let mut gain = Plane::new(ra.width, ra.height);
    for _ in 0..SHARPENINGS {
        // What the last round left; windows alone would flatten the hills of the field.
        let mut left = ra.clone();
        for ((left, g), aa) in left.data.iter_mut().zip(&gain.data).zip(&aa.data) {
            *left -= g * aa;
        }
        let left = left.blurred(sigma);
        let evidence = heard.data.iter().zip(&all.data);
        for ((g, left), (heard, all)) in gain.data.iter_mut().zip(&left.data).zip(evidence) {
            *g += left / (heard + UNHEARD * all + RIDGE);
        }
    }
    gain
}

/// The same for a row.
#[multiversion(targets("x86_64+avx2"))]
fn add_evidence([w, a, b]: [&[f32]; 3], share: f32, ra: &mut [f32], aa: &mut [f32]) {
    let n = ra.len();
    let (w, a, b, aa) = (&w[..n], &a[..n], &b[..n], &mut aa[..n]);
    for x in 0..n {
        let clipped = (b[x] >= CLIPPED) & (b[x] > a[x]);
        let w = if clipped { 0.0 } else { w[x] * share };
        ra[x] += w * (b[x] - a[x]) * a[x];
        aa[x] += w * a[x] * a[x];
    }
}

fn sum_cells(row: &[f32], cell: usize, out: &mut [f32]) {
    for (out, cell) in out.iter_mut().zip(row.chunks(cell)) {
        *out = cell.iter().sum();
    }
}

/// `out = row · (1 + out)`, within what a picture can hold.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn lit(row: &[f32], out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(row) {
        let lit = v + v * *out;
        *out = if lit > 255.0 { 255.0 } else { lit };
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn add_squared_distance(a: &[f32], b: &[f32], out: &mut [f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        let d = b - a;
        *out += d * d;
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn weigh(mask: &[f32], soft: f32, out: &mut [f32]) {
    for (out, m) in out.iter_mut().zip(mask) {
        let w = 1.0 / (1.0 + *out * soft);
        *out = m * w * w;
    }
}

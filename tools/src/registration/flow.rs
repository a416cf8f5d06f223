//! What is left locally after the global registration: a smooth field of small moves, by windowed
//! Lucas–Kanade with a brightness bias of its own in every window.

use multiversion::multiversion;
use rayon::prelude::*;

use super::global::{Affine, Found, Level};
use super::plane::{Histogram, Lookup, Plane};

/// Pixels of the frame per cell of the field.
pub(crate) const CELL: usize = 8;
/// The passes, from wide to narrow.
const PASSES: [Pass; 3] = [
    Pass { scale: 4, window: 0.094, cell: 24, iterations: 3 },
    Pass { scale: 4, window: 0.062, cell: 16, iterations: 2 },
    Pass { scale: 2, window: 0.0275, cell: 8, iterations: 3 },
];
/// Residuals beyond this many σ lose their say.
const SOFT: f32 = 2.5;
/// σ never gets finer than this many grey levels.
const SIGMA_FLOOR: f32 = 1.5;
/// Pull to no move: of the mean squared gradient, and at least.
const PULL: f32 = 0.025;
const LEAST_PULL: f32 = 0.02;
/// The longest step of an iteration in pixels of its level; a pass ends where all are shorter
/// than the shortest.
const LONGEST_STEP: f32 = 1.5;
const SHORTEST_STEP: f32 = 0.03;
/// The longest move, as a part of the frame's long side: what moves further was moved by an edit.
const LONGEST_MOVE: f32 = 0.006;
/// Where nothing moved globally and most cells moved less than this after the first pass, in pixels
/// of the frame, nothing moved at all.
const UNMOVED: f32 = 0.08;
/// Gradients below this do not tell the scale of the residual.
const TEXTURED: f32 = 2.0;

/// One pass of the search.
struct Pass {
    /// Pixels of the frame per pixel of the level.
    scale: usize,
    /// σ of the window as a part of the frame's long side.
    window: f32,
    /// Pixels of the frame per cell of the grid on which moments are gathered.
    cell: usize,
    iterations: usize,
}

/// The windows of a step, in pixels of the frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Windows {
    /// σ of each.
    pub(crate) sigma: f32,
    /// Side of the cells on which moments are gathered.
    pub(crate) cell: usize,
}

/// How far a step of the field went, in pixels of the frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Anywhere.
    pub(crate) longest: f32,
    /// In all but one of twenty cells.
    pub(crate) most: f32,
}

/// A smooth field of moves, in pixels of the frame, one per cell.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) u: Plane,
    pub(crate) v: Plane,
    /// Brightness that the second picture has more than the global tone says.
    bias: Plane,
}

impl Flow {
    /// No move anywhere in a frame of this size.
    pub(crate) fn none(width: usize, height: usize) -> Self {
        let grid = || Plane::new(width.div_ceil(CELL), height.div_ceil(CELL));
        Self { u: grid(), v: grid(), bias: grid() }
    }

    /// The field of a frame of the size `from` for one of another size.
    pub(crate) fn resampled(&self, size: (usize, usize), from: (usize, usize)) -> Self {
        let mut flow = Self::none(size.0, size.1);
        let (across, down) = (from.0 as f32 / size.0 as f32, from.1 as f32 / size.1 as f32);
        let fields = [(&mut flow.u, &self.u, 1.0 / across), (&mut flow.v, &self.v, 1.0 / down)];
        for (out, field, factor) in fields {
            out.fill_rows(|j, row| {
                for (i, value) in row.iter_mut().enumerate() {
                    let at = |k: usize, ratio: f32| (k as f32 + 0.5) * ratio - 0.5;
                    *value = field.sample(at(i, across), at(j, down)) * factor;
                }
            });
        }
        flow
    }

    /// The longest move along an axis.
    pub(crate) fn reach(&self) -> f32 {
        self.u.data.iter().chain(&self.v.data).fold(0.0, |most, v| v.abs().max(most))
    }

    /// The move that most cells stay below: an edit moves few.
    fn typical(&self) -> f32 {
        let mut moves = Histogram::new(256, 64.0);
        self.u.data.iter().zip(&self.v.data).for_each(|(u, v)| moves.add(u.abs().max(v.abs())));
        moves.quantile(0.9)
    }

    /// Finds the field that remains after `global`.
    pub(crate) fn estimate(
        first: &[Level],
        second: &[Level],
        (width, height): (usize, usize),
        global: &Found,
    ) -> Self {
        let mut flow = Self::none(width, height);
        let mut sigma = global.sigma;
        let long = width.max(height) as f32;
        let most = LONGEST_MOVE * long;
        for (number, pass) in PASSES.iter().enumerate() {
            if number == 1 && global.affine == Affine::IDENTITY && flow.typical() < UNMOVED {
                return Self::none(width, height);
            }
            // Small frames have no such level: the next finer one serves.
            let Some(index) = first.iter().rposition(|level| level.scale <= pass.scale) else {
                continue;
            };
            let windows = Windows { sigma: pass.window * long, cell: pass.cell };
            for _ in 0..pass.iterations {
                let step = flow.step(&first[index], &second[index], global, windows, &mut sigma);
                for v in flow.u.data.iter_mut().chain(&mut flow.v.data) {
                    *v = v.clamp(-most, most);
                }
                if step.longest < SHORTEST_STEP {
                    break;
                }
            }
        }
        flow
    }

    /// One step toward the field that remains after `global`, as two levels of the frames tell it;
    /// `sigma` is the scale of what remains of the brightness, and is told anew.
    pub(crate) fn step(
        &mut self,
        first: &Level,
        second: &Level,
        global: &Found,
        windows: Windows,
        sigma: &mut f32,
    ) -> Step {
        Search { first, second, windows, global }.iterate(self, sigma)
    }

    /// Adds the moves of the row `y` of a level of this scale, in its pixels, to its points.
    pub(crate) fn add_row(
        &self,
        scale: usize,
        y: usize,
        row: &mut Row,
        xs: &mut [f32],
        ys: &mut [f32],
    ) {
        let cell = CELL as f32 / scale as f32;
        let at = y as f32 + 0.5;
        for (field, points) in [(&self.u, xs), (&self.v, ys)] {
            field.expand_row(at, cell, &mut row.blend, &mut row.values);
            add_scaled(&row.values, 1.0 / scale as f32, points);
        }
    }
}

/// Scratch for a row of moves.
pub(crate) struct Row {
    blend: Vec<f32>,
    values: Vec<f32>,
}

impl Row {
    pub(crate) fn new(width: usize) -> Self {
        Self { blend: Vec::new(), values: vec![0.0; width] }
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn add_scaled(values: &[f32], factor: f32, out: &mut [f32]) {
    for (out, v) in out.iter_mut().zip(values) {
        *out += v * factor;
    }
}

/// Moments of a window: w·{gx², gx·gy, gy², gx·r, gy·r, 1, gx, gy, r}.
const MOMENTS: usize = 9;

struct Search<'a> {
    first: &'a Level,
    second: &'a Level,
    windows: Windows,
    global: &'a Found,
}

impl Search<'_> {
    /// One step of the whole field.
    fn iterate(&self, flow: &mut Flow, sigma: &mut f32) -> Step {
        let plane = &self.first.plane;
        let scale = self.first.scale;
        // Cells in pixels of the level.
        let cell = (self.windows.cell / scale).max(2);
        let (cols, rows) = (plane.width.div_ceil(cell), plane.height.div_ceil(cell));
        let (moments, residuals) = self.gather(flow, *sigma, cell, cols, rows);
        if residuals.total() > 0 {
            *sigma = (1.4826 * residuals.median()).max(SIGMA_FLOOR);
        }
        let smooth = self.windows.sigma / (cell * scale) as f32;
        let moments: Vec<Plane> = moments.par_iter().map(|m| m.blurred(smooth)).collect();
        let [xx, xy, yy, xr, yr, one, x, y, r] = moments.as_slice() else {
            return Step { longest: 0.0, most: 0.0 };
        };
        let area = (cell * cell) as f32;
        let centred = |i: usize| {
            let n = one.data[i].max(1e-3);
            let (mx, my, mr) = (x.data[i] / n, y.data[i] / n, r.data[i] / n);
            [
                (xx.data[i] - mx * x.data[i]) / area,
                (xy.data[i] - mx * y.data[i]) / area,
                (yy.data[i] - my * y.data[i]) / area,
                (xr.data[i] - mx * r.data[i]) / area,
                (yr.data[i] - my * r.data[i]) / area,
                mr,
            ]
        };
        let cells: Vec<[f32; 6]> = (0..cols * rows).map(centred).collect();
        let energy: f32 = cells.iter().map(|m| m[0] + m[2]).sum::<f32>() / cells.len() as f32;
        let pull = PULL * energy + LEAST_PULL;
        let mut steps = [(); 3].map(|()| Plane::new(cols, rows));
        let mut longest = 0.0f32;
        let mut lengths = Histogram::new(512, 128.0);
        for (i, m) in cells.iter().enumerate() {
            let (a, b, c) = (m[0] + pull, m[1], m[2] + pull);
            let det = a * c - b * b;
            let (du, dv) = if det > 0.0 {
                ((b * m[4] - c * m[3]) / det, (b * m[3] - a * m[4]) / det)
            } else {
                (0.0, 0.0)
            };
            let limit = |v: f32| v.clamp(-LONGEST_STEP, LONGEST_STEP) * scale as f32;
            steps[0].data[i] = limit(du);
            steps[1].data[i] = limit(dv);
            steps[2].data[i] = m[5];
            let length = limit(du).abs().max(limit(dv).abs());
            lengths.add(length);
            longest = longest.max(length);
        }
        let ratio = CELL as f32 / (cell * scale) as f32;
        let fields = [&mut flow.u, &mut flow.v, &mut flow.bias];
        for (field, step) in fields.into_iter().zip(&steps) {
            let width = field.width;
            for (j, row) in field.data.chunks_exact_mut(width).enumerate() {
                for (i, value) in row.iter_mut().enumerate() {
                    let at = |k: usize| (k as f32 + 0.5) * ratio - 0.5;
                    *value += step.sample(at(i), at(j));
                }
            }
        }
        Step { longest, most: lengths.quantile(0.95) }
    }

    /// The moments of each cell, and the residuals of textured pixels.
    fn gather(
        &self,
        flow: &Flow,
        sigma: f32,
        cell: usize,
        cols: usize,
        rows: usize,
    ) -> (Vec<Plane>, Histogram) {
        /// Rows of cells per task.
        const CELLS: usize = 4;
        let tasks: Vec<(Vec<[f32; MOMENTS]>, Histogram)> = (0..rows.div_ceil(CELLS))
            .into_par_iter()
            .map(|task| {
                let cells = task * CELLS..((task + 1) * CELLS).min(rows);
                self.gather_cells(flow, sigma, cell, cols, cells)
            })
            .collect();
        let mut planes: Vec<Plane> = (0..MOMENTS).map(|_| Plane::new(cols, rows)).collect();
        let mut residuals = Histogram::new(512, 8.0);
        let mut at = 0;
        for (cells, histogram) in &tasks {
            for moments in cells {
                for (plane, m) in planes.iter_mut().zip(moments) {
                    plane.data[at] = *m;
                }
                at += 1;
            }
            residuals.merge(histogram);
        }
        (planes, residuals)
    }

    fn gather_cells(
        &self,
        flow: &Flow,
        sigma: f32,
        cell: usize,
        cols: usize,
        cells: std::ops::Range<usize>,
    ) -> (Vec<[f32; MOMENTS]>, Histogram) {
        let plane = &self.first.plane;
        let (width, height) = (plane.width, plane.height);
        let mut scratch = Scratch::new(width);
        let mut rows = [(); 3].map(|()| Warped::new(width));
        let mut sums = vec![vec![0.0f32; width]; MOMENTS];
        let mut residual = vec![0.0; width];
        let mut out = Vec::with_capacity(cols * cells.len());
        let mut histogram = Histogram::new(512, 8.0);
        let top = cells.start * cell;
        let clamp = |y: isize| y.clamp(0, height as isize - 1) as usize;
        self.warp(flow, clamp(top as isize - 1), &mut scratch, &mut rows[0]);
        self.warp(flow, clamp(top as isize), &mut scratch, &mut rows[1]);
        for cell_row in cells {
            sums.iter_mut().for_each(|sum| sum.fill(0.0));
            for y in cell_row * cell..((cell_row + 1) * cell).min(height) {
                self.warp(flow, clamp(y as isize + 1), &mut scratch, &mut rows[2]);
                let own = [
                    plane.row_clamped(y as isize - 1),
                    plane.row(y),
                    plane.row_clamped(y as isize + 1),
                ];
                add_moments(own, &rows, self.global, sigma, &mut residual, &mut sums);
                if y % 4 == 0 {
                    for x in 0..width {
                        if residual[x] >= 0.0 {
                            histogram.add(residual[x]);
                        }
                    }
                }
                rows.rotate_left(1);
            }
            for col in 0..cols {
                let span = col * cell..((col + 1) * cell).min(width);
                out.push(std::array::from_fn(|m| sums[m][span.clone()].iter().sum()));
            }
        }
        (out, histogram)
    }

    /// A row of the second picture, where the field says that it lies.
    fn warp(&self, flow: &Flow, y: usize, scratch: &mut Scratch, out: &mut Warped) {
        let scale = self.first.scale;
        let Scratch { xs, ys, row, lookup } = scratch;
        self.global.affine.row(self.first.extent, y, xs, ys);
        flow.add_row(scale, y, row, xs, ys);
        let cell = CELL as f32 / scale as f32;
        flow.bias.expand_row(y as f32 + 0.5, cell, &mut row.blend, &mut out.bias);
        lookup.bilinear(&self.second.plane, (xs, ys), 1.0, &mut out.value, &mut out.valid);
    }
}

struct Scratch {
    xs: Vec<f32>,
    ys: Vec<f32>,
    row: Row,
    lookup: Lookup,
}

impl Scratch {
    fn new(width: usize) -> Self {
        Self {
            xs: vec![0.0; width],
            ys: vec![0.0; width],
            row: Row::new(width),
            lookup: Lookup::new(width),
        }
    }
}

struct Warped {
    value: Vec<f32>,
    valid: Vec<f32>,
    bias: Vec<f32>,
}

impl Warped {
    fn new(width: usize) -> Self {
        Self { value: vec![0.0; width], valid: vec![0.0; width], bias: vec![0.0; width] }
    }
}

/// Adds a row's moments to the sums of its cells; `residual` gets |r| of textured pixels, −1 else.
#[multiversion(targets("x86_64+avx2"))]
fn add_moments(
    [above, here, below]: [&[f32]; 3],
    warped: &[Warped; 3],
    global: &Found,
    sigma: f32,
    residual: &mut [f32],
    sums: &mut [Vec<f32>],
) {
    let n = here.len();
    let [xx, xy, yy, xr, yr, one, sx, sy, sr] = sums else { return };
    let (xx, xy, yy, xr, yr) =
        (&mut xx[..n], &mut xy[..n], &mut yy[..n], &mut xr[..n], &mut yr[..n]);
    let (one, sx, sy, sr) = (&mut one[..n], &mut sx[..n], &mut sy[..n], &mut sr[..n]);
    let (up, value, down) = (&warped[0].value[..n], &warped[1].value[..n], &warped[2].value[..n]);
    let (valid, bias) = (&warped[1].valid[..n], &warped[1].bias[..n]);
    let (above, below, residual) = (&above[..n], &below[..n], &mut residual[..n]);
    let soft = 1.0 / (SOFT * SOFT * sigma * sigma);
    let (gain, offset) = (global.gain, global.bias);
    residual[0] = -1.0;
    residual[n - 1] = -1.0;
    for x in 1..n.saturating_sub(1) {
        let gx = ((here[x + 1] - here[x - 1]) * gain + (value[x + 1] - value[x - 1])) * 0.25;
        let gy = ((below[x] - above[x]) * gain + (down[x] - up[x])) * 0.25;
        let r = value[x] - (here[x] * gain + offset) - bias[x];
        let w = valid[x] / (1.0 + r * r * soft);
        let (wx, wy) = (w * gx, w * gy);
        xx[x] += wx * gx;
        xy[x] += wx * gy;
        yy[x] += wy * gy;
        xr[x] += wx * r;
        yr[x] += wy * r;
        one[x] += w;
        sx[x] += wx;
        sy[x] += wy;
        sr[x] += w * r;
        let textured = (gx.abs() + gy.abs()) * valid[x] >= TEXTURED;
        residual[x] = if textured { r.abs() } else { -1.0 };
    }
}

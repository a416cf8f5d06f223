//! How the second frame lies on the first: shift, scale and shear, found by robust Lucas–Kanade on
//! a pyramid of brightness, from several starts.

use multiversion::multiversion;
use rayon::prelude::*;

use super::plane::{Histogram, Lookup, Plane};
use super::relighting::Relighting;

/// The coarsest level's long side is about this.
const COARSEST: usize = 48;
/// Smoothing of each level, in its pixels: keeps the gradients linear between pixels.
const LEVEL_BLUR: f32 = 0.8;
/// The robust scale of the residual never gets finer than this, by level from the coarsest.
const SIGMA_FLOOR: [f32; 3] = [4.0, 3.0, 2.0];
/// Iterations on the coarsest level (shift, then with scale), on the next (before and after the
/// light is made up for) and on the third (with scale, then with a turn). What that cannot tell,
/// the local field can.
const ITERATIONS: [[usize; 2]; 3] = [[20, 20], [8, 12], [2, 8]];
/// Of the searches on the coarsest level, this many are finished.
const FINISHED: usize = 2;
/// Where the search starts: no scale, and as if 4, 8 % were cut off each side, or added.
const STARTS: [f64; 4] = [0.0, 0.09, 0.18, -0.09];
/// Another start wins only if its cost is below this part of the best so far, less [`MARGIN`].
const CLEARLY: f64 = 0.93;
const MARGIN: f64 = 0.03;
/// A residual counts at most this much in the cost of a start.
const COST_CAP: f32 = 20.0;
/// The first start is good enough, and the others are not tried, where its cost is below this
/// part of the mean gradient: then it explains the picture to a fraction of a coarse pixel.
const GOOD_ENOUGH: f64 = 0.25;
/// A registration under which less than this part of the frame overlaps is none.
const LEAST_OVERLAP: f64 = 0.2;
/// Damping of the normal equations, of their diagonal.
const DAMPING: f64 = 1e-3;
/// Pull of scale and shear toward none, of the mean diagonal.
const PULL: f64 = 5e-4;
/// Pull toward no shear, likewise: editors turn pictures, they do not shear them.
const SHEAR_PULL: f64 = 0.1;
/// The longest step of a parameter, and the shortest in pixels that is worth another.
const LONGEST_STEP: f64 = 0.04;
const SHORTEST_STEP: f64 = 0.02;

/// A registration that moves no corner further, in pixels of the frame, is none: the estimate is no
/// finer than that.
const UNMOVED: f64 = 0.06;
/// Pixels of the frame per cell of the lighting, and σ of its windows as a part of the long side.
const LIGHT_CELL: usize = 16;
const LIGHT_WINDOW: f32 = 0.058;

/// An affine map between frames: a point `(X, Y)`, both from −½ to ½, of the first lies at
/// `(X + p0 + p1·X + p2·Y, Y + p3 + p4·X + p5·Y)` in the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Affine(pub(crate) [f64; 6]);

impl Affine {
    pub(crate) const IDENTITY: Self = Self([0.0; 6]);

    /// Where a point of the first frame lies in the second.
    pub(crate) fn apply(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let p = self.0;
        (x + p[0] + p[1] * x + p[2] * y, y + p[3] + p[4] * x + p[5] * y)
    }

    /// The map from the second frame to the first, if there is one.
    pub(crate) fn inverse(&self) -> Option<Self> {
        let p = self.0;
        let (a, b, c, d) = (1.0 + p[1], p[2], p[4], 1.0 + p[5]);
        let det = a * d - b * c;
        if !(det.abs() > 1e-6) {
            return None;
        }
        let (ia, ib, ic, id) = (d / det, -b / det, -c / det, a / det);
        let shift = (-(ia * p[0] + ib * p[3]), -(ic * p[0] + id * p[3]));
        Some(Self([shift.0, ia - 1.0, ib, shift.1, ic, id - 1.0]))
    }

    /// Where the pixels of the row `y` of a frame or level of this extent lie in the second.
    pub(crate) fn row(&self, extent: (f64, f64), y: usize, xs: &mut [f32], ys: &mut [f32]) {
        self.part_of_row(extent, (0, y), xs, ys);
    }

    /// The same for the pixels from `x1` on.
    pub(crate) fn part_of_row(
        &self,
        (w, h): (f64, f64),
        (x1, y): (usize, usize),
        xs: &mut [f32],
        ys: &mut [f32],
    ) {
        let point = |x: f64| {
            let (px, py) = self.apply(((x + 0.5) / w - 0.5, (y as f64 + 0.5) / h - 0.5));
            ((px + 0.5) * w - 0.5, (py + 0.5) * h - 0.5)
        };
        let (start, next) = (point(x1 as f64), point(x1 as f64 + 1.0));
        let (dx, dy) = ((next.0 - start.0) as f32, (next.1 - start.1) as f32);
        let (sx, sy) = (start.0 as f32, start.1 as f32);
        for (x, (px, py)) in xs.iter_mut().zip(ys).enumerate() {
            *px = sx + dx * x as f32;
            *py = sy + dy * x as f32;
        }
    }

    /// The longest move of a corner, in pixels of a frame of this size.
    pub(crate) fn reach(&self, width: usize, height: usize) -> f64 {
        let p = self.0;
        let u = p[0].abs() + (p[1].abs() + p[2].abs()) / 2.0;
        let v = p[3].abs() + (p[4].abs() + p[5].abs()) / 2.0;
        (u * width as f64).max(v * height as f64)
    }
}

/// Brightness at a power of two below the frame's size.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    pub(crate) plane: Plane,
    /// Pixels of the frame that one pixel spans.
    pub(crate) scale: usize,
    /// The frame's size in pixels of this level; not whole where the frame's is odd.
    pub(crate) extent: (f64, f64),
}

/// The levels of a frame's brightness, the finest first, without the frame itself where it is
/// large enough to do without.
pub(crate) fn pyramid(luma: &Plane) -> Vec<Level> {
    let mut levels = Vec::new();
    let mut sharp = luma.clone();
    let mut scale = 1;
    loop {
        let halves =
            sharp.width.max(sharp.height) >= 2 * COARSEST && sharp.width.min(sharp.height) >= 8;
        // Where it can be halved, the frame itself takes no part: half its size tells the same.
        if scale > 1 || !halves {
            let extent = (luma.width as f64 / scale as f64, luma.height as f64 / scale as f64);
            levels.push(Level { plane: sharp.blurred(LEVEL_BLUR), scale, extent });
        }
        if !halves {
            return levels;
        }
        sharp = sharp.halved();
        scale *= 2;
    }
}

/// What the search found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) affine: Affine,
    /// `second ≈ gain · first + bias`.
    pub(crate) gain: f32,
    pub(crate) bias: f32,
    /// Robust scale of what is left of the brightness.
    pub(crate) sigma: f32,
    /// Mean capped residual, and the part of the frame that overlaps.
    cost: f64,
    overlap: f64,
}

impl Found {
    /// Nothing moved.
    pub(crate) fn still() -> Self {
        Self { overlap: 1.0, cost: 0.0, ..Self::start(0.0) }
    }

    /// Before anything is known, with a scale to start from.
    fn start(scale: f64) -> Self {
        Self {
            affine: Affine([0.0, scale, 0.0, 0.0, 0.0, scale]),
            gain: 1.0,
            bias: 0.0,
            sigma: 20.0,
            cost: f64::INFINITY,
            overlap: 0.0,
        }
    }
}

/// Which parameters may move.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Free {
    Shift,
    Scale,
    All,
}

impl Free {
    fn parameters(self) -> &'static [usize] {
        match self {
            Self::Shift => &[0, 3],
            Self::Scale => &[0, 1, 3, 5],
            Self::All => &[0, 1, 2, 3, 4, 5],
        }
    }
}

/// Finds how the second frame lies on the first, from their pyramids (the finest level first).
///
/// On the way the finer levels of the first get the tone and the lighting of the second: a light
/// that varies over the picture would otherwise be mistaken for a move.
pub(crate) fn register(first: &mut [Level], second: &[Level]) -> Found {
    let count = first.len().min(second.len());
    let (coarsest, coarse) = (count - 1, count.saturating_sub(2));
    // A coarse search from a start …
    let from_start = |&scale: &f64| {
        let search = Search::new(&first[coarsest], &second[coarsest], SIGMA_FLOOR[0]);
        let mut found = search.settled(Found::start(scale));
        found = search.iterate(found, Free::Shift, ITERATIONS[0][0]);
        found = search.iterate(found, Free::Scale, ITERATIONS[0][1]);
        search.costed(found)
    };
    // … is finished on the next level; costs are compared under one light.
    let finished = |found: Found, iterations: usize| {
        let plain = Search::new(&first[coarse], &second[coarse], SIGMA_FLOOR[1]);
        let mut found = plain.settled(found);
        found = plain.iterate(found, Free::Scale, iterations);
        let mut level = [first[coarse].clone()];
        let light = relight(&mut level, &second[coarse..], 0, &mut found);
        let lit = Search::new(&level[0], &second[coarse], SIGMA_FLOOR[1]);
        found = lit.iterate(found, Free::Scale, ITERATIONS[1][1]);
        (lit.costed(found), light)
    };
    // Where nothing moved by much, a wide search could only go astray: try that first.
    let (mut best, mut light) = finished(Found::start(0.0), 0);
    if best.cost > GOOD_ENOUGH * mean_gradient(&first[coarse].plane) {
        let mut wide: Vec<Found> = STARTS.par_iter().map(from_start).collect();
        wide.retain(|found| found.overlap >= LEAST_OVERLAP);
        wide.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        wide.truncate(FINISHED);
        let wide: Vec<(Found, Light)> =
            wide.into_par_iter().map(|found| finished(found, ITERATIONS[1][0])).collect();
        for (other, its_light) in wide {
            if other.overlap >= LEAST_OVERLAP && other.cost < CLEARLY * best.cost - MARGIN {
                (best, light) = (other, its_light);
            }
        }
    }
    if best.overlap < LEAST_OVERLAP {
        best.affine = Affine::IDENTITY;
    }
    light.apply(first);
    if let Some(fine) = coarse.checked_sub(1) {
        let search = Search::new(&first[fine], &second[fine], SIGMA_FLOOR[2]);
        best = search.settled(best);
        best = search.iterate(best, Free::Scale, ITERATIONS[2][0]);
        best = search.iterate(best, Free::All, ITERATIONS[2][1]);
        relight(first, second, fine, &mut best);
    }
    let size = |side: f64| (side * first[0].scale as f64) as usize;
    if best.affine.reach(size(first[0].extent.0), size(first[0].extent.1)) < UNMOVED {
        best.affine = Affine::IDENTITY;
    }
    best
}

/// Tone and lighting of the second picture against the first.
struct Light {
    gain: f32,
    bias: f32,
    field: Relighting,
    /// Pixels of the frame per pixel of the level that it was seen on.
    scale: usize,
}

impl Light {
    /// Gives it to the levels of the first picture.
    fn apply(&self, levels: &mut [Level]) {
        for level in levels {
            let mut toned = std::mem::take(&mut level.plane);
            toned.data.iter_mut().for_each(|v| *v = *v * self.gain + self.bias);
            level.plane = self.field.apply(0, &toned, self.scale as f32 / level.scale as f32);
        }
    }
}

/// Gives the first picture the tone and the lighting of the second, as they are seen on `level`.
fn relight(first: &mut [Level], second: &[Level], level: usize, found: &mut Found) -> Light {
    let (own, their) = (&first[level], &second[level]);
    let search = Search::new(own, their, 1.0);
    let (width, height) = (own.plane.width, own.plane.height);
    let (mut warped, mut mask) = (Plane::new(width, height), Plane::new(width, height));
    let rows = warped.data.chunks_exact_mut(width).zip(mask.data.chunks_exact_mut(width));
    let mut row = RowLookup::new(width);
    for (y, (warped, mask)) in rows.enumerate() {
        search.warp_row(found, y, &mut row, warped, mask);
    }
    let mut toned = own.plane.clone();
    toned.data.iter_mut().for_each(|v| *v = *v * found.gain + found.bias);
    let long = own.extent.0.max(own.extent.1) as f32;
    let cell = (LIGHT_CELL / own.scale).max(1);
    let field = Relighting::estimate(&[toned], &[warped], &mask, cell, LIGHT_WINDOW * long);
    let light = Light { gain: found.gain, bias: found.bias, field, scale: own.scale };
    light.apply(first);
    found.gain = 1.0;
    found.bias = 0.0;
    light
}

/// Mean length of the gradient, in grey levels per pixel.
fn mean_gradient(plane: &Plane) -> f64 {
    let mut sum = 0.0;
    for y in 1..plane.height.saturating_sub(1) {
        let (above, row, below) = (plane.row(y - 1), plane.row(y), plane.row(y + 1));
        for x in 1..plane.width.saturating_sub(1) {
            let (gx, gy) = (row[x + 1] - row[x - 1], below[x] - above[x]);
            sum += f64::from(gx.abs().max(gy.abs())) * 0.5;
        }
    }
    sum / (plane.width * plane.height) as f64
}

/// The search on one level.
struct Search<'a> {
    first: &'a Level,
    second: &'a Level,
    sigma_floor: f32,
    /// Gradients below this are too weak to tell the scale of the residual from.
    textured: f32,
    /// X, and X², of each column.
    across: [Vec<f32>; 2],
}

impl<'a> Search<'a> {
    fn new(first: &'a Level, second: &'a Level, sigma_floor: f32) -> Self {
        let plane = &first.plane;
        let mut gradients = Histogram::new(1024, 8.0);
        // Every other row tells the median as well.
        for y in (1..plane.height.saturating_sub(1)).step_by(2) {
            let (above, row, below) = (plane.row(y - 1), plane.row(y), plane.row(y + 1));
            for x in 1..plane.width.saturating_sub(1) {
                let (gx, gy) = (row[x + 1] - row[x - 1], below[x] - above[x]);
                gradients.add((gx.abs() + gy.abs()) * 0.5);
            }
        }
        let xs: Vec<f32> =
            (0..plane.width).map(|x| ((x as f64 + 0.5) / first.extent.0 - 0.5) as f32).collect();
        let squares = xs.iter().map(|x| x * x).collect();
        Self {
            first,
            second,
            sigma_floor,
            textured: gradients.median().max(0.5),
            across: [xs, squares],
        }
    }

    fn iterate(&self, mut found: Found, free: Free, iterations: usize) -> Found {
        if iterations == 0 {
            return found;
        }
        for _ in 0..iterations {
            let sums = self.sums(&found);
            let step = sums.step(&found.affine, free, self.first.extent);
            sums.update_tone(&mut found, self.sigma_floor);
            let Some(step) = step else { break };
            for (p, s) in found.affine.0.iter_mut().zip(step) {
                *p += s;
            }
            let (w, h) = self.first.extent;
            if Affine(step).reach(w as usize, h as usize) < SHORTEST_STEP {
                break;
            }
        }
        found
    }

    /// With the cost of the place where the search ended.
    fn costed(&self, mut found: Found) -> Found {
        self.sums(&found).update_cost(&mut found);
        found
    }

    /// Tone and scale of the residual follow the position by one iteration: this starts them well.
    fn settled(&self, mut found: Found) -> Found {
        for _ in 0..2 {
            self.sums(&found).update_tone(&mut found, self.sigma_floor);
        }
        found
    }

    /// Everything that one iteration needs, summed over the level.
    fn sums(&self, found: &Found) -> Sums {
        const ROWS: usize = 24;
        let height = self.first.plane.height;
        let bands = height.div_ceil(ROWS);
        let band = |i: usize| self.band(found, i * ROWS..((i + 1) * ROWS).min(height));
        let parts: Vec<Sums> = if self.first.plane.width > 3 * COARSEST {
            (0..bands).into_par_iter().map(band).collect()
        } else {
            (0..bands).map(band).collect()
        };
        let mut total = Sums::new();
        parts.iter().for_each(|part| total.add(part));
        total
    }

    fn band(&self, found: &Found, rows: std::ops::Range<usize>) -> Sums {
        let first = &self.first.plane;
        let width = first.width;
        let mut sums = Sums::new();
        let mut warped: Vec<Vec<f32>> = vec![vec![0.0; width]; 3];
        let mut valid: Vec<Vec<f32>> = vec![vec![0.0; width]; 3];
        let mut work = Work::new(width);
        let mut row = RowLookup::new(width);
        let mut warp = |y: isize, warped: &mut [f32], valid: &mut [f32]| {
            let y = y.clamp(0, first.height as isize - 1) as usize;
            self.warp_row(found, y, &mut row, warped, valid);
        };
        let y0 = rows.start as isize;
        warp(y0 - 1, &mut warped[0], &mut valid[0]);
        warp(y0, &mut warped[1], &mut valid[1]);
        for y in rows {
            let next = y as isize + 1;
            warp(next, &mut warped[2], &mut valid[2]);
            let rows = Rows {
                above: first.row_clamped(y as isize - 1),
                here: first.row(y),
                below: first.row_clamped(next),
                warped_above: &warped[0],
                warped: &warped[1],
                warped_below: &warped[2],
                valid: &valid[1],
            };
            residuals(&rows, found, &mut work);
            let across = [&self.across[0][..], &self.across[1][..]];
            let part = accumulate(&rows, &work, across);
            let down = (y as f64 + 0.5) / self.first.extent.1 - 0.5;
            sums.add_row(&part, down, width);
            for x in 1..width.saturating_sub(1) {
                if work.texture[x] * valid[1][x] >= self.textured {
                    sums.residuals.add(work.r[x].abs());
                }
            }
            warped.rotate_left(1);
            valid.rotate_left(1);
        }
        sums
    }

    fn warp_row(
        &self,
        found: &Found,
        y: usize,
        row: &mut RowLookup,
        out: &mut [f32],
        valid: &mut [f32],
    ) {
        found.affine.row(self.first.extent, y, &mut row.xs, &mut row.ys);
        row.lookup.bilinear(&self.second.plane, (&row.xs, &row.ys), 1.0, out, valid);
    }
}

/// The points of a row and what looks them up.
struct RowLookup {
    xs: Vec<f32>,
    ys: Vec<f32>,
    lookup: Lookup,
}

impl RowLookup {
    fn new(width: usize) -> Self {
        Self { xs: vec![0.0; width], ys: vec![0.0; width], lookup: Lookup::new(width) }
    }
}

/// What one row of the search works on.
struct Rows<'a> {
    above: &'a [f32],
    here: &'a [f32],
    below: &'a [f32],
    warped_above: &'a [f32],
    warped: &'a [f32],
    warped_below: &'a [f32],
    valid: &'a [f32],
}

/// What one row of the search works out.
struct Work {
    gx: Vec<f32>,
    gy: Vec<f32>,
    r: Vec<f32>,
    weight: Vec<f32>,
    texture: Vec<f32>,
    products: [Vec<f32>; 5],
}

impl Work {
    fn new(width: usize) -> Self {
        let row = || vec![0.0; width];
        Self {
            gx: row(),
            gy: row(),
            r: row(),
            weight: row(),
            texture: row(),
            products: [(); 5].map(|()| row()),
        }
    }
}

/// Gradients (the mean of both pictures), residuals and robust weights of a row.
#[multiversion(targets("x86_64+avx2"))]
fn residuals(rows: &Rows<'_>, found: &Found, work: &mut Work) {
    let n = rows.here.len();
    let (gain, bias) = (found.gain, found.bias);
    let soft = 1.0 / (4.0 * found.sigma * found.sigma);
    for x in 1..n.saturating_sub(1) {
        let own = (rows.here[x + 1] - rows.here[x - 1]) * gain;
        let gx = (own + (rows.warped[x + 1] - rows.warped[x - 1])) * 0.25;
        let own = (rows.below[x] - rows.above[x]) * gain;
        let gy = (own + (rows.warped_below[x] - rows.warped_above[x])) * 0.25;
        let r = rows.warped[x] - (rows.here[x] * gain + bias);
        let weight = rows.valid[x] / (1.0 + r * r * soft);
        work.gx[x] = gx;
        work.gy[x] = gy;
        work.r[x] = r;
        work.weight[x] = weight;
        work.texture[x] = gx.abs() + gy.abs();
        work.products[0][x] = weight * gx * gx;
        work.products[1][x] = weight * gx * gy;
        work.products[2][x] = weight * gy * gy;
        work.products[3][x] = weight * gx * r;
        work.products[4][x] = weight * gy * r;
    }
}

/// Sums over one row: `products` × (1, X, X²) for the first three and × (1, X) for the last two,
/// then the moments of the tone, the capped residual and the overlap.
type RowSums = [f32; 20];

#[multiversion(targets("x86_64+avx2"))]
fn accumulate(rows: &Rows<'_>, work: &Work, [xs, squares]: [&[f32]; 2]) -> RowSums {
    let mut sums = [0.0; 20];
    for i in 0..5 {
        let product = &work.products[i];
        sums[3 * i] = total(product, |v, _| v, product);
        sums[3 * i + 1] = total(product, |v, x| v * x, xs);
        if i < 3 {
            sums[3 * i + 2] = total(product, |v, x| v * x, squares);
        }
    }
    // The two slots that the last products do not need carry the cost and the overlap.
    sums[11] = total(&work.r, |r, v| r.abs().min(COST_CAP) * v, rows.valid);
    sums[14] = total(rows.valid, |v, _| v, rows.valid);
    sums[15] = total(&work.weight, |w, _| w, &work.weight);
    sums[16] = total(&work.weight, |w, s| w * s, rows.here);
    sums[17] = total(&work.weight, |w, e| w * e, rows.warped);
    sums[18] = total_of_three(&work.weight, rows.here, rows.here);
    sums[19] = total_of_three(&work.weight, rows.here, rows.warped);
    sums
}

/// Lanes of a sum: fixed, so that the order of additions is.
const LANES: usize = 16;

#[inline(always)]
fn total(a: &[f32], f: impl Fn(f32, f32) -> f32, b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for i in 0..LANES {
            lanes[i] += f(a[i], b[i]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(rest) {
        *lane += f(*a, *b);
    }
    lanes.iter().sum()
}

#[inline(always)]
fn total_of_three(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let n = a.len().min(b.len()).min(c.len());
    let whole = n / LANES * LANES;
    for start in (0..whole).step_by(LANES) {
        let (a, b, c) =
            (&a[start..start + LANES], &b[start..start + LANES], &c[start..start + LANES]);
        for i in 0..LANES {
            lanes[i] += a[i] * b[i] * c[i];
        }
    }
    for (lane, x) in lanes.iter_mut().zip(whole..n) {
        *lane += a[x] * b[x] * c[x];
    }
    lanes.iter().sum()
}

/// The sums over a level: per product its moments in X and Y up to the second order.
struct Sums {
    /// `Σ p·{1, X, Y, X², XY, Y²}` for gx², gx·gy, gy².
    quadratic: [[f64; 6]; 3],
    /// `Σ p·{1, X, Y}` for gx·r, gy·r.
    linear: [[f64; 3]; 2],
    /// `Σ w·{1, s, e, s², s·e}`.
    tone: [f64; 5],
    cost: f64,
    overlap: f64,
    pixels: f64,
    residuals: Histogram,
}

impl Sums {
    fn new() -> Self {
        Self {
            quadratic: [[0.0; 6]; 3],
            linear: [[0.0; 3]; 2],
            tone: [0.0; 5],
            cost: 0.0,
            overlap: 0.0,
            pixels: 0.0,
            residuals: Histogram::new(512, 8.0),
        }
    }

    fn add_row(&mut self, row: &RowSums, y: f64, width: usize) {
        let at = |i: usize| f64::from(row[i]);
        for (i, q) in self.quadratic.iter_mut().enumerate() {
            let (one, x, xx) = (at(3 * i), at(3 * i + 1), at(3 * i + 2));
            for (sum, term) in q.iter_mut().zip([one, x, one * y, xx, x * y, one * y * y]) {
                *sum += term;
            }
        }
        for (i, l) in self.linear.iter_mut().enumerate() {
            let (one, x) = (at(9 + 3 * i), at(10 + 3 * i));
            for (sum, term) in l.iter_mut().zip([one, x, one * y]) {
                *sum += term;
            }
        }
        for (i, t) in self.tone.iter_mut().enumerate() {
            *t += at(15 + i);
        }
        self.cost += at(11);
        self.overlap += at(14);
        self.pixels += width as f64;
    }

    fn add(&mut self, other: &Self) {
        let own = self.quadratic.iter_mut().flatten().chain(self.linear.iter_mut().flatten());
        let theirs = other.quadratic.iter().flatten().chain(other.linear.iter().flatten());
        own.zip(theirs).for_each(|(a, b)| *a += b);
        self.tone.iter_mut().zip(other.tone).for_each(|(a, b)| *a += b);
        self.cost += other.cost;
        self.overlap += other.overlap;
        self.pixels += other.pixels;
        self.residuals.merge(&other.residuals);
    }

    fn update_tone(&self, found: &mut Found, sigma_floor: f32) {
        let [n, s, e, ss, se] = self.tone;
        if n > 1.0 {
            let spread = ss - s * s / n;
            let shared = se - s * e / n;
            // A little pull to gain 1: a flat picture says nothing about it.
            let ridge = n;
            let gain = ((shared + ridge) / (spread + ridge)).clamp(0.5, 2.0);
            found.gain = gain as f32;
            found.bias = ((e - gain * s) / n) as f32;
        }
        if self.residuals.total() > 0 {
            found.sigma = (1.4826 * self.residuals.median()).max(sigma_floor);
        }
        self.update_cost(found);
    }

    fn update_cost(&self, found: &mut Found) {
        found.cost = if self.overlap > 0.0 { self.cost / self.overlap } else { f64::INFINITY };
        found.overlap = self.overlap / self.pixels.max(1.0);
    }

    /// The next change of the parameters; none where the picture does not tell.
    fn step(&self, affine: &Affine, free: Free, (w, h): (f64, f64)) -> Option<[f64; 6]> {
        // Terms of u are W·(1, X, Y), of v are H·(1, X, Y).
        const SECOND: [[usize; 3]; 3] = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
        let mut matrix = [[0.0; 6]; 6];
        let mut right = [0.0; 6];
        for i in 0..3 {
            for j in 0..3 {
                let k = SECOND[i][j];
                matrix[i][j] = self.quadratic[0][k] * w * w;
                matrix[i][j + 3] = self.quadratic[1][k] * w * h;
                matrix[i + 3][j] = self.quadratic[1][k] * w * h;
                matrix[i + 3][j + 3] = self.quadratic[2][k] * h * h;
            }
            right[i] = -self.linear[0][i] * w;
            right[i + 3] = -self.linear[1][i] * h;
        }
        let free = free.parameters();
        let mean = free.iter().map(|&i| matrix[i][i]).sum::<f64>() / free.len() as f64;
        if !(mean > 1e-9) {
            return None;
        }
        for i in [1, 2, 4, 5] {
            matrix[i][i] += PULL * mean;
            right[i] -= PULL * mean * affine.0[i];
        }
        // The slopes across and down, in pixels per pixel: opposite for a turn, alike for a shear.
        let slopes = [(2, w / h), (4, h / w)];
        let shear: f64 = slopes.iter().map(|&(i, slope)| slope * affine.0[i]).sum();
        for (i, a) in slopes {
            for (j, b) in slopes {
                matrix[i][j] += SHEAR_PULL * mean * a * b;
            }
            right[i] -= SHEAR_PULL * mean * a * shear;
        }
        for (i, row) in matrix.iter_mut().enumerate() {
            row[i] += DAMPING * row[i] + 1e-9 * mean;
        }
        let solved = solve(&matrix, &right, free)?;
        let mut step = [0.0; 6];
        for (&i, s) in free.iter().zip(solved) {
            step[i] = s.clamp(-LONGEST_STEP, LONGEST_STEP);
        }
        Some(step)
    }
}

/// Solves for the parameters in `free` by Cholesky; none where the matrix is singular.
fn solve(matrix: &[[f64; 6]; 6], right: &[f64; 6], free: &[usize]) -> Option<Vec<f64>> {
    let n = free.len();
    let mut l = [[0.0; 6]; 6];
    for i in 0..n {
        for j in 0..=i {
            let inner: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            let value = matrix[free[i]][free[j]] - inner;
            if i == j {
                if !(value > 0.0) {
                    return None;
                }
                l[i][i] = value.sqrt();
            } else {
                l[i][j] = value / l[j][j];
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in 0..n {
        let inner: f64 = (0..i).map(|k| l[i][k] * x[k]).sum();
        x[i] = (right[free[i]] - inner) / l[i][i];
    }
    for i in (0..n).rev() {
        let inner: f64 = (i + 1..n).map(|k| l[k][i] * x[k]).sum();
        x[i] = (x[i] - inner) / l[i][i];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

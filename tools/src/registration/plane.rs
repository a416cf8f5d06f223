//! Planes of `f32` and what is done to them: smoothing, halving, sums.
//!
//! Every loop is element-wise or sums in fixed lanes and a fixed order, so that the bytes are the
//! same whatever the width of the vectors and the number of threads.

use std::sync::Mutex;

use multiversion::multiversion;
use rayon::prelude::*;

/// Rows that one task works on; fixed, so that sums never depend on the number of threads.
pub(crate) const BAND: usize = 16;
/// The widest half of a smoothing kernel.
const MAX_RADIUS: usize = 24;

/// Buffers of planes that are gone, for those to come: fresh memory costs a page fault every 4 KB,
/// which adds up to as much as the work itself.
static SPARE: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());
/// Smaller buffers are not worth keeping, …
const LEAST_SPARE: usize = 1 << 14;
/// … larger ones take too much memory, …
const MOST_SPARE: usize = 1 << 22;
/// … and so do more than this many.
const SPARES: usize = 32;

/// One channel of a picture, row by row.
#[derive(Debug, PartialEq, Default)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) data: Vec<f32>,
}

impl Drop for Plane {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.data));
    }
}

impl Clone for Plane {
    fn clone(&self) -> Self {
        let mut copy = Self::unset(self.width, self.height);
        copy.data.copy_from_slice(&self.data);
        copy
    }
}

fn give_back(data: Vec<f32>) {
    if (LEAST_SPARE..=MOST_SPARE).contains(&data.capacity())
        && let Ok(mut spare) = SPARE.lock()
        && spare.len() < SPARES
    {
        spare.push(data);
    }
}

/// A buffer of `len` values, whatever they are.
fn take(len: usize) -> Vec<f32> {
    if len >= LEAST_SPARE
        && let Ok(mut spare) = SPARE.lock()
        && let Some(at) = spare.iter().rposition(|b| (len..=2 * len).contains(&b.capacity()))
    {
        let mut data = spare.swap_remove(at);
        data.resize(len, 0.0);
        return data;
    }
    vec![0.0; len]
}

impl Plane {
    /// A plane of zeros.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let mut plane = Self::unset(width, height);
        plane.data.fill(0.0);
        plane
    }

    /// A plane of which every value is about to be set.
    pub(crate) fn unset(width: usize, height: usize) -> Self {
        Self { width, height, data: take(width * height) }
    }

    pub(crate) fn row(&self, y: usize) -> &[f32] {
        &self.data[y * self.width..(y + 1) * self.width]
    }

    /// The row `y`, or the nearest one there is.
    pub(crate) fn row_clamped(&self, y: isize) -> &[f32] {
        self.row(y.clamp(0, self.height as isize - 1) as usize)
    }

    /// Calls `fill(y, row)` for every row, many at a time.
    pub(crate) fn fill_rows(&mut self, fill: impl Fn(usize, &mut [f32]) + Sync) {
        let width = self.width;
        self.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, rows)| {
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                fill(band * BAND + i, row);
            }
        });
    }

    /// A plane of the same size; `make` must set every value of a row.
    pub(crate) fn map_rows(&self, make: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let mut out = Self::unset(self.width, self.height);
        out.fill_rows(make);
        out
    }

    /// Smoothed by a Gaussian of `sigma` pixels; the edges are continued.
    pub(crate) fn blurred(&self, sigma: f32) -> Self {
        let kernel = gaussian(sigma);
        if kernel.len() == 1 {
            return self.clone();
        }
        let width = self.width;
        let mut out = Self::unset(width, self.height);
        out.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, rows)| {
            let mut smoother = Smoother::new(&kernel, width);
            for (i, out) in rows.chunks_exact_mut(width).enumerate() {
                let y = (band * BAND + i) as isize;
                smoother.row(|k| self.row_clamped(y + k), out);
            }
        });
        out
    }

    /// Half the size, each pixel the mean of four; an odd last row or column counts twice.
    pub(crate) fn halved(&self) -> Self {
        let mut out = Self::unset(self.width.div_ceil(2), self.height.div_ceil(2));
        out.fill_rows(|y, row| {
            let (a, b) = (self.row(2 * y), self.row_clamped(2 * y as isize + 1));
            halve(a, b, row);
        });
        out
    }

    /// A quarter of the size: halved twice.
    pub(crate) fn quartered(&self) -> Self {
        let half = (self.width.div_ceil(2), self.height.div_ceil(2));
        let mut out = Self::unset(half.0.div_ceil(2), half.1.div_ceil(2));
        let width = out.width;
        out.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, rows)| {
            let mut halves = [vec![0.0; half.0], vec![0.0; half.0]];
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                for (k, out) in halves.iter_mut().enumerate() {
                    let y = (2 * (band * BAND + i) + k).min(half.1 - 1);
                    halve(self.row(2 * y), self.row_clamped(2 * y as isize + 1), out);
                }
                halve(&halves[0], &halves[1], row);
            }
        });
        out
    }

    /// The values of a coarse field, one per square cell, at the pixels of one row; `y` and the
    /// cell's side are in pixels, edges are continued.
    pub(crate) fn expand_row(&self, y: f32, cell: f32, blend: &mut Vec<f32>, out: &mut [f32]) {
        let y = (y / cell - 0.5).clamp(0.0, (self.height - 1) as f32);
        let (above, below) = (self.row(y as usize), self.row_clamped(y as isize + 1));
        let t = y - (y as usize) as f32;
        blend.clear();
        blend.extend(above.iter().zip(below).map(|(a, b)| a + (b - a) * t));
        expand(blend, cell, out);
    }

    /// The values of a coarse field at the pixels of a row from `x1` on; see [`Self::expand_row`].
    pub(crate) fn expand_part(&self, y: f32, cell: usize, x1: usize, out: &mut [f32]) {
        let side = cell as f32;
        let y = (y / side - 0.5).clamp(0.0, (self.height - 1) as f32);
        let (above, below) = (self.row(y as usize), self.row_clamped(y as isize + 1));
        let t = y - (y as usize) as f32;
        let last = self.width - 1;
        // Between the centres of two cells the value changes evenly.
        let mut x = x1;
        let end = x1 + out.len();
        let value = |k: usize| above[k] + (below[k] - above[k]) * t;
        while x < end {
            let at = (x as f32 + 0.5) / side - 0.5;
            let k = if at < 0.0 { 0 } else { (at as usize).min(last) };
            let next = (k * cell + cell / 2 + cell).min(end);
            let (next, slope) = if at < 0.0 {
                ((cell / 2).min(end), 0.0)
            } else if k == last {
                (end, 0.0)
            } else {
                (next, (value(k + 1) - value(k)) / side)
            };
            let next = next.max(x + 1);
            let start = value(k) + slope * ((x as f32 + 0.5) - (k as f32 + 0.5) * side);
            for (i, out) in out[x - x1..next - x1].iter_mut().enumerate() {
                *out = start + slope * i as f32;
            }
            x = next;
        }
    }

    /// Bilinear value at a point in pixels (0 is the centre of the first); edges are continued.
    pub(crate) fn sample(&self, x: f32, y: f32) -> f32 {
        let x = x.clamp(0.0, (self.width - 1) as f32);
        let y = y.clamp(0.0, (self.height - 1) as f32);
        let (x0, y0) = (x as usize, y as usize);
        let (x1, y1) = ((x0 + 1).min(self.width - 1), (y0 + 1).min(self.height - 1));
        let (tx, ty) = (x - x0 as f32, y - y0 as f32);
        let (a, b) = (self.row(y0), self.row(y1));
        let top = a[x0] + (a[x1] - a[x0]) * tx;
        let bottom = b[x0] + (b[x1] - b[x0]) * tx;
        top + (bottom - top) * ty
    }
}

/// Smooths one row at a time, first down, then across; keeps its buffers.
pub(crate) struct Smoother<'k> {
    kernel: &'k [f32],
    padded: Vec<f32>,
}

impl<'k> Smoother<'k> {
    /// With half a kernel from [`gaussian`], for rows of `width`.
    pub(crate) fn new(kernel: &'k [f32], width: usize) -> Self {
        Self { kernel, padded: vec![0.0; width + 2 * (kernel.len() - 1)] }
    }

    /// Rows above and below that are needed.
    pub(crate) fn radius(&self) -> usize {
        self.kernel.len() - 1
    }

    /// Smooths the row of which `row(k)` is the one `k` below.
    pub(crate) fn row<'r>(&mut self, row: impl Fn(isize) -> &'r [f32], out: &mut [f32]) {
        let (width, radius) = (out.len(), self.radius());
        if radius == 0 {
            out.copy_from_slice(row(0));
            return;
        }
        let mut rows: [&[f32]; 2 * MAX_RADIUS + 1] = [&[]; 2 * MAX_RADIUS + 1];
        let rows = &mut rows[..2 * radius + 1];
        for (k, slot) in rows.iter_mut().enumerate() {
            *slot = row(k as isize - radius as isize);
        }
        weigh(self.kernel, rows, &mut self.padded[radius..radius + width]);
        let (left, right) = (self.padded[radius], self.padded[radius + width - 1]);
        self.padded[..radius].fill(left);
        self.padded[radius + width..].fill(right);
        let mut shifted: [&[f32]; 2 * MAX_RADIUS + 1] = [&[]; 2 * MAX_RADIUS + 1];
        let shifted = &mut shifted[..2 * radius + 1];
        for (k, slot) in shifted.iter_mut().enumerate() {
            *slot = &self.padded[k..k + width];
        }
        weigh(self.kernel, shifted, out);
    }
}

/// Half of a Gaussian kernel: the centre, then one weight per distance. Sums to 1 as a whole.
pub(crate) fn gaussian(sigma: f32) -> Vec<f32> {
    if !(sigma > 0.05) {
        return vec![1.0];
    }
    let radius = ((f64::from(sigma) * 2.8).ceil() as usize).clamp(1, MAX_RADIUS);
    let spread = 2.0 * f64::from(sigma) * f64::from(sigma);
    let half: Vec<f64> = (0..=radius).map(|k| libm::exp(-((k * k) as f64) / spread)).collect();
    let sum = 2.0 * half.iter().sum::<f64>() - half[0];
    half.iter().map(|w| (w / sum) as f32).collect()
}

/// `out = kernel[0]·middle + Σ kernel[k]·(the row k before + the row k after)`.
#[multiversion(targets("x86_64+avx2"))]
fn weigh(kernel: &[f32], rows: &[&[f32]], out: &mut [f32]) {
    match kernel.len() - 1 {
        1 => weigh_fixed::<1>(kernel, rows, out),
        2 => weigh_fixed::<2>(kernel, rows, out),
        3 => weigh_fixed::<3>(kernel, rows, out),
        4 => weigh_fixed::<4>(kernel, rows, out),
        5 => weigh_fixed::<5>(kernel, rows, out),
        6 => weigh_fixed::<6>(kernel, rows, out),
        7 => weigh_fixed::<7>(kernel, rows, out),
        radius => {
            for (o, v) in out.iter_mut().zip(rows[radius]) {
                *o = v * kernel[0];
            }
            for (k, w) in kernel.iter().enumerate().skip(1) {
                let (before, after) = (rows[radius - k], rows[radius + k]);
                for ((o, a), b) in out.iter_mut().zip(before).zip(after) {
                    *o += (a + b) * w;
                }
            }
        }
    }
}

#[inline(always)]
fn weigh_fixed<const R: usize>(kernel: &[f32], rows: &[&[f32]], out: &mut [f32]) {
    let n = out.len();
    let middle = &rows[R][..n];
    let before: [&[f32]; R] = std::array::from_fn(|k| &rows[R - 1 - k][..n]);
    let after: [&[f32]; R] = std::array::from_fn(|k| &rows[R + 1 + k][..n]);
    let weights: [f32; R] = std::array::from_fn(|k| kernel[k + 1]);
    for x in 0..n {
        let mut sum = middle[x] * kernel[0];
        for k in 0..R {
            sum += (before[k][x] + after[k][x]) * weights[k];
        }
        out[x] = sum;
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn halve(a: &[f32], b: &[f32], out: &mut [f32]) {
    for ((o, a), b) in out.iter_mut().zip(a.chunks_exact(2)).zip(b.chunks_exact(2)) {
        *o = ((a[0] + a[1]) + (b[0] + b[1])) * 0.25;
    }
    if a.len() % 2 == 1
        && let (Some(o), Some(a), Some(b)) = (out.last_mut(), a.last(), b.last())
    {
        *o = (a + b) * 0.5;
    }
}

/// Linear interpolation between the centres of cells of `cell` pixels.
#[multiversion(targets("x86_64+avx2"))]
fn expand(cells: &[f32], cell: f32, out: &mut [f32]) {
    let (Some(&first), Some(&last)) = (cells.first(), cells.last()) else { return };
    let half = (cell * 0.5) as usize;
    if half as f32 * 2.0 != cell || half == 0 {
        for (x, out) in out.iter_mut().enumerate() {
            let at = ((x as f32 + 0.5) / cell - 0.5).clamp(0.0, (cells.len() - 1) as f32);
            let (i, t) = (at as usize, at - (at as usize) as f32);
            *out = cells[i] + (cells[(i + 1).min(cells.len() - 1)] - cells[i]) * t;
        }
        return;
    }
    // Whole pixels lie between the centres: cell by cell, without lookups.
    let (start, rest) = out.split_at_mut(half.min(out.len()));
    start.fill(first);
    match half {
        1 => expand_fixed::<2>(cells, rest),
        2 => expand_fixed::<4>(cells, rest),
        4 => expand_fixed::<8>(cells, rest),
        8 => expand_fixed::<16>(cells, rest),
        _ => {
            for (k, span) in rest.chunks_mut(2 * half).enumerate() {
                let a = cells.get(k).copied().unwrap_or(last);
                let slope = (cells.get(k + 1).copied().unwrap_or(last) - a) / cell;
                for (k, out) in span.iter_mut().enumerate() {
                    *out = a + slope * (k as f32 + 0.5);
                }
            }
        }
    }
}

#[inline(always)]
fn expand_fixed<const N: usize>(cells: &[f32], out: &mut [f32]) {
    let ramp: [f32; N] = std::array::from_fn(|k| k as f32 + 0.5);
    let step = 1.0 / N as f32;
    let last = cells.last().copied().unwrap_or(0.0);
    let mut spans = out.chunks_exact_mut(N);
    let mut pairs = cells.windows(2);
    for (span, pair) in spans.by_ref().zip(pairs.by_ref()) {
        let (a, slope) = (pair[0], (pair[1] - pair[0]) * step);
        for k in 0..N {
            span[k] = a + slope * ramp[k];
        }
    }
    // The picture may end within a cell, or the cells before the picture.
    let (a, slope) = pairs.next().map_or((last, 0.0), |pair| (pair[0], (pair[1] - pair[0]) * step));
    let whole = (cells.len() - 1) * N;
    let rest = out.len() - out.len() % N;
    for (k, out) in out.iter_mut().enumerate().skip(whole.min(rest)) {
        *out = if k < whole { a + slope * ((k % N) as f32 + 0.5) } else { last };
    }
}

/// Looks up points of a plane, a row of them at a time; keeps its buffers.
#[derive(Default)]
pub(crate) struct Lookup {
    index: Vec<u32>,
    tx: Vec<f32>,
    ty: Vec<f32>,
}

impl Lookup {
    /// For rows of `width` points.
    pub(crate) fn new(width: usize) -> Self {
        Self { index: vec![0; width], tx: vec![0.0; width], ty: vec![0.0; width] }
    }

    /// Bilinear values at the points `(xs, ys)`, and 1 where they are `margin` inside, else 0.
    pub(crate) fn bilinear(
        &mut self,
        plane: &Plane,
        (xs, ys): (&[f32], &[f32]),
        margin: f32,
        out: &mut [f32],
        valid: &mut [f32],
    ) {
        if plane.width < 2 || plane.height < 2 {
            for (x, (out, valid)) in out.iter_mut().zip(valid).enumerate() {
                *out = plane.sample(xs[x], ys[x]);
                *valid = 1.0;
            }
            return;
        }
        locate(plane.width, plane.height, xs, ys, margin, self, valid);
        let width = plane.width;
        let places = self.index.iter().zip(&self.tx).zip(&self.ty);
        for (out, ((&index, &tx), &ty)) in out.iter_mut().zip(places) {
            let (top, bottom) = (index as usize, index as usize + width);
            let (Some(&[a, b]), Some(&[c, d])) =
                (plane.data[top..].first_chunk(), plane.data[bottom..].first_chunk())
            else {
                continue;
            };
            let (upper, lower) = (a + (b - a) * tx, c + (d - c) * tx);
            *out = upper + (lower - upper) * ty;
        }
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn locate(
    width: usize,
    height: usize,
    xs: &[f32],
    ys: &[f32],
    margin: f32,
    lookup: &mut Lookup,
    valid: &mut [f32],
) {
    let n = valid.len();
    let (xs, ys) = (&xs[..n], &ys[..n]);
    let (index, tx, ty) = (&mut lookup.index[..n], &mut lookup.tx[..n], &mut lookup.ty[..n]);
    let (right, bottom) = ((width - 1) as f32, (height - 1) as f32);
    let (last_x, last_y) = (width as i32 - 2, height as i32 - 2);
    let inside = |v: f32, end: f32| (v >= margin) & (v <= end - margin);
    for i in 0..n {
        let (x, y) = (xs[i], ys[i]);
        valid[i] = if inside(x, right) & inside(y, bottom) { 1.0 } else { 0.0 };
        // Not a number goes to 0 here, so that the index is always inside.
        let x = if x > 0.0 { if x < right { x } else { right } } else { 0.0 };
        let y = if y > 0.0 { if y < bottom { y } else { bottom } } else { 0.0 };
        let (x0, y0) = ((x as i32).min(last_x), (y as i32).min(last_y));
        index[i] = (y0 * width as i32 + x0) as u32;
        tx[i] = x - x0 as f32;
        ty[i] = y - y0 as f32;
    }
}

/// A histogram of values from 0 up, for medians without sorting.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u32>,
    per_unit: f32,
}

impl Histogram {
    /// `bins` bins of which `per_unit` cover one unit; larger values count in the last bin.
    pub(crate) fn new(bins: usize, per_unit: f32) -> Self {
        Self { counts: vec![0; bins.max(1)], per_unit }
    }

    pub(crate) fn add(&mut self, value: f32) {
        let last = self.counts.len() - 1;
        let bin = ((value * self.per_unit) as usize).min(last);
        self.counts[bin] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.iter().map(|&c| u64::from(c)).sum()
    }

    /// The value below which the fraction `q` lies, interpolated in its bin; 0 if empty.
    pub(crate) fn quantile(&self, q: f64) -> f32 {
        let total = self.total();
        let wanted = q * total as f64;
        let mut below = 0.0;
        for (bin, &count) in self.counts.iter().enumerate() {
            let count = f64::from(count);
            if count > 0.0 && below + count >= wanted {
                let inside = (wanted - below) / count;
                return ((bin as f64 + inside) as f32) / self.per_unit;
            }
            below += count;
        }
        0.0
    }

    pub(crate) fn median(&self) -> f32 {
        self.quantile(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_plane_stays_flat() {
        let mut plane = Plane::new(33, 17);
        plane.data.fill(77.0);
        for sigma in [0.0, 0.4, 1.0, 2.5, 6.0] {
            assert!(plane.blurred(sigma).data.iter().all(|v| (v - 77.0).abs() < 1e-3));
        }
        assert!(plane.halved().data.iter().all(|v| *v == 77.0));
    }

    #[test]
    fn a_part_of_an_expanded_row_is_that_of_the_whole() {
        let mut field = Plane::new(7, 5);
        field.data.iter_mut().enumerate().for_each(|(i, v)| *v = (i * i % 17) as f32);
        for cell in [8usize, 16] {
            let (mut whole, mut blend) = (vec![0.0; 7 * cell + 5], Vec::new());
            for y in [0.5, 9.5, 33.5, 70.5] {
                field.expand_row(y, cell as f32, &mut blend, &mut whole);
                for (x1, x2) in
                    [(0, 7 * cell + 5), (3, 50), (cell, 3 * cell), (7 * cell, 7 * cell + 2)]
                {
                    let mut part = vec![0.0; x2 - x1];
                    field.expand_part(y, cell, x1, &mut part);
                    for (a, b) in part.iter().zip(&whole[x1..x2]) {
                        assert!((a - b).abs() < 1e-4, "{a} {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_median_of_a_histogram_is_the_median() {
        let mut histogram = Histogram::new(1000, 10.0);
        (0..=1000).for_each(|v| histogram.add(v as f32 / 20.0));
        assert!((histogram.median() - 25.0).abs() < 0.11);
    }
}

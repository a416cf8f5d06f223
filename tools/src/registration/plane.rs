//! Planes of `f32` and what is done to them: smoothing, halving, sums.
//!
//! Every loop is element-wise or sums in fixed lanes and a fixed order, so that the bytes are the
//! same whatever the width of the vectors and the number of threads.

use multiversion::multiversion;
use rayon::prelude::*;

/// Rows that one task works on; fixed, so that sums never depend on the number of threads.
pub(crate) const BAND: usize = 16;
/// The widest half of a smoothing kernel.
const MAX_RADIUS: usize = 24;

/// One channel of a picture, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Plane {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) data: Vec<f32>,
}

impl Plane {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        Self { width, height, data: vec![0.0; width * height] }
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

    /// A plane of the same size, each row made from this one.
    pub(crate) fn map_rows(&self, make: impl Fn(usize, &mut [f32]) + Sync) -> Self {
        let mut out = Self::new(self.width, self.height);
        out.fill_rows(make);
        out
    }

    /// Smoothed by a Gaussian of `sigma` pixels; the edges are continued.
    pub(crate) fn blurred(&self, sigma: f32) -> Self {
        let kernel = gaussian(sigma);
        if kernel.len() == 1 {
            return self.clone();
        }
        let (width, radius) = (self.width, kernel.len() - 1);
        let mut out = Self::new(width, self.height);
        out.data.par_chunks_mut(width * BAND).enumerate().for_each(|(band, rows)| {
            let mut padded = vec![0.0; width + 2 * radius];
            let mut sources: Vec<&[f32]> = Vec::with_capacity(2 * radius + 1);
            for (i, out) in rows.chunks_exact_mut(width).enumerate() {
                let y = (band * BAND + i) as isize;
                let reach = radius as isize;
                sources.clear();
                sources.extend((y - reach..=y + reach).map(|y| self.row_clamped(y)));
                weigh(&kernel, &sources, &mut padded[radius..radius + width]);
                let (left, right) = (padded[radius], padded[radius + width - 1]);
                padded[..radius].fill(left);
                padded[radius + width..].fill(right);
                let shifted: Vec<&[f32]> =
                    (0..=2 * radius).map(|k| &padded[k..k + width]).collect();
                weigh(&kernel, &shifted, out);
            }
        });
        out
    }

    /// Half the size, each pixel the mean of four; an odd last row or column counts twice.
    pub(crate) fn halved(&self) -> Self {
        let mut out = Self::new(self.width.div_ceil(2), self.height.div_ceil(2));
        out.fill_rows(|y, row| {
            let (a, b) = (self.row(2 * y), self.row_clamped(2 * y as isize + 1));
            halve(a, b, row);
        });
        out
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
    fn the_median_of_a_histogram_is_the_median() {
        let mut histogram = Histogram::new(1000, 10.0);
        (0..=1000).for_each(|v| histogram.add(v as f32 / 20.0));
        assert!((histogram.median() - 25.0).abs() < 0.11);
    }
}

//! The common frame: both pictures at one size, as planes.

use multiversion::multiversion;
use rayon::prelude::*;

use super::plane::Plane;
use crate::coords::Size;
use crate::picture::Picture;

/// Rows of the frame that one task makes.
const ROWS: usize = 8;
/// Weights of the rows or columns that make one pixel sum to this: then sums of bytes fit 16 bits.
const FULL: u32 = 256;

/// A picture at the size of the frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// Red, green, blue, 0 to 255.
    pub(crate) rgb: [Plane; 3],
    /// Brightness.
    pub(crate) luma: Plane,
}

/// The size of the frame in which two pictures are compared: the first one's shape, with a long
/// side of at most `long` and no more than either picture has.
pub(crate) fn frame_size(first: Size, second: Size, long: u32) -> Size {
    first.with_long_side(long.min(first.long_side()).min(second.long_side()).max(1))
}

impl Frame {
    /// Brings a picture to `size`, whatever its shape: averaged where it is larger, interpolated
    /// where it is smaller.
    pub(crate) fn of(picture: &Picture, size: Size) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let source = picture.rgb();
        let stride = source.width() as usize * 3;
        let bytes = source.as_raw();
        let across = Taps::new(source.width() as usize, width);
        let down = Taps::new(source.height() as usize, height);
        let [mut r, mut g, mut b, mut luma] = [(); 4].map(|()| Plane::unset(width, height));
        let bands = (
            r.data.par_chunks_mut(width * ROWS),
            g.data.par_chunks_mut(width * ROWS),
            b.data.par_chunks_mut(width * ROWS),
            luma.data.par_chunks_mut(width * ROWS),
        );
        let whole = (across.whole, down.whole);
        bands.into_par_iter().enumerate().for_each(|(band, (r, g, b, luma))| {
            let mut sums = vec![0u16; stride];
            let mut windows = vec![0u16; stride];
            for (i, r) in r.chunks_exact_mut(width).enumerate() {
                let y = band * ROWS + i;
                let row = i * width..(i + 1) * width;
                let start = down.starts[y] * stride;
                match whole {
                    (Some(kx), Some(ky)) if kx * ky <= MOST_WHOLE => {
                        add_rows(&bytes[start..start + ky * stride], stride, &mut sums);
                    }
                    _ => sum_rows(&bytes[start..], stride, down.weights(y), &mut sums),
                }
                let out = (r, &mut g[row.clone()], &mut b[row.clone()], &mut luma[row]);
                match whole {
                    (Some(kx), Some(ky)) if kx * ky <= MOST_WHOLE => {
                        sum_windows(&sums, kx, &mut windows);
                        pick_windows(&windows, kx, 1.0 / (kx * ky) as f32, out);
                    }
                    _ => sum_columns(&sums, &across, out),
                }
            }
        });
        Self { rgb: [r, g, b], luma }
    }
}

/// Which source pixels make a pixel, and with what weight.
struct Taps {
    starts: Vec<usize>,
    weights: Vec<u16>,
    count: usize,
    /// How many, where it is a whole number, so that all weigh the same.
    whole: Option<usize>,
}

impl Taps {
    /// From `from` pixels to `to`.
    fn new(from: usize, to: usize) -> Self {
        let ratio = from as f64 / to as f64;
        let whole = from.is_multiple_of(to).then_some(from / to);
        let most = if to >= from { 2 } else { ratio.ceil() as usize + 1 };
        let count = whole.unwrap_or(most.min(from));
        let mut taps = Self { starts: Vec::new(), weights: Vec::new(), count, whole };
        for i in 0..to {
            let (low, high) = if to >= from {
                let centre = (i as f64 + 0.5) * ratio;
                (centre - 0.5, centre + 0.5)
            } else {
                (i as f64 * ratio, (i + 1) as f64 * ratio)
            };
            let start = (low.floor().max(0.0) as usize).min(from - count);
            // The part of the pixel's extent that lies before each tap's end, rounded: the
            // differences then sum to the whole exactly.
            let until = |end: usize| {
                let part = ((end as f64 - low) / (high - low)).clamp(0.0, 1.0);
                (part * f64::from(FULL)).round() as u16
            };
            let mut before = 0;
            for k in 0..count {
                let now = if k + 1 == count { FULL as u16 } else { until(start + k + 1) };
                taps.weights.push(now - before);
                before = now;
            }
            taps.starts.push(start);
        }
        taps
    }

    fn weights(&self, i: usize) -> &[u16] {
        &self.weights[i * self.count..(i + 1) * self.count]
    }
}

/// Sums of this many bytes fit 16 bits.
const MOST_WHOLE: usize = 257;

/// `sums[x] = Σ row[x]` over rows that lie `stride` apart.
#[multiversion(targets("x86_64+avx2"))]
fn add_rows(bytes: &[u8], stride: usize, sums: &mut [u16]) {
    let n = sums.len();
    let row = |k: usize| &bytes[k * stride..k * stride + n];
    match bytes.len() / stride {
        1 => add_fixed([row(0)], sums),
        2 => add_fixed([row(0), row(1)], sums),
        3 => add_fixed([row(0), row(1), row(2)], sums),
        4 => add_fixed([row(0), row(1), row(2), row(3)], sums),
        5 => add_fixed([row(0), row(1), row(2), row(3), row(4)], sums),
        6 => add_fixed([row(0), row(1), row(2), row(3), row(4), row(5)], sums),
        _ => {
            sums.fill(0);
            for row in bytes.chunks_exact(stride) {
                for (sum, byte) in sums.iter_mut().zip(row) {
                    *sum += u16::from(*byte);
                }
            }
        }
    }
}

#[inline(always)]
fn add_fixed<const N: usize>(rows: [&[u8]; N], sums: &mut [u16]) {
    let n = sums.len();
    let rows = rows.map(|row| &row[..n]);
    for x in 0..n {
        let mut sum = 0u16;
        for row in rows {
            sum += u16::from(row[x]);
        }
        sums[x] = sum;
    }
}

/// `windows[x]` is the sum of `k` pixels from there on, for every channel and place at once: more
/// sums than needed, but without a single lookup.
#[multiversion(targets("x86_64+avx2"))]
fn sum_windows(sums: &[u16], k: usize, windows: &mut [u16]) {
    let n = sums.len() - 3 * (k - 1);
    let shifted = |j: usize| &sums[3 * j..3 * j + n];
    let windows = &mut windows[..n];
    match k {
        2 => add_shifted([shifted(0), shifted(1)], windows),
        3 => add_shifted([shifted(0), shifted(1), shifted(2)], windows),
        4 => add_shifted([shifted(0), shifted(1), shifted(2), shifted(3)], windows),
        5 => add_shifted([shifted(0), shifted(1), shifted(2), shifted(3), shifted(4)], windows),
        _ => {
            windows.copy_from_slice(shifted(0));
            for j in 1..k {
                for (window, sum) in windows.iter_mut().zip(shifted(j)) {
                    *window += sum;
                }
            }
        }
    }
}

#[inline(always)]
fn add_shifted<const N: usize>(rows: [&[u16]; N], windows: &mut [u16]) {
    let n = windows.len();
    let rows = rows.map(|row| &row[..n]);
    for x in 0..n {
        let mut sum = 0u16;
        for row in rows {
            sum += row[x];
        }
        windows[x] = sum;
    }
}

fn pick_windows(windows: &[u16], k: usize, scale: f32, (r, g, b, luma): Out<'_>) {
    let outs = r.iter_mut().zip(g).zip(b).zip(luma);
    for ((((r, g), b), luma), window) in outs.zip(windows.chunks(3 * k)) {
        let Some(&[red, green, blue]) = window.first_chunk() else { return };
        let [red, green, blue] = [red, green, blue].map(|sum| f32::from(sum) * scale);
        *r = red;
        *g = green;
        *b = blue;
        *luma = red * 0.299 + green * 0.587 + blue * 0.114;
    }
}

/// Rows of red, green, blue and brightness.
type Out<'a> = (&'a mut [f32], &'a mut [f32], &'a mut [f32], &'a mut [f32]);

/// `sums[x] = Σ weight · row[x]` over rows that lie `stride` apart.
#[multiversion(targets("x86_64+avx2"))]
fn sum_rows(bytes: &[u8], stride: usize, weights: &[u16], sums: &mut [u16]) {
    let mut rows = bytes.chunks(stride).zip(weights).filter(|(_, w)| **w > 0);
    sums.fill(0);
    // Four rows at a time: the sums then stay in registers.
    loop {
        let Some((a, wa)) = rows.next() else { return };
        let (b, wb) = rows.next().unwrap_or((a, &0));
        let (c, wc) = rows.next().unwrap_or((a, &0));
        let (d, wd) = rows.next().unwrap_or((a, &0));
        let n = sums.len().min(a.len()).min(b.len()).min(c.len()).min(d.len());
        let (sums, a, b, c, d) = (&mut sums[..n], &a[..n], &b[..n], &c[..n], &d[..n]);
        for x in 0..n {
            sums[x] += u16::from(a[x]) * wa
                + u16::from(b[x]) * wb
                + u16::from(c[x]) * wc
                + u16::from(d[x]) * wd;
        }
    }
}

fn sum_columns(sums: &[u16], taps: &Taps, out: Out<'_>) {
    match taps.count {
        2 => sum_fixed::<2>(sums, taps, out),
        3 => sum_fixed::<3>(sums, taps, out),
        4 => sum_fixed::<4>(sums, taps, out),
        5 => sum_fixed::<5>(sums, taps, out),
        _ => sum_any(sums, taps, out),
    }
}

const SCALE: f32 = 1.0 / (FULL * FULL) as f32;

/// [`sum_any`] for a number of weights that is known.
#[inline(always)]
fn sum_fixed<const N: usize>(sums: &[u16], taps: &Taps, (r, g, b, luma): Out<'_>) {
    let outs = r.iter_mut().zip(g).zip(b).zip(luma);
    let places = taps.starts.iter().zip(taps.weights.chunks_exact(N));
    for ((((r, g), b), luma), (&start, weights)) in outs.zip(places) {
        let pixels = &sums[start * 3..][..N * 3];
        let mut total = [0u32; 3];
        for k in 0..N {
            for c in 0..3 {
                total[c] += u32::from(pixels[3 * k + c]) * u32::from(weights[k]);
            }
        }
        let [red, green, blue] = total.map(|t| t as f32 * SCALE);
        *r = red;
        *g = green;
        *b = blue;
        *luma = red * 0.299 + green * 0.587 + blue * 0.114;
    }
}

fn sum_any(sums: &[u16], taps: &Taps, (r, g, b, luma): Out<'_>) {
    for (x, (start, weights)) in
        taps.starts.iter().zip(taps.weights.chunks_exact(taps.count)).enumerate()
    {
        let pixels = &sums[start * 3..(start + taps.count) * 3];
        let mut total = [0u32; 3];
        for (pixel, &weight) in pixels.chunks_exact(3).zip(weights) {
            for c in 0..3 {
                total[c] += u32::from(pixel[c]) * u32::from(weight);
            }
        }
        let [red, green, blue] = total.map(|t| t as f32 * SCALE);
        r[x] = red;
        g[x] = green;
        b[x] = blue;
        luma[x] = red * 0.299 + green * 0.587 + blue * 0.114;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_the_whole() {
        for (from, to) in
            [(1, 1), (1, 7), (7, 1), (5, 5), (100, 33), (33, 100), (5000, 3), (3840, 768)]
        {
            let taps = Taps::new(from, to);
            for i in 0..to {
                assert_eq!(taps.weights(i).iter().map(|&w| u32::from(w)).sum::<u32>(), FULL);
                assert!(taps.starts[i] + taps.count <= from);
            }
        }
    }

    #[test]
    fn whole_ratios_and_others_average_alike() {
        let pixel =
            |x: u32, y: u32| image::Rgb([(x * 7 + y * 13) as u8, (x * y) as u8, (x ^ y) as u8]);
        let picture = Picture::from_rgb(image::RgbImage::from_fn(60, 45, pixel)).unwrap();
        for (width, height) in [(12, 9), (60, 45), (20, 15), (30, 5), (1, 1), (10, 45)] {
            let frame = Frame::of(&picture, Size::new(width, height));
            let (kx, ky) = (60 / width, 45 / height);
            for (c, plane) in frame.rgb.iter().enumerate() {
                for (x, y) in [(0, 0), (width - 1, height - 1), (width / 2, height / 3)] {
                    let block = (0..kx * ky).map(|i| pixel(x * kx + i % kx, y * ky + i / kx));
                    let mean = block.map(|p| f32::from(p.0[c])).sum::<f32>() / (kx * ky) as f32;
                    let got = plane.row(y as usize)[x as usize];
                    assert!(
                        (got - mean).abs()
                            < 0.01 + 255.0 / 256.0 * f32::from(u8::from(kx * ky > 257)),
                        "{got} {mean}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_flat_picture_makes_a_flat_frame() {
        let pixels = image::RgbImage::from_pixel(117, 61, image::Rgb([200, 10, 255]));
        let frame = Frame::of(&Picture::from_rgb(pixels).unwrap(), Size::new(40, 90));
        assert!(frame.rgb[0].data.iter().all(|v| *v == 200.0));
        assert!(frame.rgb[2].data.iter().all(|v| *v == 255.0));
    }
}

//! What happens to a whole picture: lossy compression, and being made anew.

use deeplook_tools::{Picture, Size};
use image::RgbImage;

use super::random::{Random, hash};

/// A picture after blocks of eight by eight were quantised, as JPEG does it.
pub(super) fn recompressed(picture: &Picture, random: &mut Random) -> Option<Picture> {
    let coarse = random.range(0.6, 1.1);
    let (width, height) = picture.rgb().dimensions();
    let waves = waves();
    let mut out = picture.rgb().clone();
    for top in (0..height).step_by(8) {
        for left in (0..width).step_by(8) {
            let mut planes = [[[0.0f32; 8]; 8]; 3];
            for (y, x) in (0..64u32).map(|i| (i / 8, i % 8)) {
                let (px, py) = ((left + x).min(width - 1), (top + y).min(height - 1));
                let [r, g, b] = picture.rgb().get_pixel(px, py).0.map(f32::from);
                let luma = 0.299 * r + 0.587 * g + 0.114 * b;
                let values = [luma, (b - luma) * 0.564, (r - luma) * 0.713];
                for (plane, value) in planes.iter_mut().zip(values) {
                    plane[y as usize][x as usize] = value;
                }
            }
            for (plane, chroma) in planes.iter_mut().zip([1.0, 1.6, 1.6]) {
                let mut freq = transformed(plane, &waves);
                for (v, row) in freq.iter_mut().enumerate() {
                    for (u, value) in row.iter_mut().enumerate() {
                        let step = (2.0 + 1.7 * (u + v) as f32) * coarse * chroma;
                        *value = (*value / step).round() * step;
                    }
                }
                *plane = transformed(&freq, &transposed(&waves));
            }
            for (y, x) in (0..64u32).map(|i| (i / 8, i % 8)) {
                if left + x < width && top + y < height {
                    let [luma, blue, red] =
                        [0, 1, 2].map(|plane: usize| planes[plane][y as usize][x as usize]);
                    let (r, b) = (luma + red / 0.713, luma + blue / 0.564);
                    let g = (luma - 0.299 * r - 0.114 * b) / 0.587;
                    out.get_pixel_mut(left + x, top + y).0 = [r, g, b].map(byte);
                }
            }
        }
    }
    Picture::from_rgb(out)
}

type Block = [[f32; 8]; 8];

/// The cosine transform's orthonormal waves, one a row.
fn waves() -> Block {
    let mut waves = [[0.0; 8]; 8];
    for (k, row) in waves.iter_mut().enumerate() {
        for (n, value) in row.iter_mut().enumerate() {
            let norm = if k == 0 { 0.125f32.sqrt() } else { 0.5 };
            let angle = (2 * n + 1) as f32 * k as f32 * std::f32::consts::PI / 16.0;
            *value = norm * libm::cosf(angle);
        }
    }
    waves
}

fn transposed(block: &Block) -> Block {
    let mut out = [[0.0; 8]; 8];
    for (y, row) in block.iter().enumerate() {
        for (x, value) in row.iter().enumerate() {
            out[x][y] = *value;
        }
    }
    out
}

/// `waves` × `block` × `waves`ᵀ.
fn transformed(block: &Block, waves: &Block) -> Block {
    let once = |block: &Block| {
        let mut out = [[0.0; 8]; 8];
        for (to, from) in out.iter_mut().zip(block) {
            for (value, wave) in to.iter_mut().zip(waves) {
                *value = from.iter().zip(wave).map(|(a, b)| a * b).sum();
            }
        }
        transposed(&out)
    };
    once(&once(block))
}

/// A picture made anew: resampled, a little softer, shifted by up to two pixels, tinted and
/// noisy; at times of another size.
pub(super) fn regenerated(picture: &Picture, random: &mut Random) -> Option<Picture> {
    let size = picture.size();
    let resampled = picture.resized(size.scaled(f64::from(random.range(0.86, 0.96)))).resized(size);
    let (dx, dy) = (random.range(-1.4, 1.4), random.range(-1.4, 1.4));
    let tint = [0, 1, 2].map(|_| random.range(0.965, 1.035));
    let seed = random.seed();
    let from = resampled.rgb();
    let (width, height) = from.dimensions();
    let pixel = |x: i32, y: i32| {
        let (x, y) = (x.clamp(0, width as i32 - 1), y.clamp(0, height as i32 - 1));
        from.get_pixel(x as u32, y as u32).0.map(f32::from)
    };
    let (left, top) = (dx.floor(), dy.floor());
    let (u, v) = (dx - left, dy - top);
    let new = RgbImage::from_fn(width, height, |x, y| {
        let (px, py) = (x as i32 + left as i32, y as i32 + top as i32);
        let corners = [pixel(px, py), pixel(px + 1, py), pixel(px, py + 1), pixel(px + 1, py + 1)];
        let noise = hash(seed, x as i32, y as i32);
        let mut channel = 0usize;
        image::Rgb(tint.map(|gain| {
            let [a, b, c, d] = corners.map(|corner| corner[channel]);
            let value = (a * (1.0 - u) + b * u) * (1.0 - v) + (c * (1.0 - u) + d * u) * v;
            // Triangular noise of variance nine.
            let bits = noise >> (channel * 10);
            let grain = ((bits & 31) as f32 + (bits >> 5 & 31) as f32 - 31.0) * 0.235;
            channel += 1;
            byte(value * gain + grain)
        }))
    });
    let new = Picture::from_rgb(new)?;
    Some(if random.chance(0.35) { new.resized(other_size(size, random)) } else { new })
}

/// A size that models like to return.
fn other_size(size: Size, random: &mut Random) -> Size {
    let scaled = size.scaled(f64::from(random.range(0.75, 1.2)));
    let whole = |side: u32| (side + 8) / 16 * 16;
    Size::new(whole(scaled.width), whole(scaled.height))
}

fn byte(value: f32) -> u8 {
    (value + 0.5) as u8
}

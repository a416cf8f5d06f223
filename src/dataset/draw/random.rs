//! Noise that is the same everywhere, on integers and plain arithmetic only.

pub(super) use crate::random::Random;

/// 32 bits that depend on a place.
pub(super) fn hash(seed: u32, x: i32, y: i32) -> u32 {
    let h = (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77);
    let h = (h ^ seed).wrapping_add(seed.rotate_left(13));
    let h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    let h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    h ^ (h >> 15)
}

/// A number in `0..1` that depends on a place.
pub(super) fn speck(seed: u32, x: i32, y: i32) -> f32 {
    (hash(seed, x, y) >> 8) as f32 / (1 << 24) as f32
}

/// The largest whole number that is not above `x`.
pub(super) fn floor(x: f32) -> i32 {
    let cut = x as i32;
    cut - i32::from((cut as f32) > x)
}

/// Smooth noise in `0..1` with features one unit large.
pub(super) fn noise(seed: u32, x: f32, y: f32) -> f32 {
    let (ix, iy) = (floor(x), floor(y));
    let ease = |t: f32| t * t * (3.0 - 2.0 * t);
    let (u, v) = (ease(x - ix as f32), ease(y - iy as f32));
    let at = |dx: i32, dy: i32| speck(seed, ix.wrapping_add(dx), iy.wrapping_add(dy));
    let top = at(0, 0) + (at(1, 0) - at(0, 0)) * u;
    let bottom = at(0, 1) + (at(1, 1) - at(0, 1)) * u;
    top + (bottom - top) * v
}

/// Fractal noise in `0..1`: each octave twice as fine and half as strong.
pub(super) fn fractal(seed: u32, x: f32, y: f32, octaves: u32) -> f32 {
    let (mut sum, mut weight, mut scale) = (0.0, 0.5, 1.0);
    let mut all = 0.0;
    for octave in 0..octaves {
        let shift = octave as f32 * 17.3;
        sum += weight * noise(seed.wrapping_add(octave), x * scale + shift, y * scale - shift);
        all += weight;
        weight *= 0.5;
        scale *= 2.0;
    }
    sum / all
}

/// The film grain of one pixel: about −1 to 1, most of it near 0.
pub(super) fn grain(seed: u32, x: i32, y: i32) -> f32 {
    let h = hash(seed, x, y);
    ((h & 0xffff) as f32 + (h >> 16) as f32) / 65536.0 - 1.0
}

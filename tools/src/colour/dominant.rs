//! The few colours of which a part of a picture mostly consists.

use super::lab::Lab;
use super::names::name;
use crate::picture::Picture;

/// Colours that are nearer than this in CIELAB are one: shading and noise make many of one.
const APART: f64 = 16.0;
/// A colour with a smaller share is not told on its own.
const LEAST_SHARE: f64 = 0.04;
/// No more colours than this are told.
const MOST: usize = 5;
/// How often the groups are formed anew around their means.
const ROUNDS: usize = 6;
/// Pixels whose channels agree in their highest five bits are counted together.
const BITS: u32 = 5;

/// A colour and how much of the part it covers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Colour {
    pub(super) name: &'static str,
    /// The mean of its pixels.
    pub(super) rgb: [u8; 3],
    pub(super) lab: Lab,
    /// 0 to 1.
    pub(super) share: f64,
}

/// The colours of a part, the largest share first, and for each pixel the index of its own.
#[derive(Debug)]
pub(super) struct Dominant {
    pub(super) colours: Vec<Colour>,
    /// `None` for a pixel of a rare colour.
    pub(super) of_pixel: Vec<Option<u8>>,
}

impl Dominant {
    pub(super) fn of(part: &Picture) -> Self {
        let pixels: Vec<[u8; 3]> = part.rgb().pixels().map(|pixel| pixel.0).collect();
        let mut bins = vec![Bin::default(); 1 << (3 * BITS)];
        for pixel in &pixels {
            bins[bin_of(*pixel)].add(*pixel);
        }
        let mut used: Vec<usize> = (0..bins.len()).filter(|&at| bins[at].count > 0).collect();
        // The most frequent first, so that it is the middle of its group; of equals the first.
        used.sort_by_key(|&at| (std::cmp::Reverse(bins[at].count), at));
        let labs: Vec<Lab> = used.iter().map(|&at| Lab::of(bins[at].mean())).collect();

        let mut centres: Vec<Lab> = Vec::new();
        for lab in &labs {
            if centres.iter().all(|centre| centre.distance_squared(*lab) > APART * APART) {
                centres.push(*lab);
            }
        }
        for _ in 0..ROUNDS {
            let group: Vec<usize> = labs.iter().map(|lab| nearest(&centres, *lab)).collect();
            let sums = sums(&bins, &used, &group, centres.len());
            centres = sums.iter().filter(|sum| sum.count > 0).map(|s| Lab::of(s.mean())).collect();
            merge(&mut centres);
        }
        let group: Vec<usize> = labs.iter().map(|lab| nearest(&centres, *lab)).collect();
        Self::told(&pixels, &bins, &used, &group, centres.len())
    }

    fn told(
        pixels: &[[u8; 3]],
        bins: &[Bin],
        used: &[usize],
        group: &[usize],
        groups: usize,
    ) -> Self {
        let sums = sums(bins, used, group, groups);
        let share = |sum: &Bin| sum.count as f64 / pixels.len().max(1) as f64;
        let mut kept: Vec<usize> =
            (0..groups).filter(|&at| share(&sums[at]) >= LEAST_SHARE).collect();
        kept.sort_by_key(|&at| (std::cmp::Reverse(sums[at].count), at));
        kept.truncate(MOST);
        let colours = kept.iter().map(|&at| {
            let rgb = sums[at].mean();
            let lab = Lab::of(rgb);
            Colour { name: name(lab), rgb, lab, share: share(&sums[at]) }
        });
        let mut of_bin = vec![None; bins.len()];
        for (&bin, group) in used.iter().zip(group) {
            of_bin[bin] = kept.iter().position(|at| at == group).map(|place| place as u8);
        }
        let of_pixel = pixels.iter().map(|pixel| of_bin[bin_of(*pixel)]).collect();
        Self { colours: colours.collect(), of_pixel }
    }
}

/// Pixels, counted and added up.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    sum: [u64; 3],
}

impl Bin {
    fn add(&mut self, pixel: [u8; 3]) {
        self.count += 1;
        for (sum, value) in self.sum.iter_mut().zip(pixel) {
            *sum += u64::from(value);
        }
    }

    fn mean(&self) -> [u8; 3] {
        let count = self.count.max(1);
        self.sum.map(|sum| ((sum + count / 2) / count) as u8)
    }
}

fn bin_of(pixel: [u8; 3]) -> usize {
    pixel.iter().fold(0, |bin, value| bin << BITS | usize::from(value >> (8 - BITS)))
}

fn nearest(centres: &[Lab], lab: Lab) -> usize {
    let far = |at: &usize| centres[*at].distance_squared(lab);
    (0..centres.len()).min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
}

fn sums(bins: &[Bin], used: &[usize], group: &[usize], groups: usize) -> Vec<Bin> {
    let mut sums = vec![Bin::default(); groups];
    for (&bin, &group) in used.iter().zip(group) {
        sums[group].count += bins[bin].count;
        for channel in 0..3 {
            sums[group].sum[channel] += bins[bin].sum[channel];
        }
    }
    sums
}

/// Of centres that have come too near to each other only the first is kept.
fn merge(centres: &mut Vec<Lab>) {
    let mut kept: Vec<Lab> = Vec::with_capacity(centres.len());
    for centre in centres.drain(..) {
        if kept.iter().all(|other| other.distance_squared(centre) > APART * APART) {
            kept.push(centre);
        }
    }
    *centres = kept;
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};

    use super::*;

    /// A red ground with a blue quarter, all of it with noise and a slope of light.
    fn flag() -> Picture {
        let pixels = RgbImage::from_fn(80, 60, |x, y| {
            let noise = ((x * 7 + y * 13) % 9) as i32 - 4 + (x as i32 - 40) / 8;
            let base = if x < 40 && y < 30 { [30, 60, 200] } else { [200, 30, 40] };
            Rgb(base.map(|value: i32| (value + noise).clamp(0, 255) as u8))
        });
        Picture::from_rgb(pixels).unwrap()
    }

    #[test]
    fn shading_and_noise_do_not_make_new_colours() {
        let found = Dominant::of(&flag());
        let told: Vec<(&str, i64)> =
            found.colours.iter().map(|c| (c.name, (c.share * 100.0).round() as i64)).collect();
        assert_eq!(told, [("red", 75), ("blue", 25)]);
        assert_eq!(found.of_pixel[0], Some(1));
        assert_eq!(found.of_pixel[80 * 60 - 1], Some(0));
    }

    #[test]
    fn rare_colours_have_no_place_of_their_own() {
        let mut pixels = flag().rgb().clone();
        pixels.put_pixel(5, 5, Rgb([255, 255, 255]));
        let found = Dominant::of(&Picture::from_rgb(pixels).unwrap());
        assert_eq!(found.colours.len(), 2);
        assert_eq!(found.of_pixel[5 * 80 + 5], None);
    }
}

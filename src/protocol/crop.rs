//! Cutting and masking around annotated targets.

use deeplook_tools::picture::shown_size;
use deeplook_tools::{Picture, PixelBox, Size};
use image::Rgb;

/// λ(s) of the paper's Eq. 1 for a target whose shorter side is `s` pixels: how much context a crop
/// gets, in sizes of the target.
fn expansion(s: f64) -> f64 {
    const MOST: f64 = 6.0;
    const LEAST: f64 = 0.3;
    const SMALL: f64 = 32.0;
    const LARGE: f64 = 256.0;
    let alpha = ((s - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
    (1.0 - alpha) * MOST + alpha * LEAST
}

/// The region around all of `boxes`: the box over them grows to 1 + λ times its sides, half of it on
/// each side (the paper gives the ratio, not how it is applied), and stays inside the picture.
pub(super) fn around(boxes: &[PixelBox], size: Size) -> PixelBox {
    let Some(all) = boxes.iter().copied().reduce(|a, b| a.union(&b)) else {
        return PixelBox::whole(size);
    };
    let lambda = expansion(all.width().min(all.height()));
    all.grown(lambda * all.width() / 2.0, lambda * all.height() / 2.0).whole_pixels(size)
}

/// The crop at a size at which a person sees detail: the long side reaches 512 pixels, but nothing
/// is enlarged more than eight times.
pub(super) fn enlarged(picture: &Picture, region: &PixelBox) -> Picture {
    const FLOOR: u32 = 512;
    const MOST: f64 = 8.0;
    let crop = picture.cropped(region);
    crop.resized(shown_size(crop.size(), FLOOR, MOST, u32::MAX))
}

/// A box with the soft edge of its object: a few percent, at least two pixels, in whole pixels of
/// the source.
pub(super) fn mask_area(area: &PixelBox, source: Size) -> PixelBox {
    let margin = |side: f64| (0.04 * side).max(2.0);
    area.grown(margin(area.width()), margin(area.height())).whole_pixels(source)
}

/// The picture with `masks` painted white. A pixel that lies partly under a mask becomes white in
/// that part: so the edge of a mask is at the same place in pictures of different sizes, and no
/// difference that a tool would find.
pub(super) fn masked(picture: &Picture, masks: &[PixelBox]) -> Picture {
    let mut pixels = picture.rgb().clone();
    let covered = |at: u32, from: f64, to: f64| {
        let at = f64::from(at);
        (to.min(at + 1.0) - from.max(at)).clamp(0.0, 1.0)
    };
    for mask in masks.iter().map(|mask| mask.clipped(picture.size())).filter(|m| !m.is_empty()) {
        for y in mask.y1.floor() as u32..mask.y2.ceil() as u32 {
            let row = covered(y, mask.y1, mask.y2);
            for x in mask.x1.floor() as u32..mask.x2.ceil() as u32 {
                let part = row * covered(x, mask.x1, mask.x2);
                let whiter = |v: u8| (f64::from(v) + part * f64::from(255 - v)).round() as u8;
                let Rgb(shown) = pixels.get_pixel(x, y);
                pixels.put_pixel(x, y, Rgb(shown.map(whiter)));
            }
        }
    }
    Picture::from_rgb(pixels).unwrap_or_else(|| picture.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expansion_follows_the_paper() {
        for (s, expected) in [(1.0, 6.0), (32.0, 6.0), (144.0, 3.15), (256.0, 0.3), (900.0, 0.3)] {
            assert!((expansion(s) - expected).abs() < 1e-9, "λ({s}) = {}", expansion(s));
        }
    }

    #[test]
    fn a_small_target_gets_much_context_and_a_large_one_little() {
        let size = Size::new(2000, 2000);
        let small = around(&[PixelBox::new(1000.0, 1000.0, 1020.0, 1020.0)], size);
        assert_eq!(small, PixelBox::new(940.0, 940.0, 1080.0, 1080.0));
        let large = around(&[PixelBox::new(500.0, 500.0, 1000.0, 1000.0)], size);
        assert_eq!(large, PixelBox::new(425.0, 425.0, 1075.0, 1075.0));
        let corner = around(&[PixelBox::new(0.0, 0.0, 20.0, 20.0)], size);
        assert_eq!(corner, PixelBox::new(0.0, 0.0, 80.0, 80.0));
    }

    #[test]
    fn masks_are_white_and_the_rest_stays() {
        let grey = Picture::from_rgb(image::RgbImage::from_pixel(20, 10, Rgb([7; 3]))).unwrap();
        let shown = masked(
            &grey,
            &[PixelBox::new(2.0, 2.0, 5.0, 4.0), PixelBox::new(90.0, 0.0, 99.0, 9.0)],
        );
        let white = shown.rgb().pixels().filter(|p| p.0 == [255; 3]).count();
        assert_eq!(white, 3 * 2);
        let half = masked(&grey, &[PixelBox::new(2.5, 2.0, 4.0, 3.0)]);
        let row: Vec<u8> = (1..5).map(|x| half.rgb().get_pixel(x, 2).0[0]).collect();
        assert_eq!(row, [7, 131, 255, 7]);
    }
}

//! Cutting, masking and marking around places.

use deeplook_tools::picture::shown_size;
use deeplook_tools::{Picture, PixelBox, Size};
use image::{Rgb, RgbImage};

use crate::prompt::{Adaptive, Context, Margin, Sizes};

/// How much context a place gets whose shorter side is `s` pixels, in sizes of the place.
fn expansion(Adaptive { small, large, most, least }: Adaptive, s: f64) -> f64 {
    let alpha = ((s - small) / (large - small)).clamp(0.0, 1.0);
    (1.0 - alpha) * most + alpha * least
}

/// The box over all of `places` with its context, half of it on each side, in whole pixels inside
/// the picture; all of the picture without a place.
pub(super) fn around(places: &[PixelBox], context: &Context, size: Size) -> PixelBox {
    match over(places) {
        Some(all) => with_context(&all, context).whole_pixels(size),
        None => PixelBox::whole(size),
    }
}

/// The same with corners rounded to the nearest pixel, halves to the even one.
pub(super) fn on_canvas(places: &[PixelBox], context: &Context, size: Size) -> PixelBox {
    let Some(all) = over(places) else { return PixelBox::whole(size) };
    let [x1, y1, x2, y2] = with_context(&all, context).edges().map(f64::round_ties_even);
    PixelBox::new(x1, y1, x2, y2).whole_pixels(size)
}

fn over(places: &[PixelBox]) -> Option<PixelBox> {
    places.iter().copied().reduce(|a, b| a.union(&b))
}

fn with_context(all: &PixelBox, context: &Context) -> PixelBox {
    match context {
        Context::Margin(margin) => grown(all, margin),
        Context::Adaptive(adaptive) => {
            let lambda = expansion(*adaptive, all.width().min(all.height()));
            all.grown(lambda * all.width() / 2.0, lambda * all.height() / 2.0)
        }
    }
}

fn grown(area: &PixelBox, margin: &Margin) -> PixelBox {
    let side = |side: f64| (margin.share * side).max(margin.pixels);
    area.grown(side(area.width()), side(area.height()))
}

/// A place with its margin, in whole pixels of the source.
pub(super) fn widened(area: &PixelBox, margin: &Margin, source: Size) -> PixelBox {
    grown(area, margin).whole_pixels(source)
}

/// The longest side to which a crop is enlarged for the sake of a place in it.
const LONGEST: u32 = 2048;

/// How far a crop is enlarged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Enlarging {
    /// Until its long side has so many pixels, …
    pub(super) to: Option<u32>,
    /// … or the shorter side of the smallest place in it, …
    pub(super) place: Option<u32>,
    /// … but not more than so many times.
    pub(super) most: Option<f64>,
}

/// A crop at the size at which it is shown; `places` are in its picture's pixels.
pub(super) fn enlarged(crop: &Picture, places: &[PixelBox], how: &Enlarging) -> Picture {
    let (size, most) = (crop.size(), how.most.unwrap_or(f64::INFINITY));
    let shown = how.to.map_or(size, |to| shown_size(size, to, most, u32::MAX));
    let sides = places.iter().map(|place| place.width().min(place.height()));
    let (Some(wanted), Some(side)) = (how.place, sides.reduce(f64::min)) else {
        return crop.resized(shown);
    };
    let room = f64::from(LONGEST) / f64::from(size.long_side());
    let times = (f64::from(wanted) / side.max(1.0)).min(most).min(room);
    crop.resized(if size.scaled(times).long_side() > shown.long_side() {
        size.scaled(times)
    } else {
        shown
    })
}

/// A size with this long edge.
pub(super) fn at_long_edge(size: Size, edge: u32, sizes: Sizes) -> Size {
    match sizes {
        Sizes::Rounded => size.with_long_side(edge),
        Sizes::Truncated => {
            let factor = f64::from(edge) / f64::from(size.long_side().max(1));
            let side = |side: u32| (f64::from(side) * factor).trunc().max(1.0) as u32;
            Size::new(side(size.width), side(size.height))
        }
    }
}

/// The picture with red frames around `places`, three pixels wide and inside of them.
pub(super) fn marked(picture: &Picture, places: &[PixelBox]) -> Picture {
    const WIDTH: f64 = 3.0;
    let mut pixels = picture.rgb().clone();
    let mut paint = |area: PixelBox| {
        for y in area.y1 as u32..area.y2 as u32 {
            for x in area.x1 as u32..area.x2 as u32 {
                pixels.put_pixel(x, y, Rgb([255, 0, 0]));
            }
        }
    };
    for place in places {
        let PixelBox { x1, y1, x2, y2 } = place.whole_pixels(picture.size());
        let (right, bottom) = ((x2 - WIDTH).max(x1), (y2 - WIDTH).max(y1));
        paint(PixelBox::new(x1, y1, x2, (y1 + WIDTH).min(y2)));
        paint(PixelBox::new(x1, bottom, x2, y2));
        paint(PixelBox::new(x1, y1, (x1 + WIDTH).min(x2), y2));
        paint(PixelBox::new(right, y1, x2, y2));
    }
    drawn(pixels, picture)
}

/// The drawn pixels as a picture.
fn drawn(pixels: RgbImage, from: &Picture) -> Picture {
    Picture::from_rgb(pixels).unwrap_or_else(|| from.clone())
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
    drawn(pixels, picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADAPTIVE: Adaptive = Adaptive { small: 32.0, large: 256.0, most: 6.0, least: 0.3 };

    #[test]
    fn the_smaller_a_place_the_more_context_it_gets() {
        for (s, expected) in [(1.0, 6.0), (32.0, 6.0), (144.0, 3.15), (256.0, 0.3), (900.0, 0.3)] {
            let found = expansion(ADAPTIVE, s);
            assert!((found - expected).abs() < 1e-9, "λ({s}) = {found}");
        }
    }

    #[test]
    fn a_small_target_gets_much_context_and_a_large_one_little() {
        let size = Size::new(2000, 2000);
        let around = |place: &[PixelBox], size| around(place, &Context::Adaptive(ADAPTIVE), size);
        let small = around(&[PixelBox::new(1000.0, 1000.0, 1020.0, 1020.0)], size);
        assert_eq!(small, PixelBox::new(940.0, 940.0, 1080.0, 1080.0));
        let large = around(&[PixelBox::new(500.0, 500.0, 1000.0, 1000.0)], size);
        assert_eq!(large, PixelBox::new(425.0, 425.0, 1075.0, 1075.0));
        let corner = around(&[PixelBox::new(0.0, 0.0, 20.0, 20.0)], size);
        assert_eq!(corner, PixelBox::new(0.0, 0.0, 80.0, 80.0));
    }

    #[test]
    fn a_flat_place_is_enlarged_until_it_can_be_seen() {
        let crop = |w, h| Picture::from_rgb(RgbImage::new(w, h)).unwrap();
        let how = Enlarging { to: Some(512), place: Some(150), most: Some(16.0) };
        let size = |w, h, place: [f64; 2]| {
            enlarged(&crop(w, h), &[PixelBox::new(9.0, 9.0, 9.0 + place[0], 9.0 + place[1])], &how)
                .size()
        };
        // A plate of 135×36 with its margin: its 36 pixels become 150.
        assert_eq!(size(203, 54, [135.0, 36.0]), Size::new(203, 54).scaled(150.0 / 36.0));
        // No more often than allowed, and no longer than can be sent.
        assert_eq!(size(20, 20, [4.0, 4.0]), Size::new(320, 320));
        assert_eq!(size(20, 20, [9.0, 9.0]).long_side(), 320);
        assert_eq!(size(600, 30, [580.0, 10.0]).long_side(), 2048);
        // What is large enough stays.
        assert_eq!(size(700, 400, [600.0, 300.0]), Size::new(700, 400));
        let none = enlarged(&crop(20, 20), &[], &how);
        assert_eq!(none.size(), Size::new(320, 320));
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

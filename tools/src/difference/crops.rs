//! How the crops of a place are cut: large enough to see it, and never through it.

use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::Registration;

/// What is lower than this part of the long side can be lettering, …
const LINE: f64 = 0.03;
/// … which is followed for at most so many of its heights, …
const FOLLOWED: f64 = 3.5;
/// … until so many heights are calm.
const CALM: f64 = 0.7;
/// Calm is a column whose brightness varies less than this part of what it does in the place itself.
const QUIET: f64 = 0.35;

/// The place with its context, in pixels of the first picture; about `widest` across at most.
pub(super) fn with_context(
    place: &PixelBox,
    (first, second): (&Picture, &Picture),
    registration: &Registration,
    (margin, least): (f64, f64),
    widest: f64,
) -> PixelBox {
    let size = first.size();
    let mut whole = *place;
    if place.height() <= LINE * f64::from(size.long_side()) {
        whole = followed(place, first);
        let there = registration.to_second(place).clipped(second.size());
        if !there.is_empty() {
            let back = registration.to_first(&followed(&there, second));
            whole.x1 = whole.x1.min(back.x1);
            whole.x2 = whole.x2.max(back.x2);
        }
    }
    let pad = |side: f64| (margin * side).max(least);
    let across = whole.width().min(4.0 * whole.height());
    let mut wide = whole.grown(pad(across), pad(whole.height()));
    // Wider than this, the place itself would be shown too small.
    let spare = ((widest - place.width()) / 2.0).max(least);
    wide.x1 = wide.x1.max(place.x1 - spare);
    wide.x2 = wide.x2.min(place.x2 + spare);
    wide.whole_pixels(size)
}

/// A place in a line of text, as far as its word goes.
fn followed(place: &PixelBox, picture: &Picture) -> PixelBox {
    let size = picture.size();
    let place = place.whole_pixels(size);
    let (y1, y2) = (place.y1 as u32, place.y2 as u32);
    let range = |x: u32| {
        let (mut low, mut high) = (255u8, 0u8);
        for y in y1..y2 {
            let green = picture.rgb().get_pixel(x, y).0[1];
            (low, high) = (low.min(green), high.max(green));
        }
        f64::from(high.saturating_sub(low))
    };
    let (x1, x2) = (place.x1 as u32, place.x2 as u32);
    let inside = (x1..x2).map(range).fold(0.0, f64::max);
    let height = place.height();
    let (reach, calm) = ((FOLLOWED * height) as u32, (CALM * height).max(2.0) as u32);
    let follow = |columns: &mut dyn Iterator<Item = u32>, start: u32| {
        let (mut end, mut quiet) = (start, 0);
        for x in columns {
            if range(x) < QUIET * inside {
                quiet += 1;
                if quiet >= calm {
                    break;
                }
            } else {
                quiet = 0;
                end = x;
            }
        }
        end
    };
    let left = follow(&mut (x1.saturating_sub(reach)..x1).rev(), x1);
    let right = follow(&mut (x2..(x2 + reach).min(size.width)), x2.saturating_sub(1));
    PixelBox::new(f64::from(left), place.y1, f64::from(right + 1), place.y2)
}

/// How often a crop is to be enlarged, if there is room: so that it is seen well, and that the place is seen
/// well in it.
pub(super) fn wanted(place: &PixelBox, crop: Size, (floor, most, short): (u32, f64, u32)) -> f64 {
    let for_crop = (f64::from(floor) / f64::from(crop.long_side().max(1))).min(most);
    // One more, as sizes are rounded.
    let for_place = (f64::from(short) + 1.0) / place.width().min(place.height()).max(1.0);
    for_crop.max(for_place).max(1.0)
}

//! Two pictures beside each other with a red line between: how a judge sees a pair.

use image::{Rgb, RgbImage, imageops};

use crate::coords::{PixelBox, Size};
use crate::picture::Picture;

/// Width of the red line between the halves.
const LINE: u32 = 4;
const RED: Rgb<u8> = Rgb([255, 0, 0]);

/// The pair as one picture, and where its halves lie. The right one is brought to the left one's
/// size, so that the same thing is at the same height in both.
pub(crate) fn side_by_side(left: &Picture, right: &Picture) -> (Picture, PixelBox, PixelBox) {
    let size = left.size();
    let right = right.resized(size);
    let mut canvas = RgbImage::from_pixel(size.width * 2 + LINE, size.height, RED);
    imageops::replace(&mut canvas, left.rgb(), 0, 0);
    imageops::replace(&mut canvas, right.rgb(), i64::from(size.width + LINE), 0);
    let left_area = PixelBox::whole(size);
    let shift = f64::from(size.width + LINE);
    let right_area = PixelBox { x1: shift, x2: shift + left_area.x2, ..left_area };
    let whole = Picture::from_rgb(canvas).unwrap_or_else(|| left.clone());
    (whole, left_area, right_area)
}

/// The size at which a crop of `size` is shown: enlarged until its long side reaches `floor`, but
/// never by more than `most`; reduced where it is longer than `ceiling`.
pub(crate) fn shown_size(size: Size, floor: u32, most: f64, ceiling: u32) -> Size {
    let long = size.long_side();
    if long < floor {
        size.scaled((f64::from(floor) / f64::from(long)).min(most))
    } else if long > ceiling {
        size.with_long_side(ceiling)
    } else {
        size
    }
}

//! Two pictures beside each other with a red line between: how a judge sees a pair.

use image::RgbImage;

use crate::coords::PixelBox;
use crate::picture::Picture;

/// Width of the red line between the halves.
const LINE: u32 = 4;
const RED: [u8; 3] = [255, 0, 0];

/// The pair as one picture, and where its halves lie. The right one is brought to the left one's
/// size, so that the same thing is at the same height in both.
pub(crate) fn side_by_side(left: &Picture, right: &Picture) -> (Picture, PixelBox, PixelBox) {
    let size = left.size();
    let right = right.resized(size);
    let stride = size.width as usize * 3;
    let mut pixels =
        Vec::with_capacity((size.width * 2 + LINE) as usize * size.height as usize * 3);
    let [lefts, rights] = [left, &right].map(|half| half.rgb().as_raw().chunks_exact(stride));
    for (left, right) in lefts.zip(rights) {
        pixels.extend_from_slice(left);
        (0..LINE).for_each(|_| pixels.extend_from_slice(&RED));
        pixels.extend_from_slice(right);
    }
    let canvas = RgbImage::from_raw(size.width * 2 + LINE, size.height, pixels);
    let left_area = PixelBox::whole(size);
    let shift = f64::from(size.width + LINE);
    let right_area = PixelBox { x1: shift, x2: shift + left_area.x2, ..left_area };
    (canvas.and_then(Picture::from_rgb).unwrap_or_else(|| left.clone()), left_area, right_area)
}

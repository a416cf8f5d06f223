//! Strips along the frame that only one of two pictures shows: cropping and outpainting.

use crate::coords::{PixelBox, Size};
use crate::registration::Registration;

/// A strip narrower than this part of the picture is not told: frames are no better known.
const LEAST: f64 = 0.025;

/// Frames of pictures whose gradients agree less than this, from −1 to 1, are not known well enough.
const KNOWN: f64 = 0.5;

/// The strips of the first picture that the second does not show, in pixels of the first, and those of the
/// second that the first does not show, in pixels of the second.
pub(super) fn of(registration: &Registration) -> [Vec<PixelBox>; 2] {
    if registration.agreement() < KNOWN {
        return [Vec::new(), Vec::new()];
    }
    let (first, second) = (registration.first(), registration.second());
    let shown = registration.to_first(&PixelBox::whole(second));
    let shows = registration.to_second(&PixelBox::whole(first));
    [beyond(first, &shown), beyond(second, &shows)]
}

/// What of a picture lies beyond `inner`: left and right over the whole height, top and bottom between them.
fn beyond(size: Size, inner: &PixelBox) -> Vec<PixelBox> {
    let whole = PixelBox::whole(size);
    let inner = inner.intersection(&whole);
    if inner.is_empty() {
        return Vec::new();
    }
    let across = |width: f64| width >= LEAST * whole.width();
    let down = |height: f64| height >= LEAST * whole.height();
    let mut strips = Vec::new();
    let (mut left, mut right) = (0.0, whole.x2);
    if across(inner.x1) {
        left = inner.x1;
        strips.push(PixelBox::new(0.0, 0.0, inner.x1, whole.y2));
    }
    if across(whole.x2 - inner.x2) {
        right = inner.x2;
        strips.push(PixelBox::new(inner.x2, 0.0, whole.x2, whole.y2));
    }
    if down(inner.y1) {
        strips.push(PixelBox::new(left, 0.0, right, inner.y1));
    }
    if down(whole.y2 - inner.y2) {
        strips.push(PixelBox::new(left, inner.y2, right, whole.y2));
    }
    strips.into_iter().map(|strip| strip.whole_pixels(size)).collect()
}

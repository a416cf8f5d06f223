//! Two pictures beside or above each other with a red line between: how a judge sees a pair.

use image::{Rgb, RgbImage};

use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::scene::Panel;

/// Width of the red line between the halves.
const LINE: u32 = 4;
const RED: Rgb<u8> = Rgb([255, 0, 0]);

/// Where the halves of a pair lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The first on the left.
    Beside,
    /// The first on top: a line of text is seen larger so.
    Stacked,
}

impl Layout {
    /// How often halves of `size` can be enlarged so that no side of the pair is longer than `longest`.
    fn room(self, size: Size, longest: u32) -> f64 {
        let (across, down) = match self {
            Self::Beside => (longest.saturating_sub(LINE) / 2, longest),
            Self::Stacked => (longest, longest.saturating_sub(LINE) / 2),
        };
        let times = |room: u32, side: u32| f64::from(room.max(1)) / f64::from(side.max(1));
        times(across, size.width).min(times(down, size.height))
    }

    /// Side by side where halves of `size` can be shown `wanted` times as large as they are; else
    /// whatever shows them larger. Gives how often they are enlarged, too.
    pub(crate) fn fitting(size: Size, wanted: f64, longest: u32) -> (Self, f64) {
        let (beside, stacked) =
            (Self::Beside.room(size, longest), Self::Stacked.room(size, longest));
        if beside >= wanted || beside >= stacked {
            (Self::Beside, wanted.min(beside))
        } else {
            (Self::Stacked, wanted.min(stacked))
        }
    }

    /// Of a view that shows a pair already.
    pub(crate) fn of(panels: &[Panel]) -> Self {
        match panels {
            [first, second, ..] if second.area.y1 >= first.area.y2 => Self::Stacked,
            _ => Self::Beside,
        }
    }

    /// Where the first and the second are, in words.
    pub(crate) fn sides(self) -> [&'static str; 2] {
        match self {
            Self::Beside => ["on the left", "on the right"],
            Self::Stacked => ["on top", "below it"],
        }
    }

    /// The pair as one picture, and where its halves lie. The second is brought to the size of the
    /// first, so that the same thing is at the same place in both.
    pub(crate) fn lay(self, first: &Picture, second: &Picture) -> (Picture, [PixelBox; 2]) {
        let size = first.size();
        let second = second.resized(size);
        let (shift, canvas) = match self {
            Self::Beside => ((size.width + LINE, 0), (size.width * 2 + LINE, size.height)),
            Self::Stacked => ((0, size.height + LINE), (size.width, size.height * 2 + LINE)),
        };
        let mut pixels = RgbImage::from_pixel(canvas.0, canvas.1, RED);
        image::imageops::replace(&mut pixels, first.rgb(), 0, 0);
        image::imageops::replace(&mut pixels, second.rgb(), shift.0.into(), shift.1.into());
        let area = PixelBox::whole(size);
        let (dx, dy) = (f64::from(shift.0), f64::from(shift.1));
        let moved = PixelBox::new(area.x1 + dx, area.y1 + dy, area.x2 + dx, area.y2 + dy);
        (Picture::from_rgb(pixels).unwrap_or_else(|| first.clone()), [area, moved])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_is_stacked_and_a_square_is_not() {
        let (layout, times) = Layout::fitting(Size::new(1000, 60), 2.5, 2048);
        assert_eq!((layout, times), (Layout::Stacked, 2.048));
        let (layout, times) = Layout::fitting(Size::new(200, 200), 3.0, 2048);
        assert_eq!((layout, times), (Layout::Beside, 3.0));
        let (layout, times) = Layout::fitting(Size::new(4000, 3000), 1.0, 2048);
        assert_eq!(layout, Layout::Stacked);
        assert!(times < 0.35, "{times}");
    }

    #[test]
    fn no_layout_is_longer_than_it_may_be() {
        for (width, height) in [(1, 1), (5000, 3), (3, 5000), (700, 500), (123, 456)] {
            let size = Size::new(width, height);
            let (layout, times) = Layout::fitting(size, 40.0, 2048);
            let grey = |size: Size| {
                Picture::from_rgb(RgbImage::from_pixel(size.width, size.height, Rgb([9; 3])))
                    .unwrap()
            };
            let half = grey(size.scaled(times));
            let (pair, areas) = layout.lay(&half, &half);
            assert!(pair.size().long_side() <= 2049, "{size}: {}", pair.size());
            assert!(areas.iter().all(|area| area.clipped(pair.size()) == *area));
        }
    }
}

//! Where to look: the whole picture, and windows at its own resolution in which small things are
//! not lost.

use serde::{Deserialize, Serialize};

use super::detector::{Detection, Detector, Thresholds};
use super::text::Caption;
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::tool::ToolError;

/// How windows are laid over a picture.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    /// By default they are used where the whole picture is seen at least this much smaller.
    pub from_reduction: f64,
    /// How much of its side a window shares with the next one: what is smaller than that is whole
    /// in one of them.
    pub overlap: f64,
    /// There are never more than this; where the picture is larger, they become larger too.
    pub most: usize,
}

impl Default for Windows {
    fn default() -> Self {
        // Below that the whole picture shows enough, and every window is one more chance to be wrong.
        Self { from_reduction: 2.5, overlap: 0.25, most: 16 }
    }
}

impl Windows {
    /// Windows with sides of at least `side` that cover `region`, row by row.
    fn over(&self, region: &PixelBox, side: u32) -> Vec<PixelBox> {
        let mut side = f64::from(side.max(16));
        let count = |extent: f64, side: f64| {
            let step = side * (1.0 - self.overlap);
            (((extent - side) / step).ceil().max(0.0) as usize).saturating_add(1)
        };
        while count(region.width(), side).saturating_mul(count(region.height(), side))
            > self.most.max(1)
        {
            side *= 1.05;
        }
        let starts = |from: f64, to: f64| {
            let count = count(to - from, side);
            let room = (to - from - side).max(0.0);
            (0..count).map(move |at| (from + room * at as f64 / (count.max(2) - 1) as f64).round())
        };
        let column = starts(region.y1, region.y2);
        column
            .flat_map(|y| starts(region.x1, region.x2).map(move |x| (x, y)))
            .map(|(x, y)| {
                PixelBox::new(x, y, x + side.round(), y + side.round()).intersection(region)
            })
            .collect()
    }
}

/// Looks in `region` of the picture, and in windows if `tiled` or by default where it is large.
/// Gives what was found, best first, and how many windows there were.
pub(super) fn search(
    detector: &Detector,
    picture: &Picture,
    region: &PixelBox,
    caption: &Caption,
    thresholds: Thresholds,
    (windows, tiled): (&Windows, Option<bool>),
    most_overlap: f64,
) -> Result<(Vec<Detection>, usize), ToolError> {
    let size = Size::new(region.width() as u32, region.height() as u32);
    let mut found = detector.detect(picture, region, caption, thresholds)?;
    let tiled = tiled.unwrap_or_else(|| detector.reduction(size) >= windows.from_reduction);
    let windows = if tiled { windows.over(region, detector.native_side()) } else { Vec::new() };
    // One window would be the whole picture again.
    let windows = if windows.len() > 1 { windows } else { Vec::new() };
    for window in &windows {
        let seen = detector.detect(picture, window, caption, thresholds)?;
        found.extend(seen.into_iter().filter(|d| !is_cut_off(&d.bbox, window, region)));
    }
    Ok((without_duplicates(found, most_overlap), windows.len()))
}

/// True where the box ends at an edge of the window that is not an edge of the region: the object
/// goes on behind it, and another window or the whole picture shows all of it.
fn is_cut_off(bbox: &PixelBox, window: &PixelBox, region: &PixelBox) -> bool {
    let near = 0.01 * window.width().max(window.height());
    let touches = |edge: f64, of_window: f64, of_region: f64| {
        (edge - of_window).abs() < near && (of_window - of_region).abs() > 1.0
    };
    touches(bbox.x1, window.x1, region.x1)
        || touches(bbox.y1, window.y1, region.y1)
        || touches(bbox.x2, window.x2, region.x2)
        || touches(bbox.y2, window.y2, region.y2)
}

/// The best first, and of boxes that overlap more than `most_overlap` (intersection over union)
/// only the best.
pub(super) fn without_duplicates(mut found: Vec<Detection>, most_overlap: f64) -> Vec<Detection> {
    // A stable sort: of equals, the one that the model named first.
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut kept: Vec<Detection> = Vec::new();
    for detection in found {
        if kept.iter().all(|better| overlap(&better.bbox, &detection.bbox) <= most_overlap) {
            kept.push(detection);
        }
    }
    kept
}

fn overlap(a: &PixelBox, b: &PixelBox) -> f64 {
    let shared = a.intersection(b);
    if shared.is_empty() {
        return 0.0;
    }
    shared.area() / (a.area() + b.area() - shared.area())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn detection(x: f64, score: f32) -> Detection {
        Detection { bbox: PixelBox::new(x, 0.0, x + 10.0, 10.0), score, phrase: String::new() }
    }

    #[test]
    fn of_boxes_that_overlap_the_best_stays() {
        let found = vec![detection(0.0, 0.5), detection(1.0, 0.9), detection(30.0, 0.4)];
        let kept = without_duplicates(found, 0.5);
        assert_eq!(kept, [detection(1.0, 0.9), detection(30.0, 0.4)]);
    }

    #[test]
    fn what_a_window_cuts_off_is_not_its_own() {
        let region = PixelBox::new(0.0, 0.0, 1000.0, 400.0);
        let window = PixelBox::new(300.0, 0.0, 700.0, 400.0);
        let at = |x1, y1, x2, y2| is_cut_off(&PixelBox::new(x1, y1, x2, y2), &window, &region);
        assert!(at(301.0, 50.0, 350.0, 90.0));
        assert!(at(650.0, 50.0, 699.0, 90.0));
        assert!(!at(400.0, 0.0, 450.0, 400.0), "the region ends there too");
        assert!(!at(400.0, 50.0, 450.0, 90.0));
    }

    proptest! {
        /// Everything no larger than the overlap is whole in some window.
        #[test]
        fn windows_cover_everything(
            width in 20u32..6000, height in 20u32..6000, side in 16u32..900,
            x in 0.0f64..1.0, y in 0.0f64..1.0, left in 0u32..500,
        ) {
            let windows = Windows::default();
            let left = f64::from(left);
            let region =
                PixelBox::new(left, 7.0, left + f64::from(width), 7.0 + f64::from(height));
            let all = windows.over(&region, side);
            prop_assert!(!all.is_empty() && all.len() <= windows.most);
            let used = all[0].width().max(all[0].height());
            let thing = (windows.overlap * used - 2.0).max(1.0);
            let (w, h) = (thing.min(region.width()), thing.min(region.height()));
            let (x, y) = (region.x1 + x * (region.width() - w), region.y1 + y * (region.height() - h));
            let thing = PixelBox::new(x, y, x + w, y + h);
            let whole = |window: &PixelBox| window.intersection(&thing).area() >= thing.area() - 1e-6;
            prop_assert!(all.iter().any(whole), "{thing} is in none of {all:?}");
        }
    }
}

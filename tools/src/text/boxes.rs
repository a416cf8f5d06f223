//! From a map of how likely each pixel is lettering to the boxes of lines ("differentiable binarization").
//! Every number in here is RapidOCR's: what it takes for a line, we do.

use image::{GrayImage, Luma};
use imageproc::contours::find_contours;
use imageproc::geometry::convex_hull;
use imageproc::point::Point;

use super::resampling::{Quad, distance};

/// A pixel is lettering where the map says more than this.
const THRESHOLD: f32 = 0.3;
/// A box is kept where the map's mean in it is at least this.
const BOX_THRESHOLD: f64 = 0.5;
/// No more outlines than this are looked at.
const MOST_OUTLINES: usize = 1000;
/// How much a box grows: the network marks the core of a line.
const GROWTH: f64 = 1.6;
/// Boxes with a shorter side are specks.
const LEAST_SIDE: f64 = 3.0;
/// Boxes whose tops are nearer than this are on one row.
const SAME_ROW: f64 = 10.0;
/// How far the rounded corners of a grown box may be from an arc, in pixels.
const ARC_TOLERANCE: f64 = 0.25;

/// The map that the network gives.
pub(super) struct Likelihood {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) values: Vec<f32>,
}

/// The boxes of all lines, in pixels of a picture of `width` and `height`, in reading order.
pub(super) fn lines(map: &Likelihood, width: u32, height: u32) -> Vec<Quad> {
    let outlines = find_contours::<i32>(&marked(map));
    let (across, down) =
        (f64::from(width) / map.width as f64, f64::from(height) / map.height as f64);
    let mut found = Vec::new();
    for outline in outlines.into_iter().rev().take(MOST_OUTLINES) {
        let Some((core, side)) = smallest_box(outline.points) else { continue };
        if side < LEAST_SIDE || BOX_THRESHOLD > mean_within(map, &core) {
            continue;
        }
        let Some((grown, side)) = smallest_box(grown(&core)) else { continue };
        if side < LEAST_SIDE + 2.0 {
            continue;
        }
        let placed = grown.map(|[x, y]| {
            let on = |at: f64, scale: f64, side: u32| {
                (at * scale).round_ties_even().clamp(0.0, f64::from(side.saturating_sub(1)))
            };
            [on(x, across, width), on(y, down, height)]
        });
        let [a, b, _, d] = clockwise(placed);
        if distance(&a, &b).floor() > LEAST_SIDE && distance(&a, &d).floor() > LEAST_SIDE {
            found.push(clockwise(placed));
        }
    }
    in_reading_order(found)
}

/// From top to bottom; what begins at nearly the same height from left to right.
fn in_reading_order(mut quads: Vec<Quad>) -> Vec<Quad> {
    quads.sort_by(|a, b| a[0][1].total_cmp(&b[0][1]));
    let mut row = 0;
    let mut above = f64::NAN;
    let mut rows: Vec<(usize, Quad)> = Vec::with_capacity(quads.len());
    for quad in quads {
        row += usize::from(quad[0][1] - above >= SAME_ROW);
        above = quad[0][1];
        rows.push((row, quad));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1[0][0].total_cmp(&b.1[0][0])));
    rows.into_iter().map(|(_, quad)| quad).collect()
}

/// What the map marks, a pixel larger to the right and below.
fn marked(map: &Likelihood) -> GrayImage {
    let over = |x: usize, y: usize| map.values[y * map.width + x] > THRESHOLD;
    GrayImage::from_fn(map.width as u32, map.height as u32, |x, y| {
        let (x, y) = (x as usize, y as usize);
        let (left, above) = (x.saturating_sub(1), y.saturating_sub(1));
        let any = over(x, y) || over(left, y) || over(x, above) || over(left, above);
        Luma([if any { 255 } else { 0 }])
    })
}

/// The smallest rectangle around points, and its shorter side. imageproc has one too, but rounds its corners
/// to whole pixels, which costs the outer strokes of small letters.
fn smallest_box(points: Vec<Point<i32>>) -> Option<(Quad, f64)> {
    let hull: Vec<[f64; 2]> =
        convex_hull(points).iter().map(|point| [f64::from(point.x), f64::from(point.y)]).collect();
    let mut best: Option<(f64, Quad, f64)> = None;
    for (at, from) in hull.iter().enumerate() {
        let to = &hull[(at + 1) % hull.len()];
        let length = distance(from, to);
        if length == 0.0 {
            continue;
        }
        let (ux, uy) = ((to[0] - from[0]) / length, (to[1] - from[1]) / length);
        let mut bounds = [f64::MAX, f64::MIN, f64::MAX, f64::MIN];
        for [x, y] in &hull {
            let (along, away) = (x * ux + y * uy, y * ux - x * uy);
            bounds = [
                bounds[0].min(along),
                bounds[1].max(along),
                bounds[2].min(away),
                bounds[3].max(away),
            ];
        }
        let [left, right, top, bottom] = bounds;
        let area = (right - left) * (bottom - top);
        if best.as_ref().is_none_or(|(least, ..)| area < *least) {
            let corner = |along: f64, away: f64| [along * ux - away * uy, along * uy + away * ux];
            let quad = [
                corner(left, top),
                corner(right, top),
                corner(right, bottom),
                corner(left, bottom),
            ];
            best = Some((area, clockwise(quad), (right - left).min(bottom - top)));
        }
    }
    best.map(|(_, quad, side)| (quad, side))
}

/// The corners from the top left one on.
fn clockwise(mut quad: Quad) -> Quad {
    quad.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [a, b, c, d] = quad;
    let (top_left, bottom_left) = if b[1] > a[1] { (a, b) } else { (b, a) };
    let (top_right, bottom_right) = if d[1] > c[1] { (c, d) } else { (d, c) };
    [top_left, top_right, bottom_right, bottom_left]
}

/// The mean of the map in a box whose corners are put onto pixels, its rim included.
fn mean_within(map: &Likelihood, quad: &Quad) -> f64 {
    let inside = |at: f64, side: usize| at.clamp(0.0, side as f64 - 1.0);
    let corners = quad.map(|[x, y]| [inside(x.trunc(), map.width), inside(y.trunc(), map.height)]);
    let rows = corners.iter().fold((f64::MAX, f64::MIN), |(low, high), corner| {
        (low.min(corner[1]), high.max(corner[1]))
    });
    let (mut sum, mut count) = (0.0, 0usize);
    for row in rows.0 as usize..=rows.1 as usize {
        let y = row as f64;
        let (mut left, mut right) = (f64::MAX, f64::MIN);
        for (at, [x1, y1]) in corners.iter().enumerate() {
            let [x2, y2] = corners[(at + 1) % 4];
            if y < y1.min(y2) || y > y1.max(y2) {
                continue;
            }
            let ends =
                if *y1 == y2 { [*x1, x2] } else { [x1 + (x2 - x1) * (y - y1) / (y2 - y1); 2] };
            left = left.min(ends[0].min(ends[1]));
            right = right.max(ends[0].max(ends[1]));
        }
        if left <= right {
            let row = &map.values[row * map.width..(row + 1) * map.width];
            let part = &row[left.round() as usize..=(right.round() as usize).min(map.width - 1)];
            sum += part.iter().map(|&value| f64::from(value)).sum::<f64>();
            count += part.len();
        }
    }
    sum / count.max(1) as f64
}

/// A box grown by an offset that follows from its shape, with rounded corners, in whole pixels: what Clipper
/// makes of it.
fn grown(quad: &Quad) -> Vec<Point<i32>> {
    let around = (0..4).map(|at| distance(&quad[at], &quad[(at + 1) % 4])).sum::<f64>();
    let area = (0..4).map(|at| {
        let ([x1, y1], [x2, y2]) = (quad[at], quad[(at + 1) % 4]);
        x1 * y2 - x2 * y1
    });
    let offset = (area.sum::<f64>() / 2.0).abs() * GROWTH / around;
    let corners = quad.map(|corner| corner.map(f64::trunc));
    let normal = |at: usize| {
        let ([x1, y1], [x2, y2]) = (corners[at], corners[(at + 1) % 4]);
        let length = distance(&corners[at], &corners[(at + 1) % 4]).max(1e-9);
        [(y2 - y1) / length, -(x2 - x1) / length]
    };
    let tolerance = ARC_TOLERANCE.min(offset * ARC_TOLERANCE);
    let turn = std::f64::consts::PI;
    let steps = (turn / libm::acos(1.0 - tolerance / offset)).min(offset * turn);
    let (sine, cosine) = (libm::sin(2.0 * turn / steps), libm::cos(2.0 * turn / steps));
    let mut points = Vec::new();
    for at in 0..4 {
        let (before, after, [x, y]) = (normal((at + 3) % 4), normal(at), corners[at]);
        let mut put = |[across, down]: [f64; 2]| {
            let whole = |value: f64| value.round() as i32;
            points.push(Point::new(whole(x + across * offset), whole(y + down * offset)));
        };
        let angle = libm::atan2(
            before[0] * after[1] - before[1] * after[0],
            before[0] * after[0] + before[1] * after[1],
        );
        let arc = (steps / (2.0 * turn) * angle.abs()).round().max(1.0) as usize;
        let [mut across, mut down] = before;
        for _ in 0..arc {
            put([across, down]);
            (across, down) = (across * cosine - sine * down, across * sine + down * cosine);
        }
        put(after);
    }
    points
}

/// Which part of the smaller of two boxes lies in the other one, roughly: points of it are counted.
pub(super) fn overlap(a: &Quad, b: &Quad) -> f64 {
    const ALONG: u32 = 24;
    const AWAY: u32 = 6;
    let area = |q: &Quad| distance(&q[0], &q[1]) * distance(&q[0], &q[3]);
    let (small, large) = if area(a) <= area(b) { (a, b) } else { (b, a) };
    let mut within = 0;
    for i in 0..ALONG {
        for j in 0..AWAY {
            let (u, v) =
                ((f64::from(i) + 0.5) / f64::from(ALONG), (f64::from(j) + 0.5) / f64::from(AWAY));
            let mix = |c: usize| {
                let top = small[0][c] + (small[1][c] - small[0][c]) * u;
                let bottom = small[3][c] + (small[2][c] - small[3][c]) * u;
                top + (bottom - top) * v
            };
            within += u32::from(holds(large, [mix(0), mix(1)]));
        }
    }
    f64::from(within) / f64::from(ALONG * AWAY)
}

fn holds(quad: &Quad, [x, y]: [f64; 2]) -> bool {
    (0..4).all(|at| {
        let ([x1, y1], [x2, y2]) = (quad[at], quad[(at + 1) % 4]);
        (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) >= 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(width: usize, height: usize, likely: impl Fn(f64, f64) -> bool) -> Likelihood {
        let at = |i: usize| likely((i % width) as f64, (i / width) as f64);
        let values = (0..width * height).map(|i| if at(i) { 0.9 } else { 0.05 }).collect();
        Likelihood { width, height, values }
    }

    #[test]
    fn an_upright_line_grows_on_every_side() {
        let map = map(320, 160, |x, y| (40.0..=200.0).contains(&x) && (50.0..=70.0).contains(&y));
        let found = lines(&map, 640, 320);
        // RapidOCR's own post-processing of the same map.
        assert_eq!(found, [UPRIGHT]);
    }
    const UPRIGHT: Quad = [[50.0, 70.0], [432.0, 70.0], [432.0, 172.0], [50.0, 172.0]];

    #[test]
    fn a_slanted_line_keeps_its_angle_and_specks_are_left_out() {
        let slanted = |x: f64, y: f64| {
            let (along, away) = (x * 0.96 + y * 0.28, y * 0.96 - x * 0.28);
            (80.0..=230.0).contains(&along) && (20.0..=36.0).contains(&away)
        };
        let map = map(320, 160, |x, y| slanted(x, y) || ((300.0..=301.0).contains(&x) && y == 9.0));
        let found = lines(&map, 320, 160);
        assert_eq!(found.len(), 1);
        for (corner, expected) in found[0].iter().zip(SLANTED) {
            assert!(distance(corner, &expected) <= 1.5, "{found:?}");
        }
    }
    const SLANTED: Quad = [[62.0, 25.0], [231.0, 75.0], [219.0, 116.0], [50.0, 66.0]];

    #[test]
    fn rows_are_read_from_the_top_and_each_from_the_left() {
        let word = |x: f64, y: f64| [[x, y], [x + 50.0, y], [x + 50.0, y + 20.0], [x, y + 20.0]];
        let (a, b, c) = (word(5.0, 14.0), word(100.0, 10.0), word(5.0, 60.0));
        assert_eq!(in_reading_order(vec![c, b, a]), [a, b, c]);
    }

    #[test]
    fn the_smaller_box_decides_how_much_two_overlap() {
        let word = |x: f64, w: f64| [[x, 0.0], [x + w, 0.0], [x + w, 20.0], [x, 20.0]];
        assert!(overlap(&word(0.0, 100.0), &word(20.0, 30.0)) > 0.99);
        assert!((overlap(&word(0.0, 100.0), &word(50.0, 100.0)) - 0.5).abs() < 0.05);
        assert_eq!(overlap(&word(0.0, 100.0), &word(200.0, 100.0)), 0.0);
    }
}

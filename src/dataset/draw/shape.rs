//! Outlines as signed distances: negative inside, positive outside, in the outline's own units.

/// A place; x to the right, y downwards.
pub(super) type Point = [f32; 2];

/// The outline of one part of an object.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// An ellipse: centre, radii.
    Oval(Point, Point),
    /// A box with rounded corners: centre, half sides, radius.
    Block(Point, Point, f32),
    /// A polygon, rounded off by a radius.
    Poly(Vec<Point>, f32),
    /// A line through points, with half its width.
    Line(Vec<Point>, f32),
    /// A circle's line: centre, radius, half its width.
    Ring(Point, f32, f32),
    /// What the first covers and the second does not.
    Cut(Box<Shape>, Box<Shape>),
    /// What any of them covers.
    Join(Vec<Shape>),
    /// A costly outline and a box around it (centre, half sides): from afar the box will do.
    Near(Point, Point, Box<Shape>),
}

impl Shape {
    /// A disc.
    pub(super) fn disc(centre: Point, radius: f32) -> Self {
        Self::Oval(centre, [radius, radius])
    }

    /// This without what `other` covers.
    pub(super) fn without(self, other: Self) -> Self {
        Self::Cut(Box::new(self), Box::new(other))
    }

    /// How far `p` is from the outline.
    pub(super) fn distance(&self, p: Point) -> f32 {
        match self {
            Self::Oval([cx, cy], [rx, ry]) => {
                let (x, y) = (p[0] - cx, p[1] - cy);
                if rx == ry {
                    return length(x, y) - rx;
                }
                let near = length(x / rx, y / ry);
                let slope = length(x / (rx * rx), y / (ry * ry));
                if slope < 1e-6 { -rx.min(*ry) } else { near * (near - 1.0) / slope }
            }
            Self::Block([cx, cy], [hx, hy], round) => {
                let (x, y) = ((p[0] - cx).abs() - hx + round, (p[1] - cy).abs() - hy + round);
                length(x.max(0.0), y.max(0.0)) + x.max(y).min(0.0) - round
            }
            Self::Poly(points, round) => polygon(points, p) - round,
            Self::Line(points, half) => {
                let ends = points.iter().zip(points.iter().skip(1));
                ends.map(|(a, b)| segment(*a, *b, p)).fold(f32::MAX, f32::min).sqrt() - half
            }
            Self::Ring([cx, cy], radius, half) => {
                (length(p[0] - cx, p[1] - cy) - radius).abs() - half
            }
            Self::Near(centre, half, shape) => {
                let afar = Self::Block(*centre, *half, 0.0).distance(p);
                if afar > 0.15 { afar } else { shape.distance(p) }
            }
            Self::Cut(shape, hole) => shape.distance(p).max(-hole.distance(p)),
            Self::Join(shapes) => shapes.iter().map(|s| s.distance(p)).fold(f32::MAX, f32::min),
        }
    }
}

fn length(x: f32, y: f32) -> f32 {
    (x * x + y * y).sqrt()
}

/// The squared distance to a line's piece.
fn segment(a: Point, b: Point, p: Point) -> f32 {
    let (ex, ey) = (b[0] - a[0], b[1] - a[1]);
    let (wx, wy) = (p[0] - a[0], p[1] - a[1]);
    let along = ((wx * ex + wy * ey) / (ex * ex + ey * ey).max(1e-9)).clamp(0.0, 1.0);
    let (dx, dy) = (wx - ex * along, wy - ey * along);
    dx * dx + dy * dy
}

/// The exact distance to a polygon.
fn polygon(points: &[Point], p: Point) -> f32 {
    let mut nearest = f32::MAX;
    let mut inside = false;
    let mut before = points.len().saturating_sub(1);
    for (at, &a) in points.iter().enumerate() {
        let b = points[before];
        nearest = nearest.min(segment(a, b, p));
        let crosses = (a[1] > p[1]) != (b[1] > p[1]);
        if crosses && p[0] < (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]) + a[0] {
            inside = !inside;
        }
        before = at;
    }
    if inside { -nearest.sqrt() } else { nearest.sqrt() }
}

/// A point on a circle; angles in turns, clockwise from the top.
pub(super) fn around(centre: Point, radius: f32, turns: f32) -> Point {
    let angle = turns * std::f32::consts::TAU;
    [centre[0] + radius * libm::sinf(angle), centre[1] - radius * libm::cosf(angle)]
}

/// Points along a circle's arc.
pub(super) fn arc(centre: Point, radius: f32, from: f32, to: f32, steps: u16) -> Vec<Point> {
    (0..=steps)
        .map(|i| around(centre, radius, from + (to - from) * f32::from(i) / f32::from(steps)))
        .collect()
}

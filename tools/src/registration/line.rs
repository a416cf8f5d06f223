//! Rows of the second picture, looked up through the whole map, and what that leaves unexplained.

use super::flow::{Flow, Row};
use super::global::{Found, Level};
use super::plane::{Histogram, Lookup};

/// Gradients below this do not tell a residual.
const TEXTURED: f32 = 3.0;

/// What a map leaves of the brightness: the median residual of textured pixels.
pub(crate) fn unexplained(flow: &Flow, global: &Found, first: &Level, second: &Level) -> f32 {
    let plane = &first.plane;
    let mut line = Line::new(plane.width);
    let mut residuals = Histogram::new(2048, 16.0);
    for y in (1..plane.height.saturating_sub(1)).step_by(3) {
        line.look_up(flow, global, first, second, y);
        let (above, row, below) = (plane.row(y - 1), plane.row(y), plane.row(y + 1));
        for x in 1..plane.width.saturating_sub(1) {
            let gradient = ((row[x + 1] - row[x - 1]).abs() + (below[x] - above[x]).abs()) * 0.5;
            if gradient > TEXTURED && line.valid[x] > 0.5 {
                residuals.add((line.value[x] - row[x]).abs());
            }
        }
    }
    residuals.median()
}

/// A row of the second picture, looked up where the first one's pixels lie in it.
pub(crate) struct Line {
    xs: Vec<f32>,
    ys: Vec<f32>,
    moves: Row,
    lookup: Lookup,
    pub(crate) value: Vec<f32>,
    /// 1 where the second picture shows the place.
    pub(crate) valid: Vec<f32>,
}

impl Line {
    pub(crate) fn new(width: usize) -> Self {
        let row = || vec![0.0; width];
        let (moves, lookup) = (Row::new(width), Lookup::new(width));
        Self { xs: row(), ys: row(), moves, lookup, value: row(), valid: row() }
    }

    pub(crate) fn look_up(
        &mut self,
        flow: &Flow,
        global: &Found,
        first: &Level,
        second: &Level,
        y: usize,
    ) {
        global.affine.row(first.extent, y, &mut self.xs, &mut self.ys);
        flow.add_row(first.scale, y, &mut self.moves, &mut self.xs, &mut self.ys);
        let points = (self.xs.as_slice(), self.ys.as_slice());
        self.lookup.bilinear(&second.plane, points, 1.0, &mut self.value, &mut self.valid);
    }
}

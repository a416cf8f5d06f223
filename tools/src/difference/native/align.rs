//! How the second picture lies on the first, to a fraction of a pixel of the common grid.

use rayon::prelude::*;

use super::frames::{Area, Frames};
use crate::registration::flow::{CELL, Flow, Windows};
use crate::registration::global::{Affine, Found, Level};
use crate::registration::line::{Line, unexplained};
use crate::registration::plane::{Histogram, Plane};

/// A grid with a longer side is aligned at half its size: moves are smooth, and that is enough.
const WHOLE_UNTIL: usize = 1800;
/// Smoothing before alignment, in its pixels.
const BLUR: f32 = 0.7;
/// The window in which it is told whether anything moved, and the first of the search.
const WIDE: Windows = Windows { sigma: 32.0, cell: 16 };
/// The second of the search.
const NARROW: Windows = Windows { sigma: 16.0, cell: 8 };
/// Steps of each.
const STEPS: usize = 3;
/// The search ends where nearly all cells move less than this, in pixels.
const SHORTEST_STEP: f32 = 0.03;
/// Where textured cells move less than this, in pixels of the grid, nothing moved.
const UNMOVED: f32 = 0.12;
/// The coarse map must explain the pictures better than no map by this factor to be believed.
const BETTER: f32 = 1.02;
/// A residual counts at most this much when starts are compared.
const CAP: f32 = 25.0;
/// Costs of simpler starts than the coarse local field count this much: that field invents moves on flat
/// ground.
const SIMPLER: f32 = 0.98;
/// σ over which costs of starts are pooled, in cells.
const POOL: f32 = 3.0;
/// No move at all is thought of only where the global map moves less than this part of the long side.
const NEARLY_STILL: f64 = 0.002;

/// The map from the grid of the first picture into that of the second.
pub(super) struct Alignment {
    size: (usize, usize),
    /// None where nothing moved.
    map: Option<Map>,
}

struct Map {
    affine: Affine,
    flow: Flow,
    /// Pixels of the grid per pixel of the field.
    step: usize,
}

impl Alignment {
    /// Where nothing moved.
    pub(super) fn none(frames: &Frames<'_>) -> Self {
        Self { size: frames.size(), map: None }
    }

    /// From a coarse map: the affine one, and the local field in pixels of a frame of `coarse`.
    pub(super) fn find(
        frames: &Frames<'_>,
        found: &Found,
        flow: &Flow,
        coarse: (usize, usize),
    ) -> Self {
        let step = if frames.long() > WHOLE_UNTIL { 2 } else { 1 };
        let [own, their] = frames.luma(step == 2);
        let levels = |plane: Plane| {
            let extent = (frames.width as f64 / step as f64, frames.height as f64 / step as f64);
            let half = plane.halved().blurred(BLUR);
            let whole = plane.blurred(BLUR);
            [
                Level { plane: whole, scale: 1, extent },
                Level { plane: half, scale: 2, extent: (extent.0 / 2.0, extent.1 / 2.0) },
            ]
        };
        let (first, second) = rayon::join(|| levels(own), || levels(their));
        let mut global = *found;
        (global.gain, global.bias) = (1.0, 0.0);
        let mut still = global;
        still.affine = Affine::IDENTITY;

        let size = (first[0].plane.width, first[0].plane.height);
        let none = Flow::none(size.0, size.1);
        let coarse_flow = flow.resampled(size, coarse);
        let is_still = global.affine == Affine::IDENTITY && flow.reach() == 0.0;
        let mut probe = none.clone();
        let mut sigma = found.sigma;
        probe.step(&first[1], &second[1], &still, WIDE, &mut sigma);
        let moved = textured_moves(&probe, &first[0].plane) * step as f32;
        // Local moves are invented on flat ground; a whole frame that moved is not.
        let nearly_still =
            global.affine.reach(size.0, size.1) < NEARLY_STILL * size.0.max(size.1) as f64;
        if moved < UNMOVED && nearly_still {
            let left =
                |flow: &Flow, global: &Found| unexplained(flow, global, &first[1], &second[1]);
            if is_still || left(&none, &still) <= BETTER * left(&coarse_flow, &global) {
                return Self::none(frames);
            }
        }

        let mut starts = vec![(coarse_flow.clone(), 1.0), (none, SIMPLER)];
        if nearly_still {
            starts.push((against(&global.affine, size), SIMPLER));
        }
        let mut flow = best_start(starts, &global, &first[1], &second[1]);
        for (level, windows) in [(1, WIDE), (0, NARROW)] {
            for _ in 0..STEPS {
                let went = flow.step(&first[level], &second[level], &global, windows, &mut sigma);
                if went.most < SHORTEST_STEP {
                    break;
                }
            }
        }
        Self { size: frames.size(), map: Some(Map { affine: global.affine, flow, step }) }
    }

    pub(super) fn moved(&self) -> bool {
        self.map.is_some()
    }

    /// Where the pixels of `area` lie in the second picture.
    pub(super) fn places(&self, area: &Area, shift: (f32, f32)) -> (Plane, Plane) {
        let (width, height) = (area.width(), area.height());
        let (mut xs, mut ys) = (Plane::unset(width, height), Plane::unset(width, height));
        let extent = (self.size.0 as f64, self.size.1 as f64);
        let mut moves = vec![0.0; width];
        let rows = xs.data.chunks_exact_mut(width).zip(ys.data.chunks_exact_mut(width));
        for (i, (xs, ys)) in rows.enumerate() {
            let y = area.y1 + i;
            match &self.map {
                Some(map) => {
                    map.affine.part_of_row(extent, (area.x1, y), xs, ys);
                    let (cell, factor) = (CELL * map.step, map.step as f32);
                    for (field, points) in [(&map.flow.u, &mut *xs), (&map.flow.v, &mut *ys)] {
                        field.expand_part(y as f32 + 0.5, cell, area.x1, &mut moves);
                        points.iter_mut().zip(&moves).for_each(|(p, m)| *p += m * factor);
                    }
                }
                None => {
                    xs.iter_mut().enumerate().for_each(|(k, x)| *x = (area.x1 + k) as f32);
                    ys.fill(y as f32);
                }
            }
            xs.iter_mut().for_each(|x| *x += shift.0);
            ys.iter_mut().for_each(|y| *y += shift.1);
        }
        (xs, ys)
    }
}

/// The move that four of five textured cells stay below, in pixels of the field.
fn textured_moves(flow: &Flow, luma: &Plane) -> f32 {
    let (cols, rows) = (flow.u.width, flow.u.height);
    let mut gradients = vec![0.0f32; cols * rows];
    // A few pixels of each cell are enough.
    for y in (1..luma.height.saturating_sub(1)).step_by(3) {
        let (above, row, below) = (luma.row(y - 1), luma.row(y), luma.row(y + 1));
        for x in (1..luma.width.saturating_sub(1)).step_by(3) {
            let gradient = (row[x + 1] - row[x - 1]).abs() + (below[x] - above[x]).abs();
            gradients[(y / CELL).min(rows - 1) * cols + (x / CELL).min(cols - 1)] += gradient;
        }
    }
    let mut spread = gradients.clone();
    spread.sort_by(f32::total_cmp);
    let median = spread[spread.len() / 2];
    let mut moves = Histogram::new(1024, 256.0);
    for ((u, v), gradient) in flow.u.data.iter().zip(&flow.v.data).zip(&gradients) {
        if *gradient >= median {
            moves.add(u.abs().max(v.abs()));
        }
    }
    moves.quantile(0.8)
}

/// The field that takes the global map back.
fn against(affine: &Affine, (width, height): (usize, usize)) -> Flow {
    let mut flow = Flow::none(width, height);
    let cols = flow.u.width;
    let (w, h) = (width as f64, height as f64);
    for (at, (u, v)) in flow.u.data.iter_mut().zip(&mut flow.v.data).enumerate() {
        let centre = |k: usize| (k as f64 + 0.5) * CELL as f64;
        let (x, y) = (centre(at % cols) / w - 0.5, centre(at / cols) / h - 0.5);
        let (px, py) = affine.apply((x, y));
        (*u, *v) = (((x - px) * w) as f32, ((y - py) * h) as f32);
    }
    flow
}

/// Of several fields, in each cell the one that explains its surroundings best, costs weighed with their
/// factors.
fn best_start(starts: Vec<(Flow, f32)>, global: &Found, first: &Level, second: &Level) -> Flow {
    let costs: Vec<Plane> = starts
        .par_iter()
        .map(|(flow, factor)| {
            let mut cost = costs(flow, global, first, second).blurred(POOL);
            cost.data.iter_mut().for_each(|c| *c *= factor);
            cost
        })
        .collect();
    let mut best = starts[0].0.clone();
    for (i, (u, v)) in best.u.data.iter_mut().zip(&mut best.v.data).enumerate() {
        let mut least = costs[0].data[i];
        for ((flow, _), cost) in starts.iter().zip(&costs).skip(1) {
            if cost.data[i] < least {
                least = cost.data[i];
                (*u, *v) = (flow.u.data[i], flow.v.data[i]);
            }
        }
    }
    best.u = median3(&best.u);
    best.v = median3(&best.v);
    best
}

/// Mean capped residual of each cell of the field.
fn costs(flow: &Flow, global: &Found, first: &Level, second: &Level) -> Plane {
    let cell = CELL / first.scale;
    let mut out = Plane::new(flow.u.width, flow.u.height);
    let (cols, width) = (out.width, first.plane.width);
    out.data.par_chunks_mut(cols).enumerate().for_each(|(j, out)| {
        let mut sums = vec![(0.0f32, 0.0f32); cols];
        let mut line = Line::new(width);
        for y in j * cell..((j + 1) * cell).min(first.plane.height) {
            line.look_up(flow, global, first, second, y);
            for (x, own) in first.plane.row(y).iter().enumerate() {
                let sum = &mut sums[(x / cell).min(cols - 1)];
                let r = (line.value[x] - own).abs();
                sum.0 += if r < CAP { r } else { CAP } * line.valid[x];
                sum.1 += line.valid[x];
            }
        }
        for (out, (sum, count)) in out.iter_mut().zip(sums) {
            // What the second picture does not show speaks for no start.
            *out = if count > 0.0 { sum / count } else { CAP };
        }
    });
    out
}

/// The median of each value and its eight neighbours.
fn median3(plane: &Plane) -> Plane {
    plane.map_rows(|y, out| {
        let rows = [-1, 0, 1].map(|k| plane.row_clamped(y as isize + k));
        for (x, out) in out.iter_mut().enumerate() {
            let mut nine = [0.0f32; 9];
            for (j, row) in rows.iter().enumerate() {
                for k in 0..3 {
                    nine[3 * j + k] = row[(x + k).saturating_sub(1).min(row.len() - 1)];
                }
            }
            nine.sort_by(f32::total_cmp);
            *out = nine[4];
        }
    })
}

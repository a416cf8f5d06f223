//! Pixels that differ, joined where they touch.

use super::frames::Area;
use super::noise::Pooled;
use crate::difference::focus::Boxes;
use crate::difference::regions::{Blob, root};
use crate::difference::settings::Settings;

/// Pixels beside each other in a row that differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) y: usize,
    pub(super) x1: usize,
    pub(super) x2: usize,
    mass: f32,
    peak_z: f32,
    peak_difference: f32,
}

impl Run {
    fn blob(&self) -> Blob {
        Blob {
            area: [self.x1, self.y, self.x2, self.y + 1],
            pixels: self.x2 - self.x1,
            mass: self.mass,
            peak_z: self.peak_z,
            peak_difference: self.peak_difference,
        }
    }
}

/// A connected group of pixels that differ.
#[derive(Debug, Clone)]
pub(super) struct Component {
    pub(super) blob: Blob,
    pub(super) runs: Vec<Run>,
}

/// The runs of pixels in `core` that differ, where they are asked for.
pub(super) fn runs(
    core: &Area,
    pooled: &Pooled,
    settings: &Settings,
    asked: Option<&Boxes>,
) -> Vec<Run> {
    let least = settings.native.region_difference;
    let mut runs = Vec::new();
    for y in core.y1..core.y2 {
        let (zs, ds) =
            (pooled.z.row(y - pooled.area.y1), pooled.difference.row(y - pooled.area.y1));
        let mut open: Option<Run> = None;
        for x in core.x1..core.x2 {
            let (z, d) = (zs[x - pooled.area.x1], ds[x - pooled.area.x1]);
            let differs = z > settings.region_z && d > least;
            if !differs || asked.is_some_and(|boxes| !boxes.allow(x, y)) {
                runs.extend(open.take());
                continue;
            }
            let run = open.get_or_insert(Run {
                y,
                x1: x,
                x2: x,
                mass: 0.0,
                peak_z: 0.0,
                peak_difference: 0.0,
            });
            run.x2 = x + 1;
            run.mass += z - settings.region_z;
            run.peak_z = run.peak_z.max(z);
            run.peak_difference = run.peak_difference.max(d);
        }
        runs.extend(open);
    }
    runs
}

/// The groups of runs that touch, corners too.
pub(super) fn joined(mut runs: Vec<Run>) -> Vec<Component> {
    runs.sort_by_key(|run| (run.y, run.x1));
    let mut parents: Vec<usize> = (0..runs.len()).collect();
    // Of the row above and of this one, where they begin among the runs.
    let (mut above, mut start) = (0..0, 0);
    for i in 0..runs.len() {
        let run = runs[i];
        if runs[start].y != run.y {
            above = if runs[start].y + 1 == run.y { start..i } else { 0..0 };
            start = i;
        }
        // Parts of the grid are searched one by one: their runs meet at the border.
        if i > start && runs[i - 1].x2 == run.x1 {
            link(&mut parents, i - 1, i);
        }
        while above.start < above.end && runs[above.start].x2 < run.x1 {
            above.start += 1;
        }
        for j in above.clone() {
            if runs[j].x1 > run.x2 {
                break;
            }
            link(&mut parents, i, j);
        }
    }
    let mut order: Vec<Option<usize>> = vec![None; runs.len()];
    let mut components: Vec<Component> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let root = root(&mut parents, i);
        match order[root] {
            Some(at) => {
                components[at].blob = components[at].blob.with(&run.blob());
                components[at].runs.push(*run);
            }
            None => {
                order[root] = Some(components.len());
                components.push(Component { blob: run.blob(), runs: vec![*run] });
            }
        }
    }
    components
}

fn link(parents: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(parents, a), root(parents, b));
    parents[a.max(b)] = a.min(b);
}

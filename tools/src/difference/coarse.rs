//! The first look: both pictures in a small frame, laid onto each other, everything global made up for.

use super::measure::{self, Measure};
use super::radiometry::{QUARTER, Radiometry};
use super::regions::{self, Blob, Found as Components};
use super::settings::Settings;
use super::{Nuisance, Region};
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::Registration;
use crate::registration::flow::{CELL, Flow};
use crate::registration::frame::Frame;
use crate::registration::global::{Found, Level, pyramid};
use crate::registration::line::unexplained;
use crate::registration::plane::{Histogram, Plane};
use crate::registration::warp::warp;

/// Tone and light are told where they lower the difference by this factor.
const EXPLAINS: f64 = 0.95;
/// The same for a local field.
const FIELD_EXPLAINS: f32 = 0.97;
/// Where fine detail agrees less than this, from −1 to 1, it was drawn anew.
const REDRAWN: f64 = 0.9;

/// What the small frame shows.
pub(super) struct Coarse {
    /// The frame.
    pub(super) size: Size,
    pub(super) registration: Registration,
    pub(super) found: Found,
    pub(super) flow: Flow,
    pub(super) radiometry: Radiometry,
    pub(super) measure: Measure,
    /// Whether the local field leaves less of the brightness unexplained than none.
    flow_explains: bool,
    /// The first picture, and the second brought onto it.
    first: [Plane; 3],
    second: [Plane; 3],
}

impl Coarse {
    /// Looks at two frames; where they are `exact`, nothing is made up for.
    pub(super) fn look(
        (first, second): (&Picture, &Picture),
        (source, edited): (Frame, Frame),
        size: Size,
        exact: bool,
        settings: &Settings,
    ) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let (registration, found, flow, flow_explains) = if exact {
            let still = Registration::identity(first.size(), second.size());
            (still, Found::still(), Flow::none(width, height), false)
        } else {
            let (mut levels, edited_levels) =
                rayon::join(|| pyramid(&source.luma), || pyramid(&edited.luma));
            let (registration, found) =
                Registration::of_levels(first.size(), second.size(), &mut levels, &edited_levels);
            let flow = if registration.is_reliable() {
                Flow::estimate(&levels, &edited_levels, (width, height), &found)
            } else {
                Flow::none(width, height)
            };
            let explains = explains(&flow, &found, &levels, &edited_levels, (width, height));
            (registration, found, flow, explains)
        };
        let warped = warp(edited, &found.affine, &flow, settings.border);
        let (rgb, mask) = (warped.rgb, &warped.mask);
        let radiometry = if exact {
            Radiometry::none()
        } else {
            Radiometry::estimate(&source.rgb, &rgb, mask, settings)
        };
        let measure =
            measure::measure(&source.rgb, &rgb, mask, &radiometry, warped.moved, settings);
        let (first, second) = (source.rgb, rgb);
        Self { size, registration, found, flow, radiometry, measure, flow_explains, first, second }
    }

    /// Groups the pixels that differ.
    pub(super) fn components(&self, settings: &Settings) -> Components {
        regions::find(&self.measure, settings)
    }

    /// What was made up for, as it is seen where nothing differs.
    pub(super) fn nuisance(&self, settings: &Settings) -> Nuisance {
        let scale =
            f64::from(self.registration.first().long_side()) / f64::from(self.size.long_side());
        let outside = |x: usize, y: usize| self.measure.z.row(y)[x] <= settings.region_z;
        let (width, height) = (self.measure.z.width, self.measure.z.height);
        let mut moves = Histogram::new(4096, 64.0);
        let mut gains = [Histogram::new(1000, 1000.0), Histogram::new(1000, 1000.0)];
        let (mut tone, mut count) = ([0.0f64; 3], 0.0f64);
        let (mut plain, mut toned) = (0.0f64, 0.0f64);
        // Every third pixel is plenty.
        let places =
            (0..height).step_by(3).flat_map(|y| (0..width).step_by(3).map(move |x| (x, y)));
        for (x, y) in places.filter(|&(x, y)| outside(x, y)) {
            let cell = |v: usize| (v as f32 + 0.5) / CELL as f32 - 0.5;
            let (u, v) =
                (self.flow.u.sample(cell(x), cell(y)), self.flow.v.sample(cell(x), cell(y)));
            moves.add(u.abs().max(v.abs()));
            let mut gain = 0.0;
            for c in 0..3 {
                let (own, their) = (self.first[c].row(y)[x], self.second[c].row(y)[x]);
                let predicted = self.radiometry.predicted(c, own, x, y);
                tone[c] += f64::from(predicted - own);
                plain += f64::from((their - own).abs());
                toned += f64::from((their - predicted).abs());
                gain += self.radiometry.light.at(c, x, y, QUARTER) / 3.0;
            }
            gains[usize::from(gain > 0.0)].add(gain.abs());
            gains[usize::from(gain <= 0.0)].add(0.0);
            count += 1.0;
        }
        let explains = toned < EXPLAINS * plain;
        let light = |side: &Histogram| if explains { f64::from(side.quantile(0.98)) } else { 0.0 };
        let (detail, sharper) = self.detail(settings);
        let blur = f64::from(self.radiometry.blur) * scale;
        let softens = (blur > 0.0) == (sharper < 1.0);
        Nuisance {
            warp: if self.flow_explains { f64::from(moves.quantile(0.9)) * scale } else { 0.0 },
            tone: if explains { tone.map(|t| t / count.max(1.0)) } else { [0.0; 3] },
            blur: if softens { blur } else { 0.0 },
            relighting: [-light(&gains[0]), light(&gains[1])],
            noise: f64::from(self.measure.noise),
            detail,
            redrawn: self.registration.is_reliable() && detail < REDRAWN,
        }
    }

    /// How far the gradients of both pictures agree where nothing differs, and how much steeper the second
    /// one's are.
    fn detail(&self, settings: &Settings) -> (f64, f64) {
        let [a, b] = &self.measure.luma;
        let (mut shared, mut own, mut their) = (0.0f64, 0.0f64, 0.0f64);
        for y in (1..a.height.saturating_sub(1)).step_by(2) {
            for x in 1..a.width.saturating_sub(1) {
                if self.measure.z.row(y)[x] > settings.region_z {
                    continue;
                }
                let slopes = |plane: &Plane| {
                    let across = plane.row(y)[x + 1] - plane.row(y)[x - 1];
                    (f64::from(across), f64::from(plane.row(y + 1)[x] - plane.row(y - 1)[x]))
                };
                let ((ax, ay), (bx, by)) = (slopes(a), slopes(b));
                shared += ax * bx + ay * by;
                own += ax * ax + ay * ay;
                their += bx * bx + by * by;
            }
        }
        if own > 0.0 && their > 0.0 {
            (shared / (own * their).sqrt(), (their / own).sqrt())
        } else {
            (1.0, 1.0)
        }
    }

    /// A box of the frame, grown by `padding` of its pixels, in pixels of the first picture.
    pub(super) fn on_first(&self, area: [usize; 4], padding: f64) -> PixelBox {
        let first = self.registration.first();
        let [x1, y1, x2, y2] = area.map(|v| v as f64);
        PixelBox::new(x1, y1, x2, y2)
            .grown(padding, padding)
            .mapped(&PixelBox::whole(self.size), &PixelBox::whole(first))
            .whole_pixels(first)
    }

    /// A group of pixels as a region.
    pub(super) fn region(&self, blob: &Blob, settings: &Settings) -> Region {
        let mut region =
            Region::new(self.on_first(blob.area, settings.padding), &self.registration);
        region.strength = f64::from(blob.peak_difference);
        region.significance = f64::from(blob.peak_z);
        region.mass = f64::from(blob.mass);
        let [x1, y1, x2, y2] = blob.area.map(|v| v as f64);
        self.describe(&mut region, &PixelBox::new(x1, y1, x2, y2), settings);
        region
    }

    /// Tells the colours and the structure of a region from what differs in a box of the frame.
    pub(super) fn describe(&self, region: &mut Region, area: &PixelBox, settings: &Settings) {
        let area = area.whole_pixels(self.size).edges().map(|v| v as usize);
        [region.colour_first, region.colour_second] = self.colours(area, settings);
        region.structure = self.structure(area, settings);
    }

    /// Mean colours of the differing pixels, in the first picture as the second would show it, and in
    /// the second.
    fn colours(&self, area: [usize; 4], settings: &Settings) -> [[f64; 3]; 2] {
        let mut sums = [[0.0f64; 3]; 2];
        let mut count = 0.0f64;
        for (x, y) in differing(area, &self.measure, settings) {
            for c in 0..3 {
                let own = self.radiometry.predicted(c, self.first[c].row(y)[x], x, y);
                sums[0][c] += f64::from(own);
                sums[1][c] += f64::from(self.second[c].row(y)[x]);
            }
            count += 1.0;
        }
        sums.map(|sum| sum.map(|s| s / count.max(1.0)))
    }

    /// How far the brightness's slope changed, on average over the differing pixels.
    fn structure(&self, area: [usize; 4], settings: &Settings) -> f64 {
        let measure = &self.measure;
        let slopes = |plane: &Plane, x: usize, y: usize| {
            let right = plane.row(y)[(x + 1).min(plane.width - 1)];
            let below = plane.row_clamped(y as isize + 1)[x];
            (right - plane.row(y)[x], below - plane.row(y)[x])
        };
        let (mut sum, mut count) = (0.0f64, 0.0f64);
        for (x, y) in differing(area, measure, settings) {
            let (a, b) = (slopes(&measure.luma[0], x, y), slopes(&measure.luma[1], x, y));
            let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
            sum += (dx * dx + dy * dy).sqrt();
            count += 1.0;
        }
        sum / count.max(1.0)
    }
}

/// Whether the local field leaves less unexplained than none.
fn explains(
    flow: &Flow,
    global: &Found,
    first: &[Level],
    second: &[Level],
    (width, height): (usize, usize),
) -> bool {
    if flow.reach() == 0.0 {
        return false;
    }
    let none = Flow::none(width, height);
    let left = |flow: &Flow| unexplained(flow, global, &first[0], &second[0]);
    left(flow) < FIELD_EXPLAINS * left(&none)
}

/// The pixels of a box that differ.
fn differing<'a>(
    [x1, y1, x2, y2]: [usize; 4],
    measure: &'a Measure,
    settings: &'a Settings,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    (y1..y2)
        .flat_map(move |y| (x1..x2).map(move |x| (x, y)))
        .filter(|&(x, y)| measure.z.row(y)[x] > settings.region_z)
}

//! The first look: both pictures in a small frame, laid onto each other, everything global made up for.

use super::measure::{self, Measure};
use super::radiometry::Radiometry;
use super::regions::{self, Blob, Found as Components};
use super::settings::Settings;
use super::{Nuisance, Region};
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;
use crate::registration::Registration;
use crate::registration::flow::Flow;
use crate::registration::frame::Frame;
use crate::registration::global::{Found, pyramid};
use crate::registration::plane::Plane;
use crate::registration::warp::warp;

/// What the small frame shows.
pub(super) struct Coarse {
    /// The frame.
    pub(super) size: Size,
    pub(super) registration: Registration,
    pub(super) found: Found,
    pub(super) flow: Flow,
    pub(super) radiometry: Radiometry,
    pub(super) measure: Measure,
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
        let (registration, found, flow) = if exact {
            let still = Registration::identity(first.size(), second.size());
            (still, Found::still(), Flow::none(width, height))
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
            (registration, found, flow)
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
        Self {
            size,
            registration,
            found,
            flow,
            radiometry,
            measure,
            first: source.rgb,
            second: rgb,
        }
    }

    /// Groups the pixels that differ.
    pub(super) fn components(&self, settings: &Settings) -> Components {
        regions::find(&self.measure, settings)
    }

    /// What was made up for.
    pub(super) fn nuisance(&self) -> Nuisance {
        let scale =
            f64::from(self.registration.first().long_side()) / f64::from(self.size.long_side());
        let curves = &self.radiometry.curves;
        Nuisance {
            warp: f64::from(self.flow.reach()) * scale,
            tone: curves.iter().map(|c| f64::from(c.strength())).sum::<f64>() / 3.0,
            blur: f64::from(self.radiometry.blur) * scale,
            relighting: f64::from(self.radiometry.light.reach()),
            noise: f64::from(self.measure.noise),
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
        let bbox = self.on_first(blob.area, settings.padding);
        let [own, their] = self.colours(blob, settings);
        let mut region = Region::new(bbox, &self.registration);
        region.strength = f64::from(blob.peak_difference);
        region.significance = f64::from(blob.peak_z);
        region.mass = f64::from(blob.mass);
        (region.colour_first, region.colour_second) = (own, their);
        region.structure = self.structure(blob, settings);
        region
    }

    /// Mean colours of the differing pixels, in the first picture as the second would show it, and in
    /// the second.
    fn colours(&self, blob: &Blob, settings: &Settings) -> [[f64; 3]; 2] {
        let mut sums = [[0.0f64; 3]; 2];
        let mut count = 0.0f64;
        for (x, y) in differing(blob, &self.measure, settings) {
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
    fn structure(&self, blob: &Blob, settings: &Settings) -> f64 {
        let measure = &self.measure;
        let slopes = |plane: &Plane, x: usize, y: usize| {
            let right = plane.row(y)[(x + 1).min(plane.width - 1)];
            let below = plane.row_clamped(y as isize + 1)[x];
            (right - plane.row(y)[x], below - plane.row(y)[x])
        };
        let (mut sum, mut count) = (0.0f64, 0.0f64);
        for (x, y) in differing(blob, measure, settings) {
            let (a, b) = (slopes(&measure.luma[0], x, y), slopes(&measure.luma[1], x, y));
            let (dx, dy) = (f64::from(b.0 - a.0), f64::from(b.1 - a.1));
            sum += (dx * dx + dy * dy).sqrt();
            count += 1.0;
        }
        sum / count.max(1.0)
    }
}

/// The pixels of a blob's box that differ.
fn differing<'a>(
    blob: &'a Blob,
    measure: &'a Measure,
    settings: &'a Settings,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let [x1, y1, x2, y2] = blob.area;
    (y1..y2)
        .flat_map(move |y| (x1..x2).map(move |x| (x, y)))
        .filter(|&(x, y)| measure.z.row(y)[x] > settings.region_z)
}

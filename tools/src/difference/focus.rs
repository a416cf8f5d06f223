//! Where to look: inside a box, and not inside others.

use super::measure::Measure;
use super::settings::Settings;
use crate::coords::{PixelBox, Size};

/// Which part of the first picture is compared, in its pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Focus {
    /// Only what lies in this box, and with lower thresholds.
    pub inside: Option<PixelBox>,
    /// Nothing that lies in these.
    pub ignore: Vec<PixelBox>,
}

/// Inside a box that was asked for, thresholds are this part of the usual ones: whoever asks looks closely
/// and can tell noise by eye.
const SENSITIVE: f32 = 0.6;
/// A mass there, likewise.
const SENSITIVE_MASS: f32 = 0.25;

impl Focus {
    /// Whether everything is compared.
    pub fn is_everything(&self) -> bool {
        self.inside.is_none() && self.ignore.is_empty()
    }

    /// The thresholds for it.
    pub(super) fn settings(&self, settings: &Settings) -> Settings {
        let mut settings = settings.clone();
        if self.inside.is_some() {
            settings.region_z *= SENSITIVE;
            settings.region_difference *= SENSITIVE;
            settings.peak_z *= SENSITIVE;
            settings.peak_difference *= SENSITIVE;
            settings.least_mass *= SENSITIVE_MASS;
            let native = &mut settings.native;
            native.region_difference *= SENSITIVE;
            native.peak_z *= SENSITIVE;
            native.peak_difference *= SENSITIVE;
            native.least_mass *= SENSITIVE_MASS;
        }
        settings
    }

    /// The same on a grid of this size, for a first picture of the size `first`.
    pub(super) fn on(&self, width: usize, height: usize, first: Size) -> Boxes {
        let grid = PixelBox::new(0.0, 0.0, width as f64, height as f64);
        let whole = PixelBox::whole(first);
        let put = |area: &PixelBox| area.mapped(&whole, &grid);
        Boxes {
            inside: self.inside.as_ref().map(put),
            ignore: self.ignore.iter().map(put).collect(),
        }
    }

    /// Takes differences away that are not asked for.
    pub(super) fn apply(&self, measure: &mut Measure, first: Size) {
        if self.is_everything() {
            return;
        }
        let boxes = self.on(measure.z.width, measure.z.height, first);
        let width = measure.z.width;
        for (at, (z, d)) in measure.z.data.iter_mut().zip(&mut measure.difference.data).enumerate()
        {
            if !boxes.allow(at % width, at / width) {
                (*z, *d) = (0.0, 0.0);
            }
        }
    }
}

/// A [`Focus`] on a grid of pixels.
pub(super) struct Boxes {
    inside: Option<PixelBox>,
    ignore: Vec<PixelBox>,
}

impl Boxes {
    /// Whether a pixel is compared.
    pub(super) fn allow(&self, x: usize, y: usize) -> bool {
        let (x, y) = (x as f64 + 0.5, y as f64 + 0.5);
        let holds = |area: &PixelBox| x >= area.x1 && x < area.x2 && y >= area.y1 && y < area.y2;
        self.inside.as_ref().is_none_or(holds) && !self.ignore.iter().any(holds)
    }
}

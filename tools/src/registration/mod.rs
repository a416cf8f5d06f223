//! Where a point of the first picture is in the second.
//!
//! Editors return another size, another shape, a shifted or cut frame. [`Registration`] finds that
//! from the pictures and maps boxes through it.

pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod global;
pub(crate) mod line;
pub(crate) mod plane;
pub(crate) mod relighting;
pub(crate) mod warp;

use serde::Serialize;

use self::frame::{Frame, frame_size};
use self::global::{Affine, Found, Level, pyramid, register};
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;

/// Long side of the frame in which pictures are compared.
pub(crate) const FRAME: u32 = 768;
/// The gradients of registered pictures agree at least this much, from −1 to 1; below, the
/// registration is not believed and boxes are mapped proportionally.
const BELIEVED: f64 = 0.25;
/// A side that lost less than this part of the picture was not cut, but shifted or rounded.
const CUT: f64 = 0.005;

/// How the frame of the second picture lies on the first.
#[derive(Debug, Clone)]
pub struct Registration {
    first: Size,
    second: Size,
    affine: Affine,
    agreement: f64,
}

/// What lies between two pictures besides edits: what registration makes up for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compensation {
    /// The parts cut off the first picture's left, top, right and bottom, where a side lost more
    /// than half a percent.
    pub cut: Option<[f64; 4]>,
    /// How far the centre moved, in pixels of the second picture.
    pub shift: [f64; 2],
    /// How much larger things are in the second picture, across and down, beside the change of
    /// size.
    pub scale: [f64; 2],
    /// Clockwise turn in degrees.
    pub rotation: f64,
}

impl Registration {
    /// Estimates it from the two pictures.
    pub fn estimate(first: &Picture, second: &Picture) -> Self {
        let size = frame_size(first.size(), second.size(), FRAME);
        let (mut a, b) = rayon::join(
            || pyramid(&Frame::of(first, size).luma),
            || pyramid(&Frame::of(second, size).luma),
        );
        Self::of_levels(first.size(), second.size(), &mut a, &b).0
    }

    /// The pictures as they are: boxes are mapped proportionally.
    pub fn identity(first: Size, second: Size) -> Self {
        Self { first, second, affine: Affine::IDENTITY, agreement: 1.0 }
    }

    /// Size of the first picture.
    pub fn first(&self) -> Size {
        self.first
    }

    /// Size of the second picture.
    pub fn second(&self) -> Size {
        self.second
    }

    /// The same from the pyramids of both frames.
    pub(crate) fn of_levels(
        first: Size,
        second: Size,
        first_levels: &mut [Level],
        second_levels: &[Level],
    ) -> (Self, Found) {
        let mut found = register(first_levels, second_levels);
        let agreement = agreement(first_levels, second_levels, &found.affine);
        if !(agreement >= BELIEVED) || found.affine.inverse().is_none() {
            found.affine = Affine::IDENTITY;
        }
        (Self { first, second, affine: found.affine, agreement }, found)
    }

    /// How far the gradients of the registered pictures agree, −1 to 1; unrelated pictures are
    /// near 0.
    pub fn agreement(&self) -> f64 {
        self.agreement
    }

    /// Whether the pictures show the same scene, so that the map can be believed; where not, boxes
    /// are mapped proportionally.
    pub fn is_reliable(&self) -> bool {
        self.agreement >= BELIEVED
    }

    /// A box on the first picture, in pixels of the second; it may reach beyond the picture.
    pub fn to_second(&self, area: &PixelBox) -> PixelBox {
        moved(area, self.first, self.second, &self.affine)
    }

    /// A box on the second picture, in pixels of the first; it may reach beyond the picture.
    pub fn to_first(&self, area: &PixelBox) -> PixelBox {
        let back = self.affine.inverse().unwrap_or(Affine::IDENTITY);
        let whole = (PixelBox::whole(self.second), PixelBox::whole(self.first));
        let (x, y) = area.centre();
        let (w, h) = (whole.0.width(), whole.0.height());
        let (x, y) = back.apply((x / w - 0.5, y / h - 0.5));
        let p = self.affine.0;
        let half_width = area.width() / w / (1.0 + p[1]) * whole.1.width() / 2.0;
        let half_height = area.height() / h / (1.0 + p[5]) * whole.1.height() / 2.0;
        around(((x + 0.5) * whole.1.width(), (y + 0.5) * whole.1.height()), half_width, half_height)
    }

    /// The part of the first picture that the second still shows, in pixels of the first.
    pub fn visible(&self) -> PixelBox {
        self.to_first(&PixelBox::whole(self.second)).clipped(self.first)
    }

    /// What registration makes up for.
    pub fn compensation(&self) -> Compensation {
        let p = self.affine.0;
        let (w, h) = (f64::from(self.second.width), f64::from(self.second.height));
        let visible = self.visible();
        let (fw, fh) = (f64::from(self.first.width), f64::from(self.first.height));
        let cut = [visible.x1 / fw, visible.y1 / fh, 1.0 - visible.x2 / fw, 1.0 - visible.y2 / fh]
            .map(|part| if part > CUT { part } else { 0.0 });
        let radians = (p[4] * h / w - p[2] * w / h) / 2.0;
        Compensation {
            cut: cut.iter().any(|&part| part > 0.0).then_some(cut),
            shift: [p[0] * w, p[3] * h],
            scale: [1.0 + p[1], 1.0 + p[5]],
            rotation: radians.to_degrees(),
        }
    }
}

/// A box through the affine map: its centre moves, its sides grow with the scale.
fn moved(area: &PixelBox, from: Size, to: Size, affine: &Affine) -> PixelBox {
    let (from, to) = (PixelBox::whole(from), PixelBox::whole(to));
    let (x, y) = area.centre();
    let (x, y) = affine.apply((x / from.width() - 0.5, y / from.height() - 0.5));
    let half_width = area.width() / from.width() * (1.0 + affine.0[1]) * to.width() / 2.0;
    let half_height = area.height() / from.height() * (1.0 + affine.0[5]) * to.height() / 2.0;
    around(((x + 0.5) * to.width(), (y + 0.5) * to.height()), half_width, half_height)
}

fn around((x, y): (f64, f64), half_width: f64, half_height: f64) -> PixelBox {
    PixelBox::new(x - half_width, y - half_height, x + half_width, y + half_height)
}

/// The correlation of the gradients of both pictures, the second looked up through `affine`.
fn agreement(first: &[Level], second: &[Level], affine: &Affine) -> f64 {
    let Some(index) = first.iter().rposition(|level| level.scale <= 4) else { return 0.0 };
    let (Some(first), Some(second)) = (first.get(index), second.get(index)) else { return 0.0 };
    let (w, h) = first.extent;
    let (a, b) = (&first.plane, &second.plane);
    let sample = |x: f64, y: f64| {
        let (px, py) = affine.apply(((x + 0.5) / w - 0.5, (y + 0.5) / h - 0.5));
        let (px, py) = ((px + 0.5) * w - 0.5, (py + 0.5) * h - 0.5);
        let inside =
            px >= 0.0 && py >= 0.0 && px <= b.width as f64 - 1.0 && py <= b.height as f64 - 1.0;
        inside.then(|| b.sample(px as f32, py as f32))
    };
    let (mut shared, mut own, mut their) = (0.0f64, 0.0f64, 0.0f64);
    // Every other pixel is plenty.
    for y in (1..a.height.saturating_sub(1)).step_by(2) {
        let (above, row, below) = (a.row(y - 1), a.row(y), a.row(y + 1));
        for x in (1..a.width.saturating_sub(1)).step_by(2) {
            let (fx, fy) = (x as f64, y as f64);
            let (Some(left), Some(right), Some(up), Some(down)) = (
                sample(fx - 1.0, fy),
                sample(fx + 1.0, fy),
                sample(fx, fy - 1.0),
                sample(fx, fy + 1.0),
            ) else {
                continue;
            };
            let (ax, ay) = (f64::from(row[x + 1] - row[x - 1]), f64::from(below[x] - above[x]));
            let (bx, by) = (f64::from(right - left), f64::from(down - up));
            shared += ax * bx + ay * by;
            own += ax * ax + ay * ay;
            their += bx * bx + by * by;
        }
    }
    if own > 0.0 && their > 0.0 { shared / (own.sqrt() * their.sqrt()) } else { 0.0 }
}

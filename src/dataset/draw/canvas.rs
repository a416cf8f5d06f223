//! The canvas: objects are laid onto it antialiased, shaded and with a shadow; finishing gives a
//! picture with vignette and film grain.

use deeplook_tools::{Picture, PixelBox, Size};
use image::RgbImage;

use super::colour::{Rgb, mix, shade};
use super::random::{grain, noise};
use super::shape::Point;
use super::thing::{Ink, Look, Part, parts};

/// The shadow that an object throws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shadow {
    /// It hangs in the air.
    None,
    /// It lies on a surface or hangs on a wall: shifted and soft.
    Drop,
    /// It stands on the ground.
    Contact,
}

/// An object at its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) look: Look,
    /// Where its origin lies, in pixels.
    pub(super) at: Point,
    /// Pixels a unit.
    pub(super) scale: f32,
    /// Radians, clockwise.
    pub(super) angle: f32,
    /// How much it is bent out of shape: 0 is not at all.
    pub(super) warp: f32,
    /// How blurred it is, as a part of its scale: 0 is sharp.
    pub(super) blur: f32,
    pub(super) shadow: Shadow,
    /// Half its width and the height of its foot below the origin, in pixels: where it stands.
    pub(super) foot: Point,
    /// For the texture and the way it is bent.
    pub(super) seed: u32,
}

impl Object {
    /// All pixels that the object or its shadow may touch.
    fn reach(&self, size: Size) -> [i32; 4] {
        let far = self.scale * (1.55 + self.warp + self.blur) + 4.0;
        let [x, y] = self.at;
        [
            ((x - far) as i32).clamp(0, size.width as i32),
            ((y - far) as i32).clamp(0, size.height as i32),
            ((x + far) as i32 + 1).clamp(0, size.width as i32),
            ((y + far) as i32 + 1).clamp(0, size.height as i32),
        ]
    }

    /// The tight box of whole pixels around the object without its shadow.
    pub(super) fn bounds(&self) -> PixelBox {
        let parts = parts(&self.look);
        let frame = Frame::of(self);
        let far = (self.scale * (1.5 + self.warp)) as i32 + 2;
        let (cx, cy) = (self.at[0] as i32, self.at[1] as i32);
        let covers =
            |x: i32, y: i32| silhouette(&parts, frame.local(x as f32 + 0.5, y as f32 + 0.5)) <= 0.0;
        let (columns, rows) = (cx - far..cx + far, cy - far..cy + far);
        let in_row = |y: &i32| columns.clone().any(|x| covers(x, *y));
        let (Some(top), Some(bottom)) = (rows.clone().find(in_row), rows.rev().find(in_row)) else {
            return PixelBox::new(0.0, 0.0, 0.0, 0.0);
        };
        let in_column = |x: &i32| (top..=bottom).any(|y| covers(*x, y));
        let left = columns.clone().find(in_column).unwrap_or(cx);
        let right = columns.rev().find(in_column).unwrap_or(cx);
        let [x1, y1, x2, y2] = [left, top, right + 1, bottom + 1].map(f64::from);
        PixelBox::new(x1, y1, x2, y2)
    }

    /// This object of another size: its foot stays where it is.
    pub(super) fn scaled(&self, factor: f32) -> Self {
        self.refitted(self.look, |_, _| self.scale * factor)
    }

    /// This object with another look, about as large and standing on the same place.
    pub(super) fn looking(&self, look: Look) -> Self {
        if (look.thing, look.letters) == (self.look.thing, self.look.letters) {
            return Self { look, ..self.clone() };
        }
        self.refitted(look, |old, new| {
            let (w, h) = (old.width() / new.width(), old.height() / new.height());
            self.scale * (w * h).sqrt().min(1.2 * w.min(h)) as f32
        })
    }

    fn refitted(&self, look: Look, scale: impl Fn(&PixelBox, &PixelBox) -> f32) -> Self {
        let old = self.bounds();
        let mut new = Self { look, ..self.clone() };
        new.scale = scale(&old, &new.bounds());
        let bounds = new.bounds();
        let dx = (old.centre().0 - bounds.centre().0).round() as i32;
        new.moved(dx, (old.y2 - bounds.y2) as i32).on_its_foot()
    }

    /// Finds [`Self::foot`].
    pub(super) fn on_its_foot(mut self) -> Self {
        let bounds = self.bounds();
        self.foot = [bounds.width() as f32 / 2.0, bounds.y2 as f32 - self.at[1]];
        self
    }

    /// Moves the object by whole pixels.
    pub(super) fn moved(mut self, dx: i32, dy: i32) -> Self {
        self.at = [self.at[0] + dx as f32, self.at[1] + dy as f32];
        self
    }
}

/// From pixels to an object's own units.
struct Frame {
    at: Point,
    sin: f32,
    cos: f32,
    warp: f32,
    phase: f32,
}

impl Frame {
    fn of(object: &Object) -> Self {
        Self {
            at: object.at,
            sin: libm::sinf(object.angle) / object.scale,
            cos: libm::cosf(object.angle) / object.scale,
            warp: object.warp,
            phase: (object.seed % 628) as f32 / 100.0,
        }
    }

    fn local(&self, x: f32, y: f32) -> Point {
        let (dx, dy) = (x - self.at[0], y - self.at[1]);
        let (x, y) = (dx * self.cos + dy * self.sin, dy * self.cos - dx * self.sin);
        if self.warp == 0.0 {
            return [x, y];
        }
        [
            x + self.warp * libm::sinf(y * 5.5 + self.phase),
            y + self.warp * libm::sinf(x * 4.5 + self.phase * 2.0),
        ]
    }
}

fn silhouette(parts: &[Part], p: Point) -> f32 {
    parts.iter().map(|part| part.shape.distance(p)).fold(f32::MAX, f32::min)
}

/// How a picture is finished.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finish {
    /// How dark the corners get.
    pub(super) vignette: f32,
    /// Strength of the grain, in steps of 8 bits.
    pub(super) grain: f32,
    pub(super) seed: u32,
}

/// Pixels in floating point.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    pub(super) size: Size,
    pixels: Vec<Rgb>,
}

impl Canvas {
    /// A canvas filled by a function of the pixel.
    pub(super) fn filled(size: Size, mut colour: impl FnMut(u32, u32) -> Rgb) -> Self {
        let mut pixels = Vec::with_capacity(size.area() as usize);
        for y in 0..size.height {
            pixels.extend((0..size.width).map(|x| colour(x, y)));
        }
        Self { size, pixels }
    }

    /// The mean colour of an area, from a few places in it.
    pub(super) fn mean(&self, area: &PixelBox) -> Rgb {
        let mut sum = [0.0; 3];
        const STEPS: u32 = 7;
        for step in 0..STEPS * STEPS {
            let (u, v) = (f64::from(step % STEPS) + 0.5, f64::from(step / STEPS) + 0.5);
            let x = area.x1 + area.width() * u / f64::from(STEPS);
            let y = area.y1 + area.height() * v / f64::from(STEPS);
            if let Some(pixel) = self.pixels.get(self.index(x as u32, y as u32)) {
                sum = [0, 1, 2].map(|i| sum[i] + pixel[i]);
            }
        }
        sum.map(|c| c / (STEPS * STEPS) as f32)
    }

    fn index(&self, x: u32, y: u32) -> usize {
        y as usize * self.size.width as usize + x as usize
    }

    /// Lays an object onto the canvas.
    pub(super) fn lay(&mut self, sprite: &Sprite) {
        let [x1, y1, x2, _] = sprite.area;
        let wide = (x2 - x1).max(1) as usize;
        for (row, y) in sprite.pixels.chunks_exact(wide).zip(y1..) {
            let start = self.index(x1 as u32, y as u32);
            let Some(under) = self.pixels.get_mut(start..start + wide) else { continue };
            for (pixel, (keep, add)) in under.iter_mut().zip(row) {
                *pixel = [0, 1, 2].map(|i| pixel[i] * keep + add[i]);
            }
        }
    }

    /// The finished picture.
    pub(super) fn finish(&self, finish: Finish) -> Option<Picture> {
        let (width, height) = (self.size.width, self.size.height);
        let (cx, cy) = (width as f32 / 2.0, height as f32 / 2.0);
        let mut bytes = Vec::with_capacity(self.pixels.len() * 3);
        for (row, y) in self.pixels.chunks_exact(width.max(1) as usize).zip(0i32..) {
            let v = (y as f32 - cy) / cy;
            for (pixel, x) in row.iter().zip(0i32..) {
                let u = (x as f32 - cx) / cx;
                let out = u * u + v * v;
                let light = 255.0 * (1.0 - finish.vignette * out * out * 0.25);
                let dust = finish.grain * grain(finish.seed, x, y) + 0.5;
                bytes.extend(pixel.map(|c| (c * light + dust) as u8));
            }
        }
        RgbImage::from_raw(width, height, bytes).and_then(Picture::from_rgb)
    }
}

/// A drawn object: what each pixel keeps of what lies under it, and what it adds.
#[derive(Debug, Clone)]
pub(super) struct Sprite {
    /// Left, top, right, bottom on the canvas.
    area: [i32; 4],
    pixels: Vec<(f32, Rgb)>,
}

impl Sprite {
    /// Draws an object for a canvas of `size`.
    pub(super) fn of(object: &Object, size: Size) -> Self {
        let parts = parts(&object.look);
        let frame = Frame::of(object);
        let soft = object.scale * 0.12 + 2.0;
        let edge = 1.0 + object.blur * object.scale;
        let area @ [x1, y1, x2, y2] = object.reach(size);
        let mut pixels = Vec::with_capacity(((x2 - x1) * (y2 - y1)).max(0) as usize);
        for y in y1..y2 {
            for x in x1..x2 {
                let (px, py) = (x as f32 + 0.5, y as f32 + 0.5);
                let dark = match object.shadow {
                    Shadow::None => 0.0,
                    Shadow::Drop => {
                        let p = frame.local(px - soft * 0.7, py - soft * 0.9);
                        let near = silhouette(&parts, p) * object.scale / soft;
                        0.42 * smooth(0.5 - 0.5 * near)
                    }
                    Shadow::Contact => {
                        let [half, foot] = object.foot;
                        let dx = (px - object.at[0]) / (half * 1.1 + 1.0);
                        let dy = (py - object.at[1] - foot) / (half * 0.22 + 1.0);
                        0.5 * smooth(1.0 - (dx * dx + dy * dy).sqrt())
                    }
                };
                let (mut keep, mut add) = (1.0 - 0.88 * dark, [0.0; 3]);
                let p = frame.local(px, py);
                for part in &parts {
                    let distance = part.shape.distance(p) * object.scale;
                    let cover = (0.5 - distance / edge).clamp(0.0, 1.0);
                    if cover > 0.0 {
                        let (colour, clear) = ink(object, part, p, distance);
                        let cover = cover * (1.0 - clear);
                        keep *= 1.0 - cover;
                        add = mix(add, colour, cover);
                    }
                }
                pixels.push((keep, add));
            }
        }
        Self { area, pixels }
    }
}

/// From 0 to 1 with soft ends.
pub(super) fn smooth(t: f32) -> f32 {
    let t = t.clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// The colour of a part at `p`, `distance` pixels from its outline (negative: inside), and how
/// clear it is.
fn ink(object: &Object, part: &Part, p: Point, distance: f32) -> (Rgb, f32) {
    let (colour, clear, body) = match (part.ink, object.look.material) {
        (Ink::Own(colour), _) => (colour, 0.0, 0.35),
        (Ink::Body(factor), Some(material)) => {
            let colour = material.texture(object.look.colour, object.seed, p, object.scale);
            (shade(colour, factor), material.clearness(), 0.8)
        }
        (Ink::Body(factor), None) => {
            let grit = noise(object.seed, p[0] * 14.0, p[1] * 14.0) - 0.5;
            (shade(object.look.colour.rgb(), factor * (1.0 + 0.05 * grit)), 0.0, 1.0)
        }
    };
    // Light falls from the upper left: a slope over the whole, a bevel at the rim, a soft gleam.
    let slope = 1.0 - 0.13 * body * (p[0] * 0.5 + p[1]);
    let rim = object.scale * 0.16 + 1.0;
    let near = (1.0 + distance / rim).clamp(0.0, 1.0);
    let bevel = if near > 0.0 {
        let step = 0.03;
        let here = distance / object.scale;
        let gx = (part.shape.distance([p[0] + step, p[1]]) - here) / step;
        let gy = (part.shape.distance([p[0], p[1] + step]) - here) / step;
        -(gx * 0.55 + gy * 0.83) * near * near
    } else {
        0.0
    };
    let (dx, dy) = (p[0] + 0.34, p[1] + 0.40);
    let spot = 1.0 / (1.0 + (dx * dx + dy * dy) * 16.0);
    let lit = shade(colour, slope + 0.24 * body * bevel);
    let gleam = 0.22 * body * spot * spot + 0.10 * body * bevel.max(0.0);
    let opaque = if clear > 0.0 { clear * (1.0 - near * near * 0.9) } else { 0.0 };
    (mix(lit, [1.0; 3], gleam), opaque)
}

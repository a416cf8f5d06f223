//! Colours and materials: their names, and how they look.

use super::random::{fractal, noise, speck};

/// Red, green, blue, each 0 to 1.
pub(super) type Rgb = [f32; 3];

/// From `a` (at 0) to `b` (at 1).
pub(super) fn mix(a: Rgb, b: Rgb, t: f32) -> Rgb {
    let t = t.clamp(0.0, 1.0);
    [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * t)
}

/// `colour` lighter or darker.
pub(super) fn shade(colour: Rgb, factor: f32) -> Rgb {
    colour.map(|c| c * factor)
}

/// How far apart two colours look: 0 to about 1.7.
pub(super) fn contrast(a: Rgb, b: Rgb) -> f32 {
    let [r, g, b] = [0, 1, 2].map(|i| a[i] - b[i]);
    (r * r + 1.2 * g * g + 0.8 * b * b).sqrt()
}

/// A colour that everyone calls by the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Colour {
    Red,
    Orange,
    Yellow,
    Green,
    Blue,
    Purple,
    Pink,
    Brown,
    Black,
    White,
    Grey,
}

impl Colour {
    /// Every colour.
    pub const ALL: [Self; 11] = [
        Self::Red,
        Self::Orange,
        Self::Yellow,
        Self::Green,
        Self::Blue,
        Self::Purple,
        Self::Pink,
        Self::Brown,
        Self::Black,
        Self::White,
        Self::Grey,
    ];

    /// The colour's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Orange => "orange",
            Self::Yellow => "yellow",
            Self::Green => "green",
            Self::Blue => "blue",
            Self::Purple => "purple",
            Self::Pink => "pink",
            Self::Brown => "brown",
            Self::Black => "black",
            Self::White => "white",
            Self::Grey => "grey",
        }
    }

    pub(super) fn rgb(self) -> Rgb {
        match self {
            Self::Red => [0.84, 0.09, 0.11],
            Self::Orange => [0.98, 0.50, 0.05],
            Self::Yellow => [0.99, 0.87, 0.12],
            Self::Green => [0.12, 0.60, 0.20],
            Self::Blue => [0.10, 0.32, 0.86],
            Self::Purple => [0.49, 0.15, 0.64],
            Self::Pink => [0.98, 0.56, 0.75],
            Self::Brown => [0.42, 0.24, 0.11],
            Self::Black => [0.07, 0.07, 0.08],
            Self::White => [0.96, 0.96, 0.95],
            Self::Grey => [0.52, 0.53, 0.54],
        }
    }

    /// True where nobody would take one for the other.
    pub(super) fn differs_clearly(self, other: Self) -> bool {
        contrast(self.rgb(), other.rgb()) > 0.5
    }
}

/// What an object is made of, or the pattern that is printed on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Material {
    Wooden,
    Metal,
    Marble,
    Knitted,
    Glass,
    Brick,
    Striped,
    Dotted,
    Checkered,
}

impl Material {
    /// Every material, and every pattern after them.
    pub const ALL: [Self; 9] = [
        Self::Wooden,
        Self::Metal,
        Self::Marble,
        Self::Knitted,
        Self::Glass,
        Self::Brick,
        Self::Striped,
        Self::Dotted,
        Self::Checkered,
    ];
    /// Those a thing can be made of.
    pub const SUBSTANCES: [Self; 6] =
        [Self::Wooden, Self::Metal, Self::Marble, Self::Knitted, Self::Glass, Self::Brick];
    /// Those that are only printed on it.
    pub const PATTERNS: [Self; 3] = [Self::Striped, Self::Dotted, Self::Checkered];

    /// The word before a noun: "wooden".
    pub fn name(self) -> &'static str {
        match self {
            Self::Wooden => "wooden",
            Self::Metal => "metal",
            Self::Marble => "marble",
            Self::Knitted => "knitted",
            Self::Glass => "glass",
            Self::Brick => "brick",
            Self::Striped => "striped",
            Self::Dotted => "dotted",
            Self::Checkered => "checkered",
        }
    }

    /// The substance itself: "wood".
    pub fn noun(self) -> &'static str {
        match self {
            Self::Wooden => "wood",
            Self::Metal => "brushed metal",
            Self::Marble => "marble",
            Self::Knitted => "knitted wool",
            Self::Glass => "glass",
            Self::Brick => "brick",
            Self::Striped => "a striped pattern",
            Self::Dotted => "a dotted pattern",
            Self::Checkered => "a checkered pattern",
        }
    }

    /// The colours that somebody might name when seeing it in `colour`.
    pub(super) fn colours(self, colour: Colour) -> Vec<Colour> {
        match self {
            Self::Wooden => vec![Colour::Brown, Colour::Orange],
            Self::Metal | Self::Marble => vec![Colour::Grey, Colour::White],
            Self::Knitted => vec![colour],
            Self::Glass => vec![Colour::Blue, Colour::White, Colour::Grey],
            Self::Brick => vec![Colour::Red, Colour::Brown, Colour::Orange],
            Self::Striped | Self::Dotted | Self::Checkered => vec![colour, Colour::White],
        }
    }

    /// The colour that the eye makes of it from afar.
    pub(super) fn mean(self, colour: Colour) -> Rgb {
        match self {
            Self::Wooden => [0.68, 0.45, 0.24],
            Self::Metal => [0.66, 0.68, 0.71],
            Self::Marble => [0.88, 0.87, 0.86],
            Self::Knitted => shade(colour.rgb(), 0.85),
            Self::Glass => [0.62, 0.84, 0.88],
            Self::Brick => [0.62, 0.29, 0.21],
            Self::Striped | Self::Dotted | Self::Checkered => {
                mix(colour.rgb(), Colour::White.rgb(), 0.4)
            }
        }
    }

    /// How much of what lies behind is seen through it.
    pub(super) fn clearness(self) -> f32 {
        if self == Self::Glass { 0.35 } else { 0.0 }
    }

    /// Its colour at a place of an object that reaches from −1 to 1 and is `scale` pixels a unit.
    pub(super) fn texture(self, colour: Colour, seed: u32, [x, y]: [f32; 2], scale: f32) -> Rgb {
        let base = colour.rgb();
        let pale = Colour::White.rgb();
        // Small objects get coarser patterns: finer ones would only be grey to the eye.
        let coarse = (26.0 / scale).clamp(1.0, 1.8);
        match self {
            Self::Wooden => {
                let bend = fractal(seed, x * 1.3, y * 0.8, 2) * 2.2;
                let wave = libm::sinf((y * 7.0 + bend * 5.0) / coarse * 1.6);
                let fibre = noise(seed ^ 5, x * 4.0, y * 34.0);
                let light = 0.5 + 0.5 * wave;
                let wood = mix([0.50, 0.29, 0.12], [0.86, 0.63, 0.37], light);
                shade(wood, 0.92 + 0.16 * fibre)
            }
            Self::Metal => {
                let brushed = noise(seed, x * 2.5, y * 40.0) * 0.16;
                let sheen = libm::sinf((x * 0.9 + y * 1.5) * 3.4 + 0.6);
                let light = 0.60 + 0.24 * sheen + brushed - 0.08;
                [light * 0.97, light, light * 1.05]
            }
            Self::Marble => {
                let turn = fractal(seed, x * 2.0, y * 2.0, 4) * 9.0;
                let vein = libm::sinf((x * 1.5 + y * 2.3) / coarse * 1.4 + turn);
                let vein = 1.0 - vein.abs();
                let cloud = fractal(seed ^ 9, x * 1.5, y * 1.5, 3);
                let ground = mix([0.97, 0.96, 0.95], [0.84, 0.84, 0.85], cloud);
                mix(ground, [0.38, 0.40, 0.45], vein * vein * vein * 0.95)
            }
            Self::Knitted => {
                let pitch = 0.24 * coarse;
                let column = x / pitch;
                let (u, side) = (column - column.floor() - 0.5, column.floor());
                let row = y / (pitch * 0.8) + u.abs() * 1.3 + side * 0.0;
                let v = row - row.floor();
                let bulge = (4.0 * v * (1.0 - v)) * (1.0 - 1.3 * u * u);
                let fluff = noise(seed, x * 22.0, y * 22.0);
                let yarn = mix(base, pale, 0.10);
                shade(yarn, 0.42 + 0.62 * bulge + 0.12 * fluff)
            }
            Self::Glass => {
                let streak = libm::sinf((x - y) * 3.1 + 1.1);
                let glint = (streak - 0.55).max(0.0) * 2.0;
                mix([0.50, 0.78, 0.84], [0.98, 1.0, 1.0], 0.25 + glint)
            }
            Self::Brick => {
                let (w, h) = (0.52 * coarse, 0.26 * coarse);
                let row = (y / h).floor();
                let column = x / w + row * 0.5;
                let (u, v) = (column - column.floor(), y / h - row);
                let tone = speck(seed, column.floor() as i32, row as i32);
                let rough = noise(seed ^ 3, x * 26.0, y * 26.0);
                if u < 0.09 || v < 0.17 {
                    shade([0.80, 0.76, 0.70], 0.9 + 0.15 * rough)
                } else {
                    let brick = mix([0.66, 0.25, 0.17], [0.50, 0.20, 0.14], tone);
                    shade(brick, 0.88 + 0.24 * rough)
                }
            }
            Self::Striped => pick_soft(
                base,
                printed_on(colour),
                libm::sinf((x * 0.55 + y) * 9.5 / coarse),
                scale,
            ),
            Self::Dotted => {
                let pitch = 0.44 * coarse;
                let row = (y / pitch).floor();
                let column = x / pitch + row * 0.5;
                let (u, v) = (column - column.floor() - 0.5, y / pitch - row - 0.5);
                let distance = (u * u + v * v).sqrt();
                pick_soft(base, printed_on(colour), (distance - 0.28) * 6.0, scale)
            }
            Self::Checkered => {
                let turn = 7.2 / coarse;
                let product = libm::sinf(x * turn + 0.8) * libm::sinf(y * turn + 0.8);
                pick_soft(base, printed_on(colour), product * 1.6, scale)
            }
        }
    }
}

/// The second colour of a pattern.
fn printed_on(colour: Colour) -> Rgb {
    match colour {
        Colour::White | Colour::Yellow | Colour::Pink => [0.12, 0.12, 0.16],
        _ => Colour::White.rgb(),
    }
}

/// `a` where `side` is positive, `b` where it is negative, a soft edge between.
fn pick_soft(a: Rgb, b: Rgb, side: f32, scale: f32) -> Rgb {
    mix(b, a, 0.5 + side * (scale / 12.0).clamp(1.0, 6.0))
}

//! Boxes and the conventions in which large multimodal models write them.
//!
//! Inside the project there is one box type, [`PixelBox`], in pixels of one picture. Models speak
//! other dialects (0–1, 0–1000, y first); [`BoxConvention`] converts at the edge.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Width and height of a picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Size {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Size {
    /// A size of `width` by `height` pixels.
    pub fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// The longer of the two sides.
    pub fn long_side(self) -> u32 {
        self.width.max(self.height)
    }

    /// The number of pixels.
    pub fn area(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// This size scaled so that the long side is `long`, each side at least one pixel.
    pub fn with_long_side(self, long: u32) -> Self {
        let factor = f64::from(long) / f64::from(self.long_side().max(1));
        self.scaled(factor)
    }

    /// This size times `factor`, rounded, each side at least one pixel.
    pub fn scaled(self, factor: f64) -> Self {
        let side = |s: u32| (f64::from(s) * factor).round().max(1.0) as u32;
        Self::new(side(self.width), side(self.height))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}×{}", self.width, self.height)
    }
}

/// A box in pixels of one picture: left, top, right, bottom; right and bottom are exclusive.
///
/// Stored as `[x1, y1, x2, y2]`, with at most two decimals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelBox {
    /// Left edge.
    pub x1: f64,
    /// Top edge.
    pub y1: f64,
    /// Right edge.
    pub x2: f64,
    /// Bottom edge.
    pub y2: f64,
}

impl PixelBox {
    /// A box from its four edges.
    pub fn new(x1: f64, y1: f64, x2: f64, y2: f64) -> Self {
        Self { x1, y1, x2, y2 }
    }

    /// The box that covers a whole picture.
    pub fn whole(size: Size) -> Self {
        Self::new(0.0, 0.0, f64::from(size.width), f64::from(size.height))
    }

    /// Right minus left.
    pub fn width(&self) -> f64 {
        self.x2 - self.x1
    }

    /// Bottom minus top.
    pub fn height(&self) -> f64 {
        self.y2 - self.y1
    }

    /// Area in pixels; 0 for an inverted box.
    pub fn area(&self) -> f64 {
        self.width().max(0.0) * self.height().max(0.0)
    }

    /// The centre point.
    pub fn centre(&self) -> (f64, f64) {
        ((self.x1 + self.x2) / 2.0, (self.y1 + self.y2) / 2.0)
    }

    /// The four edges as they are stored: whole numbers stay whole, others get at most two decimals.
    pub fn in_short(&self) -> [serde_json::Number; 4] {
        self.edges().map(tidy)
    }

    /// True where the box holds no area, or an edge is not a finite number.
    pub fn is_empty(&self) -> bool {
        !(self.width() > 0.0 && self.height() > 0.0 && self.area().is_finite())
    }

    /// What both boxes cover; may be empty.
    pub fn intersection(&self, other: &Self) -> Self {
        Self::new(
            self.x1.max(other.x1),
            self.y1.max(other.y1),
            self.x2.min(other.x2),
            self.y2.min(other.y2),
        )
    }

    /// The smallest box that holds both.
    pub fn union(&self, other: &Self) -> Self {
        Self::new(
            self.x1.min(other.x1),
            self.y1.min(other.y1),
            self.x2.max(other.x2),
            self.y2.max(other.y2),
        )
    }

    /// The box grown by `dx` on the left and right and `dy` on the top and bottom.
    pub fn grown(&self, dx: f64, dy: f64) -> Self {
        Self::new(self.x1 - dx, self.y1 - dy, self.x2 + dx, self.y2 + dy)
    }

    /// The part inside a picture of `size`; may be empty.
    pub fn clipped(&self, size: Size) -> Self {
        self.intersection(&Self::whole(size))
    }

    /// The smallest box of whole pixels that holds this one, inside a picture of `size` and at
    /// least one pixel large.
    pub fn whole_pixels(&self, size: Size) -> Self {
        let (w, h) = (f64::from(size.width), f64::from(size.height));
        let x1 = self.x1.floor().clamp(0.0, w - 1.0);
        let y1 = self.y1.floor().clamp(0.0, h - 1.0);
        let x2 = self.x2.ceil().clamp(x1 + 1.0, w);
        let y2 = self.y2.ceil().clamp(y1 + 1.0, h);
        Self::new(x1, y1, x2, y2)
    }

    /// Moves the box from the coordinates of `from` to those of `to`: what lies at a fraction of
    /// one box comes to lie at the same fraction of the other.
    pub fn mapped(&self, from: &Self, to: &Self) -> Self {
        let sx = to.width() / from.width();
        let sy = to.height() / from.height();
        Self::new(
            to.x1 + (self.x1 - from.x1) * sx,
            to.y1 + (self.y1 - from.y1) * sy,
            to.x1 + (self.x2 - from.x1) * sx,
            to.y1 + (self.y2 - from.y1) * sy,
        )
    }

    /// The four edges, left, top, right, bottom.
    pub fn edges(&self) -> [f64; 4] {
        [self.x1, self.y1, self.x2, self.y2]
    }
}

impl fmt::Display for PixelBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&numbers(self.edges()))
    }
}

/// Whole numbers stay whole, others get at most two decimals: short for a model and for a person.
fn tidy(value: f64) -> serde_json::Number {
    let rounded = if value.abs() < 1e15 { (value * 100.0).round() / 100.0 } else { value };
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        serde_json::Number::from(rounded as i64)
    } else {
        serde_json::Number::from_f64(rounded).unwrap_or_else(|| serde_json::Number::from(0))
    }
}

fn numbers(values: [f64; 4]) -> String {
    let [a, b, c, d] = values.map(tidy);
    format!("[{a}, {b}, {c}, {d}]")
}

impl Serialize for PixelBox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_short().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PixelBox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [x1, y1, x2, y2] = <[f64; 4]>::deserialize(deserializer)?;
        Ok(Self::new(x1, y1, x2, y2))
    }
}

impl JsonSchema for PixelBox {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PixelBox".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        <[f64; 4]>::json_schema(generator)
    }
}

/// What the numbers of a box are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Pixels of the picture as it is shown.
    Pixels,
    /// Fractions of the picture's sides, 0 to 1.
    Fraction,
    /// Thousandths of the picture's sides, 0 to 1000.
    Thousandths,
}

/// Which coordinate comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `[x1, y1, x2, y2]`
    XFirst,
    /// `[y1, x1, y2, x2]`
    YFirst,
}

/// How a model writes boxes, and how text for it must write them.
///
/// Written as `pixels`, `fraction` or `thousandths`, with `-yx` behind it where y comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoxConvention {
    /// What the numbers are measured in.
    pub unit: Unit,
    /// Which coordinate comes first.
    pub order: Order,
}

impl BoxConvention {
    /// Pixels, x first: what the command line and all stored data use.
    pub const PIXELS: Self = Self { unit: Unit::Pixels, order: Order::XFirst };

    /// All conventions, for listings and tests.
    pub const ALL: [Self; 6] = [
        Self::PIXELS,
        Self { unit: Unit::Pixels, order: Order::YFirst },
        Self { unit: Unit::Fraction, order: Order::XFirst },
        Self { unit: Unit::Fraction, order: Order::YFirst },
        Self { unit: Unit::Thousandths, order: Order::XFirst },
        Self { unit: Unit::Thousandths, order: Order::YFirst },
    ];

    /// Full scale along a side of `side` pixels.
    fn full(self, side: u32) -> f64 {
        match self.unit {
            Unit::Pixels => f64::from(side),
            Unit::Fraction => 1.0,
            Unit::Thousandths => 1000.0,
        }
    }

    /// The box that a model means by `values` in a picture that it sees at size `shown`, in pixels
    /// of that size.
    ///
    /// Nothing is guessed: a box that is not finite, inverted, outside the picture or without area
    /// is an error that says what is expected. An overshoot of 1 % is rounding and is clipped.
    pub fn read(self, values: [f64; 4], shown: Size) -> Result<PixelBox, BoxError> {
        let refuse = |problem: &'static str| BoxError {
            given: numbers(values),
            problem,
            expected: self.describe(shown),
        };
        if values.iter().any(|v| !v.is_finite()) {
            return Err(refuse("has a number that is not finite"));
        }
        let [a, b, c, d] = values;
        let [x1, y1, x2, y2] = match self.order {
            Order::XFirst => [a, b, c, d],
            Order::YFirst => [b, a, d, c],
        };
        let sx = f64::from(shown.width) / self.full(shown.width);
        let sy = f64::from(shown.height) / self.full(shown.height);
        let meant = PixelBox::new(x1 * sx, y1 * sy, x2 * sx, y2 * sy);
        if meant.x1 > meant.x2 || meant.y1 > meant.y2 {
            return Err(refuse("is inverted"));
        }
        if meant.is_empty() {
            return Err(refuse("has no area"));
        }
        let slack_x = (0.01 * f64::from(shown.width)).max(1.0);
        let slack_y = (0.01 * f64::from(shown.height)).max(1.0);
        let allowed = PixelBox::whole(shown).grown(slack_x, slack_y);
        let clipped = meant.clipped(shown);
        if meant.intersection(&allowed) != meant || clipped.is_empty() {
            return Err(refuse("reaches outside the picture"));
        }
        if meant.width() < 1.0 && meant.height() < 1.0 {
            return Err(refuse("is smaller than one pixel"));
        }
        Ok(clipped)
    }

    /// The numbers for `area`, a box in pixels of a picture shown at size `shown`.
    pub fn write(self, area: &PixelBox, shown: Size) -> [f64; 4] {
        let sx = self.full(shown.width) / f64::from(shown.width);
        let sy = self.full(shown.height) / f64::from(shown.height);
        // Fractions need more digits than the two that text gets otherwise.
        let digits = if self.unit == Unit::Fraction { 1e4 } else { 1.0 };
        let round = |v: f64| (v * digits).round() / digits;
        let (x1, y1) = (round(area.x1 * sx), round(area.y1 * sy));
        let (x2, y2) = (round(area.x2 * sx), round(area.y2 * sy));
        match self.order {
            Order::XFirst => [x1, y1, x2, y2],
            Order::YFirst => [y1, x1, y2, x2],
        }
    }

    /// `area` as text for a model.
    pub fn text(self, area: &PixelBox, shown: Size) -> String {
        let [a, b, c, d] = self.write(area, shown);
        format!("[{a}, {b}, {c}, {d}]")
    }

    /// The form and range of a box in a picture of size `shown`, in words.
    pub fn describe(self, shown: Size) -> String {
        let range = match self.unit {
            Unit::Pixels => format!("x from 0 to {}, y from 0 to {}", shown.width, shown.height),
            Unit::Fraction => "all from 0 to 1".to_owned(),
            Unit::Thousandths => "all from 0 to 1000".to_owned(),
        };
        format!("{}, {range}; the picture is {shown} pixels", self.short_form())
    }

    /// The form of a box in any picture, in words: for tool descriptions.
    pub fn form(self) -> String {
        let of_which = match self.unit {
            Unit::Pixels => " of the picture as you got it (its caption says how large it is)",
            Unit::Fraction | Unit::Thousandths => "",
        };
        format!("{}{of_which}", self.short_form())
    }

    fn short_form(self) -> &'static str {
        match (self.unit, self.order) {
            (Unit::Pixels, Order::XFirst) => "[x1, y1, x2, y2] in pixels",
            (Unit::Pixels, Order::YFirst) => "[y1, x1, y2, x2] in pixels",
            (Unit::Fraction, Order::XFirst) => {
                "[x1, y1, x2, y2] as fractions of width and height (0 to 1)"
            }
            (Unit::Fraction, Order::YFirst) => {
                "[y1, x1, y2, x2] as fractions of height and width (0 to 1)"
            }
            (Unit::Thousandths, Order::XFirst) => {
                "[x1, y1, x2, y2] in thousandths of width and height (0 to 1000)"
            }
            (Unit::Thousandths, Order::YFirst) => {
                "[y1, x1, y2, x2] in thousandths of height and width (0 to 1000)"
            }
        }
    }
}

impl fmt::Display for BoxConvention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.unit {
            Unit::Pixels => "pixels",
            Unit::Fraction => "fraction",
            Unit::Thousandths => "thousandths",
        })?;
        if self.order == Order::YFirst { f.write_str("-yx") } else { Ok(()) }
    }
}

impl FromStr for BoxConvention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|c| c.to_string() == text).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("unknown box convention {text:?}; use one of {}", known.join(", "))
        })
    }
}

impl Serialize for BoxConvention {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BoxConvention {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A box that cannot be used, with what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the box {given} {problem}; give {expected}")]
pub struct BoxError {
    given: String,
    problem: &'static str,
    expected: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn boxes_are_stored_short() {
        let area = PixelBox::new(10.0, 20.5, 30.123_456, 1e3);
        assert_eq!(serde_json::to_string(&area).unwrap(), "[10,20.5,30.12,1000]");
        assert_eq!(area.to_string(), "[10, 20.5, 30.12, 1000]");
    }

    #[test]
    fn conventions_read_what_their_families_write() {
        let shown = Size::new(640, 480);
        let expected = PixelBox::new(64.0, 120.0, 320.0, 240.0);
        for (name, values) in [
            ("pixels", [64.0, 120.0, 320.0, 240.0]),
            ("pixels-yx", [120.0, 64.0, 240.0, 320.0]),
            ("fraction", [0.1, 0.25, 0.5, 0.5]),
            ("fraction-yx", [0.25, 0.1, 0.5, 0.5]),
            ("thousandths", [100.0, 250.0, 500.0, 500.0]),
            ("thousandths-yx", [250.0, 100.0, 500.0, 500.0]),
        ] {
            let convention: BoxConvention = name.parse().unwrap();
            assert_eq!(convention.read(values, shown).unwrap(), expected, "{name}");
        }
    }

    #[test]
    fn useless_boxes_are_refused_with_what_is_expected() {
        let shown = Size::new(640, 480);
        for (values, problem) in [
            ([10.0, 10.0, 10.0, 50.0], "has no area"),
            ([50.0, 10.0, 10.0, 50.0], "is inverted"),
            ([700.0, 10.0, 800.0, 50.0], "reaches outside the picture"),
            ([600.0, 10.0, 800.0, 50.0], "reaches outside the picture"),
            ([0.1, 0.1, 0.5, 0.5], "is smaller than one pixel"),
            ([f64::NAN, 0.1, 0.5, 0.5], "has a number that is not finite"),
        ] {
            let error = BoxConvention::PIXELS.read(values, shown).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
            assert!(error.contains("640×480") && error.contains("[x1, y1, x2, y2]"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn reading_inverts_writing(
            width in 8u32..5000, height in 8u32..5000,
            fx in 0.0..0.9f64, fy in 0.0..0.9f64, fw in 0.05..1.0f64, fh in 0.05..1.0f64,
        ) {
            let shown = Size::new(width, height);
            let (w, h) = (f64::from(width), f64::from(height));
            let area = PixelBox::new(fx * w, fy * h, (fx + fw).min(1.0) * w, (fy + fh).min(1.0) * h);
            // Rounding to whole units of the convention moves an edge by at most half a unit.
            for convention in BoxConvention::ALL {
                let step = |side: u32| match convention.unit {
                    Unit::Pixels => 1.0,
                    Unit::Fraction => f64::from(side) / 1e4,
                    Unit::Thousandths => f64::from(side) / 1e3,
                };
                if area.width() < 2.0 * step(width).max(1.0) || area.height() < 2.0 * step(height).max(1.0) {
                    continue;
                }
                let back = convention.read(convention.write(&area, shown), shown).unwrap();
                prop_assert!((back.x1 - area.x1).abs() <= step(width) && (back.y2 - area.y2).abs() <= step(height));
            }
        }

        #[test]
        fn whole_pixels_stay_inside(
            x1 in -1e4..1e4, y1 in -1e4..1e4, w in -10.0..1e4, h in -10.0..1e4, width in 1u32..3000, height in 1u32..3000,
        ) {
            let size = Size::new(width, height);
            let area = PixelBox::new(x1, y1, x1 + w, y1 + h).whole_pixels(size);
            prop_assert!(area.clipped(size) == area && area.area() >= 1.0);
        }

        #[test]
        fn mapping_inverts(x in 0.0..100.0, y in 0.0..100.0, s in 1.0..50.0, t in 1.0..500.0) {
            let from = PixelBox::new(x, y, x + s, y + 2.0 * s);
            let to = PixelBox::new(y, x, y + t, x + t / 3.0);
            let area = PixelBox::new(x + 1.0, y + 1.0, x + 2.0, y + 3.0);
            let back = area.mapped(&from, &to).mapped(&to, &from);
            for (a, b) in area.edges().iter().zip(back.edges()) {
                prop_assert!((a - b).abs() < 1e-6);
            }
        }
    }
}

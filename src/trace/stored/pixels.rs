//! Places and sizes.

use deeplook_tools::coords::{Order, Unit};
use deeplook_tools::{BoxConvention, PixelBox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{Form, forms};

forms! {
    /// In pixels.
    struct Size of deeplook_tools::Size {
        width: u32,
        height: u32,
    }

    /// A part of a picture that shows a region of another.
    struct Panel of deeplook_tools::scene::Panel {
        /// Where on the picture.
        area: Box,
        /// The name of the source picture.
        source: String,
        /// Which region of it, in its pixels; it may reach beyond the picture, where the panel is grey.
        region: Box,
    }
}

/// Left, top, right, bottom, in pixels; at most two decimals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Box(#[schemars(with = "[f64; 4]")] [Number; 4]);

impl Form<PixelBox> for Box {
    fn of(it: PixelBox) -> Self {
        Self(it.in_short())
    }

    fn back(self) -> PixelBox {
        let [x1, y1, x2, y2] = self.0.map(|edge| edge.as_f64().unwrap_or(f64::NAN));
        PixelBox::new(x1, y1, x2, y2)
    }
}

/// How a model writes boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Boxes {
    Pixels,
    Fraction,
    Thousandths,
    PixelsYx,
    FractionYx,
    ThousandthsYx,
}

impl Form<BoxConvention> for Boxes {
    fn of(BoxConvention { unit, order }: BoxConvention) -> Self {
        match (unit, order) {
            (Unit::Pixels, Order::XFirst) => Self::Pixels,
            (Unit::Fraction, Order::XFirst) => Self::Fraction,
            (Unit::Thousandths, Order::XFirst) => Self::Thousandths,
            (Unit::Pixels, Order::YFirst) => Self::PixelsYx,
            (Unit::Fraction, Order::YFirst) => Self::FractionYx,
            (Unit::Thousandths, Order::YFirst) => Self::ThousandthsYx,
        }
    }

    fn back(self) -> BoxConvention {
        let (unit, order) = match self {
            Self::Pixels => (Unit::Pixels, Order::XFirst),
            Self::Fraction => (Unit::Fraction, Order::XFirst),
            Self::Thousandths => (Unit::Thousandths, Order::XFirst),
            Self::PixelsYx => (Unit::Pixels, Order::YFirst),
            Self::FractionYx => (Unit::Fraction, Order::YFirst),
            Self::ThousandthsYx => (Unit::Thousandths, Order::YFirst),
        };
        BoxConvention { unit, order }
    }
}

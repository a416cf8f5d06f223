//! A network that enlarges pictures, fed in overlapping tiles so that its memory stays bounded and
//! no seam is seen.

use std::fmt;
use std::ops::Range;

use image::RgbImage;

use crate::coords::{PixelBox, Size};
use crate::onnx::{Element, Input, Session, Tensor};
use crate::picture::Picture;

/// How long a side of a tile is: the widest layer of the photo model then takes some 40 MB.
const TILE: u32 = 192;

/// The surroundings of a tile for a network that pads for itself: what it makes of its own padding
/// is cut off with them.
const SURROUNDINGS: u32 = 16;

/// The largest enlargement that is taken for one.
const MOST_SCALE: u32 = 8;

/// What a network is tried on when it is loaded: small first, then large enough for one that eats a
/// wide border. The sides differ, so that one answer tells both scale and border.
const TRIALS: [Size; 2] = [Size { width: 32, height: 24 }, Size { width: 96, height: 88 }];

/// Red, green and blue as three planes of values from 0 to 1, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Planes {
    pub(super) size: Size,
    pub(super) values: Vec<f32>,
}

/// What is known of an enhancement model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkFacts {
    /// How text and data name it.
    pub name: String,
    /// Of its file, for the record.
    pub sha256: String,
    /// How many times larger its output is.
    pub scale: u32,
    /// How many pixels it eats on each side: a network without padding returns less than it gets.
    pub border: u32,
}

type Run = dyn Fn(Planes) -> Result<Planes, String> + Send + Sync;

/// A network that enlarges pictures.
pub(super) struct Network {
    facts: NetworkFacts,
    run: Box<Run>,
    /// The longest side of a tile, without its surroundings.
    tile: u32,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.facts.fmt(f)
    }
}

impl Network {
    #[cfg(test)]
    pub(super) fn of(facts: NetworkFacts, run: Box<Run>, tile: u32) -> Self {
        Self { facts, run, tile }
    }

    /// A network from a model file; the error says why it cannot be one.
    pub(super) fn load(session: Session, name: &str, sha256: &str) -> Result<Self, String> {
        let run = runner(session)?;
        let grey = |size: Size| Planes { size, values: vec![0.5; 3 * size.area() as usize] };
        let [small, large] = TRIALS;
        let (given, got) = match run(grey(small)) {
            Ok(answer) => (small, answer),
            Err(_) => (large, run(grey(large))?),
        };
        check_values(&got)?;
        let got = got.size;
        let (scale, border) = scale_and_border(given, got)
            .ok_or_else(|| format!("it does not enlarge pictures: {given} became {got}"))?;
        let facts =
            NetworkFacts { name: name.to_owned(), sha256: sha256.to_owned(), scale, border };
        Ok(Self { facts, run, tile: TILE })
    }

    pub(super) fn facts(&self) -> &NetworkFacts {
        &self.facts
    }

    /// How many pixels the network is fed to enlarge a part of `size` once.
    pub(super) fn work(&self, size: Size) -> u64 {
        let fed = |side: u32| {
            u64::from(side)
                + u64::from(side.div_ceil(self.tile)) * 2 * u64::from(self.surroundings())
        };
        fed(size.width) * fed(size.height)
    }

    /// The part of `source` under `area`, in whole pixels, enlarged.
    pub(super) fn enlarge(&self, source: &Picture, area: &PixelBox) -> Result<Picture, String> {
        let area = area.whole_pixels(source.size());
        let (left, top) = (area.x1 as u32, area.y1 as u32);
        let (width, height) = (area.width() as u32, area.height() as u32);
        let scale = self.facts.scale;
        let mut enlarged = RgbImage::new(width * scale, height * scale);
        for rows in tiles(height, self.tile) {
            for columns in tiles(width, self.tile) {
                let size = Size::new(columns.len() as u32, rows.len() as u32);
                let (x, y) = (left + columns.start, top + rows.start);
                let seen = self.run_on(surrounded(source, (x, y), size, self.surroundings()))?;
                // What lies beyond the tile was only there to see the surroundings.
                let rim = (self.surroundings() - self.facts.border) * scale;
                let at = (columns.start * scale, rows.start * scale);
                write(
                    &mut enlarged,
                    at,
                    &seen,
                    rim,
                    Size::new(size.width * scale, size.height * scale),
                );
            }
        }
        Picture::from_rgb(enlarged).ok_or_else(|| "the part has no pixels".to_owned())
    }

    /// Pixels around a tile that the network gets to see.
    fn surroundings(&self) -> u32 {
        if self.facts.border > 0 { self.facts.border } else { SURROUNDINGS }
    }

    fn run_on(&self, planes: Planes) -> Result<Planes, String> {
        let given = planes.size;
        let side = |side: u32| (side - 2 * self.facts.border) * self.facts.scale;
        let expected = Size::new(side(given.width), side(given.height));
        let answer = (self.run)(planes)?;
        if answer.size != expected || answer.values.len() as u64 != 3 * expected.area() {
            return Err(format!(
                "it made {} ({} values) of {given}, not {expected}",
                answer.size,
                answer.values.len(),
            ));
        }
        check_values(&answer)?;
        Ok(answer)
    }
}

/// What is no number would be shown as black.
fn check_values(answer: &Planes) -> Result<(), String> {
    match answer.values.iter().all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err("it gave values that are no numbers (NaN or infinity)".to_owned()),
    }
}

/// The model as a function of planes.
fn runner(session: Session) -> Result<Box<Run>, String> {
    let (input, output) = match (session.inputs().iter().next(), session.outputs()) {
        (Some((input, port)), [output])
            if session.inputs().len() == 1
                && port.element == Some(Element::F32)
                && matches!(port.shape[..], [None | Some(1), None | Some(3), None, None]) =>
        {
            (input.clone(), output.clone())
        }
        _ => {
            let wanted = "one picture (f32, 1×3×H×W, H and W free) and give one";
            let names: Vec<&str> = session.inputs().keys().map(String::as_str).collect();
            return Err(format!("it must take {wanted}, but takes {}", names.join(", ")));
        }
    };
    Ok(Box::new(move |Planes { size, values }| {
        let shape = [1, 3, size.height as usize, size.width as usize];
        let picture = Input::F32(Tensor::new(shape, values));
        let [answer] = session
            .run(&[(input.as_str(), picture)], [output.as_str()])
            .map_err(|error| error.to_string())?;
        match answer.shape[..] {
            [1, 3, height, width] => {
                let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
                Ok(Planes { size: Size::new(side(width), side(height)), values: answer.data })
            }
            _ => Err(format!("it gave {:?} instead of a picture", answer.shape)),
        }
    }))
}

/// How a network that made `got` of `given` enlarges, and how much it eats on each side.
pub(super) fn scale_and_border(given: Size, got: Size) -> Option<(u32, u32)> {
    let scale = got.width.checked_sub(got.height)? / (given.width - given.height);
    if !(2..=MOST_SCALE).contains(&scale) {
        return None;
    }
    let border = given.width.checked_sub(got.width / scale)? / 2;
    let fits = |given: u32, got: u32| given.saturating_sub(2 * border) * scale == got;
    (fits(given.width, got.width) && fits(given.height, got.height)).then_some((scale, border))
}

/// Cuts `length` into parts of nearly the same length, none longer than `tile`.
fn tiles(length: u32, tile: u32) -> impl Iterator<Item = Range<u32>> {
    let count = u64::from(length.div_ceil(tile));
    let start = move |i: u64| (u64::from(length) * i / count.max(1)) as u32;
    (0..count).map(move |i| start(i)..start(i + 1))
}

/// A tile with `rim` pixels around it; beyond the edge of the picture, its last pixel is repeated.
fn surrounded(source: &Picture, (x, y): (u32, u32), tile: Size, rim: u32) -> Planes {
    let size = Size::new(tile.width + 2 * rim, tile.height + 2 * rim);
    let (whole, pixels) = (source.size(), source.rgb().as_raw());
    let inside =
        |at: u32, step: u32, side: u32| (at + step).saturating_sub(rim).min(side - 1) as usize;
    let columns: Vec<usize> =
        (0..size.width).map(|step| inside(x, step, whole.width) * 3).collect();
    let mut values = Vec::with_capacity(size.area() as usize * 3);
    for channel in 0..3 {
        for step in 0..size.height {
            let row = inside(y, step, whole.height) * whole.width as usize * 3;
            values.extend(columns.iter().map(|at| f32::from(pixels[row + at + channel]) / 255.0));
        }
    }
    Planes { size, values }
}

/// Writes what lies `rim` inside `planes` at a place of `picture`.
fn write(picture: &mut RgbImage, (x, y): (u32, u32), planes: &Planes, rim: u32, size: Size) {
    let stride = planes.size.width as usize;
    let plane = stride * planes.size.height as usize;
    let target_stride = picture.width() as usize * 3;
    let target: &mut [u8] = picture;
    for row in 0..size.height {
        let from = (row + rim) as usize * stride + rim as usize;
        let to = (y + row) as usize * target_stride + x as usize * 3;
        for column in 0..size.width as usize {
            for channel in 0..3 {
                let value = planes.values[channel * plane + from + column];
                target[to + column * 3 + channel] = (value * 255.0).round() as u8;
            }
        }
    }
}

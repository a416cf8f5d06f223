//! A reader: three networks of PP-OCR, run as RapidOCR runs them.

use std::path::Path;

use image::RgbImage;
use serde_json::Value;

use super::boxes::{self, Likelihood, overlap};
use super::letters;
use super::resampling::{self, Quad};
use crate::onnx::{OnnxError, Runtime, Session};
use crate::picture::Picture;

/// The files of a reader in its folder: what finds lines, what tells which way up they are, what reads them.
pub const FILES: [&str; 3] = ["detection.onnx", "orientation.onnx", "recognition.onnx"];
/// Where the recogniser lists its characters.
const CHARACTERS: &str = "character";

// RapidOCR's own limits.
const MOST_SIDE: u32 = 2000;
const LEAST_SIDE: u32 = 30;
const DETECTION_SIDE: u32 = 736;
/// A picture that is wider, in heights, gets black rows above and below.
const WIDEST: u32 = 8;

/// The network's pixels are no more than this: it would take gigabytes for a picture one pixel wide.
const MOST_PIXELS: f64 = 9e6;
/// Two boxes that overlap more than this are the same line.
const SAME: f64 = 0.5;
/// A line so near to the inner rim of a window may go on beyond it.
const RIM: f64 = 6.0;

/// Reads lettering.
#[derive(Debug)]
pub struct Reader {
    detection: Session,
    orientation: Session,
    recognition: Session,
    characters: Vec<String>,
    identity: Value,
}

/// A line as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its corners in pixels of the picture, from the top left one on as the text runs.
    pub corners: [[f64; 2]; 4],
    /// What it says.
    pub text: String,
    /// How sure the reader is, 0 to 1.
    pub confidence: f64,
}

/// How a picture that is larger than a window is searched, beside the look at all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    pub(super) side: u32,
    pub(super) overlap: u32,
}

impl Reader {
    /// Loads the networks; `identity` is what the record says of them.
    pub fn load(runtime: Runtime, folder: &Path, identity: Value) -> Result<Self, OnnxError> {
        let [detection, orientation, recognition] =
            FILES.map(|name| Session::load(runtime, &folder.join(name)));
        let (detection, orientation, recognition) = (detection?, orientation?, recognition?);
        let list = recognition.metadata(CHARACTERS).ok_or_else(|| OnnxError::Model {
            model: recognition.path().to_owned(),
            reason: format!("it has no list of characters (metadata {CHARACTERS:?})"),
        })?;
        let characters = letters::characters(&list);
        Ok(Self { detection, orientation, recognition, characters, identity })
    }

    /// What the record says of the networks.
    pub fn identity(&self) -> &Value {
        &self.identity
    }

    /// Every line; the caller decides how sure a reading must be.
    pub(super) fn read(&self, picture: &Picture, windows: Windows) -> Result<Vec<Line>, String> {
        let pixels = picture.rgb();
        let whole = self.find(pixels)?;
        let closer = self.find_in_windows(pixels, windows)?;
        // A picture that RapidOCR reads as it is, is read like that, and more is only added. A larger one is
        // reduced for the look at all of it, so that windows see better.
        let reduced = pixels.width().max(pixels.height()) > MOST_SIDE;
        let (first, second) = if reduced { (closer, whole) } else { (whole, closer) };
        let first = if reduced { without_doubles(first) } else { first };
        let mut added: Vec<Quad> = Vec::new();
        for quad in second {
            if first.iter().chain(&added).all(|other| overlap(other, &quad) <= SAME) {
                added.push(quad);
            }
        }
        let mut lines = self.recognise(pixels, first)?;
        lines.extend(self.recognise(pixels, added)?);
        Ok(lines)
    }

    /// The boxes of lines in all of a picture.
    fn find(&self, pixels: &RgbImage) -> Result<Vec<Quad>, String> {
        let (width, height) = pixels.dimensions();
        let long = width.max(height);
        let mut seen = pixels.clone();
        if long > MOST_SIDE {
            let ratio = f64::from(MOST_SIDE) / f64::from(long);
            let (w, h) = in_steps(width, height, ratio);
            seen = resampling::resized(pixels, w, h);
        }
        let short = seen.width().min(seen.height());
        if short < LEAST_SIDE {
            let ratio = f64::from(LEAST_SIDE) / f64::from(short);
            let (w, h) = in_steps(seen.width(), seen.height(), ratio);
            seen = resampling::resized(&seen, w, h);
        }
        let (seen_width, seen_height) = seen.dimensions();
        let flat = f64::from(seen_width) / f64::from(seen_height) > f64::from(WIDEST);
        let rows = match seen_height <= LEAST_SIDE || flat {
            true => ((seen_width / WIDEST).max(LEAST_SIDE) * 2).abs_diff(seen_height) / 2,
            false => 0,
        };
        let seen = if rows > 0 { resampling::padded(&seen, rows) } else { seen };
        let (across, down) =
            (f64::from(width) / f64::from(seen_width), f64::from(height) / f64::from(seen_height));
        let place = |[x, y]: [f64; 2]| {
            [
                (x * across).clamp(0.0, f64::from(width)),
                ((y - f64::from(rows)) * down).clamp(0.0, f64::from(height)),
            ]
        };
        Ok(self.detect(&seen)?.into_iter().map(|quad| quad.map(place)).collect())
    }

    /// The network's boxes, in pixels of what it is shown.
    fn detect(&self, seen: &RgbImage) -> Result<Vec<Quad>, String> {
        let short = seen.width().min(seen.height());
        let ratio = (f64::from(DETECTION_SIDE) / f64::from(short)).max(1.0);
        let (width, height) = in_steps(seen.width(), seen.height(), ratio);
        let fed = resampling::resized(seen, width, height);
        let (width, height) = (width as usize, height as usize);
        let mut values = vec![0.0; 3 * width * height];
        for (at, pixel) in fed.as_raw().chunks_exact(3).enumerate() {
            for (plane, value) in pixel.iter().rev().enumerate() {
                values[plane * width * height + at] = (f32::from(*value) / 255.0 - 0.5) / 0.5;
            }
        }
        let answer = letters::run(&self.detection, [1, 3, height, width], values)?;
        if answer.shape != [1, 1, height, width] {
            let path = self.detection.path().display();
            return Err(format!("{path} made {:?} of {width}×{height} pixels", answer.shape));
        }
        let map = Likelihood { width, height, values: answer.data };
        Ok(boxes::lines(&map, seen.width(), seen.height()))
    }

    /// The boxes that overlapping windows at the picture's own detail show whole.
    fn find_in_windows(&self, pixels: &RgbImage, windows: Windows) -> Result<Vec<Quad>, String> {
        let (width, height) = pixels.dimensions();
        let (columns, rows) = (parts(width, windows), parts(height, windows));
        let mut found = Vec::new();
        if columns.len() == 1 && rows.len() == 1 {
            return Ok(found);
        }
        for &(top, h) in &rows {
            for &(left, w) in &columns {
                let window = image::imageops::crop_imm(pixels, left, top, w, h).to_image();
                for quad in self.find(&window)? {
                    let cut = |at: f64, start: u32, side: u32, whole: u32| {
                        (start > 0 && at < RIM)
                            || (start + side < whole && at > f64::from(side) - RIM)
                    };
                    let is_cut =
                        |[x, y]: &[f64; 2]| cut(*x, left, w, width) || cut(*y, top, h, height);
                    if !quad.iter().any(is_cut) {
                        found.push(quad.map(|[x, y]| [x + f64::from(left), y + f64::from(top)]));
                    }
                }
            }
        }
        Ok(found)
    }

    fn recognise(&self, pixels: &RgbImage, quads: Vec<Quad>) -> Result<Vec<Line>, String> {
        let mut lines: Vec<RgbImage> =
            quads.iter().map(|quad| resampling::straightened(pixels, quad)).collect();
        letters::turned(&mut lines, &self.orientation)?;
        let said = letters::said(&lines, &self.recognition, &self.characters)?;
        let line = |(corners, said): (Quad, letters::Said)| Line {
            corners,
            text: said.text,
            confidence: said.confidence,
        };
        let lines = quads.into_iter().zip(said).map(line);
        Ok(lines.filter(|line| !line.text.trim().is_empty()).collect())
    }
}

/// A size times a ratio in steps of 32 pixels, as the networks want it.
fn in_steps(width: u32, height: u32, ratio: f64) -> (u32, u32) {
    let area = f64::from(width) * f64::from(height) * ratio * ratio;
    let ratio = if area > MOST_PIXELS { ratio * (MOST_PIXELS / area).sqrt() } else { ratio };
    let side = |side: u32| {
        let whole = (f64::from(side) * ratio).trunc().min(MOST_PIXELS / 32.0);
        ((whole / 32.0).round_ties_even() as u32 * 32).max(32)
    };
    (side(width), side(height))
}

/// Where windows begin along a side, and how long they are there.
fn parts(length: u32, windows: Windows) -> Vec<(u32, u32)> {
    // A picture that is hardly longer than a window is seen well enough as a whole.
    if length <= windows.side + windows.overlap {
        return vec![(0, length)];
    }
    let count = (length - windows.overlap).div_ceil(windows.side - windows.overlap);
    let last = u64::from(length - windows.side);
    let start = |at: u32| (last * u64::from(at) / u64::from(count - 1)) as u32;
    (0..count).map(|at| (start(at), windows.side)).collect()
}

/// Of boxes of the same line the longest.
fn without_doubles(mut quads: Vec<Quad>) -> Vec<Quad> {
    let length = |quad: &Quad| resampling::distance(&quad[0], &quad[1]);
    quads.sort_by(|a, b| length(b).total_cmp(&length(a)));
    let mut kept: Vec<Quad> = Vec::new();
    for quad in quads {
        if kept.iter().all(|other| overlap(other, &quad) <= SAME) {
            kept.push(quad);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_steps_and_never_without_bounds() {
        assert_eq!(in_steps(1000, 600, 1.0), (992, 608));
        // Half a step goes to the even one.
        assert_eq!(in_steps(48, 80, 1.0), (64, 64));
        let (width, height) = in_steps(1, 60_000, 736.0);
        assert!(u64::from(width) * u64::from(height) < 10_000_000, "{width}×{height}");
        assert!(width >= 32 && height >= 32);
    }

    #[test]
    fn windows_cover_a_side_and_overlap() {
        let windows = Windows { side: 1024, overlap: 256 };
        assert_eq!(parts(1280, windows), [(0, 1280)]);
        for length in [1281, 2000, 4096, 12_000] {
            let parts = parts(length, windows);
            assert_eq!((parts[0].0, parts.last().unwrap().0 + 1024), (0, length));
            assert!(parts.windows(2).all(|pair| pair[0].0 + 1024 >= pair[1].0 + 256), "{parts:?}");
        }
    }

    #[test]
    fn of_doubles_the_longest_is_kept() {
        let word = |x: f64, w: f64| [[x, 0.0], [x + w, 0.0], [x + w, 20.0], [x, 20.0]];
        let kept = without_doubles(vec![word(10.0, 40.0), word(8.0, 90.0), word(200.0, 50.0)]);
        assert_eq!(kept, [word(8.0, 90.0), word(200.0, 50.0)]);
    }
}

//! From upright pictures of lines to characters: which way up each is, and what it says (CTC, greedy).

use std::cmp::Ordering;

use image::RgbImage;

use super::resampling;
use crate::onnx::{Input, Session, Tensor};

/// How high the networks want a line.
const HEIGHT: u32 = 48;
/// How wide a line at least is for the recogniser, and always for what tells the way up.
const LEAST_WIDTH: u32 = 320;
const UPSIDE_WIDTH: u32 = 192;
/// How many lines go through a network at a time.
const BATCH: usize = 6;
/// A line is turned where the network is surer than this that it stands on its head.
const SURE: f32 = 0.9;
/// Longer lines are squeezed: what the recogniser gives for them must fit into memory.
const MOST_WIDTH: u32 = 16_384;
/// A batch of wider lines than this goes line by line, for the same reason.
const WIDE: u32 = 2_048;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    pub(super) text: String,
    /// The mean of its characters' likelihoods.
    pub(super) confidence: f64,
}

/// Runs a network of one input and one output and refuses what is no number.
pub(super) fn run(
    session: &Session,
    shape: [usize; 4],
    values: Vec<f32>,
) -> Result<Tensor<f32>, String> {
    let (Some(input), [output]) = (session.inputs().keys().next(), session.outputs()) else {
        return Err(format!("{} must have one input and one output", session.path().display()));
    };
    let input = (input.as_str(), Input::F32(Tensor::new(shape, values)));
    let [answer] = session.run(&[input], [output.as_str()]).map_err(|error| error.to_string())?;
    if answer.data.iter().any(|value| !value.is_finite()) {
        let path = session.path().display();
        return Err(format!("{path} gave values that are no numbers (NaN or infinity)"));
    }
    Ok(answer)
}

/// Turns lines that stand on their heads.
pub(super) fn turned(lines: &mut [RgbImage], upside: &Session) -> Result<(), String> {
    for batch in batches(lines) {
        let values = batch.iter().flat_map(|&at| normalised(&lines[at], UPSIDE_WIDTH)).collect();
        let shape = [batch.len(), 3, HEIGHT as usize, UPSIDE_WIDTH as usize];
        let answer = run(upside, shape, values)?;
        if answer.shape != [batch.len(), 2] {
            return Err(format!("{} gave the extents {:?}", upside.path().display(), answer.shape));
        }
        for (&at, sides) in batch.iter().zip(answer.data.chunks_exact(2)) {
            if sides[1] > sides[0] && sides[1] > SURE {
                image::imageops::rotate180_in_place(&mut lines[at]);
            }
        }
    }
    Ok(())
}

/// What each line says.
pub(super) fn said(
    lines: &[RgbImage],
    recogniser: &Session,
    characters: &[String],
) -> Result<Vec<Said>, String> {
    let mut said = vec![Said { text: String::new(), confidence: 0.0 }; lines.len()];
    for batch in batches(lines) {
        let widest = batch.iter().map(|&at| ratio(&lines[at])).fold(0.0, f64::max);
        let widest = widest.max(f64::from(LEAST_WIDTH) / f64::from(HEIGHT));
        let width = ((f64::from(HEIGHT) * widest) as u32).min(MOST_WIDTH);
        for part in batch.chunks(if width > WIDE { 1 } else { BATCH }) {
            let values = part.iter().flat_map(|&at| normalised(&lines[at], width)).collect();
            let shape = [part.len(), 3, HEIGHT as usize, width as usize];
            let answer = run(recogniser, shape, values)?;
            let [count, steps, classes] = answer.shape[..] else {
                let path = recogniser.path().display();
                return Err(format!("{path} gave the extents {:?}", answer.shape));
            };
            if count != part.len() || classes != characters.len() || steps == 0 {
                return Err(format!(
                    "{} gave the extents {:?}; expected {} lines of {} characters",
                    recogniser.path().display(),
                    answer.shape,
                    part.len(),
                    characters.len()
                ));
            }
            for (&at, steps) in part.iter().zip(answer.data.chunks_exact(steps * classes)) {
                said[at] = decoded(steps, characters);
            }
        }
    }
    Ok(said)
}

/// The characters that a recogniser knows, from its list: first none at all, last the space.
pub(super) fn characters(list: &str) -> Vec<String> {
    let known = list.lines().map(str::to_owned);
    [String::new()].into_iter().chain(known).chain([" ".to_owned()]).collect()
}

/// The likeliest character at each step; repeated ones are one, and "none" stands between.
fn decoded(steps: &[f32], characters: &[String]) -> Said {
    let (mut text, mut sum, mut count, mut before) = (String::new(), 0.0, 0usize, 0);
    for step in steps.chunks_exact(characters.len()) {
        // The first of the largest.
        let best = step.iter().enumerate().fold(0, |best, (at, value)| {
            if step[best].total_cmp(value) == Ordering::Less { at } else { best }
        });
        if best != 0 && best != before {
            text.push_str(&characters[best]);
            sum += f64::from(step[best]);
            count += 1;
        }
        before = best;
    }
    let confidence = if count == 0 { 0.0 } else { sum / count as f64 };
    Said { text, confidence: (confidence * 1e5).round() / 1e5 }
}

/// Indices of lines of about the same shape together: less of a batch is empty then.
fn batches(lines: &[RgbImage]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| ratio(&lines[a]).total_cmp(&ratio(&lines[b])));
    order.chunks(BATCH).map(<[usize]>::to_vec).collect()
}

fn ratio(line: &RgbImage) -> f64 {
    f64::from(line.width()) / f64::from(line.height())
}

/// A line as planes of blue, green and red from −1 to 1, empty (0) to its right.
fn normalised(line: &RgbImage, width: u32) -> Vec<f32> {
    let own = ((f64::from(HEIGHT) * ratio(line)).ceil() as u32).min(width);
    let resized = resampling::resized(line, own, HEIGHT);
    let mut values = vec![0.0; 3 * HEIGHT as usize * width as usize];
    for (x, y, pixel) in resized.enumerate_pixels() {
        for (plane, value) in pixel.0.iter().rev().enumerate() {
            let at = (plane * HEIGHT as usize + y as usize) * width as usize + x as usize;
            values[at] = (f32::from(*value) / 255.0 - 0.5) / 0.5;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_characters_are_one_unless_nothing_stands_between() {
        let characters = characters("a\nb");
        assert_eq!(characters, ["", "a", "b", " "]);
        let step = |best: usize| (0..4).map(move |at| if at == best { 0.75 } else { 0.1 });
        let steps: Vec<f32> = [0, 1, 1, 0, 1, 2, 2, 3, 0].into_iter().flat_map(step).collect();
        let said = decoded(&steps, &characters);
        assert_eq!((said.text.as_str(), said.confidence), ("aab ", 0.75));
        assert_eq!(decoded(&[1.0, 0.0, 0.0, 0.0], &characters).confidence, 0.0);
    }

    #[test]
    fn lines_of_one_shape_are_together_and_what_is_empty_is_zero() {
        let line = |width: u32| RgbImage::from_pixel(width, 24, image::Rgb([255, 0, 0]));
        let lines: Vec<RgbImage> = [90, 30, 60, 10, 70, 20, 80].map(line).into();
        assert_eq!(batches(&lines), [vec![3, 5, 1, 2, 4, 6], vec![0]]);
        let values = normalised(&line(30), 100);
        let (blue, red) = (&values[..100], &values[2 * 4800..2 * 4800 + 100]);
        assert!(
            blue[..60].iter().all(|&value| value == -1.0) && blue[60..].iter().all(|&v| v == 0.0)
        );
        assert!(red[..60].iter().all(|&value| value == 1.0));
    }
}

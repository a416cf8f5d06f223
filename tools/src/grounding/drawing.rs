//! Numbered boxes on a picture.

use image::{Rgb, RgbImage};

use crate::coords::PixelBox;
use crate::picture::Picture;

const LINE: Rgb<u8> = Rgb([255, 0, 0]);
const PAPER: Rgb<u8> = Rgb([255, 255, 255]);

/// The digits 0 to 9, three dots wide and five high; the highest bit of a row is its left dot.
const DIGITS: [[u8; 5]; 10] = [
    [0b111, 0b101, 0b101, 0b101, 0b111],
    [0b010, 0b110, 0b010, 0b010, 0b111],
    [0b111, 0b001, 0b111, 0b100, 0b111],
    [0b111, 0b001, 0b111, 0b001, 0b111],
    [0b101, 0b101, 0b111, 0b001, 0b001],
    [0b111, 0b100, 0b111, 0b001, 0b111],
    [0b111, 0b100, 0b111, 0b101, 0b111],
    [0b111, 0b001, 0b001, 0b010, 0b010],
    [0b111, 0b101, 0b111, 0b101, 0b111],
    [0b111, 0b101, 0b111, 0b001, 0b111],
];

/// The picture with the boxes around, not over, what they hold, numbered from 1. The first is drawn
/// last: it is the best.
pub(super) fn with_boxes(picture: &Picture, boxes: &[PixelBox]) -> Picture {
    let mut canvas = picture.rgb().clone();
    let line = i64::from((picture.size().long_side() / 400).max(2));
    for (at, area) in boxes.iter().enumerate().rev() {
        let [x1, y1, x2, y2] = area.edges();
        let (x1, y1) = (x1.floor() as i64, y1.floor() as i64);
        let (x2, y2) = (x2.ceil() as i64, y2.ceil() as i64);
        fill(&mut canvas, [x1 - line, y1 - line, x2 + line, y1], LINE);
        fill(&mut canvas, [x1 - line, y2, x2 + line, y2 + line], LINE);
        fill(&mut canvas, [x1 - line, y1, x1, y2], LINE);
        fill(&mut canvas, [x2, y1, x2 + line, y2], LINE);
        write_number(&mut canvas, at + 1, [x1 - line, y1 - line], line);
    }
    Picture::from_rgb(canvas).unwrap_or_else(|| picture.clone())
}

/// The number on a white tag that ends at the upper left corner of its box, or stands under that
/// corner where the picture ends.
fn write_number(canvas: &mut RgbImage, number: usize, [left, bottom]: [i64; 2], dot: i64) {
    let digits: Vec<usize> = number
        .to_string()
        .bytes()
        .map(|digit| usize::from(digit.saturating_sub(b'0')) % 10)
        .collect();
    let (width, height) = ((4 * digits.len() as i64 + 1) * dot, 7 * dot);
    let left = left.clamp(0, (i64::from(canvas.width()) - width).max(0));
    let top = if bottom < height { bottom.max(0) } else { bottom - height };
    fill(canvas, [left, top, left + width, top + height], PAPER);
    for (place, digit) in digits.into_iter().enumerate() {
        for (row, bits) in DIGITS[digit].into_iter().enumerate() {
            for column in (0..3).filter(|column| bits >> (2 - column) & 1 == 1) {
                let x = left + (4 * place as i64 + 1 + column) * dot;
                let y = top + (1 + row as i64) * dot;
                fill(canvas, [x, y, x + dot, y + dot], LINE);
            }
        }
    }
}

/// Fills the part of `x1, y1, x2, y2` that is on the canvas.
fn fill(canvas: &mut RgbImage, [x1, y1, x2, y2]: [i64; 4], colour: Rgb<u8>) {
    let (width, height) = (i64::from(canvas.width()), i64::from(canvas.height()));
    for y in y1.max(0)..y2.min(height) {
        for x in x1.max(0)..x2.min(width) {
            canvas.put_pixel(x as u32, y as u32, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_box_stays_as_it_is() {
        let grey = Picture::from_rgb(RgbImage::from_pixel(100, 80, Rgb([90; 3]))).unwrap();
        let boxes = [PixelBox::new(40.0, 40.0, 60.0, 50.0), PixelBox::new(-5.0, -5.0, 400.0, 3.0)];
        let drawn = with_boxes(&grey, &boxes);
        let pixel = |x, y| drawn.rgb().get_pixel(x, y).0;
        assert_eq!(pixel(50, 45), [90; 3]);
        assert_eq!((pixel(50, 39), pixel(39, 45), pixel(60, 45)), (LINE.0, LINE.0, LINE.0));
        assert_eq!(pixel(80, 70), [90; 3]);
    }
}

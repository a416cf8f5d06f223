//! Capital letters as strokes on a grid of 4 by 6, and the words that signs carry.

use super::shape::{Point, Shape};

/// Every word a sign can carry.
pub const WORDS: [&str; 24] = [
    "OPEN", "CAFE", "STOP", "EXIT", "SALE", "MENU", "TAXI", "PARK", "BANK", "ZOO", "BUS", "TEA",
    "HOTEL", "MUSIC", "BOOKS", "PIZZA", "BEACH", "WATER", "CLOSED", "BAKERY", "GARDEN", "MUSEUM",
    "FLOWER", "SCHOOL",
];

type Stroke = &'static [(u8, u8)];

/// The strokes of a capital letter; nothing for any other character.
fn strokes(letter: char) -> &'static [Stroke] {
    match letter {
        'A' => &[&[(0, 6), (0, 2), (2, 0), (4, 2), (4, 6)], &[(0, 4), (4, 4)]],
        'B' => &[
            &[(0, 0), (0, 6), (3, 6), (4, 5), (4, 4), (3, 3), (0, 3)],
            &[(0, 0), (3, 0), (4, 1), (4, 2), (3, 3)],
        ],
        'C' => &[&[(4, 1), (3, 0), (1, 0), (0, 1), (0, 5), (1, 6), (3, 6), (4, 5)]],
        'D' => &[&[(0, 0), (0, 6), (2, 6), (4, 4), (4, 2), (2, 0), (0, 0)]],
        'E' => &[&[(4, 0), (0, 0), (0, 6), (4, 6)], &[(0, 3), (3, 3)]],
        'F' => &[&[(4, 0), (0, 0), (0, 6)], &[(0, 3), (3, 3)]],
        'G' => &[&[(4, 1), (3, 0), (1, 0), (0, 1), (0, 5), (1, 6), (3, 6), (4, 5), (4, 3), (2, 3)]],
        'H' => &[&[(0, 0), (0, 6)], &[(4, 0), (4, 6)], &[(0, 3), (4, 3)]],
        'I' => &[&[(2, 0), (2, 6)], &[(1, 0), (3, 0)], &[(1, 6), (3, 6)]],
        'K' => &[&[(0, 0), (0, 6)], &[(4, 0), (0, 3), (4, 6)]],
        'L' => &[&[(0, 0), (0, 6), (4, 6)]],
        'M' => &[&[(0, 6), (0, 0), (2, 3), (4, 0), (4, 6)]],
        'N' => &[&[(0, 6), (0, 0), (4, 6), (4, 0)]],
        'O' => &[&[(1, 0), (3, 0), (4, 1), (4, 5), (3, 6), (1, 6), (0, 5), (0, 1), (1, 0)]],
        'P' => &[&[(0, 6), (0, 0), (3, 0), (4, 1), (4, 2), (3, 3), (0, 3)]],
        'R' => &[&[(0, 6), (0, 0), (3, 0), (4, 1), (4, 2), (3, 3), (0, 3)], &[(2, 3), (4, 6)]],
        'S' => &[&[
            (4, 1),
            (3, 0),
            (1, 0),
            (0, 1),
            (0, 2),
            (1, 3),
            (3, 3),
            (4, 4),
            (4, 5),
            (3, 6),
            (1, 6),
            (0, 5),
        ]],
        'T' => &[&[(0, 0), (4, 0)], &[(2, 0), (2, 6)]],
        'U' => &[&[(0, 0), (0, 5), (1, 6), (3, 6), (4, 5), (4, 0)]],
        'V' => &[&[(0, 0), (2, 6), (4, 0)]],
        'W' => &[&[(0, 0), (1, 6), (2, 3), (3, 6), (4, 0)]],
        'X' => &[&[(0, 0), (4, 6)], &[(4, 0), (0, 6)]],
        'Y' => &[&[(0, 0), (2, 3), (4, 0)], &[(2, 3), (2, 6)]],
        'Z' => &[&[(0, 0), (4, 0), (0, 6), (4, 6)]],
        _ => &[],
    }
}

/// Width over height of a board for a word of `letters` letters.
pub(super) fn board_aspect(letters: usize) -> f32 {
    (letters as f32 * 5.4 - 1.4 + 3.6) / 9.6
}

/// The word as strokes, centred on (0, 0) and as large as fits into `half` sides.
pub(super) fn lettering(word: &str, half: Point) -> Shape {
    let width = word.chars().count() as f32 * 5.4 - 1.4;
    let unit = (2.0 * half[0] / (width + 1.0)).min(2.0 * half[1] / 7.0);
    let half_stroke = 0.46 * unit;
    let letter = |(at, letter): (usize, char)| {
        let left = at as f32 * 5.4 - width / 2.0;
        let place =
            |&(x, y): &(u8, u8)| [(left + f32::from(x)) * unit, (f32::from(y) - 3.0) * unit];
        let line = |stroke: &Stroke| Shape::Line(stroke.iter().map(place).collect(), half_stroke);
        let lines = Shape::Join(strokes(letter).iter().map(line).collect());
        let reach = [2.0 * unit + half_stroke, 3.0 * unit + half_stroke];
        Shape::Near([(left + 2.0) * unit, 0.0], reach, Box::new(lines))
    };
    Shape::Join(word.chars().enumerate().map(letter).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_every_word_can_be_drawn() {
        for letter in WORDS.iter().flat_map(|word| word.chars()) {
            assert!(!strokes(letter).is_empty(), "{letter}");
        }
    }
}

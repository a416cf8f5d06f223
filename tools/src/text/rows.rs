//! Lines of one row as one, and the rows of two pictures beside each other.

use super::boxes::overlap;
use super::reader::Line;
use super::resampling::{Quad, distance};
use crate::coords::PixelBox;

/// Words further apart, in heights of their letters, are not one row …
const FURTHEST: f64 = 1.0;
/// … nor are words that overlap further …
const DEEPEST: f64 = -0.6;
/// … that stand higher or lower than this …
const OFF_LINE: f64 = 0.35;
/// … or are so much larger.
const LARGER: f64 = 1.6;
/// Rows of two pictures that overlap more than this are the same row.
const SAME: f64 = 0.4;
/// Longer rows are compared as a whole.
const MOST_COMPARED: usize = 400;

/// Words that stand on one row: the reader often takes each of them for a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) corners: Quad,
    pub(super) text: String,
    /// Of the line that the reader is least sure of.
    pub(super) confidence: f64,
}

impl Row {
    pub(super) fn bbox(&self) -> PixelBox {
        bbox(&self.corners)
    }
}

pub(super) fn bbox(corners: &Quad) -> PixelBox {
    let side = |of: usize, pick: fn(f64, f64) -> f64| {
        corners.iter().map(|corner| corner[of]).reduce(pick).unwrap_or_default()
    };
    PixelBox::new(side(0, f64::min), side(1, f64::min), side(0, f64::max), side(1, f64::max))
}

/// The rows of a picture, from the top.
pub(super) fn rows(lines: &[Line]) -> Vec<Row> {
    let mut left_to_right: Vec<&Line> = lines.iter().collect();
    left_to_right.sort_by(|a, b| a.corners[0][0].total_cmp(&b.corners[0][0]));
    let mut rows: Vec<Row> = Vec::new();
    for line in left_to_right {
        let (text, confidence) = (line.text.trim(), line.confidence);
        match rows.iter_mut().find(|row| continues(&row.corners, &line.corners)) {
            Some(row) => {
                row.text = format!("{} {text}", row.text);
                row.confidence = row.confidence.min(confidence);
                row.corners[1] = line.corners[1];
                row.corners[2] = line.corners[2];
            }
            None => rows.push(Row { corners: line.corners, text: text.to_owned(), confidence }),
        }
    }
    rows.sort_by(|a, b| a.corners[0][1].total_cmp(&b.corners[0][1]));
    rows
}

/// Whether `next` goes on where `row` ends.
fn continues(row: &Quad, next: &Quad) -> bool {
    let middle = |a: [f64; 2], b: [f64; 2]| [(a[0] + b[0]) / 2.0, (a[1] + b[1]) / 2.0];
    let (end, start) = (middle(row[1], row[2]), middle(next[0], next[3]));
    let begin = middle(row[0], row[3]);
    let (own, their) = (distance(&row[1], &row[2]), distance(&next[0], &next[3]));
    let length = distance(&begin, &end);
    if length == 0.0 || own.max(their) > LARGER * own.min(their) {
        return false;
    }
    let (ux, uy) = ((end[0] - begin[0]) / length, (end[1] - begin[1]) / length);
    let (dx, dy) = (start[0] - end[0], start[1] - end[1]);
    let (along, away) = (dx * ux + dy * uy, dy * ux - dx * uy);
    let height = own.min(their);
    (DEEPEST * height..=FURTHEST * height).contains(&along) && away.abs() <= OFF_LINE * height
}

/// The same row in both pictures: what it says in each, where it is there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Aligned {
    pub(super) first: Option<Row>,
    pub(super) second: Option<Row>,
}

/// What became of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) from: String,
    pub(super) to: String,
}

/// The rows of both pictures, those at the same place together. `to_first` leads from the second picture to
/// the first.
pub(super) fn aligned(
    first: &[Row],
    second: &[Row],
    to_first: impl Fn(&Quad) -> Quad,
) -> Vec<Aligned> {
    // Rows that touch, directly or through others, are one: they were only parted differently.
    let mut group: Vec<usize> = (0..first.len() + second.len()).collect();
    for (at, row) in second.iter().enumerate() {
        let placed = to_first(&row.corners);
        for (other, own) in first.iter().enumerate() {
            if overlap(&own.corners, &placed) > SAME {
                let (from, to) = (group[first.len() + at], group[other]);
                group.iter_mut().filter(|of| **of == from).for_each(|of| *of = to);
            }
        }
    }
    let mut seen: Vec<usize> = Vec::new();
    for of in &group {
        if !seen.contains(of) {
            seen.push(*of);
        }
    }
    let joined = |rows: &[Row], start: usize, of: usize| {
        let mut rows: Vec<&Row> = rows
            .iter()
            .enumerate()
            .filter(|(at, _)| group[start + at] == of)
            .map(|(_, row)| row)
            .collect();
        rows.sort_by(|a, b| a.corners[0][0].total_cmp(&b.corners[0][0]));
        let (head, tail) = (rows.first()?, rows.last()?);
        let texts: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        let confidence = rows.iter().map(|row| row.confidence).fold(1.0, f64::min);
        let corners = [head.corners[0], tail.corners[1], tail.corners[2], head.corners[3]];
        Some(Row { corners, text: texts.join(" "), confidence })
    };
    seen.into_iter()
        .map(|of| Aligned { first: joined(first, 0, of), second: joined(second, first.len(), of) })
        .collect()
}

impl Aligned {
    /// What differs, where it is in both.
    pub(super) fn changes(&self) -> Vec<Change> {
        match (&self.first, &self.second) {
            (Some(first), Some(second)) => changes(&first.text, &second.text),
            _ => Vec::new(),
        }
    }

    /// Whether both pictures say the same there. How words are parted is the reader's doing.
    pub(super) fn is_same(&self) -> bool {
        let bare = |row: &Row| row.text.split_whitespace().collect::<String>();
        match (&self.first, &self.second) {
            (Some(first), Some(second)) => bare(first) == bare(second),
            _ => false,
        }
    }
}

/// The pieces in which two texts differ, spaces aside.
fn changes(first: &str, second: &str) -> Vec<Change> {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<Vec<char>>();
    let (a, b) = (letters(first), letters(second));
    if a.len() > MOST_COMPARED || b.len() > MOST_COMPARED {
        return vec![Change { from: first.to_owned(), to: second.to_owned() }];
    }
    // How many letters the texts share from each place on.
    let width = b.len() + 1;
    let mut shared = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            shared[i * width + j] = if a[i] == b[j] {
                shared[(i + 1) * width + j + 1] + 1
            } else {
                shared[(i + 1) * width + j].max(shared[i * width + j + 1])
            };
        }
    }
    let mut changes: Vec<Change> = Vec::new();
    let (mut i, mut j, mut open) = (0, 0, false);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j, open) = (i + 1, j + 1, false);
            continue;
        }
        if !open {
            changes.push(Change { from: String::new(), to: String::new() });
            open = true;
        }
        let Some(change) = changes.last_mut() else { break };
        let drop_first = j == b.len()
            || (i < a.len() && shared[(i + 1) * width + j] >= shared[i * width + j + 1]);
        if drop_first {
            change.from.push(a[i]);
            i += 1;
        } else {
            change.to.push(b[j]);
            j += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, x: f64, y: f64) -> Line {
        let w = text.len() as f64 * 10.0;
        let corners = [[x, y], [x + w, y], [x + w, y + 20.0], [x, y + 20.0]];
        Line { corners, text: text.to_owned(), confidence: 0.9 }
    }

    #[test]
    fn words_on_one_row_are_joined_and_others_are_not() {
        let lines = [
            line("5919", 66.0, 11.0),
            line("River", 10.0, 10.0),
            line("Far", 300.0, 10.0),
            line("Under", 10.0, 34.0),
        ];
        let texts: Vec<String> = rows(&lines).into_iter().map(|row| row.text).collect();
        assert_eq!(texts, ["River 5919", "Far", "Under"]);
    }

    #[test]
    fn rows_at_the_same_place_stand_together_however_they_were_parted() {
        let first = rows(&[line("Hotel 1563", 10.0, 10.0), line("gone", 10.0, 90.0)]);
        let apart =
            [line("Hotel", 14.0, 10.0), line("1568", 71.0, 10.0), line("new", 200.0, 150.0)];
        let parted: Vec<Row> =
            apart.iter().flat_map(|line| rows(std::slice::from_ref(line))).collect();
        let found = aligned(&first, &parted, |quad| *quad);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].second.as_ref().unwrap().text, "Hotel 1568");
        assert!(!found[0].is_same());
        assert_eq!(found[0].changes(), [Change { from: "3".to_owned(), to: "8".to_owned() }]);
        assert!(found[1].second.is_none() && found[2].first.is_none());
    }

    #[test]
    fn every_piece_that_differs_is_told_and_spaces_are_not() {
        let pieces = |a: &str, b: &str| -> Vec<(String, String)> {
            changes(a, b).into_iter().map(|change| (change.from, change.to)).collect()
        };
        let own = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        assert_eq!(pieces("Theatre", "Tbgatoe"), own(&[("he", "bg"), ("r", "o")]));
        assert_eq!(pieces("A B", "AB"), own(&[]));
        assert_eq!(pieces("", "x"), own(&[("", "x")]));
        assert_eq!(pieces("SALE", ""), own(&[("SALE", "")]));
    }
}

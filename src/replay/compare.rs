//! Comparing values and pictures, exactly or as far as a network is the same on another machine.

use deeplook_tools::{Picture, PixelBox};
use serde::Serialize;
use serde_json::Value;

use super::report::PixelDifference;

/// A network's pixels may differ by this much on another CPU or runtime.
pub(super) const MOST_PIXEL_DIFFERENCE: u8 = 2;
/// Boxes of a network may overlap no less than this.
const LEAST_OVERLAP: f64 = 0.99;
/// Scores of a network may differ by this much.
const MOST_SCORE_DIFFERENCE: f64 = 0.02;

/// The places where two values differ: their path, and both values.
pub(super) fn differences<T: Serialize>(before: &T, after: &T) -> Vec<(String, Value, Value)> {
    let value = |it: &T| serde_json::to_value(it).unwrap_or_default();
    let mut found = Vec::new();
    collect(String::new(), &value(before), &value(after), &mut found);
    found
}

fn collect(path: String, before: &Value, after: &Value, found: &mut Vec<(String, Value, Value)>) {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or_default()
                };
                collect(path, &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                collect(format!("{path}[{index}]"), a, b, found);
            }
        }
        _ if before == after => {}
        _ => found.push((path, before.clone(), after.clone())),
    }
}

/// Whether two values of a network say the same within the tolerance.
pub(super) fn tolerable(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| tolerable(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => match (as_box(before), as_box(after)) {
            (Some(a), Some(b)) => overlap(&a, &b) >= LEAST_OVERLAP,
            _ => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| tolerable(a, b)),
        },
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() <= MOST_SCORE_DIFFERENCE,
            _ => a == b,
        },
        _ => before == after,
    }
}

/// Whether two texts of a network say the same but for their numbers, which `data` holds too.
pub(super) fn same_but_for_numbers(before: &str, after: &str) -> bool {
    let words = |text: &str| -> String {
        let mut words = String::new();
        for c in text.chars() {
            if !(c.is_ascii_digit() || c == '.') {
                words.push(c);
            } else if !words.ends_with('#') {
                words.push('#');
            }
        }
        words
    };
    words(before) == words(after)
}

fn as_box(value: &Value) -> Option<PixelBox> {
    let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
    match numbers?[..] {
        [x1, y1, x2, y2] => Some(PixelBox::new(x1, y1, x2, y2)),
        _ => None,
    }
}

fn overlap(a: &PixelBox, b: &PixelBox) -> f64 {
    if a == b {
        return 1.0;
    }
    let both = a.intersection(b).area();
    both / (a.area() + b.area() - both)
}

/// How two pictures differ; `None` where every pixel is the same. Pictures of different sizes
/// differ everywhere.
pub(super) fn pixels(before: &Picture, after: &Picture) -> Option<PixelDifference> {
    let (size, of) = (before.size(), before.size().area());
    if size != after.size() {
        let bbox = PixelBox::whole(size);
        return Some(PixelDifference { different: of, of, largest: 255, bbox });
    }
    let (mut different, mut largest) = (0, 0);
    let mut bbox: Option<PixelBox> = None;
    for ((x, y, a), b) in before.rgb().enumerate_pixels().zip(after.rgb().pixels()) {
        let most = a.0.iter().zip(b.0).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0);
        if most > 0 {
            different += 1;
            largest = largest.max(most);
            let (x, y) = (f64::from(x), f64::from(y));
            let here = PixelBox::new(x, y, x + 1.0, y + 1.0);
            bbox = Some(bbox.map_or(here, |area| area.union(&here)));
        }
    }
    bbox.map(|bbox| PixelDifference { different, of, largest, bbox })
}

#[cfg(test)]
mod tests {
    use image::{Rgb, RgbImage};
    use serde_json::json;

    use super::*;

    #[test]
    fn pictures_differ_by_so_much_and_there() {
        let flat = RgbImage::from_pixel(10, 8, Rgb([100; 3]));
        let mut other = flat.clone();
        other.put_pixel(3, 2, Rgb([100, 90, 100]));
        other.put_pixel(5, 6, Rgb([101, 100, 100]));
        let picture = |pixels| Picture::from_rgb(pixels).unwrap();
        let (flat, other) = (picture(flat), picture(other));
        assert_eq!(pixels(&flat, &flat), None);
        let found = pixels(&flat, &other).unwrap();
        assert_eq!((found.different, found.of, found.largest), (2, 80, 10));
        assert_eq!(found.bbox, PixelBox::new(3.0, 2.0, 6.0, 7.0));
        let small = picture(RgbImage::new(4, 4));
        assert_eq!(pixels(&flat, &small).unwrap().different, 80);
    }

    #[test]
    fn a_network_may_differ_a_little_but_not_in_what_it_found() {
        let boxes = |x: f64, phrase: &str, score: f64| json!({ "boxes": [{ "bbox": [x, 10.0, 110.0, 90.0], "phrase": phrase, "score": score }] });
        let before = boxes(10.0, "red mug", 0.5);
        assert!(tolerable(&before, &boxes(10.4, "red mug", 0.51)));
        assert!(!tolerable(&before, &boxes(12.0, "red mug", 0.5)));
        assert!(!tolerable(&before, &boxes(10.0, "red", 0.5)));
        assert!(!tolerable(&before, &boxes(10.0, "red mug", 0.6)));
        assert!(!tolerable(&before, &json!({ "boxes": [] })));
        assert!(same_but_for_numbers("2 boxes, 0.51 at [10, 20]", "2 boxes, 0.5 at [11, 20]"));
        assert!(!same_but_for_numbers("a mug at 3", "a cup at 3"));
    }

    #[test]
    fn differences_name_their_place() {
        let (a, b) = (json!({ "a": [1, { "b": 2 }], "c": 3 }), json!({ "a": [1, { "b": 4 }] }));
        let found = differences(&a, &b);
        assert_eq!(
            found,
            [("a[1].b".into(), json!(2), json!(4)), ("c".into(), json!(3), Value::Null)]
        );
    }
}

//! Boxes as other people write them.

use std::fmt;
use std::str::FromStr;

use deeplook_tools::{PixelBox, Size};
use serde_json::{Map, Value};

use super::problem::{shown, shown_json};

/// What four bare numbers mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxForm {
    /// `x1, y1, x2, y2`
    Corners,
    /// `x, y, width, height`
    Sized,
}

impl BoxForm {
    /// What the name of a field says about it; ours and `box` mean corners.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        if name.contains("xywh") {
            Some(Self::Sized)
        } else if name.contains("xyxy") || name == "boxes" || name == "box" {
            Some(Self::Corners)
        } else {
            None
        }
    }

    fn area(self, [a, b, c, d]: [f64; 4]) -> PixelBox {
        match self {
            Self::Corners => PixelBox::new(a, b, c, d),
            Self::Sized => PixelBox::new(a, b, a + c, b + d),
        }
    }
}

impl FromStr for BoxForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "xyxy" => Ok(Self::Corners),
            "xywh" => Ok(Self::Sized),
            _ => Err(format!("{} is no form of a box; use xyxy or xywh", shown(text))),
        }
    }
}

impl fmt::Display for BoxForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corners => "xyxy",
            Self::Sized => "xywh",
        })
    }
}

/// A box as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Written {
    /// Its edges have names.
    Named(PixelBox),
    /// Four numbers.
    Bare([f64; 4]),
}

impl Written {
    pub(super) fn area(self, form: BoxForm) -> PixelBox {
        match self {
            Self::Named(area) => area,
            Self::Bare(numbers) => form.area(numbers),
        }
    }
}

/// Reads one box or a list of them; the error says what is expected.
pub(super) fn read(value: &Value) -> Result<Vec<Written>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => read_text(text),
        Value::Object(_) => Ok(vec![one(value)?]),
        Value::Array(items) if items.iter().any(Value::is_number) => Ok(vec![one(value)?]),
        Value::Array(items) => items.iter().map(one).collect(),
        other => Err(expected(other)),
    }
}

fn expected(value: &Value) -> String {
    format!("{} is no box; write [[x1, y1, x2, y2], …]", shown_json(value))
}

fn read_text(text: &str) -> Result<Vec<Written>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if let Ok(value @ (Value::Array(_) | Value::Object(_) | Value::Null)) =
        serde_json::from_str(text)
    {
        return read(&value);
    }
    let bare = |part: &str| {
        let numbers: Vec<f64> = part
            .split([',', ' '])
            .filter(|n| !n.is_empty())
            .map_while(|n| n.parse().ok())
            .collect();
        let written = part.split([',', ' ']).filter(|n| !n.is_empty()).count();
        match numbers[..] {
            [a, b, c, d] if written == 4 => Ok(Written::Bare([a, b, c, d])),
            _ => Err(format!("{} is no box; write x1,y1,x2,y2;x1,y1,x2,y2", shown(part))),
        }
    };
    text.split(';').filter(|part| !part.trim().is_empty()).map(bare).collect()
}

/// One box: four numbers, an object that names its edges, or an object that holds one of these.
fn one(value: &Value) -> Result<Written, String> {
    match value {
        Value::Array(items) => {
            let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
            match numbers.as_deref() {
                Some(&[a, b, c, d]) => Ok(Written::Bare([a, b, c, d])),
                _ => Err(expected(value)),
            }
        }
        Value::Object(edges) => named(edges).ok_or_else(|| expected(value))?,
        Value::String(text) => match read_text(text)?[..] {
            [single] => Ok(single),
            _ => Err(expected(value)),
        },
        other => Err(expected(other)),
    }
}

fn named(edges: &Map<String, Value>) -> Option<Result<Written, String>> {
    let four = |names: [&str; 4]| {
        let [a, b, c, d] = names.map(|name| edges.get(name).and_then(Value::as_f64));
        Some([a?, b?, c?, d?])
    };
    let corners = [
        ["x1", "y1", "x2", "y2"],
        ["xmin", "ymin", "xmax", "ymax"],
        ["left", "top", "right", "bottom"],
    ];
    let sized =
        [["x", "y", "width", "height"], ["x", "y", "w", "h"], ["left", "top", "width", "height"]];
    let found = corners.into_iter().find_map(four).map(|numbers| BoxForm::Corners.area(numbers));
    let found = found
        .or_else(|| sized.into_iter().find_map(four).map(|numbers| BoxForm::Sized.area(numbers)));
    match found {
        Some(area) => Some(Ok(Written::Named(area))),
        // One level only: what is nested deeper is not a box.
        None => ["box", "bbox"].into_iter().find_map(|name| match edges.get(name)? {
            Value::Object(inner) if named_directly(inner) => named(inner),
            list @ Value::Array(_) => Some(one(list)),
            _ => None,
        }),
    }
}

fn named_directly(edges: &Map<String, Value>) -> bool {
    !edges.contains_key("box") && !edges.contains_key("bbox")
}

/// Finds out what the bare boxes of a whole file mean, from the sizes of the pictures they are in.
///
/// One form must be impossible somewhere and the other one possible everywhere; else it is not
/// known, and the error says so.
pub(super) fn form_of(
    bare: impl IntoIterator<Item = ([f64; 4], Option<Size>)>,
) -> Result<BoxForm, String> {
    let (mut all, mut bad_corners, mut bad_sized) = (0, 0, 0);
    for (numbers, size) in bare {
        let possible = |form: BoxForm| {
            let area = form.area(numbers);
            // Rounding may carry an edge over the border by a pixel.
            let fits = |size: Size| area.clipped(size).grown(1.0, 1.0).intersection(&area) == area;
            !area.is_empty() && size.is_none_or(fits)
        };
        all += 1;
        bad_corners += usize::from(!possible(BoxForm::Corners));
        bad_sized += usize::from(!possible(BoxForm::Sized));
    }
    match (bad_corners, bad_sized) {
        (0, 1..) => Ok(BoxForm::Corners),
        (1.., 0) => Ok(BoxForm::Sized),
        _ => Err(format!(
            "its four numbers may be x1, y1, x2, y2 or x, y, width, height ({bad_corners} and {bad_sized} of {all} boxes would be empty or leave the picture)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn corners(value: &Value) -> Vec<[f64; 4]> {
        read(value).unwrap().into_iter().map(|b| b.area(BoxForm::Corners).edges()).collect()
    }

    #[test]
    fn one_box_or_several_in_many_forms() {
        let one = vec![[1.0, 2.0, 30.0, 40.0]];
        for value in [
            json!([1, 2, 30, 40]),
            json!([[1, 2, 30, 40]]),
            json!("[1, 2, 30, 40]"),
            json!("[[1.0, 2, 30, 40]]"),
            json!("1,2,30,40"),
            json!("1, 2, 30, 40;"),
            json!({"x": 1, "y": 2, "width": 29, "height": 38}),
            json!([{"x": 1, "y": 2, "w": 29, "h": 38}]),
            json!([{"label": "cup", "bbox": [1, 2, 30, 40]}]),
            json!([{"label": "cup", "box": {"xmin": 1, "ymin": 2, "xmax": 30, "ymax": 40}}]),
            json!("{\"x1\": 1, \"y1\": 2, \"x2\": 30, \"y2\": 40}"),
        ] {
            assert_eq!(corners(&value), one, "{value}");
        }
        assert_eq!(corners(&json!("1,2,3,4;5,6,7,8")).len(), 2);
        for value in [json!(null), json!([]), json!(""), json!("[]")] {
            assert!(corners(&value).is_empty(), "{value}");
        }
    }

    #[test]
    fn what_is_no_box_is_refused() {
        for value in [
            json!(4),
            json!([1, 2, 3]),
            json!([1, 2, 3, 4, 5]),
            json!([1, 2, 3, "x"]),
            json!([[1, 2, 3, 4], 5]),
            json!("1,2,3"),
            json!("1,2,3,4,5"),
            json!("left of the cup"),
            json!({"x": 1}),
            json!([[[1, 2, 3, 4]]]),
            json!({"bbox": {"bbox": {"bbox": [1, 2, 3, 4]}}}),
        ] {
            assert!(read(&value).unwrap_err().contains("no box"), "{value}");
        }
    }

    #[test]
    fn the_whole_file_tells_what_bare_numbers_mean_or_nobody_does() {
        let size = Some(Size::new(100, 100));
        let clear = [([60.0, 60.0, 90.0, 90.0], size)];
        assert_eq!(form_of(clear), Ok(BoxForm::Corners));
        let clear = [([60.0, 60.0, 20.0, 30.0], size), ([1.0, 1.0, 20.0, 30.0], size)];
        assert_eq!(form_of(clear), Ok(BoxForm::Sized));
        let either = [([1.0, 1.0, 20.0, 30.0], size)];
        assert!(form_of(either).unwrap_err().contains("0 and 0 of 1"));
        let neither = [([60.0, 60.0, 20.0, 30.0], size), ([60.0, 60.0, 90.0, 90.0], size)];
        assert!(form_of(neither).unwrap_err().contains("1 and 1 of 2"));
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[\\PC0-9,;\\[\\]{} ]{0,40}") {
            let _ = read(&Value::String(text));
        }
    }
}

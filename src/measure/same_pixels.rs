//! The share of pixels that two pictures have in common.

use deeplook_tools::PixelBox;
use serde::Deserialize;
use serde_json::json;

use super::{Measure, Measured, Method, NotMeasured};
use crate::case::EditCase;

/// Per cent of the first picture's pixels that are the same in the second, which is resized to the first.
pub(super) struct SamePixels;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Side {
    /// Only the region counts.
    Inside,
    /// Only the rest counts.
    #[default]
    Outside,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// By how much a channel may differ, of 255.
    tolerance: u8,
    /// Which side of the region counts.
    side: Side,
}

impl Method for SamePixels {
    fn name(&self) -> &'static str {
        "same_pixels"
    }

    fn version(&self) -> u32 {
        1
    }

    fn check(&self, measure: &Measure) -> Result<(), String> {
        if measure.pictures.len() != 2 {
            return Err("it compares two pictures; list both under pictures".to_owned());
        }
        measure.settings::<Settings>().map(drop)
    }

    fn measure(&self, measure: &Measure, case: &EditCase) -> Result<Measured, NotMeasured> {
        let Settings { tolerance, side } = measure.settings().map_err(NotMeasured::Failed)?;
        let (first, second) = (measure.picture(0, case)?, measure.picture(1, case)?);
        let (size, source) = (first.size(), case.source.picture().size());
        let second = second.resized(size);
        let (from, to) = (PixelBox::whole(source), PixelBox::whole(size));
        let boxes = measure.boxes(case).iter();
        let boxes: Vec<PixelBox> = boxes.map(|area| area.mapped(&from, &to)).collect();
        let inside = |x: u32, y: u32| {
            let (x, y) = (f64::from(x) + 0.5, f64::from(y) + 0.5);
            boxes.iter().any(|area| area.x1 <= x && x < area.x2 && area.y1 <= y && y < area.y2)
        };
        // Without a place everything is the rest.
        let counts = |x: u32, y: u32| inside(x, y) == (side == Side::Inside);
        let (mut same, mut all) = (0_u64, 0_u64);
        for ((x, y, one), other) in first.rgb().enumerate_pixels().zip(second.rgb().pixels()) {
            if counts(x, y) {
                let alike = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= tolerance;
                same += u64::from(one.0.iter().zip(&other.0).all(alike));
                all += 1;
            }
        }
        if all == 0 {
            return Err(NotMeasured::Missing("no pixel is left to compare".to_owned()));
        }
        let text = format!("{same} of {all} pixels are the same, within {tolerance} of 255");
        let value = 100.0 * same as f64 / all as f64;
        Ok(Measured { value, text, data: json!({ "same": same, "of": all }) })
    }
}

#[cfg(test)]
mod tests {
    use deeplook_tools::Picture;
    use image::{Rgb, RgbImage};

    use super::*;
    use crate::case::Case;

    fn case() -> EditCase {
        let grey = RgbImage::from_pixel(10, 10, Rgb([100; 3]));
        let mut edited = grey.clone();
        for x in 0..5 {
            edited.put_pixel(x, 0, Rgb([104; 3]));
        }
        let picture = |pixels| Picture::from_rgb(pixels).unwrap();
        Case::new(picture(grey), picture(edited), "edit")
            .with_targets([PixelBox::new(0.0, 0.0, 5.0, 2.0)])
    }

    fn value(region: Option<&str>, settings: serde_json::Value) -> Result<f64, NotMeasured> {
        let measure = Measure {
            name: "same_pixels".to_owned(),
            pictures: vec!["source".to_owned(), "edited".to_owned()],
            region: region.map(str::to_owned),
            settings,
        };
        measure.check().unwrap();
        measure.of(&case()).map(|measured| measured.value)
    }

    #[test]
    fn only_what_counts_is_compared() {
        assert_eq!(value(None, json!({})), Ok(95.0));
        assert_eq!(value(None, json!({ "tolerance": 4 })), Ok(100.0));
        assert_eq!(value(Some("target"), json!({})), Ok(100.0));
        assert_eq!(value(Some("target"), json!({ "side": "inside" })), Ok(50.0));
        let nowhere = value(Some("elsewhere"), json!({ "side": "inside" }));
        assert!(matches!(nowhere, Err(NotMeasured::Missing(_))), "{nowhere:?}");
    }
}

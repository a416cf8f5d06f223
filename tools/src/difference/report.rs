//! `localize_differences`: the tool, its words and its pictures.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Comparison, Region, Settings, compare};
use crate::coords::{BoxConvention, PixelBox};
use crate::picture::Picture;
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::{shown_size, side_by_side};
use crate::tool::{Tool, ToolError, ToolOutput};

/// Finds what differs between two pictures.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LocalizeDifferences {
    /// How many regions are shown where the call does not say.
    pub max_regions: usize,
    /// Context on each side of a crop, as a fraction of the box's longer side …
    pub margin: f64,
    /// … and at the least, as a fraction of the picture's long side: an object must be
    /// recognisable.
    pub margin_of_picture: f64,
    /// A crop whose long side is shorter is enlarged to this …
    pub floor: u32,
    /// … but never more often than this: there is no more detail to see.
    pub most: f64,
    /// A crop whose long side is longer is reduced to this.
    pub ceiling: u32,
    /// The method's thresholds.
    pub settings: Settings,
}

impl Default for LocalizeDifferences {
    fn default() -> Self {
        Self {
            max_regions: 8,
            margin: 0.5,
            margin_of_picture: 0.02,
            floor: 320,
            most: 6.0,
            ceiling: 512,
            settings: Settings::default(),
        }
    }
}

/// The most regions that a call may ask for.
const MOST_REGIONS: usize = 20;

/// The arguments of [`LocalizeDifferences`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DifferenceArgs {
    /// Name of the first picture, normally "Original Image" (the default).
    #[serde(default)]
    comparison_image_1: Option<String>,
    /// Name of the second picture, normally "Edited Image" (the default).
    #[serde(default)]
    comparison_image_2: Option<String>,
    /// The most regions to show, 1 to 20; 8 if not given.
    #[serde(default)]
    max_regions: Option<usize>,
}

impl Tool for LocalizeDifferences {
    type Args = DifferenceArgs;

    fn name(&self) -> &'static str {
        "localize_differences"
    }

    fn description(&self, _boxes: BoxConvention) -> String {
        "Finds what differs.".into()
    }

    fn settings(&self) -> serde_json::Value {
        serde_json::json!(self)
    }

    fn call(&self, args: DifferenceArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let first = scene.view(args.comparison_image_1.as_deref().unwrap_or(ORIGINAL))?;
        let second = scene.view(args.comparison_image_2.as_deref().unwrap_or(EDITED))?;
        let most = args.max_regions.unwrap_or(self.max_regions).clamp(1, MOST_REGIONS);
        let seen = compare(&first.picture, &second.picture, most, &self.settings);
        let regions: Vec<_> = seen.regions.iter().map(|r| json!({"bbox": r.bbox, "bbox_second": r.bbox_second, "strength": r.strength, "z": r.significance, "mass": r.mass})).collect();
        let data = json!({ "regions": regions, "differing": seen.differing, "affine": format!("{:?}", seen.registration), "nuisance": format!("{:?}", seen.nuisance) });
        let text = if seen.regions.is_empty() { "No difference." } else { "Differences" };
        Ok(ToolOutput { text: text.into(), data, pictures: vec![] })
    }
}

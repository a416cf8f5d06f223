//! `localize_differences`: what an editor changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coords::BoxConvention;
use crate::scene::{EDITED, ORIGINAL, Scene};
use crate::tool::{Tool, ToolError, ToolOutput};

/// Finds what differs between two pictures.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LocalizeDifferences {}

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
        if first.picture == second.picture {
            let data = serde_json::json!({ "regions": [] });
            return Ok(ToolOutput { text: "No difference.".into(), data, pictures: vec![] });
        }
        Err(ToolError::Broken { tool: "localize_differences", reason: "not there yet".into() })
    }
}

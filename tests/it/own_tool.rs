//! The recipe in ARCHITECTURE.md and docs/own-tool.md for adding a tool, followed to the letter.

#![expect(unreachable_pub, reason = "the recipe is for a file of the tools crate")]

use std::collections::BTreeMap;
use std::fs;

use deeplook_tools::{
    BoxConvention, Declaration, Declared, Networks, Picture, Scene, TOOLS, Tool, ToolError,
    ToolOutput, ToolSettings, Toolbox,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

// The recipe begins.
/// How bright a picture is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureBrightness {
    /// Below this, from 0 to 255, a picture is called dark.
    pub dark: f64,
}

impl Default for MeasureBrightness {
    fn default() -> Self {
        Self { dark: 60.0 }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrightnessArgs {
    /// Name of the picture, e.g. "Edited Image".
    target_image: String,
}

impl Tool for MeasureBrightness {
    type Args = BrightnessArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, _: BoxConvention) -> String {
        "Measures how bright a picture is. Use it where an instruction is about light.".to_owned()
    }

    fn settings(&self) -> Value {
        json!(self)
    }

    fn call(&self, args: BrightnessArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let view = scene.view(&args.target_image)?;
        let bytes = view.picture.rgb().as_raw();
        let mean = bytes.iter().map(|&byte| f64::from(byte)).sum::<f64>() / bytes.len() as f64;
        let dark = mean < self.dark;
        let text = format!("{} is {}.", view.name, if dark { "dark" } else { "not dark" });
        Ok(ToolOutput { text, data: json!({ "mean": mean, "dark": dark }), pictures: Vec::new() })
    }
}

impl Declared for MeasureBrightness {
    const NAME: &'static str = "measure_brightness";
    type Settings = Self;

    fn check(settings: &Self) -> Result<(), String> {
        match (0.0..=255.0).contains(&settings.dark) {
            true => Ok(()),
            false => Err(format!("dark is {}; give 0 to 255", settings.dark)),
        }
    }

    fn make(settings: Self, _: &Networks) -> Result<Self, String> {
        Ok(settings)
    }
}
// The recipe ends.

#[test]
fn the_recipe_is_the_one_in_the_book() {
    let own = include_str!("own_tool.rs");
    let (_, own) = own.split_once("// The recipe begins.\n").unwrap();
    let (own, _) = own.split_once("// The recipe ends.").unwrap();
    let book =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/own-tool.md")).unwrap();
    assert!(book.contains(&format!("```rust\n{own}```")), "docs/own-tool.md tells another tool");
}

#[test]
fn a_tool_of_one_file_and_one_line_has_all_that_others_have() {
    let tools: Vec<Declaration> =
        TOOLS.iter().copied().chain([Declaration::of::<MeasureBrightness>()]).collect();
    let settings: ToolSettings =
        serde_json::from_value(json!({ "measure_brightness": { "dark": 100.0 } })).unwrap();
    let toolbox = Toolbox::equipped(&tools, &settings, &Networks::default());

    // What it cannot have is named, and does not stop it.
    assert!(toolbox.names().any(|name| name == "measure_brightness"));
    let alone = TOOLS.iter().filter(|tool| tool.network.is_none()).count();
    assert_eq!(toolbox.names().count(), alone + 1);
    assert_eq!(toolbox.unavailable().len(), TOOLS.len() - alone);

    // A model is told of it and can call it; wrong arguments are refused in words.
    let spec = toolbox.specs(BoxConvention::PIXELS).pop().unwrap();
    assert_eq!(spec.parameters["required"], json!(["target_image"]));
    let grey = |value| {
        let pixels = image::RgbImage::from_pixel(8, 8, image::Rgb([value; 3]));
        Picture::from_rgb(pixels).unwrap()
    };
    let scene = Scene::new([grey(80), grey(200)]);
    let call = |args: Value| toolbox.call("measure_brightness", &args, &scene);
    let seen = call(json!({ "target_image": "original" })).unwrap();
    assert_eq!(seen.data, json!({ "mean": 80.0, "dark": true }));
    let refused = call(json!({ "target": 1 })).unwrap_err();
    assert!(refused.to_string().contains("target_image"), "{refused}");

    // Its settings are on record, and a replay has it again.
    let record: BTreeMap<String, Value> = toolbox.settings();
    assert_eq!(record["measure_brightness"], json!({ "dark": 100.0 }));
    let again = Toolbox::equipped(&tools, &settings, &Networks::default());
    let again = again.as_recorded(std::slice::from_ref(&spec), &record);
    assert!(!again.is_only_on_record("measure_brightness"));
}

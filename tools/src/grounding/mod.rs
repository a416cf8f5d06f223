//! `detect_object`: where in a picture is the thing of this name?

mod detector;
mod drawing;
mod pixels;
mod search;
#[cfg(test)]
mod tests;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use detector::{Detection, Detector, DetectorError, DetectorFiles, Raw, Thresholds};
pub use search::Windows;
pub use text::Caption;

use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox};
use crate::declaration::{Declared, NetworkKind, Networks};
use crate::picture::shown_size;
use crate::scene::{ORIGINAL, Panel, Scene, View, cut, quoted};
use crate::tool::{Tool, ToolError, ToolOutput};

/// What it looks with.
pub const DETECTOR: NetworkKind = NetworkKind {
    name: "detector",
    files: |path| {
        let files = DetectorFiles::beside(&model_in(path)).map_err(|error| error.to_string())?;
        Ok([files.model, files.tokenizer].into_iter().chain(files.preprocessor).collect())
    },
    load: |runtime, path, identity| {
        let files = DetectorFiles::beside(&model_in(path)).map_err(|error| error.to_string())?;
        let detector = Detector::load(runtime, &files, identity);
        Ok(Arc::new(detector.map_err(|error| error.to_string())?))
    },
};

/// Finds objects by their name, with GroundingDINO.
#[derive(Debug, Clone)]
pub struct DetectObject {
    detector: Arc<Detector>,
    settings: DetectionSettings,
}

/// What changes the boxes that are found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectionSettings {
    /// A box is kept where one of the name's words fits better than this.
    pub box_threshold: f32,
    /// A word belongs to a box's phrase where it fits better than this.
    pub text_threshold: f32,
    /// Of boxes that overlap more than this, only the best is kept.
    pub most_overlap: f64,
    /// No more boxes than this are given.
    pub most_boxes: usize,
    /// How a large picture is searched in parts.
    pub windows: Windows,
}

impl Default for DetectionSettings {
    fn default() -> Self {
        Self {
            box_threshold: 0.3,
            text_threshold: 0.25,
            most_overlap: 0.5,
            most_boxes: 20,
            windows: Windows::default(),
        }
    }
}

impl DetectionSettings {
    /// What cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("box_threshold", self.box_threshold, 0.0..=1.0)?;
        within("text_threshold", self.text_threshold, 0.0..=1.0)?;
        within("most_overlap", self.most_overlap, 0.0..=1.0)?;
        within("most_boxes", self.most_boxes, 1..=1000)?;
        within("windows.from_reduction", self.windows.from_reduction, 0.0..=1e6)?;
        within("windows.overlap", self.windows.overlap, 0.0..=0.9)?;
        within("windows.most", self.windows.most, 1..=100)
    }
}

/// The arguments of [`DetectObject`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetectArgs {
    /// Name of the picture to search, e.g. "Original Image", "Edited Image" or "Crop 2". Default:
    /// "Original Image".
    #[serde(default)]
    target_image: Option<String>,
    /// The object to find, as a short noun phrase, e.g. "yellow bicycle".
    detect_object_name: String,
    /// Whether to search in overlapping windows too, which finds small objects and takes longer.
    /// Default: true for large pictures.
    #[serde(default)]
    tiled: Option<bool>,
}

impl DetectObject {
    /// The tool with this detector.
    pub fn new(detector: Arc<Detector>) -> Self {
        Self::with_settings(detector, DetectionSettings::default())
    }

    /// The tool with this detector and settings of your own.
    pub fn with_settings(detector: Arc<Detector>, settings: DetectionSettings) -> Self {
        Self { detector, settings }
    }

    /// The detector by its name, with what whoever sees its boxes must know.
    fn by(&self) -> String {
        let identity = self.detector.identity();
        let name = cut(identity["name"].as_str().unwrap_or("without a name"), 60);
        match identity["note"].as_str() {
            Some(note) => format!("{name} ({note})"),
            None => name,
        }
    }

    /// Everything in one panel of a view, and how many windows it was searched in.
    fn search(
        &self,
        panel: &Panel,
        args: &DetectArgs,
        scene: &Scene,
    ) -> Result<(Vec<Detection>, usize), ToolError> {
        let source = scene.view(&panel.source)?;
        let caption = self.detector.caption(&args.detect_object_name)?;
        let thresholds =
            Thresholds { boxes: self.settings.box_threshold, text: self.settings.text_threshold };
        search::search(
            &self.detector,
            &source.picture,
            &panel.region.whole_pixels(source.picture.size()),
            &caption,
            thresholds,
            (&self.settings.windows, args.tiled),
            self.settings.most_overlap,
        )
    }
}

impl Tool for DetectObject {
    type Args = DetectArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, boxes: BoxConvention) -> String {
        let by = self.by();
        format!(
            "Finds an object by its name with the open-vocabulary detector {by} and gives its boxes \
             with scores. Use it when you do not know where the object is; check what it found with \
             a closer look, because a detector may be wrong. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> serde_json::Value {
        json!({ "detector": self.detector.identity(), "detection": self.settings })
    }

    fn version(&self) -> u64 {
        3
    }

    fn call(&self, args: DetectArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let view = scene.view(args.target_image.as_deref().unwrap_or(ORIGINAL))?;
        let mut found = Vec::new();
        let mut windows = 0;
        for panel in &view.panels {
            let (seen, tiles) = self.search(panel, &args, scene)?;
            windows += tiles;
            found.extend(seen.into_iter().map(|detection| Found::new(detection, panel)));
        }
        found.sort_by(|a, b| b.detection.score.total_cmp(&a.detection.score));
        let left_out = found.len().saturating_sub(self.settings.most_boxes);
        found.truncate(self.settings.most_boxes);
        let data = json!({
            "boxes": found.iter().map(Found::data).collect::<Vec<_>>(),
            "left_out": left_out,
            "windows": windows,
            "detector": { "name": self.detector.identity()["name"], "note": self.detector.identity()["note"] },
        });
        let name = quoted(args.detect_object_name.trim());
        if found.is_empty() {
            let text = format!(
                "Nothing in {} fits {name} with a score over {}, says the detector {}. It may be too \
                 small, named otherwise, or not there: try another name, or look closer yourself.",
                view.name,
                self.settings.box_threshold,
                self.by()
            );
            return Ok(ToolOutput { text, data, pictures: Vec::new() });
        }
        let picture = self.drawn(view, &found, scene.crop_name(0));
        let text = self.text(view, &name, &found, left_out, &picture.name, scene);
        Ok(ToolOutput { text, data, pictures: vec![picture] })
    }
}

impl Declared for DetectObject {
    const NAME: &'static str = "detect_object";
    type Settings = DetectionSettings;
    const NETWORK: Option<NetworkKind> = Some(DETECTOR);

    fn check(settings: &DetectionSettings) -> Result<(), String> {
        settings.check()
    }

    fn settable(recorded: &Value) -> &Value {
        &recorded["detection"]
    }

    fn make(settings: DetectionSettings, networks: &Networks) -> Result<Self, String> {
        Ok(Self::with_settings(networks.get(&DETECTOR)?, settings))
    }
}

/// The model in a folder, or the file itself.
fn model_in(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("model.onnx") } else { path.to_owned() }
}

impl DetectObject {
    fn text(
        &self,
        view: &View,
        name: &str,
        found: &[Found],
        left_out: usize,
        picture: &str,
        scene: &Scene,
    ) -> String {
        let count = match found.len() {
            1 => "1 place".to_owned(),
            n => format!("{n} places"),
        };
        let mut text =
            format!("{count} in {} may be {name}, says the detector {}:", view.name, self.by());
        for (at, found) in found.iter().enumerate() {
            text += &format!(
                "\n{}. {}, score {:.2}{}",
                at + 1,
                scene.box_text(&view.name, &found.on_view),
                found.detection.score,
                found.words(),
            );
        }
        if left_out > 0 {
            text += &format!("\n{left_out} more with lower scores are left out.");
        }
        text + &format!("\n{picture} shows {} with these boxes drawn on it.", view.name)
    }

    /// The view with the boxes on it.
    fn drawn(&self, view: &View, found: &[Found], name: String) -> View {
        let before = PixelBox::whole(view.picture.size());
        let shown = view.picture.resized(shown_size(view.picture.size(), 768, 8.0, 2048));
        let after = PixelBox::whole(shown.size());
        let boxes: Vec<PixelBox> =
            found.iter().map(|f| f.on_view.mapped(&before, &after)).collect();
        let panels = view.panels.iter();
        let panels = panels
            .map(|panel| Panel { area: panel.area.mapped(&before, &after), ..panel.clone() })
            .collect();
        View { name, picture: Arc::new(drawing::with_boxes(&shown, &boxes)), panels }
    }
}

/// A detection, with where it is on the picture that was searched.
struct Found {
    detection: Detection,
    source: String,
    on_view: PixelBox,
}

impl Found {
    fn new(detection: Detection, panel: &Panel) -> Self {
        let on_view = detection.bbox.mapped(&panel.region, &panel.area);
        Self { detection, source: panel.source.clone(), on_view }
    }

    fn data(&self) -> serde_json::Value {
        let Detection { bbox, score, phrase } = &self.detection;
        let bbox = bbox.edges().map(|edge| (edge * 10.0).round() / 10.0);
        let score = (f64::from(*score) * 1e4).round() / 1e4;
        json!({ "bbox": bbox, "score": score, "phrase": phrase, "source": self.source })
    }

    fn words(&self) -> String {
        match self.detection.phrase.trim() {
            "" => String::new(),
            phrase => format!(" ({})", quoted(phrase)),
        }
    }
}

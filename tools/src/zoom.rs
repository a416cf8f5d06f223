//! `zoom_in`: a region of a picture, or of the pair side by side, enlarged.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::coords::{BoxConvention, PixelBox, Size};
use crate::enhancer::Enhancer;
use crate::picture::{Picture, shown_size};
use crate::registration::Registration;
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::side_by_side;
use crate::tool::{Tool, ToolError, ToolOutput};

/// What a judge says to see the region in the original and the edited picture at once.
const BOTH: &str = "both";

/// Looks at a region more closely.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZoomIn {
    /// Context on each side, as a fraction of the box's longer side.
    pub margin: f64,
    /// Context on each side in pixels, at the least: a speck needs surroundings to be recognised.
    pub margin_pixels: f64,
    /// A crop whose long side is shorter is enlarged to this.
    pub floor: u32,
    /// A crop is never enlarged more than this often: there is no more detail to see.
    pub most: f64,
    /// A crop whose long side is longer is reduced to this.
    pub ceiling: u32,
    /// What enlarges.
    #[serde(skip)]
    enhancer: Arc<Enhancer>,
}

impl Default for ZoomIn {
    fn default() -> Self {
        Self {
            margin: 0.15,
            margin_pixels: 8.0,
            floor: 768,
            most: 8.0,
            ceiling: 2048,
            enhancer: Arc::default(),
        }
    }
}

/// The arguments of [`ZoomIn`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoomArgs {
    /// Name of the picture to look at, e.g. "Original Image" or "Crop 2"; "both" shows the same
    /// region of the Original Image and the Edited Image side by side. Default: "both" if there are
    /// two pictures, else the only one.
    #[serde(default)]
    target_image: Option<String>,
    /// The region, as four numbers in the box format that the description of this tool states. With
    /// "both" it is a box on the Original Image.
    bbox: [f64; 4],
}

impl Tool for ZoomIn {
    type Args = ZoomArgs;

    fn name(&self) -> &'static str {
        "zoom_in"
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Cuts a region out of a picture and enlarges it, with a little context around it. Use it to \
             search for small objects and to check details: look, adjust the box, look again. A crop \
             can itself be zoomed into. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> serde_json::Value {
        let mut settings = json!(self);
        self.enhancer.record_in(&mut settings);
        settings
    }

    fn call(&self, args: ZoomArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let target = match args.target_image.as_deref() {
            Some(name) => name,
            None if scene.view(EDITED).is_ok() => BOTH,
            None => ORIGINAL,
        };
        if target.trim().eq_ignore_ascii_case(BOTH) {
            self.zoom_both(args.bbox, scene)
        } else {
            self.zoom_one(target, args.bbox, scene)
        }
    }
}

impl ZoomIn {
    /// The tool with another enhancer than interpolation.
    pub fn with_enhancer(mut self, enhancer: Arc<Enhancer>) -> Self {
        self.enhancer = enhancer;
        self
    }

    fn zoom_one(
        &self,
        target: &str,
        bbox: [f64; 4],
        scene: &Scene,
    ) -> Result<ToolOutput, ToolError> {
        let view = scene.view(target)?;
        let on_view = scene.read_box(target, bbox)?;
        // Cut from the source, not from the enlarged crop: the source has all the detail there is.
        let panel = view.panel_at(&on_view).ok_or_else(|| nothing_there(target))?;
        let asked = panel.to_source(&on_view);
        if asked.is_empty() {
            return Err(nothing_there(target));
        }
        let source = scene.view(&panel.source)?;
        let (region, shown) = self.frame(&asked, source.picture.size());
        let enlargement = self.enhancer.purse().spend(&[&region], shown);
        let crop = self.enhancer.cut(&source.picture, &region, enlargement, self.name())?;
        let crop = crop.resized(shown);
        let name = scene.crop_name(0);
        let text = format!(
            "{name} shows {} of {} (with context), enlarged {}{}.",
            scene.box_text(&source.name, &region),
            source.name,
            times(&crop, &region),
            self.enhancer.in_words(enlargement),
        );
        let data = json!({
            "source": source.name, "bbox": region, "requested": asked,
            "scale": scale(&crop, &region), "enlarged_with": self.enhancer.name_of(enlargement),
        });
        let area = PixelBox::whole(crop.size());
        let panels = vec![Panel { area, source: source.name.clone(), region }];
        let picture = View { name, picture: Arc::new(crop), panels };
        Ok(ToolOutput { text, data, pictures: vec![picture] })
    }

    fn zoom_both(&self, bbox: [f64; 4], scene: &Scene) -> Result<ToolOutput, ToolError> {
        let (original, edited) = (scene.view(ORIGINAL)?, scene.view(EDITED)?);
        let asked = scene.read_box(ORIGINAL, bbox)?;
        let registration = Registration::estimate(&original.picture, &edited.picture);
        let (region, shown) = self.frame(&asked, original.picture.size());
        let in_edited = registration.to_second(&region);
        let visible = in_edited.clipped(edited.picture.size());
        if visible.is_empty() {
            return Err(ToolError::refused(format!(
                "the region {} of the {ORIGINAL} is not in the frame of the {EDITED}",
                scene.box_text(ORIGINAL, &asked)
            )));
        }
        let in_edited = visible.whole_pixels(edited.picture.size());
        let enlargement = self.enhancer.purse().spend(&[&region, &in_edited], shown);
        let cut = |source: &Picture, region: &PixelBox| {
            self.enhancer.cut(source, region, enlargement, self.name())
        };
        let left = cut(&original.picture, &region)?.resized(shown);
        let right = cut(&edited.picture, &in_edited)?;
        let (pair, left_area, right_area) = side_by_side(&left, &right);
        let name = scene.crop_name(0);
        let text = format!(
            "{name} shows {} of the {ORIGINAL} on the left and the same place in the {EDITED} on the \
             right, a red line between, enlarged {}{}.",
            scene.box_text(ORIGINAL, &region),
            times(&left, &region),
            self.enhancer.in_words(enlargement),
        );
        let data = json!({
            "source": [ORIGINAL, EDITED], "bbox": region, "bbox_edited": in_edited,
            "requested": asked, "scale": scale(&left, &region),
            "enlarged_with": self.enhancer.name_of(enlargement),
        });
        let panels = vec![
            Panel { area: left_area, source: ORIGINAL.to_owned(), region },
            Panel { area: right_area, source: EDITED.to_owned(), region: in_edited },
        ];
        let picture = View { name, picture: Arc::new(pair), panels };
        Ok(ToolOutput { text, data, pictures: vec![picture] })
    }

    /// The region around `asked` in a picture of `size`, and the size at which it is shown.
    fn frame(&self, asked: &PixelBox, size: Size) -> (PixelBox, Size) {
        let margin = (self.margin * asked.width().max(asked.height())).max(self.margin_pixels);
        let region = asked.grown(margin, margin).whole_pixels(size);
        let own = Size::new(region.width() as u32, region.height() as u32);
        (region, shown_size(own, self.floor, self.most, self.ceiling))
    }
}

fn nothing_there(target: &str) -> ToolError {
    ToolError::refused(format!("the box shows nothing of {target}; choose one on the picture"))
}

fn scale(crop: &Picture, region: &PixelBox) -> f64 {
    (f64::from(crop.size().width) / region.width() * 100.0).round() / 100.0
}

fn times(crop: &Picture, region: &PixelBox) -> String {
    format!("{:.1}×", scale(crop, region))
}

//! `zoom_in`: a region of a picture, or of the pair side by side, enlarged.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::declaration::{Declared, Networks};
use crate::enhancer::{Enhancer, Enlargement};
use crate::pair::{BOTH, Pair};
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::Layout;
use crate::tool::{Tool, ToolError, ToolOutput};

/// The most context that a call may ask for, in sizes of its box.
const MOST_PADDING: f64 = 4.0;

/// The longest side of a crop: more does not fit into memory, or into a model.
pub(crate) const MOST_SIDE: u32 = 4096;

/// Looks at a region more closely.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ZoomIn {
    /// Context on the left and right as a part of the box's width, above and below of its height.
    pub margin: f64,
    /// Context on each side in pixels, at the least: a speck needs surroundings to be recognised.
    pub margin_pixels: f64,
    /// A crop whose long side is shorter is enlarged to this …
    pub floor: u32,
    /// … but not more often than this: there is no more detail to see.
    pub most: f64,
    /// A box whose short side would have fewer pixels is enlarged more often all the same.
    pub short: u32,
    /// No side of the picture is longer than this.
    pub ceiling: u32,
    /// What enlarges.
    #[serde(skip)]
    enhancer: Arc<Enhancer>,
}

impl Default for ZoomIn {
    fn default() -> Self {
        Self {
            margin: 0.1,
            margin_pixels: 8.0,
            floor: 768,
            most: 8.0,
            short: 150,
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
    /// Context around the box, as a part of its width (left and right) and of its height (above and
    /// below): 0 for none, 1 for as much again on each side. Default: a little.
    #[serde(default)]
    padding: Option<f64>,
}

impl Tool for ZoomIn {
    type Args = ZoomArgs;

    fn name(&self) -> &'static str {
        Self::NAME
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

    fn version(&self) -> u64 {
        2
    }

    fn call(&self, args: ZoomArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        if let Some(padding) =
            args.padding.filter(|padding| !(0.0..=MOST_PADDING).contains(padding))
        {
            return Err(ToolError::refused(format!(
                "padding is {padding}; give a number from 0 (none) to {MOST_PADDING}"
            )));
        }
        let target = match args.target_image.as_deref() {
            Some(name) => name,
            None if scene.view(EDITED).is_ok() => BOTH,
            None => ORIGINAL,
        };
        if target.trim().eq_ignore_ascii_case(BOTH) {
            self.zoom_both(&args, scene)
        } else {
            self.zoom_one(target, &args, scene)
        }
    }
}

impl Declared for ZoomIn {
    const NAME: &'static str = "zoom_in";
    type Settings = Self;

    fn check(settings: &Self) -> Result<(), String> {
        settings.check()
    }

    fn make(settings: Self, networks: &Networks) -> Result<Self, String> {
        Ok(settings.with_enhancer(Arc::clone(&networks.enhancer)))
    }
}

impl ZoomIn {
    /// What of its settings cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("margin", self.margin, 0.0..=100.0)?;
        within("margin_pixels", self.margin_pixels, 0.0..=10_000.0)?;
        within("floor", self.floor, 1..=MOST_SIDE)?;
        within("most", self.most, 0.1..=1000.0)?;
        within("short", self.short, 0..=MOST_SIDE)?;
        within("ceiling", self.ceiling, 1..=MOST_SIDE)
    }

    /// The tool with another enhancer than interpolation.
    pub fn with_enhancer(mut self, enhancer: Arc<Enhancer>) -> Self {
        self.enhancer = enhancer;
        self
    }

    fn zoom_one(
        &self,
        target: &str,
        args: &ZoomArgs,
        scene: &Scene,
    ) -> Result<ToolOutput, ToolError> {
        let (source, asked) = scene.place(target, args.bbox)?;
        let region = self.region(&asked, args.padding).whole_pixels(source.picture.size());
        let detail = size_of(&region);
        let longest = self.ceiling.min(scene.room().side);
        let room = f64::from(longest) / f64::from(detail.long_side());
        let shown = detail.scaled(self.wanted(&asked, detail, 1.0).min(room));
        let enlargement = self.enhancer.purse().spend(&[&region], shown);
        let crop = self.enhancer.shown(
            &source.picture,
            &region,
            (detail, shown),
            enlargement,
            self.name(),
        )?;
        let name = scene.crop_name(0);
        let size = Sizes::of(&region, shown, detail, scene.shown_scale(target, &source.name));
        let text = format!(
            "{name} ({shown} pixels) shows {} of {}{}, {}.",
            scene.box_text(&source.name, &region),
            source.name,
            if args.padding == Some(0.0) { "" } else { " (with context)" },
            size.in_words(target, &self.enhancer, enlargement),
        );
        let data = json!({
            "source": source.name, "bbox": region, "requested": asked,
            "scale": size.scale(), "enlarged_with": self.enhancer.name_of(enlargement),
        });
        let area = PixelBox::whole(shown);
        let panels = vec![Panel { area, source: source.name.clone(), region }];
        let picture = View { name, picture: Arc::new(crop), panels };
        Ok(ToolOutput { text, data, pictures: vec![picture] })
    }

    fn zoom_both(&self, args: &ZoomArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let pair = Pair::of(scene)?;
        let asked = scene.read_box(ORIGINAL, args.bbox)?;
        let region = self.region(&asked, args.padding).whole_pixels(pair.original.picture.size());
        let place = pair.place(&region, scene)?;
        let (own, detail) = (size_of(&region), place.detail());
        let longest = self.ceiling.min(scene.room().side);
        let (layout, times) = Layout::fitting(own, self.wanted(&asked, own, 1.0), longest);
        let shown = own.scaled(times);
        let parts = [PixelBox::whole(detail); 2];
        let enlargement = self.enhancer.purse().spend(&[&parts[0], &parts[1]], shown);
        let (picture, panels) =
            pair.side_by_side(&place, shown, layout, (&self.enhancer, enlargement), self.name())?;
        let name = scene.crop_name(0);
        let size = Sizes::of(&region, shown, detail, scene.shown_scale(ORIGINAL, ORIGINAL));
        let [first, second] = layout.sides();
        let text = format!(
            "{name} ({} pixels) shows {} of the {ORIGINAL} {first} and the same place in the {EDITED} \
             {second}, a red line between, {}.{}{}",
            picture.size(),
            scene.box_text(ORIGINAL, &region),
            size.in_words(ORIGINAL, &self.enhancer, enlargement),
            pair.remarks(&[place]),
            pair.doubt(),
        );
        let in_edited = place.edited.clipped(pair.edited.picture.size());
        let data = json!({
            "source": [ORIGINAL, EDITED], "bbox": region, "bbox_edited": in_edited,
            "requested": asked, "scale": size.scale(),
            "enlarged_with": self.enhancer.name_of(enlargement), "reduced": place.finer(),
        });
        let picture = View { name, picture: Arc::new(picture), panels };
        Ok(ToolOutput { text, data, pictures: vec![picture] })
    }

    /// The box with its context; each side by its own length, so that a flat box stays flat.
    fn region(&self, asked: &PixelBox, padding: Option<f64>) -> PixelBox {
        let margin = |side: f64| match padding {
            Some(padding) => padding * side,
            None => (self.margin * side).max(self.margin_pixels),
        };
        asked.grown(margin(asked.width()), margin(asked.height()))
    }

    /// How often a crop of `size` is to be enlarged, if there is room: so that it is seen well, and
    /// that what was asked for is seen well in it.
    fn wanted(&self, asked: &PixelBox, size: Size, least: f64) -> f64 {
        let for_crop = (f64::from(self.floor) / f64::from(size.long_side())).min(self.most);
        let for_box = f64::from(self.short) / asked.width().min(asked.height()).max(1.0);
        for_crop.max(for_box).max(least)
    }
}

fn size_of(area: &PixelBox) -> Size {
    Size::new(area.width() as u32, area.height() as u32)
}

/// How large a crop is shown.
struct Sizes {
    /// Beside the picture that the box was given on, as the model sees it.
    times: f64,
    /// Pixels for each pixel that there is.
    pixels: f64,
}

impl Sizes {
    /// `seen` is how many pixels of the picture that the box was given on show one of the source.
    fn of(region: &PixelBox, shown: Size, detail: Size, seen: f64) -> Self {
        Self {
            times: f64::from(shown.width) / region.width() / seen,
            pixels: f64::from(shown.width) / f64::from(detail.width.max(1)),
        }
    }

    fn scale(&self) -> f64 {
        (self.times * 100.0).round() / 100.0
    }

    fn in_words(&self, target: &str, enhancer: &Enhancer, enlargement: Enlargement) -> String {
        let seen = match self.times {
            times if times >= 1.05 => format!("{times:.1}× as large as in {target}"),
            times if times > 0.95 => format!("as large as in {target}"),
            times => format!("reduced to {:.0} % of its size in {target}", times * 100.0),
        };
        let pixels = match enlargement {
            Enlargement::None if self.pixels < 0.95 => {
                ", with fewer pixels than its file has".to_owned()
            }
            Enlargement::None => ", with all the detail that there is".to_owned(),
            Enlargement::Interpolated => ", enlarged by Lanczos interpolation".to_owned(),
            Enlargement::Enhanced => enhancer.in_words(enlargement),
        };
        seen + &pixels
    }
}

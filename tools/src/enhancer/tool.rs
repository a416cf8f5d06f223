//! `enhance`: a picture or a crop once more, larger and clearer.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Enhancer, Enlargement};
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::declaration::{Declared, Networks, NoSettings};
use crate::scene::{ORIGINAL, Panel, Scene, View};
use crate::side_by_side::Layout;
use crate::tool::{Tool, ToolError, ToolOutput};

/// A picture with a side of this many pixels is large enough to be seen as it is.
const LARGE: u32 = 1024;

/// Beyond this, further passes of a network show what it invents.
const MOST_SCALE: u32 = 4;

/// Shows a picture larger and clearer.
#[derive(Debug, Clone, Default)]
pub struct Enhance {
    enhancer: Arc<Enhancer>,
}

/// The arguments of [`Enhance`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnhanceArgs {
    /// Name of the picture to enhance, e.g. "Edited Image" or "Crop 2". Default: "Original Image".
    #[serde(default)]
    target_image: Option<String>,
}

impl Enhance {
    /// The tool with this enhancer.
    pub fn new(enhancer: Arc<Enhancer>) -> Self {
        Self { enhancer }
    }

    fn scale(&self) -> u32 {
        self.enhancer.network().map_or(2, |network| network.scale)
    }

    /// How parts of `detail` are enlarged, and how often the network is applied: once more where a crop is
    /// shown larger than one pass makes it and the budget allows it.
    fn manner(&self, parts: usize, detail: Size, shown: Size) -> (Enlargement, u32) {
        if detail.long_side() >= LARGE {
            return (Enlargement::None, 0);
        }
        let work = |passes: u32| -> u64 {
            let scales = (0..passes).map(|pass| f64::from(self.scale().pow(pass)));
            let once = scales.map(|scale| self.enhancer.work(detail.scaled(scale)));
            once.fold(0, u64::saturating_add).saturating_mul(parts as u64)
        };
        let budget = self.enhancer.budget;
        if self.enhancer.network().is_none() || work(1) > budget {
            return (Enlargement::Interpolated, 1);
        }
        let once = detail.scaled(f64::from(self.scale()));
        let more = shown.long_side() > once.long_side() && self.scale().pow(2) <= MOST_SCALE;
        (Enlargement::Enhanced, if more && work(2) <= budget { 2 } else { 1 })
    }
}

impl Tool for Enhance {
    type Args = EnhanceArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, _: BoxConvention) -> String {
        "Shows a small picture or a crop once more, larger and clearer. Use it where something is too \
         blurred or too small to be told; zoom in on the place first. Fine detail in the result is a \
         guess, so compare both pictures enhanced in the same way before it counts."
            .to_owned()
    }

    fn settings(&self) -> Value {
        let mut settings = json!({});
        self.enhancer.record_in(&mut settings);
        settings
    }

    fn version(&self) -> u64 {
        2
    }

    fn call(&self, args: EnhanceArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let view = scene.view(args.target_image.as_deref().unwrap_or(ORIGINAL))?;
        let first = view.panels.first().ok_or_else(|| {
            ToolError::refused(format!("{:?} shows no picture to enhance", view.name))
        })?;
        // From the sources, not from the enlarged crop: they have all the detail there is.
        let sources = view.panels.iter().map(|panel| scene.view(&panel.source));
        let sources = sources.collect::<Result<Vec<&View>, ToolError>>()?;
        // Both halves with the detail of the coarser one, as they were shown.
        let sides = view.panels.iter().map(|panel| size_of(&panel.region));
        let detail = sides.fold(size_of(&first.region), |fewest, side| {
            Size::new(fewest.width.min(side.width).max(1), fewest.height.min(side.height).max(1))
        });
        let shown = size_of(&first.area);
        let (manner, passes) = self.manner(view.panels.len(), detail, shown);
        let scale = self.scale().pow(passes);
        let enhanced = detail.scaled(f64::from(scale));
        let size = if shown.long_side() > enhanced.long_side() { shown } else { enhanced };

        let parts = sources.iter().zip(&view.panels).map(|(source, panel)| {
            let (picture, region) = (&source.picture, &panel.region);
            let mut part = self.enhancer.cut(picture, region, detail, manner, self.name())?;
            for _ in 1..passes {
                let whole = PixelBox::whole(part.size());
                part = self.enhancer.enhanced(&part, &whole, self.name())?;
            }
            Ok(part.resized(size))
        });
        let parts = parts.collect::<Result<Vec<_>, ToolError>>()?;
        let (picture, areas) = match &parts[..] {
            [first, second, ..] => {
                let (pair, areas) = Layout::of(&view.panels).lay(first, second);
                (pair, areas.to_vec())
            }
            _ => (parts[0].clone(), vec![PixelBox::whole(size)]),
        };
        let panels = view.panels.iter().zip(areas);
        let panels: Vec<Panel> =
            panels.map(|(panel, area)| Panel { area, ..panel.clone() }).collect();

        let name = scene.crop_name(0);
        let how = match (manner, self.enhancer.network()) {
            (Enlargement::None, _) => {
                "left as it is: it is large already; zoom in on a part of it".to_owned()
            }
            (Enlargement::Enhanced, Some(network)) => format!(
                "enhanced {scale}× with the model {}. Fine detail in it is a guess",
                network.name
            ),
            (_, Some(_)) => format!(
                "enlarged {scale}× by Lanczos interpolation: it is too large for the enhancement \
                 model; zoom in on a part of it"
            ),
            (_, None) => {
                format!("enlarged {scale}× by Lanczos interpolation: there is no enhancement model")
            }
        };
        let shows: Vec<Value> = panels
            .iter()
            .zip(&sources)
            .map(|(panel, source)| {
                let region = panel.region.clipped(source.picture.size());
                json!({ "source": panel.source, "bbox": region })
            })
            .collect();
        let data = json!({
            "target": view.name, "shows": shows, "scale": scale,
            "enlarged_with": self.enhancer.name_of(manner),
        });
        let text = format!("{name} shows the same as {}, {how}.", view.name);
        Ok(ToolOutput {
            text,
            data,
            pictures: vec![View { name, picture: Arc::new(picture), panels }],
        })
    }
}

impl Declared for Enhance {
    const NAME: &'static str = "enhance";
    type Settings = NoSettings;

    fn make(_: NoSettings, networks: &Networks) -> Result<Self, String> {
        Ok(Self::new(Arc::clone(&networks.enhancer)))
    }
}

fn size_of(area: &PixelBox) -> Size {
    Size::new(area.width().round() as u32, area.height().round() as u32)
}

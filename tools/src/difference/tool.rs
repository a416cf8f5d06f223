//! `localize_differences`: the tool.

use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{self, Told};
use super::{Comparison, Region, Settings, compare};
use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::enhancer::{Enhancer, Enlargement};
use crate::picture::shown_size;
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::side_by_side;
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
    /// What enlarges.
    #[serde(skip)]
    enhancer: Arc<Enhancer>,
}

impl Default for LocalizeDifferences {
    fn default() -> Self {
        Self {
            max_regions: 8,
            margin: 0.5,
            margin_of_picture: 0.02,
            floor: 336,
            most: 6.0,
            ceiling: 768,
            settings: Settings::default(),
            enhancer: Arc::default(),
        }
    }
}

/// The most regions that a call may ask for.
const MOST_REGIONS: usize = 20;

/// The longest side of one half of a crop: so many of them fit into memory.
const MOST_SIDE: u32 = 2048;

/// Enlarging by less than this only blurs.
const WORTHWHILE: f64 = 1.3;

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
    /// The most regions to show, 1 to 20 (default 8).
    #[serde(default)]
    max_regions: Option<u32>,
}

impl Tool for LocalizeDifferences {
    type Args = DifferenceArgs;

    fn name(&self) -> &'static str {
        "localize_differences"
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Compares two pictures and shows where they differ, the most visible place first, each as \
             a crop of both side by side. What an editor does to the whole picture (another size, \
             compression, tone, noise, small moves, a cut frame) is made up for and only mentioned. Use \
             it first, to see what was changed and what was changed by mistake. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> serde_json::Value {
        let mut settings = serde_json::to_value(self).unwrap_or_default();
        self.enhancer.record_in(&mut settings);
        settings
    }

    fn version(&self) -> u64 {
        3
    }

    fn call(&self, args: DifferenceArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let first = scene.view(args.comparison_image_1.as_deref().unwrap_or(ORIGINAL))?;
        let second = scene.view(args.comparison_image_2.as_deref().unwrap_or(EDITED))?;
        let most = match args.max_regions {
            None => self.max_regions,
            Some(n) if (1..=MOST_REGIONS).contains(&(n as usize)) => n as usize,
            Some(n) => {
                return Err(ToolError::refused(format!(
                    "max_regions is {n}; give a number from 1 to {MOST_REGIONS}"
                )));
            }
        };
        let seen = compare(&first.picture, &second.picture, most, &self.settings);
        let crops =
            seen.regions.iter().map(|region| self.crop(region, &seen, [first, second], scene));
        let mut crops = crops.collect::<Result<Vec<Crop<'_>>, ToolError>>()?;
        // One after the other: the most visible regions are the first to be enhanced.
        let mut purse = self.enhancer.purse();
        for crop in &mut crops {
            let [left, right] = &crop.halves;
            crop.enlargement = purse.spend(&[&left.1, &right.1], crop.shown);
        }
        let told: Vec<Told<'_>> = seen
            .regions
            .iter()
            .zip(&crops)
            .enumerate()
            .map(|(i, (region, crop))| Told {
                region,
                place: scene.box_text(&first.name, &region.bbox),
                bbox: on_source(first, &region.bbox),
                bbox_second: on_source(second, &region.bbox_second),
                crop: scene.crop_name(i),
                enlargement: crop.enlargement,
            })
            .collect();
        let pictures = crops
            .par_iter()
            .zip(&told)
            .map(|(crop, told)| self.view(crop, &told.crop))
            .collect::<Result<Vec<View>, ToolError>>()?;
        Ok(ToolOutput {
            text: report::text(&seen, &told, &first.name, &second.name, &self.enhancer),
            data: report::data(&seen, &told, &self.enhancer),
            pictures,
        })
    }
}

/// What a crop shows: a place in both pictures, and how large.
struct Crop<'a> {
    /// The source pictures and the places in their pixels.
    halves: [(&'a View, PixelBox); 2],
    /// The size of each half.
    shown: Size,
    enlargement: Enlargement,
}

/// A box on a view in pixels of the picture that the view shows there.
fn on_source(view: &View, area: &PixelBox) -> PixelBox {
    view.panel_at(area).map_or(*area, |panel| panel.to_source(area))
}

impl LocalizeDifferences {
    /// What of its settings cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("max_regions", self.max_regions, 1..=MOST_REGIONS)?;
        within("margin", self.margin, 0.0..=100.0)?;
        within("margin_of_picture", self.margin_of_picture, 0.0..=1.0)?;
        within("floor", self.floor, 1..=MOST_SIDE)?;
        within("most", self.most, 0.1..=1000.0)?;
        within("ceiling", self.ceiling, 1..=MOST_SIDE)?;
        self.settings.check()
    }

    /// The tool with another enhancer than interpolation.
    pub fn with_enhancer(mut self, enhancer: Arc<Enhancer>) -> Self {
        self.enhancer = enhancer;
        self
    }

    /// The region in both pictures, with context.
    fn crop<'a>(
        &self,
        region: &Region,
        seen: &Comparison,
        [first, second]: [&View; 2],
        scene: &'a Scene,
    ) -> Result<Crop<'a>, ToolError> {
        let (left, right) = self.context(region, seen);
        let halves = [source_of(first, &left, scene)?, source_of(second, &right, scene)?];
        let size = Size::new(halves[0].1.width() as u32, halves[0].1.height() as u32);
        let mut shown = shown_size(size, self.floor, self.most, self.ceiling);
        if shown.width > size.width && f64::from(shown.width) < WORTHWHILE * f64::from(size.width) {
            shown = size;
        }
        Ok(Crop { halves, shown, enlargement: Enlargement::None })
    }

    /// The halves of a crop side by side.
    fn view(&self, crop: &Crop<'_>, name: &str) -> Result<View, ToolError> {
        let half = |(source, area): &(&View, PixelBox)| match crop.enlargement {
            Enlargement::Enhanced => {
                let enhanced = self.enhancer.enhanced(&source.picture, area, self.name())?;
                Ok(enhanced.resized(crop.shown))
            }
            _ => Ok(source.picture.part(area, crop.shown)),
        };
        let [left, right] = &crop.halves;
        let (pair, left_area, right_area) = side_by_side(&half(left)?, &half(right)?);
        let panel = |area, (source, region): &(&View, PixelBox)| Panel {
            area,
            source: source.name.clone(),
            region: *region,
        };
        let panels = vec![panel(left_area, left), panel(right_area, right)];
        Ok(View { name: name.to_owned(), picture: Arc::new(pair), panels })
    }

    /// The region with its surroundings on both pictures, as far as both show them.
    fn context(&self, region: &Region, seen: &Comparison) -> (PixelBox, PixelBox) {
        let registration = &seen.registration;
        let (first, second) = (registration.first(), registration.second());
        let margin = (self.margin * region.bbox.width().max(region.bbox.height()))
            .max(self.margin_of_picture * f64::from(first.long_side()));
        let wide = region.bbox.grown(margin, margin).clipped(first);
        let both = wide.intersection(&registration.visible());
        let left = if both.is_empty() { wide } else { both }.whole_pixels(first);
        (left, registration.to_second(&left).whole_pixels(second))
    }
}

/// The source picture that a view shows under `area`, and the place in its pixels.
fn source_of<'a>(
    view: &View,
    area: &PixelBox,
    scene: &'a Scene,
) -> Result<(&'a View, PixelBox), ToolError> {
    let panel = view.panel_at(area).ok_or_else(|| {
        ToolError::refused(format!("{:?} shows no picture that could be compared", view.name))
    })?;
    let source = scene.view(&panel.source)?;
    Ok((source, panel.to_source(area).whole_pixels(source.picture.size())))
}

//! `localize_differences`: the tool.

use std::sync::Arc;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, Strip, Told};
use super::{Comparison, Focus, Region, Settings, compare_within, crops};
use crate::bounds::within;
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::declaration::{Declared, Networks};
use crate::enhancer::{Enhancer, Enlargement, SAME_DETAIL};
use crate::picture::shown_size;
use crate::scene::{EDITED, ORIGINAL, Panel, Scene, View};
use crate::side_by_side::Layout;
use crate::tool::{Tool, ToolError, ToolOutput};

/// Finds what differs between two pictures.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LocalizeDifferences {
    /// How many regions are shown where the call does not say.
    pub max_regions: usize,
    /// Context on the left and right of a crop as a part of the box's width, above and below of its
    /// height …
    pub margin: f64,
    /// … and at the least, as a fraction of the picture's long side: an object must be
    /// recognisable.
    pub margin_of_picture: f64,
    /// A crop whose long side is shorter is enlarged to this …
    pub floor: u32,
    /// … but not more often than this: there is no more detail to see.
    pub most: f64,
    /// What changed is enlarged more often all the same until its short side has so many pixels.
    pub short: u32,
    /// No side of a crop is longer than this.
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
            margin: 0.35,
            margin_of_picture: 0.01,
            floor: 336,
            most: 6.0,
            short: 150,
            ceiling: 1540,
            settings: Settings::default(),
            enhancer: Arc::default(),
        }
    }
}

/// The most regions that a call may ask for.
const MOST_REGIONS: usize = 20;
/// The most boxes that a call may leave out.
const MOST_IGNORED: usize = 32;

/// The longest side of a crop: so many of them fit into memory.
const MOST_SIDE: u32 = 4096;

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
    /// Look only inside this box of the first picture, and more sensitively: four numbers in the box
    /// format that the description of this tool states.
    #[serde(default)]
    bbox: Option<[f64; 4]>,
    /// Boxes of the first picture to leave out, e.g. that of the target: a list of such fours.
    #[serde(default)]
    ignore: Option<Vec<[f64; 4]>>,
}

impl Tool for LocalizeDifferences {
    type Args = DifferenceArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Compares two pictures and shows where they differ, the most visible place first, each as \
             a crop of both side by side. What an editor does to the whole picture (another size, \
             compression, tone, noise, small moves, a cut frame) is made up for and only mentioned. Use \
             it first, to see what was changed and what was changed by mistake; again with a box to look \
             more closely there, or with boxes to leave out. Boxes are {}.",
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
        let focus = focus(&args, first, scene)?;
        let seen = compare_within(&first.picture, &second.picture, most, &self.settings, &focus);
        let looks = Looks { tool: self, seen: &seen, views: [first, second], scene };
        let mut crops = seen
            .regions
            .iter()
            .map(|region| looks.crop(region))
            .collect::<Result<Vec<Crop<'_>>, ToolError>>()?;
        // One after the other: the most visible regions are the first to be enhanced.
        let mut purse = self.enhancer.purse();
        for crop in &mut crops {
            let parts = [PixelBox::whole(crop.detail); 2];
            crop.enlargement = purse.spend(&[&parts[0], &parts[1]], crop.shown);
        }
        let told: Vec<Told<'_>> = seen
            .regions
            .iter()
            .zip(&crops)
            .enumerate()
            .map(|(i, (region, crop))| looks.told(region, crop, i))
            .collect();
        let mut pictures = crops
            .par_iter()
            .zip(&told)
            .map(|(crop, told)| looks.view(crop, &told.crop))
            .collect::<Result<Vec<View>, ToolError>>()?;
        let mut strips = [Vec::new(), Vec::new()];
        let sides = [(first, &seen.only_in_first), (second, &seen.only_in_second)];
        for ((view, boxes), strips) in sides.into_iter().zip(&mut strips) {
            for bbox in boxes {
                let crop = scene.crop_name(pictures.len());
                pictures.push(looks.strip(view, bbox, &crop)?);
                let place = scene.box_text(&view.name, bbox);
                strips.push(Strip { place, bbox: on_source(view, bbox), crop });
            }
        }
        let below = seen.below.iter();
        let report = Report {
            seen: &seen,
            names: [&first.name, &second.name],
            told,
            strips,
            below: below
                .map(|b| (scene.box_text(&first.name, &b.bbox), on_source(first, &b.bbox)))
                .collect(),
            remarks: looks.remarks(&crops),
            asked: asked(&focus, first, scene),
            enhancer: &self.enhancer,
        };
        Ok(ToolOutput { text: report.text(), data: report.data(), pictures })
    }
}

/// The part of the pictures that a call asks for.
fn focus(args: &DifferenceArgs, first: &View, scene: &Scene) -> Result<Focus, ToolError> {
    let read = |values: [f64; 4]| scene.read_box(&first.name, values);
    let ignore = args.ignore.as_deref().unwrap_or_default();
    if ignore.len() > MOST_IGNORED {
        return Err(ToolError::refused(format!(
            "ignore has {} boxes; give at most {MOST_IGNORED}",
            ignore.len()
        )));
    }
    Ok(Focus {
        inside: args.bbox.map(read).transpose()?,
        ignore: ignore.iter().map(|values| read(*values)).collect::<Result<_, _>>()?,
    })
}

/// What part was asked for, in words.
fn asked(focus: &Focus, first: &View, scene: &Scene) -> String {
    let mut words = String::new();
    if let Some(inside) = &focus.inside {
        words += &format!(
            " Only inside {}, with lower thresholds: expect noise among the regions.",
            scene.box_text(&first.name, inside)
        );
    }
    if !focus.ignore.is_empty() {
        let boxes: Vec<String> =
            focus.ignore.iter().map(|area| scene.box_text(&first.name, area)).collect();
        words += &format!(" Left out as asked: {}.", boxes.join(", "));
    }
    words
}

/// What a crop shows: a place in both pictures, and how large.
struct Crop<'a> {
    /// The source pictures and the places in their pixels; the second may reach beyond its picture.
    halves: [(&'a View, PixelBox); 2],
    /// The pixels that both have for it.
    detail: Size,
    /// The size of each half.
    shown: Size,
    layout: Layout,
    enlargement: Enlargement,
}

impl Crop<'_> {
    /// Which half has more detail than the other, if any.
    fn finer(&self) -> Option<usize> {
        let ratio = (self.halves[1].1.area() / self.halves[0].1.area().max(1e-9)).sqrt();
        match ratio {
            r if r < SAME_DETAIL => Some(0),
            r if r > 1.0 / SAME_DETAIL => Some(1),
            _ => None,
        }
    }
}

/// A box on a view in pixels of the picture that the view shows there.
fn on_source(view: &View, area: &PixelBox) -> PixelBox {
    view.panel_at(area).map_or(*area, |panel| panel.to_source(area))
}

impl Declared for LocalizeDifferences {
    const NAME: &'static str = "localize_differences";
    type Settings = Self;

    fn check(settings: &Self) -> Result<(), String> {
        settings.check()
    }

    fn make(settings: Self, networks: &Networks) -> Result<Self, String> {
        Ok(settings.with_enhancer(Arc::clone(&networks.enhancer)))
    }
}

impl LocalizeDifferences {
    /// What of its settings cannot be meant, if anything.
    pub fn check(&self) -> Result<(), String> {
        within("max_regions", self.max_regions, 1..=MOST_REGIONS)?;
        within("margin", self.margin, 0.0..=100.0)?;
        within("margin_of_picture", self.margin_of_picture, 0.0..=1.0)?;
        within("floor", self.floor, 1..=MOST_SIDE)?;
        within("most", self.most, 0.1..=1000.0)?;
        within("short", self.short, 0..=MOST_SIDE)?;
        within("ceiling", self.ceiling, 1..=MOST_SIDE)?;
        self.settings.check()
    }

    /// The tool with another enhancer than interpolation.
    pub fn with_enhancer(mut self, enhancer: Arc<Enhancer>) -> Self {
        self.enhancer = enhancer;
        self
    }
}

/// One call.
struct Looks<'a> {
    tool: &'a LocalizeDifferences,
    seen: &'a Comparison,
    views: [&'a View; 2],
    scene: &'a Scene,
}

impl<'a> Looks<'a> {
    /// The region in both pictures, with context.
    fn crop(&self, region: &Region) -> Result<Crop<'a>, ToolError> {
        let (tool, registration) = (self.tool, &self.seen.registration);
        let [first, second] = self.views;
        let least = tool.margin_of_picture * f64::from(registration.first().long_side());
        let pictures = (first.picture.as_ref(), second.picture.as_ref());
        let longest = tool.ceiling.min(self.scene.room().side).max(8);
        let short = region.bbox.width().min(region.bbox.height());
        // Whole pixels may be a little more on both sides.
        let widest = f64::from(longest) * short / f64::from(tool.short.max(1)) - 4.0;
        let margins = (tool.margin, least);
        let left = crops::with_context(&region.bbox, pictures, registration, margins, widest);
        let right = registration.to_second(&left);
        let halves = [self.source_of(first, &left)?, self.source_of(second, &right)?];
        let (own, their) = (halves[0].1, halves[1].1);
        let fewer = |a: f64, b: f64| a.min(b).round().max(1.0) as u32;
        let detail =
            Size::new(fewer(own.width(), their.width()), fewer(own.height(), their.height()));
        let size = Size::new(own.width().max(1.0) as u32, own.height().max(1.0) as u32);
        // The region as the source shows it: a view may be a crop itself.
        let place = on_source(first, &region.bbox);
        let mut times = crops::wanted(&place, size, (tool.floor, tool.most, tool.short));
        if times > 1.0 && times < WORTHWHILE {
            times = 1.0;
        }
        let (layout, times) = Layout::fitting(size, times, longest);
        let shown = size.scaled(times);
        Ok(Crop { halves, detail, shown, layout, enlargement: Enlargement::None })
    }

    fn told<'r>(&self, region: &'r Region, crop: &Crop<'_>, number: usize) -> Told<'r> {
        let [first, second] = self.views;
        let place = |area: &PixelBox| self.scene.box_text(&first.name, area);
        Told {
            region,
            place: place(&region.bbox),
            parts: region
                .parts
                .iter()
                .map(|part| (place(&part.bbox), on_source(first, &part.bbox)))
                .collect(),
            bbox: on_source(first, &region.bbox),
            bbox_second: on_source(second, &region.bbox_second),
            crop: self.scene.crop_name(number),
            layout: crop.layout,
            enlargement: crop.enlargement,
        }
    }

    /// The halves of a crop beside or above each other. A side with more detail than the other is brought
    /// down to it first, and where a frame ends it is grey.
    fn view(&self, crop: &Crop<'_>, name: &str) -> Result<View, ToolError> {
        let half = |(source, area): &(&View, PixelBox)| {
            let sizes = (crop.detail, crop.shown);
            self.tool.enhancer.shown(
                &source.picture,
                area,
                sizes,
                crop.enlargement,
                self.tool.name(),
            )
        };
        let [left, right] = &crop.halves;
        let (pair, areas) = crop.layout.lay(&half(left)?, &half(right)?);
        let panels = areas
            .into_iter()
            .zip(&crop.halves)
            .map(|(area, (source, region))| Panel {
                area,
                source: source.name.clone(),
                region: *region,
            })
            .collect();
        Ok(View { name: name.to_owned(), picture: Arc::new(pair), panels })
    }

    /// A strip that only one picture shows.
    fn strip(&self, view: &View, area: &PixelBox, name: &str) -> Result<View, ToolError> {
        let (source, region) = self.source_of(view, area)?;
        let region = region.whole_pixels(source.picture.size());
        let size = Size::new(region.width() as u32, region.height() as u32);
        let ceiling = self.tool.ceiling.min(self.scene.room().side).max(8);
        let shown = shown_size(size, self.tool.floor.min(ceiling), self.tool.most, ceiling);
        let panel = Panel { area: PixelBox::whole(shown), source: source.name.clone(), region };
        let picture = Arc::new(source.picture.part(&region, shown));
        Ok(View { name: name.to_owned(), picture, panels: vec![panel] })
    }

    /// What must be known to read the crops: whose detail they show, and where a frame ends.
    fn remarks(&self, crops: &[Crop<'_>]) -> String {
        let names = self.views.map(|view| view.name.as_str());
        let mut remarks = String::new();
        if let Some(finer) = crops.iter().find_map(Crop::finer) {
            remarks += &format!(
                " The {} has more pixels and was brought down to the detail of the {}; zoom into it alone to \
                 see all of it.",
                names[finer],
                names[1 - finer]
            );
        }
        let beyond = |crop: &Crop<'_>| {
            let (source, area) = &crop.halves[1];
            area.clipped(source.picture.size()) != *area
        };
        if crops.iter().any(beyond) {
            remarks += &format!(
                " What is plain grey on the side of the {} lies outside of its frame.",
                names[1]
            );
        }
        remarks
    }

    /// The source picture that a view shows under `area`, and the place in its pixels.
    fn source_of(&self, view: &View, area: &PixelBox) -> Result<(&'a View, PixelBox), ToolError> {
        let panel = view.panel_at(area).ok_or_else(|| {
            ToolError::refused(format!("{:?} shows no picture that could be compared", view.name))
        })?;
        let source = self.scene.view(&panel.source)?;
        // Not clipped: what lies beyond a frame is shown as such.
        let place = if view.panels.len() == 1 {
            area.mapped(&panel.area, &panel.region)
        } else {
            panel.to_source(area).whole_pixels(source.picture.size())
        };
        Ok((source, crate::pair::snapped(place)))
    }
}

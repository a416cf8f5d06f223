//! What a [`Comparison`] tells: text for the judge, data for machines.

use serde_json::{Value, json};

use super::words::{self, kind, position, strength};
use super::{Closeness, Comparison, Region};
use crate::coords::PixelBox;
use crate::enhancer::{Enhancer, Enlargement};
use crate::side_by_side::Layout;

/// A region with the places and names under which it is told.
pub(super) struct Told<'a> {
    pub(super) region: &'a Region,
    /// The box as text for the model.
    pub(super) place: String,
    /// Its parts as text for the model, and in pixels of the source picture.
    pub(super) parts: Vec<(String, PixelBox)>,
    /// The boxes in pixels of the source pictures.
    pub(super) bbox: PixelBox,
    pub(super) bbox_second: PixelBox,
    /// The name of the crop that shows it, and how its halves lie.
    pub(super) crop: String,
    pub(super) layout: Layout,
    pub(super) enlargement: Enlargement,
}

/// A strip that only one picture shows.
pub(super) struct Strip {
    /// The box as text for the model.
    pub(super) place: String,
    /// In pixels of the source picture.
    pub(super) bbox: PixelBox,
    pub(super) crop: String,
}

/// Everything that is told.
pub(super) struct Report<'a> {
    pub(super) seen: &'a Comparison,
    /// The names of the pictures.
    pub(super) names: [&'a str; 2],
    pub(super) told: Vec<Told<'a>>,
    /// Strips that only the first picture shows, and only the second.
    pub(super) strips: [Vec<Strip>; 2],
    /// The boxes of what remains below the threshold, as text for the model and in pixels of the source.
    pub(super) below: Vec<(String, PixelBox)>,
    /// What must be known to read the crops.
    pub(super) remarks: String,
    /// What part was asked for, in words.
    pub(super) asked: String,
    pub(super) enhancer: &'a Enhancer,
}

impl Report<'_> {
    /// What the judge reads.
    pub(super) fn text(&self) -> String {
        let [first, second] = self.names;
        let mut text = self.heading();
        let whole = PixelBox::whole(self.seen.registration.first());
        for (i, told) in self.told.iter().enumerate() {
            let what = match told.region.overview {
                true => "overview of several regions below".to_owned(),
                false => format!("{} change of {}", strength(told.region), kind(told.region)),
            };
            text += &format!(
                "\n{}. {} ({}), {} % of the picture, {what}: see {}.",
                i + 1,
                told.place,
                position(&told.region.bbox, &whole),
                percent(told.region),
                told.crop,
            );
            if !told.parts.is_empty() {
                let parts: Vec<&str> = told.parts.iter().map(|(place, _)| place.as_str()).collect();
                text += &format!(" Separate changes in it: {}.", parts.join(", "));
            }
        }
        let left_out = match self.seen.left_out {
            0 => String::new(),
            1 => "\n1 weaker region was left out.".to_owned(),
            n => format!("\n{n} weaker regions were left out."),
        };
        text += &left_out;
        for (strips, [has, lacks]) in self.strips.iter().zip([[first, second], [second, first]]) {
            for strip in strips {
                text += &format!(
                    "\nOnly the {has} shows {} at its border, the {lacks} does not: see {}.",
                    strip.place, strip.crop
                );
            }
        }
        text += "\n";
        text += &words::closeness(self.seen);
        text += &self.asked;
        text += &words::made_up(self.seen);
        let places: Vec<&str> = self.below.iter().map(|(place, _)| place.as_str()).collect();
        text += &words::below(self.seen, &places);
        if !self.told.is_empty() {
            text += &self.crops();
            text += "\nJudge for yourself what was asked for and what was not; ignore differences that nobody \
                     would notice.";
        }
        text
    }

    fn heading(&self) -> String {
        let [first, second] = self.names;
        if self.told.is_empty() {
            return match self.seen.closeness {
                Closeness::Same => format!("{first} and {second} are the same."),
                _ => format!("No region stands out between {first} and {second}."),
            };
        }
        if self.seen.changed_everywhere {
            return format!(
                "{second} differs from {first} almost everywhere ({:.0} % of the picture). The strongest \
                 places:",
                self.seen.differing * 100.0
            );
        }
        let count = match self.told.iter().filter(|told| !told.region.overview).count() {
            1 => "1 region differs".to_owned(),
            n => format!("{n} regions differ"),
        };
        format!("{count} between {first} and {second}, the most visible first:")
    }

    /// How the crops are to be read.
    fn crops(&self) -> String {
        let [first, second] = self.names;
        let stacked: Vec<&str> = self.named(|told| told.layout == Layout::Stacked);
        let mut text = if stacked.len() == self.told.len() {
            format!(
                " Each crop shows the {first} on top and the same place in the {second} below it"
            )
        } else {
            format!(
                " Each crop shows the {first} on the left and the same place in the {second} on the right"
            )
        };
        text += ", a red line between.";
        if !stacked.is_empty() && stacked.len() < self.told.len() {
            text += &format!(" On top and below instead: {}.", stacked.join(", "));
        }
        let enhanced = self.named(|told| told.enlargement == Enlargement::Enhanced);
        if let (false, Some(network)) = (enhanced.is_empty(), self.enhancer.network()) {
            text += &format!(
                " Enhanced {}× with the model {}, which may invent fine detail: {}.",
                network.scale,
                network.name,
                enhanced.join(", "),
            );
        }
        let interpolated = self.named(|told| told.enlargement == Enlargement::Interpolated);
        if !interpolated.is_empty() {
            text += &format!(" Enlarged by Lanczos interpolation: {}.", interpolated.join(", "));
        }
        text + &self.remarks
    }

    fn named(&self, which: impl Fn(&Told<'_>) -> bool) -> Vec<&str> {
        self.told.iter().filter(|told| which(told)).map(|told| told.crop.as_str()).collect()
    }

    /// What machines read.
    pub(super) fn data(&self) -> Value {
        let seen = self.seen;
        let regions: Vec<Value> =
            self.told.iter().map(|told| region(told, self.enhancer)).collect();
        let (how, nuisance) = (seen.registration.compensation(), &seen.nuisance);
        let strips = |strips: &[Strip]| -> Vec<Value> {
            strips.iter().map(|strip| json!({ "bbox": strip.bbox, "crop": strip.crop })).collect()
        };
        let below: Vec<Value> = seen
            .below
            .iter()
            .zip(&self.below)
            .map(|(below, (_, bbox))| {
                json!({
                    "bbox": bbox,
                    "strength": rounded(below.strength, 1),
                    "significance": rounded(below.significance, 1),
                })
            })
            .collect();
        let (to_the_bit, grid) = match seen.closeness {
            Closeness::Same | Closeness::Exact => (true, seen.registration.first()),
            Closeness::Grid(size) => (false, size),
        };
        json!({
            "regions": regions,
            "left_out": seen.left_out,
            "only_in_first": strips(&self.strips[0]),
            "only_in_second": strips(&self.strips[1]),
            "below_threshold": below,
            "changed_everywhere": seen.changed_everywhere,
            "differing_percent": rounded(seen.differing * 100.0, 2),
            "compared": { "to_the_bit": to_the_bit, "size": [grid.width, grid.height] },
            "redrawn": nuisance.redrawn,
            "compensated": {
                "registered": seen.registration.is_reliable(),
                "agreement": rounded(seen.registration.agreement(), 3),
                "detail": rounded(nuisance.detail, 3),
                "cut_percent": how.cut.map(|cut| cut.map(|part| rounded(part * 100.0, 2))),
                "shift": how.shift.map(|v| rounded(v, 2)),
                "scale": how.scale.map(|v| rounded(v, 4)),
                "rotation": rounded(how.rotation, 2),
                "warp": rounded(nuisance.warp, 1),
                "tone": nuisance.tone.map(|v| rounded(v, 1)),
                "blur": rounded(nuisance.blur, 1),
                "relighting": nuisance.relighting.map(|v| rounded(v, 3)),
                "noise": rounded(nuisance.noise, 1),
            },
        })
    }
}

fn region(told: &Told<'_>, enhancer: &Enhancer) -> Value {
    let region = told.region;
    let change: [f64; 3] =
        std::array::from_fn(|c| region.colour_second[c] - region.colour_first[c]);
    let parts: Vec<Value> = told.parts.iter().map(|(_, bbox)| json!({ "bbox": bbox })).collect();
    json!({
        "bbox": told.bbox,
        "bbox_second": told.bbox_second,
        "percent": percent(region),
        "strength": rounded(region.strength, 1),
        "significance": rounded(region.significance, 1),
        "mass": rounded(region.mass, 0),
        "kind": kind(region),
        "colour_first": region.colour_first.map(|v| rounded(v, 0)),
        "colour_second": region.colour_second.map(|v| rounded(v, 0)),
        "colour_change": change.map(|v| rounded(v, 0)),
        "structure": rounded(region.structure, 1),
        "overview": region.overview,
        "parts": parts,
        "crop": told.crop,
        "enlarged_with": enhancer.name_of(told.enlargement),
    })
}

/// The size of a region in percent of the picture; small ones keep their digits.
fn percent(region: &Region) -> Value {
    let percent = region.area_fraction * 100.0;
    rounded(percent, if percent < 1.0 { 3 } else { 1 })
}

/// A number with at most `digits` decimals, whole where it is.
fn rounded(value: f64, digits: i32) -> Value {
    let unit = 10f64.powi(digits);
    let rounded = (value * unit).round() / unit;
    if rounded.fract() == 0.0 { json!(rounded as i64) } else { json!(rounded) }
}

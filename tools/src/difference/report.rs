//! The words and the data in which a [`Comparison`] is told.

use serde_json::{Value, json};

use super::{Comparison, Region};
use crate::coords::PixelBox;
use crate::enhancer::{Enhancer, Enlargement};

/// A region with the places and names under which it is told.
pub(super) struct Told<'a> {
    pub(super) region: &'a Region,
    /// The box as text for the model.
    pub(super) place: String,
    /// The boxes in pixels of the source pictures.
    pub(super) bbox: PixelBox,
    pub(super) bbox_second: PixelBox,
    /// The name of the crop that shows it.
    pub(super) crop: String,
    pub(super) enlargement: Enlargement,
}

/// A difference of at least this many grey levels is called strong, …
const STRONG: f64 = 60.0;
/// … and of at least this many clear.
const CLEAR: f64 = 25.0;

fn strength_in_words(region: &Region) -> &'static str {
    match region.strength {
        s if s >= STRONG => "strong",
        s if s >= CLEAR => "clear",
        _ => "faint",
    }
}

/// What changed there: colour, structure or both.
fn kind(region: &Region) -> &'static str {
    let change = |c: usize| region.colour_second[c] - region.colour_first[c];
    let colour = (0..3).map(|c| change(c).abs()).fold(0.0, f64::max);
    // Grey levels of colour that weigh as much as one of edge.
    match (colour >= 12.0, region.structure >= 6.0) {
        (true, false) => "colour",
        (false, true) => "structure",
        _ => "colour and structure",
    }
}

/// "top left", "centre", …
fn position(area: &PixelBox, whole: &PixelBox) -> &'static str {
    let (x, y) = area.centre();
    let third = |at: f64, side: f64| ((at / side * 3.0) as usize).min(2);
    [
        ["top left", "top centre", "top right"],
        ["centre left", "centre", "centre right"],
        ["bottom left", "bottom centre", "bottom right"],
    ][third(y, whole.height())][third(x, whole.width())]
}

/// What the judge reads.
pub(super) fn text(
    seen: &Comparison,
    told: &[Told<'_>],
    first: &str,
    second: &str,
    enhancer: &Enhancer,
) -> String {
    let compensated = compensated_in_words(seen);
    let made_up = if compensated.is_empty() {
        String::new()
    } else {
        format!(" Made up for, and not counted as a difference: {}.", compensated.join("; "))
    };
    if told.is_empty() {
        return format!(
            "No difference between {first} and {second} that goes beyond noise.{made_up}"
        );
    }
    let mut text = String::new();
    if seen.changed_everywhere {
        text += &format!(
            "{second} differs from {first} almost everywhere ({:.0} % of the picture). The strongest \
             places:",
            seen.differing * 100.0
        );
    } else {
        let count = match told.len() {
            1 => "1 region differs".to_owned(),
            n => format!("{n} regions differ"),
        };
        text += &format!("{count} between {first} and {second}, the most visible first:");
    }
    let whole = PixelBox::whole(seen.registration.first());
    for (i, told) in told.iter().enumerate() {
        text += &format!(
            "\n{}. {} ({}), {} % of the picture, {} change of {}: see {}.",
            i + 1,
            told.place,
            position(&told.region.bbox, &whole),
            percent(told.region),
            strength_in_words(told.region),
            kind(told.region),
            told.crop,
        );
    }
    text += match seen.left_out {
        0 => "\nNo other region stands out.".to_owned(),
        1 => "\n1 weaker region was left out.".to_owned(),
        n => format!("\n{n} weaker regions were left out."),
    }
    .as_str();
    text += &format!(
        " Each crop shows the {first} on the left and the same place in the {second} on the right, a \
         red line between.{}{made_up}\nJudge for yourself what was asked for and what was not; ignore \
         differences that nobody would notice.",
        enlarged_in_words(told, enhancer),
    );
    text
}

/// Which crops show more than their own pixels.
fn enlarged_in_words(told: &[Told<'_>], enhancer: &Enhancer) -> String {
    let crops = |how: Enlargement| -> Vec<&str> {
        told.iter().filter(|t| t.enlargement == how).map(|t| t.crop.as_str()).collect()
    };
    let (enhanced, interpolated) = (crops(Enlargement::Enhanced), crops(Enlargement::Interpolated));
    let mut words = String::new();
    if let (false, Some(network)) = (enhanced.is_empty(), enhancer.network()) {
        words += &format!(
            " Enhanced {}× with the model {}, which may invent fine detail: {}.",
            network.scale,
            network.name,
            enhanced.join(", "),
        );
    }
    if !interpolated.is_empty() {
        words += &format!(" Enlarged by Lanczos interpolation: {}.", interpolated.join(", "));
    }
    words
}

fn compensated_in_words(seen: &Comparison) -> Vec<String> {
    let registration = &seen.registration;
    let (first, second) = (registration.first(), registration.second());
    let (how, nuisance) = (registration.compensation(), &seen.nuisance);
    let mut words = Vec::new();
    if first != second {
        words.push(format!("another size ({first} became {second})"));
    }
    if let Some(cut) = how.cut {
        let sides = ["left", "top", "right", "bottom"];
        let parts: Vec<String> = sides
            .iter()
            .zip(cut)
            .filter(|(_, part)| *part > 0.0)
            .map(|(side, part)| format!("{:.1} % {side}", part * 100.0))
            .collect();
        words.push(format!("the frame was cut ({})", parts.join(", ")));
    } else {
        let [x, y] = how.shift;
        if x.abs().max(y.abs()) >= 0.3 {
            words.push(format!("everything moved by {x:.1}, {y:.1} pixels"));
        }
        let [x, y] = how.scale.map(|s| (s - 1.0) * 100.0);
        if x.abs().max(y.abs()) >= 0.3 {
            words.push(format!("scaled by {x:+.1} % across and {y:+.1} % down"));
        }
    }
    if how.rotation.abs() >= 0.1 {
        words.push(format!("turned by {:.1}°", how.rotation));
    }
    if nuisance.warp >= 1.0 {
        words.push(format!("warped locally by up to {:.0} pixels", nuisance.warp));
    }
    if nuisance.tone >= 1.0 {
        words.push(format!("tone shifted by {:.0} of 255 on average", nuisance.tone));
    }
    if nuisance.relighting >= 0.04 {
        words.push(format!("lighting changed by up to {:.0} %", nuisance.relighting * 100.0));
    }
    if nuisance.blur.abs() >= 0.3 {
        words.push(if nuisance.blur > 0.0 { "softer" } else { "sharper" }.to_owned());
    }
    if nuisance.noise >= 1.0 {
        words.push(format!("noise of about {:.0} of 255", nuisance.noise));
    }
    words
}

/// What machines read.
pub(super) fn data(seen: &Comparison, told: &[Told<'_>], enhancer: &Enhancer) -> Value {
    let regions: Vec<Value> = told
        .iter()
        .map(|told| {
            let region = told.region;
            let change: [f64; 3] =
                std::array::from_fn(|c| region.colour_second[c] - region.colour_first[c]);
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
                "crop": told.crop,
                "enlarged_with": enhancer.name_of(told.enlargement),
            })
        })
        .collect();
    let (how, nuisance) = (seen.registration.compensation(), &seen.nuisance);
    json!({
        "regions": regions,
        "left_out": seen.left_out,
        "changed_everywhere": seen.changed_everywhere,
        "differing_percent": rounded(seen.differing * 100.0, 2),
        "compensated": {
            "registered": seen.registration.is_reliable(),
            "agreement": rounded(seen.registration.agreement(), 3),
            "cut_percent": how.cut.map(|cut| cut.map(|part| rounded(part * 100.0, 2))),
            "shift": how.shift.map(|v| rounded(v, 2)),
            "scale": how.scale.map(|v| rounded(v, 4)),
            "rotation": rounded(how.rotation, 2),
            "warp": rounded(nuisance.warp, 1),
            "tone": rounded(nuisance.tone, 1),
            "blur": rounded(nuisance.blur, 1),
            "relighting": rounded(nuisance.relighting, 3),
            "noise": rounded(nuisance.noise, 1),
        },
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

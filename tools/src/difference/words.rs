//! The words in which a [`Comparison`] is told: what was compared, what was made up for, what remains.

use super::{Closeness, Comparison, Nuisance, Region};
use crate::coords::PixelBox;

/// A difference of at least this many grey levels is called strong, …
const STRONG: f64 = 60.0;
/// … and of at least this many clear.
const CLEAR: f64 = 25.0;
/// Moves and scales below these are no news, in pixels and percent.
const MOVED: f64 = 0.3;
const SCALED: f64 = 0.3;

pub(super) fn strength(region: &Region) -> &'static str {
    match region.strength {
        s if s >= STRONG => "strong",
        s if s >= CLEAR => "clear",
        _ => "faint",
    }
}

/// What changed there: colour, structure or both.
pub(super) fn kind(region: &Region) -> &'static str {
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
pub(super) fn position(area: &PixelBox, whole: &PixelBox) -> &'static str {
    let (x, y) = area.centre();
    let third = |at: f64, side: f64| ((at / side * 3.0) as usize).min(2);
    [
        ["top left", "top centre", "top right"],
        ["centre left", "centre", "centre right"],
        ["bottom left", "bottom centre", "bottom right"],
    ][third(y, whole.height())][third(x, whole.width())]
}

/// How closely the pictures were compared.
pub(super) fn closeness(seen: &Comparison) -> String {
    match seen.closeness {
        Closeness::Same => "All pixels are the same to the bit.".to_owned(),
        Closeness::Exact => {
            "Compared to the bit: everywhere else hardly a pixel differs.".to_owned()
        }
        Closeness::Grid(size) => format!("Compared at {size} pixels."),
    }
}

/// What was made up for, if anything.
pub(super) fn made_up(seen: &Comparison) -> String {
    let mut words = frame(seen);
    words.extend(looks(&seen.nuisance));
    let mut text = String::new();
    if seen.nuisance.redrawn {
        text += " The whole picture was redrawn: fine detail differs all over it, so that small changes can \
                 hide.";
    }
    if !words.is_empty() {
        text += &format!(" Made up for, and not counted as a difference: {}.", words.join("; "));
    }
    text
}

/// What happened to the frame.
fn frame(seen: &Comparison) -> Vec<String> {
    let registration = &seen.registration;
    let (first, second) = (registration.first(), registration.second());
    let how = registration.compensation();
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
        let toward = |by: f64, after: &str, before: &str| {
            let pixels = (by.abs() >= MOVED).then_some(by.abs());
            pixels.map(|by_| format!("{by_:.1} pixels {}", if by > 0.0 { after } else { before }))
        };
        let moves: Vec<String> =
            [toward(x, "to the right", "to the left"), toward(y, "down", "up")]
                .into_iter()
                .flatten()
                .collect();
        if !moves.is_empty() {
            words.push(format!("everything moved {}", moves.join(" and ")));
        }
        let [x, y] = how.scale.map(|s| (s - 1.0) * 100.0);
        let larger = |by: f64| if by > 0.0 { "larger" } else { "smaller" };
        if x.abs().max(y.abs()) >= SCALED {
            words.push(format!(
                "everything is {:.1} % {} across and {:.1} % {} down",
                x.abs(),
                larger(x),
                y.abs(),
                larger(y)
            ));
        }
    }
    if how.rotation.abs() >= 0.1 {
        let way = if how.rotation > 0.0 { "clockwise" } else { "counter-clockwise" };
        words.push(format!("turned {way} by {:.1}°", how.rotation.abs()));
    }
    words
}

/// What happened to tone, light and detail.
fn looks(nuisance: &Nuisance) -> Vec<String> {
    let mut words = Vec::new();
    if nuisance.warp >= 1.0 {
        words.push(format!("small moves of up to {:.0} pixels from place to place", nuisance.warp));
    }
    let most = nuisance.tone.iter().fold(0.0f64, |most, t| most.max(t.abs()));
    if most >= 1.0 {
        let mean = nuisance.tone.iter().sum::<f64>() / 3.0;
        let [r, g, b] = nuisance.tone;
        let even = nuisance.tone.iter().all(|t| (t - mean).abs() < 2.0);
        words.push(if even {
            format!(
                "{} by {:.0} of 255 on average",
                if mean > 0.0 { "brighter" } else { "darker" },
                mean.abs()
            )
        } else {
            format!("another tint (red {r:+.0}, green {g:+.0}, blue {b:+.0} of 255 on average)")
        });
    }
    let [darker, brighter] = nuisance.relighting.map(|part| part * 100.0);
    if darker <= -4.0 || brighter >= 4.0 {
        words.push(format!(
            "lighting that changed by {darker:+.0} % to {brighter:+.0} % from place to place"
        ));
    }
    if nuisance.blur.abs() >= 0.3 {
        words.push(if nuisance.blur > 0.0 { "softer" } else { "sharper" }.to_owned());
    }
    if nuisance.noise >= 1.0 {
        words.push(format!("noise of about {:.0} of 255", nuisance.noise));
    }
    words
}

/// What stays below the thresholds, and where; `places` are its boxes as text.
pub(super) fn below(seen: &Comparison, places: &[&str]) -> String {
    if seen.below.is_empty() {
        return String::new();
    }
    let whole = PixelBox::whole(seen.registration.first());
    let places: Vec<String> = seen
        .below
        .iter()
        .zip(places)
        .map(|(below, place)| {
            let where_ = position(&below.bbox, &whole);
            format!("{place} ({where_}, up to {:.0} of 255)", below.strength)
        })
        .collect();
    format!(
        " Below the threshold, the largest differences that remain: {}. Small text or detail may need \
         zoom_in.",
        places.join("; ")
    )
}

//! `measure_colour`: which colours a place has in both pictures, and how far apart they look.

mod dominant;
mod lab;
mod names;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub use lab::Lab;

use self::dominant::{Colour, Dominant};
use crate::coords::{BoxConvention, PixelBox, Size};
use crate::declaration::{Declared, Networks, NoSettings};
use crate::pair::{BOTH, Pair, Place};
use crate::picture::Picture;
use crate::scene::{EDITED, ORIGINAL, Scene};
use crate::tool::{Tool, ToolError, ToolOutput};

/// Longer sides are reduced before colours are counted: there are enough pixels then.
const MOST_SIDE: u32 = 512;

/// Measures colours.
#[derive(Debug, Clone, Default)]
pub struct MeasureColour;

/// The arguments of [`MeasureColour`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColourArgs {
    /// Name of the picture that the box is on, e.g. "Edited Image" or "Crop 2"; the same place in the
    /// other picture is measured too. Default: "Original Image".
    #[serde(default)]
    target_image: Option<String>,
    /// The region, as four numbers in the box format that the description of this tool states. Choose it
    /// inside the object, so that little else is in it.
    bbox: [f64; 4],
}

/// What was measured in one picture.
struct Measured {
    source: String,
    bbox: PixelBox,
    seen: Dominant,
}

impl Tool for MeasureColour {
    type Args = ColourArgs;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn description(&self, boxes: BoxConvention) -> String {
        format!(
            "Measures the colours of a region in the Original Image and at the same place in the Edited \
             Image: names, shares, CIELAB values, and how far apart they look (ΔE, CIEDE2000). Use it \
             where your eyes cannot settle whether a colour changed, or into which. Boxes are {}.",
            boxes.form()
        )
    }

    fn settings(&self) -> Value {
        json!({})
    }

    fn call(&self, args: ColourArgs, scene: &Scene) -> Result<ToolOutput, ToolError> {
        let target = match args.target_image.as_deref() {
            Some(name) if !name.trim().eq_ignore_ascii_case(BOTH) => name,
            _ => ORIGINAL,
        };
        let (source, asked) = scene.place(target, args.bbox)?;
        let asked = asked.whole_pixels(source.picture.size());
        let in_pair = [ORIGINAL, EDITED].contains(&source.name.as_str());
        if !in_pair || scene.view(EDITED).is_err() {
            let part = source.picture.under(&asked, counted(size_of(&asked)));
            let measured =
                Measured { source: source.name.clone(), bbox: asked, seen: Dominant::of(&part) };
            return Ok(alone(&measured, scene));
        }
        let pair = Pair::of(scene)?;
        let place = seen_in_both(&pair, source.name == EDITED, &asked, scene)?;
        let size = counted(place.detail());
        let measured = |source: &str, picture: &Picture, bbox: PixelBox| Measured {
            source: source.to_owned(),
            bbox,
            seen: Dominant::of(&picture.under(&bbox, size)),
        };
        let both = [
            measured(ORIGINAL, &pair.original.picture, place.original),
            measured(EDITED, &pair.edited.picture, place.edited),
        ];
        Ok(compared(&both, &pair, scene))
    }
}

impl Declared for MeasureColour {
    const NAME: &'static str = "measure_colour";
    type Settings = NoSettings;

    fn make(_: NoSettings, _: &Networks) -> Result<Self, String> {
        Ok(Self)
    }
}

/// The part of a box that both pictures show.
fn seen_in_both(
    pair: &Pair<'_>,
    on_edited: bool,
    asked: &PixelBox,
    scene: &Scene,
) -> Result<Place, ToolError> {
    let registration = &pair.registration;
    let original = if on_edited { registration.to_first(asked) } else { *asked };
    let both = original.intersection(&registration.visible());
    if both.is_empty() {
        let (name, other) = if on_edited { (EDITED, ORIGINAL) } else { (ORIGINAL, EDITED) };
        return Err(ToolError::refused(format!(
            "the region {} of the {name} is not in the frame of the {other}",
            scene.box_text(name, asked)
        )));
    }
    let edited = registration.to_second(&both).clipped(pair.edited.picture.size());
    Ok(Place { original: both, edited })
}

fn counted(size: Size) -> Size {
    if size.long_side() > MOST_SIDE { size.with_long_side(MOST_SIDE) } else { size }
}

fn size_of(area: &PixelBox) -> Size {
    Size::new(area.width().round() as u32, area.height().round() as u32)
}

fn alone(measured: &Measured, scene: &Scene) -> ToolOutput {
    let text = format!(
        "{} of the {}: {}",
        scene.box_text(&measured.source, &measured.bbox),
        measured.source,
        in_words(&measured.seen)
    );
    ToolOutput { text, data: json!({ "pictures": [measured.data()] }), pictures: Vec::new() }
}

/// Where the original has one of its colours, what the edited picture mostly has there.
struct Change<'a> {
    from: &'a Colour,
    to: Option<&'a Colour>,
    /// Which part of that place it covers.
    share: f64,
}

impl Change<'_> {
    fn delta_e(&self) -> Option<f64> {
        self.to.map(|to| self.from.lab.delta_e(to.lab))
    }
}

fn changes([first, second]: &[Measured; 2]) -> Vec<Change<'_>> {
    let (first, second) = (&first.seen, &second.seen);
    let change = |(at, from)| {
        let mut counts = vec![0usize; second.colours.len() + 1];
        let mut all = 0usize;
        for (own, their) in first.of_pixel.iter().zip(&second.of_pixel) {
            if *own == Some(at as u8) {
                counts[their.map_or(second.colours.len(), usize::from)] += 1;
                all += 1;
            }
        }
        let most = (0..counts.len()).rev().max_by_key(|&to| counts[to]).unwrap_or(0);
        Change {
            from,
            to: second.colours.get(most),
            share: counts[most] as f64 / all.max(1) as f64,
        }
    };
    first.colours.iter().enumerate().map(change).collect()
}

fn compared(both: &[Measured; 2], pair: &Pair<'_>, scene: &Scene) -> ToolOutput {
    let [first, second] = both;
    let mut text = format!(
        "{} of the {ORIGINAL}, and the same place in the {EDITED} ({}).{}\n{ORIGINAL}: {}\n{EDITED}: {}",
        scene.box_text(ORIGINAL, &first.bbox),
        scene.box_text(EDITED, &second.bbox),
        pair.doubt(),
        in_words(&first.seen),
        in_words(&second.seen),
    );
    let changes = changes(both);
    for change in &changes {
        let from = format!(
            "\nWhere the {ORIGINAL} is {} ({}), the {EDITED} is",
            change.from.name,
            percent(change.from.share)
        );
        text += &match (change.to, change.delta_e()) {
            (Some(to), Some(delta_e)) => format!(
                "{from} mostly {} ({} of that place): ΔE {delta_e:.1}.",
                to.name,
                percent(change.share),
            ),
            _ => format!("{from} of many colours, none of them with a large share."),
        };
    }
    text += "\nΔE is CIEDE2000: below 1 nobody sees a difference, from about 3 it shows side by side, beyond \
             10 at a glance. Light, shadow and compression change colours too: what you see decides.";
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| {
            json!({
                "from": change.from.name,
                "to": change.to.map(|to| to.name),
                "percent": rounded(change.share * 100.0, 1),
                "delta_e": change.delta_e().map(|delta_e| rounded(delta_e, 3)),
            })
        })
        .collect();
    let data = json!({
        "pictures": [first.data(), second.data()],
        "changes": changes,
        "registered": pair.registration.is_reliable(),
    });
    ToolOutput { text, data, pictures: Vec::new() }
}

impl Measured {
    fn data(&self) -> Value {
        let colours: Vec<Value> = self
            .seen
            .colours
            .iter()
            .map(|Colour { name, rgb, lab, share }| {
                let lab = lab.0.map(|value| rounded(value, 3));
                json!({ "name": name, "percent": rounded(share * 100.0, 1), "rgb": rgb, "lab": lab })
            })
            .collect();
        json!({ "source": self.source, "bbox": self.bbox, "colours": colours })
    }
}

fn in_words(seen: &Dominant) -> String {
    let told = seen.colours.iter().map(|Colour { name, rgb: [r, g, b], lab, share }| {
        let [l, a, yellow] = lab.0;
        format!(
            "{} {name} (#{r:02x}{g:02x}{b:02x}; L* {l:.1}, a* {a:.1}, b* {yellow:.1})",
            percent(*share)
        )
    });
    let mut told: Vec<String> = told.collect();
    let rest = 1.0 - seen.colours.iter().map(|colour| colour.share).sum::<f64>();
    if rest >= 0.005 {
        told.push(format!("{} in other colours", percent(rest)));
    }
    told.join(", ") + "."
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn rounded(value: f64, digits: i32) -> f64 {
    let unit = 10f64.powi(digits);
    // Never −0.
    (value * unit).round() / unit + 0.0
}

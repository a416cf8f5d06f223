//! What a judge gets to see in each mode: which pictures, how they are cut or masked, and what it is
//! told about them.
//!
//! Pictures are made here under fixed names ([`PictureKind`]); the prompt pack only picks names.

mod crop;

use std::sync::Arc;

use deeplook_tools::registration::Registration;
use deeplook_tools::scene::{EDITED, REFERENCE, View};
use deeplook_tools::{Picture, PixelBox};
use serde::{Deserialize, Serialize};

use crate::case::EditCase;
use crate::prompt::{PictureKind, Treatment};

/// One part of a judgement: a set of pictures about which one question is asked.
#[derive(Debug, Clone)]
pub struct Brief {
    /// "whole picture", "target 2 of 3", "all targets".
    pub name: String,
    /// The boxes it is about, in pixels of the source.
    pub boxes: Vec<PixelBox>,
    /// The pictures in order. The tools of this part see these and no others.
    pub pictures: Vec<BriefPicture>,
    /// What else the judge is told.
    pub notes: Vec<String>,
}

/// A picture of a [`Brief`].
#[derive(Debug, Clone)]
pub struct BriefPicture {
    /// Under the name by which the judge knows it.
    pub view: View,
    /// What was done to it, for the judge; empty where nothing was.
    pub caption: String,
}

/// How the targets of a case become parts of the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    /// One part for each target; all together where the instruction is about their number.
    Sensible,
    /// One part for each target, whatever the instruction.
    Literal,
}

/// The type of instruction for which a crop around one target cannot show the answer.
const COUNTING: &str = "Change Count";

/// What the judge of `case` sees when it is shown these `kinds` of pictures.
pub fn briefs(
    case: &EditCase,
    kinds: &[PictureKind],
    targets: Targets,
) -> Result<Vec<Brief>, ProtocolError> {
    let needs_boxes = kinds.iter().any(|kind| kind.treatment() != Treatment::Whole);
    if needs_boxes && case.boxes.is_empty() {
        return Err(ProtocolError::NoBoxes);
    }
    let size = case.source.picture().size();
    for (index, area) in case.boxes.iter().enumerate() {
        if area.is_empty() || area.clipped(size) != *area {
            return Err(ProtocolError::BadBox { number: index + 1, area: *area, size });
        }
    }
    let frames = Frames::of(case);
    if !kinds.iter().any(|kind| kind.treatment() == Treatment::Crop) {
        let boxes = if needs_boxes { case.boxes.clone() } else { Vec::new() };
        return Ok(vec![frames.brief("whole picture".to_owned(), boxes, kinds)]);
    }
    let counting = case.kind.as_deref() == Some(COUNTING) && targets == Targets::Sensible;
    let count = case.boxes.len();
    Ok(match count {
        1 => vec![frames.brief("the target".to_owned(), case.boxes.clone(), kinds)],
        _ if counting => vec![frames.brief("all targets".to_owned(), case.boxes.clone(), kinds)],
        _ => {
            let part = |(index, area): (usize, &PixelBox)| {
                frames.brief(format!("target {} of {count}", index + 1), vec![*area], kinds)
            };
            case.boxes.iter().enumerate().map(part).collect()
        }
    })
}

/// The pictures of a case and how they lie on the source.
struct Frames<'a> {
    case: &'a EditCase,
    edited: Registration,
    reference: Option<Registration>,
}

impl<'a> Frames<'a> {
    fn of(case: &'a EditCase) -> Self {
        let source = case.source.picture();
        let onto = |other: &Picture| Registration::estimate(source, other);
        Self {
            case,
            edited: onto(case.edited.picture()),
            reference: case.reference.as_ref().map(|reference| onto(reference.picture())),
        }
    }

    fn brief(&self, name: String, boxes: Vec<PixelBox>, kinds: &[PictureKind]) -> Brief {
        let pictures = kinds.iter().filter_map(|kind| self.picture(*kind, &boxes)).collect();
        Brief { name, pictures, notes: self.notes(), boxes }
    }

    fn picture(&self, kind: PictureKind, boxes: &[PixelBox]) -> Option<BriefPicture> {
        let name = kind.shown_as();
        let (picture, registration) = match name {
            EDITED => (self.case.edited.picture(), Some(&self.edited)),
            REFERENCE => (self.case.reference.as_ref()?.picture(), self.reference.as_ref()),
            _ => (self.case.source.picture(), None),
        };
        let here = |area: &PixelBox| registration.map_or(*area, |r| r.to_second(area));
        Some(match kind.treatment() {
            Treatment::Whole => BriefPicture {
                view: View::source(name, Arc::clone(picture)),
                caption: String::new(),
            },
            Treatment::Masked => {
                let masks: Vec<PixelBox> =
                    boxes.iter().map(|area| here(&crop::mask_area(area))).collect();
                BriefPicture {
                    view: View::source(name, Arc::new(crop::masked(picture, &masks))),
                    caption: "the target of the instruction is painted white; judge only the rest"
                        .to_owned(),
                }
            }
            Treatment::Crop => {
                let around = crop::around(boxes, self.case.source.picture().size());
                let region = here(&around).whole_pixels(picture.size());
                let shown = crop::enlarged(picture, &region);
                let times = f64::from(shown.size().width) / region.width();
                BriefPicture {
                    // To the tools of this part the crop is the whole picture.
                    view: View::source(name, Arc::new(shown)),
                    caption: format!("a crop around the target, enlarged {times:.1}×"),
                }
            }
        })
    }

    /// What the judge must know about the frame of the edited picture.
    fn notes(&self) -> Vec<String> {
        let (source, edited) = (self.edited.first(), self.edited.second());
        let mut notes = Vec::new();
        if source != edited {
            notes.push(format!(
                "The editor returned another size ({edited} instead of {source} pixels); that alone is \
                 neither an error nor a change of the scene."
            ));
        }
        if !self.edited.is_reliable() {
            notes.push(
                "The two pictures could not be laid onto each other: they may show different scenes, \
                 and places were matched by proportion only."
                    .to_owned(),
            );
        } else if let Some([left, top, right, bottom]) = self.edited.compensation().cut {
            let percent = |part: f64| (part * 100.0).round();
            notes.push(format!(
                "The {EDITED} shows a smaller frame: about {} % is cut off on the left, {} % at the \
                 top, {} % on the right, {} % at the bottom. What lies outside its frame is not to be \
                 judged.",
                percent(left), percent(top), percent(right), percent(bottom)
            ));
        }
        notes
    }
}

/// A case that does not fit the mode.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// The oracle mode without boxes.
    #[error("the oracle mode needs the target's boxes; give --box x1,y1,x2,y2, or use --mode tool")]
    NoBoxes,
    /// A box that is not on the source.
    #[error(
        "box {number}, {area}, is not inside the source picture of {size} pixels; boxes are [x1, y1, x2, y2] in its pixels"
    )]
    BadBox {
        /// Which box, from 1.
        number: usize,
        /// The box.
        area: PixelBox,
        /// The size of the source.
        size: deeplook_tools::Size,
    },
}

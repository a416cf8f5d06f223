//! What a judge gets to see in each mode: which parts a judgement has, which pictures each of them
//! shows, how these are cut or masked, and what the judge is told about them.
//!
//! What is asked and shown stands in the prompt pack ([`ModeView`]); how it is done, here.

mod frames;
mod pixels;
#[cfg(test)]
mod tests;

use deeplook_tools::scene::View;
use deeplook_tools::{PictureError, PixelBox, Size};
use serde::{Deserialize, Serialize};

use self::frames::Frames;
use crate::case::{CaseQuestion, Condition, EditCase, InputPicture, TARGET};
use crate::prompt::{Ask, ModeView};

/// One part of a judgement: a set of pictures about which one question is asked.
#[derive(Debug, Clone)]
pub struct Brief {
    /// "whole picture", "target 2 of 3", "all targets", "question 4".
    pub name: String,
    /// The boxes it is about, in pixels of the source.
    pub boxes: Vec<PixelBox>,
    /// What its crops show, in pixels of the source; `None` where pictures are shown whole.
    pub crop: Option<PixelBox>,
    /// The question of the case that it asks, if it is about one.
    pub question: Option<CaseQuestion>,
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
    /// The picture of the case that it is, where nothing was done to it.
    pub whole: Option<InputPicture>,
    /// The quality of the JPEG as which it is sent, where the pack says so.
    pub jpeg: Option<u8>,
}

/// How the targets of a case become parts of the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    /// One part for each target; all together where the pack says so, such as where they are counted.
    Sensible,
    /// One part for each target, whatever the pack says.
    Literal,
}

/// A smaller box, in pixels, is a mistake.
const SMALLEST_BOX: f64 = 4.0;

/// Why a target's box cannot be shown in a picture of `size`, if so.
pub(crate) fn box_problem(area: &PixelBox, size: deeplook_tools::Size) -> Option<&'static str> {
    if area.is_empty() {
        Some("it is empty: x2 must be more than x1, and y2 more than y1")
    } else if area.x2 <= 1.0 && area.y2 <= 1.0 {
        Some("it covers less than 4 pixels: these look like fractions of the picture, not pixels")
    } else if area.area() < SMALLEST_BOX {
        Some("it covers less than 4 pixels, too few to show anything")
    } else if area.clipped(size) != *area {
        Some("it is not inside")
    } else {
        None
    }
}

/// What one part is about.
#[derive(Debug, Clone, Default)]
struct About {
    name: String,
    /// The places that it is about, in pixels of the source.
    boxes: Vec<PixelBox>,
    question: Option<CaseQuestion>,
    /// Whether every place that changed belongs to it.
    changes: bool,
}

/// What the judge of `case` sees in a mode that shows this.
pub fn briefs(
    case: &EditCase,
    shown: &ModeView,
    targets: Targets,
) -> Result<Vec<Brief>, ProtocolError> {
    let parts = parts(case, shown, targets)?;
    check_boxes(case)?;
    let frames = Frames::of(case, shown, parts.iter().any(|part| part.changes))?;
    parts.into_iter().map(|part| frames.brief(part)).collect()
}

/// The parts that a judgement of `case` has.
fn parts(case: &EditCase, shown: &ModeView, targets: Targets) -> Result<Vec<About>, ProtocolError> {
    let named = |name: &str| About { name: name.to_owned(), ..About::default() };
    let areas = || shown.views.iter().filter_map(|view| view.treatment.area());
    for region in areas().filter_map(|area| area.region.as_deref()) {
        if case.region(region).is_empty() {
            return Err(ProtocolError::NoPlace { region: region.to_owned() });
        }
    }
    match &shown.ask {
        Ask::Whole => Ok(vec![named("whole picture")]),
        Ask::Questions if case.questions.is_empty() => Err(ProtocolError::NoQuestions),
        Ask::Questions => {
            let needs_place = areas().any(|area| area.region.is_none());
            let part = |question: &CaseQuestion| match question.region {
                None if needs_place => {
                    Err(ProtocolError::QuestionNowhere { id: question.id.clone() })
                }
                region => Ok(About {
                    boxes: region.into_iter().collect(),
                    question: Some(question.clone()),
                    ..named(&format!("question {}", question.id))
                }),
            };
            case.questions.iter().map(part).collect()
        }
        Ask::Targets { region, together } => {
            let boxes = case.region(region);
            let changes = targets == Targets::Sensible
                && !together.is_empty()
                && Condition::all_met(together, &case.facts);
            let whole = |name| vec![About { boxes: boxes.to_vec(), changes, ..named(name) }];
            let count = boxes.len();
            let part = |(index, area): (usize, &PixelBox)| About {
                boxes: vec![*area],
                ..named(&format!("target {} of {count}", index + 1))
            };
            match count {
                0 => Err(ProtocolError::NoPlace { region: region.clone() }),
                1 => Ok(whole("the target")),
                _ if changes => Ok(whole("all targets")),
                _ => Ok(boxes.iter().enumerate().map(part).collect()),
            }
        }
    }
}

/// Refuses boxes that show nothing of the source, whoever would look at them.
fn check_boxes(case: &EditCase) -> Result<(), ProtocolError> {
    let size = case.source.picture().size();
    let bad = |what: String, area: &PixelBox| match box_problem(area, size) {
        Some(problem) => Err(ProtocolError::BadBox { what, area: *area, size, problem }),
        None => Ok(()),
    };
    for (region, boxes) in &case.regions {
        for (index, area) in boxes.iter().enumerate() {
            let of = if region == TARGET { String::new() } else { format!(" of {region:?}") };
            bad(format!("box {}{of}", index + 1), area)?;
        }
    }
    for question in &case.questions {
        if let Some(area) = &question.region {
            bad(format!("the box of question {:?}", question.id), area)?;
        }
    }
    Ok(())
}

/// A case that does not fit the mode.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// Something is to be shown that nobody has marked.
    #[error(
        "this mode shows the places of {region:?}, and the case has no such boxes; add them, or use another mode"
    )]
    NoPlace {
        /// Which region.
        region: String,
    },
    /// The criterion asks the case's questions, and it has none.
    #[error(
        "this criterion asks the questions of a case, and the case has none; add them to the data set"
    )]
    NoQuestions,
    /// A question whose place is to be shown has none.
    #[error(
        "the place of question {id:?} is to be shown, and it has no box; add it, or use another mode"
    )]
    QuestionNowhere {
        /// Which question.
        id: String,
    },
    /// A picture is to be shown that the case does not have.
    #[error(
        "this mode shows the picture {picture:?}, and the case has none; add it to the data set"
    )]
    NoPicture {
        /// Which picture.
        picture: String,
    },
    /// A layer that cannot be read.
    #[error("{0}")]
    BadPicture(String),
    /// A box that shows nothing of the source.
    #[error(
        "{what} is {area} on a source picture of {size} pixels, and {problem}; boxes are [x1, y1, x2, y2] in its pixels"
    )]
    BadBox {
        /// Which box, from 1.
        what: String,
        /// The box.
        area: PixelBox,
        /// The size of the source.
        size: Size,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl From<PictureError> for ProtocolError {
    fn from(error: PictureError) -> Self {
        Self::BadPicture(error.to_string())
    }
}

//! What a judge gets to see in each mode: which pictures, how they are cut or masked, and what it is
//! told about them.
//!
//! Pictures are made here under fixed names ([`PictureKind`]); the prompt pack only picks names.

mod crop;

use std::sync::Arc;

use deeplook_tools::PixelBox;
use deeplook_tools::difference::{Settings, compare};
use deeplook_tools::registration::Registration;
use deeplook_tools::scene::{EDITED, REFERENCE, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::{EditCase, InputPicture};
use crate::prompt::{ModeView, PictureKind, Treatment};

/// One part of a judgement: a set of pictures about which one question is asked.
#[derive(Debug, Clone)]
pub struct Brief {
    /// "whole picture", "target 2 of 3", "all targets".
    pub name: String,
    /// The boxes it is about, in pixels of the source.
    pub boxes: Vec<PixelBox>,
    /// What its crops show, in pixels of the source; `None` where pictures are shown whole.
    pub crop: Option<PixelBox>,
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
}

/// How the targets of a case become parts of the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    /// One part for each target; all together where the instruction is about their number.
    Sensible,
    /// One part for each target, whatever the instruction.
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

/// The type of instruction for which a crop around one target cannot show the answer.
const COUNTING: &str = "Change Count";

/// What the judge of `case` sees in a mode that shows this.
pub fn briefs(
    case: &EditCase,
    shown: &ModeView,
    targets: Targets,
) -> Result<Vec<Brief>, ProtocolError> {
    let kinds = &shown.pictures[..];
    let needs_boxes = kinds.iter().any(|kind| kind.treatment() != Treatment::Whole);
    if needs_boxes && case.boxes.is_empty() {
        return Err(ProtocolError::NoBoxes);
    }
    let size = case.source.picture().size();
    for (index, area) in case.boxes.iter().enumerate() {
        if let Some(problem) = box_problem(area, size) {
            return Err(ProtocolError::BadBox { number: index + 1, area: *area, size, problem });
        }
    }
    let crops = kinds.iter().any(|kind| kind.treatment() == Treatment::Crop);
    let counting = crops && targets == Targets::Sensible && case.kind.as_deref() == Some(COUNTING);
    // A judge who gets whole pictures and nothing to look with is told nothing that was measured.
    let frames = if needs_boxes || shown.tools {
        Frames::measured(case, counting)
    } else {
        Frames { case, edited: None, reference: None, changes: None }
    };
    let count = case.boxes.len();
    let all = |name: &str| vec![frames.brief(name.to_owned(), case.boxes.clone(), kinds)];
    Ok(match count {
        _ if !needs_boxes => vec![frames.brief("whole picture".to_owned(), Vec::new(), kinds)],
        _ if !crops => all("whole picture"),
        1 => all("the target"),
        _ if counting => all("all targets"),
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
    edited: Option<Registration>,
    reference: Option<Registration>,
    /// Where things came or went, in pixels of the source; only looked for where they are counted.
    changes: Option<Vec<PixelBox>>,
}

impl<'a> Frames<'a> {
    /// An added thing has no box in the source, and an editor may add it elsewhere than the
    /// reference does: to count things, one must see every place that changed in either.
    fn measured(case: &'a EditCase, counting: bool) -> Self {
        let mut changes = counting.then(Vec::new);
        let mut onto = |other: &InputPicture| {
            let Some(changes) = &mut changes else { return other.on(&case.source) };
            let (source, other) = (case.source.picture(), other.picture());
            let seen = compare(source, other, usize::MAX, &Settings::default());
            // Another scene altogether has no places.
            if !seen.changed_everywhere {
                changes.extend(seen.regions.iter().map(|region| region.bbox));
            }
            seen.registration
        };
        let edited = Some(onto(&case.edited));
        let reference = case.reference.as_ref().map(onto);
        Self { case, edited, reference, changes }
    }

    fn brief(&self, name: String, boxes: Vec<PixelBox>, kinds: &[PictureKind]) -> Brief {
        let shown: Vec<PixelBox> =
            boxes.iter().chain(self.changes.iter().flatten()).copied().collect();
        let crop = crop::around(&shown, self.case.source.picture().size());
        let pictures = kinds.iter().filter_map(|kind| self.picture(*kind, &boxes, &crop)).collect();
        let crop = kinds.iter().any(|kind| kind.treatment() == Treatment::Crop).then_some(crop);
        Brief { name, pictures, notes: self.notes(), boxes, crop }
    }

    fn picture(
        &self,
        kind: PictureKind,
        boxes: &[PixelBox],
        crop: &PixelBox,
    ) -> Option<BriefPicture> {
        let name = kind.shown_as();
        let (input, registration) = match name {
            EDITED => (&self.case.edited, self.edited.as_ref()),
            REFERENCE => (self.case.reference.as_ref()?, self.reference.as_ref()),
            _ => (&self.case.source, None),
        };
        let picture = input.picture();
        let here = |area: &PixelBox| registration.map_or(*area, |r| r.to_second(area));
        Some(match kind.treatment() {
            Treatment::Whole => BriefPicture {
                view: View::source(name, Arc::clone(picture)),
                caption: String::new(),
                whole: Some(input.clone()),
            },
            Treatment::Masked => {
                let source = self.case.source.picture().size();
                let masks: Vec<PixelBox> =
                    boxes.iter().map(|area| here(&crop::mask_area(area, source))).collect();
                BriefPicture {
                    view: View::source(name, Arc::new(crop::masked(picture, &masks))),
                    caption: "the target of the instruction is painted white; judge only the rest"
                        .to_owned(),
                    whole: None,
                }
            }
            Treatment::Crop => {
                let region = here(crop).whole_pixels(picture.size());
                let shown = crop::enlarged(picture, &region);
                let times = f64::from(shown.size().width) / region.width();
                let what = match self.changes {
                    Some(_) => "all targets and every place that changed",
                    None => "the target",
                };
                BriefPicture {
                    // To the tools of this part the crop is the whole picture.
                    view: View::source(name, Arc::new(shown)),
                    caption: format!("a crop around {what}, enlarged {times:.1}×"),
                    whole: None,
                }
            }
        })
    }

    /// What the judge must know about the frame of the edited picture.
    fn notes(&self) -> Vec<String> {
        let (source, edited) =
            (self.case.source.picture().size(), self.case.edited.picture().size());
        let mut notes = Vec::new();
        if source != edited {
            notes.push(format!(
                "The editor returned another size ({edited} instead of {source} pixels); that alone is \
                 neither an error nor a change of the scene."
            ));
        }
        let Some(lies) = &self.edited else { return notes };
        if !lies.is_reliable() {
            notes.push(
                "The two pictures could not be laid onto each other: they may show different scenes, \
                 and places were matched by proportion only."
                    .to_owned(),
            );
        } else if let Some([left, top, right, bottom]) = lies.compensation().cut {
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
    /// A box that shows nothing of the source.
    #[error(
        "box {number} is {area} on a source picture of {size} pixels, and {problem}; boxes are [x1, y1, x2, y2] in its pixels"
    )]
    BadBox {
        /// Which box, from 1.
        number: usize,
        /// The box.
        area: PixelBox,
        /// The size of the source.
        size: deeplook_tools::Size,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use deeplook_tools::{Picture, Size};
    use image::{Rgb, RgbImage};

    use super::*;

    fn shown(pictures: &[PictureKind], tools: bool) -> ModeView {
        ModeView { pictures: pictures.to_vec(), tools }
    }

    fn crops() -> ModeView {
        use PictureKind::{EditedCrop, OriginalCrop, ReferenceCrop};
        shown(&[OriginalCrop, EditedCrop, ReferenceCrop], false)
    }

    /// A textured ground with red squares of 24 pixels at these places.
    fn squares(places: &[(u32, u32)]) -> Picture {
        let mut pixels = RgbImage::from_fn(640, 480, |x, y| {
            let shade = 90.0 + 30.0 * (f64::from(x) / 17.0).sin() * (f64::from(y) / 23.0).cos();
            Rgb([shade as u8; 3])
        });
        for (left, top) in places {
            for (x, y) in (0..24 * 24).map(|i| (left + i % 24, top + i / 24)) {
                pixels.put_pixel(x, y, Rgb([210, 30, 30]));
            }
        }
        Picture::from_rgb(pixels).unwrap()
    }

    fn around(place: (u32, u32)) -> PixelBox {
        let (x, y) = (f64::from(place.0), f64::from(place.1));
        PixelBox::new(x, y, x + 24.0, y + 24.0)
    }

    const OWN: (u32, u32) = (60, 60);
    const REFERENCES: (u32, u32) = (500, 80);
    const EDITORS: (u32, u32) = (80, 400);

    /// "From one to two": the reference adds one at one place, the editor at another.
    fn counting() -> EditCase {
        EditCase {
            kind: Some("Change Count".to_owned()),
            boxes: vec![around(OWN)],
            reference: Some(squares(&[OWN, REFERENCES]).into()),
            ..EditCase::new(squares(&[OWN]), squares(&[OWN, EDITORS]), "from one to two")
        }
    }

    fn only_crop(case: &EditCase, targets: Targets) -> PixelBox {
        let briefs = briefs(case, &crops(), targets).unwrap();
        let [brief] = &briefs[..] else { panic!("one part expected, not {}", briefs.len()) };
        brief.crop.unwrap()
    }

    fn holds(crop: &PixelBox, place: (u32, u32)) -> bool {
        crop.intersection(&around(place)) == around(place)
    }

    #[test]
    fn to_count_things_the_crop_shows_every_place_that_changed() {
        let mut case = counting();
        let crop = only_crop(&case, Targets::Sensible);
        assert!([OWN, REFERENCES, EDITORS].iter().all(|place| holds(&crop, *place)), "{crop}");
        let caption =
            briefs(&case, &crops(), Targets::Sensible).unwrap()[0].pictures[0].caption.clone();
        assert!(caption.contains("every place that changed"), "{caption}");

        // Without a reference what the editor did still shows.
        case.reference = None;
        let crop = only_crop(&case, Targets::Sensible);
        assert!(holds(&crop, EDITORS) && !holds(&crop, REFERENCES), "{crop}");

        // An edit that touched nothing: what should have been added is in the reference.
        case = EditCase { edited: squares(&[OWN]).into(), ..counting() };
        let crop = only_crop(&case, Targets::Sensible);
        assert!(holds(&crop, REFERENCES) && !holds(&crop, EDITORS), "{crop}");
    }

    #[test]
    fn other_instructions_and_the_literal_reading_look_at_the_boxes_only() {
        let crop = only_crop(&counting(), Targets::Literal);
        assert!(holds(&crop, OWN) && !holds(&crop, REFERENCES) && !holds(&crop, EDITORS), "{crop}");
        let colour = EditCase { kind: Some("Change Color".to_owned()), ..counting() };
        assert_eq!(only_crop(&colour, Targets::Sensible), crop);
    }

    #[test]
    fn another_scene_has_no_places_that_changed() {
        let noise =
            RgbImage::from_fn(640, 480, |x, y| Rgb([(x * y % 251) as u8, (x ^ y) as u8, 9]));
        let other = Picture::from_rgb(noise).unwrap();
        let case = EditCase { edited: other.into(), ..counting() };
        let crop = only_crop(&case, Targets::Sensible);
        assert!(holds(&crop, REFERENCES), "{crop}");
        assert!(crop.area() < PixelBox::whole(case.source.picture().size()).area(), "{crop}");
    }

    #[test]
    fn a_mask_is_no_difference_in_a_picture_of_another_size() {
        let (source, own) =
            (squares(&[OWN, (301, 203)]), PixelBox::new(301.0, 203.0, 325.0, 227.0));
        for size in [Size::new(320, 240), Size::new(500, 375), Size::new(960, 720)] {
            let edited = source.resized(size);
            let case = EditCase { boxes: vec![own], ..EditCase::new(source.clone(), edited, "x") };
            let shown = shown(&[PictureKind::OriginalMasked, PictureKind::EditedMasked], false);
            let brief = briefs(&case, &shown, Targets::Sensible).unwrap().remove(0);
            let [original, edited] = &brief.pictures[..] else { panic!("two pictures") };
            let seen =
                compare(&original.view.picture, &edited.view.picture, 8, &Settings::default());
            assert_eq!(seen.regions.len(), 0, "{size}: {:?}", seen.regions);
        }
    }

    #[test]
    fn without_tools_and_crops_nothing_measured_is_told() {
        let noise = RgbImage::from_fn(320, 240, |x, y| {
            Rgb([(x * x * 7 + y * 13) as u8, (x * y) as u8, (y * y * 3) as u8])
        });
        let case =
            EditCase::new(squares(&[OWN]), Picture::from_rgb(noise).unwrap(), "another scene");
        let told = |tools| {
            let shown = shown(&[PictureKind::Original, PictureKind::Edited], tools);
            briefs(&case, &shown, Targets::Sensible).unwrap().remove(0).notes.join(" ")
        };
        let (plain, looking) = (told(false), told(true));
        assert!(plain.contains("another size") && !plain.contains("laid onto"), "{plain}");
        assert!(looking.contains("another size") && looking.contains("laid onto"), "{looking}");
    }

    #[test]
    fn boxes_that_show_nothing_are_refused_with_their_numbers() {
        for (area, problem) in [
            (PixelBox::new(9.0, 9.0, 1.0, 20.0), "x2 must be more than x1"),
            (PixelBox::new(9.0, 9.0, 10.0, 10.0), "less than 4 pixels"),
            (PixelBox::new(0.1, 0.2, 0.5, 0.4), "fractions"),
            (PixelBox::new(600.0, 9.0, 700.0, 99.0), "not inside"),
            (PixelBox::new(-5.0, 9.0, 70.0, 99.0), "not inside"),
        ] {
            let case = EditCase { boxes: vec![around(OWN), area], ..counting() };
            let error = briefs(&case, &crops(), Targets::Sensible).unwrap_err().to_string();
            for part in ["box 2", "640×480", problem, &area.to_string()] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}

//! Making the cases of the probes.

use deeplook_tools::{Picture, PixelBox, Size};
use image::RgbImage;
use image::imageops::{crop_imm, replace};

use super::Probe;
use crate::case::{EditCase, InputPicture, REFERENCE};

/// The quality of what is only recompressed: what a web site would do to it.
const RECOMPRESSED: u8 = 85;
/// The quality of another file format: nobody sees a difference.
const OTHER_FORMAT: u8 = 97;
/// What is only made smaller.
const SMALLER: f64 = 0.75;
/// A target that covers more than this has no place outside of it.
const LARGEST_TARGET: f64 = 0.2;
const BLANK: image::Rgb<u8> = image::Rgb([128; 3]);

/// A case with a known answer.
#[derive(Debug, Clone)]
pub struct ProbeCase {
    /// Which probe.
    pub probe: Probe,
    /// The id of the case that it was made of.
    pub of: String,
    /// The case; its editor is the probe's name.
    pub case: EditCase,
}

/// The probes that can be made of a case. `other` is an instruction that is about something else.
///
/// The case's own edit is what the comparisons are about; where a reference is missing, the probes
/// that need one are left out.
pub fn make(case: &EditCase, other: Option<&str>) -> Vec<ProbeCase> {
    Probe::ALL.into_iter().filter_map(|probe| one(case, other, probe)).collect()
}

fn one(case: &EditCase, other: Option<&str>, probe: Probe) -> Option<ProbeCase> {
    let (source, reference) = (&case.source, case.reference());
    // What the comparisons are about: a good edit, where there is one.
    let edit = reference.unwrap_or(&case.edited);
    let mut made = case.clone();
    match probe {
        Probe::NoOp => made.edited = source.clone(),
        Probe::Reference => made.edited = reference?.clone(),
        Probe::NoOpOnReference => {
            made.source = reference?.clone();
            made.edited = reference?.clone();
            // It would show a change that nobody made.
            made.others.remove(REFERENCE);
        }
        Probe::Swapped => {
            made.source = reference?.clone();
            made.edited = source.clone();
            // It would show what the source is now.
            made.others.remove(REFERENCE);
        }
        Probe::OtherInstruction => {
            made.edited = reference?.clone();
            made.instruction = other?.to_owned();
            made.others.remove(REFERENCE);
        }
        Probe::Blank => {
            let Size { width, height } = source.picture().size();
            made.edited = Picture::from_rgb(RgbImage::from_pixel(width, height, BLANK))?.into();
        }
        Probe::PastedElsewhere => made.edited = pasted_elsewhere(case)?.into(),
        Probe::Recompressed => made.edited = recompressed(source, RECOMPRESSED)?,
        Probe::Resized => made.edited = smaller(source).into(),
        Probe::AsItIs | Probe::OtherNames | Probe::OtherOrder => made.edited = edit.clone(),
        Probe::OtherFormat => made.edited = recompressed(edit, OTHER_FORMAT)?,
        Probe::OtherSize => made.edited = smaller(edit).into(),
    }
    made.id = format!("{}.{}", case.id, probe.name());
    made.editor = Some(probe.name().to_owned());
    if probe == Probe::OtherNames {
        made.id = format!("{}.flawless-execution-perfect-consistency", case.id);
    }
    Some(ProbeCase { probe, of: case.id.clone(), case: made })
}

fn smaller(picture: &InputPicture) -> Picture {
    let picture = picture.picture();
    picture.resized(picture.size().scaled(SMALLER))
}

fn recompressed(picture: &InputPicture, quality: u8) -> Option<InputPicture> {
    InputPicture::decode("a recompressed picture", picture.picture().to_jpeg(quality)?).ok()
}

/// The source with the reference's target beside where it belongs.
fn pasted_elsewhere(case: &EditCase) -> Option<Picture> {
    let (source, reference) = (case.source.picture(), case.reference()?.picture());
    let size = source.size();
    let target = case.targets().first()?.whole_pixels(size);
    if size != reference.size() || target.area() > LARGEST_TARGET * size.area() as f64 {
        return None;
    }
    let place = elsewhere(&target, case.targets(), size)?;
    let [x, y, ..] = target.edges().map(|edge| edge as u32);
    let (width, height) = (target.width() as u32, target.height() as u32);
    let mut pixels = source.rgb().clone();
    let patch = crop_imm(reference.rgb(), x, y, width, height).to_image();
    replace(&mut pixels, &patch, place.x1 as i64, place.y1 as i64);
    (pixels != *source.rgb()).then(|| Picture::from_rgb(pixels)).flatten()
}

/// A place of the same size that touches no target: the one farthest from the first of a grid.
fn elsewhere(target: &PixelBox, targets: &[PixelBox], size: Size) -> Option<PixelBox> {
    const STEPS: u32 = 9;
    let (width, height) = (target.width(), target.height());
    let room = (f64::from(size.width) - width, f64::from(size.height) - height);
    let at = |step: u32, room: f64| (room * f64::from(step) / f64::from(STEPS - 1)).floor();
    let distance = |place: &PixelBox| {
        let ((x, y), (tx, ty)) = (place.centre(), target.centre());
        (x - tx).hypot(y - ty)
    };
    (0..STEPS * STEPS)
        .map(|i| (at(i % STEPS, room.0), at(i / STEPS, room.1)))
        .map(|(x, y)| PixelBox::new(x, y, x + width, y + height))
        .filter(|place| {
            let near = place.grown(width / 2.0, height / 2.0);
            targets.iter().all(|other| near.intersection(other).is_empty())
        })
        .max_by(|a, b| distance(a).total_cmp(&distance(b)))
}

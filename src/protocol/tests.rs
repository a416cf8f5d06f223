use deeplook_tools::difference::{Settings, compare};
use deeplook_tools::{Picture, Size};
use image::{Rgb, RgbImage};

use super::*;
use crate::prompt::{Mode, Pack};

/// A mode of the built-in pack.
fn mode(criterion: &str, mode: Mode) -> ModeView {
    let pack = Pack::embedded("dlebench/v2").unwrap();
    pack.criterion(criterion).unwrap().modes[&mode].clone()
}

fn crops() -> ModeView {
    mode("if", Mode::Oracle)
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
    EditCase::new(squares(&[OWN]), squares(&[OWN, EDITORS]), "from one to two")
        .with_fact("type", "Change Count")
        .with_targets([around(OWN)])
        .with_reference(squares(&[OWN, REFERENCES]))
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
    case.others.clear();
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
    let colour = counting().with_fact("type", "Change Color");
    assert_eq!(only_crop(&colour, Targets::Sensible), crop);
}

#[test]
fn another_scene_has_no_places_that_changed() {
    let noise = RgbImage::from_fn(640, 480, |x, y| Rgb([(x * y % 251) as u8, (x ^ y) as u8, 9]));
    let other = Picture::from_rgb(noise).unwrap();
    let case = EditCase { edited: other.into(), ..counting() };
    let crop = only_crop(&case, Targets::Sensible);
    assert!(holds(&crop, REFERENCES), "{crop}");
    assert!(crop.area() < PixelBox::whole(case.source.picture().size()).area(), "{crop}");
}

#[test]
fn a_mask_is_no_difference_in_a_picture_of_another_size() {
    let (source, own) = (squares(&[OWN, (301, 203)]), PixelBox::new(301.0, 203.0, 325.0, 227.0));
    for size in [Size::new(320, 240), Size::new(500, 375), Size::new(960, 720)] {
        let edited = source.resized(size);
        let case = EditCase::new(source.clone(), edited, "x").with_targets([own]);
        let shown = mode("vc", Mode::Oracle);
        let brief = briefs(&case, &shown, Targets::Sensible).unwrap().remove(0);
        let [original, edited] = &brief.pictures[..] else { panic!("two pictures") };
        let seen = compare(&original.view.picture, &edited.view.picture, 8, &Settings::default());
        assert_eq!(seen.regions.len(), 0, "{size}: {:?}", seen.regions);
    }
}

#[test]
fn without_tools_and_crops_nothing_measured_is_told() {
    let noise = RgbImage::from_fn(320, 240, |x, y| {
        Rgb([(x * x * 7 + y * 13) as u8, (x * y) as u8, (y * y * 3) as u8])
    });
    let case = EditCase::new(squares(&[OWN]), Picture::from_rgb(noise).unwrap(), "another scene");
    let told = |tools| {
        let shown = mode("if", if tools { Mode::Tool } else { Mode::Plain });
        briefs(&case, &shown, Targets::Sensible).unwrap().remove(0).notes.join(" ")
    };
    let (plain, looking) = (told(false), told(true));
    assert!(plain.contains("another size") && !plain.contains("laid onto"), "{plain}");
    assert!(looking.contains("another size") && looking.contains("laid onto"), "{looking}");
}

#[test]
fn a_cut_frame_is_told_in_every_mode() {
    let source =
        squares(&[OWN, (60, 70), (210, 330), (330, 150), (480, 90), (520, 390), (110, 220)]);
    let edited = source.cropped(&PixelBox::new(0.0, 0.0, 560.0, 480.0));
    let case = EditCase::new(source, edited, "x").with_targets([around(OWN)]);
    let notes = |shown: &ModeView| briefs(&case, shown, Targets::Sensible).unwrap().remove(0).notes;
    let with_tools = notes(&mode("if", Mode::Tool));
    assert!(with_tools.join(" ").contains("smaller frame"), "{with_tools:?}");
    for shown in [mode("if", Mode::Plain), mode("vc", Mode::Plain), mode("vc", Mode::Oracle)] {
        assert_eq!(notes(&shown), with_tools);
    }
    let v1 = Pack::embedded("dlebench/v1").unwrap();
    let plain = &v1.criterion("if").unwrap().modes[&Mode::Plain];
    assert!(!notes(plain).join(" ").contains("smaller frame"), "v1 stays as it was");
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
        let case = counting().with_targets([around(OWN), area]);
        let error = briefs(&case, &crops(), Targets::Sensible).unwrap_err().to_string();
        for part in ["box 2", "640×480", problem, &area.to_string()] {
            assert!(error.contains(part), "{error}");
        }
    }
}

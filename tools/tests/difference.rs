//! What `localize_differences` must hold to on any picture, and on scenes where the truth is known.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use deeplook_tools::difference::{Comparison, Settings, compare};
use deeplook_tools::registration::Registration;
use deeplook_tools::{Picture, PixelBox, Scene, Size, Toolbox};
use image::{Rgb, RgbImage};
use proptest::prelude::*;

/// Numbers without order, the same in every run.
fn noise(x: u32, y: u32, seed: u32) -> u32 {
    let mut v =
        x.wrapping_mul(0x9E37_79B1) ^ y.wrapping_mul(0x85EB_CA77) ^ seed.wrapping_mul(0xC2B2_AE3D);
    v ^= v >> 15;
    v = v.wrapping_mul(0x2C1B_3C6D);
    v ^ (v >> 13)
}

/// Smooth hills with some detail: a stand-in for a photograph.
fn landscape(x: f64, y: f64, seed: u32) -> [f64; 3] {
    let cell = |size: f64, seed: u32| {
        let (fx, fy) = (x / size, y / size);
        let (x0, y0) = (fx.floor(), fy.floor());
        let (tx, ty) = (fx - x0, fy - y0);
        let smooth = |t: f64| t * t * (3.0 - 2.0 * t);
        let at = |dx: f64, dy: f64| {
            let corner = noise((x0 + dx) as i64 as u32, (y0 + dy) as i64 as u32, seed);
            f64::from(corner % 1000) / 1000.0
        };
        let (tx, ty) = (smooth(tx), smooth(ty));
        let top = at(0.0, 0.0) * (1.0 - tx) + at(1.0, 0.0) * tx;
        let bottom = at(0.0, 1.0) * (1.0 - tx) + at(1.0, 1.0) * tx;
        top * (1.0 - ty) + bottom * ty
    };
    std::array::from_fn(|c| {
        let seed = seed * 16 + c as u32;
        40.0 + 90.0 * cell(120.0, seed) + 55.0 * cell(31.0, seed + 3) + 30.0 * cell(9.0, seed + 7)
    })
}

fn picture(width: u32, height: u32, pixel: impl Fn(f64, f64) -> [f64; 3]) -> Picture {
    let pixels = RgbImage::from_fn(width, height, |x, y| {
        Rgb(pixel(f64::from(x), f64::from(y)).map(|v| v.round().clamp(0.0, 255.0) as u8))
    });
    Picture::from_rgb(pixels).unwrap()
}

/// A room drawn with flat colours: a wall, a floor, a table, a ball and a book.
fn room(ball: [f64; 3], centre: (f64, f64), radius: f64) -> Picture {
    picture(900, 700, |x, y| {
        let inside = |x1: f64, y1: f64, x2: f64, y2: f64| x >= x1 && x < x2 && y >= y1 && y < y2;
        let (dx, dy) = (x - centre.0, y - centre.1);
        if dx * dx + dy * dy < radius * radius {
            ball
        } else if inside(180.0, 420.0, 640.0, 450.0) || inside(220.0, 450.0, 250.0, 600.0) {
            [120.0, 80.0, 50.0]
        } else if inside(500.0, 380.0, 590.0, 420.0) {
            [40.0, 90.0, 60.0]
        } else if y > 560.0 {
            [170.0, 150.0, 130.0]
        } else {
            [225.0, 222.0, 210.0]
        }
    })
}

const RED: [f64; 3] = [200.0, 40.0, 40.0];
const BLUE: [f64; 3] = [40.0, 60.0, 200.0];
const BALL: (f64, f64) = (330.0, 380.0);

fn seen(first: &Picture, second: &Picture) -> Comparison {
    compare(first, second, 8, &Settings::default())
}

/// The regions must be the given boxes, each covered at least by half.
#[track_caller]
fn assert_found(first: &Picture, second: &Picture, truth: &[PixelBox]) {
    let seen = seen(first, second);
    let boxes: Vec<PixelBox> = seen.regions.iter().map(|region| region.bbox).collect();
    for change in truth {
        let found = boxes.iter().any(|b| b.intersection(change).area() >= 0.5 * change.area());
        assert!(found, "{change} is not among {boxes:?}");
    }
    for found in &boxes {
        let real = truth.iter().any(|change| found.intersection(change).area() > 0.0);
        assert!(real, "{found} is no change; the changes are {truth:?}");
    }
    assert!(!seen.changed_everywhere);
}

fn around((x, y): (f64, f64), radius: f64) -> PixelBox {
    PixelBox::new(x - radius, y - radius, x + radius, y + radius)
}

#[test]
fn a_drawn_object_that_is_recoloured_is_found() {
    assert_found(&room(RED, BALL, 40.0), &room(BLUE, BALL, 40.0), &[around(BALL, 40.0)]);
}

#[test]
fn a_drawn_object_that_is_slightly_recoloured_is_found() {
    let paler = [215.0, 75.0, 60.0];
    assert_found(&room(RED, BALL, 40.0), &room(paler, BALL, 40.0), &[around(BALL, 40.0)]);
}

#[test]
fn a_drawn_object_that_is_gone_is_found() {
    assert_found(&room(RED, BALL, 30.0), &room(RED, BALL, 0.0), &[around(BALL, 30.0)]);
}

#[test]
fn an_object_that_moved_is_a_change() {
    for (dx, dy) in [(8.0, 0.0), (-12.0, 0.0), (30.0, -6.0), (0.0, -10.0)] {
        let moved = (BALL.0 + dx, BALL.1 + dy);
        let seen = seen(&room(RED, BALL, 40.0), &room(RED, moved, 40.0));
        let there =
            seen.regions.iter().any(|r| !r.bbox.intersection(&around(BALL, 40.0)).is_empty());
        assert!(there, "moved by {dx}, {dy}: {:?}", seen.regions);
    }
}

#[test]
fn an_object_that_grew_is_a_change() {
    for factor in [1.15, 0.85, 1.3] {
        let seen = seen(&room(RED, BALL, 40.0), &room(RED, BALL, 40.0 * factor));
        let there =
            seen.regions.iter().any(|r| !r.bbox.intersection(&around(BALL, 40.0)).is_empty());
        assert!(there, "grew {factor} times: {:?}", seen.regions);
    }
}

#[test]
fn a_change_in_a_landscape_is_found_under_another_size() {
    let first = picture(1200, 800, |x, y| landscape(x, y, 1));
    let second = picture(1024, 672, |x, y| {
        let (x, y) = (x * 1200.0 / 1024.0, y * 800.0 / 672.0);
        let here = (x - 700.0).powi(2) + (y - 300.0).powi(2) < 900.0;
        if here { [220.0, 60.0, 60.0] } else { landscape(x, y, 1) }
    });
    assert_found(&first, &second, &[around((700.0, 300.0), 30.0)]);
}

#[test]
fn a_cut_frame_is_told_and_is_no_difference() {
    let first = picture(1200, 800, |x, y| landscape(x, y, 2));
    // 5 % off the left, 8 % off the bottom.
    let second =
        picture(1024, 661, |x, y| landscape(60.0 + x * 1140.0 / 1024.0, y * 736.0 / 661.0, 2));
    let seen = seen(&first, &second);
    assert!(seen.regions.is_empty(), "{:?}", seen.regions);
    let [left, top, right, bottom] = seen.registration.compensation().cut.expect("a cut frame");
    assert!((left - 0.05).abs() < 0.006 && (bottom - 0.08).abs() < 0.006, "{left} {bottom}");
    assert!(top < 0.006 && right < 0.006, "{top} {right}");
    let scene = Scene::new([first, second]);
    let output = Toolbox::standard()
        .call("localize_differences", &serde_json::json!({}), &scene)
        .expect("an output");
    assert!(output.text.contains("the frame was cut"), "{}", output.text);
}

#[test]
fn other_pictures_changed_everywhere() {
    let first = picture(800, 600, |x, y| landscape(x, y, 3));
    let second = picture(800, 600, |x, y| landscape(x, y, 4));
    let seen = seen(&first, &second);
    assert!(seen.changed_everywhere, "{} {:?}", seen.differing, seen.registration);
    assert!(!seen.regions.is_empty() && seen.regions.len() <= 8);
}

#[test]
fn crops_stand_side_by_side_and_know_where_they_come_from() {
    let scene = Scene::new([room(RED, BALL, 40.0), room(BLUE, BALL, 40.0)]);
    let output = Toolbox::standard()
        .call("localize_differences", &serde_json::json!({"max_regions": 3}), &scene)
        .expect("an output");
    assert_eq!(output.pictures.len(), 1);
    let view = &output.pictures[0];
    assert_eq!(view.name, "Crop 1");
    for panel in &view.panels {
        let back = panel.to_source(&panel.area);
        assert!(back.intersection(&around(BALL, 40.0)).area() > 0.9 * around(BALL, 40.0).area());
    }
    let refused = Toolbox::standard().call(
        "localize_differences",
        &serde_json::json!({"max_regions": 0}),
        &scene,
    );
    assert!(refused.is_err());
}

/// The boxes of regions and parts that a call of the tool tells.
fn told(first: &Picture, second: &Picture, call: &serde_json::Value) -> deeplook_tools::ToolOutput {
    let scene = Scene::new([first.clone(), second.clone()]);
    Toolbox::standard().call("localize_differences", call, &scene).unwrap()
}

fn boxes(data: &serde_json::Value, list: &str) -> Vec<PixelBox> {
    let boxes = data[list].as_array().unwrap();
    boxes.iter().map(|entry| serde_json::from_value(entry["bbox"].clone()).unwrap()).collect()
}

#[test]
fn a_dot_on_a_flat_picture_is_a_dot() {
    let flat = |dot: Option<[f64; 3]>| {
        picture(800, 600, move |x, y| {
            let inside = (x - 300.0).powi(2) + (y - 200.0).powi(2) < 36.0;
            dot.filter(|_| inside).unwrap_or([255.0; 3])
        })
    };
    let dot = around((300.0, 200.0), 6.0);
    for (first, second) in [(None, Some(RED)), (Some(RED), None), (Some(RED), Some(BLUE))] {
        let (first, second) = (flat(first), flat(second));
        assert_found(&first, &second, &[dot]);
        let output = told(&first, &second, &serde_json::json!({}));
        assert!(!output.text.contains("almost everywhere"), "{}", output.text);
        assert!(!output.text.contains("Made up for"), "{}", output.text);
    }
}

#[test]
fn every_small_change_of_a_pair_that_is_the_same_elsewhere_is_found() {
    let places = [(40, 30), (1500, 17), (777, 640), (1990, 1115), (12, 1000)];
    let changed = |size: u32, by: f64| {
        picture(2000, 1125, move |x, y| {
            let pixel = landscape(x, y, 6);
            let here = |&(px, py): &(u32, u32)| {
                let (px, py, size) = (f64::from(px), f64::from(py), f64::from(size));
                x >= px && x < px + size && y >= py && y < py + size
            };
            if places.iter().any(here) {
                pixel.map(|v| if v > 128.0 { v - by } else { v + by })
            } else {
                pixel
            }
        })
    };
    let first = changed(0, 0.0);
    for (size, by) in [(3, 25.0), (3, 10.0), (28, 60.0)] {
        let truth: Vec<PixelBox> = places
            .iter()
            .map(|&(x, y)| {
                let (x, y, size) = (f64::from(x), f64::from(y), f64::from(size));
                PixelBox::new(x, y, x + size, y + size).clipped(first.size())
            })
            .collect();
        assert_found(&first, &changed(size, by), &truth);
    }
}

#[test]
fn pictures_that_are_the_same_are_said_to_be() {
    let first = picture(300, 200, |x, y| landscape(x, y, 7));
    let output = told(&first, &first, &serde_json::json!({}));
    assert!(output.text.contains("are the same"), "{}", output.text);
    // One pixel by two levels: no region, and never said to be the same.
    let mut pixels = first.rgb().clone();
    pixels.get_pixel_mut(100, 100).0[1] ^= 2;
    let second = Picture::from_rgb(pixels).unwrap();
    let output = told(&first, &second, &serde_json::json!({}));
    assert!(boxes(&output.data, "regions").is_empty());
    assert!(!output.text.contains("are the same"), "{}", output.text);
}

#[test]
fn strips_that_only_one_picture_shows_are_told_apart() {
    // The second shows 12 % more on the right, and 10 % less at the top.
    let first = picture(1000, 800, |x, y| landscape(x, y, 8));
    let second = picture(1120, 720, |x, y| landscape(x, y + 80.0, 8));
    let output = told(&first, &second, &serde_json::json!({}));
    let (gone, new) = (boxes(&output.data, "only_in_first"), boxes(&output.data, "only_in_second"));
    assert_eq!((gone.len(), new.len()), (1, 1), "{}", output.text);
    assert!((gone[0].y2 - 80.0).abs() < 8.0 && gone[0].y1 == 0.0, "{}", gone[0]);
    assert!((new[0].x1 - 1000.0).abs() < 10.0 && new[0].x2 == 1120.0, "{}", new[0]);
    for strip in ["only_in_first", "only_in_second"] {
        let crop = output.data[strip][0]["crop"].as_str().unwrap();
        assert!(output.pictures.iter().any(|view| view.name == crop) && output.text.contains(crop));
    }
}

#[test]
fn a_box_is_looked_at_more_closely_and_others_are_left_out() {
    let edited = |marks: &'static [(f64, f64, f64)]| {
        picture(900, 600, move |x, y| {
            let pixel = landscape(x, y, 9);
            let mark =
                marks.iter().find(|(mx, my, _)| (x - mx).abs() < 15.0 && (y - my).abs() < 15.0);
            mark.map_or(pixel, |(_, _, by)| pixel.map(|v| v + by))
        })
    };
    let first = edited(&[]);
    let second = edited(&[(200.0, 150.0, 60.0), (700.0, 450.0, 50.0)]);
    let all = told(&first, &second, &serde_json::json!({}));
    assert_eq!(boxes(&all.data, "regions").len(), 2);
    let inside = told(&first, &second, &serde_json::json!({"bbox": [600, 350, 800, 550]}));
    let left = told(&first, &second, &serde_json::json!({"ignore": [[150, 100, 250, 200]]}));
    for output in [inside, left] {
        let regions = boxes(&output.data, "regions");
        assert_eq!(regions.len(), 1, "{}", output.text);
        assert!(!regions[0].intersection(&around((700.0, 450.0), 15.0)).is_empty());
    }
    let refused = Toolbox::standard().call(
        "localize_differences",
        &serde_json::json!({"bbox": [600, 350, 500, 550]}),
        &Scene::new([first, second]),
    );
    assert!(refused.is_err());
}

#[test]
fn what_changed_fills_its_crop() {
    let second = |digit: bool| {
        picture(2000, 1125, move |x, y| {
            let stroke = digit && (x - 900.0).abs() < 5.0 && (y - 500.0).abs() < 14.0;
            if stroke { [10.0; 3] } else { landscape(x, y, 10) }
        })
    };
    let output = told(&second(false), &second(true), &serde_json::json!({}));
    let bbox = boxes(&output.data, "regions")[0];
    let panel = &output.pictures[0].panels[0];
    let shown = panel.area.width() / panel.region.width();
    assert!(bbox.width().min(bbox.height()) * shown >= 150.0, "{bbox} {shown}");
    assert!(panel.region.intersection(&bbox) == bbox, "{} cuts {bbox}", panel.region);
}

fn any_picture() -> impl Strategy<Value = Picture> {
    (1u32..90, 1u32..90, any::<u32>(), 0u32..4).prop_map(|(width, height, seed, kind)| {
        picture(width, height, |x, y| match kind {
            0 => [f64::from(seed % 256); 3],
            1 => {
                std::array::from_fn(|c| f64::from(noise(x as u32, y as u32, seed + c as u32) % 256))
            }
            2 => landscape(x, y, seed % 100),
            _ => [if (x as u32).is_multiple_of(7) { 255.0 } else { 0.0 }, y, f64::from(seed % 256)],
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_differs_from_itself(picture in any_picture()) {
        let seen = seen(&picture, &picture);
        prop_assert!(seen.regions.is_empty() && !seen.changed_everywhere && seen.left_out == 0);
    }

    #[test]
    fn boxes_stay_inside_and_repeat(first in any_picture(), second in any_picture(), most in 1usize..20) {
        let compared = compare(&first, &second, most, &Settings::default());
        prop_assert!(compared.regions.len() <= most);
        for region in &compared.regions {
            prop_assert!(region.bbox.clipped(first.size()) == region.bbox && !region.bbox.is_empty());
            let other = region.bbox_second;
            prop_assert!(other.clipped(second.size()) == other && !other.is_empty());
            prop_assert!(region.strength.is_finite() && region.mass.is_finite());
        }
        let scene = Scene::new([first, second]);
        let call = || Toolbox::standard().call("localize_differences", &serde_json::json!({}), &scene);
        let (a, b) = (call().unwrap(), call().unwrap());
        prop_assert_eq!(a.text, b.text);
        prop_assert_eq!(a.data, b.data);
        for (a, b) in a.pictures.iter().zip(&b.pictures) {
            prop_assert_eq!(&a.picture, &b.picture);
        }
    }

    #[test]
    fn mappings_invert(
        first in any_picture(), second in any_picture(),
        x in -0.2..1.0f64, y in -0.2..1.0f64, w in 0.01..1.0f64, h in 0.01..1.0f64,
    ) {
        let registration = Registration::estimate(&first, &second);
        let Size { width, height } = first.size();
        let (width, height) = (f64::from(width), f64::from(height));
        let area = PixelBox::new(x * width, y * height, (x + w) * width, (y + h) * height);
        let back = registration.to_first(&registration.to_second(&area));
        for (a, b) in area.edges().iter().zip(back.edges()) {
            prop_assert!((a - b).abs() < 1e-3, "{area} became {back}");
        }
        let visible = registration.visible();
        prop_assert!(visible.clipped(first.size()) == visible);
    }
}

/// Inside a picture that moved as a whole, so that the local field is at work.
#[test]
fn an_object_that_moved_in_a_landscape_is_a_change() {
    let with_object = |centre: (f64, f64), radius: f64, shift: f64| {
        picture(1200, 800, move |x, y| {
            let (x, y) = (x + shift, y - 0.7 * shift);
            let (dx, dy) = (x - centre.0, y - centre.1);
            if dx * dx + dy * dy < radius * radius {
                let scale = 40.0 / radius;
                landscape(500.0 + dx * scale, 500.0 + dy * scale, 9).map(|v| 255.0 - v)
            } else {
                landscape(x, y, 5)
            }
        })
    };
    let first = with_object((600.0, 400.0), 40.0, 0.0);
    let changes = [
        ((8.0, 0.0), 1.0),
        ((0.0, 9.0), 1.0),
        ((-12.0, 5.0), 1.0),
        ((25.0, 0.0), 1.0),
        ((0.0, 0.0), 1.15),
        ((0.0, 0.0), 0.85),
    ];
    for ((dx, dy), factor) in changes {
        for shift in [0.0, 1.6] {
            let second = with_object((600.0 + dx, 400.0 + dy), 40.0 * factor, shift);
            let seen = seen(&first, &second);
            let boxes: Vec<PixelBox> = seen.regions.iter().map(|r| r.bbox).collect();
            let object = around((600.0, 400.0), 40.0);
            let found = boxes.iter().any(|b| !b.intersection(&object).is_empty());
            assert!(found, "moved by {dx}, {dy}, grew {factor}, all moved {shift}: {boxes:?}");
        }
    }
}

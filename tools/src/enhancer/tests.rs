//! What the Enhancer promises, with plain functions in the place of networks.

use std::sync::Arc;

use image::{Rgb, RgbImage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::network::{Network, NetworkFacts, Planes};
use super::{BUDGET, Enhance, Enhancer};
use crate::coords::{PixelBox, Size};
use crate::difference::LocalizeDifferences;
use crate::picture::Picture;
use crate::scene::Scene;
use crate::tool::{ToolError, ToolOutput};
use crate::toolbox::Toolbox;
use crate::zoom::ZoomIn;

/// Looks at every pixel within `border`, so that a wrong neighbour anywhere changes its answer, and
/// paints the blue channel full, so that what went through it can be told.
fn blurring(scale: u32, border: u32) -> impl Fn(Planes) -> Result<Planes, String> {
    move |Planes { size, values }| {
        let inner = Size::new(size.width - 2 * border, size.height - 2 * border);
        let out = Size::new(inner.width * scale, inner.height * scale);
        let mut enlarged = Vec::new();
        for channel in 0..3 {
            for (y, x) in (0..out.height).flat_map(|y| (0..out.width).map(move |x| (y, x))) {
                let mut sum = 0.0;
                for v in 0..=2 * border {
                    let row = (channel * size.height + y / scale + v) * size.width + x / scale;
                    let window = &values[row as usize..=(row + 2 * border) as usize];
                    sum += window.iter().sum::<f32>() * (v + 1) as f32;
                }
                let weight = (2 * border + 1) * (border + 1) * (2 * border + 1);
                enlarged.push(if channel == 2 { 1.0 } else { sum / weight as f32 });
            }
        }
        Ok(Planes { size: out, values: enlarged })
    }
}

fn facts(scale: u32, border: u32) -> NetworkFacts {
    NetworkFacts { name: "test".into(), sha256: "abc".into(), scale, border }
}

fn enhancer() -> Enhancer {
    let network = Network::of(facts(2, 3), Box::new(blurring(2, 3)), 50);
    Enhancer { network: Some(network), budget: BUDGET }
}

/// The tools with `enhancer`.
fn toolbox(enhancer: Enhancer) -> Toolbox {
    let enhancer = Arc::new(enhancer);
    Toolbox::default()
        .with(LocalizeDifferences::default().with_enhancer(enhancer.clone()))
        .with(ZoomIn::default().with_enhancer(enhancer.clone()))
        .with(Enhance::new(enhancer))
}

fn refusal(result: Result<ToolOutput, ToolError>) -> String {
    match result {
        Err(ToolError::Refused(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn chart(width: u32, height: u32) -> Picture {
    let pixel = |x: u32, y: u32| Rgb([(x * 37 + y * 11) as u8, (x ^ (y * 3)) as u8, 90]);
    Picture::from_rgb(RgbImage::from_fn(width, height, pixel)).unwrap()
}

/// A chart with grey squares of `side` at these places.
fn with_squares(width: u32, height: u32, side: u32, places: &[(u32, u32)]) -> Picture {
    let mut pixels = RgbImage::from_pixel(width, height, Rgb([90; 3]));
    for &(left, top) in places {
        for (x, y) in (0..side).flat_map(|x| (0..side).map(move |y| (x, y))) {
            pixels.put_pixel(left + x, top + y, Rgb([220, 40, 40]));
        }
    }
    Picture::from_rgb(pixels).unwrap()
}

proptest! {
    #[test]
    fn tiles_leave_no_seam(
        width in 1u32..70, height in 1u32..70, scale in 2u32..4, border in 0u32..4, tile in 1u32..40,
        corner in prop::array::uniform2(0.0..1.0f64), extent in prop::array::uniform2(0.0..1.0f64),
    ) {
        let source = chart(width, height);
        let (w, h) = (f64::from(width), f64::from(height));
        let area = PixelBox::new(
            corner[0] * w, corner[1] * h,
            (corner[0] + extent[0]) * w, (corner[1] + extent[1]) * h,
        );
        let network = |tile| Network::of(facts(scale, border), Box::new(blurring(scale, border)), tile);
        let tiled = network(tile).enlarge(&source, &area).unwrap();
        prop_assert_eq!(&tiled, &network(1000).enlarge(&source, &area).unwrap());
        let region = area.whole_pixels(source.size());
        let (w, h) = (region.width() as u32, region.height() as u32);
        prop_assert_eq!(tiled.size(), Size::new(w * scale, h * scale));
    }
}

#[test]
fn a_crop_is_enhanced_with_its_surroundings_in_the_picture() {
    let source = chart(60, 40);
    let network = Network::of(facts(2, 3), Box::new(blurring(2, 3)), 50);
    let whole = network.enlarge(&source, &PixelBox::whole(source.size())).unwrap();
    let part = network.enlarge(&source, &PixelBox::new(10.0, 5.0, 30.0, 25.0)).unwrap();
    assert_eq!(part, whole.cropped(&PixelBox::new(20.0, 10.0, 60.0, 50.0)));
}

#[test]
fn both_halves_of_a_zoom_are_enhanced_and_the_line_between_is_not() {
    let scene = Scene::new([chart(300, 200), chart(300, 200)]);
    let args = json!({ "bbox": [100, 50, 180, 110] });
    let seen = toolbox(enhancer()).call("zoom_in", &args, &scene).unwrap();
    let view = &seen.pictures[0];
    for (x, y, pixel) in view.picture.rgb().enumerate_pixels() {
        let on_line = (768..772).contains(&x);
        assert_eq!(pixel[2], if on_line { 0 } else { 255 }, "at {x}, {y}");
    }
    assert_eq!(seen.data["enlarged_with"], "test");
    assert!(seen.text.ends_with(", enhanced 2× with the model test."), "{}", seen.text);

    let plain = Toolbox::standard().call("zoom_in", &args, &scene).unwrap();
    assert_eq!(plain.pictures[0].panels, view.panels);
    assert_eq!(plain.data["enlarged_with"], "lanczos");
    assert!(plain.text.ends_with("enlarged by Lanczos interpolation."), "{}", plain.text);
}

#[test]
fn a_large_crop_is_left_as_it_is() {
    let scene = Scene::new([chart(1000, 900)]);
    for (bbox, how) in [([0, 0, 900, 800], Value::Null), ([0, 0, 600, 400], json!("lanczos"))] {
        let args = json!({ "bbox": bbox });
        let seen = toolbox(enhancer()).call("zoom_in", &args, &scene).unwrap();
        assert_eq!(seen.data["enlarged_with"], how);
        let plain = Toolbox::standard().call("zoom_in", &args, &scene).unwrap();
        assert_eq!(seen.pictures[0].picture, plain.pictures[0].picture);
    }
}

#[test]
fn the_most_visible_regions_are_enhanced_as_far_as_the_budget_goes() {
    let places = [(40, 40), (300, 60), (60, 300), (330, 320)];
    let scene = Scene::new([with_squares(480, 480, 24, &[]), with_squares(480, 480, 24, &places)]);
    let difference = |budget| {
        let seen = toolbox(enhancer().with_budget(budget));
        seen.call("localize_differences", &json!({}), &scene).unwrap()
    };
    let models = |seen: &ToolOutput| -> Vec<Value> {
        let regions = seen.data["regions"].as_array().unwrap();
        regions.iter().map(|region| region["enlarged_with"].clone()).collect()
    };
    let all = difference(BUDGET);
    assert_eq!(models(&all), vec![json!("test"); 4]);
    assert!(all.text.contains("Enhanced 2× with the model test"), "{}", all.text);
    assert!(!all.text.contains("interpolation"), "{}", all.text);

    let some = difference(15_000);
    let (enhanced, rest) = (json!("test"), json!("lanczos"));
    assert_eq!(models(&some)[0], enhanced);
    assert_eq!(models(&some)[3], rest);
    assert!(some.text.contains("Enlarged by Lanczos interpolation: "), "{}", some.text);

    let none = difference(0);
    let plain = Toolbox::standard().call("localize_differences", &json!({}), &scene).unwrap();
    assert_eq!(models(&none), vec![rest; 4]);
    for (of_none, of_plain) in none.pictures.iter().zip(&plain.pictures) {
        assert_eq!(of_none.picture, of_plain.picture);
    }
    assert_eq!(none.text, plain.text);
}

#[test]
fn an_enhanced_picture_keeps_its_place() {
    let mut scene = Scene::new([chart(300, 200), chart(300, 200)]);
    let tools = toolbox(enhancer());
    let seen = tools.call("enhance", &json!({ "target_image": "edited" }), &scene).unwrap();
    assert_eq!(seen.pictures[0].picture.size(), Size::new(600, 400));
    assert_eq!(seen.data["shows"], json!([{ "source": "Edited Image", "bbox": [0, 0, 300, 200] }]));
    scene.add(seen.pictures);
    let args = json!({ "target_image": "Crop 1", "bbox": [200, 100, 300, 200] });
    let zoomed = tools.call("zoom_in", &args, &scene).unwrap();
    assert_eq!(zoomed.data["requested"], json!([100, 50, 150, 100]));
    assert_eq!(zoomed.data["source"], "Edited Image");
}

#[test]
fn an_enhanced_pair_stays_a_pair() {
    let mut scene = Scene::new([chart(300, 200), chart(150, 100)]);
    let tools = toolbox(enhancer());
    let pair = tools.call("zoom_in", &json!({ "bbox": [100, 50, 130, 80] }), &scene).unwrap();
    let region = pair.data["bbox"].clone();
    scene.add(pair.pictures);
    let seen = tools.call("enhance", &json!({ "target_image": "Crop 1" }), &scene).unwrap();
    // Shown eight times as large, so that two passes are worth it.
    assert_eq!(seen.data["scale"], 4);
    assert_eq!(seen.data["shows"][0], json!({ "source": "Original Image", "bbox": region }));
    let view = &seen.pictures[0];
    assert_eq!(view.panels.len(), 2);
    assert_eq!(view.picture.size(), scene.view("Crop 1").unwrap().picture.size());
    assert_eq!(view.picture.rgb().get_pixel(view.panels[0].area.x2 as u32, 9).0, [255, 0, 0]);
}

#[test]
fn without_a_network_enhancing_says_that_it_only_enlarges() {
    let scene = Scene::new([chart(30, 20)]);
    let tools = toolbox(Enhancer::none());
    let seen = tools.call("enhance", &json!({ "target_image": "Original Image" }), &scene).unwrap();
    assert_eq!(*seen.pictures[0].picture, chart(30, 20).resized(Size::new(60, 40)));
    assert_eq!(seen.data["enlarged_with"], "lanczos");
    assert!(seen.text.contains("no enhancement model"), "{}", seen.text);
    assert_eq!(tools.settings()["zoom_in"].get("enhancer"), None);
}

#[test]
fn strange_sizes_are_enhanced_or_refused() {
    for (width, height) in [(1, 1), (1, 900), (900, 1), (2, 3)] {
        let scene = Scene::new([chart(width, height), chart(width, height)]);
        for args in [
            ("enhance", json!({ "target_image": "Original Image" })),
            ("zoom_in", json!({ "bbox": [0, 0, width, height] })),
            ("localize_differences", json!({})),
        ] {
            toolbox(enhancer()).call(args.0, &args.1, &scene).unwrap();
        }
    }
    let args = json!({ "target_image": "Original Image" });
    let scene = Scene::new([chart(12_000, 6_000)]);
    for enhancer in [enhancer(), Enhancer::none(), enhancer().with_budget(u64::MAX)] {
        let seen = toolbox(enhancer).call("enhance", &args, &scene).unwrap();
        assert_eq!(seen.pictures[0].picture.size(), Size::new(12_000, 6_000));
        assert_eq!(seen.data["enlarged_with"], Value::Null);
        assert!(seen.text.contains("large already"), "{}", seen.text);
    }
    let scene = Scene::new([chart(900, 800)]);
    let seen = toolbox(enhancer()).call("enhance", &args, &scene).unwrap();
    assert_eq!(seen.data["enlarged_with"], "lanczos");
    assert!(seen.text.contains("too large for the enhancement model"), "{}", seen.text);
    for (args, part) in [
        (json!({ "target_image": "" }), "Original Image"),
        (json!({ "target_image": "Crop 7" }), "Original Image"),
    ] {
        let text = refusal(toolbox(enhancer()).call("enhance", &args, &scene));
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_network_that_fails_stops_the_judgement() {
    type Answer = fn(Planes) -> Result<Planes, String>;
    let answers: [(Answer, &str); 4] = [
        (|_| Err("out of memory".into()), "out of memory"),
        (Ok, "not"),
        (|planes| blurring(2, 3)(planes).map(|p| Planes { values: Vec::new(), ..p }), "0 values"),
        (
            |planes| {
                blurring(2, 3)(planes).map(|mut p| {
                    p.values[7] = f32::NAN;
                    p
                })
            },
            "no numbers",
        ),
    ];
    let scene = Scene::new([chart(60, 40)]);
    for (answer, part) in answers {
        let network = Network::of(facts(2, 3), Box::new(answer), 50);
        let tools = toolbox(Enhancer { network: Some(network), budget: BUDGET });
        match tools.call("zoom_in", &json!({ "bbox": [5, 5, 20, 20] }), &scene) {
            Err(ToolError::Broken { tool: "zoom_in", reason }) => {
                assert!(reason.contains("model test") && reason.contains(part), "{reason}");
            }
            other => panic!("expected a broken tool, got {other:?}"),
        }
    }
}

#[test]
fn the_settings_tell_which_model() {
    let recorded =
        json!({ "model": "test", "sha256": "abc", "scale": 2, "border": 3, "budget": BUDGET });
    for (name, settings) in toolbox(enhancer()).settings() {
        assert_eq!(settings["enhancer"], recorded, "{name}");
    }
}

#[test]
fn scale_and_border_are_told_by_one_answer() {
    let told = super::network::scale_and_border;
    let given = Size::new(32, 24);
    assert_eq!(told(given, Size::new(36, 20)), Some((2, 7)));
    assert_eq!(told(given, Size::new(128, 96)), Some((4, 0)));
    let no_enlargement = [(32, 24), (16, 12), (24, 32), (0, 0), (33, 17), (u32::MAX, 0)];
    for (width, height) in no_enlargement {
        assert_eq!(told(given, Size::new(width, height)), None, "{width}×{height}");
    }
}

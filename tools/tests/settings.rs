//! Settings come from files that anybody may have written: what is let through breaks nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use deeplook_tools::{Picture, Scene, ToolSettings, Toolbox};
use image::{Rgb, RgbImage};
use serde_json::{Value, json};

/// The places of all numbers in a value.
fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                numbers(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Number(_) => found.push(at.to_owned()),
        _ => {}
    }
}

/// A pair that moved a little and has an edit in it, so that every part of the method has work.
fn pair() -> Scene {
    let picture = |shift: u32, edit: bool| {
        let pixels = RgbImage::from_fn(120, 90, |x, y| {
            let at = |k: u32| ((x + shift) * k + y * 7) % 251;
            let inside = edit && (40..70).contains(&x) && (30..60).contains(&y);
            if inside { Rgb([250, 20, 30]) } else { Rgb([at(3) as u8, at(5) as u8, at(2) as u8]) }
        });
        Picture::from_rgb(pixels).unwrap()
    };
    Scene::new([picture(0, false), picture(2, true)])
}

#[test]
fn no_number_in_the_settings_breaks_a_tool() {
    let scene = pair();
    let usual = serde_json::to_value(ToolSettings::usual()).unwrap();
    let mut places = Vec::new();
    numbers(&usual, "", &mut places);
    assert!(places.len() > 35, "{places:?}");
    let values = [
        json!(-1),
        json!(-1e30),
        json!(0),
        json!(1e-30),
        json!(1),
        json!(20),
        json!(100),
        json!(1000),
        json!(2048),
        json!(4096),
        json!(u32::MAX),
        json!(u64::MAX),
        json!(0.001),
        json!(0.1),
        json!(1e6),
        json!(1e38),
        json!(1e300),
    ];
    let (mut refused, mut used) = (0, 0);
    for place in &places {
        for value in &values {
            let mut settings = usual.clone();
            *settings.pointer_mut(place).unwrap() = value.clone();
            let read = serde_json::from_value::<ToolSettings>(settings);
            let Some(settings) = read.ok().filter(|settings| settings.check().is_ok()) else {
                refused += 1;
                continue;
            };
            used += 1;
            let tools = Toolbox::enlarging_with(Default::default(), &settings);
            for (tool, args) in [
                ("localize_differences", json!({})),
                ("zoom_in", json!({ "bbox": [30, 30, 60, 50] })),
            ] {
                let seen = tools.call(tool, &args, &scene);
                let seen = seen.unwrap_or_else(|error| panic!("{place} = {value}: {error}"));
                let text = format!("{} {}", seen.text, seen.data);
                assert!(!text.contains("NaN"), "{place} = {value}: {text}");
            }
        }
    }
    assert!(refused > 200 && used > 100, "{refused} refused, {used} used");
}

#[test]
fn the_usual_settings_are_possible_and_the_problem_is_named() {
    let usual = ToolSettings::usual();
    usual.check().unwrap();
    let settings = Toolbox::standard().settings();
    assert_eq!(ToolSettings::recorded(&settings).1, None);
    let mut settings = settings;
    settings.get_mut("localize_differences").unwrap()["settings"]["noise_slope"] = json!(-1);
    let (recorded, problem) = ToolSettings::recorded(&settings);
    let problem = problem.unwrap();
    assert!(problem.contains("noise_slope is -1"), "{problem}");
    recorded.check().unwrap();
}

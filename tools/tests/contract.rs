//! What the model reads about the tools, and how they answer what cannot be.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic")]

use deeplook_tools::{BoxConvention, Picture, Scene, Size, ToolError, ToolOutput, Toolbox};
use image::{Rgb, RgbImage};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Every pixel is different, so that a crop shows where it was cut.
fn chart(width: u32, height: u32) -> Picture {
    let pixel = |x: u32, y: u32| Rgb([(x * 255 / width) as u8, (y * 255 / height) as u8, 90]);
    Picture::from_rgb(RgbImage::from_fn(width, height, pixel)).unwrap()
}

fn use_tool(scene: &Scene, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
    Toolbox::standard().call(name, &args, scene)
}

#[track_caller]
fn refusal(result: Result<ToolOutput, ToolError>) -> String {
    match result {
        Err(ToolError::Refused(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn what_the_model_reads() {
    insta::assert_json_snapshot!(Toolbox::standard().specs(BoxConvention::PIXELS));
}

#[test]
fn schemas_hold_only_what_every_server_understands() {
    fn check(schema: &Value) {
        let known = ["type", "properties", "required", "items", "enum", "description"];
        for (key, value) in schema.as_object().unwrap() {
            assert!(known.contains(&key.as_str()), "{key} in {schema}");
            assert!(key != "type" || value.is_string(), "{schema}");
        }
        assert!(schema.get("type").is_some(), "{schema}");
        schema["properties"].as_object().into_iter().flat_map(|all| all.values()).for_each(check);
        schema.get("items").into_iter().for_each(check);
    }
    for spec in Toolbox::standard().specs(BoxConvention::PIXELS) {
        check(&spec.parameters);
    }
}

#[test]
fn the_description_states_the_convention() {
    for convention in BoxConvention::ALL {
        let specs = Toolbox::standard().specs(convention);
        let zoom = specs.iter().find(|spec| spec.name == "zoom_in").unwrap();
        assert!(zoom.description.contains(&convention.form()), "{}", zoom.description);
    }
}

#[test]
fn refusals_say_what_exists() {
    let scene = Scene::new([chart(640, 480), chart(640, 480)]);
    let messages = [
        use_tool(&scene, "sharpen", json!({})),
        use_tool(&scene, "zoom_in", json!({ "target_image": "Third Image", "bbox": [0, 0, 9, 9] })),
        use_tool(&scene, "zoom_in", json!({ "bbox": [0, 0, 9] })),
        use_tool(&scene, "zoom_in", json!({ "box": [0, 0, 9, 9] })),
        use_tool(&scene, "zoom_in", json!("Original Image")),
        use_tool(&scene, "zoom_in", json!({ "bbox": [700, 0, 900, 9] })),
        use_tool(&scene, "zoom_in", json!({ "bbox": [90, 90, 10, 10] })),
        use_tool(&scene, "zoom_in", json!({ "bbox": [10, 10, 10, 90] })),
        use_tool(&scene, "localize_differences", json!({ "comparison_image_2": "Crop 1" })),
    ];
    insta::assert_snapshot!(messages.map(refusal).join("\n"));
}

#[test]
fn a_zoom_has_context_and_a_readable_size() {
    let scene = Scene::new([chart(1000, 800)]);
    let seen = use_tool(&scene, "zoom_in", json!({ "bbox": [100, 200, 200, 260] })).unwrap();
    assert_eq!(seen.data["bbox"], json!([90, 192, 210, 268]));
    assert_eq!(seen.data["requested"], json!([100, 200, 200, 260]));
    assert_eq!(seen.pictures[0].picture.size(), Size::new(768, 486));

    // A speck is enlarged until it can be seen; the whole picture is not enlarged at all.
    let speck = use_tool(&scene, "zoom_in", json!({ "bbox": [500, 500, 504, 504] })).unwrap();
    assert_eq!(speck.pictures[0].picture.size(), Size::new(750, 750));
    let whole = use_tool(&scene, "zoom_in", json!({ "bbox": [0, 0, 1000, 800] })).unwrap();
    assert_eq!(*whole.pictures[0].picture, chart(1000, 800));
}

#[test]
fn a_crop_of_a_crop_keeps_its_place() {
    let mut scene = Scene::new([chart(1000, 800)]);
    let first = use_tool(&scene, "zoom_in", json!({ "bbox": [100, 200, 300, 400] })).unwrap();
    assert_eq!(first.data["bbox"], json!([80, 180, 320, 420]));
    scene.add(first.pictures);
    // The lower right quarter of the crop, which is 768 pixels wide for 240 of the source.
    let args = json!({ "target_image": "Crop 1", "bbox": [384, 384, 768, 768] });
    let second = use_tool(&scene, "zoom_in", args).unwrap();
    assert_eq!(second.data["requested"], json!([200, 300, 320, 420]));
    assert_eq!(second.data["source"], "Original Image");
    assert_eq!(second.pictures[0].name, "Crop 2");
}

#[test]
fn both_pictures_stand_side_by_side_and_each_half_can_be_zoomed() {
    let mut scene = Scene::new([chart(600, 400), chart(300, 200)]);
    let pair = use_tool(
        &scene,
        "zoom_in",
        json!({ "target_image": "both", "bbox": [200, 100, 300, 200] }),
    );
    let pair = pair.unwrap();
    let view = &pair.pictures[0];
    let size = view.picture.size();
    assert_eq!(size, Size::new(768 * 2 + 4, 768));
    assert_eq!(view.picture.rgb().get_pixel(768 + 2, 300).0, [255, 0, 0]);
    scene.add(pair.pictures);

    for (x, source) in [(100, "Original Image"), (900, "Edited Image")] {
        let args = json!({ "target_image": "Crop 1", "bbox": [x, 100, x + 300, 400] });
        let seen = use_tool(&scene, "zoom_in", args).unwrap();
        assert_eq!(seen.data["source"], source);
    }
}

#[test]
fn a_box_in_pixels_is_in_pixels_of_the_picture_as_it_was_sent() {
    let mut scene = Scene::new([chart(2000, 1000)]);
    scene.set_shown_size("Original Image", Size::new(1000, 500));
    let seen = use_tool(&scene, "zoom_in", json!({ "bbox": [100, 100, 300, 300] })).unwrap();
    assert_eq!(seen.data["requested"], json!([200, 200, 600, 600]));
    assert!(seen.text.contains("[80, 80, 320, 320]"), "{}", seen.text);
}

#[test]
fn text_and_arguments_follow_the_convention_and_data_does_not() {
    let gemini = "thousandths-yx".parse().unwrap();
    let scene = Scene::new([chart(2000, 1000)]).with_boxes(gemini);
    let seen = use_tool(&scene, "zoom_in", json!({ "bbox": [500, 100, 600, 200] })).unwrap();
    assert_eq!(seen.data["requested"], json!([200, 500, 400, 600]));
    assert!(seen.text.contains("[490, 90, 610, 210]"), "{}", seen.text);
}

#[test]
fn picture_names_are_forgiving() {
    let scene = Scene::new([chart(64, 64)]);
    for name in ["original image", " Original Image ", "\"Original Image\"", "Original"] {
        assert!(scene.view(name).is_ok(), "{name}");
    }
    let endless = "x".repeat(10_000);
    let text = refusal(use_tool(
        &scene,
        "zoom_in",
        json!({ "target_image": endless, "bbox": [0, 0, 9, 9] }),
    ));
    assert!(text.len() < 300, "untrusted text is cut: {} characters", text.len());
}

proptest! {
    #[test]
    fn any_box_is_cut_or_refused(
        width in 1u32..200, height in 1u32..200,
        values in prop::array::uniform4(prop_oneof![-50.0..250.0f64, Just(f64::MAX), Just(0.0)]),
    ) {
        let scene = Scene::new([chart(width, height)]);
        match use_tool(&scene, "zoom_in", json!({ "bbox": values })) {
            Ok(seen) => {
                let region: [f64; 4] = serde_json::from_value(seen.data["bbox"].clone()).unwrap();
                prop_assert!(region[0] >= 0.0 && region[1] >= 0.0);
                prop_assert!(region[2] <= f64::from(width) && region[3] <= f64::from(height));
            }
            Err(error) => prop_assert!(matches!(error, ToolError::Refused(_)), "{error:?}"),
        }
    }
}

//! What a judge sees through `zoom_in`, `sweep` and `measure_colour`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic")]

use deeplook_tools::scene::Room;
use deeplook_tools::{Picture, PixelBox, Scene, Size, ToolError, ToolOutput, Toolbox};
use image::{Rgb, RgbImage};
use serde_json::{Value, json};

/// Smooth hills of grey with a different slope everywhere, so that pictures can be laid onto each other.
fn hills(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        let (x, y) = (f64::from(x), f64::from(y));
        let wave = (x / 17.0 + (y / 41.0).sin() * 2.0).sin() + (y / 23.0 + (x / 67.0).cos()).cos();
        Rgb([(120.0 + 40.0 * wave) as u8; 3])
    })
}

fn with_square(mut pixels: RgbImage, at: (u32, u32), side: u32, colour: [u8; 3]) -> RgbImage {
    for y in at.1..at.1 + side {
        for x in at.0..at.0 + side {
            pixels.put_pixel(x, y, Rgb(colour));
        }
    }
    pixels
}

fn picture(pixels: RgbImage) -> Picture {
    Picture::from_rgb(pixels).unwrap()
}

fn look(scene: &Scene, name: &str, args: Value) -> ToolOutput {
    Toolbox::standard().call(name, &args, scene).unwrap()
}

#[track_caller]
fn refusal(scene: &Scene, name: &str, args: Value) -> String {
    match Toolbox::standard().call(name, &args, scene) {
        Err(ToolError::Refused(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_flat_box_stays_flat_and_padding_can_be_left_out() {
    let scene = Scene::new([picture(hills(1000, 800))]);
    let seen = look(&scene, "zoom_in", json!({ "bbox": [100, 200, 500, 240] }));
    assert_eq!(seen.data["bbox"], json!([60, 192, 540, 248]));
    let bare = look(&scene, "zoom_in", json!({ "bbox": [100, 200, 500, 240], "padding": 0 }));
    assert_eq!(bare.data["bbox"], json!([100, 200, 500, 240]));
    assert!(!bare.text.contains("context"), "{}", bare.text);
    // The short side of what was asked for has 150 pixels.
    assert_eq!(bare.pictures[0].picture.size(), Size::new(1500, 150));
    let text = refusal(&scene, "zoom_in", json!({ "bbox": [0, 0, 9, 9], "padding": -1 }));
    assert!(text.contains("0 (none)"), "{text}");
}

#[test]
fn enlargement_is_counted_as_the_model_sees_it() {
    let mut scene = Scene::new([picture(hills(3200, 2000))]);
    scene.set_shown_size("Original Image", Size::new(1600, 1000));
    let seen = look(&scene, "zoom_in", json!({ "bbox": [100, 100, 356, 260], "padding": 0 }));
    let size = seen.pictures[0].picture.size();
    assert_eq!(size, Size::new(768, 480));
    assert!(seen.text.contains("3.0× as large as in Original Image"), "{}", seen.text);
    assert!(seen.text.contains("(768×480 pixels)"), "{}", seen.text);
    assert_eq!(seen.data["scale"], 3.0);
    // All pixels that the file has, and not one more.
    let all = look(&scene, "zoom_in", json!({ "bbox": [0, 0, 800, 800], "padding": 0 }));
    assert!(
        all.text.contains("2.0× as large") && all.text.contains("all the detail"),
        "{}",
        all.text
    );
    let whole = look(&scene, "zoom_in", json!({ "bbox": [0, 0, 1600, 1000] }));
    assert!(whole.text.contains("1.3× as large"), "{}", whole.text);
    assert!(whole.text.contains("fewer pixels than its file has"), "{}", whole.text);
    for text in [seen.text, all.text, whole.text] {
        assert!(!text.contains("1.0×"), "{text}");
    }
}

#[test]
fn no_picture_is_larger_than_what_the_model_gets() {
    let room = Room { side: 640, pictures: None };
    let scene = Scene::new([picture(hills(1500, 900)), picture(hills(1500, 900))]).with_room(room);
    for (name, args) in [
        ("zoom_in", json!({ "bbox": [0, 0, 1500, 900] })),
        ("zoom_in", json!({ "bbox": [0, 0, 1400, 30] })),
        ("zoom_in", json!({ "target_image": "edited", "bbox": [5, 5, 9, 9] })),
        ("sweep", json!({})),
    ] {
        for view in look(&scene, name, args.clone()).pictures {
            let size = view.picture.size();
            assert!(size.long_side() <= 640, "{name} {args}: {size}");
        }
    }
}

#[test]
fn the_finer_side_is_brought_down_to_the_other() {
    let fine = picture(hills(800, 600));
    let coarse = fine.resized(Size::new(400, 300));
    let scene = Scene::new([fine, coarse]);
    let seen = look(&scene, "zoom_in", json!({ "bbox": [200, 150, 400, 300] }));
    assert!(seen.text.contains("The Original Image has more pixels"), "{}", seen.text);
    assert_eq!(seen.data["reduced"], "Original Image");
    let view = &seen.pictures[0];
    let half = |at: usize| view.picture.cropped(&view.panels[at].area);
    // Both sides look the same now, to a few grey levels.
    let (left, right) = (half(0), half(1));
    let pairs = left.rgb().as_raw().iter().zip(right.rgb().as_raw());
    let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(worst <= 6, "{worst}");
}

#[test]
fn where_a_frame_ends_it_is_grey_and_nothing_is_stretched() {
    let whole = with_square(hills(900, 600), (40, 300), 30, [200, 30, 30]);
    let cut = picture(whole.clone()).cropped(&PixelBox::new(90.0, 0.0, 900.0, 600.0));
    let scene = Scene::new([picture(whole), cut]);
    let seen = look(&scene, "zoom_in", json!({ "bbox": [20, 250, 220, 400], "padding": 0 }));
    assert!(seen.text.contains("plain grey"), "{}", seen.text);
    let view = &seen.pictures[0];
    let (left, right) = (view.panels[0].area, view.panels[1].area);
    let at = |area: PixelBox, x: f64, y: f64| {
        let (w, h) = (area.width(), area.height());
        view.picture.rgb().get_pixel((area.x1 + x * w) as u32, (area.y1 + y * h) as u32).0
    };
    // The red square is left of the edited picture's frame.
    assert_eq!(at(left, 0.2, 0.43)[0], 200);
    assert_eq!(at(right, 0.2, 0.43), [128; 3]);
    for (x, y) in [(0.5, 0.2), (0.7, 0.8), (0.95, 0.5)] {
        let (a, b) = (at(left, x, y)[0], at(right, x, y)[0]);
        assert!(a.abs_diff(b) <= 12, "at {x}, {y}: {a} and {b}");
    }
    // A box on the grey part is no box on the picture.
    let mut scene = scene;
    let grey = [right.x1 + 5.0, 50.0, right.x1 + 60.0, 90.0];
    scene.add(seen.pictures);
    let text = refusal(&scene, "zoom_in", json!({ "target_image": "Crop 1", "bbox": grey }));
    assert!(text.contains("shows nothing"), "{text}");
    let text = refusal(&scene, "zoom_in", json!({ "bbox": [0, 0, 30, 30], "padding": 0 }));
    assert!(text.contains("not in the frame"), "{text}");
}

#[test]
fn a_line_of_text_is_shown_above_itself() {
    let scene = Scene::new([picture(hills(2000, 800)), picture(hills(2000, 800))]);
    let seen = look(&scene, "zoom_in", json!({ "bbox": [100, 100, 1500, 140] }));
    assert!(
        seen.text.contains("on top and the same place in the Edited Image below it"),
        "{}",
        seen.text
    );
    let [first, second] = &seen.pictures[0].panels[..] else { panic!("two panels") };
    assert!(second.area.y1 >= first.area.y2 && second.area.x1 == first.area.x1);
    let mut scene = scene;
    scene.add(seen.pictures.clone());
    let below =
        [second.area.x1 + 10.0, second.area.y1 + 5.0, second.area.x1 + 90.0, second.area.y2 - 5.0];
    let seen = look(&scene, "zoom_in", json!({ "target_image": "Crop 1", "bbox": below }));
    assert_eq!(seen.data["source"], "Edited Image");
}

#[test]
fn a_sweep_shows_everything_and_the_tile_that_changed_first() {
    let edited = with_square(hills(1200, 900), (1000, 700), 12, [250, 240, 20]);
    let scene = Scene::new([picture(hills(1200, 900)), picture(edited)]);
    let seen = look(&scene, "sweep", json!({ "rows": 3, "columns": 4 }));
    let tiles = seen.data["tiles"].as_array().unwrap();
    assert_eq!((tiles.len(), seen.pictures.len()), (12, 12));
    assert_eq!((tiles[0]["row"].as_u64(), tiles[0]["column"].as_u64()), (Some(3), Some(4)));
    assert!(tiles[0]["difference"].as_f64() > Some(50.0), "{}", tiles[0]);
    assert_eq!(tiles[1]["difference"], 0.0);
    // Every pixel is in a tile.
    let boxes = tiles.iter().map(|tile| serde_json::from_value(tile["bbox"].clone()).unwrap());
    let boxes: Vec<PixelBox> = boxes.collect();
    for (x, y) in [(0.5, 0.5), (1199.5, 899.5), (300.0, 300.0), (600.5, 299.5), (899.5, 600.5)] {
        assert!(boxes.iter().any(|b| b.x1 <= x && x <= b.x2 && b.y1 <= y && y <= b.y2), "{x}, {y}");
    }
    let few = scene.with_room(Room { side: 2048, pictures: Some(6) });
    assert!(look(&few, "sweep", json!({})).pictures.len() <= 4);
    let text = refusal(&few, "sweep", json!({ "rows": 3, "columns": 3 }));
    assert!(text.contains("more than the 4"), "{text}");
    let text = refusal(&few, "sweep", json!({ "rows": 9 }));
    assert!(text.contains("1 to 8"), "{text}");
}

#[test]
fn a_large_pair_is_swept_at_its_own_detail() {
    let scene = Scene::new([picture(hills(3840, 2160)), picture(hills(3840, 2160))]);
    let seen = look(&scene, "sweep", json!({}));
    assert!((6..=12).contains(&seen.pictures.len()), "{}", seen.pictures.len());
    for view in &seen.pictures {
        let panel = &view.panels[0];
        assert!(panel.area.width() >= 0.9 * panel.region.width(), "{panel:?}");
    }
}

#[test]
fn a_recoloured_thing_is_measured_in_both_pictures() {
    let source = with_square(hills(400, 300), (100, 100), 60, [200, 30, 40]);
    let edited = with_square(hills(400, 300), (100, 100), 60, [40, 150, 60]);
    let edited = picture(edited).resized(Size::new(800, 600));
    let scene = Scene::new([picture(source), edited]);
    let seen = look(&scene, "measure_colour", json!({ "bbox": [102, 102, 158, 158] }));
    let colours = |at: usize| seen.data["pictures"][at]["colours"][0].clone();
    assert_eq!(
        (colours(0)["name"].as_str(), colours(1)["name"].as_str()),
        (Some("red"), Some("green"))
    );
    assert!(colours(1)["percent"].as_f64() > Some(95.0), "{}", colours(1));
    // scikit-image: deltaE_ciede2000(rgb2lab([200, 30, 40]), rgb2lab([40, 150, 60])) = 70.2512
    let delta_e = seen.data["changes"][0]["delta_e"].as_f64().unwrap();
    assert!((delta_e - 70.2512).abs() < 1.0, "{delta_e}");
    assert!(seen.text.contains("is mostly green"), "{}", seen.text);
    // The same from the other side.
    let args = json!({ "target_image": "Edited Image", "bbox": [204, 204, 316, 316] });
    let back = look(&scene, "measure_colour", args);
    assert_eq!(back.data["pictures"][0]["colours"][0]["name"], "red");
    let alone = Scene::new([scene.view("Original Image").unwrap().picture.as_ref().clone()]);
    let seen = look(&alone, "measure_colour", json!({ "bbox": [102, 102, 158, 158] }));
    assert_eq!(seen.data["pictures"][0]["colours"][0]["rgb"], json!([200, 30, 40]));
}

#[test]
fn a_pair_of_the_same_picture_has_no_change_of_colour() {
    let scene = Scene::new([picture(hills(300, 200)), picture(hills(300, 200))]);
    let seen = look(&scene, "measure_colour", json!({ "bbox": [10, 10, 200, 150] }));
    for change in seen.data["changes"].as_array().unwrap() {
        assert_eq!(
            (&change["delta_e"], &change["percent"]),
            (&json!(0.0), &json!(100.0)),
            "{change}"
        );
    }
}

#[test]
fn pictures_of_one_pixel_and_of_extreme_shapes_are_looked_at_or_refused() {
    for (width, height) in [(1, 1), (1, 900), (3000, 1), (2, 2), (5, 4000)] {
        let of = |value| picture(RgbImage::from_pixel(width, height, Rgb([value; 3])));
        let scene = Scene::new([of(90), of(120)]);
        for (name, args) in [
            ("zoom_in", json!({ "bbox": [0, 0, width, height] })),
            ("zoom_in", json!({ "bbox": [0, 0, width, height], "padding": 0 })),
            ("sweep", json!({})),
            ("sweep", json!({ "rows": 8, "columns": 3 })),
            ("measure_colour", json!({ "bbox": [0, 0, width, height] })),
        ] {
            match Toolbox::standard().call(name, &args, &scene) {
                Ok(_) | Err(ToolError::Refused(_)) => {}
                Err(broken) => panic!("{name} {args} on {width}×{height}: {broken}"),
            }
        }
    }
}

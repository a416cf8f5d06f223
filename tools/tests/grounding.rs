//! Detectors on the real runtime. `tests/peers/grounding/check` fetches it and runs these.

#![expect(clippy::unwrap_used, reason = "helpers of tests may stop them too")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use deeplook_tools::grounding::{
    DetectObject, DetectionSettings, Detector, DetectorError, DetectorFiles, Raw, Thresholds,
};
use deeplook_tools::onnx::{Input, Runtime};
use deeplook_tools::{Picture, PixelBox, Scene, Toolbox};
use serde_json::{Value, json};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn runtime() -> Runtime {
    let library = std::env::var("ORT_DYLIB_PATH").unwrap();
    Runtime::load(Path::new(&library)).unwrap()
}

fn load(model: &Path) -> Result<Detector, DetectorError> {
    Detector::load(runtime(), &DetectorFiles::beside(model)?, json!({ "name": "a test" }))
}

fn demo_detector() -> Detector {
    load(&folder("models/demo-detector/model.onnx")).unwrap()
}

fn golden() -> Value {
    let index = std::fs::read(folder("tests/golden/grounding/index.json")).unwrap();
    serde_json::from_slice(&index).unwrap()
}

/// The numbers of a golden file.
fn numbers(of: &Value) -> Vec<f32> {
    let path = folder("tests/golden/grounding").join(of["file"].as_str().unwrap());
    let bytes = std::fs::read(path).unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

fn largest_difference(a: impl Iterator<Item = f32>, b: &[f32]) -> f32 {
    let a: Vec<f32> = a.collect();
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn logits_and_boxes_equal_those_of_pytorch_and_onnx_runtime() {
    let detector = demo_detector();
    for case in golden()["cases"].as_array().unwrap() {
        let path = folder("tests/golden/grounding").join(case["picture"].as_str().unwrap());
        let picture = Picture::load(&path).unwrap();
        let caption = detector.caption(case["prompt"].as_str().unwrap()).unwrap();
        let whole = PixelBox::whole(picture.size());
        let inputs = detector.inputs(&picture, &whole, &caption).unwrap();
        let Raw { logits, boxes } = detector.run(&inputs).unwrap();
        let columns = *logits.shape.last().unwrap();
        let tokens = caption.ids().len();
        for reference in ["torch", "onnx"] {
            let text = logits.data.chunks_exact(columns).flat_map(|row| row[..tokens].to_vec());
            let off = largest_difference(text, &numbers(&case[reference]["logits"]));
            assert!(off < 1e-4, "logits of {reference} are off by {off}: {}", case["prompt"]);
            let expected = numbers(&case[reference]["boxes"]);
            let off = largest_difference(boxes.data.iter().copied(), &expected);
            assert!(off < 1e-4, "boxes of {reference} are off by {off}: {}", case["prompt"]);
        }
    }
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn boxes_scores_and_phrases_equal_the_reference() {
    let detector = demo_detector();
    let golden = golden();
    let threshold = |name: &str| golden[name].as_f64().unwrap() as f32;
    let thresholds =
        Thresholds { boxes: threshold("threshold"), text: threshold("text_threshold") };
    let mut found = 0;
    for case in golden["cases"].as_array().unwrap() {
        let path = folder("tests/golden/grounding").join(case["picture"].as_str().unwrap());
        let picture = Picture::load(&path).unwrap();
        let caption = detector.caption(case["prompt"].as_str().unwrap()).unwrap();
        let whole = PixelBox::whole(picture.size());
        let ours = detector.detect(&picture, &whole, &caption, thresholds).unwrap();
        let theirs = &case["found"];
        let boxes: Vec<[f64; 4]> = serde_json::from_value(theirs["boxes"].clone()).unwrap();
        assert_eq!(ours.len(), boxes.len(), "{}", case["prompt"]);
        for (at, (ours, theirs_box)) in ours.iter().zip(boxes).enumerate() {
            // Ours are clipped to the picture.
            let [x1, y1, x2, y2] = theirs_box;
            let clipped = PixelBox::new(x1, y1, x2, y2).clipped(picture.size());
            for (a, b) in ours.bbox.edges().into_iter().zip(clipped.edges()) {
                assert!((a - b).abs() < 0.05, "{} is not {clipped}", ours.bbox);
            }
            let score = theirs["scores"][at].as_f64().unwrap();
            assert!((f64::from(ours.score) - score).abs() < 1e-4, "{} {score}", ours.score);
            assert_eq!(ours.phrase, theirs["phrases"][at].as_str().unwrap());
        }
        found += ours.len();
    }
    assert!(found > 0, "the golden files show nothing");
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn the_original_style_is_told_about_the_text() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("model.onnx");
    let original = folder("tests/golden/grounding/original-style/model.onnx");
    std::fs::copy(original, &model).unwrap();
    let tokenizer = folder("models/demo-detector/tokenizer.json");
    std::fs::copy(tokenizer, place.path().join("tokenizer.json")).unwrap();
    let detector = load(&model).unwrap();
    let grey = image::RgbImage::from_pixel(64, 48, image::Rgb([128; 3]));
    let picture = Picture::from_rgb(grey).unwrap();
    let caption = detector.caption("red circle. dog").unwrap();
    let whole = PixelBox::whole(picture.size());
    let inputs = detector.inputs(&picture, &whole, &caption).unwrap();
    let shape = inputs.iter().find_map(|(name, input)| match input {
        Input::F32(tensor) if *name == "img" => Some(tensor.shape.clone()),
        _ => None,
    });
    assert_eq!(shape.unwrap(), [1, 3, 800, 1066], "the published sizes");
    let Raw { logits, boxes } = detector.run(&inputs).unwrap();
    let rows: Vec<Vec<f32>> =
        logits.data.chunks_exact(256).map(|row| row[..caption.ids().len()].to_vec()).collect();
    // [CLS] red circle . d ##o ##g . [SEP]
    assert_eq!(rows[0], [0., 0., 1., 2., 0., 1., 2., 3., 0.]);
    assert_eq!(rows[1], [0.; 9]);
    assert_eq!(rows[2], [1.; 9]);
    assert_eq!(rows[3], [1., 0., 0., 0., 0., 0., 0., 0., 0.]);
    assert_eq!(rows[4], [0., 1., 1., 1., 0., 0., 0., 0., 0.]);
    assert_eq!(rows[7], [0., 0., 0., 0., 1., 1., 1., 1., 0.]);
    // Grey, seen through ImageNet's mean and deviation: the mean of 0.0741, 0.2052 and 0.4265.
    assert!((boxes.data[0] - 0.2352).abs() < 1e-3, "{}", boxes.data[0]);
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn files_that_are_no_detector_are_refused_in_words() {
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("model.onnx");
    let refused = || load(&model).unwrap_err().to_string();
    let good = std::fs::read(folder("models/demo-detector/model.onnx")).unwrap();
    std::fs::write(&model, &good).unwrap();
    assert!(refused().contains("tokenizer.json"), "{}", refused());
    let tokenizer = folder("models/demo-detector/tokenizer.json");
    std::fs::copy(tokenizer, place.path().join("tokenizer.json")).unwrap();
    std::fs::write(&model, &good[..good.len() / 2]).unwrap();
    assert!(refused().contains("cannot read the model"), "{}", refused());
    std::fs::write(&model, b"").unwrap();
    assert!(refused().contains("cannot read the model"), "{}", refused());
    std::fs::remove_file(&model).unwrap();
    assert!(refused().contains("cannot read the model"), "{}", refused());
    std::fs::write(&model, &good).unwrap();
    std::fs::write(place.path().join("preprocessor_config.json"), "{\"size\": {}}").unwrap();
    assert!(refused().contains("preprocessor_config.json"), "{}", refused());
    std::fs::write(place.path().join("tokenizer.json"), "{}").unwrap();
    std::fs::remove_file(place.path().join("preprocessor_config.json")).unwrap();
    assert!(refused().contains("tokenizer"), "{}", refused());
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn pictures_of_any_size_get_an_answer_or_a_refusal() {
    let settings = DetectionSettings { box_threshold: 0.01, ..DetectionSettings::default() };
    let tool = DetectObject::with_settings(Arc::new(demo_detector()), settings);
    let tools = Toolbox::default().with(tool);
    let args = json!({ "detect_object_name": "red circle" });
    for (width, height) in [(1, 1), (30, 30), (3, 900), (12_000, 60), (6000, 4000)] {
        let picture = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([(x % 251) as u8, (y % 241) as u8, ((x + y) % 256) as u8])
        });
        let scene = Scene::new([Picture::from_rgb(picture).unwrap()]);
        match tools.call("detect_object", &args, &scene) {
            Ok(seen) => {
                for found in seen.data["boxes"].as_array().unwrap() {
                    let [x1, y1, x2, y2]: [f64; 4] =
                        serde_json::from_value(found["bbox"].clone()).unwrap();
                    assert!(x1 >= 0.0 && y1 >= 0.0 && x1 <= x2 && y1 <= y2);
                    assert!(x2 <= f64::from(width) && y2 <= f64::from(height));
                }
            }
            Err(error) => assert!(error.to_string().contains("too thin"), "{error}"),
        }
    }
}

#[test]
#[ignore = "needs ONNX Runtime: tests/peers/grounding/check"]
fn detections_at_the_same_time_run_side_by_side_and_find_the_same() {
    let detector = Arc::new(demo_detector());
    let path = folder("tests/golden/grounding/2.png");
    let scene = Scene::new([Picture::load(&path).unwrap()]);
    let tools = Toolbox::default().with(DetectObject::new(Arc::clone(&detector)));
    let names = ["blue square", "red circle", "wooden mug", "green star"];
    let look = |name: &str| {
        let args = json!({ "detect_object_name": name });
        tools.call("detect_object", &args, &scene).unwrap().data.to_string()
    };
    let alone = names.map(look);
    assert_eq!(detector.sessions(), 1, "one after another needs one session");
    // Which thread runs when is the system's choice: some rounds, so that two meet.
    for _ in 0..20 {
        let start = Barrier::new(names.len());
        std::thread::scope(|scope| {
            let looks = names.map(|name| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    look(name)
                })
            });
            for (seen, alone) in looks.into_iter().zip(&alone) {
                assert_eq!(&seen.join().unwrap(), alone);
            }
        });
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    assert_eq!(detector.sessions() > 1, cores > 1, "{} sessions", detector.sessions());
}

//! How long `detect_object` takes, and how much of it is the model itself. For `benches/grounding`.
//!
//! `grounding_timing LIBRARY MODEL PICTURE [ROUNDS]` prints one JSON object; times are the best of the
//! rounds, in milliseconds.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use deeplook_tools::grounding::{DetectObject, Detector, DetectorFiles};
use deeplook_tools::onnx::Runtime;
use deeplook_tools::{Picture, PixelBox, Scene, Toolbox};
use serde_json::json;

fn main() -> Done {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [library, model, picture, rounds @ ..] = args.as_slice() else {
        return Err("usage: grounding_timing LIBRARY MODEL PICTURE [ROUNDS]".into());
    };
    let rounds = rounds.first().map_or(Ok(5), |n| n.parse::<usize>())?;
    let runtime = Runtime::load(Path::new(library))?;
    let files = DetectorFiles::beside(Path::new(model))?;
    let detector = Arc::new(Detector::load(runtime, &files, json!({}))?);
    let name = "a small red circle";
    let caption = detector.caption(name)?;
    let path = Path::new(picture);
    let loaded = Picture::load(path)?;
    let whole = PixelBox::whole(loaded.size());

    let inputs = detector.inputs(&loaded, &whole, &caption)?;
    let tools = Toolbox::default().with(DetectObject::new(Arc::clone(&detector)));
    let args = json!({ "detect_object_name": name, "tiled": false });

    let mut times = BTreeMap::new();
    // In turn, so that other work on the machine hits all alike.
    for _ in 0..rounds.max(1) {
        let mut time = |what: &'static str, work: &dyn Fn() -> Done| -> Done {
            let start = Instant::now();
            work()?;
            let took = start.elapsed().as_secs_f64() * 1e3;
            let best = times.entry(what).or_insert(took);
            *best = took.min(*best);
            Ok(())
        };
        time("prepare", &|| {
            detector.inputs(&loaded, &whole, &caption)?;
            Ok(())
        })?;
        time("prepare_from_file", &|| {
            let picture = Picture::load(path)?;
            let caption = detector.caption(name)?;
            detector.inputs(&picture, &whole, &caption)?;
            Ok(())
        })?;
        time("model", &|| {
            detector.run(&inputs)?;
            Ok(())
        })?;
        time("everything", &|| {
            let scene = Scene::new([Picture::load(path)?]);
            tools.call("detect_object", &args, &scene)?;
            Ok(())
        })?;
        time("two_at_once", &|| {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| detector.run(&inputs));
                detector.run(&inputs)?;
                other.join().map_err(|_| "a thread panicked")??;
                Ok(())
            })
        })?;
    }
    println!("{}", serde_json::to_string(&times)?);
    Ok(())
}

type Done = Result<(), Box<dyn std::error::Error>>;

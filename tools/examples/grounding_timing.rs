//! How long `detect_object` takes, and how much of it is the model itself. For `benches/grounding`.
//!
//! `grounding_timing LIBRARY MODEL PICTURE [ROUNDS]` prints one JSON object; times are the best of the
//! rounds, in milliseconds.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use deeplook_tools::grounding::{DetectObject, Detector, DetectorFiles};
use deeplook_tools::onnx::Runtime;
use deeplook_tools::{Picture, PixelBox, Scene, Toolbox};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
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

    let prepare = best(rounds, || detector.inputs(&loaded, &whole, &caption).map(drop))?;
    let prepare_from_file = best(rounds, || {
        let picture = Picture::load(path)?;
        let caption = detector.caption(name)?;
        detector.inputs(&picture, &whole, &caption)?;
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    let inputs = detector.inputs(&loaded, &whole, &caption)?;
    let model = best(rounds, || detector.run(&inputs).map(drop))?;
    let two_at_once = best(rounds, || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| detector.run(&inputs));
            detector.run(&inputs)?;
            other.join().map_err(|_| "a thread panicked")??;
            Ok::<(), Box<dyn std::error::Error>>(())
        })
    })?;
    let tools = Toolbox::default().with(DetectObject::new(Arc::clone(&detector)));
    let args = json!({ "detect_object_name": name, "tiled": false });
    let everything = best(rounds, || {
        let scene = Scene::new([Picture::load(path)?]);
        tools.call("detect_object", &args, &scene)?;
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    println!(
        "{}",
        json!({
            "prepare": prepare, "prepare_from_file": prepare_from_file, "model": model,
            "everything": everything, "two_at_once": two_at_once, "sessions": detector.sessions(),
        })
    );
    Ok(())
}

/// The shortest of some rounds, in milliseconds.
fn best<E>(rounds: usize, mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let mut best = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

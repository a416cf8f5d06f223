//! How long `localize_differences` takes in memory: `difference_timing A B` prints the median of
//! many calls, pictures decoded beforehand. `difference_timing A B LIBRARY MODEL` enhances the crops
//! with a model that ONNX Runtime runs.

#![expect(clippy::expect_used, reason = "an example may stop where its input is missing")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use deeplook_tools::difference::LocalizeDifferences;
use deeplook_tools::onnx::{Runtime, Session};
use deeplook_tools::{Enhancer, Picture, Scene, Toolbox};

fn main() {
    let load = |path: String| Picture::load(Path::new(&path)).expect("a picture that can be read");
    let mut paths = std::env::args().skip(1);
    let (Some(a), Some(b)) = (paths.next(), paths.next()) else {
        eprintln!("usage: difference_timing FIRST SECOND [LIBRARY MODEL]");
        std::process::exit(2);
    };
    let scene = Scene::new([load(a), load(b)]);
    let enhancer = paths.next().zip(paths.next()).map(|(library, model)| {
        let runtime = Runtime::load(Path::new(&library)).expect("ONNX Runtime");
        let session = Session::load(runtime, Path::new(&model)).expect("a model");
        Enhancer::load(session, "timing", "").expect("an enhancement model")
    });
    let calls = if enhancer.is_some() { 6 } else { 33 };
    let enhancer = Arc::new(enhancer.unwrap_or_default());
    let toolbox = Toolbox::default().with(LocalizeDifferences::default().with_enhancer(enhancer));
    let mut times = Vec::new();
    for _ in 0..calls {
        let start = Instant::now();
        let seen = toolbox.call("localize_differences", &serde_json::json!({}), &scene);
        times.push(start.elapsed().as_secs_f64() * 1e3);
        std::hint::black_box(seen.expect("two pictures can be compared"));
    }
    let mut times = times.split_off(3);
    times.sort_by(f64::total_cmp);
    println!("{}", serde_json::json!({ "median_ms": times[times.len() / 2], "min_ms": times[0] }));
}

//! `localize A B`: what the difference tool finds, as JSON.
fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let load = |p: &str| deeplook_tools::Picture::load(std::path::Path::new(p)).unwrap();
    for pair in paths.chunks(2) {
        let scene = deeplook_tools::Scene::new([load(&pair[0]), load(&pair[1])]);
        let t = std::time::Instant::now();
        let seen = deeplook_tools::Toolbox::standard()
            .call("localize_differences", &serde_json::json!({}), &scene)
            .unwrap();
        let ms = t.elapsed().as_secs_f64() * 1e3;
        println!("{}", serde_json::json!({"a": pair[0], "ms": ms, "data": seen.data}));
    }
}

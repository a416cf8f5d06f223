//! How well a detector finds the objects of drawn scenes through `detect_object`, whole pictures alone
//! and with windows: `recall LIBRARY MODEL SCENES [MOST]` reads a folder that the example `draw_scenes`
//! wrote, asks for every phrase in it, and for one that is not there.
//!
//! Recall@1 counts where the best box overlaps an object of that name by half (intersection over
//! union); a false alarm is any box for the absent phrase.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use deeplook_tools::grounding::{DetectObject, Detector, DetectorFiles};
use deeplook_tools::onnx::Runtime;
use deeplook_tools::{Picture, PixelBox, Scene, Toolbox};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Line {
    file: String,
    objects: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    phrase: String,
    #[serde(rename = "box")]
    edges: [f64; 4],
}

/// Hits, or false alarms, of so many.
#[derive(Default, Clone, Copy)]
struct Share {
    yes: u32,
    of: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [library, model, scenes, most @ ..] = args.as_slice() else {
        return Err("usage: recall LIBRARY MODEL SCENES [MOST]".into());
    };
    let most = most.first().map_or(Ok(usize::MAX), |n| n.parse::<usize>())?;
    let runtime = Runtime::load(Path::new(library))?;
    let files = DetectorFiles::beside(Path::new(model))?;
    let detector = Arc::new(Detector::load(runtime, &files, json!({}))?);
    let tools = Toolbox::default().with(DetectObject::new(detector));
    let scenes = Path::new(scenes);
    let vocabulary = std::fs::read_to_string(scenes.join("vocabulary.txt"))?;
    let vocabulary: Vec<&str> = vocabulary.lines().collect();
    let lines = std::fs::read_to_string(scenes.join("objects.jsonl"))?;
    for tiled in [false, true] {
        let start = Instant::now();
        let mut shares: BTreeMap<String, Share> = BTreeMap::new();
        let mut count = |group: &str, yes: bool| {
            let share = shares.entry(group.to_owned()).or_default();
            share.yes += u32::from(yes);
            share.of += 1;
        };
        for (number, line) in lines.lines().take(most).enumerate() {
            let Line { file, objects } = serde_json::from_str(line)?;
            let picture = Picture::load(&scenes.join(file))?;
            let area = PixelBox::whole(picture.size()).area();
            let scene = Scene::new([picture]);
            let look = |name: &str| {
                let args = json!({ "detect_object_name": name, "tiled": tiled });
                let seen = tools.call("detect_object", &args, &scene)?;
                let boxes = seen.data["boxes"].as_array().cloned().unwrap_or_default();
                let boxes: Result<Vec<[f64; 4]>, _> =
                    boxes.into_iter().map(|b| serde_json::from_value(b["bbox"].clone())).collect();
                Ok::<_, Box<dyn std::error::Error>>(boxes?)
            };
            let mut names: Vec<&str> = objects.iter().map(|o| o.phrase.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            for name in &names {
                let found = look(name)?;
                let own = objects.iter().filter(|o| o.phrase == *name);
                let own: Vec<PixelBox> = own.map(|o| rectangle(o.edges)).collect();
                let best = found.first().map(|edges| rectangle(*edges));
                let hit = best.is_some_and(|best| own.iter().any(|b| overlap(&best, b) >= 0.5));
                count("all", hit);
                count(
                    band(own.iter().map(PixelBox::area).sum::<f64>() / own.len() as f64 / area),
                    hit,
                );
            }
            let absent = (0..vocabulary.len())
                .map(|step| vocabulary[(number * 37 + step) % vocabulary.len()])
                .find(|name| !names.contains(name));
            if let Some(name) = absent {
                count("false alarms", !look(name)?.is_empty());
            }
        }
        println!(
            "{} ({:.1} s)",
            if tiled { "with windows" } else { "whole picture" },
            start.elapsed().as_secs_f64()
        );
        for (group, Share { yes, of }) in &shares {
            println!("  {group:20} {:.3} ({yes} of {of})", f64::from(*yes) / f64::from(*of));
        }
    }
    Ok(())
}

fn rectangle([x1, y1, x2, y2]: [f64; 4]) -> PixelBox {
    PixelBox::new(x1, y1, x2, y2)
}

fn overlap(a: &PixelBox, b: &PixelBox) -> f64 {
    let shared = a.intersection(b);
    let shared = if shared.is_empty() { 0.0 } else { shared.area() };
    shared / (a.area() + b.area() - shared)
}

/// A group by an object's part of the picture.
fn band(part: f64) -> &'static str {
    match part {
        part if part < 0.002 => "objects under 0.2 %",
        part if part < 0.005 => "objects under 0.5 %",
        _ => "larger objects",
    }
}

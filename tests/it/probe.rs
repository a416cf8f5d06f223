//! `deeplook probe` through the command: judges that are broken on purpose are found, and a sound one passes.

use std::fs;
use std::path::Path;
use std::process::Output;

use base64::Engine as _;
use image::{Rgb, RgbImage};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{deeplook, stderr};
use super::runs::exit;
use super::wire::server::{Server, Step, completion, text};

const BLUE: Rgb<u8> = Rgb([20, 40, 250]);
const COLOURS: [(&str, Rgb<u8>); 2] = [("red", Rgb([250, 30, 20])), ("green", Rgb([20, 240, 30]))];

/// A data set of a red and a green task: a blue square on something dark is to be painted.
fn scenes() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = String::new();
    for (place, (name, colour)) in COLOURS.into_iter().enumerate() {
        let corner = 12 + 16 * place as u32;
        let inside = |at: u32| (corner..corner + 16).contains(&at);
        let picture = |square: Rgb<u8>| {
            RgbImage::from_fn(80, 64, |x, y| match inside(x) && inside(y) {
                true => square,
                false => Rgb([20 + (x / 4) as u8, 25 + (y / 4) as u8, 30 + place as u8]),
            })
        };
        picture(BLUE).save(folder.path().join(format!("{name}-before.png"))).unwrap();
        picture(colour).save(folder.path().join(format!("{name}-after.png"))).unwrap();
        let line = json!({
            "id": name, "source": format!("{name}-before.png"), "reference": format!("{name}-after.png"),
            "instruction": format!("paint the square {name}"), "type": format!("Change {name}"),
            "target": format!("{name} thing"), "boxes": [[corner, corner, corner + 16, corner + 16]],
            "edits": { "someone": format!("{name}-after.png") },
        });
        lines.push_str(&format!("{line}\n"));
    }
    fs::write(folder.path().join("cases.jsonl"), lines).unwrap();
    folder
}

/// What a request shows.
struct Shown {
    consistency: bool,
    wanted: Rgb<u8>,
    before: RgbImage,
    after: RgbImage,
}

/// The pictures of a request with the words before each, in the order in which they come.
fn pictures(request: &Value) -> Vec<(String, RgbImage)> {
    let mut pictures = Vec::new();
    let mut words = String::new();
    let messages = request["messages"].as_array().unwrap().iter();
    for part in messages.filter_map(|message| message["content"].as_array()).flatten() {
        match part["image_url"]["url"].as_str() {
            None => words = part["text"].as_str().unwrap().to_owned(),
            Some(url) => {
                let (_, data) = url.split_once("base64,").unwrap();
                let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
                let picture = image::load_from_memory(&bytes).unwrap().to_rgb8();
                pictures.push((words.clone(), picture));
            }
        }
    }
    pictures
}

fn shown(request: &Value, [before, after]: [RgbImage; 2]) -> Shown {
    let text = request["messages"].to_string();
    let (_, wanted) = COLOURS
        .into_iter()
        .find(|(name, _)| text.contains(&format!("paint the square {name}")))
        .unwrap();
    let (width, height) = before.dimensions();
    let after =
        image::imageops::resize(&after, width, height, image::imageops::FilterType::Triangle);
    Shown { consistency: text.contains("Perfect Consistency"), wanted, before, after }
}

/// Takes the captions for what they say.
fn by_caption(request: &Value) -> Shown {
    let pictures = pictures(request);
    let named = |name: &str| {
        let found = pictures.iter().find(|(words, _)| words.contains(name));
        found.unwrap().1.clone()
    };
    shown(request, [named("Original Image"), named("Edited Image")])
}

fn near(a: Rgb<u8>, b: Rgb<u8>) -> bool {
    a.0.iter().zip(b.0).all(|(a, b)| a.abs_diff(b) < 70)
}

/// A judge that knows its trade.
fn judge(Shown { consistency, wanted, before, after }: &Shown) -> &'static str {
    let all = || before.enumerate_pixels().map(|(x, y, pixel)| (x, y, *pixel));
    let blue: Vec<(u32, u32)> =
        all().filter(|(.., pixel)| near(*pixel, BLUE)).map(|(x, y, _)| (x, y)).collect();
    if *consistency {
        let target = |x: u32, y: u32| blue.iter().any(|b| b.0.abs_diff(x).max(b.1.abs_diff(y)) < 4);
        let changed = all().filter(|(x, y, pixel)| !near(*pixel, *after.get_pixel(*x, *y)));
        let outside = changed.filter(|(x, y, _)| !target(*x, *y)).count();
        return match outside {
            0..8 => "Perfect Consistency",
            8..1000 => "Single Anomaly",
            _ => "Scene Collapse",
        };
    }
    let share = |colour: Rgb<u8>| {
        let of = blue.iter().filter(|(x, y)| near(*after.get_pixel(*x, *y), colour)).count();
        of as f64 / blue.len().max(1) as f64
    };
    match (share(*wanted), share(BLUE)) {
        (right, _) if right > 0.6 => "Flawless Execution",
        (_, left) if left > 0.6 => "Localization Failure",
        _ => "Wrong Action",
    }
}

fn says(label: &str) -> Value {
    let content = format!("<Start Final Answer>{label}</Start Final Answer>");
    completion(&json!({ "role": "assistant", "content": content }), "stop")
}

fn sound(request: &Value) -> Value {
    says(judge(&by_caption(request)))
}

fn always_content(request: &Value) -> Value {
    says(match by_caption(request).consistency {
        true => "Perfect Consistency",
        false => "Flawless Execution",
    })
}

fn ignores_the_source(request: &Value) -> Value {
    let Shown { consistency, wanted, after, .. } = by_caption(request);
    let is_there = after.pixels().any(|pixel| near(*pixel, wanted));
    says(match (consistency, is_there) {
        (true, _) => "Perfect Consistency",
        (false, true) => "Flawless Execution",
        (false, false) => "Localization Failure",
    })
}

fn sees_them_swapped(request: &Value) -> Value {
    let Shown { consistency, wanted, before, after } = by_caption(request);
    says(judge(&Shown { consistency, wanted, before: after, after: before }))
}

/// Takes the first picture for the original, whatever is said of it.
fn goes_by_order(request: &Value) -> Value {
    let pictures: Vec<RgbImage> = pictures(request).into_iter().map(|(_, one)| one).collect();
    says(judge(&shown(request, [pictures[0].clone(), pictures[1].clone()])))
}

fn probe(folder: &Path, server: &Server, more: &[&str]) -> Output {
    let mut command = deeplook(folder);
    command.args(["probe", ".", "--mode", "plain", "--model", "some-model", "--run", "probe"]);
    command.args(["--base-url", &server.base_url, "--json"]).args(more).output().unwrap()
}

/// Exit code, and the names of the probes that were not passed.
fn failed(output: &Output) -> (Option<i32>, Vec<String>) {
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    let mut failed: Vec<String> = told["probes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["passed"] != true)
        .map(|one| one["probe"].as_str().unwrap().to_owned())
        .collect();
    failed.dedup();
    assert_eq!(told["passed"], failed.is_empty());
    (exit(output), failed)
}

#[test]
fn a_sound_judge_passes_and_is_told_no_names() {
    let folder = scenes();
    let server = Server::start(vec![Step::Reply(sound)]);
    assert_eq!(failed(&probe(folder.path(), &server, &[])), (Some(0), Vec::new()));
    let asked = server.arrived();
    assert!(asked.len() > 40, "{}", asked.len());
    // A judge that goes by file names or ids has nothing to go by.
    for question in &asked {
        let text = question.json()["messages"].to_string();
        for name in ["flawless-execution", "someone", "-before", "-after", ".png", "no-op"] {
            assert!(!text.contains(name), "{name}");
        }
    }
    assert_eq!(failed(&probe(folder.path(), &server, &[])), (Some(0), Vec::new()));
    assert_eq!(server.arrived().len(), asked.len(), "the same command asks nothing again");
}

#[test]
fn broken_judges_are_found() {
    let folder = scenes();
    let broken = [
        (Step::Reply(always_content), &["no-op", "blank"][..]),
        (Step::Reply(ignores_the_source), &["no-op-on-reference"]),
        (Step::Reply(sees_them_swapped), &["reference"]),
        (Step::Reply(goes_by_order), &["other-order"]),
    ];
    for (number, (judge, expected)) in broken.into_iter().enumerate() {
        let server = Server::start(vec![judge]);
        let run = format!("probe-{number}");
        let mut command = deeplook(folder.path());
        command.args(["probe", ".", "--mode", "plain", "--model", "some-model", "--run", &run]);
        command.args(["--base-url", &server.base_url, "--json"]);
        let (code, failed) = failed(&command.output().unwrap());
        assert_eq!(code, Some(1), "judge {number}");
        for probe in expected {
            assert!(failed.iter().any(|name| name == probe), "judge {number}: {failed:?}");
        }
    }
}

#[test]
fn a_judge_that_cannot_be_asked_is_not_called_broken() {
    let folder = scenes();
    let server = Server::start(vec![text(401, "{\"error\":{\"message\":\"no such key\"}}")]);
    let output = probe(folder.path(), &server, &[]);
    assert_eq!(exit(&output), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no such key"), "{}", stderr(&output));
}

//! Tokens and pixels against what the reference made of the same pictures and names. The model's own
//! numbers need the runtime: `tools/tests/grounding.rs`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::detector::Sizing;
use super::pixels;
use super::text::Vocabulary;
use crate::coords::{PixelBox, Size};
use crate::picture::Picture;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn golden() -> (PathBuf, Vec<Value>) {
    let folder = folder("tests/golden/grounding");
    let index = std::fs::read(folder.join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    (folder, index["cases"].as_array().unwrap().clone())
}

fn vocabulary() -> Vocabulary {
    Vocabulary::load(&folder("models/demo-detector/tokenizer.json")).unwrap()
}

#[test]
fn tokens_are_those_of_the_reference() {
    let vocabulary = vocabulary();
    for case in golden().1 {
        let caption = vocabulary.caption(case["prompt"].as_str().unwrap()).unwrap();
        let expected: Vec<u32> = serde_json::from_value(case["input_ids"].clone()).unwrap();
        assert_eq!(caption.ids, expected, "{}", case["prompt"]);
    }
}

#[test]
fn pixels_are_those_of_the_reference() {
    let config = folder("models/demo-detector/preprocessor_config.json");
    let sizing = Sizing::read(Some(&config)).unwrap();
    let (folder, cases) = golden();
    assert!(cases.len() >= 4);
    for case in cases {
        let picture = Picture::load(&folder.join(case["picture"].as_str().unwrap())).unwrap();
        let seen = sizing.apply(picture.size());
        let expected = &case["pixels"];
        let sides: [u32; 3] = serde_json::from_value(expected["full_shape"].clone()).unwrap();
        assert_eq!(seen, Size::new(sides[2], sides[1]), "{}", picture.size());
        let planes = pixels::planes(&picture, &PixelBox::whole(picture.size()), seen);
        let mean = planes.iter().map(|&v| f64::from(v)).sum::<f64>() / planes.len() as f64;
        let difference = (mean - expected["mean"].as_f64().unwrap()).abs();
        assert!(difference < 1e-4, "the mean is off by {difference}");
        let bytes = std::fs::read(folder.join(expected["file"].as_str().unwrap())).unwrap();
        let mut values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
        let step = expected["step"].as_u64().unwrap() as usize;
        let (width, height) = (seen.width as usize, seen.height as usize);
        for channel in 0..3 {
            for y in (0..height).step_by(step) {
                for x in (0..width).step_by(step) {
                    let ours = planes[(channel * height + y) * width + x];
                    let theirs = values.next().unwrap();
                    assert!((ours - theirs).abs() < 1e-3, "{ours} {theirs} at {channel} {y} {x}");
                }
            }
        }
        assert!(values.next().is_none());
    }
}

#[test]
fn names_that_are_no_names_are_refused() {
    let vocabulary = vocabulary();
    let refused = |name: &str| vocabulary.caption(name).unwrap_err().to_string();
    assert!(refused("").contains("empty"));
    assert!(refused(" . ").contains("empty"));
    assert!(refused(&"x".repeat(5000)).contains("5000 characters"));
    assert!(refused(&"q ".repeat(300)).contains("tokens"));
    // Lower-cased, a typed special token is only letters and brackets.
    let caption = vocabulary.caption("a [SEP] b [PAD]").unwrap();
    assert!(!caption.ids[1..caption.ids.len() - 1].contains(&102));
    assert_eq!(
        vocabulary.caption("Red Circle").unwrap(),
        vocabulary.caption(" red circle. ").unwrap()
    );
}

#[test]
fn a_bare_vocabulary_tokenises_like_the_whole_file() {
    let tokenizer = std::fs::read(folder("models/demo-detector/tokenizer.json")).unwrap();
    let tokenizer: Value = serde_json::from_slice(&tokenizer).unwrap();
    let words = tokenizer["model"]["vocab"].as_object().unwrap();
    let mut lines =
        vec![String::new(); words.values().filter_map(Value::as_u64).max().unwrap() as usize + 1];
    for (word, id) in words {
        lines[id.as_u64().unwrap() as usize] = word.clone();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocab.txt");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let (bare, whole) = (Vocabulary::load(&path).unwrap(), vocabulary());
    for name in ["red circle", "sign with the word \"OPEN\"", "a dog? the Zebra's éclair"] {
        let (bare_caption, caption) = (bare.caption(name).unwrap(), whole.caption(name).unwrap());
        assert_eq!(bare_caption, caption);
        let fits = vec![1.0; caption.ids.len()];
        assert_eq!(bare.phrase(&caption, &fits, 0.5), whole.phrase(&caption, &fits, 0.5));
    }
    std::fs::write(&path, "one\ntwo\n").unwrap();
    assert!(Vocabulary::load(&path).unwrap_err().to_string().contains("[SEP]"));
}

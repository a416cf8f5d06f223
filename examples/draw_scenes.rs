//! Only the sources that `deeplook dataset make` draws, with all their objects: what the demo
//! detector is trained on and measured with.
//!
//! `cargo run --release --example draw_scenes -- --out scenes/ --scenes 100 --seed 7001`
//!
//! The folder gets the pictures, `objects.jsonl` (one line a scene: file, phrases, boxes) and
//! `vocabulary.txt` (every phrase that can occur).

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use deeplook::dataset::draw;
use rayon::prelude::*;
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// The folder to write into.
    #[arg(long)]
    out: PathBuf,
    /// How many scenes.
    #[arg(long, default_value_t = 14)]
    scenes: usize,
    /// Another seed draws other scenes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let line = |index: usize| -> anyhow::Result<String> {
        let (picture, objects) = draw::scene(args.seed, index)?;
        let file = format!("{:05}.png", index + 1);
        fs::write(args.out.join(&file), picture.to_png())?;
        let objects: Vec<_> = objects
            .iter()
            .map(|object| {
                let b = &object.bounds;
                json!({ "phrase": object.phrase, "box": [b.x1, b.y1, b.x2, b.y2] })
            })
            .collect();
        Ok(json!({ "file": file, "objects": objects }).to_string() + "\n")
    };
    let lines: Vec<String> =
        (0..args.scenes).into_par_iter().map(line).collect::<anyhow::Result<_>>()?;
    fs::write(args.out.join("objects.jsonl"), lines.concat())?;
    fs::write(args.out.join("vocabulary.txt"), draw::vocabulary().join("\n") + "\n")?;
    Ok(())
}

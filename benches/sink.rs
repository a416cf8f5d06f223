//! What keeping traces costs: the CPU time of a judgement into memory and into a folder, with a model
//! that answers at once. Every judgement is of another edit, as in a service. The target is half.
//! In the development profile on a busy machine: 21 ms against 25 ms without tools, 84 ms against 86 ms with one
//! look; nearly all of it is the encoding of what the model gets.
//!
//! `cargo bench --bench sink`; needs Linux, whose `/proc` says what a process has used.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use std::sync::atomic::{AtomicU32, Ordering};

use deeplook::judge::{Judge, JudgeSettings};
use deeplook::message::{Dialect, MediaType, Reply, Request};
use deeplook::model::{ChatModel, FailedAttempt, ModelError, Rules};
use deeplook::prompt::Pack;
use deeplook::tools::{Picture, Toolbox};
use deeplook::trace::{Memory, Sink};
use deeplook::wire::unserved;
use deeplook::{EditCase, Mode, RunFolder};
use serde_json::json;

/// Zooms in once where it may, then answers.
struct Quick;

impl ChatModel for Quick {
    async fn ask(
        &self,
        request: &Request,
        _: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let call = r#"<tool_call>{"name": "zoom_in", "arguments": {"bbox": [100, 100, 400, 400]}}</tool_call>"#;
        let answer = "<Start Final Answer>Flawless Execution</Start Final Answer>";
        let looks = !request.tools.is_empty() && request.messages.len() < 3;
        let said = if looks { call } else { answer };
        Ok(unserved(json!({ "role": "assistant", "content": said })))
    }
}

/// A picture of soft shapes and some noise, like a photograph; another one for every seed.
fn picture(seed: u32) -> Picture {
    let mut noise = seed | 1;
    let pixels = image::RgbImage::from_fn(1024, 768, |x, y| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let grain = (noise >> 29) as u8;
        let soft = [(x / 5) as u8 ^ seed as u8, (y / 4) as u8, ((x + y) / 8) as u8];
        image::Rgb(soft.map(|c| c ^ grain))
    });
    Picture::from_rgb(pixels).unwrap()
}

/// Seconds of all cores that this process has used.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn measure(mode: Mode, media: MediaType, sink: &dyn Sink, seeds: &AtomicU32) -> f64 {
    const JUDGEMENTS: u32 = 40;
    let pack = Pack::embedded("dlebench/v1").unwrap();
    let mut settings = JudgeSettings { mode, ..JudgeSettings::default() };
    settings.preparation.format = media;
    let judge =
        Judge::new(Quick, Rules::record(Dialect::Tags), pack, Toolbox::standard(), settings);
    let cases: Vec<EditCase> = (0..JUDGEMENTS)
        .map(|_| {
            let seed = seeds.fetch_add(2, Ordering::Relaxed);
            EditCase::new(picture(seed), picture(seed + 1), "Make it blue")
        })
        .collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let before = cpu();
    runtime.block_on(async {
        for case in &cases {
            let judged = judge.judge(case, "if", sink, &|_| ()).await.unwrap();
            sink.sync().await.unwrap();
            assert_eq!(judged.judgement.label(), Some("Flawless Execution"));
        }
    });
    (cpu() - before) * 1000.0 / f64::from(JUDGEMENTS)
}

fn main() {
    let seeds = AtomicU32::new(1);
    println!("milliseconds of CPU for a judgement\n");
    for (mode, media) in
        [(Mode::Plain, MediaType::Png), (Mode::Tool, MediaType::Png), (Mode::Tool, MediaType::Jpeg)]
    {
        let folder = tempfile::tempdir().unwrap();
        let memory = measure(mode, media, &Memory, &seeds);
        let kept = measure(mode, media, &RunFolder::new(folder.path()), &seeds);
        println!("{mode}, {media}: memory {memory:.1}, folder {kept:.1} ({:.2})", memory / kept);
    }
}

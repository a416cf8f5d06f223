//! What a turn costs us, without the network: the whole body for the second turn of a judgement with
//! two pictures of 1024 × 1024 pixels of noise, the worst case for PNG. The target is 2 ms.

#![expect(clippy::unwrap_used, reason = "a benchmark may stop")]

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use deeplook::hash::Hash;
use deeplook::message::{
    Dialect, MediaType, Message, Observation, Part, Request, SentPicture, ToolCall, ToolChoice,
};
use deeplook::model::profile::Profile;
use deeplook::tools::{BoxConvention, Size, Toolbox};
use deeplook::wire::{Renderer, unserved};
use serde_json::{Value, json};

fn noise(name: &str, mut seed: u32) -> Arc<SentPicture> {
    let image = image::RgbImage::from_fn(1024, 1024, |_, _| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = seed.to_be_bytes();
        image::Rgb([a, b, c])
    });
    let mut png = std::io::Cursor::new(Vec::new());
    image.write_to(&mut png, image::ImageFormat::Png).unwrap();
    let bytes: Arc<[u8]> = png.into_inner().into();
    Arc::new(SentPicture {
        name: name.to_owned(),
        caption: format!("{name}:"),
        size: Size::new(1024, 1024),
        media: MediaType::Png,
        hash: Hash::of(&bytes),
        bytes,
    })
}

fn second_turn() -> Request {
    let parts = vec![
        Part::Text("Compare these pictures. ".repeat(100)),
        Part::Picture(noise("Original Image", 1)),
        Part::Picture(noise("Edited Image", 2)),
    ];
    let call = ToolCall {
        id: "a".to_owned(),
        name: "zoom_in".to_owned(),
        arguments: json!({}),
        form: Dialect::Native,
    };
    let observation = Observation {
        call,
        text: "Nothing there.".to_owned(),
        data: Value::Null,
        pictures: vec![],
    };
    let reply = json!({
        "role": "assistant", "content": "I look closer.",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "zoom_in", "arguments": "{}"}}],
    });
    let messages = vec![
        Message::System("You judge edits of pictures. ".repeat(100)),
        Message::User { parts, data: Value::Null },
        Message::Assistant(Box::new(unserved(reply))),
        Message::Observations { observations: vec![observation], closing: "Go on.".to_owned() },
    ];
    Request {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Toolbox::standard().specs(BoxConvention::PIXELS).into(),
        tool_choice: ToolChoice::Auto,
        dialect: Dialect::Native,
    }
}

fn turn(c: &mut Criterion) {
    let request = second_turn();
    let new = || {
        let profile = Profile::named("openai").unwrap();
        Renderer::new("some-model", profile.habits(), Default::default()).unwrap()
    };
    // Exactly what the client library does with a body.
    let bytes =
        |renderer: &Renderer| serde_json::to_vec(&renderer.body(&request).unwrap()).unwrap();

    let renderer = new();
    println!("a body of {:.1} MB", bytes(&renderer).len() as f64 / 1e6);
    c.bench_function("body of turn 2", |b| b.iter(|| bytes(&renderer)));
    c.bench_function("body of turn 1 (pictures are encoded)", |b| b.iter(|| bytes(&new())));
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(50);
    targets = turn
}
criterion_main!(benches);

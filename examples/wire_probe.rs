//! Talks two turns with pictures to a server, in the tags dialect, and prints what came back:
//! `wire_probe BASE_URL MODEL [key=value …]`

use std::sync::Arc;

use anyhow::Context as _;
use deeplook::hash::Hash;
use deeplook::message::{
    Dialect, MediaType, Message, Observation, Part, Request, SentPicture, ToolCall, ToolChoice,
};
use deeplook::model::ChatModel as _;
use deeplook::model::openai::{OpenAi, OpenAiSettings};
use deeplook::model::profile::Profile;
use deeplook::tools::Size;
use serde_json::{Value, json};

fn picture(name: &str, shade: u8) -> anyhow::Result<Arc<SentPicture>> {
    let image =
        image::RgbImage::from_fn(64, 64, |x, y| image::Rgb([shade, x as u8 * 4, y as u8 * 4]));
    let mut png = std::io::Cursor::new(Vec::new());
    image.write_to(&mut png, image::ImageFormat::Png)?;
    let bytes: Arc<[u8]> = png.into_inner().into();
    Ok(Arc::new(SentPicture {
        name: name.to_owned(),
        caption: format!("{name}:"),
        size: Size::new(64, 64),
        media: MediaType::Png,
        hash: Hash::of(&bytes),
        bytes,
    }))
}

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let base_url = args.next().context("wire_probe BASE_URL MODEL [key=value …]")?;
    let name = args.next().context("wire_probe BASE_URL MODEL [key=value …]")?;
    let mut settings = OpenAiSettings::new(&*name, Profile::guess(&name, Some(&base_url)));
    settings.base_url = Some(base_url);
    for param in args {
        let (key, value) = param.split_once('=').context("a parameter is key=value")?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        settings.params.insert(key.to_owned(), value);
    }
    let model = OpenAi::new(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

    let parts = vec![
        Part::Text("Compare these two pictures.".to_owned()),
        Part::Picture(picture("Original Image", 10)?),
        Part::Picture(picture("Edited Image", 200)?),
    ];
    let mut request = Request {
        messages: vec![
            Arc::new(Message::System("You judge edits of pictures.".to_owned())),
            Arc::new(Message::User { parts, data: Value::Null }),
        ],
        tools: Vec::new().into(),
        tool_choice: ToolChoice::Auto,
        dialect: Dialect::Tags,
    };
    for turn in 1..=2 {
        let failed = |failure| eprintln!("failed attempt: {failure:?}");
        let reply = runtime.block_on(model.ask(&request, &failed))?;
        println!("turn {turn}: {}", serde_json::to_string(&reply)?);
        let call = ToolCall {
            id: String::new(),
            name: "zoom_in".to_owned(),
            arguments: json!({}),
            form: Dialect::Tags,
        };
        let observations = vec![Observation {
            call,
            text: "Crop 1 of the edited image.".to_owned(),
            data: Value::Null,
            pictures: vec![picture("Crop 1", 90)?],
        }];
        request.messages.push(Arc::new(Message::Assistant(reply.message)));
        let closing = "Go on.".to_owned();
        request.messages.push(Arc::new(Message::Observations { observations, closing }));
    }
    Ok(())
}

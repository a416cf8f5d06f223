//! Talking to servers: what is sent, what is read, and what happens when something breaks.

mod errors;
mod refusals;
mod replies;
mod requests;
mod retries;
mod schema;
pub(crate) mod server;
mod strict;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deeplook::hash::Hash;
use deeplook::message::{
    Dialect, MediaType, Message, Observation, Part, Reply, Request, SentPicture, ToolCall,
    ToolChoice,
};
use deeplook::model::openai::{OpenAi, OpenAiSettings};
use deeplook::model::profile::Profile;
use deeplook::model::{ChatModel as _, FailedAttempt, ModelError, RetryPolicy, Secret};
use deeplook::tools::{BoxConvention, Size, Toolbox};
use serde_json::{Value, json};

use self::server::{Server, Step};

const KEY: &str = "sk-secret-key-of-the-test";

fn settings(base_url: &str) -> OpenAiSettings {
    OpenAiSettings {
        model: "some-model".to_owned(),
        base_url: Some(base_url.to_owned()),
        key: Secret::new(KEY),
        profile: Profile::named("openai").unwrap(),
        params: Default::default(),
        timeout: Duration::from_secs(20),
        retry: RetryPolicy {
            max_attempts: 4,
            base_delay: Duration::from_millis(2),
            max_delay: Duration::from_secs(5),
            seed: Some(1),
        },
    }
}

/// What came of asking once.
struct Asked {
    outcome: Result<Reply, ModelError>,
    failures: Vec<FailedAttempt>,
    server: Server,
}

impl Asked {
    #[track_caller]
    fn reply(&self) -> &Reply {
        self.outcome.as_ref().unwrap()
    }

    #[track_caller]
    fn error(&self) -> &ModelError {
        self.outcome.as_ref().unwrap_err()
    }
}

fn ask(script: Vec<Step>) -> Asked {
    ask_with(script, &hello(), |_| {})
}

fn ask_with(
    script: Vec<Step>,
    request: &Request,
    change: impl FnOnce(&mut OpenAiSettings),
) -> Asked {
    let server = Server::start(script);
    let mut settings = settings(&server.base_url);
    change(&mut settings);
    let model = OpenAi::new(settings).unwrap();
    let (outcome, failures) = run(&model, request);
    // Whatever happened, the key is nowhere but in the header.
    assert!(!format!("{model:?} {outcome:?} {failures:?}").contains(KEY));
    Asked { outcome, failures, server }
}

fn run(model: &OpenAi, request: &Request) -> (Result<Reply, ModelError>, Vec<FailedAttempt>) {
    let failures = Mutex::new(Vec::new());
    let note = |failure| failures.lock().unwrap().push(failure);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(model.ask(request, &note));
    (outcome, failures.into_inner().unwrap())
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User { parts: vec![Part::Text(text.to_owned())], data: Value::Null })
}

fn hello() -> Request {
    Request {
        messages: vec![Arc::new(Message::System("Judge.".to_owned())), user("Hello?")],
        tools: Vec::new().into(),
        tool_choice: ToolChoice::Auto,
        dialect: Dialect::Native,
    }
}

fn picture(name: &str) -> Arc<SentPicture> {
    let bytes: Arc<[u8]> = Arc::from(format!("not really a picture: {name}").into_bytes());
    Arc::new(SentPicture {
        name: name.to_owned(),
        caption: format!("{name}:"),
        size: Size::new(8, 8),
        media: MediaType::Png,
        hash: Hash::of(&bytes),
        bytes,
    })
}

fn looking(dialect: Dialect) -> Request {
    let tools = Toolbox::standard().specs(BoxConvention::PIXELS);
    let parts = vec![
        Part::Text("Compare \"these\".".to_owned()),
        Part::Picture(picture("Original Image")),
        Part::Picture(picture("Edited Image")),
    ];
    Request {
        messages: vec![
            Arc::new(Message::System("Judge.".to_owned())),
            Arc::new(Message::User { parts, data: Value::Null }),
        ],
        tools: tools.into(),
        tool_choice: ToolChoice::Auto,
        dialect,
    }
}

fn observation(
    id: &str,
    form: Dialect,
    name: &str,
    pictures: Vec<Arc<SentPicture>>,
) -> Observation {
    let call =
        ToolCall { id: id.to_owned(), name: "zoom_in".to_owned(), arguments: json!({}), form };
    Observation { call, text: format!("Saw {name}."), data: Value::Null, pictures }
}

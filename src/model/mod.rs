//! Models that can be asked.

mod endpoint;
mod gate;
mod kept;
mod key_file;
mod masking;
pub mod openai;
pub(crate) mod parameters;
mod prices;
mod problem;
pub mod profile;
mod record;
mod retry;
mod rules;
mod simulated;

use std::future::Future;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::endpoint::api_version;
pub(crate) use self::endpoint::is_known_server;
pub use self::endpoint::{Secret, without_credentials};
pub use self::gate::{Gate, GateLimits};
pub use self::kept::KeptReplies;
pub use self::openai::{OpenAi, OpenAiSettings};
pub use self::prices::{LongPrice, Price, Prices, PricesError, Rates};
pub use self::profile::{Profile, ProfileError};
pub use self::record::ModelRecord;
pub use self::retry::RetryPolicy;
pub use self::rules::Rules;
pub use self::simulated::{Simulated, Truth};
use crate::answer::AnswerForm;
use crate::hash::Hash;
use crate::message::{Reply, Request};

/// A model that continues a conversation.
pub trait ChatModel: Send + Sync {
    /// Asks once; retries are the model's own business. `on_attempt` is called for every attempt
    /// that came to nothing, right after it failed and before the wait for the next one, so that
    /// the trace can tell of it; it must not block.
    fn ask(
        &self,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send;

    /// The same for whoever must know what is asked about: a stand-in. Nothing of it is in the request.
    fn ask_about(
        &self,
        _: &Subject<'_>,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> impl Future<Output = Result<Reply, ModelError>> + Send {
        self.ask(request, on_attempt)
    }

    /// Stands for the exact request, as it is sent to a particular server; `None` where a reply is
    /// not worth keeping.
    fn fingerprint(&self, _: &Request) -> Option<Hash> {
        None
    }
}

/// What is asked about. No model that is asked gets to know it.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The case.
    pub case: &'a str,
    /// Who edited.
    pub editor: Option<&'a str>,
    /// By which criterion.
    pub criterion: &'a str,
    /// The question of the case, if it is about one.
    pub question: Option<&'a str>,
    /// The right answer to it.
    pub expected: Option<&'a str>,
    /// What the judge gets to see.
    pub mode: &'a str,
    /// Which repetition.
    pub repeat: u32,
    /// What may be answered.
    pub form: &'a AnswerForm,
}

/// An attempt that came to nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedAttempt {
    /// Counted from 1.
    pub attempt: u32,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What happened, without secrets.
    pub error: String,
    /// How long we wait before the next attempt; `None` if there is none.
    pub retry_after_ms: Option<u64>,
}

/// Why a model gave no reply in the end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "message")]
pub enum ModelError {
    /// The server could not be reached, or kept failing.
    #[error("{0}")]
    Server(String),
    /// The server will not take this request: key, quota, model name, size. Asking again is no use.
    #[error("{0}")]
    Refused(String),
    /// A content filter stepped in.
    #[error("{0}")]
    Filtered(String),
    /// Nobody is there to be asked: no judgement can be blamed for it.
    #[error("{0}")]
    Unreachable(String),
    /// Nobody waits for the answer any more, and it was not asked for.
    #[error("stopped while it waited to be asked")]
    Stopped,
}

/// A model chosen at run time.
#[derive(Debug)]
pub enum AnyModel {
    /// An OpenAI-compatible server.
    OpenAi(Box<OpenAi>),
    /// The offline judge.
    Rules(Rules),
    /// Answers from the truth.
    Simulated(Simulated),
}

impl ChatModel for AnyModel {
    async fn ask(
        &self,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        match self {
            Self::OpenAi(model) => model.ask(request, on_attempt).await,
            Self::Rules(model) => model.ask(request, on_attempt).await,
            Self::Simulated(model) => model.ask(request, on_attempt).await,
        }
    }

    async fn ask_about(
        &self,
        subject: &Subject<'_>,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        match self {
            Self::Simulated(model) => model.ask_about(subject, request, on_attempt).await,
            _ => self.ask(request, on_attempt).await,
        }
    }

    fn fingerprint(&self, request: &Request) -> Option<Hash> {
        match self {
            Self::OpenAi(model) => model.fingerprint(request),
            Self::Rules(model) => model.fingerprint(request),
            Self::Simulated(model) => model.fingerprint(request),
        }
    }
}

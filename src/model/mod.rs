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

    /// Stands for the exact request, as it is sent to a particular server; `None` where a reply is
    /// not worth keeping.
    fn fingerprint(&self, _: &Request) -> Option<Hash> {
        None
    }
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
        }
    }

    fn fingerprint(&self, request: &Request) -> Option<Hash> {
        match self {
            Self::OpenAi(model) => model.fingerprint(request),
            Self::Rules(model) => model.fingerprint(request),
        }
    }
}

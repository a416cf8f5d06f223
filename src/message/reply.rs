//! What a model said, in our own terms and in its server's.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The form of a server's requests and replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// OpenAI's chat completions, which nearly every server speaks.
    #[default]
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
        })
    }
}

/// What a model said to a [`Request`](super::Request).
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What it says, in our own terms.
    pub said: Said,
    /// What goes back to the server, in its own form and unchanged but for `repairs`.
    pub message: Value,
    /// In which form `message` is.
    pub wire: Wire,
    /// What had to be mended so that the message can be sent back.
    pub repairs: Vec<String>,
    /// Why the server stopped, in its own word.
    pub finish_reason: Option<String>,
    /// Tokens, where the server counts them.
    pub usage: Usage,
    /// What the server tells of itself.
    pub served: Served,
}

impl Reply {
    /// Whether it was cut off because it was too long.
    pub fn was_cut(&self) -> bool {
        let reason = self.finish_reason.as_deref().unwrap_or_default();
        ["length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"]
            .contains(&reason)
    }

    /// Whether a filter stopped it.
    pub fn was_filtered(&self) -> bool {
        self.finish_reason.as_deref() == Some("content_filter")
    }
}

/// What a reply says, whatever the form in which it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Said {
    /// What the server gives as the model's reasoning, apart from the text.
    pub thought: Option<String>,
    /// The text.
    pub text: String,
    /// Tools that are called in the server's own form.
    pub calls: Vec<ServerCall>,
    /// Why the model will not answer, where it says so apart from the text.
    pub refusal: Option<String>,
}

/// A tool call in the server's own form.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerCall {
    /// The server waits for an answer to it; empty where there is none.
    pub id: String,
    /// The name of the tool, as the model wrote it; empty where it names none.
    pub name: String,
    /// The arguments, as the model wrote them: an object, or the text of one.
    pub arguments: Value,
}

/// What a server tells of itself: without it nobody can tell a changed judge from chance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// The model that it says it used.
    pub model: Option<String>,
    /// Its name for the reply.
    pub id: Option<String>,
    /// What it runs on.
    pub system_fingerprint: Option<String>,
    /// How it was served: ordinary, in a batch, with priority.
    pub service_tier: Option<String>,
    /// Its name for the request, from the headers.
    pub request_id: Option<String>,
}

/// Tokens of one reply or of several. What a server did not count is unknown, not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: Option<u64>,
    /// Of these, how many the server had kept from before.
    pub cached_tokens: Option<u64>,
    /// Of these, how many the server kept for later, where that has a price of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of the reply, thinking included.
    pub completion_tokens: Option<u64>,
    /// Of these, how many were thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Usage {
    /// Both together; a count that one of them does not have stays the other's.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            prompt_tokens: sum(self.prompt_tokens, other.prompt_tokens),
            cached_tokens: sum(self.cached_tokens, other.cached_tokens),
            cache_write_tokens: sum(self.cache_write_tokens, other.cache_write_tokens),
            completion_tokens: sum(self.completion_tokens, other.completion_tokens),
            reasoning_tokens: sum(self.reasoning_tokens, other.reasoning_tokens),
        }
    }
}

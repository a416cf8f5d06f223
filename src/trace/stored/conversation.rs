//! What was said, by what rules, and how it ended.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Form, forms};
use crate::{deliberation, message, model, verdict};

forms! {
    /// The bounds of a deliberation.
    struct Limits of deliberation::Limits {
        /// Turns in which the model may look or answer; in the last one it must answer.
        turns: u32,
        /// Tool calls over all turns.
        tool_calls: u32,
        /// Tokens of all requests and replies, as the server counts them.
        tokens: Option<u64>,
        /// How often a reply that cannot be read is answered with what was wrong.
        repairs: u32,
    }

    /// What the tokens of a model cost, in US dollars per million.
    struct Price of model::Price {
        /// Tokens of a request.
        input: f64,
        /// Tokens of a request that the server had kept from before; without it, as the others.
        cached_input: Option<f64>,
        /// Tokens of a request that the server keeps for later; without it, as the others.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_write: Option<f64>,
        /// Tokens of a reply, thinking included.
        output: f64,
        /// What a long request costs instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        long: Option<LongPrice>,
        /// What everything costs that is sent in a batch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<Rates>,
        /// When this was written down.
        written: Option<String>,
    }

    /// What tokens cost, in US dollars per million.
    struct Rates of model::Rates {
        /// Tokens of a request.
        input: f64,
        /// Those that the server had kept from before.
        cached_input: Option<f64>,
        /// Those that the server keeps for later.
        cache_write: Option<f64>,
        /// Tokens of a reply.
        output: f64,
    }

    /// What a long request costs, in US dollars per million.
    struct LongPrice of model::LongPrice {
        /// A request of more tokens than this is long.
        above: u64,
        /// Tokens of the request.
        input: f64,
        /// Those that the server had kept from before.
        cached_input: Option<f64>,
        /// Those that the server keeps for later.
        cache_write: Option<f64>,
        /// Tokens of the reply.
        output: f64,
    }

    /// How a model calls tools.
    #[serde(rename_all = "lowercase")]
    enum Dialect of message::Dialect {
        /// The server's function calling.
        Native,
        /// `<tool_call>` tags in the text.
        Tags,
    }

    /// Whether the model may call tools in this turn.
    #[serde(rename_all = "lowercase")]
    enum ToolChoice of message::ToolChoice {
        /// It decides.
        Auto,
        /// The tools stay declared, but may not be chosen.
        None,
    }

    /// How a picture is encoded.
    #[serde(rename_all = "lowercase")]
    enum Media of message::MediaType {
        /// Lossless.
        Png,
        /// Lossy, smaller.
        Jpeg,
    }

    /// A tool that the model wants to use.
    struct ToolCall of message::ToolCall {
        /// The server's id of the call in the native form; empty in the tags form.
        id: String,
        /// The name of the tool, as the model wrote it.
        name: String,
        /// The arguments, as the model wrote them.
        arguments: Value,
        /// The form in which it came and must be answered.
        form: Dialect,
    }

    /// The form of a server's requests and replies.
    #[serde(rename_all = "lowercase")]
    #[derive(Default)]
    enum Wire of message::Wire {
        /// OpenAI's chat completions.
        #[default]
        Chat,
        /// OpenAI's Responses.
        Responses,
        /// Anthropic's Messages.
        Messages,
    }

    /// Tokens. What a server did not count is unknown, not 0.
    #[derive(Default)]
    struct Usage of message::Usage {
        /// Tokens of the request.
        prompt_tokens: Option<u64>,
        /// Of these, how many the server had kept from before.
        cached_tokens: Option<u64>,
        /// Of these, how many the server kept for later, where that has a price of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_write_tokens: Option<u64>,
        /// Tokens of the reply, thinking included.
        completion_tokens: Option<u64>,
        /// Of these, how many were thinking.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_tokens: Option<u64>,
    }

    /// An attempt that came to nothing.
    struct FailedAttempt of model::FailedAttempt {
        /// Counted from 1.
        attempt: u32,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// What happened, without secrets.
        error: String,
        /// How long we wait before the next attempt; absent if there is none.
        retry_after_ms: Option<u64>,
    }

    /// What a judge found, and what that is worth.
    struct Verdict of verdict::Verdict {
        /// One of the criterion's labels; absent where the answer has several keys.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
        /// What was answered for each key of the criterion; empty where the answer is a label.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        values: BTreeMap<String, Value>,
        /// What it is worth, on the criterion's scale.
        score: f64,
    }
}

/// The end of a judgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub(crate) enum Outcome {
    /// The judge gave an answer.
    Verdict(Verdict),
    /// The model would not, or could not, answer in the form asked.
    Abstained {
        /// Why.
        reason: String,
    },
    /// The server, a budget or a filter prevented an answer.
    Failed {
        /// Why.
        reason: String,
    },
    /// There was nothing to judge: no edited picture, or one that cannot be read.
    Missing {
        /// Why.
        reason: String,
    },
}

impl Form<verdict::Outcome> for Outcome {
    fn of(it: verdict::Outcome) -> Self {
        match it {
            verdict::Outcome::Verdict(verdict) => Self::Verdict(Form::of(verdict)),
            verdict::Outcome::Abstained { reason } => Self::Abstained { reason },
            verdict::Outcome::Failed { reason } => Self::Failed { reason },
            verdict::Outcome::Missing { reason } => Self::Missing { reason },
        }
    }

    fn back(self) -> verdict::Outcome {
        match self {
            Self::Verdict(verdict) => verdict::Outcome::Verdict(verdict.back()),
            Self::Abstained { reason } => verdict::Outcome::Abstained { reason },
            Self::Failed { reason } => verdict::Outcome::Failed { reason },
            Self::Missing { reason } => verdict::Outcome::Missing { reason },
        }
    }
}

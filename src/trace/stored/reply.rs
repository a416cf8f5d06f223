//! A reply as it is stored: the server's own message, and what is known besides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::{Usage, Wire};
use super::{Form, both_ways};
use crate::message::{self, Served};
use crate::wire;

/// What a model said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reply {
    /// The assistant message as the server sent it, after `repairs`.
    pub(crate) message: Value,
    /// In which form the message is; absent for chat completions.
    #[serde(default, skip_serializing_if = "is_chat")]
    pub(crate) wire: Wire,
    /// What had to be mended so that the message can be sent back.
    pub(crate) repairs: Vec<String>,
    /// Why the server stopped, in its own word.
    pub(crate) finish_reason: Option<String>,
    /// Tokens, where the server counts them.
    pub(crate) usage: Usage,
    /// The model that the server says it used.
    pub(crate) model: Option<String>,
    /// The server's name for the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// What the server says that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) system_fingerprint: Option<String>,
    /// How it was served: ordinary, in a batch, with priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service_tier: Option<String>,
    /// The server's name for the request, from the headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

fn is_chat(wire: &Wire) -> bool {
    *wire == Wire::Chat
}

impl Form<message::Reply> for Reply {
    /// What it says follows from the message.
    fn of(it: message::Reply) -> Self {
        let message::Reply { said: _, message, wire, repairs, finish_reason, usage, served } = it;
        let Served { model, id, system_fingerprint, service_tier, request_id } = served;
        let (wire, usage) = (Form::of(wire), Form::of(usage));
        Self {
            message,
            wire,
            repairs,
            finish_reason,
            usage,
            model,
            id,
            system_fingerprint,
            service_tier,
            request_id,
        }
    }

    fn back(self) -> message::Reply {
        let Self { message, repairs, finish_reason, model, id, .. } = self;
        let Self { system_fingerprint, service_tier, request_id, .. } = self;
        let (wire, usage) = (self.wire.back(), self.usage.back());
        let served = Served { model, id, system_fingerprint, service_tier, request_id };
        let said = wire::said(wire, &message);
        message::Reply { said, message, wire, repairs, finish_reason, usage, served }
    }
}

both_ways!(Reply, message::Reply);

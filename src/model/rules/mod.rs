//! The offline judge: a deterministic policy that drives the same loop with the same tools.
//!
//! It is a baseline, not a judge to trust. It sees what any judge sees: the pictures as they were
//! sent and the data of the observations; never the truth, a file name or an editor's name.

use serde_json::{Value, json};

use super::{ChatModel, FailedAttempt, ModelError};
use crate::message::{Message, Reply, Request, ToolChoice, Usage};

/// The offline judge.
#[derive(Debug, Clone, Default)]
pub struct Rules {}

impl ChatModel for Rules {
    async fn ask(
        &self,
        request: &Request,
        _on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let message = decide(request)
            .ok_or_else(|| ModelError::Refused("the offline judge knows only IF and VC".into()))?;
        Ok(Reply {
            message,
            repairs: Vec::new(),
            finish_reason: Some("stop".to_owned()),
            usage: Usage::default(),
            model: Some("rules".to_owned()),
        })
    }
}

fn decide(request: &Request) -> Option<Value> {
    let task = request.messages.iter().find_map(|message| match message.as_ref() {
        Message::User { data, .. } if data.is_object() => Some(data),
        _ => None,
    })?;
    let seen = request.messages.iter().rev().find_map(|message| match message.as_ref() {
        Message::Observations { observations, .. } => Some(observations),
        _ => None,
    });
    let may_look = !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto;
    if seen.is_none() && may_look {
        return Some(call("I compare the two pictures first.", "localize_differences", json!({})));
    }
    let regions = seen?.first()?.data["regions"].as_array().map_or(0, Vec::len);
    let label = match (task["criterion"].as_str()?, regions) {
        ("if", 0) => "Localization Failure",
        ("if", _) => "Flawless Execution",
        ("vc", 0 | 1) => "Perfect Consistency",
        ("vc", 2) => "Single Anomaly",
        ("vc", _) => "Multiple Anomalies",
        _ => return None,
    };
    let text = format!(
        "<Start Thinking>{regions} regions differ.</Start Thinking>\n<Start Final Answer>{label}</Start Final Answer>"
    );
    Some(json!({ "role": "assistant", "content": text }))
}

fn call(thought: &str, name: &str, arguments: Value) -> Value {
    json!({
        "role": "assistant",
        "content": thought,
        "tool_calls": [{
            "id": "call_1",
            "type": "function",
            "function": { "name": name, "arguments": arguments.to_string() },
        }],
    })
}

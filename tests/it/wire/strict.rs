//! Servers that refuse exactly what the hosted ones of today refuse: the default command gets its
//! verdicts from each of them, with tools and without, and no request of it is refused.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::command::{deeplook, json as printed, pair, stderr};
use super::server::{Arrived, Server, Step};

const LABEL: &str = "<Start Final Answer>Flawless Execution</Start Final Answer>";

/// Why a request is refused.
type Refused = String;

macro_rules! demand {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn only_fields(object: &Value, known: &[&str], place: &str) -> Result<(), Refused> {
    for name in object.as_object().into_iter().flat_map(|fields| fields.keys()) {
        demand!(
            known.contains(&name.as_str()),
            "Unknown name \"{name}\" at '{place}': Cannot find field."
        );
    }
    Ok(())
}

/// What every server takes for a schema, and Gemini nothing else.
fn plain_schema(schema: &Value) -> Result<(), Refused> {
    let known = ["type", "properties", "required", "items", "enum", "description"];
    only_fields(schema, &known, "tools.function.parameters")?;
    demand!(
        schema["type"].is_string(),
        "Proto field is not repeating, cannot start list: {schema}"
    );
    if let Some(items) = schema.get("items") {
        plain_schema(items)?;
    }
    schema["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .try_for_each(|(_, field)| plain_schema(field))
}

fn data_url(url: &str) -> bool {
    url.starts_with("data:image/png;base64,") || url.starts_with("data:image/jpeg;base64,")
}

/// Whether every call has one answer before anything else is said.
fn answered(open: &mut Vec<String>, id: &str) -> Result<(), Refused> {
    let place = open.iter().position(|open| open == id);
    demand!(place.is_some(), "No tool call found for {id:?}");
    open.remove(place.unwrap());
    Ok(())
}

/// Chat completions; `fields` are the parameters that the server knows.
fn chat(body: &Value, fields: &[&str]) -> Result<bool, Refused> {
    only_fields(body, fields, "body")?;
    let tools = list(&body["tools"]);
    demand!(body.get("tools").is_none() || !tools.is_empty(), "tools is empty");
    demand!(body.get("tool_choice").is_none() || !tools.is_empty(), "tool_choice without tools");
    for tool in tools {
        only_fields(tool, &["type", "function"], "tools")?;
        only_fields(&tool["function"], &["name", "description", "parameters"], "tools.function")?;
        plain_schema(&tool["function"]["parameters"])?;
    }
    let (mut open, mut looked) = (Vec::new(), false);
    for message in list(&body["messages"]) {
        let role = text(message, "role");
        if role == "tool" {
            demand!(message["content"].is_string(), "Invalid content of a tool message");
            answered(&mut open, text(message, "tool_call_id"))?;
            looked = true;
            continue;
        }
        demand!(open.is_empty(), "tool_calls must be followed by tool messages: {open:?}");
        for part in list(&message["content"]) {
            match text(part, "type") {
                "text" => demand!(!text(part, "text").is_empty(), "empty text"),
                "image_url" => {
                    only_fields(&part["image_url"], &["url", "detail"], "image_url")?;
                    demand!(data_url(text(&part["image_url"], "url")), "Invalid image_url");
                }
                other => return Err(format!("Invalid type {other:?}")),
            }
        }
        open =
            list(&message["tool_calls"]).iter().map(|call| text(call, "id").to_owned()).collect();
        for call in list(&message["tool_calls"]) {
            // Gemini 3 refuses a conversation without the signature that it gave.
            let signature = &call["extra_content"]["google"]["thought_signature"];
            demand!(signature == "c2lnbmVk", "Function call is missing a thought_signature");
        }
    }
    demand!(open.is_empty(), "an assistant message with 'tool_calls' must be answered");
    Ok(looked)
}

fn completion(body: &Value, looked: bool) -> Value {
    let message = match body.get("tools").is_some() && !looked {
        true => json!({"role": "assistant", "content": null, "tool_calls": [{
            "id": "call_9", "type": "function",
            "function": {"name": "localize_differences", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
        }]}),
        false => json!({"role": "assistant", "content": LABEL}),
    };
    json!({
        "id": "chatcmpl-1", "model": "served", "system_fingerprint": "fp_1", "service_tier": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                  "completion_tokens_details": {"reasoning_tokens": 7}},
    })
}

fn gemini(arrived: &Arrived) -> Result<Value, Refused> {
    demand!(arrived.head.starts_with("POST /v1/chat/completions "), "not found");
    demand!(arrived.head.contains("authorization: Bearer test-key-0123456789"), "no key");
    let body = arrived.json();
    let fields = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
        "stream",
        "response_format",
        "reasoning_effort",
        "seed",
    ];
    let looked = chat(&body, &fields)?;
    Ok(completion(&body, looked))
}

/// An older model of OpenAI's, on chat completions.
fn openai_chat(arrived: &Arrived) -> Result<Value, Refused> {
    demand!(arrived.head.starts_with("POST /v1/chat/completions "), "not found");
    let body = arrived.json();
    let fields = [
        "model",
        "messages",
        "tools",
        "tool_choice",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "seed",
        "reasoning_effort",
        "prompt_cache_key",
        "service_tier",
    ];
    let looked = chat(&body, &fields)?;
    let pictures =
        list(&body["messages"][1]["content"]).iter().filter(|part| part["type"] == "image_url");
    for picture in pictures {
        demand!(
            picture["image_url"]["detail"] == "high",
            "small targets vanish: {}",
            picture["image_url"]["detail"]
        );
    }
    Ok(completion(&body, looked))
}

/// A model of OpenAI's that refuses tools on chat completions.
fn openai(arrived: &Arrived) -> Result<Value, Refused> {
    let body = arrived.json();
    if arrived.head.starts_with("POST /v1/chat/completions ") {
        let refused = body.get("tools").is_some() && body["reasoning_effort"] != "none";
        demand!(
            !refused,
            "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use \
             function tools, use /v1/responses or set reasoning_effort to 'none'."
        );
    }
    responses(arrived, "authorization: Bearer test-key-0123456789")
}

/// Azure's own address and header for the same.
fn azure(arrived: &Arrived) -> Result<Value, Refused> {
    responses(arrived, "api-key: test-key-0123456789")
}

fn responses(arrived: &Arrived, key: &str) -> Result<Value, Refused> {
    demand!(arrived.head.starts_with("POST /v1/responses "), "not found: {}", arrived.head);
    demand!(arrived.head.contains(key), "no key");
    let body = arrived.json();
    let known = [
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "reasoning",
        "store",
        "include",
        "prompt_cache_key",
        "service_tier",
        "temperature",
        "top_p",
    ];
    only_fields(&body, &known, "body")?;
    demand!(
        body["store"] == false && !text(&body, "instructions").is_empty(),
        "the rules are missing"
    );
    demand!(
        body["include"] == json!(["reasoning.encrypted_content"]),
        "the reasoning will be lost"
    );
    for tool in list(&body["tools"]) {
        only_fields(tool, &["type", "name", "description", "parameters", "strict"], "tools")?;
        demand!(
            tool["type"] == "function" && tool["strict"] == false,
            "Missing required parameter"
        );
        plain_schema(&tool["parameters"])?;
    }
    let (mut open, mut looked, mut before) = (Vec::new(), false, "");
    for item in list(&body["input"]) {
        let kind = text(item, "type");
        demand!(
            open.is_empty() || kind == "function_call_output",
            "No tool output found for {open:?}"
        );
        let parts = match kind {
            "message" => &item["content"],
            "reasoning" => {
                demand!(*item == reasoning(), "the reasoning came back changed: {item}");
                &Value::Null
            }
            "function_call" => {
                demand!(
                    before == "reasoning",
                    "function_call was provided without its 'reasoning' item"
                );
                open.push(text(item, "call_id").to_owned());
                &Value::Null
            }
            "function_call_output" => {
                answered(&mut open, text(item, "call_id"))?;
                let shown = list(&item["output"]).iter().any(|part| part["type"] == "input_image");
                demand!(shown, "the pictures do not stand in the answer");
                looked = true;
                &item["output"]
            }
            other => return Err(format!("Invalid value: {other:?}")),
        };
        for part in list(parts) {
            match text(part, "type") {
                "input_text" => demand!(!text(part, "text").is_empty(), "empty text"),
                "input_image" => {
                    only_fields(part, &["type", "image_url", "detail"], "input_image")?;
                    demand!(data_url(text(part, "image_url")), "Invalid image_url");
                    demand!(part["detail"] == "high", "small targets vanish");
                }
                other => return Err(format!("Invalid value: {other:?}")),
            }
        }
        before = kind;
    }
    demand!(open.is_empty(), "No tool output found for {open:?}");
    let output = match body.get("tools").is_some() && !looked {
        true => json!([reasoning(), {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "localize_differences",
            "arguments": "{}", "status": "completed",
        }]),
        false => json!([reasoning(), {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": LABEL, "annotations": []}],
        }]),
    };
    Ok(json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.6-2026-08-01",
        "output": output, "error": null, "incomplete_details": null, "service_tier": "default",
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 30},
                  "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 15}, "total_tokens": 120},
    }))
}

fn reasoning() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAAA-sealed",
           "summary": [{"type": "summary_text", "text": "I should look."}], "unknown": [1, 2.5]})
}

fn anthropic(arrived: &Arrived) -> Result<Value, Refused> {
    demand!(arrived.head.starts_with("POST /v1/messages "), "not found");
    demand!(arrived.head.contains("x-api-key: test-key-0123456789"), "authentication_error");
    demand!(
        arrived.head.contains("anthropic-version: 2023-06-01"),
        "anthropic-version: header is required"
    );
    let body = arrived.json();
    let known = [
        "model",
        "max_tokens",
        "system",
        "messages",
        "tools",
        "tool_choice",
        "temperature",
        "thinking",
        "output_config",
        "metadata",
        "stop_sequences",
    ];
    only_fields(&body, &known, "body")?;
    demand!(body["max_tokens"].as_u64().is_some_and(|n| n > 0), "max_tokens: Field required");
    let marks = body.to_string().matches("cache_control").count();
    demand!(
        (2..=4).contains(&marks),
        "A maximum of 4 blocks with cache_control may be provided. Found {marks}."
    );
    for tool in list(&body["tools"]) {
        only_fields(tool, &["name", "description", "input_schema", "cache_control"], "tools")?;
        plain_schema(&tool["input_schema"])?;
    }
    let (mut open, mut looked, mut last): (Vec<String>, bool, &str) = (Vec::new(), false, "");
    for message in list(&body["messages"]) {
        let role = text(message, "role");
        demand!(role != last && (!last.is_empty() || role == "user"), "roles must alternate");
        let blocks = list(&message["content"]);
        demand!(!blocks.is_empty(), "messages: content must not be empty");
        let mut said = false;
        for block in blocks {
            match text(block, "type") {
                "tool_result" => {
                    demand!(role == "user" && !said, "tool_result blocks must come first");
                    answered(&mut open, text(block, "tool_use_id"))?;
                    let shown = list(&block["content"]).iter().any(|part| part["type"] == "image");
                    demand!(shown, "the pictures do not stand in the answer");
                    looked = true;
                    continue;
                }
                "text" => demand!(
                    !text(block, "text").trim().is_empty(),
                    "text content blocks must be non-empty"
                ),
                "image" => {
                    let source = &block["source"];
                    only_fields(block, &["type", "source", "cache_control"], "image")?;
                    demand!(
                        source["type"] == "base64" && source["data"].is_string(),
                        "image: {source}"
                    );
                    let media = text(source, "media_type");
                    demand!(["image/png", "image/jpeg"].contains(&media), "media_type: {media}");
                }
                "thinking" => {
                    demand!(*block == thinking(), "Invalid `signature` in `thinking` block")
                }
                "tool_use" => {
                    demand!(
                        block["input"].is_object(),
                        "tool_use.input: Input should be a valid dictionary"
                    );
                    open.push(text(block, "id").to_owned());
                }
                other => {
                    return Err(format!(
                        "Input tag {other:?} does not match any of the expected tags"
                    ));
                }
            }
            said = role == "user";
        }
        demand!(
            role == "assistant" || open.is_empty(),
            "`tool_use` ids without `tool_result`: {open:?}"
        );
        last = role;
    }
    demand!(last == "user", "the last word is ours");
    let (content, stop) = match body.get("tools").is_some() && !looked {
        true => {
            let call = json!({"type": "tool_use", "id": "toolu_1", "name": "localize_differences", "input": {}});
            (json!([thinking(), call]), "tool_use")
        }
        false => (json!([{"type": "text", "text": LABEL}]), "end_turn"),
    };
    Ok(json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": content,
        "stop_reason": stop, "usage": {"input_tokens": 60, "cache_read_input_tokens": 30,
                                       "cache_creation_input_tokens": 10, "output_tokens": 20},
    }))
}

fn thinking() -> Value {
    json!({"type": "thinking", "thinking": "I should look.", "signature": "EqQBCg=="})
}

/// A strict server as a step of the scripted one.
macro_rules! strict {
    ($($name:ident: $answer:ident),*) => {$(
        fn $name(arrived: &Arrived) -> (u16, Value) {
            match $answer(arrived) {
                Ok(reply) => (200, reply),
                Err(why) => (400, json!({"error": {"message": why, "type": "invalid_request_error", "code": 400}})),
            }
        }
    )*};
}
strict!(strict_gemini: gemini, strict_openai: openai, strict_chat: openai_chat, strict_azure: azure,
        strict_anthropic: anthropic);

#[test]
fn the_default_command_gets_verdicts_from_every_strict_server() {
    let (folder, case) = pair();
    type Answering = fn(&Arrived) -> (u16, Value);
    let servers: [(&str, &str, &str, Answering); 5] = [
        ("gemini", "gemini-3.1-pro-preview", "GEMINI_API_KEY", strict_gemini),
        ("openai", "gpt-5.6", "OPENAI_API_KEY", strict_openai),
        ("openai", "gpt-4.1", "OPENAI_API_KEY", strict_chat),
        ("azure", "gpt-5.4", "AZURE_OPENAI_API_KEY", strict_azure),
        ("anthropic", "claude-opus-5", "ANTHROPIC_API_KEY", strict_anthropic),
    ];
    let mut wires = HashSet::new();
    for (profile, model, key, answering) in servers {
        for mode in ["tool", "plain"] {
            let server = Server::start(vec![Step::Answering(answering)]);
            let output = deeplook(folder.path())
                .env(key, "test-key-0123456789")
                .args([
                    "judge",
                    "source.png",
                    "edited.png",
                    "-i",
                    &case.instruction,
                    "--criterion",
                    "if",
                ])
                .args(["--profile", profile, "--model", model, "--base-url", &server.base_url])
                .args(["--mode", mode, "--json", "--trace", &format!("{profile}-{model}-{mode}")])
                .output()
                .unwrap();
            let said = stderr(&output);
            let judgement = printed(&output)["judgements"][0].clone();
            assert_eq!(judgement["label"], "Flawless Execution", "{profile} {mode}: {said}");
            let turns = if mode == "tool" { 2 } else { 1 };
            assert_eq!((&judgement["turns"], server.arrived().len()), (&json!(turns), turns));
            assert!(said.contains(&format!("profile {profile}")), "{said}");
            assert!(!said.contains("test-key"), "{said}");
            wires.extend(
                said.split("wire ")
                    .nth(1)
                    .and_then(|rest| rest.split_whitespace().next())
                    .map(str::to_owned),
            );
        }
    }
    let expected = ["chat", "responses", "messages"].map(str::to_owned);
    assert_eq!(wires, HashSet::from(expected), "each wire was said");
}

//! What OpenAI's request schema and its checks of a conversation demand, in essence.

use serde_json::Value;

/// Panics where a server as strict as OpenAI would refuse `body`.
#[track_caller]
pub(crate) fn check(body: &Value) {
    assert!(body["model"].is_string());
    let tools = body.get("tools");
    if let Some(tools) = tools {
        let tools = tools.as_array().unwrap();
        assert!(!tools.is_empty(), "tools is empty");
        for tool in tools {
            assert_eq!(tool["type"], "function");
            assert!(tool["function"]["name"].is_string(), "{tool}");
            assert!(tool["function"]["description"].is_string(), "{tool}");
            assert_eq!(tool["function"]["parameters"]["type"], "object", "{tool}");
        }
    }
    assert!(tools.is_some() || body.get("tool_choice").is_none(), "tool_choice without tools");

    let messages = body["messages"].as_array().unwrap();
    assert!(!messages.is_empty());
    assert_ne!(messages[messages.len() - 1]["role"], "assistant", "the last word is ours");
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        let content = &message["content"];
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            assert!(content.as_str().is_some_and(|text| !text.is_empty()), "{message}");
            let id = message["tool_call_id"].as_str().unwrap();
            let place = open.iter().position(|open| *open == id);
            open.remove(place.unwrap_or_else(|| panic!("{id} answers no call")));
            continue;
        }
        assert!(open.is_empty(), "calls without an answer before {role}: {open:?}");
        match role {
            "system" => assert!(content.is_string()),
            "user" => check_content(content),
            "assistant" => open = check_assistant(message),
            other => panic!("unknown role {other}"),
        }
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
}

#[track_caller]
fn check_content(content: &Value) {
    let Some(parts) = content.as_array() else {
        assert!(content.as_str().is_some_and(|text| !text.is_empty()), "{content}");
        return;
    };
    assert!(!parts.is_empty());
    for part in parts {
        match part["type"].as_str().unwrap() {
            "text" => assert!(part["text"].as_str().is_some_and(|text| !text.is_empty())),
            "image_url" => {
                let url = part["image_url"]["url"].as_str().unwrap();
                assert!(
                    url.starts_with("data:image/png;base64,")
                        || url.starts_with("data:image/jpeg;base64,")
                );
            }
            other => panic!("unknown part {other}"),
        }
    }
}

#[track_caller]
fn check_assistant(message: &Value) -> Vec<&str> {
    let Some(calls) = message.get("tool_calls") else {
        assert!(!message["content"].is_null(), "neither content nor calls");
        return Vec::new();
    };
    let calls = calls.as_array().unwrap();
    assert!(!calls.is_empty(), "tool_calls is empty");
    let mut ids = Vec::new();
    for call in calls {
        assert_eq!(call["type"], "function");
        assert!(call["function"]["name"].is_string() && call["function"]["arguments"].is_string());
        let id = call["id"].as_str().unwrap();
        assert!(!id.is_empty() && !ids.contains(&id), "bad id {id:?}");
        ids.push(id);
    }
    ids
}

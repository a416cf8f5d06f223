//! Tool calls, native or in tags.

use serde_json::{Map, Value, json};

use super::sloppy_json::{self, Item};
use super::{elements, excerpt};
use crate::message::{Dialect, ServerCall, ToolCall};

/// Where a call may have the name of its tool, and its arguments.
const NAMES: &[&str] = &["name", "tool", "tool_name", "function", "function_name", "action"];
const ARGUMENTS: &[&str] = &[
    "parameters",
    "arguments",
    "args",
    "params",
    "input",
    "kwargs",
    "action_input",
    "tool_input",
    "tool_arguments",
];
/// Parts of the names of arguments that hold the numbers of a box.
const BOXES: &[&str] = &["box", "region", "coord", "roi"];

/// The calls in the server's own form. One whose arguments cannot be read keeps them as they came:
/// the server waits for an answer to its id.
pub(super) fn native(calls: &[ServerCall], problems: &mut Vec<String>) -> Vec<ToolCall> {
    let mut read = |ServerCall { id, name, arguments: given }: &ServerCall| {
        if name.is_empty() {
            problems.push(format!("the tool call names no tool: {}", excerpt(&given.to_string())));
        }
        let arguments = arguments(name, given.clone(), problems);
        ToolCall { id: id.clone(), name: name.clone(), arguments, form: Dialect::Native }
    };
    calls.iter().map(&mut read).collect()
}

/// The calls within a `<tool_call>`; `complete` says that its closing tag is there.
pub(super) fn in_tags(text: &str, complete: bool, problems: &mut Vec<String>) -> Vec<ToolCall> {
    let mut first = None;
    let spellings = [
        Some(text.to_owned()),
        unescaped(text),
        without_entities(text),
        with_single_braces(text),
        without_brackets(text),
    ];
    for text in spellings.into_iter().flatten() {
        let attempt = read_calls(&text, complete);
        if attempt.1.is_empty() {
            return attempt.0;
        }
        first.get_or_insert(attempt);
    }
    let (calls, mut unread) = first.unwrap_or_default();
    problems.append(&mut unread);
    calls
}

/// The calls that stand in a text without their tags, as some models write them, and the words
/// before them: JSON objects with name and arguments at the beginning of a line, or elements that
/// name the tool.
pub(super) fn untagged(text: &str) -> Option<(String, Vec<ToolCall>)> {
    let text = MARKS.iter().fold(text.to_owned(), |text, mark| text.replace(mark, "\n"));
    let starts = |line: &&str| {
        let line = line.trim_start();
        line.starts_with(['{', '[']) || elements::names_a_tool(line)
    };
    let lines: Vec<&str> = text.lines().collect();
    let (words, rest) = lines.split_at(lines.iter().position(starts)?);
    let text = rest.join("\n");
    if !elements::names_a_tool(text.trim_start()) {
        let (items, error) = sloppy_json::read_all(&text, false);
        if error.is_some() || !items.iter().all(is_whole_call) {
            return None;
        }
    }
    let (calls, problems) = read_calls(&text, false);
    problems.is_empty().then(|| (words.join("\n"), calls))
}

/// What models set before calls that they write without tags.
const MARKS: &[&str] = &["[TOOL_CALLS]", "<|python_tag|>", "<tools>", "</tools>"];

/// Whether this is a call and nothing else: a name and arguments, or a list of such.
fn is_whole_call(item: &Item) -> bool {
    fn is_call(value: &Value) -> bool {
        match value {
            Value::Array(list) => !list.is_empty() && list.iter().all(is_call),
            Value::Object(object) => {
                let object = object.get("function").and_then(Value::as_object).unwrap_or(object);
                let given = ["parameters", "arguments"].iter().any(|key| object.contains_key(*key));
                given && object.get("name").is_some_and(Value::is_string)
            }
            _ => false,
        }
    }
    matches!(item, Item::Value(value) if is_call(value))
}

fn read_calls(text: &str, complete: bool) -> (Vec<ToolCall>, Vec<String>) {
    let (mut calls, mut problems) = (Vec::new(), Vec::new());
    for call in elements::calls(text) {
        gather(call, 0, &mut calls, &mut problems);
    }
    if !calls.is_empty() {
        return (calls, problems);
    }
    let (items, error) = sloppy_json::read_all(text, complete);
    for item in items {
        match item {
            Item::Value(value) => gather(value, 0, &mut calls, &mut problems),
            Item::Named(_, Value::Object(object)) if name_of(&object).is_some() => {
                gather(Value::Object(object), 0, &mut calls, &mut problems);
            }
            Item::Named(name, given) => calls.push(call(name, given, &mut problems)),
        }
    }
    if let Some(error) = error {
        problems.push(format!("the tool call is not JSON ({error}): {}", excerpt(text)));
    } else if calls.is_empty() && problems.is_empty() {
        problems.push(format!("the tool call is not JSON: {}", excerpt(text)));
    }
    (calls, problems)
}

/// Adds the calls that a value holds: one, a list of them, or either written as a string.
fn gather(value: Value, depth: usize, calls: &mut Vec<ToolCall>, problems: &mut Vec<String>) {
    match value {
        Value::Array(values) if depth < 3 => {
            for value in values {
                gather(value, depth + 1, calls, problems);
            }
        }
        Value::String(text) if depth < 3 => {
            for item in sloppy_json::read_all(&text, true).0 {
                if let Item::Value(value @ (Value::Object(_) | Value::Array(_))) = item {
                    gather(value, depth + 1, calls, problems);
                }
            }
        }
        Value::Object(mut object) => {
            if name_of(&object).is_none()
                && let Some(list) =
                    ["tool_calls", "calls"].iter().find_map(|key| object.remove(*key))
            {
                gather(list, depth + 1, calls, problems);
            } else {
                calls.extend(call_of(object, problems));
            }
        }
        _ => {}
    }
}

/// The name of the tool in an object that is a call, and the key where it stands.
fn name_of(object: &Map<String, Value>) -> Option<(&'static str, &str)> {
    let name = |key: &&'static str| Some((*key, object.get(*key)?.as_str()?.trim()));
    NAMES.iter().filter_map(name).find(|(_, name)| !name.is_empty())
}

/// The object with its keys in lower case (`{"Name": …}`), where they are those of a call.
fn with_known_keys(object: Map<String, Value>) -> Map<String, Value> {
    let known = |key: String| {
        let lower = key.to_ascii_lowercase();
        let is_known = NAMES.iter().chain(ARGUMENTS).any(|name| *name == lower);
        if is_known { lower } else { key }
    };
    object.into_iter().map(|(key, value)| (known(key), value)).collect()
}

fn call_of(object: Map<String, Value>, problems: &mut Vec<String>) -> Option<ToolCall> {
    let mut object = with_known_keys(object);
    if let Some((key, name)) = name_of(&object) {
        let name = name.to_owned();
        object.remove(key);
        let given = match ARGUMENTS.iter().find_map(|key| object.remove(*key)) {
            Some(given) => given,
            // {"name": "zoom_in", "bbox": […]}: what stands beside the name are the arguments.
            None => {
                object.retain(|key, _| key != "id" && key != "type");
                Value::Object(object)
            }
        };
        return Some(call(name, given, problems));
    }
    if let Some(Value::Object(function)) = object.remove("function") {
        return call_of(function, problems);
    }
    let only = object.len() == 1;
    match object.iter().next() {
        // {"tool_call": {"name": "zoom_in", "parameters": {…}}}
        Some((_, Value::Object(inner))) if only && is_whole_call(&Item::Value(json!(inner))) => {
            call_of(inner.clone(), problems)
        }
        // {"zoom_in": {…}}
        Some((name, Value::Object(given))) if only && !ARGUMENTS.contains(&name.as_str()) => {
            Some(call(name.clone(), Value::Object(given.clone()), problems))
        }
        _ => {
            let shown = Value::Object(object).to_string();
            problems.push(format!("the tool call names no tool: {}", excerpt(&shown)));
            None
        }
    }
}

fn call(name: String, given: Value, problems: &mut Vec<String>) -> ToolCall {
    let arguments = arguments(&name, given, problems);
    ToolCall { id: String::new(), name, arguments, form: Dialect::Tags }
}

/// The arguments as an object, if they can be read as one; else as they came, with a problem.
fn arguments(name: &str, given: Value, problems: &mut Vec<String>) -> Value {
    let read = match given {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(text) if matches!(text.trim(), "" | "null" | "None") => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            // Encoded twice.
            Ok(Value::String(inner)) => sloppy_json::read_object(&inner),
            _ => sloppy_json::read_object(&text),
        }
        .ok_or(Value::String(text)),
        Value::Array(list) if list.is_empty() => Ok(Map::new()),
        other => Err(other),
    };
    match read {
        Ok(object) => {
            let mut object = unwrapped(name, object);
            for (key, value) in &mut object {
                if BOXES.iter().any(|part| key.to_ascii_lowercase().contains(part)) {
                    read_numbers(value);
                }
            }
            Value::Object(object)
        }
        Err(raw) => {
            let shown = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
            let shown = excerpt(&shown);
            problems
                .push(format!("the arguments of {} are not a JSON object: {shown}", excerpt(name)));
            raw
        }
    }
}

/// The arguments themselves, where the whole call was put in their place:
/// `{"name": "zoom_in", "parameters": {…}}`.
fn unwrapped(name: &str, mut object: Map<String, Value>) -> Map<String, Value> {
    for key in ["parameters", "arguments"] {
        let others = object.iter().filter(|(other, _)| *other != key);
        let same_tool = |(key, value): (&String, &Value)| key == "name" && value == name;
        if others.clone().all(same_tool)
            && let Some(Value::Object(inner)) = object.get_mut(key)
        {
            return std::mem::take(inner);
        }
    }
    object
}

/// Makes a list of numbers of "[1, 2, 3, 4]", "1, 2, 3, 4", ["1", "2", "3", "4"] and [[1, 2], [3, 4]].
fn read_numbers(value: &mut Value) {
    let numbers: Option<Vec<Value>> = match value {
        Value::String(text) => {
            let inner = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
            let parts = inner.split([',', ' ', ';']).map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| sloppy_json::number(part).map(Value::Number)).collect()
        }
        Value::Array(list) => list
            .iter()
            .flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice))
            .map(|value| match value {
                Value::Number(_) => Some(value.clone()),
                Value::String(text) => sloppy_json::number(text.trim()).map(Value::Number),
                _ => None,
            })
            .collect(),
        _ => None,
    };
    if let Some(numbers) = numbers.filter(|numbers| numbers.len() > 1) {
        *value = Value::Array(numbers);
    }
}

/// The text without one level of escapes, if it has any: `{\"name\": …}`.
fn unescaped(text: &str) -> Option<String> {
    text.contains("\\\"").then(|| {
        text.replace("\\\\", "\u{0}")
            .replace("\\\"", "\"")
            .replace("\\n", "\n")
            .replace('\u{0}', "\\")
    })
}

/// The text with single braces, if it doubles them as a template does: `{{"name": …}}`.
fn with_single_braces(text: &str) -> Option<String> {
    text.contains("{{").then(|| text.replace("{{", "{").replace("}}", "}"))
}

/// The text without the brackets of a list, if it has them: `[zoom_in(…)]`.
fn without_brackets(text: &str) -> Option<String> {
    text.trim().strip_prefix('[')?.strip_suffix(']').map(str::to_owned)
}

/// The text without HTML entities, if it has any: `{&quot;name&quot;: …}`.
fn without_entities(text: &str) -> Option<String> {
    let has = ["&quot;", "&#34;", "&#39;", "&apos;"].iter().any(|entity| text.contains(entity));
    has.then(|| {
        let text = text.replace("&quot;", "\"").replace("&#34;", "\"").replace("&#39;", "'");
        text.replace("&apos;", "'").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    })
}

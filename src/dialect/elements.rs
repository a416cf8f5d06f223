//! Tool calls in elements, as some models were taught to write them:
//!
//! - `<function=zoom_in><parameter=bbox>[1, 2, 3, 4]</parameter></function>`
//! - `<invoke name="zoom_in"><parameter name="bbox">[1, 2, 3, 4]</parameter></invoke>`
//! - `zoom_in<arg_key>bbox</arg_key><arg_value>[1, 2, 3, 4]</arg_value>`
//! - `<name>zoom_in</name><parameters>{"bbox": [1, 2, 3, 4]}</parameters>`
//! - `<zoom_in>{"bbox": [1, 2, 3, 4]}</zoom_in>`

use serde_json::{Map, Value, json};

use super::sloppy_json;

/// An element and what stands around it.
struct Element<'a> {
    before: &'a str,
    name: &'a str,
    /// What follows `=` in its opening tag, without quotes.
    value: Option<&'a str>,
    inner: &'a str,
    after: &'a str,
}

/// The first element of a text; closing tags before it are passed over. One that nobody closed goes
/// on to the end.
fn element(text: &str) -> Option<Element<'_>> {
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('<')?;
        let (head, after) = after.split_once('>')?;
        let end = head.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(head.len());
        let (name, attributes) = head.split_at(end);
        if name.is_empty() {
            rest = after;
            continue;
        }
        let value = attributes.split_once('=').map(|(_, value)| value.trim());
        let value = value.map(|value| value.trim_matches(['"', '\'']));
        let (inner, after) = after.split_once(&format!("</{name}>")).unwrap_or((after, ""));
        return Some(Element { before, name, value, inner, after });
    }
}

fn elements(text: &str) -> impl Iterator<Item = Element<'_>> {
    std::iter::successors(element(text), |before| element(before.after))
}

/// Whether a text begins with an element that names a tool and can be nothing but a call.
pub(super) fn names_a_tool(text: &str) -> bool {
    ["<function=", "<function name=", "<invoke name="].iter().any(|start| text.starts_with(start))
}

/// The calls of a text that consists of elements, as objects with `name` and `parameters`.
pub(super) fn calls(text: &str) -> Vec<Value> {
    let call = |name: &str, given: Value| json!({"name": name.trim(), "parameters": given});
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if !text.trim_start().starts_with('<') {
        let Some(first) = element(text).filter(|first| first.name == "arg_key") else {
            return Vec::new();
        };
        let name = first.before.trim();
        return if is_name(name) { vec![call(name, pairs(text))] } else { Vec::new() };
    }
    let mut calls = Vec::new();
    let mut named = None;
    for element in elements(text) {
        match (element.name, element.value) {
            ("function" | "invoke", Some(tool)) => calls.push(call(tool, given(element.inner))),
            ("name" | "tool_name", None) => named = Some(element.inner),
            ("parameters" | "arguments", None) => {
                calls.extend(named.take().map(|name| call(name, given(element.inner))));
            }
            (tool, None) if element.inner.trim_start().starts_with('{') => {
                let given = given(element.inner);
                let whole = given.get("name").is_some();
                calls.push(if whole { given } else { call(tool, given) });
            }
            _ => {}
        }
    }
    calls
}

/// `<arg_key>` and `<arg_value>` in turn.
fn pairs(text: &str) -> Value {
    let mut object = Map::new();
    let mut key = None;
    for element in elements(text) {
        match (element.name, key.take()) {
            ("arg_key", _) => key = Some(element.inner.trim().to_owned()),
            ("arg_value", Some(key)) => {
                object.insert(key, value(element.inner));
            }
            _ => {}
        }
    }
    Value::Object(object)
}

/// Arguments: a JSON object, or an element for each.
fn given(text: &str) -> Value {
    let text = text.trim();
    if text.starts_with('{') {
        return sloppy_json::read_object(text).map_or_else(|| json!(text), Value::Object);
    }
    let argument = |e: Element<'_>| (e.value.unwrap_or(e.name).to_owned(), value(e.inner));
    Value::Object(elements(text).map(argument).collect())
}

/// JSON, or else text.
fn value(text: &str) -> Value {
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

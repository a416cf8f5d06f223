//! Answers with several keys: the last JSON object of a reply that has any of them.
//!
//! It may be fenced or bare, in the final answer's tags, after them, or without any; keys are read
//! regardless of case, spaces, hyphens and underscores, and a value may stand in an object beside its
//! reason. What is missing, forbidden or said twice in different ways is a problem, never a guess.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::sloppy_json::{self, Objects};
use super::tags::{Kind, Section};
use super::{excerpt, labels};
use crate::answer::{KeyForm, plain};

/// Names under which a value stands in an object of its own, beside its reason.
const VALUES: &[&str] = &["score", "value", "answer", "rating", "result", "label", "verdict"];
/// Deeper values are not looked for.
const DEEPEST: usize = 6;

/// What a reply says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Keyed {
    /// Nothing about the keys.
    Absent,
    /// Something that cannot be taken for an answer: why.
    Unclear(Vec<String>),
    /// A value for each key.
    Given(BTreeMap<String, Value>),
}

/// The answer of a reply. The object that it stands in is taken out of its section, and its words
/// about reasons are returned.
pub(super) fn answer(sections: &mut [Section], keys: &[KeyForm]) -> (Keyed, Option<String>) {
    let names: Vec<String> = keys.iter().flat_map(names_of).collect();
    let readable = |section: &Section| matches!(section.kind, Kind::Free | Kind::Answer);
    let places = (0..sections.len()).rev().filter(|place| readable(&sections[*place]));
    let last = places.filter_map(|place| Some((place, last_of(&sections[place], &names)?))).next();
    let Some((place, last)) = last else { return (Keyed::Absent, None) };
    let unclear = |problem: String| (Keyed::Unclear(vec![problem]), None);
    let said_later = sections[place + 1..]
        .iter()
        .any(|later| later.kind == Kind::Answer && !labels::is_placeholder(&later.text));
    if said_later {
        let problem = "the final answer holds no JSON object: write the object there";
        return unclear(problem.to_owned());
    }
    let (start, end, object) = match last {
        Ok(found) => found,
        Err(why) => return unclear(format!("the last JSON object cannot be read: {why}")),
    };
    let text = &mut sections[place].text;
    text.replace_range(with_fences(text, start, end), "");
    let mut problems = Vec::new();
    let mut values = BTreeMap::new();
    for key in keys {
        match value_of(&object, key) {
            Ok(value) => drop(values.insert(key.name.clone(), value)),
            Err(problem) => problems.push(problem),
        }
    }
    let keyed = if problems.is_empty() { Keyed::Given(values) } else { Keyed::Unclear(problems) };
    (keyed, reasons(&object))
}

/// Says what was expected.
pub(super) fn expected(keys: &[KeyForm]) -> String {
    let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
    format!("there is no JSON object with the keys {}", names.join(", "))
}

/// The place of an object together with the fences around it.
fn with_fences(text: &str, start: usize, end: usize) -> Range<usize> {
    let before = text[..start].trim_end();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let after = text[end..].trim_start();
    match super::is_fence(&before[line..]) && after.starts_with("```") {
        true => line..text.len() - after.trim_start_matches('`').len(),
        false => start..end,
    }
}

/// An object, and where it begins and ends.
type Found = (usize, usize, Map<String, Value>);

/// The last object of a section that is about the keys, or why it cannot be read: a broken last word
/// is not replaced by an earlier one.
fn last_of(section: &Section, names: &[String]) -> Option<Result<Found, &'static str>> {
    let complete = section.kind == Kind::Answer && section.closed;
    let Objects { mut read, broken } = sloppy_json::objects(&section.text, complete);
    read.retain(|(.., object)| mentions(object, names, 0));
    let last = read.pop();
    let end = last.as_ref().map_or(0, |(_, end, _)| *end);
    match broken.iter().find(|(start, _)| *start >= end) {
        Some((start, why)) if seems_to_mention(&section.text[*start..], names) => Some(Err(why)),
        _ => last.map(Ok),
    }
}

/// The plain names by which a key is recognised.
fn names_of(key: &KeyForm) -> impl Iterator<Item = String> + '_ {
    let own = key.at.is_empty().then_some(&key.name);
    own.into_iter().chain(key.at.first()).map(|name| plain(name))
}

fn mentions(object: &Map<String, Value>, names: &[String], depth: usize) -> bool {
    depth < DEEPEST
        && object.iter().any(|(key, value)| {
            names.contains(&plain(key))
                || value.as_object().is_some_and(|inner| mentions(inner, names, depth + 1))
        })
}

/// Whether a text that is no object has one of the names right before a colon.
fn seems_to_mention(text: &str, names: &[String]) -> bool {
    let before = |piece: &str| {
        let last: String = piece.trim_end().trim_end_matches(['"', '\'', '`', '”', '’']).to_owned();
        let last = plain(&last);
        names.iter().any(|name| last.ends_with(name.as_str()))
    };
    let pieces: Vec<&str> = text.split([':', '：', '=']).collect();
    pieces.split_last().is_some_and(|(_, before_colons)| before_colons.iter().any(|p| before(p)))
}

/// The value of a key, in its canonical spelling; the error is for the model.
fn value_of(object: &Map<String, Value>, key: &KeyForm) -> Result<Value, String> {
    let name = &key.name;
    let mut places = Vec::new();
    let (first, rest) = match key.at.split_first() {
        Some((first, rest)) => (first, rest),
        None => (name, &[][..]),
    };
    find(object, &plain(first), 0, &mut places);
    let mut given: Vec<&Value> = Vec::new();
    for place in places {
        let inner = rest.iter().try_fold(place, |place, step| {
            let step = plain(step);
            place.as_object()?.iter().find(|(key, _)| plain(key) == step).map(|(_, value)| value)
        });
        given.extend(inner.and_then(own_value));
    }
    let Some(one) = given.first() else { return Err(format!("{name} is missing")) };
    let allowed = |value: &Value| allowed(value, &key.values);
    let Some(value) = allowed(one) else {
        let shown = excerpt(&one.as_str().map_or_else(|| one.to_string(), str::to_owned));
        let values: Vec<String> = key.values.iter().map(text_of).collect();
        return Err(format!("{name} is {shown}, and must be one of {}", values.join(", ")));
    };
    if given.iter().any(|other| allowed(other).as_ref() != Some(&value)) {
        return Err(format!("{name} is given twice, differently"));
    }
    Ok(value)
}

/// All values of this name, at any depth.
fn find<'a>(object: &'a Map<String, Value>, name: &str, depth: usize, places: &mut Vec<&'a Value>) {
    if depth >= DEEPEST {
        return;
    }
    for (key, value) in object {
        if plain(key) == name {
            places.push(value);
        }
        if let Value::Object(inner) = value {
            find(inner, name, depth + 1, places);
        }
    }
}

/// The value itself, or what stands for it in an object beside the reason. An object without one is
/// only what holds others.
fn own_value(value: &Value) -> Option<&Value> {
    let Value::Object(object) = value else { return Some(value) };
    let mut named = object.iter().filter(|(key, _)| VALUES.contains(&plain(key).as_str()));
    let (_, one) = named.next()?;
    let only = named.next().is_none() && !one.is_object();
    Some(if only { one } else { value })
}

/// The allowed value that is meant.
fn allowed(given: &Value, values: &[Value]) -> Option<Value> {
    let only = |is: &dyn Fn(&Value) -> bool| {
        let mut fitting = values.iter().filter(|value| is(value));
        fitting.next().filter(|_| fitting.next().is_none()).cloned()
    };
    let number = |n: f64| only(&|value| value.as_f64() == Some(n));
    match given {
        Value::Number(given) => number(given.as_f64()?),
        Value::Bool(_) => only(&|value| value == given),
        Value::String(text) => {
            let text = text.trim();
            let same = |value: &Value| value.as_str().is_some_and(|v| plain(v) == plain(text));
            let letters = |text: &str| -> String {
                let letters = text.chars().filter(|c| c.is_alphanumeric());
                letters.flat_map(char::to_lowercase).collect()
            };
            let alike = |value: &Value| {
                value.as_str().is_some_and(|v| letters(v) == letters(text))
                    && !letters(text).is_empty()
            };
            only(&same)
                .or_else(|| only(&alike))
                .or_else(|| number(text.parse().ok()?))
                .or_else(|| only(&|value| value.is_boolean() && text_of(value) == plain(text)))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What the object says beside its values.
fn reasons(object: &Map<String, Value>) -> Option<String> {
    fn collect(object: &Map<String, Value>, depth: usize, found: &mut Vec<String>) {
        for (key, value) in object {
            match value {
                Value::Object(inner) if depth < DEEPEST => collect(inner, depth + 1, found),
                Value::String(text) if is_reason(key) => found.push(text.clone()),
                _ => {}
            }
        }
    }
    fn is_reason(key: &str) -> bool {
        const REASONS: &[&str] =
            &["reason", "reasons", "reasoning", "explanation", "thought", "analysis", "rationale"];
        REASONS.contains(&plain(key).as_str())
    }
    let mut found = Vec::new();
    collect(object, 0, &mut found);
    (!found.is_empty()).then(|| found.join("\n"))
}

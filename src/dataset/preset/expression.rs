//! How a preset says where a value stands in a record: `response_a.model_name`, or a text with names
//! in it, `{task}/input/{uid}`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Where a value stands, or several places of which the first that has one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "OneOrMany")]
pub(super) struct Expression(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Expression {
    fn from(given: OneOrMany) -> Self {
        Self(match given {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        })
    }
}

impl Expression {
    /// The value of the first place that has one.
    pub(super) fn value(&self, record: &Map<String, Value>) -> Option<Value> {
        self.0.iter().find_map(|one| match one.contains('{') {
            true => filled(one, record).map(Value::String),
            false => at(record, one).cloned(),
        })
    }

    /// The path of a picture. A place that ends in `?` counts only where the file is there.
    pub(super) fn picture(
        &self,
        record: &Map<String, Value>,
        is_there: &dyn Fn(&str) -> bool,
    ) -> Option<Value> {
        self.0.iter().find_map(|one| {
            let (place, sure) =
                one.strip_suffix('?').map_or((one.as_str(), true), |one| (one, false));
            let value = match place.contains('{') {
                true => filled(place, record).map(Value::String),
                false => at(record, place).cloned(),
            };
            value.filter(|value| sure || value.as_str().is_some_and(is_there))
        })
    }

    /// The same as a text; here what has no names in it stands for itself.
    pub(super) fn text(&self, record: &Map<String, Value>) -> Option<String> {
        self.0.iter().find_map(|one| filled(one, record))
    }

    /// The fields of a record that it speaks of.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|one| match one.contains('{') {
            true => names(one),
            false => vec![one.trim_end_matches('?')],
        })
    }
}

/// The value at `a.b.0`; absent, `null` and blank are the same. In a list of pairs such as
/// `[["text", "…"], ["image", "…"]]` the first part of a pair is its name.
pub(in crate::dataset) fn at<'a>(record: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let found = record.get(path).or_else(|| {
        let mut parts = path.split('.');
        let first = record.get(parts.next()?)?;
        parts.try_fold(first, |value, part| match value {
            Value::Array(items) => match part.parse::<usize>() {
                Ok(place) => items.get(place),
                Err(_) => items.iter().find_map(|item| match item {
                    Value::Array(pair) if pair.len() == 2 && pair[0] == part => pair.get(1),
                    Value::Object(fields) => fields.get(part),
                    _ => None,
                }),
            },
            value => value.get(part),
        })
    });
    found.filter(|value| {
        !value.is_null() && value.as_str().is_none_or(|text| !text.trim().is_empty())
    })
}

/// The text with its names filled in, if all of them have a value that is a text or a number.
fn filled(template: &str, record: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        text.push_str(before);
        match at(record, name)? {
            Value::String(value) => text.push_str(value),
            Value::Number(value) => text.push_str(&value.to_string()),
            _ => return None,
        }
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

fn names(template: &str) -> Vec<&str> {
    let gaps = template.split('{').skip(1);
    gaps.filter_map(|gap| gap.split_once('}')).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_and_texts() {
        let record = json!({"id": 7, "a.b": "x", "a": {"c": ["p", "q"]}, "blank": " ", "none": null,
            "content": [["text", "do"], ["image", "i.png"]], "list": [{"v": 1}]});
        let record = record.as_object().unwrap();
        let value = |one: &str| Expression(vec![one.to_owned()]).value(record);
        assert_eq!(value("a.b"), Some(json!("x")));
        assert_eq!(value("a.c.1"), Some(json!("q")));
        assert_eq!(value("content.image"), Some(json!("i.png")));
        assert_eq!(value("list.v"), Some(json!(1)));
        assert_eq!(value("{id}/{a.c.0}.png"), Some(json!("7/p.png")));
        for none in ["blank", "none", "a.c.2", "{blank}", "{a}", "{id"] {
            assert_eq!(value(none), None, "{none}");
        }
        let picture =
            |one: &str| Expression(vec![one.to_owned()]).picture(record, &|path| path == "7.png");
        assert_eq!(picture("{id}.png?"), Some(json!("7.png")));
        assert_eq!((picture("{id}.jpg?"), picture("{id}.jpg")), (None, Some(json!("7.jpg"))));
        let several = Expression(vec!["{none}".into(), "A".into()]);
        assert_eq!(several.text(record).as_deref(), Some("A"));
        assert_eq!(several.fields().collect::<Vec<_>>(), ["none", "A"]);
    }
}

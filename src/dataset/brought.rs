//! What a benchmark brings beyond two pictures and an instruction: pictures, places and questions of
//! its own, and whatever else it says of a case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use deeplook_tools::PixelBox;
use serde_json::{Map, Value};

use super::boxes::{self, BoxForm};
use super::problem::{shown, shown_json};
use crate::case::{CaseQuestion, Fact, Facts, Named};

/// A longer column is a file in its place, not something that is known of a case.
const LONGEST_FACT: usize = 10_000;

/// The further pictures of a case, by name: `{"NAME": "PATH", …}`.
pub(super) fn pictures(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let form = || format!("it must be {{\"NAME\": \"PATH\", …}}, not {}", shown_json(value));
    let mut pictures = BTreeMap::new();
    for (name, path) in object(value).ok_or_else(form)? {
        match path {
            Value::Null => {}
            Value::String(path) if !name.trim().is_empty() => {
                pictures.insert(name, path);
            }
            _ => return Err(form()),
        }
    }
    Ok(pictures)
}

/// The further places of a case, by name: `{"NAME": [[x1, y1, x2, y2], …], …}`.
pub(super) fn regions(value: &Value) -> Result<Named<Vec<PixelBox>>, String> {
    let form =
        || format!("it must be {{\"NAME\": [[x1, y1, x2, y2], …], …}}, not {}", shown_json(value));
    let mut regions = Named::new();
    for (name, places) in object(value).ok_or_else(form)? {
        let places = boxes::read(&places).map_err(|what| format!("{}: {what}", shown(&name)))?;
        let area = |written: boxes::Written| written.area(BoxForm::Corners);
        regions.insert(name, places.into_iter().map(area).collect());
    }
    Ok(regions)
}

/// The questions about a case: `[{"text": …, "expected": …, "region": [x1, y1, x2, y2]}, …]`.
pub(super) fn questions(value: &Value) -> Result<Vec<CaseQuestion>, String> {
    let form = "it must be a list of {\"text\": …, \"expected\": …, \"region\": [x1, y1, x2, y2]}";
    let list = match value {
        // A cell of a table.
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        value => value.clone(),
    };
    let list = list.as_array().ok_or_else(|| format!("{form}, not {}", shown_json(value)))?;
    let mut questions = Vec::new();
    for (place, one) in list.iter().enumerate() {
        let mut one = one.clone();
        let number = place + 1;
        if let Some(fields) = one.as_object_mut() {
            fields.entry("id").or_insert_with(|| number.to_string().into());
            if let Some(id) = fields.get_mut("id").filter(|id| id.is_number()) {
                *id = id.to_string().into();
            }
        }
        let question: CaseQuestion = serde_json::from_value(one)
            .map_err(|error| format!("question {number}: {error}; {form}"))?;
        if question.text.trim().is_empty() {
            return Err(format!("question {number} asks nothing; {form}"));
        }
        questions.push(question);
    }
    let ids: BTreeSet<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    if ids.len() < questions.len() {
        return Err("two of its questions have the same id".to_owned());
    }
    Ok(questions)
}

/// What the columns `names` of a row say, and the fields of `given`, if it is an object. What is too
/// long is told to `left_out`; `share` has the name of a field once for all cases.
pub(super) fn facts(
    row: &Map<String, Value>,
    names: &[String],
    given: Option<&Value>,
    share: impl Fn(&str) -> Arc<str>,
    mut left_out: impl FnMut(String),
) -> Facts {
    let columns = names.iter().filter_map(|name| Some((name.clone(), row.get(name)?.clone())));
    let given = given.and_then(object).unwrap_or_default();
    let mut facts = Facts::default();
    for (name, value) in columns.chain(given) {
        let Some(fact) = Fact::of(&value) else { continue };
        if fact.text().len() > LONGEST_FACT {
            left_out(format!(
                "the field {} has more than {LONGEST_FACT} bytes and is not kept",
                shown(&name)
            ));
        } else {
            facts.insert(share(&name), fact);
        }
    }
    facts
}

/// An object, or the text of one in a cell of a table.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn questions_get_ids_and_must_ask_something() {
        let asked = questions(
            &json!([{"text": "Is it gone?", "expected": "Yes", "region": [1, 2, 3, 4]}, {"id": 7, "text": "Why?"}]),
        );
        let asked = asked.unwrap();
        assert_eq!((asked[0].id.as_str(), asked[1].id.as_str()), ("1", "7"));
        assert_eq!(asked[0].region, Some(PixelBox::new(1.0, 2.0, 3.0, 4.0)));
        for bad in [
            json!("x"),
            json!([{"text": " "}]),
            json!([{"question": "Is it?"}]),
            json!([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]),
        ] {
            assert!(questions(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn whatever_a_row_says_is_kept_unless_it_is_a_file() {
        let row = json!({"law": "Global", "n": 3, "none": null, "long": "x".repeat(20_000)});
        let names: Vec<String> = row.as_object().unwrap().keys().cloned().collect();
        let mut told = Vec::new();
        let given = json!({"level": 2});
        let facts = facts(
            row.as_object().unwrap(),
            &names,
            Some(&given),
            |name| name.into(),
            |what| told.push(what),
        );
        assert_eq!(json!(facts), json!({"law": "Global", "n": 3, "level": 2}));
        assert!(told.len() == 1 && told[0].contains("\"long\""), "{told:?}");
    }

    #[test]
    fn places_and_pictures_have_names() {
        let places = regions(&json!({"edit_area": [[0, 0, 5, 6]]})).unwrap();
        assert_eq!(places["edit_area"], [PixelBox::new(0.0, 0.0, 5.0, 6.0)]);
        assert_eq!(pictures(&json!("{\"marks\": \"m.png\"}")).unwrap()["marks"], "m.png");
        assert!(pictures(&json!({"marks": 1})).is_err() && regions(&json!([1])).is_err());
    }
}

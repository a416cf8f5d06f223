//! A JSON file that is a list of records, or an object of them. Records are handed on one by one: the
//! file may be much larger than what is in memory.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use super::preset::KEY;
use super::problem::shown;

/// Where the records of a JSON file are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Layout<'a> {
    /// The field that holds the list.
    pub(super) at: Option<&'a str>,
    /// They have names.
    pub(super) keyed: bool,
}

/// Takes each record; a value that is no object goes to it as the error.
type Take<'a> = &'a mut dyn FnMut(Result<Map<String, Value>, String>);

/// Hands every record to `take`. The error says why the file cannot be read, or not any further.
pub(super) fn read(path: &Path, layout: Layout<'_>, take: Take<'_>) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file));
    Records { layout, take }
        .deserialize(&mut reader)
        .and_then(|()| reader.end())
        .map_err(|error| format!("it is not the JSON that was expected: {error}"))
}

struct Records<'a, 'b> {
    layout: Layout<'a>,
    take: Take<'b>,
}

impl<'de> DeserializeSeed<'de> for Records<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Records<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layout {
            Layout { at: Some(at), .. } => write!(f, "an object whose field {at:?} is a list"),
            Layout { keyed: true, .. } => f.write_str("an object of records"),
            _ => f.write_str("a list of records"),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element::<Value>()? {
            (self.take)(object(value));
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            if let Some(at) = self.layout.at {
                if name != at {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                found = true;
                map.next_value_seed(Records { layout: Layout::default(), take: &mut *self.take })?;
            } else if self.layout.keyed {
                found = true;
                let record = object(map.next_value()?).map(|mut record| {
                    record.insert(KEY.to_owned(), name.clone().into());
                    record
                });
                (self.take)(record.map_err(|what| format!("{}: {what}", shown(&name))));
            } else {
                return Err(A::Error::custom(
                    "it is one object, not a list of records; name its layout with --preset",
                ));
            }
        }
        match (found, self.layout.at) {
            (false, Some(at)) => Err(A::Error::custom(format!("it has no field {at:?}"))),
            _ => Ok(()),
        }
    }
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(format!("it is {}, not an object", super::problem::shown_json(&other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, layout: Layout<'_>) -> Result<Vec<String>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut all = Vec::new();
        let take = &mut |record: Result<Map<String, Value>, String>| {
            all.push(record.map_or_else(|what| what, |fields| Value::from(fields).to_string()));
        };
        read(file.path(), layout, take).map(|()| all)
    }

    #[test]
    fn lists_objects_and_lists_in_objects() {
        assert_eq!(records("[{\"a\":1}, 2]", Layout::default()).unwrap()[0], "{\"a\":1}");
        assert!(records("[2]", Layout::default()).unwrap()[0].contains("not an object"));
        let keyed = Layout { keyed: true, ..Layout::default() };
        assert_eq!(records("{\"x\": {\"a\":1}}", keyed).unwrap(), ["{\"_key\":\"x\",\"a\":1}"]);
        let at = Layout { at: Some("pairs"), ..Layout::default() };
        assert_eq!(records("{\"n\": [1], \"pairs\": [{\"a\":1}]}", at).unwrap(), ["{\"a\":1}"]);
        for (text, layout, part) in [
            ("{\"n\": 1}", at, "no field \"pairs\""),
            ("{\"n\": 1}", Layout::default(), "--preset"),
            ("[{\"a\":1}", Layout::default(), "EOF"),
            ("7", Layout::default(), "a list of records"),
            ("[] []", Layout::default(), "trailing"),
        ] {
            let error = records(text, layout).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}

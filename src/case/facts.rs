//! What is known of a case, by name: whatever its benchmark says, and nothing that we must know.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use super::named::{self, Named};

/// A text or a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Fact {
    /// A text.
    Text(String),
    /// A number, as it was written.
    Number(Number),
}

impl Fact {
    /// The fact that a JSON value states; `None` for nothing. Lists and objects are kept as their text.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            Value::String(text) if text.trim().is_empty() => None,
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Number(number) => Some(Self::Number(number.clone())),
            other => Some(Self::Text(other.to_string())),
        }
    }

    /// The fact in words.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<'de> Deserialize<'de> for Fact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Number(number) => Ok(Self::Number(number)),
            other => Err(D::Error::custom(format!("a fact is a text or a number, not {other}"))),
        }
    }
}

/// Facts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(Named<Fact>);

impl Facts {
    /// The type of the instruction, e.g. "Change Color".
    pub const TYPE: &'static str = "type";
    /// A phrase for the object to edit.
    pub const TARGET: &'static str = "target";

    /// The fact of this name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.get(name)
    }

    /// The fact of this name, in words.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name).map(Fact::text)
    }

    /// States a fact; an earlier one of the same name is forgotten.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, fact: impl Into<Fact>) {
        self.0.insert(name, fact.into());
    }

    /// States what is there to state.
    pub fn insert_some(&mut self, name: impl Into<Arc<str>>, fact: Option<impl Into<Fact>>) {
        if let Some(fact) = fact {
            self.insert(name, fact);
        }
    }

    /// Forgets a fact, and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Fact> {
        self.0.remove(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> named::Iter<'_, Fact> {
        self.0.iter()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Facts {
    type Item = (&'a str, &'a Fact);
    type IntoIter = named::Iter<'a, Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<N: Into<Arc<str>>> FromIterator<(N, Fact)> for Facts {
    fn from_iter<I: IntoIterator<Item = (N, Fact)>>(facts: I) -> Self {
        Self(facts.into_iter().collect())
    }
}

/// A condition on facts, written `name=value`: the fact is there and reads so, in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// The fact's name.
    pub name: String,
    /// What it must be.
    pub value: String,
}

impl Condition {
    /// Whether these facts meet it.
    pub fn is_met_by(&self, facts: &Facts) -> bool {
        let same = |fact: &Fact| fact.text().trim().to_lowercase() == self.value.to_lowercase();
        facts.get(&self.name).is_some_and(same)
    }

    /// Whether `facts` meet all of `conditions`. Several of one name are alternatives.
    pub fn all_met(conditions: &[Self], facts: &Facts) -> bool {
        conditions.iter().all(|condition| {
            let alternatives = conditions.iter().filter(|other| other.name == condition.name);
            alternatives.into_iter().any(|one| one.is_met_by(facts))
        })
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err("expected FACT=VALUE, such as level=2".to_owned()),
        }
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts() -> Facts {
        serde_json::from_value(json!({ "law": "Reflection", "level": 2 })).unwrap()
    }

    fn met(conditions: &[&str]) -> bool {
        let conditions: Vec<Condition> = conditions.iter().map(|c| c.parse().unwrap()).collect();
        Condition::all_met(&conditions, &facts())
    }

    #[test]
    fn conditions_of_one_name_are_alternatives_and_of_several_names_all_must_hold() {
        assert!(met(&[]) && met(&["law=reflection"]) && met(&["level=2", "law=Reflection"]));
        assert!(met(&["law=Global", "law=Reflection"]));
        assert!(!met(&["law=Global"]) && !met(&["law=Reflection", "level=3"]));
        assert!(!met(&["kind=x"]), "a fact that is not there meets nothing");
        assert!("law".parse::<Condition>().is_err() && "=x".parse::<Condition>().is_err());
    }

    #[test]
    fn numbers_stay_as_they_were_written_and_what_is_nested_is_kept_as_text() {
        assert_eq!(
            serde_json::to_value(facts()).unwrap(),
            json!({"law": "Reflection", "level": 2})
        );
        assert_eq!(Fact::of(&json!([1, "a"])), Some(Fact::Text("[1,\"a\"]".to_owned())));
        assert_eq!(Fact::of(&json!(true)), Some(Fact::Text("true".to_owned())));
        assert_eq!((Fact::of(&json!(null)), Fact::of(&json!(" "))), (None, None));
        assert!(serde_json::from_value::<Facts>(json!({ "a": {} })).is_err());
    }
}

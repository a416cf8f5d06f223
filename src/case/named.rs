//! Things by name, as many as somebody writes on a line. A sorted list takes a tenth of the room of a map,
//! and the names of a million cases are shared.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;
use std::slice;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Things by name, in the order of their names.
#[derive(Clone, PartialEq, Eq)]
pub struct Named<T>(Vec<(Arc<str>, T)>);

impl<T> Named<T> {
    /// None.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.place(name).ok().map(|place| &self.0[place].1)
    }

    /// Whether there is one of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Adds one; an earlier one of the same name is returned.
    pub fn insert(&mut self, name: impl Into<Arc<str>>, thing: T) -> Option<T> {
        let name = name.into();
        match self.place(&name) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, thing)),
            Err(place) => {
                self.0.insert(place, (name, thing));
                None
            }
        }
    }

    /// Takes one away.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.place(name).ok().map(|place| self.0.remove(place).1)
    }

    /// Takes all away.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> Iter<'_, T> {
        self.0.iter().map(|(name, thing)| (&**name, thing))
    }

    /// Their names.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// All of them, without their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.0.iter().map(|(_, thing)| thing)
    }

    /// Gives back the room that was kept for more.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// All things of a [`Named`].
pub(super) type Iter<'a, T> =
    std::iter::Map<slice::Iter<'a, (Arc<str>, T)>, fn(&'a (Arc<str>, T)) -> (&'a str, &'a T)>;

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T> Index<&str> for Named<T> {
    type Output = T;

    #[expect(clippy::panic, reason = "as with every map: for names that are known to be there")]
    fn index(&self, name: &str) -> &T {
        self.get(name).unwrap_or_else(|| panic!("there is no {name:?}"))
    }
}

impl<N: Into<Arc<str>>, T> FromIterator<(N, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(things: I) -> Self {
        let mut all: Vec<(Arc<str>, T)> =
            things.into_iter().map(|(name, thing)| (name.into(), thing)).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        // The last one of a name counts, as in a map.
        all.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
        all.shrink_to_fit();
        Self(all)
    }
}

impl<T> IntoIterator for Named<T> {
    type Item = (Arc<str>, T);
    type IntoIter = std::vec::IntoIter<(Arc<str>, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Named<T> {
    type Item = (&'a str, &'a T);
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::<String, T>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_map() {
        let pairs = [("b", 1), ("a", 2), ("b", 3), ("", 4), ("ä", 5), ("a", 6)];
        let map: BTreeMap<String, i32> =
            pairs.iter().map(|(name, thing)| ((*name).to_owned(), *thing)).collect();
        let named: Named<i32> = pairs.into_iter().collect();
        let mut inserted = Named::new();
        for (name, thing) in pairs {
            inserted.insert(name, thing);
        }
        assert_eq!(named, inserted);
        let json = serde_json::to_string(&map).unwrap();
        assert_eq!(serde_json::to_string(&named).unwrap(), json);
        assert_eq!(serde_json::from_str::<Named<i32>>(&json).unwrap(), named);
        assert_eq!((named.get("b"), named.get("c"), named["a"]), (Some(&3), None, 6));
        assert_eq!(
            (inserted.remove("b"), inserted.remove("b"), inserted.len()),
            (Some(3), None, 3)
        );
        assert_eq!(schemars::schema_for!(Named<i32>), schemars::schema_for!(BTreeMap<String, i32>));
    }
}

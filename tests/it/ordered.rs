//! JSON as it stands in a file: an edited value is written with its fields in the order of the original,
//! so that nothing but the edit changes its bytes.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The order of fields in some JSON.
pub(super) enum Order {
    Plain,
    List(Vec<Order>),
    Fields(Vec<(String, Order)>),
}

impl Order {
    pub(super) fn of(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    /// `value` in this order; what is new comes last.
    pub(super) fn write(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Fields(fields), Value::Object(object)) => {
                let known = fields.iter().filter_map(|(name, order)| {
                    object.get(name).map(|value| (name, order.write(value)))
                });
                let is_new = |name: &String| !fields.iter().any(|(known, _)| known == name);
                let new = object.iter().filter(|(name, _)| is_new(name));
                let new = new.map(|(name, value)| (name, value.to_string()));
                let text = |(name, value): (&String, String)| {
                    format!("{}:{value}", Value::String(name.clone()))
                };
                format!("{{{}}}", known.chain(new).map(text).collect::<Vec<_>>().join(","))
            }
            (Self::List(orders), Value::Array(items)) => {
                let order = |index: usize| orders.get(index).unwrap_or(&Self::Plain);
                let items = items.iter().enumerate().map(|(i, item)| order(i).write(item));
                format!("[{}]", items.collect::<Vec<_>>().join(","))
            }
            (_, value) => value.to_string(),
        }
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Order;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Order::Fields(fields))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Order, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Order::List(items))
            }

            fn visit_unit<E>(self) -> Result<Order, E> {
                Ok(Order::Plain)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Order, E> {
                Ok(Order::Plain)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Order, E> {
                Ok(Order::Plain)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Order, E> {
                Ok(Order::Plain)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Order, E> {
                Ok(Order::Plain)
            }

            fn visit_str<E>(self, _: &str) -> Result<Order, E> {
                Ok(Order::Plain)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

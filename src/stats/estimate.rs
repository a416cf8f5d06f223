//! A number as it is shown: with its interval, or with the reason why there is none.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::{Interval, Statistic, rounded};

/// A number and how far to trust it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: Statistic,
    /// Its 95 % interval; there is none where resamples say too little.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// A number with its interval; what is undefined has none.
    pub fn new(value: Statistic, interval: Option<Interval>) -> Self {
        Self { value, interval: interval.filter(|_| value.is_ok()) }
    }
}

/// `0.81 [0.70, 0.90]`, or a dash; two decimals unless told otherwise.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        match (self.value, self.interval) {
            (Err(_), _) => f.write_str("–"),
            (Ok(value), None) => f.write_str(&rounded(value, digits)),
            (Ok(value), Some(interval)) => {
                write!(f, "{} {interval:.digits$}", rounded(value, digits))
            }
        }
    }
}

/// A number, `{"value", "low", "high"}`, or null.
impl Serialize for Estimate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.interval) {
            (Err(_), _) => serializer.serialize_none(),
            (Ok(value), None) => serializer.serialize_f64(value),
            (Ok(value), Some(Interval { low, high })) => {
                let mut object = serializer.serialize_struct("Estimate", 3)?;
                object.serialize_field("value", &value)?;
                object.serialize_field("low", &low)?;
                object.serialize_field("high", &high)?;
                object.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Undefined;

    #[test]
    fn as_people_and_machines_read_it() {
        let interval = Some(Interval { low: 0.5, high: 1.0 });
        let full = Estimate::new(Ok(0.814), interval);
        assert_eq!(full.to_string(), "0.81 [0.50, 1.00]");
        assert_eq!(Estimate::new(Ok(-0.004), None).to_string(), "0.00");
        assert_eq!(Estimate::new(Ok(-0.006), None).to_string(), "-0.01");
        assert_eq!(
            serde_json::to_string(&full).unwrap(),
            r#"{"value":0.814,"low":0.5,"high":1.0}"#
        );
        assert_eq!(serde_json::to_string(&Estimate::new(Ok(1.0), None)).unwrap(), "1.0");
        let none = Estimate::new(Err(Undefined::Constant), interval);
        assert_eq!((none.to_string().as_str(), none.interval), ("–", None));
        assert_eq!(serde_json::to_string(&none).unwrap(), "null");
    }
}

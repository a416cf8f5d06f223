//! What settings may be: they come from files that anybody may have written, and end in arithmetic.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Refuses a number that is not in `range`, or is none.
pub(crate) fn within<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{name} is {value}; it must be from {} to {}", range.start(), range.end()))
}

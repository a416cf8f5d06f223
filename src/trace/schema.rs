//! The form of the files of a trace, for other programs.

use schemars::schema_for;
use serde_json::{Value, json};

use super::events::Line;
use super::manifest::{FORMAT, Manifest};

/// The JSON schemas of `manifest.json` and of a line of `events.jsonl`, made from the types.
pub fn schema() -> Value {
    json!({
        "format": FORMAT,
        "manifest.json": schema_for!(Manifest),
        "events.jsonl": schema_for!(Line),
    })
}

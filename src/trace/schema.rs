//! The form of the files of a trace, for other programs.

use schemars::schema_for;
use serde_json::{Value, json};

use super::stored::{FORMAT, Line, Manifest, ResultLine, Run};

/// The JSON schemas of the files of a run, of those of many lines that of a line, made from the
/// stored types.
pub fn schema() -> Value {
    json!({
        "format": FORMAT,
        "manifest.json": schema_for!(Manifest),
        "events.jsonl": schema_for!(Line),
        "results.jsonl": schema_for!(ResultLine),
        "run.json": schema_for!(Run),
    })
}

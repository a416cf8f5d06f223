//! Judges image edits.

pub mod dataset;

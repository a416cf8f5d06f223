//! Judges image edits.

//! Benchmarks on disk, and the one that is drawn here.
//!
//! [`case_file`] holds the records of `cases.jsonl` and `labels.jsonl`; [`draw`] makes a small
//! benchmark whose truth is known because we drew it.

pub mod case_file;
pub mod draw;

//! Judges image edits closely: zooms, compares, and records why.
//!
//! The tools that a judge looks through live in [`deeplook_tools`], re-exported here as [`tools`].

pub mod answer;
pub mod case;
pub mod cli;
pub mod commands;
pub mod dataset;
pub mod dialect;
mod files;
pub mod hash;
pub mod message;
pub mod model;
pub mod prompt;
pub mod verdict;

pub use deeplook_tools as tools;

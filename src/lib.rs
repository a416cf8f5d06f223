//! Judges image edits closely: zooms, compares, and records why.
//!
//! The tools that a judge looks through live in [`deeplook_tools`], re-exported here as [`tools`].

pub mod answer;
pub mod case;
pub mod cli;
pub mod commands;
mod config;
pub mod dataset;
pub mod deliberation;
pub mod dialect;
mod files;
pub mod hash;
pub mod judge;
pub mod message;
pub mod model;
pub mod prompt;
pub mod protocol;
pub mod sending;
pub mod trace;
pub mod transcript;
pub mod verdict;

pub use deeplook_tools as tools;

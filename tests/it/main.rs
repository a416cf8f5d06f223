//! The integration tests, one binary: one module for each part of the project.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop them too")]

mod agreement;
mod command;
mod dataset;
mod experiment;
mod faults;
#[cfg(unix)]
mod interrupted;
mod judging;
mod models;
mod probe;
mod recorded;
mod replay;
mod report;
mod runs;
mod view;
mod wire;

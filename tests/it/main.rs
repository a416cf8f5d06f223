//! The integration tests, one binary: one module for each part of the project.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop them too")]

mod agreement;
mod columns;
mod command;
mod dataset;
mod experiment;
mod faults;
mod foreign;
mod house;
#[cfg(unix)]
mod interrupted;
mod judging;
mod library;
#[cfg(unix)]
mod links;
mod models;
mod ordered;
mod own_criterion;
mod own_tool;
mod probe;
mod received;
mod recorded;
mod replay;
mod report;
mod results;
mod runs;
mod secrets;
mod terminal;
mod toy;
mod view;
mod wire;

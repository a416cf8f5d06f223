//! Judges image edits closely: zooms, compares, and records why.
//!
//! An [`EditCase`] (two pictures and an instruction) goes to a [`Judge`], who asks a model and uses
//! tools until there is a verdict. All of it is recorded: the trace is the evidence.
//!
//! ```
//! use deeplook::{EditCase, Judge, Outcome, RunFolder};
//! # let drawn = deeplook::dataset::draw::case(1, 0)?;
//! # let (source, edited) = (drawn.source, drawn.edits[0].picture.clone());
//! # let folder = tempfile::tempdir()?;
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # runtime.block_on(async {
//! let case = EditCase::new(source, edited, "Change the color of the red mug to blue");
//! let run = RunFolder::new(folder.path());
//!
//! // The offline judge needs no key and no server; `Judge::new` takes any other model.
//! let judged = Judge::offline()?.judge(&case, "if", &run, &|_event| ()).await?;
//!
//! match judged.judgement.outcome.as_ref() {
//!     Some(Outcome::Verdict(verdict)) => println!("{}, worth {}", verdict.in_words(), verdict.score),
//!     other => println!("no verdict: {other:?}"),
//! }
//! for part in &judged.judgement.parts {
//!     println!("{}: {:?}, because of {:?}", part.name, part.reasoning, part.evidence);
//! }
//! println!("trace: {:?}", judged.kept);
//! # assert!(judged.judgement.label().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | start at |
//! |---|---|
//! | judge with a server | [`model::OpenAi`], [`judge::JudgeSettings`] |
//! | change what the model is told | [`prompt::Pack`] |
//! | look with your own eyes | [`tools::Toolbox`], [`tools::difference::compare`] |
//! | judge a whole data set | [`run::Run`], [`run::RunSpec`] |
//! | know what it cost | [`model::Prices`], [`trace::Judgement::cost`] |
//! | read what happened | [`trace::Bundle`], [`trace::reduce`] |
//! | count, compare and doubt | [`stats`], [`trace::read_results`] |
//! | make tables and plots | [`report::Report`] |
//! | try without data | [`dataset::draw`] |

// What is printed goes through `terminal`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod agreement;
pub mod answer;
mod audit;
pub mod case;
mod child;
mod cli;
mod commands;
pub mod comparison;
mod config;
pub mod dataset;
pub mod deliberation;
pub mod dialect;
mod equipment;
pub mod experiment;
mod files;
pub mod hash;
pub mod judge;
pub mod key;
mod logging;
pub mod measure;
pub mod message;
pub mod model;
pub mod probe;
pub mod prompt;
pub mod protocol;
mod random;
mod received;
pub mod replay;
pub mod report;
pub mod run;
pub mod sending;
pub mod stats;
mod terminal;
pub mod trace;
mod transcript;
pub mod verdict;
mod view;
mod visible;
mod weights;
pub mod wire;

pub use case::EditCase;
#[doc(hidden)]
pub use commands::main;
pub use deeplook_tools as tools;
pub use judge::{Judge, Judged};
pub use prompt::Mode;
pub use trace::RunFolder;
pub use verdict::Outcome;

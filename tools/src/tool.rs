//! The contract of a tool: its name, what the model reads about it, its arguments, and its call.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::coords::BoxConvention;
use crate::scene::{Scene, View};

/// Something a judge can use to look closer.
///
/// A tool is one object in one file: the specification that the model reads stands beside the code
/// that it describes. The doc comments on the fields of [`Tool::Args`] are what the model reads.
pub trait Tool: Send + Sync {
    /// The arguments; their JSON schema is derived and shown to the model.
    type Args: DeserializeOwned + JsonSchema;

    /// The name by which the model calls it.
    fn name(&self) -> &'static str;

    /// What it is for, for the model; `boxes` is how that model writes boxes.
    fn description(&self, boxes: BoxConvention) -> String;

    /// All that changes what it sees, for the record.
    fn settings(&self) -> serde_json::Value;

    /// Goes up whenever the same call shows or tells something else than before. A trace that was
    /// made with another version is not compared with this one.
    fn version(&self) -> u64 {
        1
    }

    /// Looks. Called once per use, possibly from several threads at a time.
    ///
    /// The caller adds the pictures of the output to the scene; until then their names, taken from
    /// [`Scene::crop_name`], are free.
    fn call(&self, args: Self::Args, scene: &Scene) -> Result<ToolOutput, ToolError>;
}

/// What a tool saw.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// For the model, in the scene's box convention.
    pub text: String,
    /// For machines: boxes are always in pixels of the source picture.
    pub data: serde_json::Value,
    /// New pictures, each with its name and where it comes from.
    pub pictures: Vec<View>,
}

/// Why a tool gave no output: the variant says who must hear it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// For the model: it asked for something that cannot be; told so, it can ask again.
    #[error("{0}")]
    Refused(String),
    /// For the user: the tool itself does not work; the judgement stops.
    #[error("the tool {tool} is broken: {reason}")]
    Broken {
        /// Which tool.
        tool: &'static str,
        /// What happened and what to do.
        reason: String,
    },
}

impl ToolError {
    /// A refusal, in words for the model.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::Refused(why.into())
    }
}

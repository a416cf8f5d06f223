//! How a pack wants its scores reported.

use serde::{Deserialize, Serialize};

/// How reports show the scores of a pack. Hints: a report can always be asked for something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReportHints {
    /// The fact whose values are the columns.
    pub group: Option<String>,
    /// The order of those values; others follow by name.
    pub order: Vec<String>,
    /// What the mean of all is the mean of.
    pub average: Average,
    /// The fact within whose values groups are averaged first.
    pub within: Option<String>,
    /// Further facts to group by.
    pub also: Vec<String>,
    /// The criterion or composite that stands first.
    pub headline: Option<String>,
}

/// What the mean of all is the mean of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Average {
    /// Of the groups, whatever their sizes.
    Groups,
    /// Of the cases.
    #[default]
    Cases,
}

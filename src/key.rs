//! The names of judgements, wherever they are counted, kept or compared.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::prompt::Mode;
use crate::visible::visible_line;

/// What tells one judgement of a run from all others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JudgementKey {
    /// The case.
    pub case: String,
    /// Who edited.
    pub editor: String,
    /// By which criterion.
    pub criterion: String,
    /// What the judge got to see.
    pub mode: Mode,
    /// Which repetition, counted from 0.
    pub repeat: u32,
}

impl fmt::Display for JudgementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, editor, criterion, mode, repeat } = self;
        let criterion = visible_line(criterion);
        write!(f, "case {case:?} by {editor:?}, {criterion}, {mode}, repeat {repeat}")
    }
}

/// What is judged and labelled: all judgements of an edit under a criterion.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Item {
    /// The criterion's id.
    pub criterion: String,
    /// The case.
    pub case: String,
    /// Who edited; empty where nobody is named.
    pub editor: String,
}

/// What the judgements of two runs must share to be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PairKey {
    /// The case.
    pub case: String,
    /// Who edited; none where each run has one editor.
    pub editor: Option<String>,
    /// By which criterion.
    pub criterion: String,
    /// What the judge got to see; none where each run has one mode.
    pub mode: Option<Mode>,
    /// Which repetition.
    pub repeat: u32,
}

//! The one name of a judgement, wherever it is counted, kept or compared.

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

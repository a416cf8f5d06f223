//! Turns of another trace that a judgement begins with: nobody is asked for them, and nothing is
//! looked at again.

use std::collections::VecDeque;

use deeplook_tools::ToolOutput;

use crate::hash::Hash;
use crate::message::{Reply, ToolCall};

/// What a model is told that asks for more than was seen before, where nothing else may be looked at.
pub(crate) const ONLY_RECORDED: &str = "No tool can be used here: this edit is judged again from what was seen before, \
     which is above. Answer from that.";

/// What a judgement takes over from another trace.
#[derive(Debug)]
pub struct Recalled {
    /// The digest of that trace.
    pub parent: Hash,
    /// For each part, its first turns.
    pub parts: Vec<RecalledPart>,
}

/// The first turns of a part.
#[derive(Debug, Clone, Default)]
pub struct RecalledPart {
    /// What the model said.
    pub replies: VecDeque<Reply>,
    /// What the tools saw.
    pub looks: VecDeque<RecalledLook>,
    /// Whether nothing but these looks may be used.
    pub only: bool,
}

/// A look that was taken before.
#[derive(Debug, Clone)]
pub struct RecalledLook {
    /// What was asked for.
    pub call: ToolCall,
    /// What the tool saw, or why it refused.
    pub answer: Result<ToolOutput, String>,
}

impl RecalledPart {
    /// What is known of a call; `None` where a tool has to look.
    pub(super) fn look(&mut self, call: &ToolCall) -> Option<Result<ToolOutput, String>> {
        let is_it = |look: &RecalledLook| {
            look.call.name == call.name && look.call.arguments == call.arguments
        };
        let known = self.looks.iter().position(is_it).and_then(|index| self.looks.remove(index));
        let answer = known.map(|look| look.answer);
        answer.or_else(|| self.only.then(|| Err(ONLY_RECORDED.to_owned())))
    }
}

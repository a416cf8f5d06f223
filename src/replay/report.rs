//! What a replay found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use deeplook_tools::PixelBox;
use serde::Serialize;
use serde_json::Value;

use crate::hash::Hash;
use crate::verdict::Outcome;

/// What came of replaying one trace.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The folder of the bundle.
    pub trace: PathBuf,
    /// Stands for the whole bundle.
    pub digest: Hash,
    /// The case.
    pub case: String,
    /// Who edited.
    pub editor: Option<String>,
    /// The criterion.
    pub criterion: String,
    /// How it ended, as the record has it; absent where it was interrupted.
    pub outcome: Option<Outcome>,
    /// False where the judgement was interrupted; what is there was compared all the same.
    pub complete: bool,
    /// How many questions were compared.
    pub questions: u32,
    /// How many looks were taken again.
    pub looks: u32,
    /// What is not as the record has it.
    pub divergences: Vec<Divergence>,
    /// What a network saw a little differently, as it may on another CPU or runtime.
    pub within_tolerance: Vec<Divergence>,
    /// Tools that could not be used again, and why; what the record says they saw was taken.
    pub not_rerun: BTreeMap<String, String>,
}

impl Replayed {
    /// Whether the trace may be believed; a strict reader also wants it complete, every tool used
    /// again, and every byte the same.
    pub fn passes(&self, strict: bool) -> bool {
        let flawless =
            self.complete && self.within_tolerance.is_empty() && self.not_rerun.is_empty();
        self.divergences.is_empty() && (flawless || !strict)
    }
}

/// Something that is not as the record has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Divergence {
    /// Which part of the judgement, if it is about one.
    pub part: Option<usize>,
    /// Which turn, if it is about one.
    pub turn: Option<u32>,
    /// What differs.
    pub field: String,
    /// What the record says.
    pub before: Value,
    /// What was found now.
    pub after: Value,
    /// For pictures: how much and where they differ.
    pub pixels: Option<PixelDifference>,
}

/// How two pictures differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PixelDifference {
    /// How many pixels.
    pub different: u64,
    /// Of how many.
    pub of: u64,
    /// The largest difference of a channel, of 255.
    pub largest: u8,
    /// Where, in pixels of the picture.
    pub bbox: PixelBox,
}

//! A prompt change tested like a code change: cells of a matrix, the same edits in each, and an
//! honest answer to "is it better, or is it luck?".

pub mod analysis;
pub(crate) mod page;
pub mod plan;
pub mod sample;

//! What DLEBench's own files have and other sets have not: its folders, and the spelling of its types.

use super::adapter::{Adapter, Draw};
use super::draw;

/// DLEBench, whose folder is read like any file of cases.
#[derive(Debug)]
pub(super) struct DleBench;

impl Adapter for DleBench {
    fn name(&self) -> &'static str {
        "dlebench"
    }

    fn draw(&self) -> Option<Draw> {
        Some(draw::make)
    }
}

/// The folders of the source pictures and of the reference pictures.
pub(super) const FOLDERS: [&str; 2] = ["Source_Images", "Reference_Images"];

/// The types of instruction, in the paper's order.
const TYPES: [&str; 7] = [
    "Change Material",
    "Change Color",
    "Change OCR",
    "Change Shape",
    "Removal Object",
    "Replace Object",
    "Change Count",
];

/// A type of DLEBench in its one spelling; any other as it is.
pub(super) fn spelled(kind: &str) -> &str {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], " ").trim().to_owned();
    TYPES.into_iter().find(|name| plain(name) == plain(kind)).unwrap_or(kind.trim())
}

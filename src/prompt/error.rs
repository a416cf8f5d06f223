//! Why there is no pack or no prompt.

use std::path::PathBuf;

use super::{Finding, Pack};

/// Why there is no pack or no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// No such pack in this binary.
    #[error(
        "there is no prompt pack {id:?}; use one of {known}, or a folder that holds a pack.toml"
    )]
    UnknownPack {
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// No such criterion in the pack.
    #[error("the prompt pack {pack} has no criterion {id:?}; use one of {known}")]
    UnknownCriterion {
        /// Which pack.
        pack: String,
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// No such variant of the pack.
    #[error("the prompt pack {pack} has no variant {name:?}; it has {known}")]
    UnknownVariant {
        /// Which pack.
        pack: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The folder cannot be a pack.
    #[error("the prompt pack in {}: {what}", folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Its texts are more than anybody would send.
    #[error("the {what} take more than {} MiB together; make them shorter, or have fewer turns", most >> 20)]
    Endless {
        /// Which texts.
        what: &'static str,
        /// So many bytes they may have.
        most: usize,
    },
    /// The pack is wrong.
    #[error("the prompt pack is wrong:{}", list(.0))]
    Wrong(Vec<Finding>),
}

impl PromptError {
    pub(super) fn unknown(id: &str) -> Self {
        let known = Pack::list().collect::<Vec<_>>().join(", ");
        Self::UnknownPack { id: id.to_owned(), known }
    }
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n  {finding}")).collect()
}

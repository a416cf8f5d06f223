//! What is wrong with a data set: with single lines of it ([`Problem`]), or with all of it
//! ([`DataSetError`]).

use std::fmt;
use std::path::PathBuf;

use deeplook_tools::scene::cut;
use serde::Serialize;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The case, or an edit of it, cannot be judged.
    Error,
    /// It can be judged, but perhaps not as somebody meant it.
    Warning,
}

/// Something that is wrong with a line of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The line of the data set's file, from 1; in a file without lines, the number of the record.
    pub line: usize,
    /// What is counted: lines or records.
    #[serde(skip)]
    pub(super) counted: &'static str,
    /// The case, where it has a name.
    pub case: Option<String>,
    /// What is wrong, and what to do. Untrusted text in it is quoted and cut.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.counted, self.line)?;
        if let Some(case) = &self.case {
            write!(f, "case {}: ", shown(case))?;
        }
        f.write_str(&self.message)
    }
}

/// The problems of a data set: all of them counted, the first of them kept.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    kept: Vec<Problem>,
    errors: usize,
    warnings: usize,
    counted: Option<&'static str>,
}

impl Problems {
    /// Says what is counted, where it is not lines.
    pub(super) fn count_in(&mut self, what: &'static str) {
        self.counted = Some(what);
    }

    /// So many problems are kept in words; a wrong file may have one on each of a million lines.
    pub const MOST_KEPT: usize = 1000;

    /// Those that are kept, by line.
    pub fn kept(&self) -> &[Problem] {
        &self.kept
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How many warnings there are.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// True where nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.errors + self.warnings == 0
    }

    /// Adds a problem at its place.
    pub(super) fn add(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        let place = self.kept.partition_point(|kept| kept.line <= problem.line);
        if place < Self::MOST_KEPT {
            self.kept.insert(place, problem);
            self.kept.truncate(Self::MOST_KEPT);
        }
    }

    pub(super) fn error(&mut self, line: usize, case: Option<&str>, message: impl Into<String>) {
        let (case, message) = (case.map(str::to_owned), message.into());
        let counted = self.counted.unwrap_or("line");
        self.add(Problem { severity: Severity::Error, line, counted, case, message });
    }

    pub(super) fn warning(&mut self, line: usize, case: Option<&str>, message: impl Into<String>) {
        let (case, message) = (case.map(str::to_owned), message.into());
        let counted = self.counted.unwrap_or("line");
        self.add(Problem { severity: Severity::Warning, line, counted, case, message });
    }
}

/// Untrusted text in a message: quoted, on one line, harmless on a terminal, and not endless.
pub(crate) fn shown(text: &str) -> String {
    format!("{:?}", cut(text, 80))
}

/// Untrusted JSON in a message: as it was written, but harmless and not endless.
pub(super) fn shown_json(value: &serde_json::Value) -> String {
    let text = cut(&value.to_string(), 80);
    let harmless = |c: char| match c {
        '"' | '\'' => c.to_string(),
        other => other.escape_debug().to_string(),
    };
    text.chars().map(harmless).collect()
}

/// An untrusted name for a terminal: as it is, or quoted where that would not be harmless.
pub(crate) fn on_terminal(name: &str) -> String {
    let quoted = shown(name);
    let bare = &quoted[1..quoted.len() - 1];
    if bare == name { name.to_owned() } else { quoted }
}

/// Several names in a message.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 12;
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names.iter().take(MOST).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text.push_str(&format!(" and {} more", names.len() - MOST));
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

/// Why a data set cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataSetError {
    /// The file system said no.
    #[error("cannot read the data set {}: {source}; check the path", shown(&path.to_string_lossy()))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// A folder without a data set, or with several.
    #[error("{} {what}", shown(&folder.to_string_lossy()))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// Not a file of cases.
    #[error("{} is no file of cases: {what}", shown(&path.to_string_lossy()))]
    NotCases {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        what: String,
    },
    /// Nothing in it.
    #[error("{} holds no cases: it is empty; write one JSON object a line", shown(&path.to_string_lossy()))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A field that every case needs is nowhere, or could be several.
    #[error("{}: {what}", shown(&path.to_string_lossy()))]
    Fields {
        /// The file.
        path: PathBuf,
        /// Which field, which ones were seen, and what to do.
        what: String,
    },
    /// The mapping of fields cannot be used.
    #[error("--map {}: {what}", shown(given))]
    Map {
        /// What was given.
        given: String,
        /// What is wrong with it, and what to do.
        what: String,
    },
    /// Pictures inside its file have no place to go to.
    #[error("cannot unpack the data set's pictures: {what}")]
    Unpack {
        /// What is wrong, and with which folder.
        what: String,
    },
    /// There is no such preset.
    #[error("there is no preset {}; there are {known}", shown(name))]
    NoPreset {
        /// What was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The folder of edits does not belong to this data set.
    #[error("--edits {}: {what}", shown(&folder.to_string_lossy()))]
    Edits {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it, and what to do.
        what: String,
    },
}

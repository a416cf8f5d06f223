//! Why a run cannot be made or gone on with.

use std::path::{Path, PathBuf};

use super::record::Difference;
use crate::config::SetupError;
use crate::dataset::DataSetError;
use crate::judge::JudgeError;
use crate::key::JudgementKey;
use crate::prompt::Mode;
use crate::trace::ResultsError;

/// A run that could not be made. What can be chosen differently has a variant of its own; the words
/// name no option of a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The specification has a value that cannot be.
    #[error("{field}: {problem}")]
    Spec {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The judge cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The data set cannot be read.
    #[error(transparent)]
    DataSet(#[from] DataSetError),
    /// A results.jsonl or a trace cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The judge cannot judge like this.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The cost is limited, and nobody knows it.
    #[error("the cost of the run is limited, and what {model} costs is not known")]
    NoPrice {
        /// The model.
        model: String,
    },
    /// A part of the data set is broken.
    #[error("{broken} of the data set's lines and pictures cannot be used")]
    Broken {
        /// How many.
        broken: usize,
    },
    /// There is nothing that somebody edited.
    #[error("{} names no edited pictures", file.display())]
    NoEdits {
        /// The file of cases.
        file: PathBuf,
    },
    /// Cases that do not fit the oracle mode.
    #[error("the oracle mode needs boxes, and {without} of {all} cases have none")]
    NoBoxes {
        /// How many have none.
        without: usize,
        /// Of how many.
        all: usize,
    },
    /// The selection leaves nothing.
    #[error("nothing is left to judge: no chosen case has an edit by a chosen editor")]
    Nothing,
    /// The folder's settings are others.
    #[error(
        "{} was judged with other settings, and means over both would mean nothing:{}",
        folder.display(), listed(differences)
    )]
    OtherSettings {
        /// The folder of the run.
        folder: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// The folder is of an older version.
    #[error("{} was judged by an older deeplook (run.json has format {format})", folder.display())]
    OldRun {
        /// The folder of the run.
        folder: PathBuf,
        /// The format of its run.json.
        format: u64,
    },
    /// The folder is another part of the run.
    #[error("{} is part {theirs} of a run, and this is part {ours}", folder.display())]
    OtherPart {
        /// The folder of the run.
        folder: PathBuf,
        /// Which part it is.
        theirs: String,
        /// Which part was asked for.
        ours: String,
    },
    /// The folder holds something else.
    #[error("{} is not empty and not a run", folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds traces of which nothing is known.
    #[error("{} holds traces and no run.json, so that nobody knows their settings", folder.display())]
    NoRecord {
        /// The folder.
        folder: PathBuf,
    },
    /// What is judged again would be mixed with what it is judged from.
    #[error("{} is to be judged again, into a folder of its own", folder.display())]
    IntoItself {
        /// The folder.
        folder: PathBuf,
    },
    /// What is to be judged again was judged in other modes.
    #[error("{} has no traces in the mode {mode}", run.display())]
    NotInThisMode {
        /// The run that is judged again.
        run: PathBuf,
        /// The mode that was asked for.
        mode: Mode,
        /// Those that it has, separated by commas.
        modes: String,
    },
    /// What is to be judged again was said in another dialect.
    #[error("the tool calls in {} are written in the dialect {dialect}", run.display())]
    OtherDialect {
        /// The run that is judged again.
        run: PathBuf,
        /// Its dialect.
        dialect: String,
    },
    /// The data set is not what it was.
    #[error("{count} judgements are of cases that have changed since, such as {first} ({what})")]
    Changed {
        /// How many.
        count: usize,
        /// One of them.
        first: JudgementKey,
        /// What of it has changed.
        what: String,
    },
    /// Parts with other settings are to be joined.
    #[error(
        "{} was judged with other settings than {}, and means over both would mean nothing:{}",
        part.display(), first.display(), listed(differences)
    )]
    OtherParts {
        /// The folder of the part.
        part: PathBuf,
        /// The folder of the first part.
        first: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// Parts that overlap are to be joined.
    #[error(
        "{} judgements were made in several parts, with different traces:{}",
        double.len(), listed(&double[..double.len().min(5)])
    )]
    Overlapping {
        /// Which ones.
        double: Vec<JudgementKey>,
    },
    /// It went wrong in the middle.
    #[error("stopped{}", kept(folder.as_deref()))]
    Broke {
        /// The folder of the run, if it is in one.
        folder: Option<PathBuf>,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Anything else, mostly the file system.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl From<anyhow::Error> for RunError {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => Self::Other(error.into()),
        }
    }
}

fn kept(folder: Option<&Path>) -> String {
    let kept = |folder: &Path| {
        format!("; what is finished is kept in {}, and the same command goes on", folder.display())
    };
    folder.map_or(String::new(), kept)
}

/// One to a line.
fn listed<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().take(10).map(|one| format!("\n  {one}")).collect()
}

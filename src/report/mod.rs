//! From the lines of finished runs to tables and figures that people can trust.
//!
//! [`Report::of`] turns lines into numbers, and [`Format`] turns these into text. Both are pure: the
//! same lines give the same bytes.

mod behaviour;
mod csv;
mod figures;
mod html;
mod judged;
mod latex;
mod markdown;
mod model;
mod plot;
mod points;
mod scale;
mod scores;
mod tables;

pub use self::behaviour::{Amount, Behaviour, Share, ToolUse};
pub(crate) use self::html::{encoded, trace_link};
pub use self::judged::{GroupKey, LabelName, Standing};
pub(crate) use self::judged::{NO_TYPE, groups};
pub use self::model::{
    Count, CriterionName, Group, Outcomes, PrintedInterval, Reason, Report, Score, TypeCount,
};
pub(crate) use self::plot::escape;
pub use self::points::Points;
pub use self::scale::{Association, Scale, ScalePoint, Window};
pub use self::scores::{CriterionScores, EditorScores, TypeScores};

use crate::prompt::PromptError;
use crate::trace::ResultLine;

/// The judgements of one run.
#[derive(Debug, Clone)]
pub struct Run {
    /// As it was named.
    pub name: String,
    /// Its lines.
    pub lines: Vec<ResultLine>,
    /// How the run's folder is reached from where the report will lie, with `/` between folders;
    /// `None` where there are no traces to link to.
    pub link: Option<String>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No judgement at all.
    #[error("there are no judgements in {0}; judge something first, with `deeplook eval`")]
    Empty(String),
    /// A line that cannot be counted.
    #[error("{run}, line {line}: {problem}")]
    Line {
        /// In which run.
        run: String,
        /// Which, counted from 1.
        line: usize,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The labels of the benchmark.
    #[error(transparent)]
    Prompts(#[from] PromptError),
    /// The page.
    #[error("cannot make the page")]
    Page(#[from] minijinja::Error),
    /// The table.
    #[error("cannot make the table")]
    Csv(#[from] ::csv::Error),
    /// The object.
    #[error("cannot make the JSON")]
    Json(#[from] serde_json::Error),
}

/// What every reader of numbers must know.
const METHOD: [&str; 5] = [
    "A label is worth (rank − 1) / 3 · 100. Scores are means over verdicts, printed with two decimals; averages \
     are means of printed scores, as in the DLEBench paper.",
    "A judgement without a verdict (abstained, failed, missing, interrupted) is in no mean. Coverage says how many \
     have one; bounds say where the score would be if all others were worth 0, or 100.",
    "[low, high] is a 95 % bootstrap interval over cases, drawn within each type. It needs two cases in each type, \
     and is too narrow where there are only a few.",
    "Runs, models, modes and prompts are never averaged together.",
    "Repetitions of a case are averaged first, so that every case counts once.",
];

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// One self-contained page with plots.
    Html,
    /// Tables in Markdown.
    Md,
    /// One row for each score.
    Csv,
    /// All numbers.
    Json,
    /// Tables for a paper.
    Latex,
}

impl Report {
    /// The report as text. `runs` are those that it is of.
    pub fn render(&self, format: Format, runs: &[Run]) -> Result<String, ReportError> {
        match format {
            Format::Html => html::render(self, runs),
            Format::Md => Ok(markdown::render(self)),
            Format::Csv => csv::render(self),
            Format::Json => Ok(serde_json::to_string_pretty(self)? + "\n"),
            Format::Latex => Ok(latex::render(self)),
        }
    }
}

/// The page of these runs.
pub fn html(runs: &[Run]) -> Result<String, ReportError> {
    Report::of(runs)?.render(Format::Html, runs)
}

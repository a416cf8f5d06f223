//! From the lines of finished runs to tables and figures that people can trust.
//!
//! [`Report::of`] turns lines into numbers, and [`Format`] turns these into text. Both are pure: the
//! same lines give the same bytes.

mod behaviour;
mod cases;
mod columns;
mod csv;
mod figures;
mod html;
mod judged;
mod latex;
mod markdown;
mod model;
mod parquet;
mod plot;
mod points;
mod scale;
mod scores;
mod tables;

pub use self::behaviour::{Amount, Behaviour, Share, ToolUse};
pub use self::columns::Grouping;
pub(crate) use self::html::{encoded, trace_link};
pub use self::judged::{GroupKey, LabelName, Standing};
pub(crate) use self::judged::{JudgedGroup, JudgedResult, NO_TYPE, groups};
pub use self::model::{
    CompositeName, Count, CriterionName, Group, Outcomes, PrintedInterval, Reason, Report,
    ReportOptions, Score, TypeCount,
};
pub use self::parquet::table as parquet;
pub(crate) use self::plot::escape;
pub use self::points::Points;
pub use self::scale::{Association, ScalePoint, SizeAnalysis, Window};
pub use self::scores::{CriterionScores, EditorScores, KeyMean, TypeScores};

use crate::prompt::PromptError;
use crate::trace::{ResultLine, Rubrics};
use crate::visible::{honest_json, visible};

/// The judgements of one run.
#[derive(Debug, Clone)]
pub struct Run {
    /// As it was named.
    pub name: String,
    /// Its lines.
    pub lines: Vec<ResultLine>,
    /// By what they were judged.
    pub rubrics: Rubrics,
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
    /// The table of columns.
    #[error("cannot make the Parquet file: {0}")]
    Parquet(String),
    /// The object.
    #[error("cannot make the JSON")]
    Json(#[from] serde_json::Error),
}

/// What every reader of numbers must know.
fn method(report: &Report) -> Vec<String> {
    let mut method = vec![
        "Scores are means over verdicts; averages are means of printed scores, so that a table can be checked with a \
         pocket calculator."
            .to_owned(),
        "A judgement without a verdict (abstained, failed, missing, interrupted) is in no mean. Coverage says how \
         many have one; bounds say where the score would be if all others were worth the least, or the most."
            .to_owned(),
        "[low, high] is a 95 % bootstrap interval over cases, drawn within each group of the table. It needs two \
         cases, and is too narrow where there are only a few."
            .to_owned(),
        "Runs, models, modes and prompts are never averaged together.".to_owned(),
        "Repetitions of a case are averaged first, so that every case counts once.".to_owned(),
    ];
    let mut worths: Vec<String> = Vec::new();
    for criterion in report.groups.iter().flat_map(|group| &group.criteria) {
        let labels: Vec<String> = criterion
            .labels
            .iter()
            .map(|label| {
                format!("{} {}", label.name, Points::of(label.score, criterion.scale.decimals))
            })
            .collect();
        let worth = format!("{} ({}): {}.", criterion.name, criterion.short(), labels.join(", "));
        if !labels.is_empty() && !worths.contains(&worth) {
            worths.push(worth);
        }
    }
    if !worths.is_empty() {
        method.insert(0, format!("What a label is worth. {}", worths.join(" ")));
    }
    method
}

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// One row for each judgement, as typed columns; made by [`parquet()`], for it is no text.
    Parquet,
}

impl Report {
    /// The report as text. `runs` are those that it is of.
    pub fn render(&self, format: Format, runs: &[Run]) -> Result<String, ReportError> {
        // Names from lines are in it, and it may be printed or opened anywhere.
        Ok(match format {
            Format::Html => visible(&html::render(self, runs)?),
            Format::Md => visible(&markdown::render(self)),
            Format::Csv => visible(&csv::render(self)?),
            Format::Json => honest_json(&serde_json::to_string_pretty(self)?) + "\n",
            Format::Latex => visible(&latex::render(self)),
            Format::Parquet => return Err(ReportError::Parquet("it is no text".to_owned())),
        })
    }
}

/// The page of these runs.
pub fn html(runs: &[Run]) -> Result<String, ReportError> {
    Report::of(runs, &ReportOptions::default())?.render(Format::Html, runs)
}

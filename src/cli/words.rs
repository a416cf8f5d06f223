//! The words for values of the domain, which knows nothing of command lines.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::agreement::Truth;
use crate::dataset::{MatchBy, adapter};
use crate::message::{Dialect, Wire};
use crate::prompt::Mode;
use crate::report::Format;
use crate::trace::OutcomeName;

/// A word, what it means in a few others, and its value.
type Word<T> = (&'static str, &'static str, T);

fn one_of<T>(words: &'static [Word<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let possible = words.iter().map(|(word, help, _)| match help.is_empty() {
        true => PossibleValue::new(*word),
        false => PossibleValue::new(*word).help(*help),
    });
    PossibleValuesParser::new(possible).try_map(|typed| {
        let found = words.iter().find(|(word, ..)| *word == typed);
        found.map(|(.., value)| *value).ok_or("there is no such value")
    })
}

pub(super) fn mode() -> impl TypedValueParser<Value = Mode> {
    one_of(&[
        ("tool", "The whole pictures, and tools over several turns", Mode::Tool),
        ("oracle", "Pictures prepared from the annotated targets", Mode::Oracle),
        ("plain", "The whole pictures, one turn, no tools: the baseline", Mode::Plain),
    ])
}

pub(super) fn dialect() -> impl TypedValueParser<Value = Dialect> {
    one_of(&[
        ("native", "The server's function calling", Dialect::Native),
        ("tags", "`<tool_call>` tags in the text", Dialect::Tags),
    ])
}

pub(super) fn wire() -> impl TypedValueParser<Value = Wire> {
    one_of(&[
        ("chat", "OpenAI's chat completions, which nearly every server speaks", Wire::Chat),
        ("responses", "OpenAI's Responses", Wire::Responses),
        ("messages", "Anthropic's Messages", Wire::Messages),
    ])
}

pub(super) fn match_by() -> impl TypedValueParser<Value = MatchBy> {
    one_of(&[
        ("id", "By the id of the case", MatchBy::Id),
        ("source", "By the file name of the source picture", MatchBy::Source),
    ])
}

/// What a report can be written as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportFormat {
    /// One file.
    Text(Format),
    /// A folder of files that a benchmark's own scripts take, by its name.
    Files(&'static str),
}

const FORMATS: [Word<Format>; 6] = [
    ("html", "One self-contained page with plots", Format::Html),
    ("md", "Tables in Markdown", Format::Md),
    ("csv", "One row for each score", Format::Csv),
    ("json", "All numbers", Format::Json),
    ("latex", "Tables for a paper", Format::Latex),
    ("parquet", "One row for each judgement, as typed columns", Format::Parquet),
];

pub(super) fn format() -> impl TypedValueParser<Value = ReportFormat> {
    let text = FORMATS.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    let files = adapter::exports().into_iter();
    let files = files.map(|name| PossibleValue::new(name).help("Its own files, into a folder"));
    PossibleValuesParser::new(text.chain(files)).try_map(|typed| {
        let text = FORMATS.iter().find(|(word, ..)| *word == typed);
        let text = text.map(|(.., format)| ReportFormat::Text(*format));
        let files = || adapter::exports().into_iter().find(|name| *name == typed);
        text.or_else(|| files().map(ReportFormat::Files)).ok_or("there is no such format")
    })
}

/// A benchmark that can be drawn.
pub(super) fn benchmark() -> PossibleValuesParser {
    PossibleValuesParser::new(adapter::drawn())
}

pub(super) fn truth() -> impl TypedValueParser<Value = Truth> {
    one_of(&[
        ("mean", "The mean of their ranks", Truth::Mean),
        ("median", "The rank in the middle, or between the two in the middle", Truth::Median),
        (
            "majority",
            "The label that most gave; the worst of those that as many gave",
            Truth::Majority,
        ),
    ])
}

/// What can be judged again.
pub(super) fn again() -> impl TypedValueParser<Value = OutcomeName> {
    one_of(&[
        ("failed", "", OutcomeName::Failed),
        ("abstained", "", OutcomeName::Abstained),
        ("missing", "", OutcomeName::Missing),
    ])
}

//! A judgement for the eye: events as lines of text, as they come or from a file.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::answer::AnswerForm;
use crate::dialect::{self, ThoughtSource};
use crate::hash::Hash;
use crate::message::Usage;
use crate::terminal::Style;
use crate::trace::{BlobStore, Event, Observed, ToolAnswer, What};
use crate::verdict::Outcome;
use crate::visible::visible_line;

/// How wide text is before it is wrapped.
const WIDTH: usize = 100;
/// The most calls of one reply that are shown.
const MOST_CALLS: usize = 24;

/// Turns events into text. Styles are ANSI codes: write them through a stream that strips them
/// where there is no terminal.
#[derive(Debug)]
pub(crate) struct Transcript {
    form: AnswerForm,
    parts: Vec<String>,
    blobs: BlobStore,
}

impl Transcript {
    /// For a judgement with these labels and named parts, whose pictures are in `blobs`.
    pub(crate) fn new(form: AnswerForm, parts: Vec<String>, blobs: BlobStore) -> Self {
        Self { form, parts, blobs }
    }

    /// The lines of one event.
    pub(crate) fn lines(&self, event: &Event) -> String {
        let mut out = String::new();
        let bold = Style::BOLD;
        let dim = Style::DIM;
        match &event.event {
            What::Asked(asked) => {
                let part = match self.parts.get(asked.part) {
                    Some(name) if self.parts.len() > 1 => format!(" · {}", visible_line(name)),
                    _ => String::new(),
                };
                let _ = writeln!(out, "{bold}turn {}{part}{bold:#}", asked.turn);
            }
            What::AttemptFailed(failed) => {
                let attempt = &failed.attempt;
                let wait = attempt.retry_after_ms.map_or("no further attempt".to_owned(), |ms| {
                    format!("again in {:.1} s", ms as f64 / 1000.0)
                });
                let _ = writeln!(
                    out,
                    "  {dim}attempt {}: {} ({wait}){dim:#}",
                    attempt.attempt,
                    visible_line(&attempt.error)
                );
            }
            What::Replied(replied) => {
                let reading = dialect::read(&replied.reply.said, &self.form);
                match (&reading.thought, reading.thought_source) {
                    (Some(thought), source) => {
                        let name = if source == ThoughtSource::Reasoning {
                            "reasoning"
                        } else {
                            "thought"
                        };
                        let _ = writeln!(out, "{}", indented(name, thought));
                    }
                    (None, _) => {
                        let _ = writeln!(out, "  {dim}no thought{dim:#}");
                    }
                }
                for call in reading.calls.iter().take(MOST_CALLS) {
                    let (name, arguments) = (&call.name, call.arguments.to_string());
                    let _ = writeln!(
                        out,
                        "  {bold}→ {}{bold:#} {}",
                        visible_line(name),
                        visible_line(&arguments)
                    );
                }
                if let Some(more) = reading.calls.len().checked_sub(MOST_CALLS).filter(|n| *n > 0) {
                    let _ = writeln!(out, "  {dim}and {more} more calls{dim:#}");
                }
                if let Some(answer) = &reading.answer {
                    let _ =
                        writeln!(out, "  {bold}= {}{bold:#}", visible_line(&answer.to_string()));
                }
                for problem in &reading.problems {
                    let _ =
                        writeln!(out, "  {dim}cannot be read: {}{dim:#}", visible_line(problem));
                }
            }
            What::Observed(observed) => self.observation(&mut out, observed),
            What::Decided(decided) if self.parts.len() > 1 => {
                let name = self.parts.get(decided.part).map_or("", String::as_str);
                let name = visible_line(name);
                let _ = writeln!(out, "{name}: {}", outcome_text(&decided.outcome));
            }
            What::Unknown(unknown) => {
                let kind = visible_line(&unknown.kind);
                let _ =
                    writeln!(out, "  {dim}{kind:?}: only a newer deeplook knows this event{dim:#}");
            }
            What::Decided(_) | What::Finished(_) | What::GaveUp(_) => {}
        }
        out
    }

    fn observation(&self, out: &mut String, observed: &Observed) {
        match &observed.answer {
            ToolAnswer::Refused { text } => {
                let _ = writeln!(out, "{}", indented("refused", text));
            }
            ToolAnswer::Saw { text, pictures, .. } => {
                let _ = writeln!(out, "{}", indented("saw", text));
                for picture in pictures {
                    let _ = writeln!(
                        out,
                        "      {}: {}",
                        visible_line(&picture.name),
                        self.path(&picture.blob).display()
                    );
                }
            }
        }
    }

    fn path(&self, blob: &Hash) -> PathBuf {
        self.blobs.find(blob).unwrap_or_else(|_| self.blobs.folder().join(blob.as_str()))
    }
}

/// An outcome in a word or a sentence, in colour.
pub(crate) fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Verdict(verdict) => {
            let style = match verdict.score {
                score if score >= 99.0 => Style::BOLD_GREEN,
                score if score >= 60.0 => Style::BOLD_YELLOW,
                score if score >= 30.0 => Style::BOLD_MAGENTA,
                _ => Style::BOLD_RED,
            };
            format!("{style}{}{style:#}", visible_line(&verdict.in_words()))
        }
        other => {
            let style = Style::BOLD_CYAN;
            format!(
                "{style}{}{style:#}: {}",
                other.name(),
                visible_line(other.reason().unwrap_or_default())
            )
        }
    }
}

/// Tokens in words; what a server did not count is not invented.
pub(crate) fn usage_text(usage: Usage) -> String {
    match (usage.prompt_tokens, usage.completion_tokens) {
        (None, None) => "tokens not counted".to_owned(),
        (prompt, completion) => {
            let number = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
            let cached = usage.cached_tokens.map_or(String::new(), |n| format!(" ({n} cached)"));
            format!("{}{cached} + {} tokens", number(prompt), number(completion))
        }
    }
}

/// A cost in words; what is not known is not 0.
pub(crate) fn cost_text(cost: Option<f64>) -> String {
    match cost {
        None => "cost unknown".to_owned(),
        Some(0.0) => "no cost".to_owned(),
        Some(cost) if cost < 0.0001 => "under $0.0001".to_owned(),
        Some(cost) => format!("${cost:.4}"),
    }
}

/// A named block of text, wrapped and indented.
fn indented(name: &str, text: &str) -> String {
    let dim = Style::DIM;
    let mut out = format!("  {dim}{name}{dim:#}");
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut width = WIDTH;
        for word in line.split_whitespace() {
            let word = visible_line(word);
            let length = word.chars().count();
            if width + 1 + length > WIDTH {
                out.push_str("\n    ");
                width = 0;
            } else {
                out.push(' ');
                width += 1;
            }
            out.push_str(&word);
            width += length;
        }
    }
    out
}

//! Reading what a model wrote.
//!
//! There are two dialects: the server's function calling, and the tags of the text protocol. A
//! reply in either is read in the same way, and sloppy spelling is forgiven wherever only one
//! reading is possible. What is ambiguous is not read: [`Reading::problems`] then says why, in words
//! for the model.

mod calls;
mod elements;
mod evidence;
mod keys;
mod labels;
#[cfg(test)]
mod properties;
mod sloppy_json;
mod tags;
#[cfg(test)]
mod tests;

use deeplook_tools::scene::cut;
use serde::{Deserialize, Serialize};

use crate::answer::{AnswerForm, Answered, KeyForm};
use crate::message::{Said, ToolCall};
use keys::Keyed;
use labels::{Found, Labels};
pub use tags::neutralise;
use tags::{Kind, Section};

/// The most problems that are told, the most characters of one, and of what it quotes.
const MOST_PROBLEMS: usize = 8;
const LONGEST_PROBLEM: usize = 240;
const LONGEST_EXCERPT: usize = 80;

/// What a reply says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// What the model thought.
    pub thought: Option<String>,
    /// Where the thought comes from.
    pub thought_source: ThoughtSource,
    /// The tools it wants to use: the native calls, then those in tags.
    pub calls: Vec<ToolCall>,
    /// The answer in its canonical spelling, if there is exactly one.
    pub answer: Option<Answered>,
    /// The names of what it says that its answer rests on, whether they exist or not.
    pub evidence: Vec<String>,
    /// What could not be read, in words for the model; empty if all is well.
    pub problems: Vec<String>,
}

impl Reading {
    /// The label, where the answer is one.
    pub fn label(&self) -> Option<&str> {
        match &self.answer {
            Some(Answered::Label(label)) => Some(label),
            _ => None,
        }
    }
}

/// Where a thought comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThoughtSource {
    /// The text of the reply.
    Text,
    /// What the server gives as the model's reasoning.
    Reasoning,
    /// There is none.
    #[default]
    Absent,
}

/// Reads what a model said. Never fails: what cannot be read is a problem.
pub fn read(said: &Said, form: &AnswerForm) -> Reading {
    let mut sections = tags::sections(&said.text);
    let labels = Labels::new(form);
    let mut problems = Vec::new();

    let mut calls = calls::native(&said.calls, &mut problems);
    calls.extend(tagged_calls(&sections, &calls, &mut problems));
    if let AnswerForm::Keys(keys) = form {
        return read_keys(said, sections, keys, calls, problems);
    }
    let tagged = tagged_answer(&sections, &labels, &mut problems);
    let mut untagged = None;
    if calls.is_empty() && problems.is_empty() && matches!(tagged, Tagged::Absent) {
        untagged = json_answer(&mut sections, &labels);
        if untagged.is_none() {
            calls = untagged_calls(&mut sections);
        }
        if untagged.is_none() && calls.is_empty() {
            untagged = untagged_answer(&sections, &labels, &mut problems);
        }
    }
    let answer = match tagged {
        Tagged::Label(label) => Some(label),
        _ => untagged,
    };

    let (thought, thought_source) = thought(said, &sections, &labels, untagged.is_some());
    if calls.is_empty() && answer.is_none() && problems.is_empty() {
        problems.extend(misplaced(&sections));
    }
    Reading {
        evidence: evidence(&sections, thought.as_deref()),
        thought,
        thought_source,
        calls,
        answer: answer.map(|label| Answered::Label(label.to_owned())),
        problems: told(&problems),
    }
}

/// The same where the answer has keys. The server's calls and those in tags are read already; an
/// object with keys of the answer is never taken for a call.
fn read_keys(
    said: &Said,
    mut sections: Vec<Section>,
    keys: &[KeyForm],
    mut calls: Vec<ToolCall>,
    mut problems: Vec<String>,
) -> Reading {
    let (keyed, reasons) = keys::answer(&mut sections, keys);
    if keyed == Keyed::Absent && calls.is_empty() && problems.is_empty() {
        calls = untagged_calls(&mut sections);
    }
    let answer = match keyed {
        Keyed::Given(values) => Some(Answered::Values(values)),
        Keyed::Unclear(why) => {
            problems.extend(why);
            None
        }
        Keyed::Absent => {
            if calls.is_empty() && problems.is_empty() {
                problems.extend(misplaced(&sections));
                problems.push(keys::expected(keys));
            }
            None
        }
    };
    let no_labels = AnswerForm::Label(Vec::new());
    let labels = Labels::new(&no_labels);
    let (mut thought, mut thought_source) = thought(said, &sections, &labels, false);
    if let Some(reasons) = reasons.filter(|_| thought_source != ThoughtSource::Text) {
        (thought, thought_source) = (Some(reasons), ThoughtSource::Text);
    }
    Reading {
        evidence: evidence(&sections, thought.as_deref()),
        thought,
        thought_source,
        calls,
        answer,
        problems: told(&problems),
    }
}

/// Problems as they are told: few and short.
fn told(problems: &[String]) -> Vec<String> {
    problems.iter().take(MOST_PROBLEMS).map(|p| cut(p, LONGEST_PROBLEM)).collect()
}

fn of_kind(sections: &[Section], kind: Kind) -> impl Iterator<Item = &Section> {
    sections.iter().filter(move |section| section.kind == kind)
}

/// The calls in tags, without those that the server also gave natively.
fn tagged_calls(
    sections: &[Section],
    native: &[ToolCall],
    problems: &mut Vec<String>,
) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    let mut empty = false;
    for section in of_kind(sections, Kind::Call) {
        if has_words(&section.text) {
            calls.extend(calls::in_tags(&section.text, section.closed, problems));
        } else {
            empty = true;
        }
    }
    if empty && calls.is_empty() && native.is_empty() && problems.is_empty() {
        problems.push("the tool call is empty".to_owned());
    }
    calls.retain(|call| {
        native.iter().all(|n| (&n.name, &n.arguments) != (&call.name, &call.arguments))
    });
    calls
}

/// What the final answer's tags hold.
#[derive(Debug, Clone, Copy)]
enum Tagged<'a> {
    /// There are none, or they are empty.
    Absent,
    /// No label, or more than one.
    Unclear,
    Label(&'a str),
}

fn tagged_answer<'a>(
    sections: &[Section],
    labels: &Labels<'a>,
    problems: &mut Vec<String>,
) -> Tagged<'a> {
    let mut found: Vec<&'a str> = Vec::new();
    let (mut doubtful, mut unknown, mut unfinished) = (None, None, None);
    let mut empty = false;
    for section in of_kind(sections, Kind::Answer) {
        let in_json = labels.in_json(&section.text).map(|(label, _)| Found::One(label));
        match in_json.unwrap_or_else(|| labels.within(&section.text)) {
            Found::One(label) => found.push(label),
            Found::Several(labels) => found.extend(labels),
            Found::Doubtful(label) => doubtful = Some(label),
            Found::Nothing if labels::is_placeholder(&section.text) => empty = true,
            // "I answer in `<Start Final Answer>` tags": matters only if nothing else is there.
            Found::Nothing if !section.closed => unfinished = Some(&section.text),
            Found::Nothing => unknown = Some(&section.text),
        }
    }
    // A line "Final answer: X" outside the tags counts against another label within them.
    if !found.is_empty() {
        found.extend(label_lines(sections, labels).filter(|(_, led)| *led).map(|(label, _)| label));
    }
    if found.is_empty() {
        unknown = unknown.or(unfinished);
    }
    let all = found.iter().fold(Vec::new(), |mut all: Vec<&str>, label| {
        if !all.contains(label) {
            all.push(label);
        }
        all
    });
    let problem = match (&all[..], doubtful, unknown) {
        ([_, _, ..], _, _) => two_labels(&all),
        (_, Some(label), _) => {
            format!(
                "the label {label} does not stand alone, so that it may be negated or in doubt: write only the label"
            )
        }
        (_, _, Some(text)) => not_a_label(text, labels),
        ([label], None, None) => return Tagged::Label(label),
        ([], None, None) if empty && label_lines(sections, labels).next().is_none() => {
            format!("the final answer is empty; the labels are: {}", labels.names())
        }
        ([], None, None) => return Tagged::Absent,
    };
    problems.push(problem);
    Tagged::Unclear
}

fn two_labels(labels: &[&str]) -> String {
    format!("two different labels: {}; give exactly one", labels.join(", "))
}

fn not_a_label(text: &str, labels: &Labels<'_>) -> String {
    format!("\"{}\" is not a label; the labels are: {}", excerpt(text), labels.names())
}

/// The lines outside all tags that are nothing but a label, and whether words lead it in. What the
/// model quotes is not its own word.
fn label_lines<'a>(
    sections: &[Section],
    labels: &Labels<'a>,
) -> impl Iterator<Item = (&'a str, bool)> {
    let lines = of_kind(sections, Kind::Free).flat_map(|section| section.text.lines());
    lines.filter(|line| !is_quoted(line)).filter_map(|line| labels.led_line(line))
}

/// The label of a reply that is one JSON object but for thinking. What else stands in the object is
/// left as its text.
fn json_answer<'a>(sections: &mut [Section], labels: &Labels<'a>) -> Option<&'a str> {
    let mut free = sections.iter_mut().filter(|s| s.kind == Kind::Free && has_words(&s.text));
    let (only, None) = (free.next()?, free.next()) else { return None };
    let (label, others) = labels.in_json(&only.text)?;
    only.text = others;
    Some(label)
}

/// The calls at the end of a reply without tags of calls. The words before them stay as its text.
fn untagged_calls(sections: &mut [Section]) -> Vec<ToolCall> {
    let last = sections.iter_mut().rfind(|s| s.kind == Kind::Free && has_words(&s.text));
    let Some(last) = last else { return Vec::new() };
    let Some((words, calls)) = calls::untagged(without_fences(&last.text)) else {
        return Vec::new();
    };
    last.text = words;
    calls
}

/// The label of a reply without answer tags: its last line must be nothing but the label, and no
/// other line another label. A quoted last line counts only if nothing else is said.
fn untagged_answer<'a>(
    sections: &[Section],
    labels: &Labels<'a>,
    problems: &mut Vec<String>,
) -> Option<&'a str> {
    let lines = of_kind(sections, Kind::Free).flat_map(|section| section.text.lines());
    let lines: Vec<&str> = lines.filter(|line| has_words(line) && !is_fence(line)).collect();
    let (last, before) = lines.split_last()?;
    let label = labels.line(last)?;
    if is_quoted(last) && !before.iter().all(|line| labels::is_placeholder(line)) {
        return None;
    }
    match before.iter().filter_map(|line| labels.line(line)).find(|other| *other != label) {
        Some(other) => {
            problems.push(two_labels(&[other, label]));
            None
        }
        None => Some(label),
    }
}

/// The thought: what stands in thinking, and the text before the calls; else the words around the
/// label in the answer's tags; else the server's reasoning.
fn thought(
    said: &Said,
    sections: &[Section],
    labels: &Labels<'_>,
    answer_is_last_line: bool,
) -> (Option<String>, ThoughtSource) {
    let first_call = sections.iter().position(|section| section.kind == Kind::Call);
    let before = |at: usize| first_call.is_none_or(|call| at < call);
    let is_free =
        |section: &Section| section.kind == Kind::Free && has_words(without_fences(&section.text));
    let any_before =
        sections.iter().enumerate().any(|(at, section)| is_free(section) && before(at));
    let mut pieces: Vec<&str> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        if section.kind == Kind::Thinking && has_words(&section.text) {
            pieces.push(section.text.trim());
        } else if is_free(section) && before(at) == any_before {
            pieces.push(without_fences(&section.text));
        }
    }
    let mut text = pieces.join("\n\n");
    if answer_is_last_line {
        while let Some(last) = text.trim_end().lines().next_back()
            && (labels.line(last).is_some() || labels::is_placeholder(last) || is_fence(last))
        {
            text.truncate(text.trim_end().len() - last.len());
        }
    }
    if !has_words(&text) {
        let said = of_kind(sections, Kind::Answer).find(|answer| {
            labels.line(&answer.text).is_none() && !labels::is_placeholder(&answer.text)
        });
        text = said.map(|answer| answer.text.clone()).unwrap_or_default();
    }
    if has_words(&text) {
        return (Some(text.trim().to_owned()), ThoughtSource::Text);
    }
    match said.thought.as_deref().filter(|text| has_words(text)) {
        Some(text) => (Some(text.trim().to_owned()), ThoughtSource::Reasoning),
        None => (None, ThoughtSource::Absent),
    }
}

/// The names in `<Evidence>`, else the crops that the thought mentions.
fn evidence(sections: &[Section], thought: Option<&str>) -> Vec<String> {
    let listed: Vec<&str> =
        of_kind(sections, Kind::Evidence).map(|section| section.text.as_str()).collect();
    match listed[..] {
        [] => evidence::mentioned(thought.unwrap_or_default()),
        _ => evidence::listed(&listed.join("\n")),
    }
}

/// Why a reply in which nothing could be read looks as if there were something.
fn misplaced(sections: &[Section]) -> Option<String> {
    let within = |section: &Section| tags::holds_calls_or_answers(&section.text);
    if of_kind(sections, Kind::Thinking).any(within) {
        return Some(
            "what stands within the thinking is not read: close it before a tool call or the final answer"
                .to_owned(),
        );
    }
    let bare = |section: &Section| without_fences(&section.text).starts_with(['{', '[']);
    of_kind(sections, Kind::Free).any(bare).then(|| {
        "JSON outside <tool_call> is not read: write <tool_call>{\"name\": …, \"parameters\": {…}}</tool_call>"
            .to_owned()
    })
}

fn has_words(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

fn is_quoted(line: &str) -> bool {
    line.trim_start().starts_with(['>', '"', '“', '\'', '‘', '«', '`'])
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// The text without a fence at its beginning or end.
fn without_fences(text: &str) -> &str {
    let mut text = text.trim();
    if let Some(first) = text.lines().next().filter(|line| is_fence(line)) {
        text = text[first.len()..].trim_start();
    }
    if let Some(last) = text.lines().next_back().filter(|line| is_fence(line)) {
        text = text[..text.len() - last.len()].trim_end();
    }
    text
}

/// A short quotation of what the model wrote, on one line and without tags.
fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(8 * LONGEST_EXCERPT).collect();
    let line = neutralise(&start).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, LONGEST_EXCERPT)
}

//! What two packs would tell a model differently.

use std::collections::BTreeMap;

use deeplook_tools::ToolSpec;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::{Pack, Prompt, PromptError, Rule};

/// What differs between two packs: the rules by id, and the prompts as a model reads them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackDiff {
    /// In the order of ids; rules that are the same are left out.
    pub rules: Vec<RuleChange>,
    /// Prompts that are the same are left out.
    pub prompts: Vec<PromptChange>,
}

/// A rule that differs; one side is absent where only the other pack has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleChange {
    /// The rule's id.
    pub id: String,
    /// In the first pack.
    pub before: Option<Rule>,
    /// In the second pack.
    pub after: Option<Rule>,
}

/// A prompt that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptChange {
    /// The criterion's id.
    pub criterion: String,
    /// Which of its prompts.
    pub title: String,
    /// The lines that differ, with two lines around them; `None` stands between distant places.
    pub lines: Vec<Option<Line>>,
}

/// A line of a difference, in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Whether the line is new, gone, or the same.
    pub change: Change,
    /// Pieces of the line; true marks the words that differ.
    pub pieces: Vec<(bool, String)>,
}

/// What happened to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// In both packs.
    Same,
    /// Only in the first pack.
    Gone,
    /// Only in the second pack.
    New,
}

impl PackDiff {
    /// True where a model would not see any difference and the rules are the same.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.prompts.is_empty()
    }
}

/// Compares two packs, rendered with the same tools and the same made-up task.
pub fn diff(before: &Pack, after: &Pack, tools: &[ToolSpec]) -> Result<PackDiff, PromptError> {
    let rules = rules(before, after);
    let (before, after) = (before.prompts(tools)?, after.prompts(tools)?);
    let is_same = |a: &Prompt, b: &Prompt| a.criterion == b.criterion && a.title == b.title;
    let text_in = |prompts: &[Prompt], prompt: &Prompt| {
        prompts.iter().find(|p| is_same(p, prompt)).map(|p| p.text.clone()).unwrap_or_default()
    };
    // The first pack's order, then what only the second has.
    let only_after = after.iter().filter(|a| !before.iter().any(|b| is_same(a, b)));
    let prompts = before.iter().chain(only_after).filter_map(|prompt| {
        let lines = lines(&text_in(&before, prompt), &text_in(&after, prompt));
        (!lines.is_empty()).then(|| PromptChange {
            criterion: prompt.criterion.clone(),
            title: prompt.title.clone(),
            lines,
        })
    });
    Ok(PackDiff { rules, prompts: prompts.collect() })
}

fn rules(before: &Pack, after: &Pack) -> Vec<RuleChange> {
    let mut pairs: BTreeMap<&str, (Option<&Rule>, Option<&Rule>)> = BTreeMap::new();
    for rule in before.rules() {
        pairs.entry(&rule.id).or_default().0 = Some(rule);
    }
    for rule in after.rules() {
        pairs.entry(&rule.id).or_default().1 = Some(rule);
    }
    let differ = pairs.into_iter().filter(|(_, (before, after))| match (before, after) {
        (Some(before), Some(after)) => !before.says_the_same_as(after),
        _ => true,
    });
    differ
        .map(|(id, (before, after))| RuleChange {
            id: id.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        })
        .collect()
}

/// The lines that differ, in context; empty where the texts are the same.
pub fn lines(before: &str, after: &str) -> Vec<Option<Line>> {
    let diff = TextDiff::from_lines(before, after);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(2) {
        if !lines.is_empty() {
            lines.push(None);
        }
        for change in group.iter().flat_map(|op| diff.iter_inline_changes(op)) {
            let pieces = change.iter_strings_lossy();
            lines.push(Some(Line {
                change: match change.tag() {
                    ChangeTag::Equal => Change::Same,
                    ChangeTag::Delete => Change::Gone,
                    ChangeTag::Insert => Change::New,
                },
                pieces: pieces.map(|(m, t)| (m, t.trim_end_matches('\n').to_owned())).collect(),
            }));
        }
    }
    lines
}

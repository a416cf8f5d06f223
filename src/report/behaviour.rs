//! What the judge did: turns, tools, tokens, money, and whether it looked where it should.

use std::collections::BTreeMap;

use serde::Serialize;

use super::judged::{JudgedResult, Standing};
use super::model::CriterionName;

/// What the judge did by one criterion.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Behaviour {
    /// By which criterion.
    pub criterion: String,
    /// Judgements.
    pub judgements: usize,
    /// How often the model was asked.
    pub turns: Amount,
    /// How many of the replies were kept from before, so that nobody was asked.
    pub kept_replies: u64,
    /// How often tools looked.
    pub tool_calls: Amount,
    /// Judgements in which a tool looked, of those that tell.
    pub used_tools: Share,
    /// The same for each tool, with its calls.
    pub tools: Vec<ToolUse>,
    /// Judgements in which something that a tool showed holds at least half of an annotated target,
    /// of those with a target and a look.
    pub looked_at_target: Share,
    /// Verdicts that name no picture as their evidence, of those that tell.
    pub without_evidence: Share,
    /// Tokens of the requests.
    pub prompt_tokens: Amount,
    /// Of these, what the server had kept from before.
    pub cached_tokens: Amount,
    /// Tokens of the replies.
    pub completion_tokens: Amount,
    /// US dollars.
    pub cost: Amount,
    /// Seconds from the first event to the last.
    pub seconds: Amount,
}

/// A quantity over the judgements in which it is known.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Amount {
    /// In how many it is known.
    pub known: usize,
    /// The sum; absent where it is never known.
    pub sum: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// How many, of those that tell.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Share {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub of: usize,
    /// The part, 0 to 1; absent where nothing tells.
    pub share: Option<f64>,
    /// Lines that are worth a look: those that did not look at the target, those without evidence.
    #[serde(skip)]
    pub lines: Vec<usize>,
}

/// How a tool was used.
#[derive(Debug, Clone, Serialize)]
pub struct ToolUse {
    /// Which.
    pub tool: String,
    /// How often it looked.
    pub calls: u64,
    /// In how many judgements.
    pub judgements: usize,
}

impl Behaviour {
    /// By each criterion.
    pub(super) fn all(lines: &[JudgedResult<'_>], criteria: &[CriterionName]) -> Vec<Self> {
        let of = |criterion: &CriterionName| {
            let lines: Vec<&JudgedResult<'_>> =
                lines.iter().filter(|judged| judged.criterion == criterion.id).collect();
            Self::of(&criterion.id, &lines)
        };
        criteria.iter().map(of).collect()
    }

    fn of(criterion: &str, lines: &[&JudgedResult<'_>]) -> Self {
        // A line from elsewhere does not tell about turns, and then not about tools either.
        let telling = || lines.iter().filter(|judged| judged.line.turns.is_some());
        let calls = |judged: &JudgedResult<'_>| -> u64 {
            judged.line.tools.values().copied().map(u64::from).sum()
        };
        let mut tools: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        for (tool, count) in lines.iter().flat_map(|judged| &judged.line.tools) {
            let used = tools.entry(tool).or_default();
            used.0 += u64::from(*count);
            used.1 += usize::from(*count > 0);
        }
        let amount = |of: fn(&JudgedResult<'_>) -> Option<f64>| {
            Amount::of(lines.iter().filter_map(|judged| of(judged)))
        };
        let tokens = |count: Option<u64>| count.map(|count| count as f64);
        Self {
            criterion: criterion.to_owned(),
            judgements: lines.len(),
            turns: amount(|judged| judged.line.turns.map(f64::from)),
            kept_replies: lines.iter().map(|judged| u64::from(judged.line.cached)).sum(),
            tool_calls: Amount::of(telling().map(|judged| calls(judged) as f64)),
            used_tools: Share::of(telling().map(|judged| (judged.index, calls(judged) > 0, false))),
            tools: tools
                .into_iter()
                .map(|(tool, (calls, judgements))| ToolUse {
                    tool: tool.to_owned(),
                    calls,
                    judgements,
                })
                .collect(),
            looked_at_target: Share::of(lines.iter().filter_map(|judged| {
                judged.line.looked_at_target.map(|looked| (judged.index, looked, !looked))
            })),
            without_evidence: Share::of(
                lines.iter().filter(|judged| judged.standing == Standing::Verdict).filter_map(
                    |judged| judged.line.evidence.map(|n| (judged.index, n == 0, n == 0)),
                ),
            ),
            prompt_tokens: Amount::of(
                lines.iter().filter_map(|judged| tokens(judged.line.usage.prompt_tokens)),
            ),
            cached_tokens: Amount::of(
                lines.iter().filter_map(|judged| tokens(judged.line.usage.cached_tokens)),
            ),
            completion_tokens: Amount::of(
                lines.iter().filter_map(|judged| tokens(judged.line.usage.completion_tokens)),
            ),
            cost: amount(|judged| judged.line.cost),
            seconds: amount(|judged| judged.line.seconds),
        }
    }
}

impl Amount {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut amount = Self::default();
        for value in values {
            amount.known += 1;
            amount.sum = Some(amount.sum.unwrap_or(0.0) + value);
            amount.max = Some(amount.max.map_or(value, |max| max.max(value)));
        }
        amount.mean = amount.sum.map(|sum| sum / amount.known as f64);
        amount
    }
}

impl Share {
    /// Of (line, counts, worth a look).
    fn of(judgements: impl Iterator<Item = (usize, bool, bool)>) -> Self {
        let mut share = Self::default();
        for (line, counts, notable) in judgements {
            share.of += 1;
            share.count += usize::from(counts);
            if notable {
                share.lines.push(line);
            }
        }
        share.share = (share.of > 0).then(|| share.count as f64 / share.of as f64);
        share
    }
}

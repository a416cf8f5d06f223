//! What a run will ask for, before it asks: judgements, pictures, tokens and money.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::ledger::Ledger;
use super::ready::Ready;
use super::select::Job;
use crate::dataset::Entry;
use crate::judge::Judge;
use crate::message::{Message, Part, Request, ToolChoice, Usage};
use crate::model::AnyModel;
use crate::prompt::Mode;
use crate::prompt::workshop::estimated_tokens;
use crate::trace::ResultLine;

/// How many judgements of a kind are looked at.
const SAMPLE: usize = 3;
/// Pixels of a picture that are about one token; no picture is less than the second number.
const PIXELS_PER_TOKEN: u64 = 750;
const FEWEST_TOKENS: u64 = 85;
/// With tools: how often the model is asked, and what a look adds to the conversation.
const TURNS_WITH_TOOLS: u64 = 3;
const PICTURES_PER_LOOK: u64 = 4;
const TOKENS_PER_LOOK: u64 = 300 + PICTURES_PER_LOOK * 600;
/// What a model says in a turn.
const TOKENS_PER_REPLY: u64 = 300;

/// What is to be judged, and for how much.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// The folder of the run; `None` where its traces go elsewhere.
    pub run: Option<PathBuf>,
    /// By mode and criterion.
    pub parts: Vec<Estimate>,
    /// All together.
    pub total: Total,
    /// Whether it is the offline judge that decides: nobody is asked.
    pub offline: bool,
}

/// The sum of some estimates.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    /// How many.
    pub judgements: u64,
    /// Pictures that are sent.
    pub pictures: u64,
    /// How often the model is asked.
    pub calls: u64,
    /// Tokens of all requests.
    pub prompt_tokens: u64,
    /// Tokens of all replies.
    pub completion_tokens: u64,
    /// US dollars; absent where a price is not known.
    pub cost: Option<f64>,
}

impl Total {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            judgements: self.judgements + other.judgements,
            pictures: self.pictures + other.pictures,
            calls: self.calls + other.calls,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            cost: self.cost.zip(other.cost).map(|(one, two)| one + two),
        }
    }
}

impl Forecast {
    pub(super) fn new(ready: &Ready, jobs: &[Job], ledger: &Ledger, offline: bool) -> Self {
        let parts = estimate(ready, jobs, ledger);
        let sum = |of: fn(&Estimate) -> u64| parts.iter().map(of).sum::<u64>();
        let asked = |of: fn(&Estimate) -> u64| if offline { 0 } else { sum(of) };
        let total = Total {
            judgements: sum(|one| one.judgements),
            pictures: sum(|one| one.pictures),
            calls: asked(|one| one.calls),
            prompt_tokens: asked(|one| one.prompt_tokens),
            completion_tokens: asked(|one| one.completion_tokens),
            cost: match &ready.price {
                _ if offline => Some(0.0),
                price => price.as_ref().and(parts.iter().map(|one| one.cost).sum()),
            },
        };
        Self { run: ready.folder.clone(), parts, total, offline }
    }
}

/// What the judgements of one mode and criterion will need.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// What the judge gets to see.
    pub mode: Mode,
    /// By which criterion.
    pub criterion: String,
    /// How many.
    pub judgements: u64,
    /// Pictures that are sent, over all judgements, each counted once.
    pub pictures: u64,
    /// How often the model is asked.
    pub calls: u64,
    /// Tokens of all requests.
    pub prompt_tokens: u64,
    /// Tokens of all replies.
    pub completion_tokens: u64,
    /// US dollars; absent without a price.
    pub cost: Option<f64>,
    /// Whether it rests on judgements that this run has made already.
    pub measured: bool,
}

/// In one sentence, what the estimates rest on.
pub const ASSUMPTIONS: &str = "estimated from the first requests of up to three cases: 4 letters a token, 750 \
     pixels a token, and with tools 3 turns that bring 4 pictures each (from recorded traces, \
     only the last is asked); where the run has judgements already, from \
     those; attempts that fail are not in it, and prices that servers give for repeated beginnings neither";

/// Estimates what `jobs` will need, by mode and criterion; where looks are recorded, only the last
/// turn is asked.
fn estimate(ready: &Ready, jobs: &[Job], ledger: &Ledger) -> Vec<Estimate> {
    let Ready { judges, cases, price, recordings, .. } = ready;
    let only_answers = recordings.is_some();
    let mut kinds: BTreeMap<(Mode, &str), Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        kinds.entry((job.key.mode, &job.key.criterion)).or_default().push(job);
    }
    let one = |((mode, criterion), jobs): ((Mode, &str), Vec<&Job>)| {
        let judgements = jobs.len() as u64;
        let like_it = |line: &&ResultLine| line.mode == Some(mode) && line.criterion == criterion;
        let measured: Vec<&ResultLine> = ledger.lines().values().filter(like_it).collect();
        let per = judges.get(&mode);
        let per = per.map(|judge| sampled(judge, cases, &jobs, only_answers)).unwrap_or_default();
        // The tokens of recorded turns are in the lines too.
        let (per, measured) = match mean_of(&measured).filter(|_| !only_answers) {
            Some(mean) => (Need { pictures: per.pictures, ..mean }, true),
            None => (per, false),
        };
        let total = |each: f64| (each * judgements as f64).round() as u64;
        let (prompt_tokens, completion_tokens) = (total(per.prompt), total(per.completion));
        let usage = Usage {
            prompt_tokens: Some(prompt_tokens),
            completion_tokens: Some(completion_tokens),
            ..Usage::default()
        };
        Estimate {
            mode,
            criterion: criterion.to_owned(),
            judgements,
            pictures: total(per.pictures),
            calls: total(per.calls),
            prompt_tokens,
            completion_tokens,
            cost: price.as_ref().and_then(|price| price.of_many(usage)),
            measured,
        }
    };
    kinds.into_iter().map(one).collect()
}

/// What one judgement needs.
#[derive(Default)]
struct Need {
    pictures: f64,
    calls: f64,
    prompt: f64,
    completion: f64,
}

/// The mean of judgements that were made, if their tokens were counted.
fn mean_of(lines: &[&ResultLine]) -> Option<Need> {
    let counted: Vec<(f64, f64, f64)> = lines
        .iter()
        .filter_map(|line| {
            let Usage { prompt_tokens, completion_tokens, .. } = line.usage;
            Some((f64::from(line.turns?), prompt_tokens? as f64, completion_tokens? as f64))
        })
        .collect();
    let mean = |of: fn(&(f64, f64, f64)) -> f64| {
        counted.iter().map(of).sum::<f64>() / counted.len() as f64
    };
    (!counted.is_empty()).then(|| Need {
        pictures: 0.0,
        calls: mean(|one| one.0),
        prompt: mean(|one| one.1),
        completion: mean(|one| one.2),
    })
}

/// The mean of a few judgements that are only prepared.
fn sampled(judge: &Judge<AnyModel>, cases: &[Entry], jobs: &[&Job], only_answers: bool) -> Need {
    let mut needs = Vec::new();
    for job in jobs.iter().step_by((jobs.len() / SAMPLE).max(1)).take(SAMPLE) {
        let loaded = cases.get(job.case).and_then(|case| case.load(&job.key.editor).ok());
        let Some(case) = loaded else { continue };
        // What is missing or does not fit costs nothing.
        let Ok(prepared) = judge.prepare(&case, &job.key.criterion) else { continue };
        let requests: Vec<Request> =
            prepared.first_requests().map(|(_, request)| request).collect();
        let need = |request: &Request| need_of(request, only_answers);
        needs.push(requests.iter().map(need).fold(Need::default(), |sum, one| Need {
            pictures: sum.pictures + one.pictures,
            calls: sum.calls + one.calls,
            prompt: sum.prompt + one.prompt,
            completion: sum.completion + one.completion,
        }));
    }
    let mean = |of: fn(&Need) -> f64| needs.iter().map(of).sum::<f64>() / needs.len().max(1) as f64;
    Need {
        pictures: mean(|one| one.pictures),
        calls: mean(|one| one.calls),
        prompt: mean(|one| one.prompt),
        completion: mean(|one| one.completion),
    }
}

fn need_of(request: &Request, only_answer: bool) -> Need {
    let (mut text, mut pictures, mut tokens) = (String::new(), 0, 0);
    for message in &request.messages {
        match &**message {
            Message::System(words) => text.push_str(words),
            Message::User { parts, .. } => {
                for part in parts {
                    match part {
                        Part::Text(words) => text.push_str(words),
                        Part::Picture(sent) => {
                            let size = sent.size;
                            let pixels = u64::from(size.width) * u64::from(size.height);
                            tokens += (pixels / PIXELS_PER_TOKEN).max(FEWEST_TOKENS);
                            pictures += 1;
                        }
                    }
                }
            }
            Message::Assistant(_) | Message::Observations { .. } => {}
        }
    }
    let tools = !request.tools.is_empty() && request.tool_choice == ToolChoice::Auto;
    if tools {
        text.push_str(&serde_json::to_string(&*request.tools).unwrap_or_default());
    }
    let first = estimated_tokens(&text) as u64 + tokens;
    let turns = if tools { TURNS_WITH_TOOLS } else { 1 };
    // Every turn sends the conversation so far again.
    let (calls, looks) = match only_answer {
        true => (1, turns - 1),
        false => (turns, turns * (turns - 1) / 2),
    };
    let prompt = calls * first + looks * (TOKENS_PER_LOOK + TOKENS_PER_REPLY);
    Need {
        pictures: (pictures + (turns - 1) * PICTURES_PER_LOOK) as f64,
        calls: calls as f64,
        prompt: prompt as f64,
        completion: (calls * TOKENS_PER_REPLY) as f64,
    }
}

//! Whether a line of results can be true. Lines come from anywhere: what does not fit is named, and
//! no number is made of it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::results::{OutcomeName, ResultLine};
use crate::prompt::{self, Pack, Scale};

/// What no judgement has more of.
const MOST_DOLLARS: f64 = 1e6;
const MOST_SECONDS: f64 = 1e9;
const MOST_TOKENS: u64 = 1_000_000_000_000;
const MOST_TURNS: u32 = 100_000;
const MOST_REPEATS: u32 = 10_000;
/// The end of the year 9999, in milliseconds since 1970.
const LATEST: u64 = 253_402_300_799_999;
/// Scores are printed with two decimals.
const ROUNDING: f64 = 0.01;

/// What labels are worth, as far as packs and the lines so far say.
#[derive(Debug, Default)]
pub(crate) struct Worths(BTreeMap<[String; 3], f64>);

impl Worths {
    /// What is wrong with a line, in words.
    pub(crate) fn check(&mut self, line: &ResultLine) -> Result<(), String> {
        check(line)?;
        let criterion = pack_of(line).and_then(|pack| pack.criterion(&line.criterion).ok());
        if let (Some(score), Some(criterion)) = (line.score, criterion) {
            let Scale { lowest, highest, .. } = criterion.scale;
            let highest = highest.unwrap_or(f64::INFINITY);
            if !(lowest..=highest).contains(&score) {
                return Err(format!(
                    "its score is {score}, which is not within {lowest} to {highest}"
                ));
            }
        }
        let (Some(label), Some(score)) = (&line.label, line.score) else { return Ok(()) };
        let told = || format!("its score is {score}, and {label:?} is worth");
        if let Some(criterion) = criterion {
            let known = criterion.label_like(label);
            match known.and_then(|label| criterion.score(&label.name)) {
                Some(worth) if (worth - score).abs() > ROUNDING => {
                    return Err(format!("{} {worth:.2}", told()));
                }
                None if line.prompts.is_some() => {
                    let id = &criterion.id;
                    return Err(format!("{label:?} is no label of the criterion {id:?}"));
                }
                _ => {}
            }
        }
        // What an answer to a question is worth depends on the question.
        if line.parts.iter().any(|part| part.question.is_some()) {
            return Ok(());
        }
        let prompts = line.prompts.clone().unwrap_or_default();
        let key = [prompts, line.criterion.to_lowercase(), label.to_lowercase()];
        let worth = *self.0.entry(key).or_insert(score);
        match (worth - score).abs() > ROUNDING {
            true => Err(format!("{} {worth} in another line", told())),
            false => Ok(()),
        }
    }
}

/// The pack of this program that a line was judged by; lines from elsewhere are read by the usual one.
fn pack_of(line: &ResultLine) -> Option<&'static Pack> {
    static PACKS: LazyLock<Vec<Pack>> =
        LazyLock::new(|| Pack::list().filter_map(|id| Pack::embedded(id).ok()).collect());
    let named = |pack: &&Pack| match &line.prompts {
        Some(prompts) => *prompts == format!("{}@{}", pack.id(), &pack.hash.as_str()[..12]),
        None => pack.id() == prompt::DEFAULT,
    };
    PACKS.iter().find(named)
}

/// What is wrong with a line by itself.
fn check(line: &ResultLine) -> Result<(), String> {
    let outcome = line.outcome();
    if line.case.is_empty() || line.criterion.trim().is_empty() {
        return Err("its case or its criterion is empty".to_owned());
    }
    if outcome == Some(OutcomeName::Verdict) && line.label.is_none() && line.score.is_none() {
        return Err("it is a verdict and has no label".to_owned());
    }
    if outcome != Some(OutcomeName::Verdict) && (line.label.is_some() || line.score.is_some()) {
        return Err(
            "it has a label or a score and is no verdict; only a verdict has one".to_owned()
        );
    }
    let within = |name: &str, value: Option<f64>, most: f64| match value {
        Some(value) if !(0.0..=most).contains(&value) => {
            Err(format!("its {name} is {value}, which is not within 0 to {most}"))
        }
        _ => Ok(()),
    };
    within("cost", line.cost, MOST_DOLLARS)?;
    within("paid", line.paid, MOST_DOLLARS)?;
    within("seconds", line.seconds, MOST_SECONDS)?;
    for side in line.target_scale.into_iter().flatten() {
        within("target_scale", Some(side), 1e6)?;
    }
    if let (Some(paid), Some(cost)) = (line.paid, line.cost)
        && paid > cost + 1e-6 * cost.max(1.0)
    {
        return Err(format!("it paid {paid} for what cost {cost}"));
    }
    let usage = line.usage;
    for tokens in [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens] {
        if tokens.is_some_and(|tokens| tokens > MOST_TOKENS) {
            return Err(format!("it has more than {MOST_TOKENS} tokens"));
        }
    }
    let looks = line.tools.values().copied().max().unwrap_or(0);
    if line.turns.unwrap_or(0).max(looks) > MOST_TURNS || line.repeat > MOST_REPEATS {
        return Err("its turns, its looks or its repetition are too many".to_owned());
    }
    if line.turns.is_some_and(|turns| line.cached > turns) {
        return Err("more of its replies were kept than it has turns".to_owned());
    }
    if line.at.is_some_and(|at| at > LATEST) {
        return Err("it ended after the year 9999".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(more: Value) -> ResultLine {
        let mut line = json!({"case": "1", "criterion": "if", "label": "Wrong Action"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn what_cannot_be_true_is_named() {
        for (more, word) in [
            (json!({"paid": -1000}), "paid is -1000"),
            (json!({"cost": -0.01}), "cost"),
            (json!({"cost": 1e300}), "cost"),
            (json!({"cost": 1, "paid": 2}), "paid 2"),
            (json!({"seconds": -1}), "seconds"),
            (json!({"score": 101}), "score"),
            (json!({"score": 100}), "worth 33.33"),
            (json!({"outcome": "failed"}), "no verdict"),
            (json!({"outcome": "failed", "label": null, "score": 50}), "no verdict"),
            (json!({"outcome": "verdict", "label": null}), "no label"),
            (json!({"usage": {"prompt_tokens": u64::MAX}}), "tokens"),
            (json!({"turns": 1, "cached": 2}), "kept"),
            (json!({"turns": 4_000_000_000u32}), "turns"),
            (json!({"target_scale": [-1, 0.5]}), "target_scale"),
            (json!({"at": u64::MAX}), "year"),
            (json!({"criterion": " "}), "empty"),
        ] {
            let error = Worths::default().check(&line(more.clone())).unwrap_err();
            assert!(error.contains(word), "{more}: {error}");
        }
        for more in [
            json!({}),
            json!({"score": 33.33, "cost": 0.1, "paid": 0.0, "turns": 2, "cached": 2}),
            json!({"label": "2", "score": 33.333}),
            json!({"criterion": "beauty", "label": "Nice", "score": 80}),
            json!({"outcome": "failed", "label": null}),
        ] {
            assert_eq!(Worths::default().check(&line(more.clone())), Ok(()), "{more}");
        }
    }

    #[test]
    fn a_label_is_worth_the_same_in_every_line() {
        let mut worths = Worths::default();
        let nice =
            |score: f64| line(json!({"criterion": "beauty", "label": "Nice", "score": score}));
        assert_eq!(worths.check(&nice(80.0)), Ok(()));
        assert_eq!(worths.check(&nice(80.0)), Ok(()));
        assert!(worths.check(&nice(20.0)).unwrap_err().contains("another line"));
    }
}

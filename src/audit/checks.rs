//! What can be wrong with scores, whoever wrote them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, FindingKind, Reply, Score, Scores};
use crate::visible::visible_line;

/// What was found, and which scores rest on an answer.
pub(super) struct Checked {
    pub(super) good: Vec<bool>,
    pub(super) findings: Vec<Finding>,
    pub(super) notes: Vec<String>,
    pub(super) items: usize,
    /// Items that should be there and are not.
    pub(super) absent: usize,
}

/// So many examples are told of each fault.
const EXAMPLES: usize = 5;
/// Fewer ratings that are the same may be so by chance.
const FEWEST_RATINGS: usize = 5;

#[derive(Default)]
struct Found(BTreeMap<FindingKind, (usize, Vec<String>)>);

impl Found {
    fn add(&mut self, kind: FindingKind, example: String) {
        let (count, examples) = self.0.entry(kind).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(visible_line(&example));
        }
    }
}

pub(super) fn check(file: &Scores, expected: Option<&[String]>) -> Checked {
    let mut found = Found::default();
    let mut notes = Vec::new();
    file.unreadable.iter().for_each(|what| found.add(FindingKind::Unreadable, what.clone()));
    let mut good: Vec<bool> =
        file.scores.iter().map(|score| check_score(score, file.scale, &mut found)).collect();
    twice(&file.scores, &mut good, &mut found);
    let known: BTreeSet<&str> = file
        .scores
        .iter()
        .map(|score| score.item.as_str())
        .chain(file.raters.values().flat_map(|items| items.keys().map(String::as_str)))
        .collect();
    let missing = match expected {
        Some(expected) => {
            expected.iter().filter(|item| !known.contains(item.as_str())).cloned().collect()
        }
        None => gaps(&known),
    };
    for item in &missing {
        found.add(FindingKind::MissingItem, item.clone());
    }
    unequal(&file.scores, &mut found);
    raters(file, &mut found);
    if file.scores.iter().all(|score| score.reply == Reply::NotKept) && !file.scores.is_empty() {
        notes.push(
            "it keeps no replies: whether an answer was read, failed or drawn at random cannot be told from it"
                .to_owned(),
        );
    }
    if expected.is_none() {
        notes.push(
            "how many items there should be is not known; the data set would tell".to_owned(),
        );
    }
    let findings = found.0.into_iter().map(|(kind, (count, examples))| Finding {
        kind,
        count,
        message: message(kind).to_owned(),
        examples,
    });
    Checked { good, findings: findings.collect(), notes, items: known.len(), absent: missing.len() }
}

fn message(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::FailureScoredLowest => {
            "there is no answer that could be read, and it counts as the lowest score"
        }
        FindingKind::FailureScoredAnyhow => {
            "there is no answer that could be read, and it has a score: drawn at random, or made up"
        }
        FindingKind::OtherThanReply => "the reply says another score than the file",
        FindingKind::OffScale => {
            "the score is not on the scale: a mark for a failure that counts as a number"
        }
        FindingKind::MissingScore => {
            "there is no score: the mean is over fewer items than it seems"
        }
        FindingKind::MissingItem => {
            "the item is not there: the mean is over fewer items than it seems"
        }
        FindingKind::Duplicate => "the item stands twice and counts twice",
        FindingKind::Contradiction => "the item stands twice with different scores",
        FindingKind::RepeatedRater => {
            "two raters always say the same: one of them was probably read twice, and agreement is too high"
        }
        FindingKind::PartLeftOut => {
            "a part of the score failed or is absent, and the rest was averaged without it"
        }
        FindingKind::Unreadable => "it is no record of a score",
    }
}

/// Whether a score rests on an answer, as far as can be told.
fn check_score(score: &Score, scale: Option<[f64; 2]>, found: &mut Found) -> bool {
    let place = format!("{} ({})", score.item, score.metric);
    let why = no_answer(score);
    let Some(value) = score.value else {
        let why = why.unwrap_or_default();
        found.add(FindingKind::MissingScore, format!("{place} {why}").trim_end().to_owned());
        return false;
    };
    let lowest = scale.map_or(0.0, |[lowest, _]| lowest);
    if let Some(why) = why {
        let kind = match value == 0.0 || value == lowest {
            true => FindingKind::FailureScoredLowest,
            false => FindingKind::FailureScoredAnyhow,
        };
        found.add(kind, format!("{place}: {value}, {why}"));
        return false;
    }
    if !value.is_finite() || scale.is_some_and(|[low, high]| !(low..=high).contains(&value)) {
        found.add(FindingKind::OffScale, format!("{place}: {value}"));
        return false;
    }
    if let Reply::Whole(reply) = &score.reply
        && !numbers(reply).iter().any(|number| (number - value).abs() < 1e-6)
        && !is_mean_of(value, &numbers(reply))
    {
        found.add(FindingKind::OtherThanReply, format!("{place}: {value}"));
        return false;
    }
    true
}

/// Why there is no answer, if there is none.
fn no_answer(score: &Score) -> Option<String> {
    if let Some(error) = &score.error {
        return Some(format!("error: {}", error.chars().take(80).collect::<String>()));
    }
    match &score.reply {
        Reply::NotKept => None,
        Reply::Reasons(text) | Reply::Whole(text) if text.trim().is_empty() => {
            Some("the reply is empty".to_owned())
        }
        Reply::Reasons(text) | Reply::Whole(text) if is_failure(text) => {
            Some(format!("the reply is {:?}", text.trim().chars().take(80).collect::<String>()))
        }
        Reply::Whole(text) if numbers(text).is_empty() => {
            Some(format!("no number in {:?}", text.trim().chars().take(80).collect::<String>()))
        }
        _ => None,
    }
}

/// Words that stand where an answer should: of a program that gave up, or a judge that would not.
fn is_failure(text: &str) -> bool {
    const WHOLE: [&str; 9] =
        ["none", "null", "nan", "n/a", "error", "failed", "[]", "{}", "parse error"];
    const STARTS: [&str; 14] = [
        "error:",
        "error code",
        "exception",
        "traceback",
        "failed to",
        "could not parse",
        "cannot parse",
        "unable to parse",
        "parsing failed",
        "parse failed",
        "timeout",
        "request timed out",
        "rate limit",
        "api error",
    ];
    const REFUSALS: [&str; 6] = [
        "i'm sorry, but i can",
        "i\u{2019}m sorry, but i can",
        "sorry, i can",
        "i cannot assist",
        "i can't assist",
        "i\u{2019}m unable to",
    ];
    let text = text.trim().trim_matches('"').to_lowercase();
    let starts = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    WHOLE.contains(&text.as_str()) || starts(&STARTS) || starts(&REFUSALS)
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<f64> {
    let part = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    let numbers = text.split(part).map(|word| word.trim_end_matches(['.', '-']));
    numbers.filter_map(|word| word.parse().ok()).collect()
}

/// Some judges give several scores, whose mean, least or root of the product is the file's.
fn is_mean_of(value: f64, numbers: &[f64]) -> bool {
    // The last ones are those of the answer; what stands before are reasons.
    (2..=numbers.len().min(8)).any(|count| {
        let own = &numbers[numbers.len() - count..];
        let mean = own.iter().sum::<f64>() / count as f64;
        let root = own.iter().product::<f64>().abs().powf(1.0 / count as f64);
        let near = |other: f64| (value - other).abs() < 0.006;
        near(mean) || near(root)
    })
}

/// Items that stand twice by one metric: the second does not count.
fn twice(scores: &[Score], good: &mut [bool], found: &mut Found) {
    let mut first: BTreeMap<(&str, &str), &Score> = BTreeMap::new();
    for (score, good) in scores.iter().zip(good) {
        let Some(before) = first.get(&(score.item.as_str(), score.metric.as_str())) else {
            first.insert((&score.item, &score.metric), score);
            continue;
        };
        let places =
            format!("{} ({}), {} and {}", score.item, score.metric, before.place, score.place);
        let kind = match before.value == score.value {
            true => FindingKind::Duplicate,
            false => FindingKind::Contradiction,
        };
        found.add(kind, places);
        *good = false;
    }
}

/// Numbers that are missing between the first and the last, where items are numbered.
fn gaps(known: &BTreeSet<&str>) -> Vec<String> {
    let numbers: Option<BTreeSet<u64>> = known.iter().map(|item| item.parse().ok()).collect();
    let Some(numbers) = numbers.filter(|numbers| numbers.len() >= 5) else { return Vec::new() };
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return Vec::new() };
    let start = *first;
    // Many gaps are no gaps: the numbers are names.
    if (last - start) as usize >= numbers.len() * 2 {
        return Vec::new();
    }
    (start..=*last)
        .filter(|number| !numbers.contains(number))
        .map(|number| number.to_string())
        .collect()
}

/// Items that lack a metric which others have.
fn unequal(scores: &[Score], found: &mut Found) {
    let metrics: BTreeSet<&str> = scores.iter().map(|score| score.metric.as_str()).collect();
    let mut of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for score in scores {
        of.entry(&score.item).or_default().insert(&score.metric);
    }
    for (item, own) in of {
        for metric in metrics.difference(&own) {
            found.add(FindingKind::PartLeftOut, format!("{item}: no {metric}"));
        }
    }
}

/// Raters who say the same of everything, although they say different things.
fn raters(file: &Scores, found: &mut Found) {
    let all: Vec<(&String, &BTreeMap<String, String>)> = file.raters.iter().collect();
    for (place, (first, own)) in all.iter().enumerate() {
        for (second, other) in &all[place + 1..] {
            let both: Vec<(&String, &String)> =
                own.iter().filter_map(|(item, value)| Some((value, other.get(item)?))).collect();
            let values: BTreeSet<&String> = both.iter().map(|(value, _)| *value).collect();
            if both.len() >= FEWEST_RATINGS
                && values.len() > 1
                && both.iter().all(|(one, two)| one == two)
            {
                found.add(
                    FindingKind::RepeatedRater,
                    format!("{first} and {second}, {} items", both.len()),
                );
            }
        }
    }
}

//! Two runs on the same cases: what flipped, and whether one is better.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::key::PairKey;
use crate::stats::{Bootstrap, Coverage, Estimate, Finding, Paired, Sum, cases_needed};

/// The judgements of one run.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// All judgements, also those without a verdict.
    pub judgements: BTreeMap<PairKey, OneSide>,
}

/// A judgement of one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneSide {
    /// The label of a verdict and its score.
    pub verdict: Option<Scored>,
    /// Where its trace is, if anywhere.
    pub trace: Option<String>,
}

/// A label and what it is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scored {
    /// The label; empty where the answer has several keys.
    pub label: String,
    /// What it is worth.
    pub score: f64,
}

/// What two runs say together; differences are the second minus the first.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Judgements that both runs have.
    pub pairs: usize,
    /// Judgements that only the first or only the second run has; they count nowhere.
    pub only_in: [usize; 2],
    /// Pairs where only the first or only the second has a verdict; they are not in the means.
    pub lost_and_won: [usize; 2],
    /// All together (where there are several criteria), then by criterion.
    pub criteria: Vec<CriterionComparison>,
    /// Pairs with different labels, the largest difference first.
    pub flips: Vec<Flip>,
    /// By which prompts each run was judged, where they are not the same: then the words may be what
    /// makes the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub different_prompts: Option<[Vec<String>; 2]>,
}

/// What the runs say of a criterion.
#[derive(Debug, Clone, Serialize)]
pub struct CriterionComparison {
    /// The criterion; none for all together.
    pub criterion: Option<String>,
    /// Verdicts of each run among the pairs.
    pub coverage: [Coverage; 2],
    /// Pairs with two verdicts, and their cases.
    pub pairs: usize,
    /// How many cases these belong to.
    pub cases: usize,
    /// The mean score of each run over these pairs.
    pub means: [Option<f64>; 2],
    /// The mean difference with its bootstrap interval over cases.
    pub difference: Estimate,
    /// Two-sided p value of the sign-flip permutation test over cases; null where nothing differs.
    pub p_permutation: Option<f64>,
    /// Two-sided p value of the exact sign test over cases; null where nothing differs.
    pub p_sign: Option<f64>,
    /// Cases that are better, worse and the same in the second run.
    pub better_worse_same: [usize; 3],
    /// What that comes to.
    pub finding: Finding,
    /// Where there is no evidence: how many more cases it would take to tell such a difference from
    /// none four times in five; none where there is no difference at all.
    pub more_cases: Option<usize>,
}

/// A pair with different labels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flip {
    /// Of what.
    pub judged: PairKey,
    /// What the first run said.
    pub first: Scored,
    /// What the second run said.
    pub second: Scored,
    /// The second score minus the first.
    pub difference: f64,
    /// The traces of both.
    pub traces: [Option<String>; 2],
}

impl Comparison {
    /// Compares the judgements that two runs share; `None` if there are none.
    pub fn new(first: &Side, second: &Side, bootstrap: &Bootstrap) -> Option<Self> {
        let pairs: Vec<Pair<'_>> = first
            .judgements
            .iter()
            .filter_map(|(key, one)| Some((key, [one, second.judgements.get(key)?])))
            .collect();
        if pairs.is_empty() {
            return None;
        }
        let criteria: BTreeSet<&str> =
            pairs.iter().map(|(key, _)| key.criterion.as_str()).collect();
        let mut compared = Vec::new();
        if criteria.len() > 1 {
            compared.push(compare(None, &pairs, bootstrap));
        }
        for criterion in criteria {
            let of_it: Vec<Pair<'_>> =
                pairs.iter().filter(|(key, _)| key.criterion == criterion).copied().collect();
            compared.push(compare(Some(criterion), &of_it, bootstrap));
        }
        let only = |side: &Side| side.judgements.len() - pairs.len();
        let alone = |has: usize, lacks: usize| {
            let one_sided = |(_, sides): &&Pair<'_>| {
                sides[has].verdict.is_some() && sides[lacks].verdict.is_none()
            };
            pairs.iter().filter(one_sided).count()
        };
        Some(Self {
            pairs: pairs.len(),
            only_in: [only(first), only(second)],
            lost_and_won: [alone(0, 1), alone(1, 0)],
            criteria: compared,
            flips: flips(&pairs),
            different_prompts: None,
        })
    }
}

/// Differences together by case: the edits of one case are not independent.
#[derive(Debug, Clone, Default)]
pub struct Clusters(BTreeMap<String, Sum>);

impl Clusters {
    /// One more difference of a case.
    pub fn add(&mut self, case: &str, value: f64) {
        self.0.entry(case.to_owned()).or_default().add(value);
    }

    /// The sums by case.
    pub fn sums(&self) -> Vec<Sum> {
        self.0.values().copied().collect()
    }

    /// How many differences there are.
    pub fn edits(&self) -> usize {
        self.0.values().map(|sum| sum.count as usize).sum()
    }

    /// The mean difference with its interval.
    pub fn estimate(&self) -> Estimate {
        self.tested().difference
    }

    /// The mean difference, and how probable it would be by luck alone.
    pub fn tested(&self) -> Tested {
        let paired = Paired::new(&self.sums(), &Bootstrap::default());
        Tested {
            difference: Estimate::new(paired.mean, paired.interval),
            p: paired.p.ok(),
            corrected_p: None,
            finding: Finding::NoEvidence,
        }
    }
}

/// A mean difference and whether it is more than luck.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tested {
    /// The mean difference with its bootstrap interval over cases.
    pub difference: Estimate,
    /// How often luck alone would do at least as much; absent where nothing differs.
    pub p: Option<f64>,
    /// The same, corrected for the number of comparisons.
    pub corrected_p: Option<f64>,
    /// What follows from that.
    pub finding: Finding,
}

impl Tested {
    /// Takes in the p value that is corrected for the number of comparisons.
    pub fn correct(&mut self, p: Option<f64>) {
        self.corrected_p = p;
        self.finding = Self::finding_of(self.difference, p);
    }

    /// What a difference comes to with this p value.
    pub fn finding_of(difference: Estimate, p: Option<f64>) -> Finding {
        let gain = difference.value.unwrap_or(0.0);
        match p.is_some_and(|p| p <= Paired::LEVEL) {
            true if gain > 0.0 => Finding::Better,
            true if gain < 0.0 => Finding::Worse,
            _ => Finding::NoEvidence,
        }
    }
}

type Pair<'a> = (&'a PairKey, [&'a OneSide; 2]);

fn scores(pair: &Pair<'_>) -> Option<[f64; 2]> {
    let [first, second] = pair.1.map(|side| side.verdict.as_ref().map(|verdict| verdict.score));
    Some([first?, second?])
}

fn compare(
    criterion: Option<&str>,
    pairs: &[Pair<'_>],
    bootstrap: &Bootstrap,
) -> CriterionComparison {
    let mut cases = Clusters::default();
    let mut sums = [Sum::default(); 2];
    for pair in pairs {
        let Some(scores) = scores(pair) else { continue };
        cases.add(&pair.0.case, scores[1] - scores[0]);
        for (sum, score) in sums.iter_mut().zip(scores) {
            sum.add(score);
        }
    }
    let cases = cases.sums();
    let paired = Paired::new(&cases, bootstrap);
    let finding = paired.finding();
    let more = match finding {
        Finding::NoEvidence => {
            cases_needed(&cases).map(|needed| needed.saturating_sub(cases.len()))
        }
        Finding::Better | Finding::Worse => None,
    };
    let answered = |side: usize| Coverage {
        answered: pairs.iter().filter(|(_, sides)| sides[side].verdict.is_some()).count(),
        all: pairs.len(),
    };
    CriterionComparison {
        criterion: criterion.map(str::to_owned),
        coverage: [answered(0), answered(1)],
        pairs: paired.pairs,
        cases: paired.cases,
        means: sums.map(|sum| (sum.count > 0).then(|| sum.total / f64::from(sum.count))),
        difference: Estimate::new(paired.mean, paired.interval),
        p_permutation: paired.p.ok(),
        p_sign: paired.p_sign.ok(),
        better_worse_same: paired.signs,
        finding,
        more_cases: more,
    }
}

fn flips(pairs: &[Pair<'_>]) -> Vec<Flip> {
    let flip = |(key, [first, second]): &Pair<'_>| {
        let (was, is) = (first.verdict.clone()?, second.verdict.clone()?);
        // An answer of several keys has no label: then its worth tells.
        (was != is).then(|| Flip {
            judged: (*key).clone(),
            difference: is.score - was.score,
            first: was,
            second: is,
            traces: [first.trace.clone(), second.trace.clone()],
        })
    };
    let mut flips: Vec<Flip> = pairs.iter().filter_map(flip).collect();
    // Stable: equal ones stay in the order of their keys. What got worse comes before what got better.
    flips.sort_by(|a, b| {
        let size = b.difference.abs().total_cmp(&a.difference.abs());
        size.then(a.difference.total_cmp(&b.difference))
    });
    flips
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(scores: &[Option<f64>]) -> Side {
        let judged = |(i, score): (usize, &Option<f64>)| {
            let key = PairKey {
                case: format!("c{i:02}"),
                editor: None,
                criterion: if i % 2 == 0 { "if" } else { "vc" }.to_owned(),
                mode: None,
                repeat: 0,
            };
            let verdict = score.map(|score| Scored { label: format!("worth {score}"), score });
            (key, OneSide { verdict, trace: Some(format!("judgements/{i}")) })
        };
        Side { judgements: scores.iter().enumerate().map(judged).collect() }
    }

    fn compare(first: &[Option<f64>], second: &[Option<f64>]) -> Comparison {
        Comparison::new(&side(first), &side(second), &Bootstrap::default()).unwrap()
    }

    #[test]
    fn the_same_run_gives_no_evidence_and_no_flips() {
        let run = [Some(0.0), Some(100.0), None, Some(50.0)];
        let found = compare(&run, &run);
        assert_eq!((found.pairs, found.only_in, found.lost_and_won), (4, [0, 0], [0, 0]));
        assert!(found.flips.is_empty());
        for one in &found.criteria {
            assert_eq!((one.finding, one.more_cases), (Finding::NoEvidence, None));
            assert_eq!((one.difference.value, one.p_sign), (Ok(0.0), None));
        }
        let names: Vec<_> = found.criteria.iter().map(|one| one.criterion.as_deref()).collect();
        assert_eq!(names, [None, Some("if"), Some("vc")]);
        assert_eq!(found.criteria[1].coverage[0], Coverage { answered: 1, all: 2 });
        assert_eq!(found.criteria[1].means, [Some(0.0), Some(0.0)]);
    }

    #[test]
    fn the_largest_flips_come_first_and_worse_before_better() {
        let found = compare(
            &[Some(0.0), Some(100.0), Some(50.0), Some(0.0)],
            &[Some(50.0), Some(0.0), Some(50.0), Some(100.0)],
        );
        let cases: Vec<&str> = found.flips.iter().map(|flip| flip.judged.case.as_str()).collect();
        assert_eq!(cases, ["c01", "c03", "c00"]);
        assert_eq!(found.flips[0].difference, -100.0);
        assert_eq!(found.flips[0].traces, [0, 1].map(|_| Some("judgements/1".to_owned())));
    }

    #[test]
    fn many_wins_are_better_and_few_ask_for_more() {
        let first = vec![Some(0.0); 40];
        let second: Vec<Option<f64>> = (0..40).map(|i| Some(f64::from(i % 3) * 50.0)).collect();
        let found = compare(&first, &second);
        assert_eq!(found.criteria[0].finding, Finding::Better);
        assert_eq!(compare(&second, &first).criteria[0].finding, Finding::Worse);
        let few = compare(&first[..4], &second[..4]);
        assert_eq!(few.criteria[0].finding, Finding::NoEvidence);
        assert!(few.criteria[0].more_cases.unwrap() >= 2);
    }

    #[test]
    fn what_lost_its_verdict_is_counted_and_not_scored() {
        let found = compare(&[Some(100.0), Some(100.0)], &[None, Some(100.0)]);
        assert_eq!(found.lost_and_won, [1, 0]);
        assert_eq!(found.criteria[1].means, [None, None]);
        assert!(found.criteria[1].difference.value.is_err());
        let apart = Comparison::new(&side(&[]), &side(&[None]), &Bootstrap::default());
        assert!(apart.is_none());
    }
}

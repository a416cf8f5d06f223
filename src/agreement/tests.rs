//! Judges beside people, on numbers that can be checked by hand.

use super::*;
use crate::key::Item;
use crate::report::GroupKey;
use crate::stats::{Bootstrap, Coverage, Undefined};

fn name(run: &str) -> GroupKey {
    GroupKey {
        place: 0,
        run: run.to_owned(),
        model: None,
        mode: None,
        prompts: None,
        variant: None,
    }
}

fn item(criterion: &str, case: &str) -> Item {
    Item { criterion: criterion.to_owned(), case: case.to_owned(), editor: "e".to_owned() }
}

fn rankings() -> Vec<Ranking> {
    let ranking = |criterion: &str| Ranking {
        criterion: criterion.to_owned(),
        name: criterion.to_owned(),
        labels: (1..=4).map(|rank| (format!("label {rank}"), f64::from(rank))).collect(),
    };
    vec![ranking("if"), ranking("vc")]
}

/// Cases c1, c2, … of the criterion, with the ranks that each annotator gave.
fn labels(criterion: &str, ranks: &[&[f64]]) -> Labels {
    let ranks = ranks.iter().enumerate().map(|(i, ranks)| {
        let named = ranks.iter().enumerate().map(|(who, rank)| (format!("annotator {who}"), *rank));
        (item(criterion, &format!("c{}", i + 1)), named.collect())
    });
    Labels { items: ranks.collect(), ..Labels::default() }
}

fn judge(run: &str, criterion: &str, ranks: &[Option<f64>]) -> Judge {
    let judgement = |(i, rank): (usize, &Option<f64>)| Judgement {
        item: item(criterion, &format!("c{}", i + 1)),
        kind: if i % 2 == 0 { "Removal" } else { "Color" }.to_owned(),
        rank: *rank,
    };
    Judge { name: name(run), judgements: ranks.iter().enumerate().map(judgement).collect() }
}

fn agreement(judges: &[Judge], labels: &Labels) -> Agreement {
    Agreement::new(judges, labels, Truth::Mean, &rankings(), &Bootstrap::default())
}

#[test]
fn the_truth_is_the_mean_and_categories_take_the_nearest_label() {
    let labels = labels("if", &[&[1.0, 1.0], &[2.0, 3.0], &[3.0, 4.0], &[4.0, 4.0]]);
    let judge = judge("run", "if", &[1.0, 3.0, 3.0, 4.0].map(Some));
    let found = agreement(&[judge], &labels);
    assert_eq!((found.labelled, found.between_labels, found.annotators.len()), (4, 2, 2));
    let all = &found.judges[0].cells[0];
    assert_eq!((all.criterion.as_deref(), all.kind.as_deref(), all.cases), (Some("if"), None, 4));
    // Against 1, 2.5, 3.5, 4.
    assert_eq!(all.agreement.get(Measure::Mae).value, Ok(0.25));
    // Against 1, 2, 3, 4.
    assert_eq!(all.agreement.get(Measure::Exact).value, Ok(0.75));
    let kinds: Vec<_> = found.judges[0].cells.iter().map(|cell| cell.kind.as_deref()).collect();
    assert_eq!(kinds, [None, None, Some("Color"), Some("Removal")]);
    let editors: Vec<_> = found.judges[0].cells.iter().map(|cell| cell.editor.as_deref()).collect();
    assert_eq!(editors, [None, Some("e"), None, None]);
    assert_eq!(
        found.judges[0].confusion[0].counts,
        [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    );
}

#[test]
fn what_has_no_verdict_is_not_covered_and_never_a_number() {
    let labels = labels("if", &[&[4.0], &[1.0], &[4.0], &[1.0]]);
    let judge = judge("run", "if", &[Some(4.0), None, Some(1.0)]);
    let found = agreement(std::slice::from_ref(&judge), &labels);
    let one = &found.judges[0];
    assert_eq!((one.without_label, one.never_judged, one.of_others), (0, 1, 0));
    assert_eq!(one.cells[0].coverage, Some(Coverage { answered: 2, all: 4 }));
    assert_eq!(one.cells[0].agreement.n, 2);
    assert_eq!(one.cells[0].agreement.get(Measure::Exact).value, Ok(0.5));
    assert_eq!(one.confusion[0].counts[0], [0, 0, 0, 0, 2]);
    // Nobody labelled this criterion for the judge: all of its judgements count nowhere.
    let other = agreement(&[judge], &super::tests::labels("vc", &[&[4.0]]));
    let one = &other.judges[0];
    assert_eq!((one.without_label, one.never_judged, one.of_others), (3, 0, 1));
    assert!(one.cells.is_empty());
}

#[test]
fn annotators_and_repetitions() {
    let labels = labels("if", &[&[1.0, 2.0], &[1.0, 2.0], &[3.0]]);
    let mut judge = judge("run", "if", &[Some(1.0), Some(2.0)]);
    judge.judgements.extend(judge.judgements.clone());
    judge.judgements[3].rank = Some(3.0);
    let found = agreement(&[judge], &labels);
    let people = &found.among_annotators[0].agreement;
    assert_eq!((people.n, people.get(Measure::AlphaNominal).value), (2, Ok(-0.5)));
    let itself = &found.judges[0].with_itself[0].agreement;
    assert_eq!((itself.n, itself.get(Measure::Exact).value), (2, Ok(0.5)));
    // Every repetition is a row of its own.
    assert_eq!(found.judges[0].cells[0].agreement.n, 4);
    assert_eq!(found.judges[0].cells[0].cases, 2);
}

#[test]
fn two_judges_are_compared_on_what_both_judged() {
    let truth: Vec<f64> = (0..40).map(|i| f64::from(i % 4 + 1)).collect();
    let ranks: Vec<&[f64]> = truth.chunks(1).collect();
    let labels = labels("if", &ranks);
    let good: Vec<Option<f64>> = truth.iter().copied().map(Some).collect();
    let mut bad: Vec<Option<f64>> = truth.iter().map(|rank| Some(5.0 - rank)).collect();
    bad[0] = None;
    let judges = [judge("good", "if", &good), judge("bad", "if", &bad)];
    let found = agreement(&judges, &labels);
    let [one] = &found.differences[..] else { panic!("{:?}", found.differences) };
    assert_eq!((one.judges, one.difference.n), ([0, 1], 39));
    let spearman = one.difference.get(Measure::Spearman);
    assert!((spearman.value.unwrap() - 2.0).abs() < 1e-12);
    assert!(spearman.interval.unwrap().low > 1.9);
    let same = agreement(&[judges[0].clone(), judges[0].clone()], &labels);
    assert_eq!(same.differences[0].difference.get(Measure::Mae).value, Ok(0.0));
    let constant = judge("flat", "if", &vec![Some(2.0); 40]);
    let undefined = agreement(&[judges[0].clone(), constant], &labels);
    let spearman = undefined.differences[0].difference.get(Measure::Spearman);
    assert_eq!(spearman.value, Err(Undefined::Constant));
}

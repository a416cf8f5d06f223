//! Whether the judge passed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Probe;
use crate::prompt::Pack;

/// What a judge said to one case of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Which probe.
    pub probe: Probe,
    /// The case that the probe was made of.
    pub case: String,
    /// By which criterion.
    pub criterion: String,
    /// The label; `None` where there is no verdict.
    pub label: Option<String>,
}

/// How a judge did on one probe under one criterion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The probe's name.
    pub probe: &'static str,
    /// What was shown.
    pub about: &'static str,
    /// By which criterion.
    pub criterion: String,
    /// What is right, in words.
    pub expected: String,
    /// How many judgements there are.
    pub asked: usize,
    /// How many of them can be told right or wrong: verdicts, for comparisons on both sides.
    pub told: usize,
    /// How many of these are right.
    pub right: usize,
    /// Whether the judge passed; `None` where nothing could be told.
    pub passed: Option<bool>,
    /// The labels that were wrong, with the cases.
    pub wrong: Vec<(String, String)>,
}

/// Says of each probe and criterion whether the judge passed: at least the share `floor` of what can
/// be told must be right, and at least half of what was asked must be told.
pub fn assess(answers: &[Answer], pack: &Pack, floor: f64) -> Vec<Assessment> {
    let as_it_is: BTreeMap<(&str, &str), &str> = answers
        .iter()
        .filter(|answer| answer.probe == Probe::AsItIs)
        .filter_map(|a| Some(((a.case.as_str(), a.criterion.as_str()), a.label.as_deref()?)))
        .collect();
    let mut assessments = Vec::new();
    for probe in Probe::ALL {
        for (index, criterion) in pack.criteria().iter().enumerate() {
            let expected = probe.expected(index == 0);
            if expected == super::Expected::Anything {
                continue;
            }
            let own = answers.iter().filter(|a| a.probe == probe && a.criterion == criterion.id);
            let (mut asked, mut told, mut wrong) = (0, 0, Vec::new());
            for answer in own {
                asked += 1;
                let Some(label) = &answer.label else { continue };
                let before = as_it_is.get(&(answer.case.as_str(), answer.criterion.as_str()));
                let Some(met) = expected.is_met(label, before.copied(), criterion) else {
                    continue;
                };
                told += 1;
                if !met {
                    wrong.push((answer.case.clone(), label.clone()));
                }
            }
            if asked == 0 {
                continue;
            }
            let right = told - wrong.len();
            let enough = 2 * told >= asked && told > 0;
            assessments.push(Assessment {
                probe: probe.name(),
                about: probe.about(),
                criterion: criterion.id.clone(),
                expected: expected.in_words(criterion),
                asked,
                told,
                right,
                passed: enough.then_some(right as f64 >= floor * told as f64),
                wrong,
            });
        }
    }
    assessments
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::super::{ProbeCase, make};
    use super::*;
    use crate::case::EditCase;
    use crate::dataset::draw::{self, Editor};

    /// The probes of a few drawn cases; drawing takes a moment.
    static PROBES: LazyLock<Vec<ProbeCase>> = LazyLock::new(probes);

    fn probes() -> Vec<ProbeCase> {
        let drawn: Vec<_> = (0..3).map(|index| draw::case(21, index).unwrap()).collect();
        let case = |(index, drawn): (usize, &draw::DrawnCase)| {
            let edit = drawn.edits.iter().find(|edit| edit.editor == Editor::Perfect).unwrap();
            let mut case =
                EditCase::new(drawn.source.clone(), edit.picture.clone(), &drawn.instruction);
            case.id = drawn.id.clone();
            case = case.with_reference(drawn.reference.clone()).with_targets(drawn.boxes.clone());
            (case, (index + 1) % 3)
        };
        let cases: Vec<_> = drawn.iter().enumerate().map(case).collect();
        cases
            .iter()
            .flat_map(|(case, other)| make(case, Some(&drawn[*other].instruction)))
            .collect()
    }

    /// What a judge, given as a function, makes of the probes: the names of those it does not pass.
    fn failed_by(judge: impl Fn(&ProbeCase, &str) -> &'static str) -> Vec<&'static str> {
        let pack = Pack::embedded("dlebench/v1").unwrap();
        let answers: Vec<Answer> = PROBES
            .iter()
            .flat_map(|made| {
                ["if", "vc"].map(|criterion| Answer {
                    probe: made.probe,
                    case: made.of.clone(),
                    criterion: criterion.to_owned(),
                    label: Some(judge(made, criterion).to_owned()),
                })
            })
            .collect();
        let assessed = assess(&answers, &pack, 0.8);
        let failed = assessed.iter().filter(|a| a.passed != Some(true)).map(|a| a.probe);
        let mut failed: Vec<_> = failed.collect();
        failed.dedup();
        failed
    }

    fn best(criterion: &str) -> &'static str {
        if criterion == "if" { "Flawless Execution" } else { "Perfect Consistency" }
    }

    fn worst(criterion: &str) -> &'static str {
        if criterion == "if" { "Localization Failure" } else { "Scene Collapse" }
    }

    /// Knows every answer.
    fn sound(made: &ProbeCase, criterion: &str) -> &'static str {
        match made.probe.expected(criterion == "if") {
            super::super::Expected::Worst => worst(criterion),
            super::super::Expected::NotBest if criterion == "if" => "Wrong Action",
            super::super::Expected::NotBest => "Single Anomaly",
            _ => best(criterion),
        }
    }

    #[test]
    fn every_probe_can_be_made_and_a_sound_judge_passes() {
        let made = &*PROBES;
        for probe in Probe::ALL {
            assert!(made.iter().any(|made| made.probe == probe), "{probe:?}");
            assert_eq!(Probe::named(probe.name()), Some(probe));
        }
        assert_eq!(failed_by(sound), [""; 0]);
    }

    #[test]
    fn a_judge_that_is_always_content_fails() {
        let failed = failed_by(|_, criterion| best(criterion));
        assert!(failed.contains(&"no-op") && failed.contains(&"blank"), "{failed:?}");
    }

    #[test]
    fn a_judge_that_ignores_the_source_fails() {
        // It sees only the edited picture: what looks like the reference is flawless.
        let failed = failed_by(|made, criterion| {
            let looks_right = made.case.edited.hash()
                == made
                    .case
                    .reference()
                    .map_or_else(|| made.case.edited.hash(), |reference| reference.hash());
            if criterion == "vc" {
                sound(made, criterion)
            } else if looks_right || made.probe.expected(true) == super::super::Expected::Same {
                best(criterion)
            } else {
                worst(criterion)
            }
        });
        assert!(failed.contains(&"no-op-on-reference"), "{failed:?}");
    }

    #[test]
    fn a_judge_that_reads_names_fails() {
        let failed = failed_by(|made, criterion| {
            if made.case.id.contains("flawless") { best(criterion) } else { worst(criterion) }
        });
        assert!(failed.contains(&"other-names"), "{failed:?}");
    }

    #[test]
    fn a_judge_that_sees_the_pictures_swapped_fails() {
        let failed = failed_by(|made, criterion| match made.probe {
            Probe::Reference if criterion == "if" => worst(criterion),
            Probe::Swapped => best(criterion),
            _ => sound(made, criterion),
        });
        assert_eq!(failed, ["reference", "swapped"]);
    }

    #[test]
    fn what_is_not_told_is_not_passed() {
        let pack = Pack::embedded("dlebench/v1").unwrap();
        let answer = |label: Option<&str>| Answer {
            probe: Probe::NoOp,
            case: "a".to_owned(),
            criterion: "if".to_owned(),
            label: label.map(str::to_owned),
        };
        let silent = assess(&[answer(None), answer(None)], &pack, 0.8);
        assert_eq!((silent[0].asked, silent[0].told, silent[0].passed), (2, 0, None));
        let half = assess(&[answer(None), answer(Some("Localization Failure"))], &pack, 0.8);
        assert_eq!((half[0].told, half[0].passed), (1, Some(true)));
    }
}

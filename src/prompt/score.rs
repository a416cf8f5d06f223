//! What an answer is worth: a few named functions with parameters. All of them are pure, and none
//! gives a number where there is nothing to count.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::criterion::{AnswerKind, Criterion, Gate, Key, Label};
use crate::answer::{Answered, same_value};
use crate::case::{Condition, Facts};

/// How a score comes out of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "function", rename_all = "snake_case")]
pub enum ScoreFunction {
    /// The scale's lowest at the lowest rank, its highest at the highest, even steps between.
    LinearRank {
        /// Worth the least.
        lowest: u32,
        /// Worth the most.
        highest: u32,
    },
    /// The scale's highest where the label is the expected answer of the question, else its lowest.
    EqualsExpected,
    /// The number that was measured.
    Measured,
    /// The root of the product of the means of groups of keys.
    Product {
        /// The groups, by the names of their keys.
        of: Vec<Vec<String>>,
        /// Which root is taken; 1 for none.
        root: u32,
        /// What a group is worth of whose keys none counts; `None`: then there is no score.
        empty: Option<f64>,
    },
    /// The smallest of the means of groups of keys.
    Smallest {
        /// The groups, by the names of their keys.
        of: Vec<Vec<String>>,
        /// What a group is worth of whose keys none counts; `None`: then there is no score.
        empty: Option<f64>,
    },
}

/// What scores mean: their bounds, and how they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scale {
    /// The worst score that there is.
    pub lowest: f64,
    /// The best one; absent where there is none, as with decibels.
    pub highest: Option<f64>,
    /// With how many decimals scores are printed.
    pub decimals: usize,
}

impl Default for Scale {
    fn default() -> Self {
        Self { lowest: 0.0, highest: Some(100.0), decimals: 2 }
    }
}

impl Scale {
    /// The score that lies this far between the lowest (0) and the highest (1).
    fn at(&self, share: f64) -> Option<f64> {
        Some(self.lowest + (self.highest? - self.lowest) * share)
    }

    /// Whether a score can be on it.
    pub fn holds(&self, score: f64) -> bool {
        score >= self.lowest && self.highest.is_none_or(|highest| score <= highest)
    }

    /// How far a score lies between the lowest (0) and the highest (1).
    pub fn share(&self, score: f64) -> Option<f64> {
        Some((score - self.lowest) / (self.highest? - self.lowest))
    }

    /// A score of this scale on another one.
    fn onto(&self, other: &Self, score: f64) -> Option<f64> {
        if self.lowest == other.lowest && self.highest == other.highest {
            return Some(score);
        }
        other.at(self.share(score)?)
    }
}

/// Why an answer that could be read has no score.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoScore(String);

impl Criterion {
    /// What an answer is worth; `expected` is the right answer of the question, where there is one.
    pub fn worth(&self, answer: &Answered, expected: Option<&str>) -> Result<f64, NoScore> {
        let no = |why: String| Err(NoScore(why));
        match (&self.score, &self.answer, answer) {
            (function, AnswerKind::Label { .. }, Answered::Label(name)) => {
                let Some(label) = self.label(name) else {
                    return no(format!("{name:?} is not a label of {}", self.id));
                };
                self.worth_of_label(function, label, expected)
            }
            (
                ScoreFunction::Product { of, empty, .. } | ScoreFunction::Smallest { of, empty },
                AnswerKind::Keys { keys, gates },
                Answered::Values(values),
            ) => {
                let means = means(&worths(keys, gates, values)?, of, *empty)?;
                let share = match &self.score {
                    ScoreFunction::Product { root, .. } => rooted(means.iter().product(), *root),
                    _ => means.into_iter().fold(f64::INFINITY, f64::min),
                };
                let unbounded = || NoScore(format!("the scale of {} has no highest", self.id));
                self.scale.at(share).ok_or_else(unbounded)
            }
            _ => no(format!("this is not the form of answer that {} asks for", self.id)),
        }
    }

    fn worth_of_label(
        &self,
        function: &ScoreFunction,
        label: &Label,
        expected: Option<&str>,
    ) -> Result<f64, NoScore> {
        let Some(highest) = self.scale.highest else {
            return Err(NoScore(format!("the scale of {} has no highest", self.id)));
        };
        let (worst, span) = (self.scale.lowest, highest - self.scale.lowest);
        match function {
            // Multiplied first: 200 / 3 is the nearest number to two thirds of 100.
            ScoreFunction::LinearRank { lowest, highest } => Ok(worst
                + span * (f64::from(label.rank) - f64::from(*lowest))
                    / (f64::from(*highest) - f64::from(*lowest))),
            ScoreFunction::EqualsExpected => {
                let right = expected.and_then(|text| self.label_like(text));
                let right = right.ok_or_else(|| {
                    NoScore("the question has no expected answer that is a label".to_owned())
                })?;
                Ok(if right.name == label.name { highest } else { worst })
            }
            ScoreFunction::Product { .. }
            | ScoreFunction::Smallest { .. }
            | ScoreFunction::Measured => {
                Err(NoScore(format!("{} is not scored by labels", self.id)))
            }
        }
    }
}

/// What each key is worth after the gates; `None` where it does not count.
fn worths<'a>(
    keys: &'a [Key],
    gates: &[Gate],
    values: &BTreeMap<String, Value>,
) -> Result<BTreeMap<&'a str, Option<f64>>, NoScore> {
    let mut worths = BTreeMap::new();
    for key in keys {
        let given = values.get(&key.name);
        let known = given.and_then(|given| key.values.iter().find(|v| same_value(&v.value, given)));
        let Some(known) = known else {
            return Err(NoScore(format!("{} has no value that is allowed", key.name)));
        };
        worths.insert(key.name.as_str(), known.worth);
    }
    for gate in gates {
        let other = values.get(&gate.unless);
        let open = other.is_some_and(|other| gate.is.iter().any(|is| same_value(is, other)));
        if let Some(worth) = worths.get_mut(gate.key.as_str())
            && !open
        {
            *worth = gate.worth;
        }
    }
    Ok(worths)
}

/// The means of groups of keys, one or more.
fn means(
    worths: &BTreeMap<&str, Option<f64>>,
    of: &[Vec<String>],
    empty: Option<f64>,
) -> Result<Vec<f64>, NoScore> {
    let mean = |group: &Vec<String>| {
        let counted: Vec<f64> =
            group.iter().filter_map(|key| worths.get(key.as_str()).copied().flatten()).collect();
        match (counted.is_empty(), empty) {
            (false, _) => Ok(counted.iter().sum::<f64>() / counted.len() as f64),
            (true, Some(worth)) => Ok(worth),
            (true, None) => Err(NoScore(format!("none of {} counts", group.join(", ")))),
        }
    };
    of.iter().map(mean).collect()
}

fn rooted(product: f64, root: u32) -> f64 {
    match root {
        0 | 1 => product,
        2 => product.sqrt(),
        3 => product.cbrt(),
        more => product.powf(1.0 / f64::from(more)),
    }
}

/// A score over several criteria of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Composite {
    /// The short name.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// How it comes about: the first formula that applies to a case counts.
    pub formulas: Vec<Formula>,
    /// What its scores mean.
    pub scale: Scale,
}

/// How a composite score comes about in the cases that it applies to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Formula {
    /// To which cases it applies; to all, where nothing is said.
    pub applies: Vec<Condition>,
    /// How it comes out of the criteria's scores.
    #[serde(flatten)]
    pub function: CompositeFunction,
    /// The ids of the criteria.
    pub of: Vec<String>,
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of: Vec<String> = self.of.iter().map(|id| id.to_uppercase()).collect();
        match self.function {
            CompositeFunction::Mean => write!(f, "the mean of {}", of.join(" and ")),
            CompositeFunction::Product { root: 0 | 1 } => write!(f, "{}", of.join(" · ")),
            CompositeFunction::Product { root: 2 } => {
                write!(f, "the square root of {}", of.join(" · "))
            }
            CompositeFunction::Product { root: 3 } => {
                write!(f, "the 3rd root of {}", of.join(" · "))
            }
            CompositeFunction::Product { root } => {
                write!(f, "the {root}th root of {}", of.join(" · "))
            }
        }
    }
}

/// How a composite score comes out of those of the criteria.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "function", rename_all = "snake_case")]
pub enum CompositeFunction {
    /// Their mean.
    Mean,
    /// The root of their product.
    Product {
        /// Which root is taken; 1 for none.
        root: u32,
    },
}

impl Composite {
    /// The formula for a case of which this is known.
    pub fn formula(&self, facts: &Facts) -> Option<&Formula> {
        self.formulas.iter().find(|one| Condition::all_met(&one.applies, facts))
    }
}

impl Formula {
    /// The score, on `scale`, of a case whose criteria are worth this; `None` where one of them has no
    /// score: a judgement that failed never raises a mean.
    pub fn worth<'a>(
        &self,
        scale: &Scale,
        criteria: &[Criterion],
        score: impl Fn(&str) -> Option<f64> + 'a,
    ) -> Option<f64> {
        let scored = |id: &String| {
            let criterion = criteria.iter().find(|criterion| criterion.id == *id)?;
            Some((criterion.scale, score(id)?))
        };
        let scored: Vec<(Scale, f64)> = self.of.iter().map(scored).collect::<Option<_>>()?;
        match self.function {
            CompositeFunction::Mean => {
                let ours = |(own, score): &(Scale, f64)| own.onto(scale, *score);
                let ours: Vec<f64> = scored.iter().map(ours).collect::<Option<_>>()?;
                (!ours.is_empty()).then(|| ours.iter().sum::<f64>() / ours.len() as f64)
            }
            CompositeFunction::Product { root } => {
                let share = |(own, score): &(Scale, f64)| own.share(*score);
                let shares: Vec<f64> = scored.iter().map(share).collect::<Option<_>>()?;
                (!shares.is_empty())
                    .then(|| rooted(shares.iter().product(), root))
                    .and_then(|share| scale.at(share))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parse;
    use super::*;

    /// The rubric of a pack with this after its head.
    fn rubric(criteria: &str) -> super::super::Rubric {
        let text = format!("format = 2\nname = \"t\"\nversion = \"v1\"\nabout = \"x\"\n{criteria}");
        let files = super::super::Files::from([("pack.toml".to_owned(), text.into_bytes())]);
        match parse::rubric(&files, None) {
            Ok(rubric) => rubric,
            Err(findings) => panic!("{findings:#?}"),
        }
    }

    fn criterion(answer_and_score: &str) -> Criterion {
        let text = format!(
            "[[criterion]]\nid = \"c\"\nname = \"C\"\n\
             modes = {{ plain = {{ tools = false, views = [{{ picture = \"edited\" }}] }} }}\n{answer_and_score}"
        );
        rubric(&text).criteria.remove(0)
    }

    fn values(given: &Value) -> Answered {
        let given = given.as_object().unwrap();
        Answered::Values(given.iter().map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    /// Each line: the values, and what they are worth of 1; `None` where there is no score.
    fn check(criterion: &Criterion, table: &[(Value, Option<f64>)]) {
        for (given, expected) in table {
            let found = criterion.worth(&values(given), None).ok().map(|score| score / 100.0);
            let close = found.zip(*expected).is_some_and(|(a, b)| (a - b).abs() < 1e-12);
            assert!(
                close || found.is_none() && expected.is_none(),
                "{given}: {found:?} {expected:?}"
            );
        }
    }

    #[test]
    fn ranks_are_even_steps_of_the_scale() {
        let labels = "answer = { labels = [{ name = \"A\", rank = 1 }, { name = \"B\", rank = 2 }, { name = \"C\", rank = 4 }] }\n";
        let of = |more: &str| {
            let criterion =
                criterion(&format!("{labels}score = {{ function = \"linear_rank\" }}\n{more}"));
            ["A", "B", "C"].map(|label| criterion.score(label).unwrap())
        };
        assert_eq!(of(""), [0.0, 100.0 / 3.0, 100.0]);
        assert_eq!(of("scale = { lowest = 1, highest = 4, decimals = 0 }"), [1.0, 2.0, 4.0]);
    }

    #[test]
    fn an_expected_answer_is_met_or_not() {
        let text = "ask = \"questions\"\n\
            answer = { labels = [{ name = \"No\", rank = 1 }, { name = \"Yes\", rank = 2 }] }\n\
            score = { function = \"equals_expected\" }\n";
        let criterion = criterion(text);
        for (said, expected, worth) in [
            ("Yes", Some("Yes"), Some(100.0)),
            ("Yes", Some(" yes "), Some(100.0)),
            ("No", Some("Yes"), Some(0.0)),
            ("No", Some("NO"), Some(100.0)),
            ("Yes", Some("maybe"), None),
            ("Yes", None, None),
            ("Perhaps", Some("Yes"), None),
        ] {
            let found = criterion.worth(&Answered::Label(said.to_owned()), expected).ok();
            assert_eq!(found, worth, "{said} for {expected:?}");
        }
    }

    #[test]
    fn a_value_that_is_not_applicable_leaves_the_mean() {
        let limb = |name: &str| {
            format!(
                "{{ name = \"{name}\", values = [\"MATCH\", \"MISMATCH\", \"N/A\"], worth = {{ MATCH = 1, MISMATCH = 0 }} }}"
            )
        };
        let keys = ["LA", "RA", "LL", "RL"].map(limb).join(", ");
        let of = |empty: &str| {
            criterion(&format!(
                "answer = {{ keys = [{keys}] }}\nscore = {{ function = \"mean\"{empty} }}\n"
            ))
        };
        let given =
            |a: &str, b: &str, c: &str, d: &str| json!({"LA": a, "RA": b, "LL": c, "RL": d});
        let (yes, no, na) = ("MATCH", "MISMATCH", "N/A");
        let mut table = vec![
            (given(yes, yes, yes, yes), Some(1.0)),
            (given(yes, no, yes, no), Some(0.5)),
            (given(yes, no, na, na), Some(0.5)),
            (given(yes, na, na, na), Some(1.0)),
            (given(no, na, na, na), Some(0.0)),
            (given("match", "n/a", "Mis-Match", na), Some(0.5)),
            (given(yes, yes, yes, "unsure"), None),
            (json!({"LA": yes, "RA": yes, "LL": yes}), None),
        ];
        table.push((given(na, na, na, na), None));
        check(&of(""), &table);
        table.pop();
        table.push((given(na, na, na, na), Some(0.0)));
        check(&of(", empty = 0"), &table);
    }

    #[test]
    fn gates_close_unless_the_other_key_is_right() {
        let light = |gates: &str| {
            criterion(&format!(
                "score = {{ function = \"mean\" }}\n[criterion.answer]\n\
                 keys = [{{ name = \"DMC\", values = [0, 0.5, 1] }}, {{ name = \"PLC\", values = [0, 1] }}]\n{gates}"
            ))
        };
        let given = |dmc: f64, plc: u32| json!({"DMC": dmc, "PLC": plc});
        let gated =
            light("gates = [{ key = \"plc\", unless = { key = \"dmc\", is = 1 }, worth = 0 }]");
        check(
            &gated,
            &[
                (given(1.0, 1), Some(1.0)),
                (given(1.0, 0), Some(0.5)),
                (given(0.5, 1), Some(0.25)),
                (given(0.5, 0), Some(0.25)),
                (given(0.0, 1), Some(0.0)),
                (given(0.7, 1), None),
            ],
        );
        let either = light(
            "gates = [{ key = \"PLC\", unless = { key = \"DMC\", is = [1, 0.5] }, worth = 0 }]",
        );
        check(&either, &[(given(0.5, 1), Some(0.75)), (given(0.0, 1), Some(0.0))]);
        check(&light(""), &[(given(0.5, 1), Some(0.75)), (given(0.0, 1), Some(0.5))]);
    }

    /// Only the axes that had to change count.
    #[test]
    fn a_gate_without_a_worth_takes_a_key_out() {
        let axis = |name: &str| {
            format!(
                "{{ name = \"{name}\", values = [0, 1] }}, {{ name = \"{name} flagged\", at = [\"{name}\", \"needs_modification\"], values = [true, false] }}"
            )
        };
        let gate = |name: &str| {
            format!("{{ key = \"{name}\", unless = {{ key = \"{name} flagged\", is = true }} }}")
        };
        let names = ["Yaw", "Pitch", "Roll"];
        let (keys, gates) = (names.map(axis).join(", "), names.map(gate).join(", "));
        let flagged = criterion(&format!(
            "score = {{ function = \"product\", of = [[\"Yaw\", \"Pitch\", \"Roll\"]], empty = 0 }}\n\
             [criterion.answer]\nkeys = [{keys}]\ngates = [{gates}]\n"
        ));
        let given = |worth: [u32; 3], flags: [bool; 3]| {
            json!({
                "Yaw": worth[0], "Pitch": worth[1], "Roll": worth[2],
                "Yaw flagged": flags[0], "Pitch flagged": flags[1], "Roll flagged": flags[2],
            })
        };
        check(
            &flagged,
            &[
                (given([1, 1, 1], [true, true, true]), Some(1.0)),
                (given([0, 1, 1], [true, false, false]), Some(0.0)),
                (given([1, 0, 0], [true, true, false]), Some(0.5)),
                (given([1, 1, 1], [false, false, false]), Some(0.0)),
            ],
        );
    }

    #[test]
    fn a_product_of_means_has_its_root_or_none() {
        let billiards = |root: &str| {
            criterion(&format!(
                "score = {{ function = \"product\", of = [[\"CP\"], [\"PC\", \"CC\"]]{root} }}\n\
                 [criterion.answer]\nkeys = [{{ name = \"CP\", values = [0, 1] }}, {{ name = \"PC\", values = [0, 1] }}, {{ name = \"CC\", values = [0, 1] }}]\n"
            ))
        };
        let given = |cp: u32, pc: u32, cc: u32| json!({"CP": cp, "PC": pc, "CC": cc});
        let half = 0.5_f64;
        for (root, worth) in [
            (", root = 2", half.sqrt()),
            (", root = 3", half.cbrt()),
            (", root = 1", half),
            ("", half),
        ] {
            check(
                &billiards(root),
                &[
                    (given(1, 1, 0), Some(worth)),
                    (given(1, 1, 1), Some(1.0)),
                    (given(1, 0, 0), Some(0.0)),
                    (given(0, 1, 1), Some(0.0)),
                ],
            );
        }
    }

    #[test]
    fn composites_are_of_all_their_criteria_or_not_at_all() {
        let one = |id: &str, scale: &str| {
            format!(
                "[[criterion]]\nid = \"{id}\"\nname = \"X\"\nscore = {{ function = \"mean\" }}\n\
                 answer = {{ keys = [{{ name = \"k\", values = [0, 1] }}] }}\n{scale}\n\
                 modes = {{ plain = {{ tools = false, views = [{{ picture = \"edited\" }}] }} }}\n"
            )
        };
        let text = ["ia", "cp", "vc"].map(|id| one(id, "")).concat()
            + &one("unit", "scale = { lowest = 0, highest = 1, decimals = 2 }")
            + "[[composite]]\nid = \"deictic\"\nfunction = \"product\"\nroot = 3\nof = [\"ia\", \"cp\", \"vc\"]\napplies = { task = [\"Addition\", \"Removal\"] }\n\
               [[composite]]\nid = \"light\"\nfunction = \"product\"\nroot = 2\nof = [\"ia\", \"unit\"]\n\
               [[composite]]\nid = \"overall\"\nfunction = \"mean\"\nof = [\"ia\", \"unit\"]\n";
        let rubric = rubric(&text);
        let scores = |given: &[(&str, f64)], task: &str| -> Vec<(String, Option<f64>)> {
            let given: BTreeMap<String, f64> =
                given.iter().map(|(id, score)| ((*id).to_owned(), *score)).collect();
            let mut facts = crate::case::Facts::default();
            facts.insert("task", task);
            let found = rubric.composites_of(&facts, |id| given.get(id).copied());
            found.into_iter().map(|(one, score)| (one.id.clone(), score)).collect()
        };
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        let all = scores(&[("ia", 50.0), ("cp", 100.0), ("vc", 25.0), ("unit", 0.5)], "addition");
        assert_eq!(
            all.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(),
            ["deictic", "light", "overall"]
        );
        assert!(near(all[0].1, 50.0), "{all:?}");
        assert!(near(all[1].1, 50.0) && near(all[2].1, 50.0), "{all:?}");
        let other = scores(&[("ia", 100.0), ("unit", 0.0)], "Billiards");
        assert_eq!(other, [("light".to_owned(), Some(0.0)), ("overall".to_owned(), Some(50.0))]);
        // What failed never raises a score.
        let part = scores(&[("ia", 100.0), ("cp", 100.0)], "Removal");
        assert!(part.iter().all(|(_, score)| score.is_none()), "{part:?}");
    }

    #[test]
    fn the_mean_of_two_criteria_on_one_scale_is_exactly_that() {
        let pack = super::super::Pack::embedded("dlebench/v2").unwrap();
        let scores = [("if", 200.0 / 3.0), ("vc", 100.0)];
        let score = |id: &str| scores.iter().find(|(known, _)| *known == id).map(|(_, s)| *s);
        let found = pack.rubric().composites_of(&crate::case::Facts::default(), score);
        assert_eq!(found[0].1, Some((200.0 / 3.0 + 100.0) / 2.0));
    }
}

//! What a report says: numbers, and which judgements each is made of. Pure; how it looks is the
//! business of the other files.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::behaviour::Behaviour;
use super::columns::{Column, Grouping};
use super::judged::{self, GroupKey, JudgedGroup, JudgedResult, LabelName, Standing};
use super::points::Points;
use super::scale::SizeAnalysis;
use super::scores::{self, EditorScores};
use super::{ReportError, Run};
use crate::case::{Condition, Facts};
use crate::prompt::{self, Rubric};
use crate::verdict::Combine;

/// Everything that is reported.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The lines that were read.
    pub judgements: usize,
    /// One for each run, model, mode and prompts: they are never averaged together.
    pub groups: Vec<Group>,
}

/// The judgements of one run, model, mode and prompts.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Whose they are.
    pub group: GroupKey,
    /// The criteria, in the pack's order.
    pub criteria: Vec<CriterionName>,
    /// Composite scores over several criteria, in the pack's order.
    pub composites: Vec<CompositeName>,
    /// The fact whose values are `types`.
    pub by: String,
    /// The values that cases are grouped by, in the pack's order: types of instructions, laws, tasks.
    pub types: Vec<String>,
    /// Further groupings, where the pack wants them.
    pub also: Vec<Grouping>,
    /// What a reader must know before comparing numbers of this group.
    pub notes: Vec<String>,
    /// The scores of each editor, the best first.
    pub editors: Vec<EditorScores>,
    /// How the judgements ended, per editor and criterion.
    pub outcomes: Vec<Outcomes>,
    /// Why there are judgements without a verdict, the most frequent first.
    pub reasons: Vec<Reason>,
    /// How the score depends on the size of the target, per editor and criterion.
    pub scale: Vec<SizeAnalysis>,
    /// What the judge did, per criterion.
    pub behaviour: Vec<Behaviour>,
}

/// A criterion and its labels.
#[derive(Debug, Clone, Serialize)]
pub struct CriterionName {
    /// The short name.
    pub id: String,
    /// The whole name.
    pub name: String,
    /// The worst first; none where an answer has several keys.
    pub labels: Vec<LabelName>,
    /// What its scores mean.
    pub scale: prompt::Scale,
    /// Whether parts are counted instead of cases.
    pub pooled: bool,
}

/// A composite score and what it is made of.
#[derive(Debug, Clone, Serialize)]
pub struct CompositeName {
    /// The short name.
    pub id: String,
    /// The whole name.
    pub name: String,
    /// In words: how it comes out of the criteria.
    pub made_of: String,
    /// What its scores mean.
    pub scale: prompt::Scale,
}

impl CriterionName {
    /// The short name as tables show it: `IF`.
    pub fn short(&self) -> String {
        self.id.to_uppercase()
    }
}

/// A score and what it stands on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Score {
    /// Edits that were to be judged, each once, however often it was repeated.
    pub cases: usize,
    /// Judgements, repetitions included.
    pub n: usize,
    /// How many of them are verdicts.
    pub verdicts: usize,
    /// Verdicts of judgements; absent where there are none.
    pub coverage: Option<f64>,
    /// The mean over cases with a verdict, as printed; absent where there is none.
    pub score: Option<Points>,
    /// The same, not rounded.
    pub exact: Option<f64>,
    /// The bootstrap interval; absent where fewer than two cases cannot tell.
    pub interval: Option<PrintedInterval>,
    /// The score if every judgement without a verdict were worth the least.
    pub worst: Option<Points>,
    /// The score if every judgement without a verdict were worth the most; absent where there is no most.
    pub best: Option<Points>,
    /// The sample deviation of the scores of the repetitions; absent where there are fewer than two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Of an average: over how many types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<TypeCount>,
}

/// Types with verdicts, of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TypeCount {
    /// Types that have a score.
    pub scored: usize,
    /// Types that the group has.
    pub of: usize,
}

/// From where to where 95 % of the resampled scores lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PrintedInterval {
    /// 2.5 % are lower.
    pub low: Points,
    /// 2.5 % are higher.
    pub high: Points,
}

/// How often something was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Count {
    /// What.
    pub name: String,
    /// How often.
    pub count: usize,
}

/// How judgements ended.
#[derive(Debug, Clone, Serialize)]
pub struct Outcomes {
    /// Who edited.
    pub editor: String,
    /// By which criterion.
    pub criterion: String,
    /// In the order of [`Standing::ALL`].
    pub counts: Vec<Count>,
}

/// A reason why there is no verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Reason {
    /// How these judgements ended.
    pub outcome: Standing,
    /// Why.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// Which lines of the run.
    #[serde(skip)]
    pub lines: Vec<usize>,
}

/// What is to be reported, and how.
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// The fact to group by, where it is not the pack's.
    pub by: Option<String>,
    /// Only judgements of cases whose facts meet these.
    pub conditions: Vec<Condition>,
}

impl Report {
    /// The report of these runs.
    pub fn of(runs: &[Run], options: &ReportOptions) -> Result<Self, ReportError> {
        let mut groups = judged::groups(runs)?;
        for group in groups.values_mut() {
            group.judgements.retain(|judged| judged.line.meets(&options.conditions));
        }
        groups.retain(|_, group| !group.judgements.is_empty());
        if groups.is_empty() {
            return Err(ReportError::Empty(
                runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>().join(", "),
            ));
        }
        let by = options.by.as_deref();
        Ok(Self {
            judgements: groups.values().map(|group| group.judgements.len()).sum(),
            groups: groups.into_iter().map(|(key, group)| Group::of(key, &group, by)).collect(),
        })
    }

    /// Where fewer than this part of the judgements are verdicts, in words.
    pub fn below_coverage(&self, floor: f64) -> Vec<String> {
        let mut below = Vec::new();
        for group in &self.groups {
            for editor in &group.editors {
                for scores in &editor.criteria {
                    let whole = &scores.weighted;
                    if let Some(coverage) = whole.coverage.filter(|coverage| *coverage < floor) {
                        below.push(format!(
                            "{}, {}, {}: {} of {} judgements have a verdict ({:.2} %)",
                            group.group.title(),
                            editor.editor,
                            scores.criterion.to_uppercase(),
                            whole.verdicts,
                            whole.n,
                            100.0 * coverage
                        ));
                    }
                }
            }
        }
        below
    }
}

impl Group {
    fn of(key: GroupKey, group: &JudgedGroup<'_>, by: Option<&str>) -> Self {
        let (lines, rubric) = (&group.judgements, &group.rubric);
        let criteria = criteria(lines, rubric);
        let by = by.or(rubric.report.group.as_deref()).unwrap_or(Facts::TYPE);
        let types = values(lines, by, rubric);
        let columns = Column::all(&criteria, rubric);
        let editors = scores::editors(lines, &columns, by, &types, rubric);
        Self {
            notes: notes(lines, &editors, by, &types),
            outcomes: outcomes(lines, &editors, &criteria),
            reasons: reasons(lines),
            scale: SizeAnalysis::all(lines, &editors, &criteria),
            behaviour: Behaviour::all(lines, &criteria),
            composites: columns.iter().filter_map(Column::composite_name).collect(),
            also: Grouping::all(lines, &columns, by, &editors, rubric),
            by: by.to_owned(),
            group: key,
            criteria,
            types,
            editors,
        }
    }

    /// A criterion by its id.
    pub fn criterion(&self, id: &str) -> Option<&CriterionName> {
        self.criteria.iter().find(|criterion| criterion.id == id)
    }
}

/// The criteria that were judged, in the pack's order, with every label that they can have.
fn criteria(lines: &[JudgedResult<'_>], rubric: &Rubric) -> Vec<CriterionName> {
    let mut labels: BTreeMap<&str, Vec<LabelName>> = BTreeMap::new();
    for judged in lines {
        let known = labels.entry(&judged.criterion).or_default();
        for label in judged.units.iter().filter_map(|unit| unit.label.as_ref()) {
            if !known.contains(label) {
                known.push(label.clone());
            }
        }
    }
    let place = |id: &str| rubric.criteria.iter().position(|criterion| criterion.id == id);
    let mut criteria: Vec<CriterionName> = labels
        .into_iter()
        .map(|(id, mut labels)| {
            let in_pack = rubric.criterion(id);
            // A label that nobody got is a finding too, as long as the labels are the pack's.
            let ours =
                in_pack.filter(|known| labels.iter().all(|l| known.score(&l.name).is_some()));
            for label in ours.iter().flat_map(|known| known.labels()) {
                let score = ours.and_then(|known| known.score(&label.name));
                if let Some(score) = score
                    && !labels.iter().any(|known| known.name == label.name)
                {
                    labels.push(LabelName { name: label.name.clone(), score });
                }
            }
            labels.sort_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.name.cmp(&b.name)));
            CriterionName {
                id: id.to_owned(),
                name: in_pack.map_or(id, |known| known.name.as_str()).to_owned(),
                labels,
                scale: in_pack.map_or_else(prompt::Scale::default, |known| known.scale),
                pooled: in_pack.is_some_and(|known| known.combine == Combine::Pooled),
            }
        })
        .collect();
    criteria.sort_by_key(|criterion| place(&criterion.id).unwrap_or(usize::MAX));
    criteria
}

/// The values of a fact in the pack's order, then the others by name, then those that say nothing.
pub(super) fn values(lines: &[JudgedResult<'_>], fact: &str, rubric: &Rubric) -> Vec<String> {
    let seen: BTreeSet<String> =
        lines.iter().map(|judged| judged.fact(fact).into_owned()).collect();
    let absent: BTreeSet<String> = lines
        .iter()
        .filter(|judged| judged.line.fact(fact).is_none())
        .map(|judged| judged.fact(fact).into_owned())
        .collect();
    let order = &rubric.report.order;
    let place = |value: &String| {
        let place = order.iter().position(|known| known == value).unwrap_or(order.len());
        (absent.contains(value), place)
    };
    let mut values: Vec<String> = seen.into_iter().collect();
    values.sort_by_key(place);
    values
}

fn notes(
    lines: &[JudgedResult<'_>],
    editors: &[EditorScores],
    by: &str,
    types: &[String],
) -> Vec<String> {
    let mut notes = Vec::new();
    if lines.iter().any(|judged| judged.line.model.as_deref() == Some(crate::model::Rules::NAME)) {
        notes.push(
            "The judge is “rules”, the offline baseline: its labels show how the method works, not how good an editor is."
                .to_owned(),
        );
    }
    if lines.iter().any(|one| one.line.model.as_deref() == Some(crate::model::Simulated::NAME)) {
        notes.push(
            "These answers are simulated: made from the data set's own truth, with errors that its traces state. They \
             say nothing about any judge or editor."
                .to_owned(),
        );
    }
    let mut cases: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for judged in lines {
        cases.entry(judged.editor).or_default().insert(&judged.line.case);
    }
    let different: BTreeSet<&BTreeSet<&str>> = cases.values().collect();
    if different.len() > 1 {
        let each = editors.iter().map(|editor| {
            format!(
                "{} {}",
                editor.editor,
                cases.get(editor.editor.as_str()).map_or(0, |c| c.len())
            )
        });
        notes.push(format!(
            "The editors were not judged on the same cases (number of cases: {}): their scores are not of the same questions.",
            each.collect::<Vec<_>>().join(", ")
        ));
    }
    let repeats: BTreeSet<u32> = lines.iter().map(|judged| judged.line.repeat).collect();
    if repeats.len() > 1 {
        notes.push(format!(
            "Judgements were repeated up to {} times: a case's score is the mean of its verdicts, and every case counts once.",
            repeats.len()
        ));
    }
    for editor in editors {
        for scores in &editor.criteria {
            let Some(TypeCount { scored, of }) = scores.average.types else { continue };
            if scored < of {
                notes.push(format!(
                    "{}, {}: {scored} of {of} {by}s have a verdict, and the average is over these.",
                    editor.editor,
                    scores.criterion.to_uppercase(),
                ));
            }
        }
    }
    let single = types.iter().filter(|value| {
        let cases: BTreeSet<&str> = lines
            .iter()
            .filter(|judged| judged.fact(by) == value.as_str())
            .map(|judged| judged.line.case.as_str())
            .collect();
        cases.len() == 1
    });
    let single: Vec<&str> = single.map(String::as_str).collect();
    if !single.is_empty() && types.len() > 1 {
        notes.push(format!(
            "One case alone stands for {}: it has no interval, and others over it are too narrow.",
            single.join(", ")
        ));
    }
    notes
}

fn outcomes(
    lines: &[JudgedResult<'_>],
    editors: &[EditorScores],
    criteria: &[CriterionName],
) -> Vec<Outcomes> {
    let mut counts: BTreeMap<(&str, &str), [usize; 5]> = BTreeMap::new();
    for judged in lines {
        let slot = counts.entry((judged.editor, &judged.criterion)).or_default();
        slot[judged.standing as usize] += 1;
    }
    let mut rows = Vec::new();
    for editor in editors {
        for criterion in criteria {
            let Some(counts) = counts.get(&(editor.editor.as_str(), criterion.id.as_str())) else {
                continue;
            };
            let named = Standing::ALL.iter().zip(counts);
            rows.push(Outcomes {
                editor: editor.editor.clone(),
                criterion: criterion.id.clone(),
                counts: named
                    .map(|(standing, count)| Count { name: standing.name().into(), count: *count })
                    .collect(),
            });
        }
    }
    rows
}

fn reasons(lines: &[JudgedResult<'_>]) -> Vec<Reason> {
    let mut by_reason: BTreeMap<(Standing, &str), Vec<usize>> = BTreeMap::new();
    for judged in lines.iter().filter(|judged| judged.standing != Standing::Verdict) {
        let reason = match judged.standing {
            Standing::Interrupted => {
                judged.line.reason.as_deref().unwrap_or(match judged.line.trace {
                    Some(_) => "the trace has no end",
                    None => "the line has neither a label nor an outcome",
                })
            }
            _ => judged.line.reason.as_deref().unwrap_or("(no reason given)"),
        };
        by_reason.entry((judged.standing, reason)).or_default().push(judged.index);
    }
    let mut reasons: Vec<Reason> = by_reason
        .into_iter()
        .map(|((outcome, reason), lines)| Reason {
            outcome,
            reason: reason.to_owned(),
            count: lines.len(),
            lines,
        })
        .collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons
}

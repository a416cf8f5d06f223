//! What a report says: numbers, and which judgements each is made of. Pure; how it looks is the
//! business of the other files.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::behaviour::Behaviour;
use super::judged::{self, GroupKey, Judged, LabelName, NO_TYPE, Standing};
use super::points::Points;
use super::scale::Scale;
use super::scores::{self, EditorScores};
use super::{ReportError, Run};
use crate::prompt::{self, Pack};

/// The types of DLEBench in the paper's order; others follow by name.
const TYPES: [&str; 7] = [
    "Change Material",
    "Change Color",
    "Change OCR",
    "Change Shape",
    "Removal Object",
    "Replace Object",
    "Change Count",
];

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
    /// The types of instructions, in the paper's order.
    pub types: Vec<String>,
    /// What a reader must know before comparing numbers of this group.
    pub notes: Vec<String>,
    /// The scores of each editor, the best first.
    pub editors: Vec<EditorScores>,
    /// How the judgements ended, per editor and criterion.
    pub outcomes: Vec<Outcomes>,
    /// Why there are judgements without a verdict, the most frequent first.
    pub reasons: Vec<Reason>,
    /// How the score depends on the size of the target, per editor and criterion.
    pub scale: Vec<Scale>,
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
    /// The worst first.
    pub labels: Vec<LabelName>,
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
    /// The score if every judgement without a verdict were worth 0.
    pub worst: Option<Points>,
    /// The score if every judgement without a verdict were worth 100.
    pub best: Option<Points>,
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

impl Report {
    /// The report of these runs.
    pub fn of(runs: &[Run]) -> Result<Self, ReportError> {
        let pack = Pack::embedded(prompt::DEFAULT)?;
        let groups = judged::groups(runs, &pack)?;
        if groups.is_empty() {
            return Err(ReportError::Empty(
                runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>().join(", "),
            ));
        }
        Ok(Self {
            judgements: groups.values().map(Vec::len).sum(),
            groups: groups.into_iter().map(|(key, lines)| Group::of(key, &lines, &pack)).collect(),
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
    fn of(key: GroupKey, lines: &[Judged<'_>], pack: &Pack) -> Self {
        let criteria = criteria(lines, pack);
        let types = types(lines);
        let editors = scores::editors(lines, &criteria, &types);
        Self {
            notes: notes(lines, &editors, &types),
            outcomes: outcomes(lines, &editors, &criteria),
            reasons: reasons(lines),
            scale: Scale::all(lines, &editors),
            behaviour: Behaviour::all(lines, &criteria),
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
fn criteria(lines: &[Judged<'_>], pack: &Pack) -> Vec<CriterionName> {
    let mut labels: BTreeMap<&str, Vec<LabelName>> = BTreeMap::new();
    for judged in lines {
        let known = labels.entry(&judged.criterion).or_default();
        if let Some(label) = &judged.label
            && !known.contains(label)
        {
            known.push(label.clone());
        }
    }
    let place = |id: &str| pack.criteria().iter().position(|criterion| criterion.id == id);
    let mut criteria: Vec<CriterionName> = labels
        .into_iter()
        .map(|(id, mut labels)| {
            let in_pack = place(id).map(|place| &pack.criteria()[place]);
            // A label that nobody got is a finding too, as long as the labels are the pack's.
            let ours =
                in_pack.filter(|known| labels.iter().all(|l| known.score(&l.name).is_some()));
            for label in ours.iter().flat_map(|known| known.labels()) {
                let score = ours.and_then(|known| known.score(&label.name)).unwrap_or_default();
                if !labels.iter().any(|known| known.name == label.name) {
                    labels.push(LabelName { name: label.name.clone(), score });
                }
            }
            labels.sort_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.name.cmp(&b.name)));
            let name = in_pack.map_or(id, |known| known.name.as_str()).to_owned();
            CriterionName { id: id.to_owned(), name, labels }
        })
        .collect();
    criteria.sort_by_key(|criterion| place(&criterion.id).unwrap_or(usize::MAX));
    criteria
}

/// The types in the paper's order, then the others by name, then those without one.
fn types(lines: &[Judged<'_>]) -> Vec<String> {
    let seen: BTreeSet<&str> = lines.iter().map(|judged| judged.kind).collect();
    let mut types: Vec<String> = seen.into_iter().map(str::to_owned).collect();
    let place = |kind: &str| {
        let place = TYPES.iter().position(|known| *known == kind).unwrap_or(TYPES.len());
        (kind == NO_TYPE, place)
    };
    types.sort_by_key(|kind| place(kind));
    types
}

fn notes(lines: &[Judged<'_>], editors: &[EditorScores], types: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if lines.iter().any(|judged| judged.line.model.as_deref() == Some(crate::model::Rules::NAME)) {
        notes.push(
            "The judge is “rules”, the offline baseline: its labels show how the method works, not how good an editor is."
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
            let scored = scores.average.types.map_or(types.len(), |types| types.scored);
            if scored < types.len() {
                notes.push(format!(
                    "{}, {}: {} of {} types have a verdict, and the average is over these.",
                    editor.editor,
                    scores.criterion.to_uppercase(),
                    scored,
                    types.len()
                ));
            }
        }
    }
    notes
}

fn outcomes(
    lines: &[Judged<'_>],
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

fn reasons(lines: &[Judged<'_>]) -> Vec<Reason> {
    let mut by_reason: BTreeMap<(Standing, &str), Vec<usize>> = BTreeMap::new();
    for judged in lines.iter().filter(|judged| judged.standing != Standing::Verdict) {
        let reason = match judged.standing {
            Standing::Interrupted if judged.line.trace.is_some() => "the trace has no end",
            Standing::Interrupted => {
                let reason = judged.line.reason.as_deref();
                reason.unwrap_or("the line has neither a label nor an outcome")
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

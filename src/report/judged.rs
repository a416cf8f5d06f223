//! From lines of `results.jsonl` to judgements that can be counted: groups, labels and what they
//! are worth.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::{ReportError, Run};
use crate::case::Facts;
use crate::model::Simulated;
use crate::prompt::{Criterion, Mode, Rubric, Scale, ScoreFunction};
use crate::trace::{OutcomeName, PartLine, ResultLine};
use crate::verdict::Combine;

/// How a judgement stands, and an interrupted one does too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// There is a label.
    Verdict,
    /// The model gave no readable answer.
    Abstained,
    /// The server, a budget or a filter prevented one.
    Failed,
    /// There was nothing to judge.
    Missing,
    /// The trace has no end.
    Interrupted,
}

impl Standing {
    /// In the order in which tables show them.
    pub const ALL: [Self; 5] =
        [Self::Verdict, Self::Abstained, Self::Failed, Self::Missing, Self::Interrupted];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Abstained => "abstained",
            Self::Failed => "failed",
            Self::Missing => "missing",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is never averaged over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GroupKey {
    /// The place of the run on the command line, counted from 0.
    #[serde(skip)]
    pub place: usize,
    /// The run as it was named.
    pub run: String,
    /// Who judged.
    pub model: Option<String>,
    /// What the judge got to see.
    pub mode: Option<Mode>,
    /// By which prompts.
    pub prompts: Option<String>,
    /// In which variant of them, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl GroupKey {
    /// The run, the model, the mode and the prompts in one line.
    pub fn title(&self) -> String {
        let mode = self.mode.map(|mode| format!("{mode} mode"));
        let run = Some(self.run.clone());
        let variant = self.variant.as_ref().map(|name| format!("variant {name}"));
        let simulated = self.model.as_deref() == Some(Simulated::NAME);
        let model = match simulated {
            true => Some("SIMULATED answers from the data set's truth, no model".to_owned()),
            false => self.model.clone(),
        };
        let parts = [run, model, mode, self.prompts.clone(), variant];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// A label of a criterion, in the order of its worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelName {
    /// Its name.
    pub name: String,
    /// What it is worth.
    pub score: f64,
}

/// The judgements of a group, and what they were judged by.
#[derive(Debug)]
pub(crate) struct JudgedGroup<'a> {
    pub rubric: Arc<Rubric>,
    pub judgements: Vec<JudgedResult<'a>>,
}

/// One judgement that can be counted.
#[derive(Debug, Clone)]
pub(crate) struct JudgedResult<'a> {
    pub line: &'a ResultLine,
    /// Index of the line in its run.
    pub index: usize,
    pub editor: &'a str,
    pub criterion: String,
    pub standing: Standing,
    /// What a verdict is worth.
    pub score: Option<f64>,
    /// What is counted: the judgement itself, or where parts are pooled each of them.
    pub units: Vec<Unit>,
}

/// Something that is counted once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unit {
    /// What it is worth, if there is a verdict.
    pub score: Option<f64>,
    /// Its label in the pack's spelling, if the verdict has one.
    pub label: Option<LabelName>,
}

impl JudgedResult<'_> {
    /// The value of a fact, or what stands where the case has none.
    pub(crate) fn fact(&self, name: &str) -> Cow<'_, str> {
        self.line.fact(name).unwrap_or_else(|| match name {
            Facts::TYPE => Cow::Borrowed(NO_TYPE),
            _ => Cow::Owned(format!("(no {name})")),
        })
    }
}

/// Where a line has no editor or type.
pub(super) const NO_EDITOR: &str = "(no editor)";
pub(crate) const NO_TYPE: &str = "(no type)";

/// The judgements of all runs by group. Within one, each case of an editor is judged once by each
/// criterion in each repetition.
pub(crate) fn groups(runs: &[Run]) -> Result<BTreeMap<GroupKey, JudgedGroup<'_>>, ReportError> {
    let mut groups: BTreeMap<GroupKey, JudgedGroup<'_>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        for (index, line) in run.lines.iter().enumerate() {
            let key = GroupKey {
                place,
                run: run.name.clone(),
                model: line.model.clone(),
                mode: line.mode,
                prompts: line.prompts.clone(),
                variant: line.variant.clone(),
            };
            let group = groups.entry(key).or_insert_with(|| JudgedGroup {
                rubric: Arc::clone(run.rubrics.of(line)),
                judgements: Vec::new(),
            });
            let judged = read(line, index, &group.rubric).map_err(|problem| ReportError::Line {
                run: run.name.clone(),
                line: index + 1,
                problem: format!("case {:?}: {problem}", line.case),
            })?;
            group.judgements.push(judged);
        }
    }
    for (key, group) in &mut groups {
        take_once(key, &mut group.judgements)?;
    }
    Ok(groups)
}

/// Drops interrupted tries of what was judged later; two finished judgements of the same are an error.
fn take_once(key: &GroupKey, judgements: &mut Vec<JudgedResult<'_>>) -> Result<(), ReportError> {
    let what = |judged: &JudgedResult<'_>| {
        let line = judged.line;
        (judged.editor.to_owned(), line.case.clone(), judged.criterion.clone(), line.repeat)
    };
    let mut taken: BTreeMap<_, usize> = BTreeMap::new();
    let mut keep = vec![true; judgements.len()];
    for (place, judged) in judgements.iter().enumerate() {
        let Some(earlier) = taken.insert(what(judged), place) else { continue };
        let was = &judgements[earlier];
        if was.standing == Standing::Interrupted {
            keep[earlier] = false;
        } else if judged.standing == Standing::Interrupted {
            keep[place] = false;
            taken.insert(what(judged), earlier);
        } else {
            return Err(ReportError::Line {
                run: key.run.clone(),
                line: judged.index + 1,
                problem: format!(
                    "case {:?} of {} is judged by `{}` here and in line {}; give one of them another `repeat`, or take one out",
                    judged.line.case,
                    judged.editor,
                    judged.criterion,
                    was.index + 1
                ),
            });
        }
    }
    let mut keep = keep.into_iter();
    judgements.retain(|_| keep.next().unwrap_or(true));
    Ok(())
}

pub(super) fn standing(line: &ResultLine) -> Standing {
    match line.outcome() {
        Some(OutcomeName::Verdict) => Standing::Verdict,
        Some(OutcomeName::Abstained) => Standing::Abstained,
        Some(OutcomeName::Failed) => Standing::Failed,
        Some(OutcomeName::Missing) => Standing::Missing,
        None => Standing::Interrupted,
    }
}

fn read<'a>(
    line: &'a ResultLine,
    index: usize,
    rubric: &Rubric,
) -> Result<JudgedResult<'a>, String> {
    let known = criterion(rubric, &line.criterion);
    let standing = standing(line);
    if standing == Standing::Interrupted && line.score.is_some() {
        return Err("it has a score but neither a label nor an outcome; add the label".into());
    }
    let worth = match (&line.label, standing) {
        (Some(label), Standing::Verdict) => {
            let label = worth(label, line.score, known, &line.criterion)?;
            Some((label.score, Some(label)))
        }
        (None, Standing::Verdict) => {
            let score = line
                .score
                .ok_or("its outcome is a verdict, but it has neither `label` nor `score`")?;
            Some((score, None))
        }
        (Some(label), _) => {
            return Err(format!(
                "its outcome is {}, yet it has the label {label:?}; only a verdict has one",
                standing.name()
            ));
        }
        (None, _) => None,
    };
    if let (Some((score, _)), Some(known)) = (&worth, known) {
        let Scale { lowest, highest, .. } = known.scale;
        if !(*score >= lowest && highest.is_none_or(|highest| *score <= highest)) {
            let to = highest.map_or("more".to_owned(), |highest| highest.to_string());
            return Err(format!("its score {score} is not within {lowest} to {to}"));
        }
    }
    let (score, label) = worth.map_or((None, None), |(score, label)| (Some(score), label));
    let unit = |score: Option<f64>, label: Option<LabelName>| {
        let named = |score: f64| known.and_then(|known| right_or_wrong(known, score));
        Unit { label: score.and_then(named).or(label), score }
    };
    let pooled = known.is_some_and(|known| known.combine == Combine::Pooled);
    let units = match line.parts.as_slice() {
        parts if pooled && !parts.is_empty() => {
            let label = |part: &PartLine| {
                let (name, score) = (part.label.clone()?, part.score?);
                Some(LabelName { name, score })
            };
            parts.iter().map(|part| unit(part.score, label(part))).collect()
        }
        _ => vec![unit(score, label)],
    };
    Ok(JudgedResult {
        line,
        index,
        editor: line.editor.as_deref().unwrap_or(NO_EDITOR),
        criterion: known.map_or_else(|| line.criterion.clone(), |known| known.id.clone()),
        standing,
        score,
        units,
    })
}

/// Where a label is worth what the expected answer makes of it, the label itself says nothing.
fn right_or_wrong(known: &Criterion, score: f64) -> Option<LabelName> {
    if known.score != ScoreFunction::EqualsExpected {
        return None;
    }
    let name = if known.scale.highest == Some(score) { "right" } else { "wrong" };
    Some(LabelName { name: name.to_owned(), score })
}

/// The criterion of this id or name, in any case.
fn criterion<'a>(rubric: &'a Rubric, name: &str) -> Option<&'a Criterion> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    rubric.criteria.iter().find(|criterion| same(&criterion.id) || same(&criterion.name))
}

/// A label and its worth: as the line says, else as the pack does.
fn worth(
    label: &str,
    score: Option<f64>,
    known: Option<&Criterion>,
    criterion: &str,
) -> Result<LabelName, String> {
    if let Some(score) = score {
        return Ok(LabelName { name: label.to_owned(), score });
    }
    let Some(known) = known else {
        return Err(format!(
            "nothing says what {label:?} is worth: the pack has no criterion `{criterion}` and the line has no \
             `score`; add one, or name the pack that knows it"
        ));
    };
    let found = known.label_like(label);
    let (Some(found), Some(score)) = (found, found.and_then(|one| known.score(&one.name))) else {
        let labels: Vec<&str> = known.labels().iter().map(|one| one.name.as_str()).collect();
        return Err(format!(
            "{label:?} is no label of `{}`; the labels are {}",
            known.id,
            labels.join(", ")
        ));
    };
    Ok(LabelName { name: found.name.clone(), score })
}

//! From lines of `results.jsonl` to judgements that can be counted: groups, labels and what they
//! are worth.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ReportError, Run};
use crate::prompt::{Criterion, Mode, Pack};
use crate::trace::{OutcomeName, ResultLine};

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
}

impl GroupKey {
    /// The run, the model, the mode and the prompts in one line.
    pub fn title(&self) -> String {
        let mode = self.mode.map(|mode| format!("{mode} mode"));
        let parts = [Some(self.run.clone()), self.model.clone(), mode, self.prompts.clone()];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

/// A label of a criterion, in the order of its worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelName {
    /// Its name.
    pub name: String,
    /// What it is worth, 0 to 100.
    pub score: f64,
}

/// One judgement that can be counted.
#[derive(Debug, Clone)]
pub(crate) struct Judged<'a> {
    pub line: &'a ResultLine,
    /// Index of the line in its run.
    pub index: usize,
    pub editor: &'a str,
    pub kind: &'a str,
    pub criterion: String,
    pub standing: Standing,
    /// The label in the pack's spelling and its worth, of a verdict.
    pub label: Option<LabelName>,
}

impl Judged<'_> {
    pub(super) fn score(&self) -> Option<f64> {
        self.label.as_ref().map(|label| label.score)
    }
}

/// Where a line has no editor or type.
pub(super) const NO_EDITOR: &str = "(no editor)";
pub(crate) const NO_TYPE: &str = "(no type)";

/// The judgements of all runs by group. Within one, each case of an editor is judged once by each
/// criterion in each repetition.
pub(crate) fn groups<'a>(
    runs: &'a [Run],
    pack: &Pack,
) -> Result<BTreeMap<GroupKey, Vec<Judged<'a>>>, ReportError> {
    let mut groups: BTreeMap<GroupKey, Vec<Judged<'a>>> = BTreeMap::new();
    for (place, run) in runs.iter().enumerate() {
        for (index, line) in run.lines.iter().enumerate() {
            let key = GroupKey {
                place,
                run: run.name.clone(),
                model: line.model.clone(),
                mode: line.mode,
                prompts: line.prompts.clone(),
            };
            let judged = read(line, index, pack).map_err(|problem| ReportError::Line {
                run: run.name.clone(),
                line: index + 1,
                problem: format!("case {:?}: {problem}", line.case),
            })?;
            groups.entry(key).or_default().push(judged);
        }
    }
    for (key, judgements) in &mut groups {
        take_once(key, judgements)?;
    }
    Ok(groups)
}

/// Drops interrupted tries of what was judged later; two finished judgements of the same are an error.
fn take_once(key: &GroupKey, judgements: &mut Vec<Judged<'_>>) -> Result<(), ReportError> {
    let what = |judged: &Judged<'_>| {
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

fn read<'a>(line: &'a ResultLine, index: usize, pack: &Pack) -> Result<Judged<'a>, String> {
    let known = criterion(pack, &line.criterion);
    let standing = standing(line);
    if standing == Standing::Interrupted && line.score.is_some() {
        return Err("it has a score but neither a label nor an outcome; add the label".into());
    }
    let label = match (&line.label, standing) {
        (Some(label), Standing::Verdict) => Some(worth(label, line.score, known, &line.criterion)?),
        (None, Standing::Verdict) => {
            return Err("its outcome is a verdict, but it has no `label`".into());
        }
        (Some(label), _) => {
            return Err(format!(
                "its outcome is {}, yet it has the label {label:?}; only a verdict has one",
                standing.name()
            ));
        }
        (None, _) => None,
    };
    Ok(Judged {
        line,
        index,
        editor: line.editor.as_deref().unwrap_or(NO_EDITOR),
        kind: line.kind.as_deref().unwrap_or(NO_TYPE),
        criterion: known.map_or_else(|| line.criterion.clone(), |known| known.id.clone()),
        standing,
        label,
    })
}

/// The criterion of this id or name, in any case.
fn criterion<'a>(pack: &'a Pack, name: &str) -> Option<&'a Criterion> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    pack.criteria().iter().find(|criterion| same(&criterion.id) || same(&criterion.name))
}

/// A label and its worth: as the line says, else as the pack does.
fn worth(
    label: &str,
    score: Option<f64>,
    known: Option<&Criterion>,
    criterion: &str,
) -> Result<LabelName, String> {
    if let Some(score) = score {
        if !(0.0..=100.0).contains(&score) {
            return Err(format!("its score {score} is not within 0 to 100"));
        }
        return Ok(LabelName { name: label.to_owned(), score });
    }
    let Some(known) = known else {
        return Err(format!(
            "nothing says what {label:?} is worth: `{criterion}` is none of our criteria and the line has no `score`; add one, 0 to 100"
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

//! A judgement in which nobody is asked: something is measured, or another criterion has decided.

use serde_json::{Value, json};

use super::{Judge, JudgeError, Judged, record};
use crate::case::EditCase;
use crate::measure::{Measure, Measured, NotMeasured};
use crate::message::{Dialect, ToolCall, Usage};
use crate::prompt::{Criterion, Skip};
use crate::protocol::Brief;
use crate::trace::{CaseRecord, Decided, Observed, PartRecord, Sink, ToolAnswer, What};
use crate::verdict::{Outcome, Verdict};

/// The only part of a judgement that was not asked for because another had decided it.
pub(crate) const NOT_ASKED: &str = "not asked";

/// The only part of what is measured.
pub(super) fn brief() -> Brief {
    Brief {
        name: "whole picture".to_owned(),
        boxes: Vec::new(),
        crop: None,
        question: None,
        pictures: Vec::new(),
        notes: Vec::new(),
    }
}

/// Measures on a thread that may be busy for a while.
pub(super) async fn measured<M>(
    judge: &Judge<M>,
    measure: &Measure,
    case: &EditCase,
) -> Result<Measured, NotMeasured> {
    let _core = judge.shared.looks.core().await;
    let (measure, case) = (measure.clone(), case.clone());
    let done = tokio::task::spawn_blocking(move || measure.of(&case)).await;
    done.unwrap_or_else(|_| {
        let what = "the measure crashed; this is a defect of deeplook, please report it";
        Err(NotMeasured::Failed(what.to_owned()))
    })
}

/// What was measured, for the record; where nothing was, there is nothing to show.
pub(crate) fn observed(
    measure: &Measure,
    measured: &Result<Measured, NotMeasured>,
) -> Option<Observed> {
    let Measured { value, text, data } = measured.as_ref().ok()?;
    Some(Observed {
        part: 0,
        turn: 1,
        call: ToolCall {
            id: String::new(),
            name: measure.name.clone(),
            arguments: measure.described(),
            form: Dialect::Native,
        },
        answer: ToolAnswer::Saw {
            text: text.clone(),
            data: json!({ "value": value, "details": data }),
            pictures: Vec::new(),
        },
        elapsed_ms: 0,
    })
}

/// What a record says was measured.
pub(crate) fn as_observed(observed: &Observed) -> Option<Measured> {
    let ToolAnswer::Saw { text, data, .. } = &observed.answer else { return None };
    let details = data.get("details").cloned().unwrap_or(Value::Null);
    Some(Measured { value: data.get("value")?.as_f64()?, text: text.clone(), data: details })
}

/// The end of a measurement, for the record.
pub(crate) fn decided(criterion: &Criterion, measured: &Result<Measured, NotMeasured>) -> Decided {
    let verdict =
        |score: f64| Outcome::Verdict(Verdict { label: None, values: Default::default(), score });
    let (outcome, reasoning) = match measured {
        Ok(Measured { value, text, .. }) if criterion.scale.holds(*value) => {
            (verdict(*value), Some(text.clone()))
        }
        Ok(Measured { value, .. }) => {
            let reason =
                format!("it measures {value}, which is not on the scale of {}", criterion.id);
            (Outcome::Failed { reason }, None)
        }
        Err(NotMeasured::Missing(reason)) => (Outcome::Missing { reason: reason.clone() }, None),
        Err(NotMeasured::Failed(reason)) => (Outcome::Failed { reason: reason.clone() }, None),
    };
    unasked(outcome, reasoning)
}

fn unasked(outcome: Outcome, reasoning: Option<String>) -> Decided {
    Decided {
        part: 0,
        outcome,
        reasoning,
        evidence: Vec::new(),
        unknown_evidence: Vec::new(),
        turns: 0,
        usage: Usage::default(),
    }
}

impl<M> Judge<M> {
    /// Records what a criterion is worth that need not be asked, because another one, worth `other`, has
    /// decided it.
    pub(crate) async fn record_skipped(
        &self,
        case: CaseRecord,
        criterion: &str,
        repeat: u32,
        (skip, other, verdict): (&Skip, f64, Verdict),
        sink: &dyn Sink,
    ) -> Result<Judged, JudgeError> {
        let plan = self.plan(criterion)?;
        let part = PartRecord {
            name: NOT_ASKED.to_owned(),
            boxes: Vec::new(),
            crop: None,
            notes: Vec::new(),
            question: None,
        };
        let manifest = self.manifest(case, &plan, vec![part], repeat);
        let recorder = record::start(sink, || self.pack_files(), &manifest).await?;
        let Skip { criterion: decider, at_most, worth } = skip;
        let why = format!(
            "Not asked: {decider} is worth {other}; where that is at most {at_most}, this is worth {worth}."
        );
        let outcome = Outcome::Verdict(verdict);
        recorder.record(What::Decided(unasked(outcome.clone(), Some(why))), &|_| ())?;
        record::finish(recorder, &manifest, outcome, &|_| ()).await
    }
}

//! What a judgement takes over from a trace: the case, the prompts, the first turns, or all looks.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use deeplook_tools::{Picture, ToolOutput};

use super::evidence::{Evidence, Store};
use super::rebuild::{self, Packs};
use crate::case::EditCase;
use crate::judge::session::unsent;
use crate::judge::{JudgeSettings, Recalled, RecalledLook, RecalledPart};
use crate::prompt::Pack;
use crate::trace::{
    Bundle, Inputs, Manifest, Observed, OutcomeName, Seen, ToolAnswer, What, reduce,
};
use crate::verdict::Outcome;

/// The beginning of a trace, to go on from.
#[derive(Debug)]
pub struct Fork {
    /// What was judged.
    pub case: EditCase,
    /// The prompts of the trace.
    pub pack: Arc<Pack>,
    /// Its settings.
    pub settings: JudgeSettings,
    /// The turns that are kept.
    pub recalled: Recalled,
}

impl Fork {
    /// Keeps what happened before the turn `from`; the error says why that cannot be.
    pub fn before(bundle: &Bundle, from: u32) -> Result<Self, String> {
        let manifest = &bundle.manifest;
        rebuild::check_settings(bundle).map_err(|error| error.to_string())?;
        let store = Evidence::default().store(bundle.blobs().folder());
        let case = rebuild::case(manifest, &store)?;
        let case =
            case.ok_or("there were no pictures to judge, and so there is nothing to fork")?;
        let turns = bundle.events.iter().filter_map(|event| match &event.event {
            What::Replied(replied) => Some(replied.turn),
            _ => None,
        });
        let last = turns.max().unwrap_or(0).max(1);
        if from > last {
            return Err(format!(
                "the trace has {last} turns, so --from-turn must be from 1 to {last}"
            ));
        }
        let recalled = recalled(bundle, &store, |_, turn| turn < from, false)?;
        let pack = Packs::default().of(manifest, &store)?;
        Ok(Self { case, pack, settings: rebuild::settings(manifest), recalled })
    }
}

/// Recalls what was seen in traces, so that other prompts can be tried on it. What several traces
/// share is read once; use it from as many threads as you like.
#[derive(Debug, Default)]
pub struct Recaller {
    evidence: Evidence,
}

impl Recaller {
    /// Everything that was looked at in the trace in `folder`, for a judgement of the same edit that
    /// begins with `today`: the turns that used tools, and no others. The error says why there is
    /// nothing to go on.
    pub fn observations(&self, folder: &Path, today: &Manifest) -> Result<Recalled, String> {
        let bundle = Bundle::read(folder).map_err(|error| error.to_string())?;
        rebuild::check_settings(&bundle).map_err(|error| error.to_string())?;
        if let Some(flaw) = bundle.flaws.first() {
            return Err(format!(
                "its trace is not as it was written: events.jsonl, line {}: {}",
                flaw.line, flaw.problem
            ));
        }
        match reduce(&bundle.manifest, &bundle.events).outcome {
            None => return Err("its trace was interrupted".to_owned()),
            // What it would have looked at is not known.
            Some(ref outcome @ (Outcome::Failed { .. } | Outcome::Missing { .. })) => {
                let (name, why) = (OutcomeName::from(outcome), outcome.reason());
                return Err(format!("its trace ended as {name}: {}", why.unwrap_or_default()));
            }
            Some(Outcome::Verdict(_) | Outcome::Abstained { .. }) => {}
        }
        let then = &bundle.manifest;
        if Inputs::of(&then.case) != Inputs::of(&today.case) {
            return Err("the case or its pictures are not those of its trace".to_owned());
        }
        if then.parts.len() != today.parts.len() {
            return Err(format!(
                "by these prompts it is judged in {} parts, and in its trace in {}",
                today.parts.len(),
                then.parts.len()
            ));
        }
        let store = self.evidence.store(bundle.blobs().folder());
        let looked: BTreeSet<(usize, u32)> = bundle
            .events
            .iter()
            .filter_map(|event| match &event.event {
                What::Observed(observed) => Some((observed.part, observed.turn)),
                _ => None,
            })
            .collect();
        recalled(&bundle, &store, |part, turn| looked.contains(&(part, turn)), true)
    }
}

/// The turns of a trace that are wanted, by part and turn.
fn recalled(
    bundle: &Bundle,
    store: &Store,
    wanted: impl Fn(usize, u32) -> bool,
    only: bool,
) -> Result<Recalled, String> {
    let none = RecalledPart { only, ..RecalledPart::default() };
    let mut parts = vec![none; bundle.manifest.parts.len()];
    for event in &bundle.events {
        match &event.event {
            What::Replied(replied) if wanted(replied.part, replied.turn) => {
                if let Some(part) = parts.get_mut(replied.part) {
                    part.replies.push_back(replied.reply.clone());
                }
            }
            What::Observed(observed) if wanted(observed.part, observed.turn) => {
                if let Some(part) = parts.get_mut(observed.part) {
                    part.looks.push_back(look(observed, store)?);
                }
            }
            _ => {}
        }
    }
    Ok(Recalled { parent: bundle.digest.clone(), parts })
}

fn look(observed: &Observed, store: &Store) -> Result<RecalledLook, String> {
    let answer = match &observed.answer {
        ToolAnswer::Refused { text } => Err(text.clone()),
        ToolAnswer::Saw { text, data, pictures } => {
            let view = |seen: &Seen| {
                let bytes = store.get(&seen.blob).map_err(|why| format!("{}: {why}", seen.name))?;
                let picture = Picture::decode(&seen.name, &bytes).map_err(|e| e.to_string())?;
                rebuild::view(seen, picture)
                    .ok_or_else(|| format!("{:?} is not cut from where it says", seen.name))
            };
            // What was said of pictures for which there was no room is said again, if it is so.
            let left_out = unsent(pictures.iter().filter(|seen| seen.sent.is_none()).count());
            let text = text.strip_suffix(&left_out).unwrap_or(text).to_owned();
            let pictures = pictures.iter().map(view).collect::<Result<_, String>>()?;
            Ok(ToolOutput { text, data: data.clone(), pictures })
        }
    };
    Ok(RecalledLook { call: observed.call.clone(), answer })
}

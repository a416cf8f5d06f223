//! What a judgement takes over from a trace: the case, the prompts, the first turns, or all looks.

use std::collections::BTreeMap;
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
    Account, Bundle, Inputs, Manifest, Observed, OutcomeName, Seen, ToolAnswer, TurnAccount, reduce,
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
        let account = reduce(manifest, &bundle.events);
        let turns = account.replies.iter().map(|replied| replied.turn);
        let last = turns.max().unwrap_or(0).max(1);
        if from > last {
            return Err(format!("the trace has {last} turns: fork it at one from 1 to {last}"));
        }
        let recalled = recalled(bundle, &account, &store, |number, _| number < from, false)?;
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
        let account = reduce(&bundle.manifest, &bundle.events);
        match &account.judgement.outcome {
            None => return Err("its trace was interrupted".to_owned()),
            // What it would have looked at is not known.
            Some(outcome @ (Outcome::Failed { .. } | Outcome::Missing { .. })) => {
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
        recalled(&bundle, &account, &store, |_, turn| !turn.looks.is_empty(), true)
    }
}

/// The turns of a trace that are wanted, by their number and what happened in them.
fn recalled(
    bundle: &Bundle,
    account: &Account<'_>,
    store: &Store,
    wanted: impl Fn(u32, &TurnAccount<'_>) -> bool,
    only: bool,
) -> Result<Recalled, String> {
    let part = |turns: &BTreeMap<u32, TurnAccount<'_>>| {
        let mut part = RecalledPart { only, ..RecalledPart::default() };
        for (_, turn) in turns.iter().filter(|(number, turn)| wanted(**number, turn)) {
            part.replies.extend(turn.replied.map(|replied| replied.reply.clone()));
            for observed in &turn.looks {
                part.looks.push_back(look(observed, store)?);
            }
        }
        Ok(part)
    };
    let parts = account.turns.iter().map(part).collect::<Result<_, String>>()?;
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

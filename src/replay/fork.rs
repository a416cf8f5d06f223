//! What a fork takes over from a trace: the case, the prompts, and the first turns.

use std::sync::Arc;

use deeplook_tools::scene::View;
use deeplook_tools::{KeptLook, Picture, ToolError, ToolOutput};

use super::evidence::{Evidence, Store};
use super::rebuild::{self, Packs};
use crate::case::EditCase;
use crate::judge::JudgeSettings;
use crate::message::Reply;
use crate::prompt::Pack;
use crate::trace::{Bundle, Observed, Seen, ToolAnswer, What};

/// The beginning of a trace, to go on from.
#[derive(Debug)]
pub struct Fork {
    /// What was judged.
    pub case: EditCase,
    /// The prompts of the trace.
    pub pack: Arc<Pack>,
    /// Its settings.
    pub settings: JudgeSettings,
    /// For each part, the replies of the turns that are kept.
    pub replies: Vec<Vec<Reply>>,
    /// The looks of these turns.
    pub looks: Vec<KeptLook>,
}

impl Fork {
    /// Keeps what happened before the turn `from`; the error says why that cannot be.
    pub fn before(bundle: &Bundle, from: u32) -> Result<Self, String> {
        let manifest = &bundle.manifest;
        rebuild::check_limits(bundle).map_err(|error| error.to_string())?;
        let store = Evidence::default().store(bundle.blobs().folder());
        let case = rebuild::case(manifest, &store)?;
        let case =
            case.ok_or("there were no pictures to judge, and so there is nothing to fork")?;
        let mut replies = vec![Vec::new(); manifest.parts.len()];
        let mut looks = Vec::new();
        let mut last = 0;
        for event in &bundle.events {
            match &event.event {
                What::Replied(replied) => {
                    last = last.max(replied.turn);
                    if let Some(part) =
                        replies.get_mut(replied.part).filter(|_| replied.turn < from)
                    {
                        part.push(replied.reply.clone());
                    }
                }
                What::Observed(observed) if observed.turn < from => {
                    looks.push(kept(observed, &store)?);
                }
                _ => {}
            }
        }
        if from > last.max(1) {
            return Err(format!(
                "the trace has {last} turns, so --from-turn must be from 1 to {}",
                last.max(1)
            ));
        }
        let pack = Packs::default().of(manifest, &store)?;
        Ok(Self { case, pack, settings: rebuild::settings(manifest), replies, looks })
    }
}

fn kept(observed: &Observed, store: &Store) -> Result<KeptLook, String> {
    let answer = match &observed.answer {
        ToolAnswer::Refused { text } => Err(ToolError::refused(text)),
        ToolAnswer::Saw { text, data, pictures } => {
            let view = |seen: &Seen| {
                let bytes = store.get(&seen.blob).map_err(|why| format!("{}: {why}", seen.name))?;
                let picture = Picture::decode(&seen.name, &bytes).map_err(|e| e.to_string())?;
                let (name, panels) = (seen.name.clone(), seen.panels.clone());
                Ok(View { name, picture: Arc::new(picture), panels })
            };
            let pictures = pictures.iter().map(view).collect::<Result<_, String>>()?;
            Ok(ToolOutput { text: text.clone(), data: data.clone(), pictures })
        }
    };
    let (name, arguments) = (observed.call.name.clone(), observed.call.arguments.clone());
    Ok(KeptLook { name, arguments, answer })
}

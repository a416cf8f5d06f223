//! One judgement under way: asking, using tools, recording.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deeplook_tools::{Scene, ToolError, ToolOutput};
use serde_json::Value;

use super::{Judge, JudgeError, Opened, Plan};
use crate::deliberation::{Answer, Deliberation, Ending, Step};
use crate::message::{MediaType, Observation, Request, SentPicture, ToolCall};
use crate::model::{ChatModel, FailedAttempt};
use crate::prompt::Criterion;
use crate::trace::{
    Asked, AttemptFailed, Decided, Event, GaveUp, Observed, Replied, Seen, ToolAnswer, TraceWriter,
    What,
};
use crate::verdict::Outcome;

/// One judgement under way.
pub(super) struct Session<'a, M> {
    pub(super) judge: &'a Judge<M>,
    pub(super) writer: TraceWriter,
    pub(super) watch: &'a (dyn Fn(&Event) + Send + Sync),
    pub(super) plan: &'a Plan<'a>,
}

impl<M: ChatModel> Session<'_, M> {
    pub(super) fn record(&self, what: What) -> io::Result<()> {
        self.writer.record(what, self.watch)
    }

    pub(super) async fn deliberate(
        &self,
        part: usize,
        (mut deliberation, mut scene, pictures): Opened,
    ) -> Result<Outcome, JudgeError> {
        for picture in &pictures {
            self.keep(picture)?;
        }
        let mut sent = pictures.len() as u32;
        let mut recorded = 0;
        let ending = loop {
            match deliberation.next_step() {
                Step::AskModel(request) => {
                    let turn = deliberation.turn();
                    self.record(What::Asked(asked(part, turn, &request, recorded)))?;
                    recorded = request.messages.len();
                    self.ask(part, turn, &request, &mut deliberation).await?;
                }
                Step::UseTools { calls, refused } => {
                    let turn = deliberation.turn();
                    let mut observations = Vec::new();
                    let mut broken = None;
                    for call in calls {
                        match self.use_tool(part, turn, call, &mut scene, &mut sent).await? {
                            Ok(observation) => observations.push(observation),
                            Err(reason) => {
                                broken = Some(reason);
                                break;
                            }
                        }
                    }
                    if let Some(reason) = broken {
                        self.give_up(part, turn, reason, &mut deliberation)?;
                        continue;
                    }
                    for Observation { call, text, .. } in refused {
                        let answer = ToolAnswer::Refused { text };
                        let refused = Observed { part, turn, call, answer, elapsed_ms: 0 };
                        self.record(What::Observed(refused))?;
                    }
                    deliberation.observed(observations);
                }
                Step::Done(ending) => break ending,
            }
        };
        let decided = decided(part, ending, &deliberation, self.plan.criterion);
        let outcome = decided.outcome.clone();
        self.record(What::Decided(decided))?;
        Ok(outcome)
    }

    fn keep(&self, sent: &SentPicture) -> io::Result<()> {
        let extension = match sent.media {
            MediaType::Png => "png",
            MediaType::Jpeg => "jpg",
        };
        self.writer.blobs().put_hashed(&sent.hash, &sent.bytes, extension)
    }

    async fn ask(
        &self,
        part: usize,
        turn: u32,
        request: &Request,
        deliberation: &mut Deliberation,
    ) -> Result<(), JudgeError> {
        // The callback cannot fail; a trace that could not be written is noticed right after.
        let broken: Mutex<Option<io::Error>> = Mutex::new(None);
        let on_attempt = |attempt: FailedAttempt| {
            if let Err(error) =
                self.record(What::AttemptFailed(AttemptFailed { part, turn, attempt }))
            {
                *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let started = Instant::now();
        let result = self.judge.model.ask(request, &on_attempt).await;
        if let Some(error) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        match result {
            Ok(reply) => {
                deliberation.replied(&reply);
                let elapsed_ms = milliseconds(started);
                self.record(What::Replied(Replied { part, turn, reply, elapsed_ms }))?;
            }
            Err(error) => self.give_up(part, turn, error.to_string(), deliberation)?,
        }
        Ok(())
    }

    /// Lets a part fail for a reason that the deliberation cannot know.
    fn give_up(
        &self,
        part: usize,
        turn: u32,
        reason: String,
        deliberation: &mut Deliberation,
    ) -> io::Result<()> {
        self.record(What::GaveUp(GaveUp { part, turn, reason: reason.clone() }))?;
        deliberation.fail(reason);
        Ok(())
    }

    /// Uses one tool. The inner error is a broken tool: the deliberation fails with that reason.
    async fn use_tool(
        &self,
        part: usize,
        turn: u32,
        call: ToolCall,
        scene: &mut Scene,
        sent: &mut u32,
    ) -> Result<Result<Observation, String>, JudgeError> {
        let started = Instant::now();
        let toolbox = Arc::clone(&self.plan.toolbox);
        let (name, arguments, looked_at) =
            (call.name.clone(), call.arguments.clone(), scene.clone());
        let looked =
            tokio::task::spawn_blocking(move || toolbox.call(&name, &arguments, &looked_at)).await;
        let looked = looked.map_err(|_| JudgeError::ToolCrashed(call.name.clone()))?;
        let (observation, answer) = match looked {
            Ok(output) => self.show(call, output, scene, sent)?,
            Err(ToolError::Refused(text)) => {
                let answer = ToolAnswer::Refused { text: text.clone() };
                (Observation { call, text, data: Value::Null, pictures: Vec::new() }, answer)
            }
            Err(broken @ ToolError::Broken { .. }) => return Ok(Err(broken.to_string())),
        };
        let elapsed_ms = milliseconds(started);
        let call = observation.call.clone();
        self.record(What::Observed(Observed { part, turn, call, answer, elapsed_ms }))?;
        Ok(Ok(observation))
    }

    /// Keeps a tool's pictures, and sends as many of them as the server takes, best first.
    fn show(
        &self,
        call: ToolCall,
        output: ToolOutput,
        scene: &mut Scene,
        sent: &mut u32,
    ) -> Result<(Observation, ToolAnswer), JudgeError> {
        let settings = &self.judge.settings;
        let room =
            settings.max_images.map_or(usize::MAX, |most| most.saturating_sub(*sent) as usize);
        let (mut pictures, mut seen) = (Vec::new(), Vec::new());
        for (index, view) in output.pictures.iter().enumerate() {
            let made = view.picture.to_png();
            let blob = self.writer.blobs().put(&made, "png")?;
            let shown =
                (index < room).then(|| settings.preparation.prepare(&view.name, "", &view.picture));
            if let Some(shown) = &shown {
                self.keep(shown)?;
            }
            seen.push(Seen {
                name: view.name.clone(),
                blob,
                panels: view.panels.clone(),
                sent: shown.as_ref().map(Into::into),
            });
            pictures.extend(shown.map(Arc::new));
        }
        scene.add(output.pictures);
        for picture in &pictures {
            scene.set_shown_size(&picture.name, picture.size);
        }
        *sent += pictures.len() as u32;
        let mut text = output.text;
        text.push_str(&unsent(seen.len() - pictures.len()));
        let data = output.data;
        let answer = ToolAnswer::Saw { text: text.clone(), data: data.clone(), pictures: seen };
        Ok((Observation { call, text, data, pictures }, answer))
    }
}

/// What the model is told of pictures that it does not get.
pub(crate) fn unsent(pictures: usize) -> String {
    if pictures == 0 {
        return String::new();
    }
    format!(
        " ({pictures} more pictures were made but not sent, because the server takes no more in one \
         conversation.)"
    )
}

/// A question for the record; the first `recorded` messages were there before.
pub(crate) fn asked(part: usize, turn: u32, request: &Request, recorded: usize) -> Asked {
    Asked {
        part,
        turn,
        messages: request.messages.iter().skip(recorded).map(|m| m.as_ref().into()).collect(),
        tool_choice: request.tool_choice,
        digest: request.digest(),
    }
}

/// The end of a part for the record.
pub(crate) fn decided(
    part: usize,
    ending: Ending,
    deliberation: &Deliberation,
    criterion: &Criterion,
) -> Decided {
    let outcome = match ending.answer {
        Answer::Label(label) => match criterion.score(&label) {
            Some(score) => Outcome::Verdict { label, score },
            None => Outcome::Abstained {
                reason: format!("{label:?} is not a label of {}", criterion.id),
            },
        },
        Answer::Abstained(reason) => Outcome::Abstained { reason },
        Answer::Failed(reason) => Outcome::Failed { reason },
    };
    Decided {
        part,
        outcome,
        reasoning: ending.reasoning,
        evidence: ending.evidence,
        unknown_evidence: ending.unknown_evidence,
        turns: deliberation.turn(),
        usage: deliberation.usage(),
    }
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

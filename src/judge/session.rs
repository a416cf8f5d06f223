//! One judgement under way: asking, using tools, recording.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deeplook_tools::{Scene, ToolOutput};
use serde_json::Value;
use tracing::Instrument as _;

use super::looks::{Encoding, Look, MadePicture, NoLook, Sight};
use super::{Judge, JudgeError, Opened, Plan, RecalledPart, record};
use crate::case::EditCase;
use crate::deliberation::{Answer, Deliberation, Ending, Step};
use crate::message::{Observation, Reply, Request, ToolCall};
use crate::model::{ChatModel, FailedAttempt, ModelError, Subject};
use crate::prompt::Criterion;
use crate::trace::{
    Asked, AttemptFailed, Blob, Decided, Event, GaveUp, Observed, Recorder, Replied, Seen, Sink,
    ToolAnswer, What,
};
use crate::verdict::{Outcome, Verdict};

/// One judgement under way.
pub(super) struct Session<'a, M> {
    pub(super) judge: &'a Judge<M>,
    pub(super) case: &'a EditCase,
    pub(super) sink: &'a dyn Sink,
    pub(super) recorder: Recorder,
    pub(super) watch: &'a (dyn Fn(&Event) + Send + Sync),
    pub(super) plan: &'a Plan<'a>,
    pub(super) repeat: u32,
}

/// What a part looks at and with.
struct Eyes {
    scene: Scene,
    sight: Option<Sight>,
    /// How many pictures the model has got.
    sent: u32,
    /// What was said and seen before.
    recalled: RecalledPart,
}

impl<M: ChatModel> Session<'_, M> {
    pub(super) fn record(&self, what: What) -> io::Result<()> {
        self.recorder.record(what, self.watch)
    }

    pub(super) async fn deliberate(
        &self,
        part: usize,
        opened: Opened,
        recalled: RecalledPart,
    ) -> Result<Outcome, JudgeError> {
        let Opened { mut deliberation, scene, pictures, question } = opened;
        let expected = question.as_ref().and_then(|question| question.expected.as_deref());
        let form = self.plan.criterion.form();
        let mode = self.judge.settings.mode.to_string();
        let subject = Subject {
            case: &self.case.id,
            editor: self.case.editor.as_deref(),
            criterion: &self.plan.criterion.id,
            question: question.as_ref().map(|question| question.id.as_str()),
            expected,
            mode: &mode,
            repeat: self.repeat,
            form: &form,
        };
        let mut eyes = Eyes { scene, recalled, sight: None, sent: pictures.len() as u32 };
        let mut recorded = 0;
        let ending = loop {
            match deliberation.next_step() {
                Step::AskModel(request) => {
                    let turn = deliberation.turn();
                    let asked = asked(part, turn, &request, recorded);
                    recorded = request.messages.len();
                    let span = tracing::info_span!("model_call", part, turn);
                    let known = eyes.recalled.replies.pop_front();
                    let asking = self.ask(asked, (&subject, &request), known, &mut deliberation);
                    asking.instrument(span).await?;
                }
                Step::UseTools { calls, refused } => {
                    let turn = deliberation.turn();
                    let mut observations = Vec::new();
                    let mut broken = None;
                    for call in calls {
                        let span = tracing::info_span!("tool_call", tool = call.name, part, turn);
                        let looking = self.use_tool(part, turn, call, &mut eyes);
                        match looking.instrument(span).await? {
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
        let decided = decided(part, ending, &deliberation, self.plan.criterion, expected);
        let outcome = decided.outcome.clone();
        self.record(What::Decided(decided))?;
        Ok(outcome)
    }

    async fn ask(
        &self,
        asked: Asked,
        (subject, request): (&Subject<'_>, &Request),
        known: Option<Reply>,
        deliberation: &mut Deliberation,
    ) -> Result<(), JudgeError> {
        let (part, turn) = (asked.part, asked.turn);
        let shared = &self.judge.shared;
        let kept = shared.replies.as_ref().zip(self.judge.model.fingerprint(request));
        let get = || kept.as_ref().and_then(|(replies, key)| replies.get(key, self.repeat));
        if let Some(reply) = known.or_else(get) {
            deliberation.replied(&reply);
            tracing::info!("the reply was kept from before");
            self.record(What::Asked(asked))?;
            let replied = Replied { part, turn, reply, elapsed_ms: 0, cached: true };
            return Ok(self.record(What::Replied(replied))?);
        }
        // First of all: what is not asked is not recorded as asked.
        shared.allowance.take_call().map_err(JudgeError::Stopped)?;
        self.record(What::Asked(asked))?;
        // The callback cannot fail; a trace that could not be written is noticed right after.
        let broken: Mutex<Option<io::Error>> = Mutex::new(None);
        let on_attempt = |attempt: FailedAttempt| {
            tracing::warn!(
                attempt = attempt.attempt,
                status = attempt.status,
                error = attempt.error
            );
            if let Err(error) =
                self.record(What::AttemptFailed(AttemptFailed { part, turn, attempt }))
            {
                *broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        };
        let started = Instant::now();
        let result = self.judge.model.ask_about(subject, request, &on_attempt).await;
        if let Some(error) = broken.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.into());
        }
        match result {
            Ok(reply) => {
                deliberation.replied(&reply);
                let price = self.judge.record.price.as_ref();
                shared.allowance.charge(price.and_then(|price| price.cost(reply.usage)));
                if let Some((replies, key)) = &kept {
                    replies.put(key, self.repeat, &reply);
                }
                let elapsed_ms = milliseconds(started);
                tracing::info!(elapsed_ms, "replied");
                let replied = Replied { part, turn, reply, elapsed_ms, cached: false };
                self.record(What::Replied(replied))?;
            }
            Err(error @ ModelError::Stopped) => return Err(JudgeError::Stopped(error.to_string())),
            Err(ModelError::Unreachable(reason)) => return Err(JudgeError::Unreachable(reason)),
            Err(error) => {
                tracing::warn!(%error, "no reply");
                self.give_up(part, turn, error.to_string(), deliberation)?;
            }
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
        eyes: &mut Eyes,
    ) -> Result<Result<Observation, String>, JudgeError> {
        let started = Instant::now();
        let toolbox = &self.plan.toolbox;
        let preparation = self.judge.settings.preparation;
        let encoding = Encoding { preparation, kept: self.sink.keeps_files() };
        let looks = &self.judge.shared.looks;
        let looked = match eyes.recalled.look(&call) {
            Some(Ok(output)) => looks.prepare(output, encoding).await.map(Ok),
            Some(Err(refusal)) => Ok(Err(refusal)),
            None => {
                let Eyes { scene, sight, .. } = eyes;
                let sight = match sight {
                    Some(sight) => {
                        sight.update(scene);
                        sight
                    }
                    None => sight.insert(Sight::of(scene)),
                };
                looks.look(toolbox, &call, scene, sight, encoding).await
            }
        };
        let (observation, answer) = match looked {
            Ok(Ok(look)) => self.show(call, look, eyes).await?,
            Ok(Err(text)) => {
                let answer = ToolAnswer::Refused { text: text.clone() };
                (Observation { call, text, data: Value::Null, pictures: Vec::new() }, answer)
            }
            Err(NoLook::Broken(broken)) => return Ok(Err(broken.to_string())),
            Err(NoLook::Crashed) => {
                return Ok(Err(format!(
                    "the tool {} crashed; this is a defect of deeplook, please report it",
                    call.name
                )));
            }
        };
        let elapsed_ms = milliseconds(started);
        let call = observation.call.clone();
        self.record(What::Observed(Observed { part, turn, call, answer, elapsed_ms }))?;
        Ok(Ok(observation))
    }

    /// Keeps a tool's pictures, and sends as many of them as the server takes, best first.
    async fn show(
        &self,
        call: ToolCall,
        look: Arc<Look>,
        Eyes { scene, sent, .. }: &mut Eyes,
    ) -> Result<(Observation, ToolAnswer), JudgeError> {
        let most = self.judge.settings.max_images;
        let room = most.map_or(usize::MAX, |most| most.saturating_sub(*sent) as usize);
        if self.sink.keeps_files() {
            let mut files = Vec::new();
            for (index, MadePicture { png, hash, sent }) in look.pictures.iter().enumerate() {
                if let Some(png) = png {
                    let (hash, bytes) = (hash.clone(), Arc::clone(png));
                    files.push(Blob { hash, bytes, extension: "png".to_owned() });
                }
                if index < room {
                    files.push(record::as_sent(sent));
                }
            }
            self.sink.keep(files).await?;
        }
        let ToolOutput { text, data, pictures: views } = &look.output;
        let (mut pictures, mut seen) = (Vec::new(), Vec::new());
        for (index, (view, made)) in views.iter().zip(&look.pictures).enumerate() {
            let shown = (index < room).then_some(&made.sent);
            seen.push(Seen {
                name: view.name.clone(),
                blob: made.hash.clone(),
                panels: view.panels.clone(),
                sent: shown.map(|sent| sent.as_ref().into()),
            });
            pictures.extend(shown.cloned());
        }
        scene.add(views.iter().cloned());
        for picture in &pictures {
            scene.set_shown_size(&picture.name, picture.size);
        }
        *sent += pictures.len() as u32;
        let mut text = text.clone();
        text.push_str(&unsent(seen.len() - pictures.len()));
        let data = data.clone();
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

/// The end of a part for the record; `expected` is the right answer to its question, if it is about
/// one.
pub(crate) fn decided(
    part: usize,
    ending: Ending,
    deliberation: &Deliberation,
    criterion: &Criterion,
    expected: Option<&str>,
) -> Decided {
    let outcome = match ending.answer {
        Answer::Given(answer) => match criterion.worth(&answer, expected) {
            Ok(score) => Outcome::Verdict(Verdict::of(answer, score)),
            Err(why) => Outcome::Abstained { reason: format!("no score: {why}") },
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

//! The judge: drives a deliberation with a model and tools, and records all of it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use deeplook_tools::{Scene, ToolError, ToolOutput, Toolbox};
use serde_json::{Value, json};

use crate::answer::AnswerForm;
use crate::case::{EditCase, InputPicture};
use crate::deliberation::{Answer, Deliberation, Limits, Question, Script, Step};
use crate::dialect;
use crate::hash::Hash;
use crate::message::{Dialect, Observation, Part, Request, SentPicture, ToolCall};
use crate::model::{ChatModel, FailedAttempt, Rules};
use crate::prompt::{self, Criterion, Mode, Pack, PromptError, TaskText, Turn};
use crate::protocol::{self, Brief, ProtocolError, Targets};
use crate::sending::Preparation;
use crate::trace::{
    self, Asked, AttemptFailed, CaseRecord, Decided, Event, FORMAT, FileRecord, Finished,
    Judgement, Manifest, ModelRecord, Observed, PackRecord, PartRecord, Replied, RunFolder, Seen,
    StoredPanel, ToolAnswer, ToolsRecord, TraceWriter, What,
};
use crate::verdict::Outcome;

/// Everything about a judge but its model.
#[derive(Debug, Clone)]
pub struct JudgeSettings {
    /// What it gets to see.
    pub mode: Mode,
    /// How several targets are judged.
    pub targets: Targets,
    /// The bounds of a deliberation.
    pub limits: Limits,
    /// How pictures are prepared for sending.
    pub preparation: Preparation,
    /// The most pictures that one request may hold.
    pub max_images: Option<u32>,
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            mode: Mode::Tool,
            targets: Targets::Sensible,
            limits: Limits::default(),
            preparation: Preparation::default(),
            max_images: None,
        }
    }
}

/// Judges edits by the criteria of a prompt pack.
#[derive(Debug)]
pub struct Judge<M> {
    model: M,
    record: ModelRecord,
    pack: Pack,
    toolbox: Arc<Toolbox>,
    settings: JudgeSettings,
}

/// A judgement and where its evidence is.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What came out.
    pub judgement: Judgement,
    /// The folder of the trace.
    pub trace: PathBuf,
    /// Stands for the whole trace: keep it elsewhere, and nobody can change the trace unnoticed.
    pub digest: Hash,
}

impl Judge<Rules> {
    /// The offline judge with everything as it is by default: a baseline that needs nothing.
    pub fn offline() -> Result<Self, PromptError> {
        let pack = Pack::embedded(prompt::DEFAULT)?;
        let record = Rules::record(Dialect::Native);
        Ok(Self::new(Rules::default(), record, pack, Toolbox::standard(), JudgeSettings::default()))
    }
}

impl<M: ChatModel> Judge<M> {
    /// A judge with `model`, described by `record` in its traces, and the prompts of `pack`.
    pub fn new(
        model: M,
        record: ModelRecord,
        pack: Pack,
        toolbox: Toolbox,
        settings: JudgeSettings,
    ) -> Self {
        Self { model, record, pack, toolbox: Arc::new(toolbox), settings }
    }

    /// The prompts that it uses.
    pub fn pack(&self) -> &Pack {
        &self.pack
    }

    /// What each part of a judgement of `case` would look at, by name.
    pub fn part_names(&self, case: &EditCase, criterion: &str) -> Result<Vec<String>, JudgeError> {
        let (_, briefs) = self.briefs(case, self.pack.criterion(criterion)?)?;
        Ok(briefs.into_iter().map(|brief| brief.name).collect())
    }

    fn briefs(
        &self,
        case: &EditCase,
        criterion: &Criterion,
    ) -> Result<(bool, Vec<Brief>), JudgeError> {
        let mode = self.settings.mode;
        let shown = criterion
            .modes
            .get(&mode)
            .ok_or_else(|| JudgeError::NoSuchMode { criterion: criterion.id.clone(), mode })?;
        Ok((shown.tools, protocol::briefs(case, &shown.pictures, self.settings.targets)?))
    }

    /// Judges `case` by one criterion and records it in `run`. `watch` is called with every event
    /// right after it was recorded; it must not block.
    ///
    /// Tools run on the runtime's blocking threads and use rayon's pool: do not block a thread of
    /// that pool on this future.
    ///
    /// That the model could not be asked or would not answer is an [`Outcome`], not an error; an
    /// error means that the case does not fit the mode, or that the trace cannot be written.
    pub async fn judge(
        &self,
        case: &EditCase,
        criterion: &str,
        run: &RunFolder,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError> {
        let criterion = self.pack.criterion(criterion)?;
        let (has_tools, briefs) = self.briefs(case, criterion)?;
        let toolbox = if has_tools { Arc::clone(&self.toolbox) } else { Arc::default() };
        let specs = toolbox.specs(self.record.boxes);
        // Everything that can fail before the first question fails before anything is written.
        let system = self.pack.system(criterion, self.record.dialect, &specs)?;
        let script = self.script(criterion)?;
        let manifest = self.manifest(case, criterion, &briefs, &toolbox, &specs);
        self.keep_inputs(case, run)?;
        let session = Session { judge: self, writer: run.start(&manifest)?, watch, toolbox };

        let mut outcomes = Vec::new();
        for (part, brief) in briefs.iter().enumerate() {
            outcomes
                .push(session.deliberate(part, brief, case, criterion, &system, &script).await?);
        }
        let reason = || "there was nothing to look at".to_owned();
        let outcome =
            Outcome::worst(outcomes).unwrap_or_else(|| Outcome::Missing { reason: reason() });
        session.record(What::Finished(Finished { outcome }))?;

        let trace = session.writer.folder().to_owned();
        let (events, digest) = session.writer.close()?;
        Ok(Judged { judgement: trace::reduce(&manifest, &events), trace, digest })
    }

    fn script(&self, criterion: &Criterion) -> Result<Script, PromptError> {
        let turn = |tools_allowed, turns_left| Turn {
            dialect: self.record.dialect,
            tools_allowed,
            turns_left,
        };
        let reminder = |left| self.pack.reminder(criterion, turn(true, Some(left)));
        let repair = |may_look| self.pack.repair(criterion, Script::PROBLEM, turn(may_look, None));
        Ok(Script {
            reminders: (1..=self.settings.limits.turns).map(reminder).collect::<Result<_, _>>()?,
            answering: self.pack.reminder(criterion, turn(false, None))?,
            last_turn: self.pack.last_turn(criterion)?,
            no_more_tools: self.pack.no_more_tools(criterion)?,
            repair_looking: repair(true)?,
            repair_answering: repair(false)?,
        })
    }

    fn manifest(
        &self,
        case: &EditCase,
        criterion: &Criterion,
        briefs: &[Brief],
        toolbox: &Toolbox,
        specs: &[deeplook_tools::ToolSpec],
    ) -> Manifest {
        let file = |input: &InputPicture| FileRecord {
            blob: input.hash().clone(),
            size: input.picture().size(),
        };
        let part =
            |brief: &Brief| PartRecord { name: brief.name.clone(), boxes: brief.boxes.clone() };
        let files = self.pack.files().map(|(name, bytes)| (name.to_owned(), Hash::of(bytes)));
        Manifest {
            format: FORMAT,
            deeplook: env!("CARGO_PKG_VERSION").to_owned(),
            case: CaseRecord {
                id: case.id.clone(),
                editor: case.editor.clone(),
                instruction: case.instruction.clone(),
                kind: case.kind.clone(),
                target: case.target.clone(),
                boxes: case.boxes.clone(),
                source: file(&case.source),
                edited: file(&case.edited),
                reference: case.reference.as_ref().map(file),
            },
            criterion: criterion.id.clone(),
            mode: self.settings.mode,
            repeat: 0,
            parts: briefs.iter().map(part).collect(),
            model: self.record.clone(),
            pack: PackRecord {
                name: self.pack.name.clone(),
                version: self.pack.version.clone(),
                hash: self.pack.hash.clone(),
                files: files.collect(),
            },
            tools: ToolsRecord {
                specs: specs.to_vec(),
                settings: toolbox.settings(),
                unavailable: BTreeMap::new(),
            },
            limits: self.settings.limits,
            preprocessing: json!({
                "sending": self.settings.preparation,
                "max_images": self.settings.max_images,
                "targets": self.settings.targets,
            }),
            parent: None,
        }
    }

    fn keep_inputs(&self, case: &EditCase, run: &RunFolder) -> io::Result<()> {
        let blobs = run.blobs();
        for input in
            [Some(&case.source), Some(&case.edited), case.reference.as_ref()].into_iter().flatten()
        {
            let extension = deeplook_tools::picture::extension_of(input.bytes()).unwrap_or("png");
            blobs.put_hashed(input.hash(), input.bytes(), extension)?;
        }
        for (name, bytes) in self.pack.files() {
            let extension = name.rsplit_once('.').map_or("txt", |(_, extension)| extension);
            blobs.put(bytes, extension)?;
        }
        Ok(())
    }
}

/// One judgement under way.
struct Session<'a, M> {
    judge: &'a Judge<M>,
    writer: TraceWriter,
    watch: &'a (dyn Fn(&Event) + Send + Sync),
    toolbox: Arc<Toolbox>,
}

impl<M: ChatModel> Session<'_, M> {
    fn record(&self, what: What) -> io::Result<()> {
        self.writer.record(what, self.watch)
    }

    async fn deliberate(
        &self,
        part: usize,
        brief: &Brief,
        case: &EditCase,
        criterion: &Criterion,
        system: &str,
        script: &Script,
    ) -> Result<Outcome, JudgeError> {
        let settings = &self.judge.settings;
        let (task, mut scene) = self.task(brief, case, criterion)?;
        let data = task_data(brief, case, criterion, settings.mode);
        let form = AnswerForm {
            labels: criterion.labels().iter().map(|label| label.name.clone()).collect(),
        };
        let specs = self.toolbox.specs(self.judge.record.boxes);
        let mut sent = pictures_of(&task);
        let question = Question { system: system.to_owned(), task, data, form };
        let mut deliberation = Deliberation::new(
            question,
            specs,
            self.judge.record.dialect,
            script.clone(),
            settings.limits,
        );
        let mut recorded = 0;
        let ending = loop {
            match deliberation.next_step() {
                Step::AskModel(request) => {
                    let turn = deliberation.turn();
                    self.record(What::Asked(Asked {
                        part,
                        turn,
                        messages: request.messages[recorded..]
                            .iter()
                            .map(|m| m.as_ref().into())
                            .collect(),
                        tool_choice: request.tool_choice,
                        digest: request.digest(),
                    }))?;
                    recorded = request.messages.len();
                    self.ask(part, turn, &request, &mut deliberation).await?;
                }
                Step::UseTools(calls) => {
                    let turn = deliberation.turn();
                    let mut observations = Vec::new();
                    for call in calls {
                        match self.use_tool(part, turn, call, &mut scene, &mut sent).await? {
                            Ok(observation) => observations.push(observation),
                            Err(reason) => {
                                deliberation.fail(reason);
                                break;
                            }
                        }
                    }
                    deliberation.observed(observations);
                }
                Step::Done(ending) => break ending,
            }
        };
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
        self.record(What::Decided(Decided {
            part,
            outcome: outcome.clone(),
            reasoning: ending.reasoning,
            evidence: ending.evidence,
            unknown_evidence: ending.unknown_evidence,
            turns: deliberation.turn(),
            usage: deliberation.usage(),
        }))?;
        Ok(outcome)
    }

    /// The task as the model gets it, and the scene that the tools work on.
    fn task(
        &self,
        brief: &Brief,
        case: &EditCase,
        criterion: &Criterion,
    ) -> Result<(Vec<Part>, Scene), JudgeError> {
        let instruction = dialect::neutralise(&case.instruction);
        let text = self
            .judge
            .pack
            .task(criterion, &TaskText { instruction: &instruction, notes: &brief.notes })?;
        let mut parts = vec![Part::Text(text)];
        let mut scene = Scene::from_views(brief.pictures.iter().map(|p| p.view.clone()))
            .with_boxes(self.judge.record.boxes);
        for picture in &brief.pictures {
            let view = &picture.view;
            let sent = self.judge.settings.preparation.prepare(
                &view.name,
                &picture.caption,
                &view.picture,
            );
            scene.set_shown_size(&view.name, sent.size);
            self.keep(&sent)?;
            parts.push(Part::Picture(Arc::new(sent)));
        }
        Ok((parts, scene))
    }

    fn keep(&self, sent: &SentPicture) -> io::Result<()> {
        let extension = match sent.media {
            crate::message::MediaType::Png => "png",
            crate::message::MediaType::Jpeg => "jpg",
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
            Err(error) => deliberation.fail(error.to_string()),
        }
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
        let toolbox = Arc::clone(&self.toolbox);
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
            let panels = view.panels.iter().map(StoredPanel::from).collect();
            let shown =
                (index < room).then(|| settings.preparation.prepare(&view.name, "", &view.picture));
            if let Some(shown) = &shown {
                self.keep(shown)?;
            }
            seen.push(Seen {
                name: view.name.clone(),
                blob,
                panels,
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
        let unsent = seen.len() - pictures.len();
        if unsent > 0 {
            text.push_str(&format!(
                " ({unsent} more pictures were made but not sent, because the server takes no more in one \
                 conversation.)"
            ));
        }
        let data = output.data;
        let answer = ToolAnswer::Saw { text: text.clone(), data: data.clone(), pictures: seen };
        Ok((Observation { call, text, data, pictures }, answer))
    }
}

/// What the task says, for machines: nothing that the model is not told too.
fn task_data(brief: &Brief, case: &EditCase, criterion: &Criterion, mode: Mode) -> Value {
    let pictures: Vec<&str> = brief.pictures.iter().map(|p| p.view.name.as_str()).collect();
    json!({
        "criterion": criterion.id,
        "mode": mode,
        "instruction": case.instruction,
        "labels": criterion.labels().iter().map(|label| &label.name).collect::<Vec<_>>(),
        "pictures": pictures,
    })
}

fn pictures_of(parts: &[Part]) -> u32 {
    parts.iter().filter(|part| matches!(part, Part::Picture(_))).count() as u32
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A judgement that could not be made at all.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The prompts do not work.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The case does not fit the mode.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The pack has no such mode.
    #[error("the criterion {criterion} has no mode {mode}; choose another with --mode")]
    NoSuchMode {
        /// Which criterion.
        criterion: String,
        /// Which mode.
        mode: Mode,
    },
    /// The evidence cannot be kept.
    #[error("cannot write the trace: {0}; is the disk full, or the folder read-only?")]
    Trace(#[from] io::Error),
    /// A defect of ours.
    #[error("the tool {0} crashed; this is a defect of deeplook, please report it")]
    ToolCrashed(String),
}

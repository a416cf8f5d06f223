//! The judge: drives a deliberation with a model and tools, and records all of it.

mod cores;
mod looks;
pub(crate) mod measuring;
mod recalled;
mod record;
pub(crate) mod session;
mod shared;

use std::io;
use std::sync::Arc;

use deeplook_tools::scene::Room;
use deeplook_tools::{Scene, ToolSpec, Toolbox};
use serde_json::json;
use tracing::Instrument as _;

pub use self::cores::Core;
pub(crate) use self::cores::watched;
pub use self::looks::Looks;
pub(crate) use self::recalled::ONLY_RECORDED;
pub use self::recalled::{Recalled, RecalledLook, RecalledPart};
use self::session::Session;
pub use self::shared::{Allowance, Shared, Spent};
use crate::answer::{AnswerForm, KeyForm};
use crate::case::{CaseQuestion, EditCase, Fact, Facts};
use crate::deliberation::{Deliberation, Limits, Question, Script, Step};
use crate::dialect;
use crate::message::{Dialect, Part, Request, SentPicture};
use crate::model::{ChatModel, Rules};
use crate::prompt::{
    self, Criterion, Mode, ModeView, Pack, PromptError, TaskText, TextPlace, Turn,
};
use crate::protocol::{self, Brief, BriefPicture, ProtocolError, Targets};
use crate::sending::Preparation;
use crate::trace::{Event, Judgement, Kept, Manifest, ModelRecord, ResultLine, Sink, What};
use crate::verdict::Outcome;

/// So much the reminders of all turns may take together, in bytes.
const MOST_REMINDED: usize = 4 << 20;

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
    pack: Arc<Pack>,
    toolbox: Arc<Toolbox>,
    settings: JudgeSettings,
    shared: Arc<Shared>,
}

/// A judgement and where its evidence is.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What came out.
    pub judgement: Judgement,
    /// All that happened.
    pub events: Vec<Event>,
    /// Where the trace is, unless the sink keeps none.
    pub kept: Option<Kept>,
    /// Its line of a run's results.
    pub line: ResultLine,
}

impl Judge<Rules> {
    /// The offline judge with everything as it is by default: a baseline that needs nothing.
    pub fn offline() -> Result<Self, PromptError> {
        let pack = Pack::embedded(prompt::DEFAULT)?;
        let record = Rules::record(Dialect::Native);
        Ok(Self::new(Rules::default(), record, pack, Toolbox::standard(), JudgeSettings::default()))
    }
}

impl<M> Judge<M> {
    /// A judge with `model`, described by `record` in its traces, and the prompts of `pack`.
    pub fn new(
        model: M,
        record: ModelRecord,
        pack: impl Into<Arc<Pack>>,
        toolbox: impl Into<Arc<Toolbox>>,
        settings: JudgeSettings,
    ) -> Self {
        let (pack, toolbox, shared) = (pack.into(), toolbox.into(), Arc::default());
        Self { model, record, pack, toolbox, settings, shared }
    }

    /// The same judge with what it shares with others.
    pub fn sharing(self, shared: Arc<Shared>) -> Self {
        Self { shared, ..self }
    }

    /// The prompts that it uses.
    pub fn pack(&self) -> &Pack {
        &self.pack
    }

    /// Whether the pack has this criterion in this judge's mode.
    pub fn can_judge_by(&self, criterion: &str) -> Result<(), JudgeError> {
        self.plan(criterion).map(drop)
    }

    /// Does all that can fail before the first question: a case that does not fit the mode is an
    /// error here, before anything is written.
    pub fn prepare<'a>(
        &'a self,
        case: &'a EditCase,
        criterion: &str,
    ) -> Result<Prepared<'a, M>, JudgeError> {
        let plan = self.plan(criterion)?;
        let (briefs, opened) = match plan.criterion.measure {
            Some(_) => (vec![measuring::brief()], Vec::new()),
            None => {
                let briefs = protocol::briefs(case, plan.shown, self.settings.targets)?;
                let open = |brief| self.open(&plan, brief, case);
                let opened = briefs.iter().map(open).collect::<Result<_, _>>()?;
                (briefs, opened)
            }
        };
        Ok(Prepared { judge: self, case, plan, briefs, opened, repeat: 0, recalled: None })
    }

    /// Judges `case` by one criterion and records it in `sink`, e.g. a
    /// [`RunFolder`](crate::RunFolder), or [`Memory`](crate::trace::Memory) for a judge without a disk. `watch` is called with every event
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
        sink: &dyn Sink,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        self.prepare(case, criterion)?.judge(sink, watch).await
    }

    /// What a judgement is made with, whatever the case.
    pub(crate) fn plan(&self, criterion: &str) -> Result<Plan<'_>, JudgeError> {
        let criterion = self.pack.criterion(criterion)?;
        let mode = self.settings.mode;
        let shown = criterion
            .modes
            .get(&mode)
            .ok_or_else(|| JudgeError::NoSuchMode { criterion: criterion.id.clone(), mode })?;
        let toolbox = if shown.tools { Arc::clone(&self.toolbox) } else { Arc::default() };
        let specs = toolbox.specs(self.record.boxes);
        let script = self.script(criterion)?;
        Ok(Plan { criterion, shown, toolbox, specs, script })
    }

    fn open(&self, plan: &Plan<'_>, brief: &Brief, case: &EditCase) -> Result<Opened, JudgeError> {
        let JudgeSettings { preparation, max_images, .. } = self.settings;
        let mut scene = Scene::from_views(brief.pictures.iter().map(|p| p.view.clone()))
            .with_boxes(self.record.boxes)
            .with_room(Room { side: preparation.max_side, pictures: max_images });
        let chosen: Vec<bool> =
            brief.pictures.iter().map(|picture| picture.jpeg.is_some()).collect();
        let pictures = preparation.alike(&chosen, |preparation| {
            let sent = |picture: &BriefPicture| {
                let BriefPicture { view, caption, whole, jpeg } = picture;
                let sent = match (whole, jpeg) {
                    (Some(input), _) => input.sent(&view.name, preparation),
                    (None, None) => {
                        Arc::new(preparation.prepare(&view.name, caption, &view.picture))
                    }
                    (None, Some(quality)) => {
                        let preparation = preparation.as_jpeg(*quality);
                        Arc::new(preparation.prepare(&view.name, caption, &view.picture))
                    }
                };
                if plan.shown.captions {
                    return sent;
                }
                Arc::new(SentPicture { caption: String::new(), ..SentPicture::clone(&sent) })
            };
            brief.pictures.iter().map(sent).collect()
        });
        for sent in &pictures {
            scene.set_shown_size(&sent.name, sent.size);
        }
        let question = brief.question.as_ref();
        let told = Told {
            instruction: &case.instruction,
            facts: &case.facts,
            notes: &brief.notes,
            question: question.map(|question| question.text.as_str()),
        };
        let deliberation = self.deliberation(plan, &told, &pictures)?;
        let question = question.cloned();
        Ok(Opened { deliberation, scene, pictures, question })
    }

    /// The deliberation of a part whose pictures are sent like this.
    pub(crate) fn deliberation(
        &self,
        plan: &Plan<'_>,
        told: &Told<'_>,
        pictures: &[Arc<SentPicture>],
    ) -> Result<Deliberation, PromptError> {
        let criterion = plan.criterion;
        let harmless = |(name, fact): (&str, &Fact)| {
            (name.to_owned(), Fact::Text(dialect::neutralise(&fact.text())))
        };
        let facts: Facts = told.facts.iter().map(harmless).collect();
        let question = told.question.map(dialect::neutralise);
        let names: Vec<&str> = pictures.iter().map(|sent| sent.name.as_str()).collect();
        let words = TaskText {
            pictures: &names,
            instruction: &dialect::neutralise(told.instruction),
            notes: told.notes,
            question: question.as_deref(),
            facts: &facts,
        };
        let system = self.pack.system(criterion, &facts, self.record.dialect, &plan.specs)?;
        let text = Part::Text(self.pack.task(criterion, &words)?);
        let mut task: Vec<Part> =
            pictures.iter().map(|sent| Part::Picture(Arc::clone(sent))).collect();
        match plan.shown.text {
            TextPlace::First => task.insert(0, text),
            TextPlace::Last => task.push(text),
        }
        // Nothing that the model is not told too: never an expected answer.
        let mut data = json!({
            "criterion": criterion.id,
            "mode": self.settings.mode,
            "labels": criterion.labels().iter().map(|label| &label.name).collect::<Vec<_>>(),
            "pictures": pictures.iter().map(|sent| &sent.name).collect::<Vec<_>>(),
        });
        if criterion.instruction {
            data["instruction"] = json!(told.instruction);
        }
        if let Some(question) = told.question {
            data["question"] = json!(question);
        }
        if let AnswerForm::Keys(keys) = criterion.form() {
            let key = |key: &KeyForm| json!({ "name": key.name, "values": key.values });
            data["keys"] = keys.iter().map(key).collect();
        }
        let form = criterion.form();
        let question = Question { system, task, data, form };
        let (specs, script) = (plan.specs.clone(), plan.script.clone());
        let dialect = self.record.dialect;
        Ok(Deliberation::new(question, specs, dialect, script, self.settings.limits))
    }

    fn script(&self, criterion: &Criterion) -> Result<Script, PromptError> {
        if criterion.measure.is_some() {
            return Ok(Script::default());
        }
        let turn = |tools_allowed, turns_left| Turn {
            dialect: self.record.dialect,
            tools_allowed,
            turns_left,
        };
        let mut room = MOST_REMINDED;
        let reminder = |left| {
            let text = self.pack.reminder(criterion, turn(true, Some(left)))?;
            // A pack from a trace may have a long one for each of a thousand turns.
            room = room.checked_sub(text.len()).ok_or(PromptError::Endless {
                what: "reminders of all turns",
                most: MOST_REMINDED,
            })?;
            Ok::<_, PromptError>(text)
        };
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
}

/// A judgement before its first question.
#[derive(Debug)]
pub struct Prepared<'a, M> {
    judge: &'a Judge<M>,
    case: &'a EditCase,
    plan: Plan<'a>,
    briefs: Vec<Brief>,
    opened: Vec<Opened>,
    repeat: u32,
    recalled: Option<Recalled>,
}

impl<'a, M> Prepared<'a, M> {
    /// The same as another repetition, counted from 0.
    pub fn repeated(self, repeat: u32) -> Self {
        Self { repeat, ..self }
    }

    /// By what it judges.
    pub fn criterion(&self) -> &'a Criterion {
        self.plan.criterion
    }

    /// What each of its parts is about: the whole picture, one target, one question.
    pub fn part_names(&self) -> impl Iterator<Item = &str> {
        self.briefs.iter().map(|brief| brief.name.as_str())
    }

    /// What the model is asked first, for each part by name: exactly what it gets.
    pub fn first_requests(&self) -> impl Iterator<Item = (&str, Request)> {
        self.part_names().zip(&self.opened).filter_map(|(name, opened)| {
            match opened.deliberation.next_step() {
                Step::AskModel(request) => Some((name, request)),
                _ => None,
            }
        })
    }

    /// Its parts, ready for their first questions.
    pub(crate) fn into_parts(self) -> (Plan<'a>, Vec<Opened>) {
        (self.plan, self.opened)
    }

    /// The judgement as one that begins with turns of another trace.
    pub fn recalling(self, recalled: Recalled) -> Self {
        Self { recalled: Some(recalled), ..self }
    }

    /// What its trace begins with.
    pub(crate) fn manifest(&self) -> Manifest {
        let parts = record::parts(&self.briefs);
        let case = record::of_case(self.case);
        let manifest = self.judge.manifest(case, &self.plan, parts, self.repeat);
        let parent = self.recalled.as_ref().map(|recalled| recalled.parent.clone());
        Manifest { parent, ..manifest }
    }

    /// Judges, as [`Judge::judge`] does.
    pub async fn judge(
        self,
        sink: &dyn Sink,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        let judged = self.judge_unsynced(sink, watch).await?;
        sink.sync().await?;
        Ok(judged)
    }

    /// The same, for whoever calls [`Sink::sync`] for many judgements at a time.
    pub(crate) async fn judge_unsynced(
        self,
        sink: &dyn Sink,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        let span = tracing::info_span!(
            "judgement",
            case = self.case.id,
            editor = self.case.editor,
            criterion = self.plan.criterion.id,
            mode = %self.judge.settings.mode,
            repeat = self.repeat,
        );
        self.recorded(sink, watch).instrument(span).await
    }

    async fn recorded(
        self,
        sink: &dyn Sink,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        let manifest = self.manifest();
        let Self { judge, case, plan, opened, repeat, recalled, .. } = self;
        let mut recalled = recalled.map(|recalled| recalled.parts).unwrap_or_default();
        recalled.resize_with(opened.len(), RecalledPart::default);
        let sent = opened.iter().flat_map(|opened| &opened.pictures);
        let recorder = record::start(sink, || judge.inputs(case, sent), &manifest).await?;
        if let Some(measure) = &plan.criterion.measure {
            let measured = measuring::measured(judge, measure, case).await;
            if let Some(observed) = measuring::observed(measure, &measured) {
                recorder.record(What::Observed(observed), watch)?;
            }
            let decided = measuring::decided(plan.criterion, &measured);
            let outcome = decided.outcome.clone();
            recorder.record(What::Decided(decided), watch)?;
            return record::finish(recorder, &manifest, outcome, watch).await;
        }
        let session = Session { judge, case, sink, recorder, watch, plan: &plan, repeat };

        let mut outcomes = Vec::new();
        for (part, (opened, recalled)) in opened.into_iter().zip(recalled).enumerate() {
            outcomes.push(session.deliberate(part, opened, recalled).await?);
        }
        record::finish(session.recorder, &manifest, overall(plan.criterion, outcomes), watch).await
    }
}

/// The outcome of a judgement whose parts ended like this.
pub(crate) fn overall(criterion: &Criterion, parts: Vec<Outcome>) -> Outcome {
    let nothing = || Outcome::Missing { reason: "there was nothing to look at".to_owned() };
    Outcome::combined(parts, criterion.combine).unwrap_or_else(nothing)
}

/// A part of a judgement before its first question.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) deliberation: Deliberation,
    /// What the tools work on.
    pub(crate) scene: Scene,
    /// As they are sent.
    pub(crate) pictures: Vec<Arc<SentPicture>>,
    /// The question that it is about, if it is about one.
    pub(crate) question: Option<CaseQuestion>,
}

/// What a part is told besides its pictures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) instruction: &'a str,
    pub(crate) facts: &'a Facts,
    pub(crate) notes: &'a [String],
    pub(crate) question: Option<&'a str>,
}

/// What a judgement is made with, ready before the first question.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) criterion: &'a Criterion,
    shown: &'a ModeView,
    pub(crate) toolbox: Arc<Toolbox>,
    specs: Vec<ToolSpec>,
    script: Script,
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
    #[error("the criterion {criterion} has no mode {mode}; choose another one")]
    NoSuchMode {
        /// Which criterion.
        criterion: String,
        /// Which mode.
        mode: Mode,
    },
    /// The evidence cannot be kept.
    #[error("cannot write the trace; is the disk full, or the folder not one that can be written?")]
    Trace(#[from] io::Error),
    /// Nobody is there to be asked. Nothing has an outcome because of that.
    #[error("{0}")]
    Unreachable(String),
    /// It was stopped on purpose, and can be made again.
    #[error("{0}")]
    Stopped(String),
}

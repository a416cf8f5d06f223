//! The judge: drives a deliberation with a model and tools, and records all of it.

mod looks;
mod recalled;
mod record;
pub(crate) mod session;
mod shared;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use deeplook_tools::{Scene, ToolSpec, Toolbox};
use serde_json::json;
use tracing::Instrument as _;

pub use self::looks::Looks;
pub(crate) use self::recalled::ONLY_RECORDED;
pub use self::recalled::{Recalled, RecalledLook, RecalledPart};
use self::session::Session;
pub use self::shared::{Allowance, Shared, Spent};
use crate::case::EditCase;
use crate::deliberation::{Deliberation, Limits, Question, Script, Step};
use crate::dialect;
use crate::hash::Hash;
use crate::message::{Dialect, Part, Request, SentPicture};
use crate::model::{ChatModel, Rules};
use crate::prompt::{self, Criterion, Mode, ModeView, Pack, PromptError, TaskText, Turn};
use crate::protocol::{self, Brief, BriefPicture, ProtocolError, Targets};
use crate::sending::Preparation;
use crate::trace::{Event, Judgement, Manifest, ModelRecord, ResultLine, RunFolder};
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
    /// The folder of the trace.
    pub trace: PathBuf,
    /// Stands for the whole trace: keep it elsewhere, and nobody can change the trace unnoticed.
    pub digest: Hash,
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
        let briefs = protocol::briefs(case, plan.shown, self.settings.targets)?;
        let open = |brief| self.open(&plan, brief, case);
        let opened = briefs.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Prepared { judge: self, case, plan, briefs, opened, repeat: 0, recalled: None })
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
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        self.prepare(case, criterion)?.judge(run, watch).await
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
        let system = self.pack.system(criterion, self.record.dialect, &specs)?;
        let script = self.script(criterion)?;
        Ok(Plan { criterion, shown, toolbox, specs, system, script })
    }

    fn open(&self, plan: &Plan<'_>, brief: &Brief, case: &EditCase) -> Result<Opened, JudgeError> {
        let mut scene = Scene::from_views(brief.pictures.iter().map(|p| p.view.clone()))
            .with_boxes(self.record.boxes);
        let mut pictures = Vec::new();
        for picture in &brief.pictures {
            let BriefPicture { view, caption, whole } = picture;
            let preparation = self.settings.preparation;
            let sent = match whole {
                Some(input) => input.sent(&view.name, preparation),
                None => Arc::new(preparation.prepare(&view.name, caption, &view.picture)),
            };
            scene.set_shown_size(&view.name, sent.size);
            pictures.push(sent);
        }
        let deliberation = self.deliberation(plan, &case.instruction, &brief.notes, &pictures)?;
        Ok((deliberation, scene, pictures))
    }

    /// The deliberation of a part whose pictures are sent like this.
    pub(crate) fn deliberation(
        &self,
        plan: &Plan<'_>,
        instruction: &str,
        notes: &[String],
        pictures: &[Arc<SentPicture>],
    ) -> Result<Deliberation, PromptError> {
        let harmless = dialect::neutralise(instruction);
        let words = TaskText { instruction: &harmless, notes };
        let mut task = vec![Part::Text(self.pack.task(plan.criterion, &words)?)];
        task.extend(pictures.iter().map(|sent| Part::Picture(Arc::clone(sent))));
        // Nothing that the model is not told too.
        let data = json!({
            "criterion": plan.criterion.id,
            "mode": self.settings.mode,
            "instruction": instruction,
            "labels": plan.criterion.labels().iter().map(|label| &label.name).collect::<Vec<_>>(),
            "pictures": pictures.iter().map(|sent| &sent.name).collect::<Vec<_>>(),
        });
        let form = plan.criterion.form();
        let question = Question { system: plan.system.clone(), task, data, form };
        let (specs, script) = (plan.specs.clone(), plan.script.clone());
        let dialect = self.record.dialect;
        Ok(Deliberation::new(question, specs, dialect, script, self.settings.limits))
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

    /// What each of its parts looks at: the whole picture, or one target.
    pub fn part_names(&self) -> impl Iterator<Item = &str> {
        self.briefs.iter().map(|brief| brief.name.as_str())
    }

    /// What the model is asked first, for each part by name: exactly what it gets.
    pub fn first_requests(&self) -> impl Iterator<Item = (&str, Request)> {
        self.part_names().zip(&self.opened).filter_map(|(name, (deliberation, ..))| {
            match deliberation.next_step() {
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
        run: &RunFolder,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        let judged = self.judge_unsynced(run, watch).await?;
        let run = run.clone();
        record::on_disk(move || run.sync()).await?;
        Ok(judged)
    }

    /// The same, for whoever calls [`RunFolder::sync`] for many judgements at a time.
    pub(crate) async fn judge_unsynced(
        self,
        run: &RunFolder,
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
        self.recorded(run, watch).instrument(span).await
    }

    async fn recorded(
        self,
        run: &RunFolder,
        watch: &(dyn Fn(&Event) + Send + Sync),
    ) -> Result<Judged, JudgeError>
    where
        M: ChatModel,
    {
        let manifest = self.manifest();
        let Self { judge, case, plan, opened, repeat, recalled, .. } = self;
        let mut recalled = recalled.map(|recalled| recalled.parts).unwrap_or_default();
        recalled.resize_with(opened.len(), RecalledPart::default);
        let sent = opened.iter().flat_map(|(.., pictures)| pictures);
        let blobs = judge.inputs(case, sent);
        let writer = record::start(run, blobs, &manifest).await?;
        let session = Session { judge, writer, watch, plan: &plan, repeat };

        let mut outcomes = Vec::new();
        for (part, (opened, recalled)) in opened.into_iter().zip(recalled).enumerate() {
            outcomes.push(session.deliberate(part, opened, recalled).await?);
        }
        record::finish(session.writer, &manifest, overall(outcomes), watch).await
    }
}

/// The outcome of a judgement whose parts ended like this.
pub(crate) fn overall(parts: Vec<Outcome>) -> Outcome {
    let nothing = || Outcome::Missing { reason: "there was nothing to look at".to_owned() };
    Outcome::worst(parts).unwrap_or_else(nothing)
}

/// A part of a judgement before its first question: the deliberation, the scene that the tools work
/// on, and the pictures as they are sent.
pub(crate) type Opened = (Deliberation, Scene, Vec<Arc<SentPicture>>);

/// What a judgement is made with, ready before the first question.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) criterion: &'a Criterion,
    shown: &'a ModeView,
    pub(crate) toolbox: Arc<Toolbox>,
    specs: Vec<ToolSpec>,
    system: String,
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
    #[error("the criterion {criterion} has no mode {mode}; choose another with --mode")]
    NoSuchMode {
        /// Which criterion.
        criterion: String,
        /// Which mode.
        mode: Mode,
    },
    /// The evidence cannot be kept.
    #[error("cannot write the trace; is the disk full, or the folder not one that can be written?")]
    Trace(#[from] io::Error),
    /// It was stopped on purpose, and can be made again.
    #[error("{0}")]
    Stopped(String),
}

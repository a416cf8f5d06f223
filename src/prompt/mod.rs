//! Prompt packs: what a judge is told, as data.
//!
//! A pack is a folder: `pack.toml` names the criteria with what they show and ask, what may be
//! answered and what that is worth; `rules.toml` holds every rule of judgement with the place in the
//! paper that it comes from; the templates put the rules into prompts by id. The base prompt of a
//! criterion is the same in every mode, and the tool part is only ever appended to it.
//! `prompts/README.md` has every key. A [`Rubric`] is a pack without its words.
//!
//! ```
//! use deeplook::message::Dialect;
//! use deeplook::prompt::Pack;
//!
//! let pack = Pack::embedded("dlebench/v1")?;
//! let criterion = pack.criterion("if")?;
//! let prompt = pack.system(criterion, &Default::default(), Dialect::Native, &[])?;
//! assert!(prompt.contains("Flawless Execution"));
//! assert_eq!(criterion.score("Over Modification"), Some(200.0 / 3.0));
//! # Ok::<(), deeplook::prompt::PromptError>(())
//! ```

mod across;
mod criterion;
mod diff;
mod error;
mod file;
mod format1;
mod lint;
mod making;
mod parse;
mod report;
mod role;
mod rubric;
mod rules;
mod score;
mod source;
mod template;
#[cfg(test)]
mod tests;
mod views;
pub mod workshop;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use deeplook_tools::ToolSpec;
use minijinja::{Environment, Value, context};
use serde::Serialize;

pub use self::criterion::{
    Adaptive, AnswerKind, Area, Ask, Context, Criterion, Gate, Key, KeyValue, Label, Margin, Mode,
    ModeView, PictureView, Place, Repeats, Sizes, Skip, TextPlace, Treatment,
};
pub use self::diff::{Change, Line, PackDiff, PromptChange, RuleChange, diff, lines as diff_lines};
pub use self::error::PromptError;
pub use self::lint::{Check, Finding, lint};
pub use self::report::{Average, ReportHints};
use self::role::Role;
pub use self::rubric::Rubric;
pub use self::rules::Rule;
pub use self::score::{Composite, CompositeFunction, Formula, NoScore, Scale, ScoreFunction};
pub use self::source::Files;
use self::template::{KnownFacts, RuleFunction};
use crate::case::Facts;
use crate::hash::Hash;
use crate::message::Dialect;

/// The pack that is used unless another is asked for.
pub const DEFAULT: &str = "dlebench/v2";

/// A prompt pack, ready to render.
#[derive(Debug)]
pub struct Pack {
    /// E.g. `dlebench`.
    pub name: String,
    /// E.g. `v1`. A released version is never edited.
    pub version: String,
    /// One line for people.
    pub about: String,
    /// The hash of all files: their names and contents.
    pub hash: Hash,
    /// The variants that it has.
    pub variants: Vec<Variant>,
    files: Files,
    rubric: Arc<Rubric>,
    rules: Vec<Rule>,
    /// By criterion: the text of each of its rules.
    texts: BTreeMap<String, Arc<BTreeMap<String, String>>>,
    environment: Environment<'static>,
}

/// A named set of changes to a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// By which it is chosen.
    pub name: String,
    /// One line for people.
    pub about: String,
}

/// What a task says in words; the pictures come after it, each behind its caption. Texts from
/// outside are already made harmless.
#[derive(Debug, Clone, Copy)]
pub struct TaskText<'a> {
    /// What the editor was told.
    pub instruction: &'a str,
    /// What the judge must know about the pictures, e.g. that one shows a smaller frame.
    pub notes: &'a [String],
    /// What is asked about this case, where a benchmark brings its own questions.
    pub question: Option<&'a str>,
    /// The names of the pictures that follow.
    pub pictures: &'a [&'a str],
    /// What is known of the case; a template shows of it what it names.
    pub facts: &'a Facts,
}

/// What the model may do in its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// How it calls tools.
    pub dialect: Dialect,
    /// Whether it may call them.
    pub tools_allowed: bool,
    /// Turns left, the next one included; `None` to leave it unsaid.
    pub turns_left: Option<u32>,
}

/// A prompt with what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prompt {
    /// The criterion's id.
    pub criterion: String,
    /// Which of its prompts, e.g. "tool part (tags)".
    pub title: String,
    /// What the model reads.
    pub text: String,
    /// The ids of the rules in it.
    #[serde(skip)]
    pub(crate) placed: BTreeSet<String>,
    /// The file that it begins in.
    #[serde(skip)]
    pub(crate) file: String,
}

impl Pack {
    /// The packs in this binary, by id.
    pub fn list() -> impl Iterator<Item = &'static str> {
        source::EMBEDDED.iter().map(|(id, _)| *id)
    }

    /// A pack of this binary, e.g. `dlebench/v1`.
    pub fn embedded(id: &str) -> Result<Self, PromptError> {
        Self::from_files(source::embedded(id).ok_or_else(|| PromptError::unknown(id))?)
    }

    /// A pack in a folder. It must pass [`lint()`]: a prompt with a forgotten rule would judge, too.
    pub fn load(folder: &Path) -> Result<Self, PromptError> {
        Self::checked(source::read_folder(folder)?)
    }

    /// The pack of this id in the binary, or else the one in the folder of this name.
    pub fn find(id_or_folder: &str) -> Result<Self, PromptError> {
        let folder = Path::new(id_or_folder);
        if !Self::list().any(|id| id == id_or_folder) && folder.is_dir() {
            Self::load(folder)
        } else {
            Self::embedded(id_or_folder)
        }
    }

    /// The same in one of its variants; `None` for the pack as it is.
    pub fn find_varied(id_or_folder: &str, variant: Option<&str>) -> Result<Self, PromptError> {
        Self::find(id_or_folder)?.varied(variant)
    }

    /// A pack of these files, such as a trace holds. It need not pass [`lint()`]: what could be
    /// rendered once can be rendered again.
    pub fn from_files(files: Files) -> Result<Self, PromptError> {
        parse::parse(files, None).map_err(PromptError::Wrong)
    }

    /// The same pack in one of its variants; `None` for the pack as it is.
    pub fn varied(self, variant: Option<&str>) -> Result<Self, PromptError> {
        let Some(name) = variant else { return Ok(self) };
        if !self.variants.iter().any(|known| known.name == name) {
            let known: Vec<&str> = self.variants.iter().map(|v| v.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let (pack, name) = (self.id(), name.to_owned());
            return Err(PromptError::UnknownVariant { pack, name, known });
        }
        parse::parse(self.files, Some(name)).map_err(PromptError::Wrong)
    }

    /// Name and version, e.g. `dlebench/v1`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }

    /// The files, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()))
    }

    /// What it says about judging, without its words.
    pub fn rubric(&self) -> &Arc<Rubric> {
        &self.rubric
    }

    /// The criteria, in the pack's order.
    pub fn criteria(&self) -> &[Criterion] {
        &self.rubric.criteria
    }

    /// The criterion of this id.
    pub fn criterion(&self, id: &str) -> Result<&Criterion, PromptError> {
        self.rubric.criterion(id).ok_or_else(|| {
            let known: Vec<&str> = self.criteria().iter().map(|c| c.id.as_str()).collect();
            PromptError::UnknownCriterion {
                pack: self.id(),
                id: id.to_owned(),
                known: known.join(", "),
            }
        })
    }

    /// The rules, in the pack's order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The system prompt: the base, and the tool part if there are tools; empty where the pack has
    /// none. `facts` are harmless already.
    pub fn system(
        &self,
        criterion: &Criterion,
        facts: &Facts,
        dialect: Dialect,
        tools: &[ToolSpec],
    ) -> Result<String, PromptError> {
        let mut pieces = Vec::new();
        if criterion.templates.contains_key(&Role::System) {
            pieces.push(self.base(criterion, facts)?.text);
        }
        if !tools.is_empty() {
            pieces.push(self.tool_part(criterion, dialect, tools)?.text);
        }
        Ok(pieces.join("\n\n"))
    }

    /// The text of the task, to be followed by the pictures.
    pub fn task(&self, criterion: &Criterion, task: &TaskText<'_>) -> Result<String, PromptError> {
        Ok(self.task_prompt(criterion, task, "task")?.text)
    }

    /// What closes a task or an observation: the form of the answer; empty where the pack has none.
    pub fn reminder(&self, criterion: &Criterion, turn: Turn) -> Result<String, PromptError> {
        self.if_there(criterion, Role::Reminder, || self.reminder_prompt(criterion, turn))
    }

    /// The text of a prompt for which a pack need not have a template.
    fn if_there(
        &self,
        criterion: &Criterion,
        role: Role,
        render: impl FnOnce() -> Result<Prompt, PromptError>,
    ) -> Result<String, PromptError> {
        if !criterion.templates.contains_key(&role) {
            return Ok(String::new());
        }
        Ok(render()?.text)
    }

    /// What to say to a reply that cannot be read; `problem` is a sentence.
    pub fn repair(
        &self,
        criterion: &Criterion,
        problem: &str,
        turn: Turn,
    ) -> Result<String, PromptError> {
        Ok(self.repair_prompt(criterion, problem, turn)?.text)
    }

    /// What closes the last observation: answer now.
    pub fn last_turn(&self, criterion: &Criterion) -> Result<String, PromptError> {
        let render = || self.render(criterion, Role::LastTurn, "last turn", context! {});
        self.if_there(criterion, Role::LastTurn, render)
    }

    /// The answer to a call that is made although none is allowed any more.
    pub fn no_more_tools(&self, criterion: &Criterion) -> Result<String, PromptError> {
        let render = || self.render(criterion, Role::NoMoreTools, "no more tools", context! {});
        self.if_there(criterion, Role::NoMoreTools, render)
    }

    /// Every prompt of every criterion, in all forms, with these tools and a made-up task.
    pub fn prompts(&self, tools: &[ToolSpec]) -> Result<Vec<Prompt>, PromptError> {
        self.criteria().iter().flat_map(|criterion| self.prompts_of(criterion, tools)).collect()
    }

    fn prompts_of(
        &self,
        criterion: &Criterion,
        tools: &[ToolSpec],
    ) -> Vec<Result<Prompt, PromptError>> {
        let dialects = [Dialect::Native, Dialect::Tags];
        let instruction = "Change the colour of the small boat from white to green.";
        let note = ["The Edited Image shows a smaller frame than the Original Image.".to_owned()];
        let asks = criterion.modes.values().any(|mode| mode.ask == Ask::Questions);
        let question = asks.then_some("Is the small boat green?");
        let facts = &Facts::default();
        let no_tools = Turn { dialect: Dialect::Native, tools_allowed: false, turns_left: None };
        let with_tools =
            dialects.map(|dialect| Turn { dialect, tools_allowed: true, turns_left: Some(5) });
        let looks = criterion.modes.values().any(|mode| mode.tools);
        let with_tools = with_tools.into_iter().filter(|_| looks);
        let problem = "there are two final answers.";

        if criterion.measure.is_some() {
            return Vec::new();
        }
        let has = |role| criterion.templates.contains_key(&role);
        let mut prompts = Vec::new();
        if has(Role::System) {
            prompts.push(self.base(criterion, facts));
        }
        if looks {
            prompts.extend(dialects.map(|dialect| self.tool_part(criterion, dialect, tools)));
        }
        let views = || criterion.modes.values().flat_map(|mode| &mode.views);
        let always: Vec<&str> =
            views().filter(|view| !view.optional).map(|view| view.name.as_str()).collect();
        let task = |notes: &[String], pictures: &[&str], title: &str| {
            let task = TaskText { instruction, notes, question, pictures, facts };
            self.task_prompt(criterion, &task, title)
        };
        prompts.push(task(&[], &always, "task"));
        prompts.push(task(&note, &always, "task with notes"));
        for picture in views().filter(|view| view.optional) {
            let with: Vec<&str> = always.iter().copied().chain([picture.name.as_str()]).collect();
            let more = task(&[], &with, &format!("task with the {}", picture.name));
            // A pack need not speak of a picture that it shows.
            let same = |prompt: &Prompt| more.as_ref().is_ok_and(|more| more.text == prompt.text);
            if !prompts.iter().flatten().any(same) {
                prompts.push(more);
            }
        }
        for turn in [no_tools].into_iter().chain(with_tools) {
            if has(Role::Reminder) {
                prompts.push(self.reminder_prompt(criterion, turn));
            }
            prompts.push(self.repair_prompt(criterion, problem, turn));
        }
        for (role, title) in [(Role::LastTurn, "last turn"), (Role::NoMoreTools, "no more tools")] {
            if has(role) {
                prompts.push(self.render(criterion, role, title, context! {}));
            }
        }
        prompts
    }

    fn base(&self, criterion: &Criterion, facts: &Facts) -> Result<Prompt, PromptError> {
        self.render(criterion, Role::System, "base", context! { facts => KnownFacts::of(facts) })
    }

    fn tool_part(
        &self,
        criterion: &Criterion,
        dialect: Dialect,
        tools: &[ToolSpec],
    ) -> Result<Prompt, PromptError> {
        let tools: Vec<Value> = tools
            .iter()
            .map(|tool| {
                context! {
                    name => tool.name.as_str(),
                    description => tool.description.as_str(),
                    parameters => tool.parameters.to_string(),
                }
            })
            .collect();
        let title = format!("tool part ({})", word(dialect));
        let more = context! { dialect => word(dialect), tools => tools };
        self.render(criterion, Role::Tools, &title, more)
    }

    fn task_prompt(
        &self,
        criterion: &Criterion,
        task: &TaskText<'_>,
        title: &str,
    ) -> Result<Prompt, PromptError> {
        let TaskText { instruction, notes, question, pictures, facts } = *task;
        let more = context! {
            instruction => criterion.instruction.then_some(instruction),
            notes => notes.to_vec(),
            question => question,
            pictures => pictures.iter().map(|name| Value::from(*name)).collect::<Vec<_>>(),
            facts => KnownFacts::of(facts),
        };
        self.render(criterion, Role::Task, title, more)
    }

    fn reminder_prompt(&self, criterion: &Criterion, turn: Turn) -> Result<Prompt, PromptError> {
        let title = format!("reminder ({})", turn.title());
        self.render(criterion, Role::Reminder, &title, turn.variables())
    }

    fn repair_prompt(
        &self,
        criterion: &Criterion,
        problem: &str,
        turn: Turn,
    ) -> Result<Prompt, PromptError> {
        let title = format!("repair ({})", turn.title());
        let more = context! { problem => problem, ..turn.variables() };
        self.render(criterion, Role::Repair, &title, more)
    }

    fn render(
        &self,
        criterion: &Criterion,
        role: Role,
        title: &str,
        more: Value,
    ) -> Result<Prompt, PromptError> {
        let no_template = || PromptError::UnknownCriterion {
            pack: self.id(),
            id: criterion.id.clone(),
            known: "this pack's own criteria".to_owned(),
        };
        let file = criterion.templates.get(&role).ok_or_else(no_template)?;
        let texts = self.texts.get(&criterion.id).ok_or_else(no_template)?;
        let rule = RuleFunction::new(&criterion.id, Arc::clone(texts));
        let labels: Vec<String> = criterion.labels().iter().map(|l| l.name.clone()).collect();
        let key = |key: &Key| {
            let values: Vec<String> = key.values.iter().map(KeyValue::to_string).collect();
            context! { name => key.name.as_str(), values => values }
        };
        let context = context! {
            criterion => criterion.name.as_str(),
            labels => labels,
            keys => criterion.keys().iter().map(key).collect::<Vec<_>>(),
            rule => Value::from_dyn_object(Arc::clone(&rule)),
            ..more
        };
        let text = template::render(&self.environment, file, context)
            .map_err(|fault| PromptError::Wrong(vec![Finding::of_fault(fault, role)]))?;
        Ok(Prompt {
            criterion: criterion.id.clone(),
            title: title.to_owned(),
            text,
            placed: rule.placed(),
            file: file.clone(),
        })
    }
}

impl Turn {
    fn variables(self) -> Value {
        context! {
            dialect => word(self.dialect),
            tools_allowed => self.tools_allowed,
            turns_left => self.turns_left,
        }
    }

    fn title(self) -> &'static str {
        if self.tools_allowed { word(self.dialect) } else { "no tools" }
    }
}

/// The dialect as templates and people write it.
fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Native => "native",
        Dialect::Tags => "tags",
    }
}

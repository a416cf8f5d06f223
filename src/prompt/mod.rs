//! Prompt packs: what a judge is told, as data.
//!
//! A pack is a folder: `pack.toml` names the criteria with their pictures, labels and scores;
//! `rules.toml` holds every rule of judgement with the place in the paper that it comes from; the
//! templates put the rules into prompts by id. The base prompt of a criterion is the same in every
//! mode, and the tool part is only ever appended to it.
//!
//! ```
//! use deeplook::message::Dialect;
//! use deeplook::prompt::Pack;
//!
//! let pack = Pack::embedded("dlebench/v1")?;
//! let criterion = pack.criterion("if")?;
//! let prompt = pack.system(criterion, Dialect::Native, &[])?;
//! assert!(prompt.contains("Flawless Execution"));
//! assert_eq!(criterion.score("Over Modification"), Some(200.0 / 3.0));
//! # Ok::<(), deeplook::prompt::PromptError>(())
//! ```

mod diff;
mod lint;
mod pack;
mod parse;
mod source;
mod template;
#[cfg(test)]
mod tests;
pub mod workshop;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deeplook_tools::ToolSpec;
use minijinja::{Environment, Value, context};
use serde::Serialize;

pub use self::diff::{Change, Line, PackDiff, PromptChange, RuleChange, diff, lines as diff_lines};
pub use self::lint::{Check, Finding, lint};
use self::pack::Role;
pub use self::pack::{
    AnswerKind, Criterion, Label, Mode, ModeView, PictureKind, Rule, ScoreFunction, Treatment,
};
pub use self::source::Files;
use self::template::RuleFunction;
use crate::hash::Hash;
use crate::message::Dialect;

/// The pack that is used unless another is asked for.
pub const DEFAULT: &str = "dlebench/v1";

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
    files: Files,
    criteria: Vec<Criterion>,
    rules: Vec<Rule>,
    /// By criterion: the text of each of its rules.
    texts: BTreeMap<String, Arc<BTreeMap<String, String>>>,
    environment: Environment<'static>,
}

/// Why there is no pack or no prompt.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// No such pack in this binary.
    #[error(
        "there is no prompt pack {id:?}; use one of {known}, or a folder that holds a pack.toml"
    )]
    UnknownPack {
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// No such criterion in the pack.
    #[error("the prompt pack {pack} has no criterion {id:?}; use one of {known}")]
    UnknownCriterion {
        /// Which pack.
        pack: String,
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// The folder cannot be a pack.
    #[error("the prompt pack in {}: {what}", folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// The pack is wrong.
    #[error("the prompt pack is wrong:{}", list(.0))]
    Wrong(Vec<Finding>),
}

impl PromptError {
    fn unknown(id: &str) -> Self {
        let known = Pack::list().collect::<Vec<_>>().join(", ");
        Self::UnknownPack { id: id.to_owned(), known }
    }
}

fn list(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n  {finding}")).collect()
}

/// What a task says in words; the pictures come after it, each behind its caption.
#[derive(Debug, Clone, Copy)]
pub struct TaskText<'a> {
    /// The editor's instruction, already made harmless.
    pub instruction: &'a str,
    /// What the judge must know about the pictures, e.g. that one shows a smaller frame.
    pub notes: &'a [String],
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

    /// A pack of these files, such as a trace holds. It need not pass [`lint()`]: what could be
    /// rendered once can be rendered again.
    pub fn from_files(files: Files) -> Result<Self, PromptError> {
        parse::parse(files).map_err(PromptError::Wrong)
    }

    /// Name and version, e.g. `dlebench/v1`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.name, self.version)
    }

    /// The files, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, content)| (name.as_str(), content.as_slice()))
    }

    /// The criteria, in the pack's order.
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }

    /// The criterion of this id.
    pub fn criterion(&self, id: &str) -> Result<&Criterion, PromptError> {
        self.criteria.iter().find(|criterion| criterion.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.criteria.iter().map(|c| c.id.as_str()).collect();
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

    /// The system prompt: the base, and the tool part if there are tools.
    pub fn system(
        &self,
        criterion: &Criterion,
        dialect: Dialect,
        tools: &[ToolSpec],
    ) -> Result<String, PromptError> {
        let base = self.base(criterion)?.text;
        if tools.is_empty() {
            return Ok(base);
        }
        Ok(format!("{base}\n\n{}", self.tool_part(criterion, dialect, tools)?.text))
    }

    /// The text of the task, to be followed by the pictures.
    pub fn task(&self, criterion: &Criterion, task: &TaskText<'_>) -> Result<String, PromptError> {
        Ok(self.task_prompt(criterion, task)?.text)
    }

    /// What closes an observation: the form of the answer.
    pub fn reminder(&self, criterion: &Criterion, turn: Turn) -> Result<String, PromptError> {
        Ok(self.reminder_prompt(criterion, turn)?.text)
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
        Ok(self.render(criterion, Role::LastTurn, "last turn", context! {})?.text)
    }

    /// The answer to a call that is made although none is allowed any more.
    pub fn no_more_tools(&self, criterion: &Criterion) -> Result<String, PromptError> {
        Ok(self.render(criterion, Role::NoMoreTools, "no more tools", context! {})?.text)
    }

    /// Every prompt of every criterion, in all forms, with these tools and a made-up task.
    pub fn prompts(&self, tools: &[ToolSpec]) -> Result<Vec<Prompt>, PromptError> {
        self.criteria.iter().flat_map(|criterion| self.prompts_of(criterion, tools)).collect()
    }

    fn prompts_of(
        &self,
        criterion: &Criterion,
        tools: &[ToolSpec],
    ) -> Vec<Result<Prompt, PromptError>> {
        let dialects = [Dialect::Native, Dialect::Tags];
        let instruction = "Change the colour of the small boat from white to green.";
        let note = ["The Edited Image shows a smaller frame than the Original Image.".to_owned()];
        let no_tools = Turn { dialect: Dialect::Native, tools_allowed: false, turns_left: None };
        let with_tools =
            dialects.map(|dialect| Turn { dialect, tools_allowed: true, turns_left: Some(5) });
        let problem = "there are two final answers.";

        let mut prompts = vec![self.base(criterion)];
        prompts.extend(dialects.map(|dialect| self.tool_part(criterion, dialect, tools)));
        for notes in [&[], &note[..]] {
            prompts.push(self.task_prompt(criterion, &TaskText { instruction, notes }));
        }
        for turn in [no_tools].into_iter().chain(with_tools) {
            prompts.push(self.reminder_prompt(criterion, turn));
            prompts.push(self.repair_prompt(criterion, problem, turn));
        }
        prompts.push(self.render(criterion, Role::LastTurn, "last turn", context! {}));
        prompts.push(self.render(criterion, Role::NoMoreTools, "no more tools", context! {}));
        prompts
    }

    fn base(&self, criterion: &Criterion) -> Result<Prompt, PromptError> {
        self.render(criterion, Role::System, "base", context! {})
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
    ) -> Result<Prompt, PromptError> {
        let title = if task.notes.is_empty() { "task" } else { "task with notes" };
        let more = context! { instruction => task.instruction, notes => task.notes.to_vec() };
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
        let context = context! {
            criterion => criterion.name.as_str(),
            labels => labels,
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

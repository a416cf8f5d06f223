//! The loop, as a pure state machine: it says what to do next and is fed with what came of it.
//!
//! It does no I/O, so that judging, replaying, forking at a turn and testing are the same object
//! with another driver.

use std::sync::Arc;

use deeplook_tools::ToolSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{AnswerForm, Answered};
use crate::dialect;
use crate::message::{
    Dialect, Message, Observation, Part, Reply, Request, ToolCall, ToolChoice, Usage,
};

/// More tool calls than this in one reply are no attempt to look: each would have to be answered.
const MOST_AT_ONCE: usize = 256;

/// The bounds of a deliberation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Turns in which the model may look or answer; in the last one it must answer.
    pub turns: u32,
    /// Tool calls over all turns.
    pub tool_calls: u32,
    /// Tokens of all requests and replies, as the server counts them.
    pub tokens: Option<u64>,
    /// How often a reply that cannot be read is answered with what was wrong.
    pub repairs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { turns: 8, tool_calls: 24, tokens: None, repairs: 2 }
    }
}

/// What is to be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Who the model is and by which rules it judges; empty to leave it unsaid.
    pub system: String,
    /// The task: text and pictures.
    pub task: Vec<Part>,
    /// The task for machines.
    pub data: Value,
    /// What may be answered.
    pub form: AnswerForm,
}

/// The texts of a deliberation, rendered beforehand from the prompt pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Closes the task and every observation while tools may be called: the form of the answer. By
    /// the number of turns that are left, from 1.
    pub reminders: Vec<String>,
    /// Closes a task without tools: the form of the answer.
    pub answering: String,
    /// Closes the last observation: answer now.
    pub last_turn: String,
    /// Answers a tool call that came after the last turn.
    pub no_more_tools: String,
    /// Answers a reply that could not be read, while tools may be called; [`Script::PROBLEM`] stands
    /// for what was wrong.
    pub repair_looking: String,
    /// The same when only an answer is left.
    pub repair_answering: String,
}

impl Script {
    /// The place of the problem in a repair.
    pub const PROBLEM: &str = "\u{1}problem\u{1}";
}

/// What the driver has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model and feed [`Deliberation::replied`].
    AskModel(Request),
    /// Use the tools and feed [`Deliberation::observed`] with one observation for each of `calls`.
    UseTools {
        /// What to do.
        calls: Vec<ToolCall>,
        /// Calls beyond a limit and what the model is told of them: nothing to do but to record.
        refused: Vec<Observation>,
    },
    /// Nothing: this is the end.
    Done(Ending),
}

/// How a deliberation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// The answer, or why there is none.
    pub answer: Answer,
    /// The last thought.
    pub reasoning: Option<String>,
    /// Pictures that the model named as evidence.
    pub evidence: Vec<String>,
    /// Names of pictures that do not exist.
    pub unknown_evidence: Vec<String>,
}

/// The end in one word.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// In the form asked for.
    Given(Answered),
    /// The model would not or could not answer.
    Abstained(String),
    /// Something else prevented an answer.
    Failed(String),
}

/// A model, some tools, and a question that is to be answered in a certain form.
#[derive(Debug, Clone)]
pub struct Deliberation {
    messages: Vec<Arc<Message>>,
    tools: Arc<[ToolSpec]>,
    dialect: Dialect,
    form: AnswerForm,
    script: Script,
    limits: Limits,
    turn: u32,
    /// Questions that repeat a turn: corrections, and the one after a call that came too late.
    extra_turns: u32,
    repairs: u32,
    calls: u32,
    told_no_more_tools: bool,
    usage: Usage,
    pictures: Vec<String>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Asking,
    Acting { calls: Vec<ToolCall>, refused: Vec<Observation> },
    Done(Ending),
}

impl Deliberation {
    /// Starts with a question. Without tools there is one turn.
    pub fn new(
        question: Question,
        tools: Vec<ToolSpec>,
        dialect: Dialect,
        script: Script,
        limits: Limits,
    ) -> Self {
        let Question { system, mut task, data, form } = question;
        let only_turn = limits.turns <= 1 || limits.tool_calls == 0;
        let closing = match script.reminders.get(limits.turns.saturating_sub(1) as usize) {
            _ if tools.is_empty() => &script.answering,
            Some(reminder) if !only_turn => reminder,
            _ => &script.last_turn,
        };
        if !closing.is_empty() {
            task.push(Part::Text(closing.clone()));
        }
        let pictures = task.iter().filter_map(|part| match part {
            Part::Picture(sent) => Some(sent.name.clone()),
            Part::Text(_) => None,
        });
        let pictures = pictures.collect();
        let system = (!system.is_empty()).then_some(Message::System(system));
        let task = Message::User { parts: task, data };
        let messages = system.into_iter().chain([task]).map(Arc::new).collect();
        Self {
            pictures,
            messages,
            tools: tools.into(),
            dialect,
            form,
            script,
            limits,
            turn: 1,
            extra_turns: 0,
            repairs: 0,
            calls: 0,
            told_no_more_tools: false,
            usage: Usage::default(),
            state: State::Asking,
        }
    }

    /// What to do next. Asking twice gives the same answer.
    pub fn next_step(&self) -> Step {
        match &self.state {
            State::Asking => Step::AskModel(Request {
                messages: self.messages.clone(),
                tools: Arc::clone(&self.tools),
                tool_choice: if self.may_look() { ToolChoice::Auto } else { ToolChoice::None },
                dialect: self.dialect,
            }),
            State::Acting { calls, refused } => {
                Step::UseTools { calls: calls.clone(), refused: refused.clone() }
            }
            State::Done(ending) => Step::Done(ending.clone()),
        }
    }

    /// The number of the question that comes next or was asked last, from 1.
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Tokens so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    fn may_look(&self) -> bool {
        !self.tools.is_empty()
            && self.turn - self.extra_turns < self.limits.turns
            && self.calls < self.limits.tool_calls
    }

    fn reminder(&self) -> &str {
        let left = self.limits.turns.saturating_sub(self.turn - self.extra_turns) as usize;
        let reminders = &self.script.reminders;
        reminders.get(left).or(reminders.last()).unwrap_or(&self.script.last_turn)
    }

    /// Takes the model's reply to the last question.
    pub fn replied(&mut self, reply: &Reply) {
        if !matches!(self.state, State::Asking) {
            return;
        }
        self.usage = self.usage.plus(reply.usage);
        let reading = dialect::read(&reply.said, &self.form);
        let could_look = self.may_look();
        self.messages.push(Arc::new(Message::Assistant(Box::new(reply.clone()))));
        let (evidence, unknown_evidence) =
            reading.evidence.into_iter().partition(|name| self.pictures.contains(name));
        let ending = |answer| {
            let reasoning = reading.thought.clone();
            State::Done(Ending { answer, reasoning, evidence, unknown_evidence })
        };

        self.state = if let Some(refusal) = &reply.said.refusal {
            ending(Answer::Abstained(format!("the model refused: {refusal}")))
        } else if reply.was_filtered() && reading.answer.is_none() {
            ending(Answer::Failed("a content filter of the server stopped the reply".to_owned()))
        } else if reading.calls.len() > MOST_AT_ONCE {
            ending(Answer::Abstained(format!(
                "it made {} tool calls in one reply",
                reading.calls.len()
            )))
        } else if could_look && !reading.calls.is_empty() {
            // An answer beside a call was given before the look that it asks for: look first.
            let room = (self.limits.tool_calls - self.calls) as usize;
            let mut calls = reading.calls;
            let beyond = calls.split_off(room.min(calls.len()));
            let text = format!("the limit of {} tool calls is reached", self.limits.tool_calls);
            State::Acting { calls, refused: refused(beyond, &text) }
        } else if let Some(answer) = reading.answer {
            ending(Answer::Given(answer))
        } else if !reading.calls.is_empty() && !self.told_no_more_tools {
            self.told_no_more_tools = true;
            self.extra_turns += 1;
            State::Acting {
                calls: Vec::new(),
                refused: refused(reading.calls, &self.script.no_more_tools),
            }
        } else if !reading.calls.is_empty() {
            ending(Answer::Abstained(
                "it called tools after the last turn instead of answering".to_owned(),
            ))
        } else {
            let cut = reply.was_cut();
            let problem = match reading.problems.as_slice() {
                _ if cut => {
                    "your reply was cut off at the token limit; think more briefly".to_owned()
                }
                [] => "it holds neither a tool call nor a final answer".to_owned(),
                problems => problems.join("; "),
            };
            if self.repairs < self.limits.repairs {
                self.ask_again(&problem);
                State::Asking
            } else if cut {
                ending(Answer::Failed(
                    "the reply was cut off at the token limit; raise it with --param max_tokens=N"
                        .to_owned(),
                ))
            } else {
                ending(Answer::Abstained(format!("no readable answer: {problem}")))
            }
        };
        if self.tokens_are_used_up() && !matches!(self.state, State::Done(_)) {
            let reason =
                format!("the budget of {} tokens is used up", self.limits.tokens.unwrap_or(0));
            self.fail(reason);
        }
    }

    /// Takes what the tools saw, one observation for each call of the last step.
    pub fn observed(&mut self, mut observations: Vec<Observation>) {
        // After a failure there is nothing to go on with.
        let State::Acting { calls, refused } = &mut self.state else { return };
        self.calls += calls.len() as u32;
        observations.append(refused);
        self.state = State::Asking;
        self.pictures.extend(observations.iter().flat_map(|o| &o.pictures).map(|p| p.name.clone()));
        self.turn += 1;
        let closing = if self.may_look() { self.reminder() } else { &self.script.last_turn };
        let closing = closing.to_owned();
        self.messages.push(Arc::new(Message::Observations { observations, closing }));
    }

    /// Ends it because the model cannot be asked, or a tool is broken.
    pub fn fail(&mut self, reason: String) {
        self.state = State::Done(Ending {
            answer: Answer::Failed(reason),
            reasoning: None,
            evidence: Vec::new(),
            unknown_evidence: Vec::new(),
        });
    }

    fn tokens_are_used_up(&self) -> bool {
        let used = self
            .usage
            .prompt_tokens
            .unwrap_or(0)
            .saturating_add(self.usage.completion_tokens.unwrap_or(0));
        self.limits.tokens.is_some_and(|limit| used >= limit)
    }

    fn ask_again(&mut self, problem: &str) {
        let script = &self.script;
        let repair =
            if self.may_look() { &script.repair_looking } else { &script.repair_answering };
        let text = repair.replace(Script::PROBLEM, problem);
        self.messages
            .push(Arc::new(Message::User { parts: vec![Part::Text(text)], data: Value::Null }));
        self.repairs += 1;
        self.turn += 1;
        self.extra_turns += 1;
    }
}

/// Calls that are not made, each answered with `text`.
fn refused(calls: Vec<ToolCall>, text: &str) -> Vec<Observation> {
    let answer =
        |call| Observation { call, text: text.to_owned(), data: Value::Null, pictures: Vec::new() };
    calls.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests;

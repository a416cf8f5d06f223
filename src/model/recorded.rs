//! A model that first says what a trace holds, and then goes on as another one.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::{ChatModel, FailedAttempt, ModelError};
use crate::message::{Message, Reply, Request};

/// Says recorded replies as long as there are any, then asks `then`.
#[derive(Debug)]
pub struct Recorded<M> {
    then: M,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// The replies of the part under way.
    now: VecDeque<Reply>,
    /// Those of the parts that follow.
    parts: VecDeque<VecDeque<Reply>>,
}

impl<M> Recorded<M> {
    /// A model that begins every part of a judgement with its recorded replies.
    pub fn new(parts: Vec<Vec<Reply>>, then: M) -> Self {
        let parts = parts.into_iter().map(VecDeque::from).collect();
        Self { then, kept: Mutex::new(Kept { now: VecDeque::new(), parts }) }
    }

    fn next(&self, request: &Request) -> Option<Reply> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let begins =
            |message: &Message| matches!(message, Message::System(_) | Message::User { .. });
        // A new part: nobody has said anything yet.
        if request.messages.iter().all(|message| begins(message)) {
            kept.now = kept.parts.pop_front().unwrap_or_default();
        }
        kept.now.pop_front()
    }
}

impl<M: ChatModel> ChatModel for Recorded<M> {
    async fn ask(
        &self,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        match self.next(request) {
            Some(reply) => Ok(reply),
            None => self.then.ask(request, on_attempt).await,
        }
    }
}

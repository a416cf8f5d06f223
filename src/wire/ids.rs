//! The names of calls, by which their answers are known: present, and different in a conversation.

use std::collections::HashSet;

/// The ids of a conversation.
pub(super) struct Ids<'a> {
    taken: &'a HashSet<&'a str>,
    seen: HashSet<String>,
}

impl<'a> Ids<'a> {
    /// Before a message; `taken` are the ids of those before it.
    pub(super) fn after(taken: &'a HashSet<&'a str>) -> Self {
        Self { taken, seen: HashSet::new() }
    }

    /// Takes the id of the call at `place`, or a new one for it, with what was wrong.
    pub(super) fn take(&mut self, place: usize, id: &str) -> Option<(String, String)> {
        if !id.is_empty() && !self.is_taken(id) {
            self.seen.insert(id.to_owned());
            return None;
        }
        let problem = if id.is_empty() { "an empty" } else { "a repeated" };
        let new = self.free(place);
        self.seen.insert(new.clone());
        Some((new, format!("call {}: replaced {problem} id", place + 1)))
    }

    fn is_taken(&self, id: &str) -> bool {
        self.taken.contains(id) || self.seen.contains(id)
    }

    /// An id that nothing else has; the same for the same conversation.
    fn free(&self, place: usize) -> String {
        let mut number = self.taken.len() + place;
        loop {
            number += 1;
            let id = format!("call_{number}");
            if !self.is_taken(&id) {
                return id;
            }
        }
    }
}

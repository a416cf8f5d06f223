//! Every line of `events.jsonl` ends in a seal over itself and the seal before it; the first one is
//! over the manifest too. An edit anywhere breaks the chain, also of what nothing else can check:
//! times, prices, names.

use super::events::Event;
use crate::hash::Hash;

/// The seal of an event and its line. `before` is the seal of the line before, or the hash of the
/// manifest.
pub(super) fn sealed(before: &Hash, event: &Event) -> serde_json::Result<(Hash, Vec<u8>)> {
    let mut line = serde_json::to_vec(event)?;
    line.pop();
    let seal = seal_of(before, &line);
    line.extend_from_slice(ending(&seal).as_bytes());
    line.push(b'\n');
    Ok((seal, line))
}

/// Whether a line, without its line feed, is as it was written after `before`.
pub(super) fn holds(before: &Hash, line: &[u8]) -> bool {
    let length = line.len().saturating_sub(ending(before).len());
    let (body, end) = line.split_at(length);
    end == ending(&seal_of(before, body)).as_bytes()
}

fn seal_of(before: &Hash, body: &[u8]) -> Hash {
    let mut text = Vec::with_capacity(body.len() + 65);
    text.extend_from_slice(before.as_str().as_bytes());
    text.push(b'\n');
    text.extend_from_slice(body);
    Hash::of(&text)
}

/// What follows the body of a line; it always has the same length.
fn ending(seal: &Hash) -> String {
    format!(",\"seal\":\"{seal}\"}}")
}

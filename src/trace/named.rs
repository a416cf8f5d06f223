//! Which blobs a trace names, and where.

use std::collections::BTreeMap;

use super::events::{Event, StoredMessage, StoredPart, ToolAnswer, What};
use super::manifest::Manifest;
use crate::hash::Hash;

/// Every blob that a trace names, with the place that names it first.
pub fn blobs_named<'a>(manifest: &'a Manifest, events: &'a [Event]) -> BTreeMap<&'a Hash, String> {
    let mut named = BTreeMap::new();
    let mut name = |hash: &'a Hash, place: String| {
        named.entry(hash).or_insert(place);
    };
    let case = &manifest.case;
    let own = [("source", &case.source), ("edited", &case.edited)];
    for (role, file) in own.into_iter().chain(&case.others) {
        if let Some(file) = file {
            name(&file.blob, format!("manifest.case.{role}"));
        }
    }
    for (file, hash) in &manifest.pack.files {
        name(hash, format!("manifest.pack.files.{file}"));
    }
    for Event { seq, event, .. } in events {
        match event {
            What::Asked(asked) => {
                let users = asked.messages.iter().filter_map(|message| match message {
                    StoredMessage::User { parts, .. } => Some(parts),
                    _ => None,
                });
                for part in users.flatten() {
                    if let StoredPart::Picture(picture) = part {
                        name(&picture.blob, format!("event {seq}: {}", picture.name));
                    }
                }
            }
            What::Observed(observed) => {
                let ToolAnswer::Saw { pictures, .. } = &observed.answer else { continue };
                for picture in pictures {
                    name(&picture.blob, format!("event {seq}: {}", picture.name));
                    if let Some(sent) = &picture.sent {
                        name(&sent.blob, format!("event {seq}: {} as sent", picture.name));
                    }
                }
            }
            _ => {}
        }
    }
    named
}

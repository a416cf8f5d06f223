//! A look taken again, and compared with the record.

use std::collections::BTreeMap;
use std::sync::Arc;

use deeplook_tools::enhancer;
use deeplook_tools::scene::View;
use deeplook_tools::{Picture, Scene, ToolError, ToolOutput, Toolbox};
use serde_json::{Value, json};

use super::compare::{MOST_PIXEL_DIFFERENCE, differences, pixels, same_but_for_numbers, tolerable};
use super::rebuild;
use super::walk::{Place, Walk};
use crate::hash::Hash;
use crate::judge::ONLY_RECORDED;
use crate::message::{Observation, SentPicture, ToolCall};
use crate::sending::Preparation;
use crate::trace::{Seen, StoredPicture, ToolAnswer};

/// What today's tools look at.
pub(super) struct Live {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) scene: Scene,
    pub(super) preparation: Preparation,
    pub(super) max_images: Option<u32>,
    /// Pictures that the model has got.
    pub(super) sent: u32,
}

/// What a tool sees today.
struct Today {
    answer: ToolAnswer,
    views: Vec<View>,
    /// The new pictures by their hashes, encoded.
    files: BTreeMap<Hash, Vec<u8>>,
}

impl Live {
    /// Uses a tool; the error says why it cannot be used today.
    fn look(&self, call: &ToolCall) -> Result<Today, String> {
        if self.toolbox.is_only_on_record(&call.name) {
            let unavailable = self.toolbox.unavailable();
            let why = unavailable.get(&call.name).or_else(|| unavailable.get(enhancer::NETWORK));
            let why = why.map_or("the network that it used is not here", String::as_str);
            return Err(why.to_owned());
        }
        match self.toolbox.call(&call.name, &call.arguments, &self.scene) {
            Ok(output) => Ok(self.shown(output)),
            Err(ToolError::Refused(text)) => Ok(Today {
                answer: ToolAnswer::Refused { text },
                views: Vec::new(),
                files: BTreeMap::new(),
            }),
            Err(broken @ ToolError::Broken { .. }) => Err(broken.to_string()),
        }
    }

    fn shown(&self, output: ToolOutput) -> Today {
        let room = self.max_images.map_or(usize::MAX, |n| n.saturating_sub(self.sent) as usize);
        let ToolOutput { text, data, pictures: views } = output;
        let mut files = BTreeMap::new();
        let mut pictures = Vec::new();
        for (index, view) in views.iter().enumerate() {
            let made = view.picture.to_png();
            let blob = Hash::of(&made);
            files.insert(blob.clone(), made);
            let sent =
                (index < room).then(|| self.preparation.prepare(&view.name, "", &view.picture));
            let stored = sent.as_ref().map(StoredPicture::from);
            if let Some(sent) = sent {
                files.insert(sent.hash, sent.bytes.to_vec());
            }
            let (name, panels) = (view.name.clone(), view.panels.clone());
            pictures.push(Seen { name, blob, panels, sent: stored });
        }
        let text = text + &crate::judge::session::unsent(views.len().saturating_sub(room));
        Today { answer: ToolAnswer::Saw { text, data, pictures }, views, files }
    }

    /// Takes new pictures into the scene: today's where they are the recorded ones.
    fn add(&mut self, views: Vec<View>, seen: &[Seen]) {
        self.scene.add(views);
        for sent in seen.iter().filter_map(|seen| seen.sent.as_ref()) {
            self.scene.set_shown_size(&sent.name, sent.size);
            self.sent += 1;
        }
    }
}

impl Walk<'_> {
    /// Takes a look again where tools are live, and compares. What goes on is the recorded look, so
    /// that one difference is reported once.
    pub(super) fn look(
        &mut self,
        place: Place,
        call: ToolCall,
        recorded: &ToolAnswer,
        live: Option<&mut Live>,
    ) -> Observation {
        // Where only recorded looks counted, no tool was asked for this one.
        let unasked = self.bundle.manifest.parent.is_some()
            && matches!(recorded, ToolAnswer::Refused { text } if text == ONLY_RECORDED);
        if let Some(live) = live.filter(|_| !unasked) {
            let same = match live.look(&call) {
                Ok(today) => {
                    self.looks += 1;
                    let network = live.toolbox.has_network(&call.name);
                    self.compare_looks(place, &call.name, network, recorded, &today)
                        .then_some(today.views)
                }
                Err(why) => {
                    self.not_rerun(&call.name, why);
                    None
                }
            };
            if let ToolAnswer::Saw { pictures, .. } = recorded {
                let views = same.unwrap_or_else(|| self.recorded_views(pictures));
                live.add(views, pictures);
            }
        }
        match recorded.clone() {
            ToolAnswer::Refused { text } => {
                Observation { call, text, data: Value::Null, pictures: Vec::new() }
            }
            ToolAnswer::Saw { text, data, pictures } => {
                let sent = pictures.iter().filter_map(|seen| seen.sent.as_ref());
                let pictures: Vec<Arc<SentPicture>> =
                    sent.map(|stored| Arc::new(rebuild::sent(stored))).collect();
                Observation { call, text, data, pictures }
            }
        }
    }

    fn recorded_views(&self, pictures: &[Seen]) -> Vec<View> {
        let view = |seen: &Seen| rebuild::view(seen, self.picture(&seen.blob)?);
        pictures.iter().filter_map(view).collect()
    }

    /// A picture of the record; `None` where its blob is bad, which was said before.
    pub(super) fn picture(&self, blob: &Hash) -> Option<Picture> {
        Picture::decode(blob.as_str(), &self.store.get(blob).ok()?).ok()
    }

    /// Whether today's look is exactly the recorded one.
    fn compare_looks(
        &mut self,
        place: Place,
        tool: &str,
        network: bool,
        recorded: &ToolAnswer,
        today: &Today,
    ) -> bool {
        if *recorded == today.answer {
            return true;
        }
        let field = |name: &str| format!("{tool}: {name}");
        match (recorded, &today.answer) {
            (
                ToolAnswer::Saw { text, data, pictures },
                ToolAnswer::Saw { text: now_text, data: now_data, pictures: now_pictures },
            ) => {
                if text != now_text {
                    let tolerated = network && same_but_for_numbers(text, now_text);
                    self.differs(place, field("text"), json!(text), json!(now_text), tolerated);
                }
                if network && tolerable(data, now_data) && data != now_data {
                    self.differs(place, field("data"), data.clone(), now_data.clone(), true);
                } else {
                    self.compare(place, &field("data"), data, now_data);
                }
                let names = |seen: &[Seen]| json!(seen.iter().map(|s| &s.name).collect::<Vec<_>>());
                if pictures.len() != now_pictures.len() {
                    let (before, after) = (names(pictures), names(now_pictures));
                    self.differs(place, field("pictures"), before, after, false);
                }
                for (before, now) in pictures.iter().zip(now_pictures) {
                    self.compare_seen(place, tool, network, before, now, &today.files);
                }
            }
            (before, now) => {
                let (before, after) = (json!(before), json!(now));
                self.differs(place, field("answer"), before, after, false);
            }
        }
        false
    }

    fn compare_seen(
        &mut self,
        place: Place,
        tool: &str,
        network: bool,
        before: &Seen,
        now: &Seen,
        files: &BTreeMap<Hash, Vec<u8>>,
    ) {
        let field = |what: &str| format!("{tool}: picture {:?}{what}", before.name);
        let mut rest = now.clone();
        rest.blob = before.blob.clone();
        if let (Some(rest), Some(before)) = (&mut rest.sent, &before.sent) {
            rest.blob = before.blob.clone();
        }
        for (path, a, b) in differences(before, &rest) {
            let tolerated = network && tolerable(&a, &b);
            self.differs(place, field(&format!(" {path}")), a, b, tolerated);
        }
        let bytes = |hash: &Hash| files.get(hash).map(Vec::as_slice).unwrap_or_default();
        self.compare_pictures(place, field(""), network, &before.blob, &now.blob, bytes(&now.blob));
        if let (Some(before), Some(now)) = (&before.sent, &now.sent) {
            let name = field(" as sent");
            self.compare_pictures(place, name, network, &before.blob, &now.blob, bytes(&now.blob));
        }
    }

    /// Reports how far today's picture is from the recorded one.
    pub(super) fn compare_pictures(
        &mut self,
        place: Place,
        field: String,
        network: bool,
        before: &Hash,
        now: &Hash,
        bytes: &[u8],
    ) {
        if before == now {
            return;
        }
        let today = Picture::decode(now.as_str(), bytes).ok();
        let difference = self.picture(before).zip(today).map(|(a, b)| pixels(&a, &b));
        let largest = difference.as_ref().map_or(u8::MAX, |d| d.as_ref().map_or(0, |d| d.largest));
        let tolerated = network && largest <= MOST_PIXEL_DIFFERENCE;
        self.differs(place, field, json!(before), json!(now), tolerated);
        self.last_pixels(difference.flatten(), tolerated);
    }
}

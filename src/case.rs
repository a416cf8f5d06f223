//! What is to be judged: two pictures and an instruction.

mod facts;
mod named;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use deeplook_tools::registration::Registration;
use deeplook_tools::{Picture, PictureError, PixelBox};
use serde::{Deserialize, Serialize};

pub use self::facts::{Condition, Fact, Facts};
pub use self::named::Named;
use crate::hash::Hash;
use crate::message::SentPicture;
use crate::sending::Preparation;

/// A picture together with the file that it was read from, so that a trace can keep the evidence
/// byte for byte.
#[derive(Debug, Clone)]
pub struct InputPicture {
    picture: Arc<Picture>,
    bytes: Arc<[u8]>,
    hash: Hash,
    /// The hash of another picture, and how this one lies on it.
    lies: Arc<OnceLock<(Hash, Registration)>>,
    sent: Arc<OnceLock<(Preparation, Arc<SentPicture>)>>,
}

impl InputPicture {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, PictureError> {
        let (picture, bytes) = Picture::load_with_bytes(path)?;
        Ok(Self::new(picture, bytes))
    }

    /// Decodes a file that is already in memory; `name` is what errors call it.
    pub fn decode(name: &str, bytes: Vec<u8>) -> Result<Self, PictureError> {
        Ok(Self::new(Picture::decode(name, &bytes)?, bytes))
    }

    fn new(picture: Picture, bytes: Vec<u8>) -> Self {
        let hash = Hash::of(&bytes);
        let (picture, bytes) = (Arc::new(picture), bytes.into());
        Self { picture, bytes, hash, lies: Arc::default(), sent: Arc::default() }
    }

    /// The decoded picture.
    pub fn picture(&self) -> &Arc<Picture> {
        &self.picture
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn shared_bytes(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// The hash of the file.
    pub fn hash(&self) -> &Hash {
        &self.hash
    }

    /// How this picture lies on `source`: estimated once for all judgements of an edit.
    pub(crate) fn on(&self, source: &Self) -> Registration {
        let estimate = || Registration::estimate(&source.picture, &self.picture);
        let (onto, lies) = self.lies.get_or_init(|| (source.hash.clone(), estimate()));
        if *onto == source.hash { lies.clone() } else { estimate() }
    }

    /// The picture as it is sent under `name`: encoded once for all judgements of an edit.
    pub(crate) fn sent(&self, name: &str, preparation: Preparation) -> Arc<SentPicture> {
        let prepare = || Arc::new(preparation.prepare(name, "", &self.picture));
        let (known, sent) = self.sent.get_or_init(|| (preparation, prepare()));
        if *known == preparation && sent.name == name { Arc::clone(sent) } else { prepare() }
    }
}

impl From<Picture> for InputPicture {
    /// A picture made in memory; its file is a PNG.
    fn from(picture: Picture) -> Self {
        let bytes = picture.to_png();
        Self::new(picture, bytes)
    }
}

/// An edit: what was known before it, the pictures, and what can be asked about it.
///
/// One type from the reader to the trace. `P` is how a picture is held: a file, a decoded picture, a
/// hash. `E` is how the edited one is held: likewise, or in a data set those of all editors.
#[derive(Debug, Clone, PartialEq)]
pub struct Case<P, E = P> {
    /// The name of the case.
    pub id: String,
    /// Who edited; never shown to a judge.
    pub editor: Option<String>,
    /// What the editor was told.
    pub instruction: String,
    /// The picture before the edit.
    pub source: P,
    /// The picture after the edit.
    pub edited: E,
    /// Further pictures by name: a `reference`, and whatever a benchmark brings.
    pub others: Named<P>,
    /// What is known of it: its type, the phrase for its target, and any column of a data set.
    pub facts: Facts,
    /// Places by name, in pixels of the source; the objects to edit are `target`.
    pub regions: Named<Vec<PixelBox>>,
    /// What is asked about it, where a benchmark brings its own questions.
    pub questions: Vec<CaseQuestion>,
}

/// An edit that can be judged.
pub type EditCase = Case<InputPicture>;

/// A question that a benchmark asks about one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseQuestion {
    /// Names it within its case.
    pub id: String,
    /// What is asked.
    pub text: String,
    /// The right answer; no model sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The place that it is about, in pixels of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<PixelBox>,
}

/// The name of [`Case::source`].
pub const SOURCE: &str = "source";
/// The name of [`Case::edited`].
pub const EDITED: &str = "edited";
/// The picture of what a good edit looks like, in [`Case::others`].
pub const REFERENCE: &str = "reference";
/// The objects to edit, in [`Case::regions`].
pub const TARGET: &str = "target";

impl EditCase {
    /// The picture of this name.
    pub fn picture(&self, name: &str) -> Option<&InputPicture> {
        match name {
            SOURCE => Some(&self.source),
            EDITED => Some(&self.edited),
            other => self.others.get(other),
        }
    }
}

impl<P, E> Case<P, E> {
    /// A case with nothing but the two pictures and the instruction.
    pub fn new(source: impl Into<P>, edited: impl Into<E>, instruction: impl Into<String>) -> Self {
        Self {
            id: "case".to_owned(),
            editor: None,
            instruction: instruction.into(),
            source: source.into(),
            edited: edited.into(),
            others: Named::new(),
            facts: Facts::default(),
            regions: Named::new(),
            questions: Vec::new(),
        }
    }

    /// What a good edit looks like, if somebody made one.
    pub fn reference(&self) -> Option<&P> {
        self.others.get(REFERENCE)
    }

    /// The boxes of the objects to edit; empty where nobody drew them.
    pub fn targets(&self) -> &[PixelBox] {
        self.region(TARGET)
    }

    /// The boxes of this name; empty where there are none.
    pub fn region(&self, name: &str) -> &[PixelBox] {
        self.regions.get(name).map_or(&[], Vec::as_slice)
    }

    /// The same with a reference.
    #[must_use]
    pub fn with_reference(mut self, reference: impl Into<P>) -> Self {
        self.others.insert(REFERENCE, reference.into());
        self
    }

    /// The same with the boxes of the objects to edit.
    #[must_use]
    pub fn with_targets(mut self, boxes: impl Into<Vec<PixelBox>>) -> Self {
        self.regions.insert(TARGET, boxes.into());
        self
    }

    /// The same with one more fact.
    #[must_use]
    pub fn with_fact(mut self, name: &str, fact: impl Into<Fact>) -> Self {
        self.facts.insert(name, fact);
        self
    }

    /// The same case with other pictures.
    pub fn with_pictures<Q, F>(&self, source: Q, edited: F, others: Named<Q>) -> Case<Q, F> {
        Case {
            id: self.id.clone(),
            editor: self.editor.clone(),
            instruction: self.instruction.clone(),
            source,
            edited,
            others,
            facts: self.facts.clone(),
            regions: self.regions.clone(),
            questions: self.questions.clone(),
        }
    }
}

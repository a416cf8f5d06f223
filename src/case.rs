//! What is to be judged: two pictures and an instruction.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use deeplook_tools::registration::Registration;
use deeplook_tools::{Picture, PictureError, PixelBox};

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

/// An edit to be judged.
///
/// Only the pictures and the instruction are needed. What the oracle mode uses (boxes, reference)
/// and what reports group by (id, editor, type) is optional.
#[derive(Debug, Clone)]
pub struct EditCase {
    /// The name of the case.
    pub id: String,
    /// Who edited; never shown to a judge.
    pub editor: Option<String>,
    /// The picture before the edit.
    pub source: InputPicture,
    /// The picture after the edit.
    pub edited: InputPicture,
    /// What a good edit looks like.
    pub reference: Option<InputPicture>,
    /// What the editor was told.
    pub instruction: String,
    /// The type of the instruction, e.g. "Change Color".
    pub kind: Option<String>,
    /// A phrase for the object that was to be edited.
    pub target: Option<String>,
    /// Where that object is, in pixels of the source; one box for each.
    pub boxes: Vec<PixelBox>,
}

impl EditCase {
    /// A case with nothing but the two pictures and the instruction.
    pub fn new(
        source: impl Into<InputPicture>,
        edited: impl Into<InputPicture>,
        instruction: impl Into<String>,
    ) -> Self {
        Self {
            id: "case".to_owned(),
            editor: None,
            source: source.into(),
            edited: edited.into(),
            reference: None,
            instruction: instruction.into(),
            kind: None,
            target: None,
            boxes: Vec::new(),
        }
    }
}

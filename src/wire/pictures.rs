//! The JSON of pictures: made once, and copied from then on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::hash::Hash;
use crate::message::{MediaType, SentPicture};

/// JSON that is only copied. An `Arc` of the value itself would cost one more copy.
#[derive(Clone)]
pub(super) struct Rendered(Arc<Box<RawValue>>);

impl Serialize for Rendered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// What stands around a picture's base64, by its encoding: it has no character that JSON escapes.
pub(super) type Around = Box<dyn Fn(MediaType) -> (String, String) + Send + Sync>;

/// The JSON of pictures, remembered as long as the pictures themselves.
pub(super) struct Pictures {
    around: Around,
    known: Mutex<HashMap<Hash, (Weak<SentPicture>, Rendered)>>,
}

impl Pictures {
    pub(super) fn new(around: Around) -> Self {
        Self { around, known: Mutex::default() }
    }

    pub(super) fn rendered(
        &self,
        picture: &Arc<SentPicture>,
    ) -> Result<Rendered, serde_json::Error> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, rendered)) = lock().get_mut(&picture.hash) {
            if owner.strong_count() == 0 {
                *owner = Arc::downgrade(picture);
            }
            return Ok(rendered.clone());
        }
        let rendered = Rendered(Arc::new(self.render(picture)?));
        let mut known = lock();
        known.retain(|_, (owner, _)| owner.strong_count() > 0);
        known.insert(picture.hash.clone(), (Arc::downgrade(picture), rendered.clone()));
        Ok(rendered)
    }

    fn render(&self, picture: &SentPicture) -> Result<Box<RawValue>, serde_json::Error> {
        let (before, after) = (self.around)(picture.media);
        let encoded = picture.bytes.len().div_ceil(3) * 4;
        let mut json = String::with_capacity(before.len() + encoded + after.len());
        json.push_str(&before);
        STANDARD.encode_string(&picture.bytes, &mut json);
        json.push_str(&after);
        RawValue::from_string(json)
    }
}

impl fmt::Debug for Pictures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.known.lock().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "{count} pictures")
    }
}

#[cfg(test)]
mod tests {
    use deeplook_tools::Size;

    use super::*;

    fn picture(text: &str) -> Arc<SentPicture> {
        Arc::new(SentPicture {
            name: text.to_owned(),
            caption: String::new(),
            size: Size::new(1, 1),
            media: MediaType::Jpeg,
            bytes: text.as_bytes().into(),
            hash: Hash::of(text.as_bytes()),
        })
    }

    #[test]
    fn pictures_are_rendered_once_and_forgotten_with_their_judgement() {
        let pictures =
            Pictures::new(Box::new(|media| (format!("{{\"{media}\":\""), "\"}".to_owned())));
        let first = picture("a");
        let rendered = pictures.rendered(&first).unwrap();
        assert_eq!(rendered.0.get(), r#"{"image/jpeg":"YQ=="}"#);
        assert!(Arc::ptr_eq(&rendered.0, &pictures.rendered(&picture("a")).unwrap().0));
        drop(first);
        let second = picture("b");
        pictures.rendered(&second).unwrap();
        assert_eq!(format!("{pictures:?}"), "1 pictures");
    }
}

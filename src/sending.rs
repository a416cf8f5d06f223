//! How a picture is prepared for a model: limited in size, encoded once, named by its hash.

use std::sync::Arc;

use deeplook_tools::Picture;
use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::message::{MediaType, SentPicture};

/// The settings of the preparation; part of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// A longer picture is reduced to this long side.
    pub max_side: u32,
    /// PNG unless the server or the user wants JPEG.
    pub format: MediaType,
    /// A PNG of more bytes is sent as JPEG: servers limit the size of a request.
    pub max_png_bytes: usize,
    /// The quality of a JPEG, 1 to 100.
    pub jpeg_quality: u8,
}

impl Default for Preparation {
    fn default() -> Self {
        Self { max_side: 2048, format: MediaType::Png, max_png_bytes: 6 << 20, jpeg_quality: 95 }
    }
}

impl Preparation {
    /// The same with JPEGs of this quality.
    pub(crate) fn as_jpeg(self, quality: u8) -> Self {
        Self { format: MediaType::Jpeg, jpeg_quality: quality, ..self }
    }

    /// The picture as it is sent under `name`; `what` says what was done to it, if anything.
    pub fn prepare(&self, name: &str, what: &str, picture: &Picture) -> SentPicture {
        let size = picture.size();
        let reduced = (size.long_side() > self.max_side)
            .then(|| picture.resized(size.with_long_side(self.max_side)));
        let sent = reduced.as_ref().unwrap_or(picture);
        let (media, bytes) = self.encode(sent);
        let mut caption = format!("{name} ({} pixels", sent.size());
        if reduced.is_some() {
            caption.push_str(&format!(" as sent, reduced from {size}"));
        }
        caption.push(')');
        if !what.is_empty() {
            caption.push_str(": ");
            caption.push_str(what);
        }
        let hash = Hash::of(&bytes);
        let bytes = Arc::from(bytes);
        SentPicture { name: name.to_owned(), caption, size: sent.size(), media, bytes, hash }
    }

    /// Pictures that a judge compares go in one format: where one of them is too large a PNG, all are JPEG, so
    /// that what compression did to one side is no difference. Those whose format was `chosen` do not count.
    pub(crate) fn alike(
        self,
        chosen: &[bool],
        prepare: impl Fn(Self) -> Vec<Arc<SentPicture>>,
    ) -> Vec<Arc<SentPicture>> {
        let sent = prepare(self);
        let free = sent.iter().zip(chosen).filter(|(_, chosen)| !**chosen);
        let (jpegs, pngs): (Vec<_>, Vec<_>) =
            free.partition(|(picture, _)| picture.media == MediaType::Jpeg);
        if jpegs.is_empty() || pngs.is_empty() {
            return sent;
        }
        prepare(Self { format: MediaType::Jpeg, ..self })
    }

    fn encode(&self, picture: &Picture) -> (MediaType, Vec<u8>) {
        if self.format == MediaType::Png {
            let png = picture.to_png();
            if png.len() <= self.max_png_bytes {
                return (MediaType::Png, png);
            }
        }
        match picture.to_jpeg(self.jpeg_quality) {
            Some(jpeg) => (MediaType::Jpeg, jpeg),
            None => (MediaType::Png, picture.to_png()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_goes_in_one_format() {
        let noise = |side: u32| {
            let pixels = image::RgbImage::from_fn(side, side, |x, y| {
                image::Rgb(
                    [0, 1, 2].map(|c| ((x * 7919) ^ (y * 104_729) ^ ((x * y + c) * 31)) as u8),
                )
            });
            Picture::from_rgb(pixels).unwrap()
        };
        let (small, large) = (noise(16), noise(128));
        let media = |pictures: &[&Picture]| -> Vec<MediaType> {
            let preparation = Preparation { max_png_bytes: 2000, ..Preparation::default() };
            let sent = preparation.alike(&[false; 2], |preparation| {
                let of = |picture: &&Picture| Arc::new(preparation.prepare("Picture", "", picture));
                pictures.iter().map(of).collect()
            });
            sent.iter().map(|picture| picture.media).collect()
        };
        assert_eq!(media(&[&small, &small]), [MediaType::Png; 2]);
        assert_eq!(media(&[&small, &large]), [MediaType::Jpeg; 2]);
        assert_eq!(media(&[&large, &small]), [MediaType::Jpeg; 2]);
    }
}

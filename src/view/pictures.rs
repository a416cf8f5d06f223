//! Pictures for a page: found by their hash, checked against it, and named for what their bytes are.

use std::io::{self, Read as _};
use std::path::PathBuf;

use deeplook_tools::Picture;
use image::ImageFormat;

use crate::hash::Hash;
use crate::received;
use crate::trace::BlobStore;

/// The blobs of everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    stores: Vec<BlobStore>,
}

/// Whoever makes pages asks here under which name a picture is to be had.
pub(super) trait PictureNames: Sync {
    /// The name of its file in `blobs/`, or why it cannot be shown.
    fn file_name(&self, hash: &Hash) -> Result<String, String>;
}

/// A picture that a browser can show.
#[derive(Debug)]
pub(super) struct ShownPicture {
    pub(super) extension: &'static str,
    pub(super) media: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Pictures {
    /// Looks in the folder `blobs` too.
    pub(super) fn add(&mut self, blobs: PathBuf) {
        self.stores.push(BlobStore::new(blobs));
    }

    /// The store that has a blob.
    fn store(&self, hash: &Hash) -> Result<&BlobStore, String> {
        let absent = |store: &BlobStore| {
            store.find(hash).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        self.stores.iter().find(|store| !absent(store)).ok_or_else(|| {
            let start = &hash.as_str()[..12];
            format!("the blob {start}… is missing; copy the trace again with its blobs")
        })
    }

    /// How many bytes a picture takes in memory while it is made ready: all of them where it is
    /// decoded.
    pub(super) fn weight(&self, hash: &Hash) -> Result<u64, String> {
        let path = self.store(hash)?.find(hash).map_err(|error| error.to_string())?;
        let file = received::open(&path).map_err(|error| error.to_string())?;
        let length = file.metadata().map_or(u64::MAX, |meta| meta.len());
        let mut start = Vec::new();
        file.take(64).read_to_end(&mut start).map_err(|error| error.to_string())?;
        let decoded = image::guess_format(&start).is_ok_and(|kind| kind == ImageFormat::Tiff);
        Ok(if decoded { u64::MAX } else { length })
    }

    /// The picture itself, checked against its hash.
    pub(super) fn get(&self, hash: &Hash) -> Result<ShownPicture, String> {
        let bytes = self.store(hash)?.get(hash).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                "its file is not what its name says: it was changed".to_owned()
            }
            _ => format!("it cannot be read: {error}"),
        })?;
        let (extension, media) = kind(&bytes)?;
        match image::guess_format(&bytes) {
            // Browsers do not show it.
            Ok(ImageFormat::Tiff) => {
                let picture = Picture::decode("the blob", &bytes).map_err(|e| e.to_string())?;
                Ok(ShownPicture { extension, media, bytes: picture.to_png() })
            }
            _ => Ok(ShownPicture { extension, media, bytes }),
        }
    }
}

impl PictureNames for Pictures {
    /// Only looks at the first bytes: the whole file is checked when it is asked for.
    fn file_name(&self, hash: &Hash) -> Result<String, String> {
        let mut start = Vec::new();
        let file = self.store(hash)?.find(hash).and_then(|path| received::open(&path));
        file.and_then(|file| file.take(64).read_to_end(&mut start))
            .map_err(|error| format!("it cannot be read: {error}"))?;
        let (extension, _) = kind(&start)?;
        Ok(format!("{hash}.{extension}"))
    }
}

/// Extension and media type by the first bytes, whatever the name says. Nothing that could hold
/// a script is a picture here.
fn kind(bytes: &[u8]) -> Result<(&'static str, &'static str), String> {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png | ImageFormat::Tiff) => Ok(("png", "image/png")),
        Ok(ImageFormat::Jpeg) => Ok(("jpg", "image/jpeg")),
        Ok(ImageFormat::WebP) => Ok(("webp", "image/webp")),
        Ok(ImageFormat::Gif) => Ok(("gif", "image/gif")),
        Ok(ImageFormat::Bmp) => Ok(("bmp", "image/bmp")),
        _ => Err("it is not a picture".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn store(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Pictures) {
        let root = tempfile::tempdir().unwrap();
        let folder = fs::canonicalize(root.path()).unwrap();
        fs::create_dir(folder.join("blobs")).unwrap();
        for (extension, bytes) in files {
            let name = format!("{}.{extension}", Hash::of(bytes));
            fs::write(folder.join("blobs").join(name), bytes).unwrap();
        }
        let mut pictures = Pictures::default();
        pictures.add(folder.join("blobs"));
        (root, pictures)
    }

    #[test]
    fn only_pictures_are_shown_and_by_what_they_are() {
        let png = include_bytes!("../../tools/tests/pictures/plain.png");
        let tif = include_bytes!("../../tools/tests/pictures/plain.tif");
        let html = b"<!doctype html><script>alert(1)</script>";
        let svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>";
        let (_root, pictures) = store(&[("jpg", png), ("tiff", tif), ("png", html), ("png", svg)]);
        let shown = pictures.get(&Hash::of(png)).unwrap();
        assert_eq!((shown.media, shown.bytes.as_slice()), ("image/png", png.as_slice()));
        assert!(pictures.file_name(&Hash::of(png)).unwrap().ends_with(".png"));
        assert!(pictures.get(&Hash::of(tif)).unwrap().bytes.starts_with(b"\x89PNG"));
        for bytes in [html.as_slice(), svg.as_slice()] {
            assert!(pictures.get(&Hash::of(bytes)).is_err());
            assert!(pictures.file_name(&Hash::of(bytes)).is_err());
        }
    }

    #[test]
    fn a_changed_missing_or_linked_blob_is_refused() {
        let png = include_bytes!("../../tools/tests/pictures/plain.png");
        let (root, pictures) = store(&[("png", png)]);
        let hash = Hash::of(png);
        let path = root.path().join(format!("blobs/{hash}.png"));
        fs::write(&path, include_bytes!("../../tools/tests/pictures/grey.png")).unwrap();
        assert!(pictures.get(&hash).unwrap_err().contains("changed"));
        fs::remove_file(&path).unwrap();
        assert!(pictures.get(&hash).unwrap_err().contains("missing"));
        #[cfg(unix)]
        {
            let outside = tempfile::NamedTempFile::new().unwrap();
            fs::write(outside.path(), png).unwrap();
            std::os::unix::fs::symlink(outside.path(), &path).unwrap();
            assert!(pictures.get(&hash).unwrap_err().contains("refused"));
        }
    }
}

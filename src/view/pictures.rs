//! Pictures for a page: found by their hash, checked against it, and named for what their bytes are.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use deeplook_tools::Picture;
use image::ImageFormat;

use crate::hash::Hash;
use crate::trace::BlobStore;

/// Larger files than any picture that a judge can have been shown.
const MOST_BYTES: u64 = 256 << 20;

/// The blobs of everything that is shown.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    /// Each with the folder that it must not lead out of.
    stores: Vec<(PathBuf, BlobStore)>,
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
    /// Looks in `folder/blobs` too; `folder` is resolved already.
    pub(super) fn add(&mut self, folder: &Path) {
        self.stores.push((folder.to_owned(), BlobStore::new(folder.join("blobs"))));
    }

    fn find(&self, hash: &Hash) -> Result<PathBuf, String> {
        for (folder, store) in &self.stores {
            let Ok(path) = store.find(hash) else { continue };
            // A link in a trace from elsewhere may lead to anything.
            let inside = fs::canonicalize(&path).is_ok_and(|whole| whole.starts_with(folder));
            let small = fs::metadata(&path).is_ok_and(|meta| meta.len() <= MOST_BYTES);
            return match (inside, small) {
                (false, _) => Err("its file leads out of the trace: refused".to_owned()),
                (_, false) => Err("its file is too large for a picture".to_owned()),
                _ => Ok(path),
            };
        }
        Err(format!(
            "the blob {}… is missing; copy the trace again with its blobs",
            &hash.as_str()[..12]
        ))
    }

    /// The picture itself, checked against its hash.
    pub(super) fn get(&self, hash: &Hash) -> Result<ShownPicture, String> {
        let path = self.find(hash)?;
        let bytes = fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
        if Hash::of(&bytes) != *hash {
            return Err("its file is not what its name says: it was changed".to_owned());
        }
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
        fs::File::open(self.find(hash)?)
            .and_then(|file| file.take(64).read_to_end(&mut start))
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
        pictures.add(&folder);
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

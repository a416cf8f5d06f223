//! Pictures: how they are read, cut, resized and written. Nothing else decodes a file.
//!
//! Every picture becomes 8-bit RGB: orientation applied, alpha laid over white, 16 bits rounded to
//! 8. The content decides what a file is, never its extension.

use std::borrow::Cow;
use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read as _, Seek};
use std::path::Path;

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::{ResizeAlg, ResizeOptions, Resizer, pixels::U8x3};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, PngEncoder};
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageFormat,
    ImageReader, Limits, Rgb, RgbImage,
};

use crate::coords::{PixelBox, Size};
use crate::memory;

/// The most pixels a picture may have: a 12K frame passes, a decompression bomb does not.
pub const MAX_PIXELS: u64 = 1 << 27;
/// The longest side that a picture may have: that of JPEG. All that walks along a side must end.
pub const MAX_SIDE: u32 = 65_535;
/// The most bytes that a picture may have as its file describes it: 16 bits, or floats, or alpha
/// take more than the eight bits that are kept.
const MAX_DECODED_BYTES: u64 = 1 << 30;
/// What a decoder may take beside its pixels, whatever their number.
const WORKSPACE: u64 = 64 << 20;
/// The largest file that is read at all.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// How pictures are resized that somebody looks at.
const SHARP: fast_image_resize::FilterType = fast_image_resize::FilterType::Lanczos3;

/// What is shown where a picture has ended.
const BEYOND: Rgb<u8> = Rgb([128; 3]);

/// A picture in memory: 8-bit RGB, upright, opaque, at least one pixel large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture(RgbImage);

impl Picture {
    /// Reads a picture file.
    pub fn load(path: &Path) -> Result<Self, PictureError> {
        Self::load_with_bytes(path).map(|(picture, _)| picture)
    }

    /// Reads a picture file and keeps its bytes.
    pub fn load_with_bytes(path: &Path) -> Result<(Self, Vec<u8>), PictureError> {
        let fail = |problem| PictureError { name: path.display().to_string(), problem };
        let bytes = read_file(path).map_err(fail)?;
        let picture = Self::decode_bytes(&bytes).map_err(fail)?;
        Ok((picture, bytes))
    }

    /// Decodes a picture from memory; `name` is what errors call it.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, PictureError> {
        Self::decode_bytes(bytes).map_err(|problem| PictureError { name: name.to_owned(), problem })
    }

    fn decode_bytes(bytes: &[u8]) -> Result<Self, PictureProblem> {
        let (decoded, orientation, _share) = decoded(bytes)?;
        let mut upright = DynamicImage::ImageRgb8(over_white(decoded));
        if let Some(orientation) = orientation {
            upright.apply_orientation(orientation);
        }
        Ok(Self(upright.into_rgb8()))
    }

    /// A picture from pixels made in memory; `None` if there are none.
    pub fn from_rgb(pixels: RgbImage) -> Option<Self> {
        (pixels.width() > 0 && pixels.height() > 0).then_some(Self(pixels))
    }

    /// The pixels.
    pub fn rgb(&self) -> &RgbImage {
        &self.0
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        Size::new(self.0.width(), self.0.height())
    }

    /// This picture beneath a layer: a picture file of its own whose transparent pixels show what is
    /// below. A layer of another size is resized to this one's. `name` is what errors call the layer.
    pub fn beneath(&self, name: &str, layer: &[u8]) -> Result<Self, PictureError> {
        let fail = |problem| PictureError { name: name.to_owned(), problem };
        let (mut layer, orientation, _share) = decoded(layer).map_err(fail)?;
        if let Some(orientation) = orientation {
            layer.apply_orientation(orientation);
        }
        let mut layer = layer.into_rgba8();
        let mut pixels = self.0.clone();
        if layer.dimensions() == pixels.dimensions() {
            for (below, above) in pixels.pixels_mut().zip(layer.pixels()) {
                below.0 = laid_over(above.0, below.0);
            }
            return Ok(Self(pixels));
        }
        // Colours count as much as they are seen, so that what is transparent does not stain edges.
        for pixel in layer.pixels_mut() {
            let [red, green, blue] = laid_over(pixel.0, [0; 3]);
            pixel.0 = [red, green, blue, pixel.0[3]];
        }
        let (width, height) = pixels.dimensions();
        let layer = image::imageops::resize(&layer, width, height, FilterType::CatmullRom);
        for (below, above) in pixels.pixels_mut().zip(layer.pixels()) {
            let [red, green, blue, alpha] = above.0;
            let left = laid_over([0, 0, 0, alpha], below.0);
            below.0 = [
                red.saturating_add(left[0]),
                green.saturating_add(left[1]),
                blue.saturating_add(left[2]),
            ];
        }
        Ok(Self(pixels))
    }

    /// The part under `area`, enlarged to whole pixels and clipped to the picture.
    pub fn cropped(&self, area: &PixelBox) -> Self {
        let area = area.whole_pixels(self.size());
        let (x, y) = (area.x1 as usize, area.y1 as usize);
        let (w, h) = (area.width() as usize, area.height() as usize);
        let stride = self.0.width() as usize * 3;
        let mut pixels = Vec::with_capacity(w * h * 3);
        for row in self.0.as_raw().chunks_exact(stride).skip(y).take(h) {
            pixels.extend_from_slice(&row[x * 3..(x + w) * 3]);
        }
        Self(RgbImage::from_raw(w as u32, h as u32, pixels).unwrap_or_else(|| self.0.clone()))
    }

    /// The picture at another size (Lanczos in integers, hence the same bytes on every CPU).
    pub fn resized(&self, size: Size) -> Self {
        if size == self.size() {
            return self.clone();
        }
        self.part(&PixelBox::whole(self.size()), size)
    }

    /// The picture at another size, each pixel the mean of those that it stands for where it is smaller.
    pub(crate) fn averaged(&self, size: Size) -> Cow<'_, Self> {
        let own = self.size();
        if size == own {
            return Cow::Borrowed(self);
        }
        let shrinks = size.width <= own.width && size.height <= own.height;
        let filter = if shrinks {
            fast_image_resize::FilterType::Box
        } else {
            fast_image_resize::FilterType::Bilinear
        };
        let resized = fast_resized(
            &self.0,
            &PixelBox::whole(own),
            size.width.max(1),
            size.height.max(1),
            filter,
        );
        Cow::Owned(resized.map_or_else(|| self.resized(size), Self))
    }

    /// The part under `area`, in whole pixels, at the size `size`.
    pub(crate) fn part(&self, area: &PixelBox, size: Size) -> Self {
        let area = area.whole_pixels(self.size());
        if area.width() == f64::from(size.width) && area.height() == f64::from(size.height) {
            return self.cropped(&area);
        }
        let (width, height) = (size.width.max(1), size.height.max(1));
        fast_resized(&self.0, &area, width, height, SHARP).map_or_else(
            || {
                let part = self.cropped(&area).0;
                Self(image::imageops::resize(&part, width, height, FilterType::Lanczos3))
            },
            Self,
        )
    }

    /// What lies under `area` at the size `size`. The area may begin between two pixels and reach beyond
    /// the picture: what is not there is grey.
    pub(crate) fn under(&self, area: &PixelBox, size: Size) -> Self {
        let whole = PixelBox::whole(self.size());
        let inside = area.intersection(&whole);
        if inside == *area && inside == inside.whole_pixels(self.size()) {
            return self.part(area, size);
        }
        let canvas = PixelBox::whole(size);
        let (from, to) = match inside.is_empty() {
            true => (PixelBox::new(0.0, 0.0, 0.0, 0.0), canvas),
            false => (inside, inside.mapped(area, &canvas)),
        };
        let [left, top, right, bottom] = to.edges().map(|edge| edge.round().max(0.0) as u32);
        let (width, height) = (right.saturating_sub(left), bottom.saturating_sub(top));
        let seen = (width > 0 && height > 0 && !from.is_empty())
            .then(|| fast_resized(&self.0, &from, width, height, SHARP))
            .flatten();
        let mut shown = RgbImage::from_pixel(size.width.max(1), size.height.max(1), BEYOND);
        if let Some(seen) = seen {
            image::imageops::replace(&mut shown, &seen, i64::from(left), i64::from(top));
        }
        Self(shown)
    }

    /// The picture as a PNG file.
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let encoder = PngEncoder::new_with_quality(
            &mut bytes,
            CompressionType::Fast,
            image::codecs::png::FilterType::Adaptive,
        );
        let (width, height) = self.0.dimensions();
        let written = encoder.write_image(self.0.as_raw(), width, height, ExtendedColorType::Rgb8);
        debug_assert!(written.is_ok(), "writing to memory cannot fail");
        bytes
    }

    /// The picture as a JPEG file of this quality, 1 to 100; `None` beyond JPEG's 65,535 pixels a
    /// side.
    pub fn to_jpeg(&self, quality: u8) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
        let (width, height) = self.0.dimensions();
        encoder.write_image(self.0.as_raw(), width, height, ExtendedColorType::Rgb8).ok()?;
        Some(bytes)
    }
}

/// The size at which a crop of `size` is shown: enlarged until its long side reaches `floor`, but
/// never by more than `most`; reduced where it is longer than `ceiling`.
pub fn shown_size(size: Size, floor: u32, most: f64, ceiling: u32) -> Size {
    let long = size.long_side();
    if long < floor {
        size.scaled((f64::from(floor) / f64::from(long.max(1))).min(most))
    } else if long > ceiling {
        size.with_long_side(ceiling)
    } else {
        size
    }
}

/// The usual file extension for what `bytes` hold, if it is a format that is read.
pub fn extension_of(bytes: &[u8]) -> Option<&'static str> {
    format_of(bytes).ok().and_then(|format| format.extensions_str().first().copied())
}

/// `None` only for sizes that the library refuses.
fn fast_resized(
    pixels: &RgbImage,
    area: &PixelBox,
    width: u32,
    height: u32,
    filter: fast_image_resize::FilterType,
) -> Option<RgbImage> {
    let (from, mut resized) = (pixels.dimensions(), RgbImage::new(width, height));
    // Typed, because only the kernels of one kind of pixel are compiled then.
    let source = TypedImageRef::<U8x3>::from_buffer(from.0, from.1, pixels.as_raw()).ok()?;
    let mut target = TypedImage::<U8x3>::from_buffer(width, height, &mut resized).ok()?;
    let filter = ResizeAlg::Convolution(filter);
    let options =
        ResizeOptions::new().resize_alg(filter).crop(area.x1, area.y1, area.width(), area.height());
    Resizer::new().resize_typed(&source, &mut target, &options).ok()?;
    Some(resized)
}

/// The size of a picture file, upright, from its header alone: no pixel is decoded.
pub fn size_of_file(path: &Path) -> Result<Size, PictureError> {
    let measured = || {
        check_file(path)?;
        let file = fs::File::open(path).map_err(PictureProblem::Unreadable)?;
        let mut file = BufReader::new(file);
        let mut start = Vec::new();
        let read_on = |file: &mut BufReader<fs::File>, start: &mut Vec<u8>, most| {
            file.take(most).read_to_end(start).map_err(PictureProblem::Unreadable)
        };
        read_on(&mut file, &mut start, MAGIC_BYTES)?;
        let format = format_of(&start)?;
        if format == ImageFormat::Jpeg {
            // The decoder takes in all that it can get, and the header stands at the beginning.
            read_on(&mut file, &mut start, JPEG_HEADER_BYTES)?;
            if let Ok(size) = upright_size(Cursor::new(start.as_slice()), format) {
                return Ok(size);
            }
        }
        file.rewind().map_err(PictureProblem::Unreadable)?;
        upright_size(file, format)
    };
    measured().map_err(|problem| PictureError { name: path.display().to_string(), problem })
}

/// Enough to tell the format.
const MAGIC_BYTES: u64 = 64;
/// As much of a JPEG file as holds its header, unless a large thumbnail or profile comes first.
const JPEG_HEADER_BYTES: u64 = 1 << 16;

fn upright_size(file: impl BufRead + Seek, format: ImageFormat) -> Result<Size, PictureProblem> {
    let mut decoder = ImageReader::with_format(file, format).into_decoder().map_err(problem_of)?;
    let (width, height) = decoder.dimensions();
    let size = match decoder.orientation() {
        Ok(
            Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH,
        ) => Size::new(height, width),
        _ => Size::new(width, height),
    };
    check_size(size)?;
    Ok(size)
}

/// Before a single pixel is decoded.
fn check_size(size: Size) -> Result<(), PictureProblem> {
    if size.area() == 0 {
        Err(PictureProblem::NoPixels)
    } else if size.area() > MAX_PIXELS || size.long_side() > MAX_SIDE {
        Err(PictureProblem::TooLarge { size })
    } else {
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, PictureProblem> {
    let length = check_file(path)?;
    let mut bytes = Vec::new();
    // No more than it had: a file of the system may say that it has none and never end.
    fs::File::open(path)
        .and_then(|file| file.take(length).read_to_end(&mut bytes))
        .map_err(PictureProblem::Unreadable)?;
    Ok(bytes)
}

/// The length of an ordinary file.
fn check_file(path: &Path) -> Result<u64, PictureProblem> {
    let meta = fs::metadata(path).map_err(PictureProblem::Unreadable)?;
    if meta.is_dir() {
        return Err(PictureProblem::Folder);
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(PictureProblem::FileTooLarge { bytes: meta.len() });
    }
    if !meta.is_file() {
        // A pipe or a device may never end.
        return Err(PictureProblem::NotAFile);
    }
    Ok(meta.len())
}

fn format_of(bytes: &[u8]) -> Result<ImageFormat, PictureProblem> {
    if bytes.is_empty() {
        return Err(PictureProblem::Empty);
    }
    match image::guess_format(bytes) {
        Ok(
            format @ (ImageFormat::Png
            | ImageFormat::Jpeg
            | ImageFormat::WebP
            | ImageFormat::Bmp
            | ImageFormat::Tiff
            | ImageFormat::Gif),
        ) => Ok(format),
        Ok(other) => Err(PictureProblem::UnknownFormat { seen: format!("{other:?}") }),
        Err(_) => Err(PictureProblem::UnknownFormat { seen: "no known picture format".into() }),
    }
}

/// True where the entropy-coded data ends in an end-of-image marker. The decoder fills what is
/// missing with grey, which would then be judged as an edit.
fn jpeg_is_complete(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[first, marker]) = bytes.get(at..at + 2) {
        if first != 0xff {
            // Entropy-coded data: go on to the next marker.
            at += 1;
            continue;
        }
        match marker {
            0xd9 => return true,
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4) else { return false };
                at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
            }
        }
    }
    false
}

/// False where a lossy frame is larger than the whole: the decoder would make room for the frame
/// before it compares them.
fn webp_is_consistent(bytes: &[u8], size: Size) -> bool {
    let mut at = 12;
    while let Some(&[a, b, c, d, l0, l1, l2, l3]) = bytes.get(at..at + 8) {
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        // Behind the frame's tag and start code, fourteen bits each.
        if let (b"VP8 ", Some(&[w0, w1, h0, h1])) = (&[a, b, c, d], bytes.get(at + 14..at + 18)) {
            let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            if side(w0, w1) > size.width || side(h0, h1) > size.height {
                return false;
            }
        }
        // In a frame of an animation, its own chunks follow.
        let skipped = if &[a, b, c, d] == b"ANMF" { 16 } else { length.saturating_add(length % 2) };
        at = at.saturating_add(8).saturating_add(skipped);
    }
    true
}

/// The pixels of a file as it has them, how they are to be turned, and their share of what may be
/// decoded at a time.
fn decoded(
    bytes: &[u8],
) -> Result<(DynamicImage, Option<Orientation>, memory::Share<'static>), PictureProblem> {
    let format = format_of(bytes)?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let most = |bytes: u64| {
        let mut limits = Limits::default();
        limits.max_alloc = Some(bytes);
        limits
    };
    reader.limits(most(MAX_DECODED_BYTES + WORKSPACE));
    let mut decoder = reader.into_decoder().map_err(problem_of)?;

    let (width, height) = decoder.dimensions();
    let size = Size::new(width, height);
    check_size(size)?;
    let decoded_bytes = decoder.total_bytes();
    if decoded_bytes > MAX_DECODED_BYTES {
        return Err(PictureProblem::TooMuchMemory);
    }
    if format == ImageFormat::Jpeg && !jpeg_is_complete(bytes) {
        return Err(PictureProblem::Truncated);
    }
    if format == ImageFormat::WebP && !webp_is_consistent(bytes, size) {
        return Err(PictureProblem::Damaged("its frame is larger than itself".to_owned()));
    }
    // Decoders keep as much again: coefficients, frames, planes.
    let taken = 2 * decoded_bytes + WORKSPACE;
    let share = memory::DECODING.take(taken + 3 * size.area());
    decoder.set_limits(most(taken)).map_err(problem_of)?;
    // A broken orientation tag is no reason to refuse the pixels.
    let orientation = decoder.orientation().ok();
    let decoded = DynamicImage::from_decoder(decoder).map_err(problem_of)?;
    Ok((decoded, orientation, share))
}

/// Eight bits a channel, transparent pixels laid over white as a browser would show them.
fn over_white(decoded: DynamicImage) -> RgbImage {
    if !decoded.color().has_alpha() {
        return decoded.into_rgb8();
    }
    /// Rows at a time, so that no second whole picture is needed.
    const ROWS: u32 = 64;
    let (width, height) = (decoded.width(), decoded.height());
    let mut rgb = RgbImage::new(width, height);
    let mut to = rgb.pixels_mut();
    for top in (0..height).step_by(ROWS as usize) {
        let rows = decoded.crop_imm(0, top, width, ROWS.min(height - top)).into_rgba8();
        for (to, from) in to.by_ref().zip(rows.pixels()) {
            to.0 = laid_over(from.0, [255; 3]);
        }
    }
    rgb
}

/// A pixel as it shows over another one.
fn laid_over([r, g, b, alpha]: [u8; 4], below: [u8; 3]) -> [u8; 3] {
    let alpha = u32::from(alpha);
    let mix = |above: u8, below: u8| {
        ((u32::from(above) * alpha + u32::from(below) * (255 - alpha) + 127) / 255) as u8
    };
    [mix(r, below[0]), mix(g, below[1]), mix(b, below[2])]
}

fn problem_of(error: ImageError) -> PictureProblem {
    match error {
        ImageError::Limits(_) => PictureProblem::TooMuchMemory,
        ImageError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            PictureProblem::Truncated
        }
        ImageError::Unsupported(e) => PictureProblem::Unsupported(e.to_string()),
        other => {
            let text = other.to_string();
            let cut = ["unexpected end", "eof", "not enough", "failed to fill"];
            let lower = text.to_lowercase();
            if cut.iter().any(|phrase| lower.contains(phrase)) {
                PictureProblem::Truncated
            } else {
                PictureProblem::Damaged(text)
            }
        }
    }
}

/// A picture that cannot be used: which one, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the picture {name}: {problem}")]
pub struct PictureError {
    /// The file, or what the caller named the bytes.
    pub name: String,
    /// What is wrong with it.
    pub problem: PictureProblem,
}

/// Why a picture cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PictureProblem {
    /// The file system said no.
    #[error("{0}; check the path")]
    Unreadable(std::io::Error),
    /// A folder was named.
    #[error("it is a folder; name a file in it")]
    Folder,
    /// A pipe, a socket or a device was named.
    #[error("it is not an ordinary file; copy it to one")]
    NotAFile,
    /// Nothing in it.
    #[error("the file is empty; fetch or export it again")]
    Empty,
    /// Larger than we read.
    #[error("the file has {bytes} bytes, more than the {MAX_FILE_BYTES} that are read")]
    FileTooLarge {
        /// Its length.
        bytes: u64,
    },
    /// Not one of the formats.
    #[error("{seen}; use PNG, JPEG, WebP, BMP, TIFF or GIF")]
    UnknownFormat {
        /// What it looks like.
        seen: String,
    },
    /// A size of zero.
    #[error("it has no pixels; export it again")]
    NoPixels,
    /// More pixels than we decode.
    #[error(
        "{size} is more than {MAX_PIXELS} pixels, or than {MAX_SIDE} along a side; scale it down \
         first"
    )]
    TooLarge {
        /// What the header says.
        size: Size,
    },
    /// The decoder would need more memory than we give it.
    #[error(
        "decoding it takes more than {} MiB; scale it down first, or save it with eight bits a channel",
        MAX_DECODED_BYTES >> 20
    )]
    TooMuchMemory,
    /// Cut off.
    #[error("the file is truncated; fetch or export it again")]
    Truncated,
    /// A variant of the format that is not supported.
    #[error("{0}; convert it to PNG")]
    Unsupported(String),
    /// Everything else a decoder complains about.
    #[error("the file is damaged ({0}); fetch or export it again")]
    Damaged(String),
}

//! Every format that is promised reads right; everything broken is an error that names the file.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use deeplook_tools::Picture;
use deeplook_tools::picture::size_of_file;
use proptest::prelude::*;

/// The test picture: 48×32, left half red, right half blue, a green corner at the top left.
const GREEN: [u8; 3] = [30, 200, 30];
const RED: [u8; 3] = [200, 30, 30];
const BLUE: [u8; 3] = [30, 30, 200];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures").join(name)
}

#[track_caller]
fn assert_near(picture: &Picture, at: (u32, u32), expected: [u8; 3], tolerance: u8) {
    let seen = picture.rgb().get_pixel(at.0, at.1).0;
    let near = seen.iter().zip(expected).all(|(a, b)| a.abs_diff(b) <= tolerance);
    assert!(near, "at {at:?}: {seen:?}, expected {expected:?} ± {tolerance}");
}

#[test]
fn every_promised_format_is_read_upright() {
    let mut names: Vec<String> =
        ["plain.png", "plain.bmp", "plain.tif", "plain.webp", "palette.png", "animated.gif"]
            .map(String::from)
            .into();
    names.extend(
        ["plain.jpg", "progressive.jpg", "lossy.webp", "orientation-6.png"].map(String::from),
    );
    names.extend((2..=8).map(|o| format!("orientation-{o}.jpg")));
    for name in names {
        let picture = Picture::load(&fixture(&name)).unwrap();
        assert_eq!((picture.size().width, picture.size().height), (48, 32), "{name}");
        assert_eq!(size_of_file(&fixture(&name)).unwrap(), picture.size(), "{name}");
        let tolerance = if name.ends_with("jpg") || name.starts_with("lossy") { 30 } else { 0 };
        assert_near(&picture, (3, 3), GREEN, tolerance);
        assert_near(&picture, (5, 28), RED, tolerance);
        assert_near(&picture, (40, 28), BLUE, tolerance);
    }
}

#[test]
fn grey_sixteen_bit_and_one_bit_are_read() {
    let grey = Picture::load(&fixture("grey.png")).unwrap();
    assert_eq!(grey, Picture::load(&fixture("grey16.png")).unwrap());
    assert_near(&grey, (40, 28), [49; 3], 1);
    assert_eq!(Picture::load(&fixture("one-bit.png")).unwrap().size().width, 48);
}

#[test]
fn cmyk_is_read_as_colours() {
    let picture = Picture::load(&fixture("cmyk.jpg")).unwrap();
    assert_near(&picture, (5, 28), RED, 30);
    assert_near(&picture, (40, 28), BLUE, 30);
}

#[test]
fn alpha_lies_over_white() {
    let picture = Picture::load(&fixture("alpha.png")).unwrap();
    assert_near(&picture, (20, 3), RED, 0);
    assert_near(&picture, (20, 12), [227, 142, 142], 1);
    assert_near(&picture, (20, 28), [255; 3], 0);
}

#[test]
fn the_content_decides_not_the_extension() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("really-a-png.jpg");
    fs::copy(fixture("plain.png"), &path).unwrap();
    assert_near(&Picture::load(&path).unwrap(), (3, 3), GREEN, 0);
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let png = fs::read(fixture("plain.png")).unwrap();
    let jpeg = fs::read(fixture("plain.jpg")).unwrap();
    for (path, reason) in [
        (folder.path().join("absent.png"), "No such file"),
        (folder.path().to_owned(), "a folder"),
        (write("empty.png", b""), "empty"),
        (write("text.png", b"hello, world"), "no known picture format"),
        (write("cut.png", &png[..png.len() * 2 / 3]), "truncated"),
        (write("cut.jpg", &jpeg[..jpeg.len() * 2 / 3]), "truncated"),
        (fixture("bomb.png"), "60000×60000"),
    ] {
        let error = Picture::load(&path).unwrap_err().to_string();
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(error.contains(&*name) && error.contains(reason), "{error}");
    }
}

/// The beginning of a PNG file of this size.
fn png_header(width: u32, height: u32, bits: u8, colour: u8) -> Vec<u8> {
    let crc = |bytes: &[u8]| {
        !bytes.iter().fold(!0u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 }
            })
        })
    };
    let mut chunk = b"IHDR".to_vec();
    chunk.extend(width.to_be_bytes());
    chunk.extend(height.to_be_bytes());
    chunk.extend([bits, colour, 0, 0, 0]);
    let crc = crc(&chunk);
    // And the beginning of the pixels.
    let pixels = b"\x00\x01\x00\x00IDAT".as_slice();
    [b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d".as_slice(), &chunk, &crc.to_be_bytes(), pixels].concat()
}

#[test]
fn a_size_that_would_take_all_memory_is_refused_by_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.png");
    for (width, height, refused) in [
        (1 << 27, 1, true),
        (1, 1 << 27, true),
        (65_536, 1, true),
        (20_000, 20_000, true),
        (65_535, 1, false),
        (12_000, 8_334, false),
        (50_000, 2_000, false),
    ] {
        fs::write(&path, png_header(width, height, 8, 2)).unwrap();
        let error = Picture::load(&path).unwrap_err().to_string();
        assert_eq!(error.contains("along a side"), refused, "{width}×{height}: {error}");
        assert_eq!(size_of_file(&path).is_err(), refused, "{width}×{height}");
    }
}

#[test]
fn a_frame_that_is_larger_than_its_picture_is_refused_before_it_is_decoded() {
    let chunk = |name: &[u8; 4], data: &[u8]| {
        [name.as_slice(), &(data.len() as u32).to_le_bytes(), data].concat()
    };
    let side = 16_383u16.to_le_bytes();
    let frame = [&[0x10, 0, 0, 0x9d, 1, 0x2a][..], &side, &side, &[0; 64]].concat();
    let frame = chunk(b"VP8 ", &frame);
    let whole = |flags: u8| chunk(b"VP8X", &[flags, 0, 0, 0, 9, 0, 0, 9, 0, 0]);
    let still = [whole(0), frame.clone()].concat();
    let animated = [
        whole(2),
        chunk(b"ANIM", &[0; 6]),
        chunk(
            b"ANMF",
            &[[0, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0, 0].as_slice(), &frame].concat(),
        ),
    ];
    for chunks in [still, animated.concat()] {
        let length = (chunks.len() as u32 + 4).to_le_bytes();
        let bytes = [b"RIFF".as_slice(), &length, b"WEBP", &chunks].concat();
        let error = Picture::decode("x.webp", &bytes).unwrap_err().to_string();
        assert!(error.contains("larger than itself"), "{error}");
    }
}

fn all_fixtures() -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(fixture("")).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.display().to_string(), fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn a_file_cut_anywhere_never_panics_and_keeps_no_invented_pixels() {
    for (name, bytes) in all_fixtures() {
        let Ok(whole) = Picture::decode(&name, &bytes) else { continue };
        for end in 0..bytes.len() {
            // A trailer may be missing without harm; missing pixels may not.
            if let Ok(picture) = Picture::decode(&name, &bytes[..end]) {
                assert_eq!(picture, whole, "{name} cut at {end} of {}", bytes.len());
            }
        }
    }
}

proptest! {
    #[test]
    fn damaged_files_never_panic(which in 0usize..1000, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let fixtures = all_fixtures();
        let (name, mut bytes) = fixtures[which % fixtures.len()].clone();
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = Picture::decode(&name, &bytes);
    }

    #[test]
    fn noise_behind_a_magic_number_never_panics(which in 0usize..6, noise in prop::collection::vec(any::<u8>(), 0..400)) {
        let magic: [&[u8]; 6] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x40\0\0\0WEBP", b"BM", b"II*\0", b"GIF89a"];
        let bytes = [magic[which], &noise].concat();
        let _ = Picture::decode("noise", &bytes);
    }

    #[test]
    fn png_round_trip(width in 1u32..40, height in 1u32..40, seed in any::<u8>()) {
        let pixels = image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x as u8 ^ seed, y as u8, (x * y) as u8])
        });
        let picture = Picture::from_rgb(pixels).unwrap();
        prop_assert_eq!(Picture::decode("memory", &picture.to_png()).unwrap(), picture);
    }
}

//! What an enhancement model is worth: `restore LIBRARY MODEL PHOTO…` shrinks the middle of each
//! photograph, enlarges it again with the model and by interpolation, and prints which comes closer
//! to the original, in decibels. With `--out DIR` each trial is kept as a picture: Lanczos, model,
//! original.

#![expect(clippy::expect_used, reason = "an example may stop where its input is missing")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use deeplook_tools::onnx::{Runtime, Session};
use deeplook_tools::{Enhance, Enhancer, Picture, PixelBox, Scene, Size, Toolbox};
use image::RgbImage;
use image::imageops::{self, FilterType};

/// The side of the part that is restored.
const SIDE: u32 = 256;

fn main() {
    let mut paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let out = paths.iter().position(|path| path == Path::new("--out")).and_then(|at| {
        let folder = paths.drain(at..(at + 2).min(paths.len())).nth(1);
        folder.filter(|folder| std::fs::create_dir_all(folder).is_ok())
    });
    let [library, model, photos @ ..] = &paths[..] else {
        eprintln!("usage: restore LIBRARY MODEL PHOTO… [--out DIR]");
        std::process::exit(2);
    };
    let runtime = Runtime::load(library).expect("ONNX Runtime");
    let session = Session::load(runtime, model).expect("a model");
    let enhancer = Arc::new(Enhancer::load(session, "restore", "").expect("an enhancement model"));
    let scale = enhancer.network().map_or(2, |network| network.scale);
    let tools = Toolbox::default().with(Enhance::new(enhancer));

    println!("{:24} {:>8} {:>8} {:>8} {:>8}", "photograph", "cubic", "lanczos", "model", "gain");
    let mut gains = Vec::new();
    for path in photos {
        let photo = Picture::load(path).expect("a picture that can be read");
        let original = middle(&photo).rgb().clone();
        let small = shrunk(&original, scale);
        let enlarged = |filter| imageops::resize(&small, SIDE, SIDE, filter);
        let lanczos = enlarged(FilterType::Lanczos3);
        let picture = Picture::from_rgb(small.clone()).expect("pixels");
        let args = serde_json::json!({ "target_image": "Original Image" });
        let seen = tools.call("enhance", &args, &Scene::new([picture])).expect("a small picture");
        let model = seen.pictures[0].picture.rgb();

        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let quality = [&enlarged(FilterType::CatmullRom), &lanczos, model];
        let [cubic, other, ours] = quality.map(|picture| decibels(picture, &original));
        println!("{name:24} {cubic:8.2} {other:8.2} {ours:8.2} {:+8.2}", ours - other);
        gains.push(ours - other);
        if let Some(folder) = &out {
            let mut strip = RgbImage::new(3 * SIDE, SIDE);
            for (at, part) in (0..).zip([&lanczos, model, &original]) {
                imageops::replace(&mut strip, part, at * i64::from(SIDE), 0);
            }
            strip.save(folder.join(format!("{name}.png"))).expect("a folder to write to");
        }
    }
    let better = gains.iter().filter(|gain| **gain > 0.0).count();
    let mean = gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    println!("better than Lanczos on {better} of {}, {mean:+.2} dB on average", gains.len());
    // So that a check fails where the model is not worth it.
    if mean <= 0.0 || 2 * better <= gains.len() {
        std::process::exit(1);
    }
}

/// The square in the middle; a smaller photograph is enlarged to it.
fn middle(photo: &Picture) -> Picture {
    let size = photo.size();
    let (side, middle) =
        (f64::from(SIDE), |side: u32| (f64::from(side.saturating_sub(SIDE)) / 2.0).floor());
    let (x, y) = (middle(size.width), middle(size.height));
    photo.cropped(&PixelBox::new(x, y, x + side, y + side)).resized(Size::new(SIDE, SIDE))
}

/// Each block of `scale`² pixels becomes its mean.
fn shrunk(picture: &RgbImage, scale: u32) -> RgbImage {
    RgbImage::from_fn(picture.width() / scale, picture.height() / scale, |x, y| {
        let block = (0..scale * scale).map(|i| (x * scale + i % scale, y * scale + i / scale));
        let sums = block.fold([0u32; 3], |sums, (x, y)| {
            std::array::from_fn(|c| sums[c] + u32::from(picture.get_pixel(x, y)[c]))
        });
        image::Rgb(sums.map(|sum| ((sum + scale * scale / 2) / (scale * scale)) as u8))
    })
}

/// The peak signal-to-noise ratio.
fn decibels(picture: &RgbImage, original: &RgbImage) -> f64 {
    let differences = picture.as_raw().iter().zip(original.as_raw());
    let squares: f64 = differences.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (255.0 * 255.0 * original.as_raw().len() as f64 / squares.max(1.0)).log10()
}

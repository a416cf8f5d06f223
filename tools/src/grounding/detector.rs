//! GroundingDINO: pixels and a caption in, boxes with scores and phrases out.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::DetectObject;
use super::pixels::planes;
use super::text::{Caption, MOST_TOKENS, Vocabulary, phrase_masks};
use crate::coords::{PixelBox, Size};
use crate::declaration::Declared as _;
use crate::files;
use crate::onnx::{Element, Input, OnnxError, Runtime, Session, Tensor};
use crate::picture::Picture;
use crate::tool::ToolError;

/// The files of a detector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorFiles {
    /// The ONNX model.
    pub model: PathBuf,
    /// `tokenizer.json` or `vocab.txt`.
    pub tokenizer: PathBuf,
    /// `preprocessor_config.json`, which says at what size the model looks.
    pub preprocessor: Option<PathBuf>,
}

impl DetectorFiles {
    /// The files of a model: its tokenizer and preprocessor lie beside it, or one folder up as on
    /// the model hub.
    pub fn beside(model: &Path) -> Result<Self, DetectorError> {
        let folder = model.parent().unwrap_or(Path::new("")).to_owned();
        let find = |name: &str| {
            let places = [folder.join(name), folder.join("..").join(name)];
            places.into_iter().find(|path| path.is_file())
        };
        Ok(Self {
            model: model.to_owned(),
            tokenizer: find("tokenizer.json")
                .or_else(|| find("vocab.txt"))
                .ok_or_else(|| DetectorError::NoTokenizer { model: model.to_owned() })?,
            preprocessor: find("preprocessor_config.json"),
        })
    }
}

/// A detector that is ready to look.
#[derive(Debug)]
pub struct Detector {
    session: Session,
    vocabulary: Vocabulary,
    style: Style,
    sizing: Sizing,
    /// The text length that the model was exported with, where it is fixed.
    text_length: Option<usize>,
    identity: Value,
}

/// The two public ways of exporting the model, told apart by the names of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As transformers.js has it.
    Transformers,
    /// As IDEA-Research has it: the caller makes the masks of the text.
    Original,
}

/// At what size the model looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizing {
    /// Exactly this, whatever the shape of the picture.
    Fixed(Size),
    /// The short side becomes `short`, unless the long one would exceed `long`.
    Keep { short: u32, long: u32 },
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// Where, in pixels of the picture.
    pub bbox: PixelBox,
    /// How well its best token fits, from 0 to 1.
    pub score: f32,
    /// The words that fit.
    pub phrase: String,
}

impl Detector {
    /// Reads the files; `identity` (name, hashes, …) goes into the record of all that it finds.
    pub fn load(
        runtime: Runtime,
        files: &DetectorFiles,
        identity: Value,
    ) -> Result<Self, DetectorError> {
        let session = Session::load(runtime, &files.model)?;
        let other = |reason: &str| DetectorError::OtherModel {
            model: files.model.clone(),
            reason: reason.to_owned(),
        };
        let inputs = session.inputs();
        let has = |name: &str| inputs.contains_key(name);
        let style = match (has("pixel_values"), has("img")) {
            (true, _) => Style::Transformers,
            (false, true) => Style::Original,
            _ => {
                let names: Vec<&str> = inputs.keys().map(String::as_str).collect();
                return Err(other(&format!("its inputs are {}", names.join(", "))));
            }
        };
        if let Some(unknown) = inputs.keys().find(|name| !style.inputs().contains(&name.as_str())) {
            return Err(other(&format!("it wants an input {unknown:?}")));
        }
        let image = &inputs[style.image()];
        if image.element != Some(Element::F32) || image.shape.len() != 4 {
            return Err(other("its picture is not a tensor of four extents in 32-bit floats"));
        }
        for name in style.outputs() {
            if !session.outputs().iter().any(|output| output == name) {
                return Err(other(&format!("it has no output {name:?}")));
            }
        }
        let sizing = match (image.shape[2], image.shape[3]) {
            (Some(height), Some(width)) => {
                let size = Size::new(side(width), side(height));
                if !is_sensible(size.width) || !is_sensible(size.height) {
                    return Err(other(&format!("it wants pictures of {size}, not of 16 to 4096")));
                }
                Sizing::Fixed(size)
            }
            _ => Sizing::read(files.preprocessor.as_deref())?,
        };
        let text = inputs.get("input_ids").ok_or_else(|| other("it has no input \"input_ids\""))?;
        let text_length = text.shape.get(1).copied().flatten();
        if text_length.is_some_and(|length| !(3..=MOST_TOKENS).contains(&length)) {
            return Err(other(&format!(
                "it wants texts of {} tokens, not of 3 to {MOST_TOKENS}",
                text_length.unwrap_or_default()
            )));
        }
        let vocabulary = Vocabulary::load(&files.tokenizer)?;
        Ok(Self { session, vocabulary, style, sizing, text_length, identity })
    }

    /// Which model this is.
    pub fn identity(&self) -> &Value {
        &self.identity
    }

    /// How many sessions of the model there are: as many as detections ever ran at once.
    pub fn sessions(&self) -> usize {
        self.session.sessions()
    }

    /// The side of a square that the model sees at its own resolution.
    pub(super) fn native_side(&self) -> u32 {
        match self.sizing {
            Sizing::Fixed(size) => size.width.min(size.height),
            Sizing::Keep { short, .. } => short,
        }
    }

    /// How much smaller than `size` a picture of that size is seen.
    pub(super) fn reduction(&self, size: Size) -> f64 {
        let seen = self.sizing.apply(size);
        let ratio = |a: u32, b: u32| f64::from(a) / f64::from(b.max(1));
        ratio(size.width, seen.width).max(ratio(size.height, seen.height))
    }

    /// The tokens for an object's name.
    pub fn caption(&self, name: &str) -> Result<Caption, ToolError> {
        let caption = self.vocabulary.caption(name)?;
        match self.text_length {
            Some(most) if caption.ids.len() > most => Err(ToolError::refused(format!(
                "detect_object_name is too long ({} tokens, at most {most}); name the object in a \
                 few words",
                caption.ids.len()
            ))),
            _ => Ok(caption),
        }
    }

    /// Every box in `area` of the picture that fits the caption, in the model's order.
    pub fn detect(
        &self,
        picture: &Picture,
        area: &PixelBox,
        caption: &Caption,
        thresholds: Thresholds,
    ) -> Result<Vec<Detection>, ToolError> {
        let area = area.whole_pixels(picture.size());
        let inputs = self.inputs(picture, &area, caption)?;
        let raw = self.run(&inputs).map_err(|error| ToolError::Broken {
            tool: DetectObject::NAME,
            reason: format!("{error}; does the tokenizer belong to the model?"),
        })?;
        raw.check(caption.ids.len()).map_err(|reason| ToolError::Broken {
            tool: DetectObject::NAME,
            reason: format!(
                "the model {} {reason}; fetch or export it again",
                self.session.path().display()
            ),
        })?;
        Ok(raw.read(&self.vocabulary, caption, &area, thresholds))
    }

    /// What the model takes for `area` of a picture and a caption, by the names of its inputs.
    pub fn inputs(
        &self,
        picture: &Picture,
        area: &PixelBox,
        caption: &Caption,
    ) -> Result<Vec<(&str, Input)>, ToolError> {
        let area = area.whole_pixels(picture.size());
        let size = self.sizing.apply(Size::new(area.width() as u32, area.height() as u32));
        if size.width.min(size.height) < 16 {
            return Err(ToolError::refused(format!(
                "a region of {:.0} × {:.0} pixels is too thin to search",
                area.width(),
                area.height()
            )));
        }
        let (width, height) = (size.width as usize, size.height as usize);
        let mut ids = caption.ids.clone();
        ids.resize(self.text_length.unwrap_or(ids.len()), 0);
        let length = ids.len();
        let used = |at: usize| at < caption.ids.len();
        let row = |values: Vec<i64>| Input::I64(Tensor::new([1, length], values));
        let (sees, places) = phrase_masks(&ids);
        let inputs = self.session.inputs().keys().map(|name| {
            let value = match (name.as_str(), self.style) {
                ("pixel_values" | "img", _) => {
                    Input::F32(Tensor::new([1, 3, height, width], planes(picture, &area, size)))
                }
                ("pixel_mask", _) => {
                    Input::I64(Tensor::new([1, height, width], vec![1; height * width]))
                }
                ("input_ids", _) => row(ids.iter().map(|&id| i64::from(id)).collect()),
                ("position_ids", _) => row(places.clone()),
                ("attention_mask", Style::Transformers) => {
                    row((0..length).map(|at| i64::from(used(at))).collect())
                }
                ("attention_mask", Style::Original) => {
                    Input::Bool(Tensor::new([1, length], (0..length).map(used).collect()))
                }
                ("text_token_mask", _) => {
                    Input::Bool(Tensor::new([1, length, length], sees.clone()))
                }
                // All one sentence. `load` lets no other name pass.
                _ => row(vec![0; length]),
            };
            (name.as_str(), value)
        });
        Ok(inputs.collect())
    }

    /// The model's own numbers.
    pub fn run(&self, inputs: &[(&str, Input)]) -> Result<Raw, OnnxError> {
        let [logits, boxes] = self.session.run(inputs, self.style.outputs())?;
        Ok(Raw { logits, boxes })
    }
}

impl Style {
    fn image(self) -> &'static str {
        match self {
            Self::Transformers => "pixel_values",
            Self::Original => "img",
        }
    }

    fn inputs(self) -> &'static [&'static str] {
        match self {
            Self::Transformers => {
                &["pixel_values", "pixel_mask", "input_ids", "token_type_ids", "attention_mask"]
            }
            Self::Original => &[
                "img",
                "input_ids",
                "position_ids",
                "token_type_ids",
                "attention_mask",
                "text_token_mask",
            ],
        }
    }

    fn outputs(self) -> [&'static str; 2] {
        match self {
            Self::Transformers => ["logits", "pred_boxes"],
            Self::Original => ["logits", "boxes"],
        }
    }
}

/// The part of `preprocessor_config.json` that changes what the model sees.
#[derive(Deserialize)]
struct PreprocessorConfig {
    size: PreprocessorSize,
}

#[derive(Deserialize)]
struct PreprocessorSize {
    shortest_edge: Option<u32>,
    longest_edge: Option<u32>,
    width: Option<u32>,
    height: Option<u32>,
}

/// Whether a model can look at a picture with such a side.
fn is_sensible(side: u32) -> bool {
    (16..=4096).contains(&side)
}

fn side(extent: usize) -> u32 {
    u32::try_from(extent).unwrap_or(u32::MAX)
}

impl Sizing {
    /// What the published models were trained with.
    const PUBLISHED: Self = Self::Keep { short: 800, long: 1333 };

    pub(super) fn read(config: Option<&Path>) -> Result<Self, DetectorError> {
        let Some(path) = config else { return Ok(Self::PUBLISHED) };
        let unusable = |error: &dyn std::fmt::Display| DetectorError::Preprocessor {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let bytes = files::read_small(path).map_err(|e| unusable(&e))?;
        let config: PreprocessorConfig =
            serde_json::from_slice(&bytes).map_err(|e| unusable(&e))?;
        let size = config.size;
        match (size.shortest_edge, size.longest_edge, size.width, size.height) {
            (Some(short), Some(long), ..)
                if is_sensible(short) && is_sensible(long) && short <= long =>
            {
                Ok(Self::Keep { short, long })
            }
            (None, None, Some(width), Some(height))
                if is_sensible(width) && is_sensible(height) =>
            {
                Ok(Self::Fixed(Size::new(width, height)))
            }
            _ => Err(unusable(&"its size is neither two edges nor width and height of 16 to 4096")),
        }
    }

    /// The size at which a picture of `size` is seen, rounded as the reference rounds.
    pub(super) fn apply(self, size: Size) -> Size {
        let (short, long) = match self {
            Self::Fixed(size) => return size,
            Self::Keep { short, long } => (f64::from(short), f64::from(long)),
        };
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let (least, most) = (width.min(height), width.max(height));
        let exact = if most / least * short > long { long * least / most } else { short };
        let rounded = exact.round_ties_even();
        if least == rounded {
            return size;
        }
        let other = (exact * most / least).floor();
        let (short, long) = (rounded.max(1.0) as u32, other.max(1.0) as u32);
        if width < height { Size::new(short, long) } else { Size::new(long, short) }
    }
}

/// Above which fit a box is kept, and a word is part of its phrase.
#[derive(Debug, Clone, Copy)]
pub struct Thresholds {
    /// For the box.
    pub boxes: f32,
    /// For a word.
    pub text: f32,
}

/// What the model said.
#[derive(Debug)]
pub struct Raw {
    /// For each query, a column for each token.
    pub logits: Tensor<f32>,
    /// For each query: centre, width and height as fractions of the picture.
    pub boxes: Tensor<f32>,
}

impl Raw {
    /// Whether this is an answer at all: from anything else nothing would be found, which says
    /// something about the picture.
    fn check(&self, tokens: usize) -> Result<(), String> {
        let (logits, boxes) = (&self.logits, &self.boxes);
        let columns = match (&logits.shape[..], &boxes.shape[..]) {
            (&[1, queries, columns], &[1, other, 4])
                if queries == other && queries > 0 && columns >= tokens =>
            {
                columns
            }
            (logits, boxes) => {
                return Err(format!(
                    "gave logits of {logits:?} and boxes of {boxes:?}, not of [1, N, {tokens} or more] and [1, N, 4]"
                ));
            }
        };
        // Columns behind the text are −∞.
        let told = logits.data.chunks_exact(columns).flat_map(|query| &query[..tokens]);
        if told.clone().any(|logit| logit.is_nan() || *logit == f32::INFINITY)
            || boxes.data.iter().any(|edge| !edge.is_finite())
        {
            return Err("gave numbers that are none (NaN or infinity)".to_owned());
        }
        Ok(())
    }

    fn read(
        &self,
        vocabulary: &Vocabulary,
        caption: &Caption,
        area: &PixelBox,
        thresholds: Thresholds,
    ) -> Vec<Detection> {
        let columns = self.logits.shape.last().copied().unwrap_or(0).max(1);
        let tokens = caption.ids.len().min(columns).min(MOST_TOKENS);
        let queries = self.logits.data.chunks_exact(columns).zip(self.boxes.data.chunks_exact(4));
        let mut found = Vec::new();
        for (logits, place) in queries {
            let fits: Vec<f32> = logits[..tokens].iter().map(|&logit| sigmoid(logit)).collect();
            let score = fits.iter().copied().fold(0.0, f32::max);
            if !(score > thresholds.boxes) {
                continue;
            }
            let [x, y, w, h] = std::array::from_fn(|i| f64::from(place[i]));
            let unit = PixelBox::new(0.0, 0.0, 1.0, 1.0);
            let bbox = PixelBox::new(x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0)
                .mapped(&unit, area)
                .intersection(area);
            if !bbox.is_empty() {
                let phrase = vocabulary.phrase(caption, &fits, thresholds.text);
                found.push(Detection { bbox, score, phrase });
            }
        }
        found
    }
}

/// Columns behind the text are −∞ and fit with 0.
fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-logit))
}

/// Why a detector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectorError {
    /// The runtime or the model file.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The model is something else.
    #[error(
        "{} is not a GroundingDINO model: {reason}; expected the inputs pixel_values, pixel_mask, \
         input_ids, token_type_ids, attention_mask, or img, input_ids, position_ids, \
         token_type_ids, attention_mask, text_token_mask", model.display()
    )]
    OtherModel {
        /// Which file.
        model: PathBuf,
        /// What is different.
        reason: String,
    },
    /// There is no tokenizer.
    #[error("there is no tokenizer.json or vocab.txt beside {}; put the model's there", model.display())]
    NoTokenizer {
        /// The model's file.
        model: PathBuf,
    },
    /// The tokenizer cannot be used.
    #[error("the tokenizer {} cannot be used: {reason}", path.display())]
    Tokenizer {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The preprocessor's file cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    Preprocessor {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_reference() {
        let size = |w, h| Sizing::PUBLISHED.apply(Size::new(w, h));
        assert_eq!(size(640, 480), Size::new(1066, 800));
        assert_eq!(size(480, 640), Size::new(800, 1066));
        assert_eq!(size(800, 800), Size::new(800, 800));
        assert_eq!(size(30, 30), Size::new(800, 800));
        // Longer than the rule allows: the long side decides.
        assert_eq!(size(3000, 1000).height, 444);
        assert!((1332..=1333).contains(&size(3000, 1000).width));
        assert_eq!(size(100_000, 1).height, 1);
    }

    #[test]
    fn what_is_no_answer_is_told_and_not_taken_for_nothing_found() {
        assert_eq!(sigmoid(f32::NEG_INFINITY), 0.0);
        assert_eq!(sigmoid(0.0), 0.5);
        let raw = |logits: [f32; 4], boxes: [f32; 4]| Raw {
            logits: Tensor::new([1, 1, 4], logits.into()),
            boxes: Tensor::new([1, 1, 4], boxes.into()),
        };
        let (none, half) = (f32::NAN, [0.5; 4]);
        raw([0.0, 1.0, 2.0, f32::NEG_INFINITY], half).check(3).unwrap();
        raw([0.0, 1.0, 2.0, none], half).check(3).unwrap();
        for (logits, boxes) in [
            ([0.0, none, 0.0, 0.0], half),
            ([0.0, f32::INFINITY, 0.0, 0.0], half),
            ([0.0; 4], [0.5, none, 0.5, 0.5]),
            ([0.0; 4], [0.5, 0.5, f32::INFINITY, 0.5]),
        ] {
            assert!(raw(logits, boxes).check(3).unwrap_err().contains("NaN"));
        }
        let shaped = |logits: &[usize], boxes: &[usize]| Raw {
            logits: Tensor::new(logits, vec![0.0; logits.iter().product()]),
            boxes: Tensor::new(boxes, vec![0.0; boxes.iter().product()]),
        };
        for (logits, boxes) in [
            (&[1, 2, 4][..], &[1, 3, 4][..]),
            (&[1, 2, 2], &[1, 2, 4]),
            (&[1, 2, 4], &[1, 2, 5]),
            (&[2, 4], &[2, 4]),
            (&[1, 0, 4], &[1, 0, 4]),
            (&[], &[1, 1, 4]),
        ] {
            assert!(shaped(logits, boxes).check(3).unwrap_err().contains("not of [1, N"));
        }
    }
}

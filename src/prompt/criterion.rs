//! What a criterion is, whatever format its pack has: what is asked and shown, what may be answered,
//! and how the answers become one.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::role::Role;
use super::score::{Scale, ScoreFunction};
use crate::answer::{AnswerForm, KeyForm, plain, same_value};
use crate::case::{Condition, Facts};
use crate::measure::Measure;
use crate::verdict::Combine;

/// One question about an edit: what is shown, what may be answered, and what that is worth.
#[derive(Debug, Clone, Serialize)]
pub struct Criterion {
    /// The short name, by which it is chosen.
    pub id: String,
    /// The name that the model reads.
    pub name: String,
    /// To which cases it applies; to all, where nothing is said.
    pub applies: Vec<Condition>,
    /// Whether the model is told what the editor was told.
    pub instruction: bool,
    /// What is measured, where no model is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
    /// What may be answered.
    pub answer: AnswerKind,
    /// How a score comes out of an answer.
    pub score: ScoreFunction,
    /// What scores mean.
    pub scale: Scale,
    /// How the parts of a judgement become one.
    pub combine: Combine,
    /// How repetitions of a judgement become one.
    pub repeats: Repeats,
    /// When it need not be asked.
    pub skip: Option<Skip>,
    /// What a judge gets to see in each mode that the criterion has.
    pub modes: BTreeMap<Mode, ModeView>,
    #[serde(skip)]
    pub(super) templates: BTreeMap<Role, String>,
}

impl Criterion {
    /// Whether it is asked about a case of which this is known.
    pub fn applies_to(&self, facts: &Facts) -> bool {
        Condition::all_met(&self.applies, facts)
    }

    /// The labels in the order in which the model reads them; none where the answer has keys.
    pub fn labels(&self) -> &[Label] {
        match &self.answer {
            AnswerKind::Label { labels } => labels,
            AnswerKind::Keys { .. } | AnswerKind::Number => &[],
        }
    }

    /// The keys of the answer; none where it is a label.
    pub fn keys(&self) -> &[Key] {
        match &self.answer {
            AnswerKind::Label { .. } | AnswerKind::Number => &[],
            AnswerKind::Keys { keys, .. } => keys,
        }
    }

    /// The form of the answer, for reading it.
    pub fn form(&self) -> AnswerForm {
        match &self.answer {
            AnswerKind::Label { labels } => {
                AnswerForm::new(labels.iter().map(|label| label.name.clone()))
            }
            AnswerKind::Keys { keys, .. } => AnswerForm::Keys(keys.iter().map(Key::form).collect()),
            // Nobody is asked, and nothing can be answered.
            AnswerKind::Number => AnswerForm::Keys(Vec::new()),
        }
    }

    /// The label of exactly this name.
    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels().iter().find(|label| label.name == name)
    }

    /// The label that people mean: its name in any case, or its rank.
    pub fn label_like(&self, text: &str) -> Option<&Label> {
        let text = text.trim();
        let same = |label: &&Label| {
            label.name.eq_ignore_ascii_case(text) || label.rank.to_string() == text
        };
        self.labels().iter().find(same)
    }

    /// What the label of this name is worth, whatever the case; `None` for a name that is no label,
    /// and where it depends on the expected answer.
    pub fn score(&self, label: &str) -> Option<f64> {
        self.worth(&crate::answer::Answered::Label(label.to_owned()), None).ok()
    }
}

/// What kind of answer a criterion has.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum AnswerKind {
    /// Exactly one of a few names.
    Label {
        /// In the order in which the model reads them.
        labels: Vec<Label>,
    },
    /// A value for each of several keys, as a JSON object.
    Keys {
        /// In the order in which the model reads them.
        keys: Vec<Key>,
        /// What a value of one key means for another.
        gates: Vec<Gate>,
    },
    /// Nothing: it is measured.
    Number,
}

/// An answer that can be given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    /// What the model writes.
    pub name: String,
    /// Higher is better. No model sees it.
    pub rank: u32,
}

/// A key of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Key {
    /// What the model writes.
    pub name: String,
    /// Where it stands in the object, from outside to inside; empty: wherever its name stands.
    pub at: Vec<String>,
    /// What may be answered.
    pub values: Vec<KeyValue>,
}

/// A value that a key can have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyValue {
    /// A text, a number, or true or false.
    pub value: Value,
    /// What it is worth, usually from 0 to 1; absent where it does not count. No model sees it.
    pub worth: Option<f64>,
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::String(text) => f.write_str(text),
            other => write!(f, "{other}"),
        }
    }
}

impl Key {
    fn form(&self) -> KeyForm {
        KeyForm {
            name: self.name.clone(),
            at: self.at.clone(),
            values: self.values.iter().map(|known| known.value.clone()).collect(),
        }
    }

    /// What a value is worth by itself; `None` for one that does not count or is not allowed.
    pub fn worth_of(&self, given: &Value) -> Option<f64> {
        self.values.iter().find(|known| same_value(&known.value, given))?.worth
    }

    /// Whether this is its name, however it is spelled.
    pub(super) fn is_called(&self, name: &str) -> bool {
        plain(&self.name) == plain(name)
    }
}

/// A key counts as something else unless another key has a certain value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// Which key.
    pub key: String,
    /// The other key.
    pub unless: String,
    /// Its values that change nothing.
    pub is: Vec<Value>,
    /// What the key is worth otherwise; absent: it does not count then.
    pub worth: Option<f64>,
}

/// A criterion that need not be asked, because another one has decided it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Skip {
    /// The other criterion.
    pub criterion: String,
    /// Where that one is worth at most this …
    pub at_most: f64,
    /// … this one is not asked, and worth this.
    pub worth: f64,
}

/// How repetitions of a judgement become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// The mean of their scores.
    #[default]
    Mean,
}

/// How much help a judge gets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The whole pictures, and tools over several turns.
    Tool,
    /// Pictures prepared from the annotated targets.
    Oracle,
    /// The whole pictures, one turn, no tools: the baseline.
    Plain,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Oracle => "oracle",
            Self::Plain => "plain",
        })
    }
}

/// What a judge is asked and gets to see in a mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModeView {
    /// What one part of the judgement is about.
    pub ask: Ask,
    /// The pictures, in this order.
    pub views: Vec<PictureView>,
    /// Whether there are tools; they see the same pictures.
    pub tools: bool,
    /// Whether the judge is told how the frame of the edited picture lies on that of the source.
    pub frame: bool,
    /// Whether the text of the task stands before its pictures or after them.
    pub text: TextPlace,
    /// Whether each picture stands behind its name and what was done to it.
    pub captions: bool,
}

/// Where the text of a task stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPlace {
    /// Before the pictures.
    #[default]
    First,
    /// After them.
    Last,
}

/// What one part of a judgement is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The edit as a whole: there is one part.
    Whole,
    /// Each place of a region on its own.
    Targets {
        /// The region's name.
        region: String,
        /// Where these facts are met, all places at once, with every place that changed.
        together: Vec<Condition>,
    },
    /// Each question of the case.
    Questions,
}

/// A picture that a judge gets, and what is done to it before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PictureView {
    /// Which picture of the case: `source`, `edited`, `reference`, …
    pub picture: String,
    /// The name by which the model knows it.
    pub name: String,
    /// Whether it is left out where a case has no such picture.
    pub optional: bool,
    /// What is done to it.
    pub treatment: Treatment,
    /// The long edge to which it is scaled in the end, up or down.
    pub long_edge: Option<u32>,
    /// The picture of the case to whose size it is scaled in the end.
    pub fit: Option<String>,
    /// What becomes of fractions of a pixel where it is scaled to a long edge.
    pub sizes: Sizes,
    /// The quality of the JPEG as which it is sent; absent: as every other picture.
    pub jpeg: Option<u8>,
    /// What the model is told about it instead of the usual words.
    pub caption: Option<String>,
}

impl PictureView {
    /// Whether a place of the source has to be found in the picture by what both show.
    pub fn is_placed(&self) -> bool {
        self.treatment.area().is_some_and(|area| area.place == Place::Registered)
    }
}

/// What becomes of fractions of a pixel where a picture is scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// The nearest whole number.
    #[default]
    Rounded,
    /// They are dropped.
    Truncated,
}

/// What is done to a picture before a judge sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum Treatment {
    /// Nothing.
    Whole,
    /// Cut to a place and its surroundings.
    Crop {
        /// Which place.
        area: Area,
        /// How much around it.
        context: Context,
        /// The picture is scaled to this long edge before it is cut; margins are in its pixels then.
        canvas: Option<u32>,
        /// A small crop is enlarged until its long edge is so long, …
        enlarge_to: Option<u32>,
        /// … or the shorter side of the place in it, if that takes more, …
        #[serde(skip_serializing_if = "Option::is_none")]
        enlarge_place: Option<u32>,
        /// … but never more than so many times.
        enlarge_most: Option<f64>,
    },
    /// Places painted white.
    Mask {
        /// Which places.
        area: Area,
        /// How much around each.
        margin: Margin,
    },
    /// Laid over another picture: what is transparent in it shows the other.
    Overlay {
        /// Which picture of the case.
        over: String,
    },
    /// Places framed in red.
    Mark {
        /// Which places.
        area: Area,
        /// How much around each.
        margin: Margin,
    },
}

impl Treatment {
    /// The place that it needs, if it needs one.
    pub fn area(&self) -> Option<&Area> {
        match self {
            Self::Whole | Self::Overlay { .. } => None,
            Self::Crop { area, .. } | Self::Mask { area, .. } | Self::Mark { area, .. } => {
                Some(area)
            }
        }
    }
}

/// Which places of a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Area {
    /// A region of the case; `None`: the place that the part is about.
    pub region: Option<String>,
    /// How a place of the source is found in other pictures.
    pub place: Place,
}

/// How a place of the source is found in another picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// By what both show: shifts and cut frames are followed.
    #[default]
    Registered,
    /// By proportion: the same fractions of width and height.
    Proportional,
}

/// How much a place is widened on each side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margin {
    /// At least so many pixels, …
    pub pixels: f64,
    /// … or this share of the place's own side, if that is more.
    pub share: f64,
}

/// How much of the surroundings a crop shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// A margin.
    Margin(Margin),
    /// The smaller a place, the more: `most` times its sides up to `small` pixels of its shorter side,
    /// `least` times from `large` on, evenly between.
    Adaptive(Adaptive),
}

/// The parameters of [`Context::Adaptive`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "explained at Context::Adaptive")]
pub struct Adaptive {
    pub small: f64,
    pub large: f64,
    pub most: f64,
    pub least: f64,
}

//! Criteria that ask no model: a named measure over the pictures and places of a case.
//!
//! A pack names one under `[criterion.measure]`, with its settings; the table `METHODS` knows how it is
//! done. To add one, write a file with a `Method` and name it there.

mod same_pixels;

use std::sync::Arc;

use deeplook_tools::{Picture, PixelBox};
use serde::Serialize;
use serde_json::{Value, json};

use crate::case::{EditCase, InputPicture};

/// Everything that can be measured, by name.
static METHODS: &[&dyn Method] = &[&same_pixels::SamePixels];

/// How something is measured. The same pictures and settings give the same number, everywhere.
pub(crate) trait Method: Sync {
    /// By which a pack names it.
    fn name(&self) -> &'static str;

    /// Changes when the same pictures and settings would give another number.
    fn version(&self) -> u32;

    /// What is wrong with the pictures or settings that a pack gives it, if anything.
    fn check(&self, measure: &Measure) -> Result<(), String>;

    /// Measures a case.
    fn measure(&self, measure: &Measure, case: &EditCase) -> Result<Measured, NotMeasured>;
}

/// What a criterion measures: as its pack says it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measure {
    /// The name of the measure.
    pub name: String,
    /// The pictures of a case that it takes, in this order.
    pub pictures: Vec<String>,
    /// The region of a case that it is about, if any.
    pub region: Option<String>,
    /// Whatever else it can be told.
    pub settings: Value,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The number, which is the score.
    pub value: f64,
    /// How it came about, for people.
    pub text: String,
    /// The same for machines.
    pub data: Value,
}

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMeasured {
    /// The case lacks something, or nothing is left to measure.
    #[error("{0}")]
    Missing(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
}

impl Measure {
    /// The names of all measures.
    pub fn names() -> impl Iterator<Item = &'static str> {
        METHODS.iter().map(|method| method.name())
    }

    fn method(&self) -> Option<&'static dyn Method> {
        METHODS.iter().copied().find(|method| method.name() == self.name)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.method() {
            Some(method) => method.check(self),
            None => {
                let known = Self::names().collect::<Vec<_>>().join(", ");
                Err(format!("there is no measure {:?}; there are: {known}", self.name))
            }
        }
    }

    /// Everything that can change the number, besides the case.
    pub(crate) fn described(&self) -> Value {
        let version = self.method().map(Method::version);
        json!({
            "pictures": self.pictures,
            "region": self.region,
            "settings": self.settings,
            "version": version,
        })
    }

    /// Measures a case. A number that is none is a failure, never a score.
    pub fn of(&self, case: &EditCase) -> Result<Measured, NotMeasured> {
        let unknown = || NotMeasured::Failed(format!("there is no measure {:?}", self.name));
        let measured = self.method().ok_or_else(unknown)?.measure(self, case)?;
        if !measured.value.is_finite() {
            return Err(NotMeasured::Failed(format!("{} gave {}", self.name, measured.value)));
        }
        Ok(measured)
    }

    /// A picture of the case by its place in the list.
    pub(crate) fn picture<'a>(
        &self,
        place: usize,
        case: &'a EditCase,
    ) -> Result<&'a Arc<Picture>, NotMeasured> {
        let name = self.pictures.get(place).map_or("", String::as_str);
        let missing = || NotMeasured::Missing(format!("the case has no picture {name:?}"));
        case.picture(name).map(InputPicture::picture).ok_or_else(missing)
    }

    /// The boxes of the region, in pixels of the source; none where none is named or marked.
    pub(crate) fn boxes<'a>(&self, case: &'a EditCase) -> &'a [PixelBox] {
        self.region.as_deref().map_or(&[], |region| case.region(region))
    }

    /// The settings as a type of the measure's own, in which every field has its usual value.
    pub(crate) fn settings<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_value(self.settings.clone()).map_err(|error| format!("settings: {error}"))
    }
}

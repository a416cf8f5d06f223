//! The tools that a trace was made with, as far as they can be had on this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use deeplook_tools::enhancer::Enhancer;
use deeplook_tools::grounding::{self, DetectObject, Detector};
use deeplook_tools::{ToolSettings, Toolbox};

use super::{detector, enhancer};
use crate::models::{Models, Progress};
use crate::trace::ToolsRecord;

/// Makes toolboxes like those on record; a network is loaded once.
pub(crate) struct RecordedEquipment {
    /// Files of the user's own.
    detector: Option<String>,
    enhancer: Option<String>,
    enhancers: Loaded<Enhancer>,
    detectors: Loaded<Detector>,
}

/// By name: the network, or why it cannot be had.
type Loaded<T> = Mutex<HashMap<String, Result<Arc<T>, String>>>;

impl RecordedEquipment {
    /// With a detector and an enhancer in files of the user's own, if there are any.
    pub(crate) fn new(detector: Option<String>, enhancer: Option<String>) -> Self {
        Self { detector, enhancer, enhancers: Mutex::default(), detectors: Mutex::default() }
    }

    /// The toolbox that comes nearest to the one on record; it says what is missing.
    pub(crate) fn toolbox(&self, record: &ToolsRecord) -> Toolbox {
        let settings = ToolSettings::recorded(&record.settings);
        let named = |pointer: &str| {
            record.settings.values().find_map(|tool| tool.pointer(pointer)?.as_str())
        };
        let enhancer = named("/enhancer/model").map(|name| {
            let chosen = self.enhancer.as_deref().unwrap_or(name);
            load(&self.enhancers, chosen, |models, progress| enhancer(models, chosen, progress))
        });
        let detector = named("/detector/name").map(|name| {
            let chosen = self.detector.as_deref().unwrap_or(name);
            load(&self.detectors, chosen, |models, progress| detector(models, chosen, progress))
        });
        let (enhancer, no_enhancer) = match enhancer {
            None => (Arc::default(), None),
            Some(Ok(enhancer)) => (enhancer, None),
            Some(Err(why)) => (Arc::default(), Some(why)),
        };
        let mut toolbox = Toolbox::enlarging_with(enhancer, &settings);
        if let Some(why) = no_enhancer {
            toolbox = toolbox.without("enhancement model", why);
        }
        match detector {
            None => toolbox,
            Some(Ok(detector)) => {
                toolbox.with(DetectObject::with_settings(detector, settings.detect_object))
            }
            Some(Err(why)) => toolbox.without(grounding::NAME, why),
        }
    }
}

fn load<T>(
    loaded: &Loaded<T>,
    name: &str,
    make: impl FnOnce(&Models, &Progress) -> anyhow::Result<T>,
) -> Result<Arc<T>, String> {
    let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    let made = loaded.entry(name.to_owned()).or_insert_with(|| {
        let made = Models::open().and_then(|models| make(&models, &Progress::shown()));
        made.map(Arc::new).map_err(|error| format!("{error:#}"))
    });
    made.clone()
}

//! The tools that a trace was made with, as far as they can be had on this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use deeplook_tools::enhancer::{self, Enhancer};
use deeplook_tools::grounding::{self, DetectObject, Detector};
use deeplook_tools::scene::cut;
use deeplook_tools::{ToolSettings, Toolbox};
use serde_json::Value;

use crate::trace::ToolsRecord;
use crate::weights::{Progress, Weights};

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

    /// The toolbox that comes nearest to the one on record; it says what is missing. A trace may be
    /// anybody's: its word for a network leads to those that we know and have, never to a file or to
    /// the network, and counts only where the hashes are the recorded ones.
    pub(crate) fn toolbox(&self, record: &ToolsRecord) -> Toolbox {
        let (settings, _) = ToolSettings::recorded(&record.settings);
        let of = |key: &str| record.settings.values().find_map(|tool| tool.get(key));
        let mut toolbox = match of("enhancer").map(|network| self.enhancer(network)) {
            None => Toolbox::enlarging_with(Arc::default(), &settings),
            Some(Ok(enhancer)) => Toolbox::enlarging_with(enhancer, &settings),
            Some(Err(why)) => {
                Toolbox::enlarging_with(Arc::default(), &settings).without(enhancer::NETWORK, why)
            }
        };
        match of("detector").map(|network| self.detector(network)) {
            None => {}
            Some(Ok(detector)) => {
                let detect = DetectObject::with_settings(detector, settings.detect_object);
                toolbox = toolbox.with(detect);
            }
            Some(Err(why)) => toolbox = toolbox.without(grounding::NAME, why),
        }
        toolbox
    }

    fn enhancer(&self, recorded: &Value) -> Result<Arc<Enhancer>, String> {
        let named = recorded["model"].as_str().unwrap_or_default();
        let found = load(&self.enhancers, self.enhancer.as_deref(), named, super::enhancer)?;
        let hash = found.network().map(|network| network.sha256.as_str());
        if hash != recorded["sha256"].as_str() {
            return Err(another("--enhancer"));
        }
        Ok(found)
    }

    fn detector(&self, recorded: &Value) -> Result<Arc<Detector>, String> {
        let named = recorded["name"].as_str().unwrap_or_default();
        let found = load(&self.detectors, self.detector.as_deref(), named, super::detector)?;
        if found.identity()["files"] != recorded["files"] {
            return Err(another("--detector"));
        }
        Ok(found)
    }
}

fn another(flag: &str) -> String {
    format!("the trace was made with a model of other hashes; say where it is with {flag} FILE")
}

/// The network that the user chose, or else the one that a trace names.
fn load<T>(
    loaded: &Loaded<T>,
    chosen: Option<&str>,
    named: &str,
    make: fn(&Weights, &str, &Progress) -> anyhow::Result<T>,
) -> Result<Arc<T>, String> {
    let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
    let made = loaded.entry(chosen.unwrap_or(named).to_owned()).or_insert_with(|| {
        let make = || {
            let weights = Weights::open()?.without_network();
            if chosen.is_none() && weights.table.model(named).is_none() {
                bail!("the trace names {:?}, which is no model that deeplook has", cut(named, 60));
            }
            make(&weights, chosen.unwrap_or(named), &Progress::shown())
        };
        make().map(Arc::new).map_err(|error| format!("{error:#}"))
    });
    made.clone()
}

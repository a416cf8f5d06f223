//! The tools that a trace was made with, as far as they can be had on this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::bail;
use deeplook_tools::declaration::{Loaded, NetworkKind};
use deeplook_tools::enhancer::{self, Enhancer};
use deeplook_tools::scene::cut;
use deeplook_tools::{Networks, TOOLS, ToolSettings, Toolbox};
use serde_json::Value;

use super::ToolOptions;
use crate::trace::ToolsRecord;
use crate::weights::{Progress, Weights};

/// Makes toolboxes like those on record; a network is loaded once.
pub(crate) struct RecordedEquipment {
    /// Files of the user's own.
    own: ToolOptions,
    enhancers: Kept<Arc<Enhancer>>,
    /// With what the record says of them.
    networks: Kept<(Loaded, Value)>,
}

/// By kind and name: the network, or why it cannot be had.
type Kept<T> = Mutex<HashMap<(&'static str, String), Result<T, String>>>;

impl RecordedEquipment {
    /// With a detector and an enhancer in files of the user's own, if there are any.
    pub(crate) fn new(detector: Option<String>, enhancer: Option<String>) -> Self {
        let own = ToolOptions { detector, enhancer, ..ToolOptions::default() };
        Self { own, enhancers: Mutex::default(), networks: Mutex::default() }
    }

    /// The toolbox that comes nearest to the one on record; it says what is missing. A trace may be
    /// anybody's: its word for a network leads to those that we know and have, never to a file or to
    /// the network, and counts only where the hashes are the recorded ones.
    pub(crate) fn toolbox(&self, record: &ToolsRecord) -> Toolbox {
        let (settings, _) = ToolSettings::recorded(&record.settings);
        let of = |key: &str| record.settings.values().find_map(|tool| tool.get(key));
        let (enhancer, missing) = match of(super::ENHANCER).map(|network| self.enhancer(network)) {
            None => (Arc::default(), None),
            Some(Ok(enhancer)) => (enhancer, None),
            Some(Err(why)) => (Arc::default(), Some(why)),
        };
        let mut networks = Networks::enlarging_with(enhancer);
        let mut tools = Vec::new();
        for tool in TOOLS {
            if let Some(kind) = &tool.network {
                let Some(recorded) = of(kind.name) else { continue };
                networks.add(kind, self.network(kind, recorded));
            }
            tools.push(tool);
        }
        let toolbox = Toolbox::equipped(tools, &settings, &networks);
        match missing {
            Some(why) => toolbox.without(enhancer::NETWORK, why),
            None => toolbox,
        }
    }

    fn enhancer(&self, recorded: &Value) -> Result<Arc<Enhancer>, String> {
        let (named, own) = (recorded["model"].as_str(), self.own.enhancer.as_deref());
        let found = load(&self.enhancers, super::ENHANCER, own, named, |weights, name| {
            super::enhancer(weights, name, &Progress::shown()).map(Arc::new)
        })?;
        let hash = found.network().map(|network| network.sha256.as_str());
        if hash != recorded["sha256"].as_str() {
            return Err(another(super::ENHANCER));
        }
        Ok(found)
    }

    fn network(&self, kind: &'static NetworkKind, recorded: &Value) -> Result<Loaded, String> {
        let (named, own) = (recorded["name"].as_str(), self.own.chosen(kind));
        let (found, identity) = load(&self.networks, kind.name, own, named, |weights, name| {
            super::network(weights, kind, name, &Progress::shown())
        })?;
        if identity["files"] != recorded["files"] {
            return Err(another(kind.name));
        }
        Ok(found)
    }
}

fn another(kind: &str) -> String {
    format!("the trace was made with a model of other hashes; say where it is with --{kind} FILE")
}

/// The network that the user chose, or else the one that a trace names.
fn load<T: Clone>(
    kept: &Kept<T>,
    kind: &'static str,
    chosen: Option<&str>,
    named: Option<&str>,
    make: impl Fn(&Weights, &str) -> anyhow::Result<T>,
) -> Result<T, String> {
    let named = named.unwrap_or_default();
    let wanted = chosen.unwrap_or(named);
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let made = kept.entry((kind, wanted.to_owned())).or_insert_with(|| {
        let make = || {
            let weights = Weights::open()?.without_network();
            if chosen.is_none() && weights.table.model(named).is_none() {
                bail!("the trace names {:?}, which is no model that deeplook has", cut(named, 60));
            }
            make(&weights, wanted)
        };
        make().map_err(|error| format!("{error:#}"))
    });
    made.clone()
}

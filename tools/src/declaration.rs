//! How a tool comes to be: its name, what may be set, the network that it cannot do without, and how it is
//! made of them. [`TOOLS`] has a line for each; nothing else knows a tool by its name.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::colour::MeasureColour;
use crate::difference::LocalizeDifferences;
use crate::enhancer::{Enhance, Enhancer};
use crate::grounding::DetectObject;
use crate::onnx::Runtime;
use crate::scene::cut;
use crate::sweep::Sweep;
use crate::text::ReadText;
use crate::tool::Tool;
use crate::toolbox::{AnyTool, ENHANCER, VERSION};
use crate::zoom::ZoomIn;

/// Every tool, in the order in which a model is told of them.
pub const TOOLS: &[Declaration] = &[
    Declaration::of::<LocalizeDifferences>(),
    Declaration::of::<ZoomIn>(),
    Declaration::of::<Enhance>(),
    Declaration::of::<MeasureColour>(),
    Declaration::of::<Sweep>(),
    Declaration::of::<DetectObject>(),
    Declaration::of::<ReadText>(),
];

/// What a tool says of itself before it is made.
pub trait Declared: Tool + Sized + 'static {
    /// The name by which it is called.
    const NAME: &'static str;

    /// What a person may set; the default is the usual.
    type Settings: Default + Serialize + DeserializeOwned;

    /// The network that it cannot do without.
    const NETWORK: Option<NetworkKind> = None;

    /// What of the settings cannot be meant, if anything.
    fn check(_: &Self::Settings) -> Result<(), String> {
        Ok(())
    }

    /// The part of [`Tool::settings`] that a person may set.
    fn settable(recorded: &Value) -> &Value {
        recorded
    }

    /// Makes it; the error says why it cannot be had.
    fn make(settings: Self::Settings, networks: &Networks) -> Result<Self, String>;
}

/// The settings of a tool that has none.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoSettings {}

/// A kind of network: which files make one up, and how they are loaded.
#[derive(Debug, Clone, Copy)]
pub struct NetworkKind {
    /// As the table of model files, the settings of a tool and their flag call it.
    pub name: &'static str,
    /// All files of the network at this path, a model's folder or a file of the user's own.
    pub files: fn(&Path) -> Result<Vec<PathBuf>, String>,
    /// Loads it; the last argument (name, hashes, …) goes into the record of all that it sees.
    pub load: fn(Runtime, &Path, Value) -> Result<Loaded, String>,
}

/// A network of some kind.
pub type Loaded = Arc<dyn Any + Send + Sync>;

/// What tools are made of, beside their settings.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    /// What enlarges crops.
    pub enhancer: Arc<Enhancer>,
    loaded: BTreeMap<&'static str, Result<Loaded, String>>,
}

impl Networks {
    /// No network but what enlarges crops.
    pub fn enlarging_with(enhancer: Arc<Enhancer>) -> Self {
        Self { enhancer, loaded: BTreeMap::new() }
    }

    /// Adds one, or why it cannot be had.
    pub fn add(&mut self, kind: &NetworkKind, network: Result<Loaded, String>) {
        self.loaded.insert(kind.name, network);
    }

    /// The network of this kind.
    pub fn get<T: Any + Send + Sync>(&self, kind: &NetworkKind) -> Result<Arc<T>, String> {
        let network = self.loaded.get(kind.name).cloned();
        let network = network.unwrap_or_else(|| Err(format!("there is no {}", kind.name)))?;
        network.downcast().map_err(|_| format!("it is no {} that was loaded", kind.name))
    }
}

/// Makes a tool from its settings, or from the usual ones.
type MakeTool = fn(Option<&Value>, &Networks) -> Result<Box<dyn AnyTool>, String>;

/// A tool as [`TOOLS`] has it.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// The network that it cannot do without.
    pub network: Option<NetworkKind>,
    usual: fn() -> Value,
    check: fn(&Value) -> Result<(), String>,
    settable: fn(&Value) -> &Value,
    make: MakeTool,
}

impl Declaration {
    /// The declaration of a tool.
    pub const fn of<T: Declared>() -> Self {
        Self {
            name: T::NAME,
            network: T::NETWORK,
            usual: || serde_json::to_value(T::Settings::default()).unwrap_or_default(),
            check: |settings| read::<T>(settings).map(|_| ()),
            settable: T::settable,
            make: |settings, networks| {
                let settings = settings.map_or_else(|| Ok(T::Settings::default()), read::<T>)?;
                Ok(Box::new(T::make(settings, networks)?))
            },
        }
    }

    /// The tool, or why it cannot be had.
    pub(crate) fn make(
        &self,
        settings: &ToolSettings,
        networks: &Networks,
    ) -> Result<Box<dyn AnyTool>, String> {
        (self.make)(settings.0.get(self.name), networks)
    }

    /// What the settings on record let a person set again.
    fn set_again(&self, recorded: &Value) -> Value {
        let mut settable = (self.settable)(recorded).clone();
        if let Some(fields) = settable.as_object_mut() {
            fields.remove(ENHANCER);
            fields.remove(VERSION);
        }
        settable
    }
}

fn read<T: Declared>(settings: &Value) -> Result<T::Settings, String> {
    let settings: T::Settings =
        serde_json::from_value(settings.clone()).map_err(|error| error.to_string())?;
    T::check(&settings).map(|()| settings)
}

/// How tools look, where somebody wants other settings than the usual ones: by the name of the tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolSettings(BTreeMap<String, Value>);

impl ToolSettings {
    /// The usual settings of every tool.
    pub fn usual() -> Self {
        Self(TOOLS.iter().map(|tool| (tool.name.to_owned(), (tool.usual)())).collect())
    }

    /// What cannot be meant, if anything: whoever takes settings from a file asks first.
    pub fn check(&self) -> Result<(), String> {
        for (name, settings) in &self.0 {
            let tool = TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| {
                let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
                format!("unknown tool {:?}, expected one of {}", cut(name, 60), known.join(", "))
            })?;
            (tool.check)(settings).map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(())
    }

    /// The settings that a record holds, and what is wrong with them, if anything: a tool whose
    /// settings cannot be read, or cannot be meant, has the usual ones.
    pub fn recorded(record: &BTreeMap<String, Value>) -> (Self, Option<String>) {
        let (mut settings, mut problem) = (Self::default(), None);
        for tool in TOOLS {
            let Some(recorded) = record.get(tool.name) else { continue };
            let recorded = tool.set_again(recorded);
            match (tool.check)(&recorded) {
                Ok(()) => {
                    settings.0.insert(tool.name.to_owned(), recorded);
                }
                Err(why) => {
                    problem.get_or_insert_with(|| format!("{}: {}", tool.name, cut(&why, 120)));
                }
            }
        }
        (settings, problem)
    }
}

//! The tools a judge may use, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::coords::BoxConvention;
use crate::declaration::{Declaration, Networks, TOOLS, ToolSettings};
use crate::enhancer::Enhancer;
use crate::scene::{Scene, cut, quoted};
use crate::tool::{Tool, ToolError, ToolOutput};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpec {
    /// The name to call.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON schema of its arguments.
    pub parameters: Value,
}

/// A set of tools, in the order in which they are shown to a model.
#[derive(Default)]
pub struct Toolbox {
    tools: Vec<Box<dyn AnyTool>>,
    unavailable: BTreeMap<String, String>,
}

impl Toolbox {
    /// Every tool that works without a model file.
    pub fn standard() -> Self {
        Self::enlarging_with(Arc::default(), &ToolSettings::default())
    }

    /// The same with other settings, and with crops enlarged by `enhancer`.
    pub fn enlarging_with(enhancer: Arc<Enhancer>, settings: &ToolSettings) -> Self {
        let networks = Networks::enlarging_with(enhancer);
        let alone = TOOLS.iter().filter(|tool| tool.network.is_none());
        Self::equipped(alone, settings, &networks)
    }

    /// The tools of these declarations; what cannot be made is noted with the reason.
    pub fn equipped<'a>(
        tools: impl IntoIterator<Item = &'a Declaration>,
        settings: &ToolSettings,
        networks: &Networks,
    ) -> Self {
        let mut toolbox = Self::default();
        for tool in tools {
            match tool.make(settings, networks) {
                Ok(made) => toolbox.tools.push(made),
                Err(why) => toolbox = toolbox.without(tool.name, why),
            }
        }
        toolbox
    }

    /// The toolbox with one more tool; it takes the place of one of the same name.
    pub fn with<T: Tool + 'static>(mut self, tool: T) -> Self {
        self.tools.retain(|present| present.name() != tool.name());
        self.unavailable.remove(tool.name());
        self.tools.push(Box::new(tool));
        self
    }

    /// The toolbox with a note why something that belongs in it is not there.
    pub fn without(mut self, name: &str, why: impl Into<String>) -> Self {
        self.tools.retain(|present| present.name() != name);
        self.unavailable.insert(name.to_owned(), why.into());
        self
    }

    /// The tools that a record names, in its order: those of this toolbox that are of the same version
    /// and work with the same networks, and for the others only what the record tells a model about
    /// them.
    pub fn as_recorded(mut self, specs: &[ToolSpec], settings: &BTreeMap<String, Value>) -> Self {
        let mut tools: Vec<Box<dyn AnyTool>> = Vec::new();
        for spec in specs {
            let recorded = settings.get(&spec.name).cloned().unwrap_or_default();
            let (was, today) =
                (version(&recorded), self.settings_of(&spec.name).as_ref().map(version));
            if today.is_some_and(|today| today != was) {
                let why = format!(
                    "it has changed: the trace has version {was}, and this is version {}",
                    today.unwrap_or_default()
                );
                self.unavailable.entry(spec.name.clone()).or_insert(why);
            }
            let same = |tool: &dyn AnyTool| {
                let settings = tool.settings();
                tool.name() == spec.name
                    && networks(&settings) == networks(&recorded)
                    && version(&settings) == was
            };
            tools.push(match self.tools.iter().position(|tool| same(tool.as_ref())) {
                Some(index) => self.tools.swap_remove(index),
                None => Box::new(OnRecord { spec: spec.clone(), settings: recorded }),
            });
        }
        Self { tools, ..self }
    }

    fn settings_of(&self, name: &str) -> Option<Value> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| tool.settings())
    }

    /// Whether the tool `name` is known from a record only, and cannot be used.
    pub fn is_only_on_record(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name() == name && tool.is_only_on_record())
    }

    /// Whether a network has a part in what the tool `name` sees.
    pub fn has_network(&self, name: &str) -> bool {
        let tool = self.tools.iter().find(|tool| tool.name() == name);
        tool.is_some_and(|tool| !networks(&tool.settings()).is_empty())
    }

    /// What belongs here and could not be had, with the reason.
    pub fn unavailable(&self) -> &BTreeMap<String, String> {
        &self.unavailable
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// What a model that writes boxes in `boxes` is told.
    pub fn specs(&self, boxes: BoxConvention) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec(boxes)).collect()
    }

    /// The settings of each tool, for the record.
    pub fn settings(&self) -> BTreeMap<String, Value> {
        self.tools.iter().map(|tool| (tool.name().to_owned(), tool.settings())).collect()
    }

    /// Uses the tool `name` with JSON arguments.
    ///
    /// An unknown name and arguments that do not fit are refusals that say what exists.
    pub fn call(&self, name: &str, args: &Value, scene: &Scene) -> Result<ToolOutput, ToolError> {
        match self.tools.iter().find(|tool| tool.name() == name) {
            Some(tool) => tool.call(args, scene),
            None => {
                let known: Vec<&str> = self.names().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let name = quoted(name);
                Err(ToolError::refused(format!("there is no tool {name}; the tools are: {known}")))
            }
        }
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A [`Tool`] with its argument type erased.
pub(crate) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn spec(&self, boxes: BoxConvention) -> ToolSpec;
    fn settings(&self) -> Value;
    fn call(&self, args: &Value, scene: &Scene) -> Result<ToolOutput, ToolError>;
    fn is_only_on_record(&self) -> bool {
        false
    }
}

/// A tool that cannot be had here, and what a record says of it.
struct OnRecord {
    spec: ToolSpec,
    settings: Value,
}

impl AnyTool for OnRecord {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn spec(&self, _: BoxConvention) -> ToolSpec {
        self.spec.clone()
    }

    fn settings(&self) -> Value {
        self.settings.clone()
    }

    fn call(&self, _: &Value, _: &Scene) -> Result<ToolOutput, ToolError> {
        Err(ToolError::refused(format!("{} cannot be used here", self.spec.name)))
    }

    fn is_only_on_record(&self) -> bool {
        true
    }
}

/// Where the settings of a tool tell its version. The first one is not told.
pub(crate) const VERSION: &str = "version";
/// Where they tell what enlarges crops.
pub(crate) const ENHANCER: &str = "enhancer";

fn version(settings: &Value) -> u64 {
    settings.get(VERSION).and_then(Value::as_u64).unwrap_or(1)
}

/// Which networks a tool of these settings works with; the version of the runtime is not part of it.
fn networks(settings: &Value) -> Vec<Value> {
    let kinds = TOOLS.iter().filter_map(|tool| tool.network).map(|kind| kind.name);
    let found = [ENHANCER].into_iter().chain(kinds).filter_map(|kind| settings.get(kind).cloned());
    let mut found: Vec<Value> = found.collect();
    for fields in found.iter_mut().filter_map(Value::as_object_mut) {
        fields.remove("runtime");
    }
    found
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn spec(&self, boxes: BoxConvention) -> ToolSpec {
        ToolSpec {
            name: Tool::name(self).to_owned(),
            description: self.description(boxes),
            parameters: schema_of::<T>(),
        }
    }

    fn settings(&self) -> Value {
        let mut settings = Tool::settings(self);
        if let Some(fields) = settings.as_object_mut().filter(|_| self.version() > 1) {
            fields.insert(VERSION.to_owned(), self.version().into());
        }
        settings
    }

    fn call(&self, args: &Value, scene: &Scene) -> Result<ToolOutput, ToolError> {
        // No arguments at all, as some models send where every one has a default.
        let args = if args.is_null() { Value::Object(Default::default()) } else { args.clone() };
        match serde_json::from_value(args) {
            Ok(args) => Tool::call(self, args, scene),
            // The error may quote what the model wrote, so it is cut.
            Err(error) => Err(ToolError::refused(format!(
                "wrong arguments for {}: {}; expected {}",
                Tool::name(self),
                cut(&error.to_string(), 120),
                in_words(&schema_of::<T>()),
            ))),
        }
    }
}

/// The schema of the arguments in the few words that every server understands: an optional argument is
/// one that is not required.
fn schema_of<T: Tool>() -> Value {
    let settings =
        schemars::generate::SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T::Args>().to_value();
    let mut schema = plain(&schema);
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    schema
}

/// What of a derived schema goes to a model.
fn plain(schema: &Value) -> Value {
    let mut kept = serde_json::Map::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        let value = match (key.as_str(), value) {
            // `null` is what an optional argument may be; nobody needs to be told.
            ("type", Value::Array(types)) => {
                types.iter().find(|kind| *kind != "null").cloned().unwrap_or_default()
            }
            ("type" | "required" | "enum", value) => value.clone(),
            ("items", value) => plain(value),
            ("properties", Value::Object(fields)) => Value::Object(
                fields.iter().map(|(name, field)| (name.clone(), plain(field))).collect(),
            ),
            // Doc comments are wrapped for the reader of the code; the model gets whole sentences.
            ("description", Value::String(text)) => Value::String(text.replace('\n', " ")),
            _ => continue,
        };
        kept.insert(key.clone(), value);
    }
    Value::Object(kept)
}

/// `{"bbox": …, "target_image": … (optional)}`, each with its description.
fn in_words(schema: &Value) -> String {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|r| r == name));
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, field)| {
        let optional = if required(name) { "" } else { " (optional)" };
        format!("{name:?}{optional}: {}", field["description"].as_str().unwrap_or("any value"))
    });
    format!("an object with {}", fields.collect::<Vec<_>>().join("; "))
}

//! The tools a judge may use, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::colour::MeasureColour;
use crate::coords::BoxConvention;
use crate::difference::LocalizeDifferences;
use crate::enhancer::{Enhance, Enhancer};
use crate::grounding::DetectionSettings;
use crate::scene::{Scene, cut, quoted};
use crate::sweep::Sweep;
use crate::tool::{Tool, ToolError, ToolOutput};
use crate::zoom::ZoomIn;

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

/// How the tools look, where somebody wants to try other settings than the usual ones.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSettings {
    /// Of `localize_differences`.
    pub localize_differences: LocalizeDifferences,
    /// Of `zoom_in`.
    pub zoom_in: ZoomIn,
    /// Of `detect_object`.
    pub detect_object: DetectionSettings,
    /// Of `sweep`.
    pub sweep: Sweep,
}

impl ToolSettings {
    /// What cannot be meant, if anything: whoever takes settings from a file asks first.
    pub fn check(&self) -> Result<(), String> {
        let of = |tool: &'static str| move |problem: String| format!("{tool}: {problem}");
        self.localize_differences.check().map_err(of("localize_differences"))?;
        self.zoom_in.check().map_err(of("zoom_in"))?;
        self.sweep.check().map_err(of("sweep"))?;
        self.detect_object.check().map_err(of("detect_object"))
    }

    /// The settings that a record holds, and what is wrong with them, if anything: a tool whose
    /// settings cannot be read, or cannot be meant, has the usual ones.
    pub fn recorded(settings: &BTreeMap<String, Value>) -> (Self, Option<String>) {
        let mut problem = None;
        let detection = settings.get("detect_object").map(|settings| &settings["detection"]);
        let recorded = Self {
            localize_differences: read(
                "localize_differences",
                settings.get("localize_differences"),
                LocalizeDifferences::check,
                &mut problem,
            ),
            zoom_in: read("zoom_in", settings.get("zoom_in"), ZoomIn::check, &mut problem),
            detect_object: read("detect_object", detection, DetectionSettings::check, &mut problem),
            sweep: read("sweep", settings.get("sweep"), Sweep::check, &mut problem),
        };
        (recorded, problem)
    }
}

/// The recorded settings of one tool.
fn read<T: DeserializeOwned + Default>(
    tool: &str,
    settings: Option<&Value>,
    check: fn(&T) -> Result<(), String>,
    problem: &mut Option<String>,
) -> T {
    let Some(mut settings) = settings.cloned() else { return T::default() };
    if let Some(fields) = settings.as_object_mut() {
        fields.remove("enhancer");
        fields.remove(VERSION);
    }
    let read = serde_json::from_value(settings).map_err(|error| error.to_string());
    read.and_then(|settings: T| check(&settings).map(|()| settings)).unwrap_or_else(|why| {
        problem.get_or_insert_with(|| format!("{tool}: {}", cut(&why, 120)));
        T::default()
    })
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
        let ToolSettings { localize_differences, zoom_in, sweep, .. } = settings.clone();
        Self::default()
            .with(localize_differences.with_enhancer(Arc::clone(&enhancer)))
            .with(zoom_in.with_enhancer(Arc::clone(&enhancer)))
            .with(Enhance::new(enhancer))
            .with(MeasureColour)
            .with(sweep)
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
        tool.is_some_and(|tool| networks(&tool.settings()).iter().any(Option::is_some))
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
trait AnyTool: Send + Sync {
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
const VERSION: &str = "version";

fn version(settings: &Value) -> u64 {
    settings.get(VERSION).and_then(Value::as_u64).unwrap_or(1)
}

/// Which networks a tool of these settings works with; the version of the runtime is not part of it.
fn networks(settings: &Value) -> [Option<Value>; 2] {
    let detector = settings.get("detector").map(|detector| {
        let mut detector = detector.clone();
        if let Some(fields) = detector.as_object_mut() {
            fields.remove("runtime");
        }
        detector
    });
    [settings.get("enhancer").cloned(), detector]
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

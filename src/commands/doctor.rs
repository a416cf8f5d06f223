//! `deeplook doctor`: one tiny question to a server, and what its answer tells of it.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use deeplook_tools::{Picture, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use super::hints;
use crate::cli::DoctorArgs;
use crate::message::{Dialect, Message, Part, Reply, Request, ToolChoice, Usage, Wire};
use crate::model::{ChatModel as _, ModelError};
use crate::prompt::Mode;
use crate::run::{self, Access, JudgeSpec};
use crate::terminal;
use crate::transcript::{cost_text, usage_text};

/// What is asked for.
const COLOUR: &str = "red";
const TOOL: &str = "tell_colour";

pub(super) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let (mut spec, access) = args.model.judge()?;
    if spec.is_offline() {
        bail!("the offline judge needs no server; name a model with --model");
    }
    spec.timeout = args.timeout;
    spec.prices.clone_from(&args.prices);
    let found = examine(&spec, &access)?;
    match args.json {
        true => super::print_json(&found)?,
        false => found.tell()?,
    }
    Ok(ExitCode::from(if found.ready { 0 } else { 1 }))
}

/// What is known after asking.
#[derive(Debug, Default, Serialize)]
struct Findings {
    model: String,
    base_url: String,
    profile: String,
    wire: Wire,
    /// Whether these options judge as they stand.
    ready: bool,
    /// Whether the model saw the picture.
    picture: Health,
    /// Whether it called the tool in the server's own form.
    tools: Health,
    /// The model that the server says it used.
    served: Option<String>,
    usage: Usage,
    /// US dollars; absent where it is not known.
    cost: Option<f64>,
    /// What to type, where something works.
    options: Option<String>,
    /// What was refused, in the order in which it was tried.
    problems: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    /// Nobody knows.
    #[default]
    Unknown,
    /// It does what it should.
    Works,
    /// It was taken, and came to nothing.
    Unused,
    /// The server does not take it.
    Refused,
}

/// Asks until something works: as it was typed, without the tool, and on the other wires.
fn examine(spec: &JudgeSpec, access: &Access) -> anyhow::Result<Findings> {
    let usual = spec.resolve(Mode::Plain, access, true).map_err(|e| hints::told(e.into()))?;
    let record = &usual.record;
    let dialect = record.dialect;
    let typed = usual.wire().context("nobody is asked")?;
    let mut found = Findings {
        model: record.id.clone(),
        base_url: record.base_url.clone().unwrap_or_default(),
        profile: record.profile["name"].as_str().unwrap_or_default().to_owned(),
        wire: typed,
        cost: record.price.as_ref().map(|_| 0.0),
        ..Findings::default()
    };
    let runtime = run::runtime()?;
    let others = [Wire::Chat, Wire::Responses, Wire::Messages].into_iter();
    let others = others.filter(|wire| *wire != typed).map(|wire| (wire, true));
    for (wire, with_tool) in [(typed, true), (typed, false)].into_iter().chain(others) {
        let spec = JudgeSpec { wire: Some(wire), ..spec.clone() };
        // A parameter that this wire does not have.
        let Ok(parts) = spec.resolve(Mode::Plain, access, true) else { continue };
        let request = question(parts.settings.preparation, with_tool)?;
        match runtime.block_on(parts.model.ask(&request, &|_| ())) {
            Err(error @ ModelError::Unreachable(_)) => return Err(error.into()),
            Err(error) => {
                found.problems.push(format!("wire {wire}{}: {error}", beside(with_tool)));
                if with_tool && wire == typed {
                    found.tools = Health::Refused;
                } else if wire == typed {
                    found.picture = Health::Refused;
                }
            }
            Ok(reply) => {
                found.note(&reply, with_tool);
                let price = parts.record.price.as_ref();
                found.cost =
                    found.cost.zip(price.and_then(|p| p.cost(reply.usage))).map(|(a, b)| a + b);
                found.wire = wire;
                let native = found.tools == Health::Works;
                let works = found.picture == Health::Works && (native || dialect == Dialect::Tags);
                found.ready = works && wire == typed;
                let fits = if native && dialect == Dialect::Native {
                    Dialect::Native
                } else {
                    Dialect::Tags
                };
                found.options = (found.picture == Health::Works).then(|| {
                    options(
                        &found.profile,
                        (wire != typed).then_some(wire),
                        (fits != dialect).then_some(fits),
                    )
                });
                break;
            }
        }
    }
    Ok(found)
}

fn beside(with_tool: bool) -> &'static str {
    if with_tool { ", with a tool" } else { ", without a tool" }
}

fn options(profile: &str, wire: Option<Wire>, dialect: Option<Dialect>) -> String {
    let mut options = format!("--profile {profile}");
    if let Some(wire) = wire {
        options.push_str(&format!(" --wire {wire}"));
    }
    match dialect {
        Some(Dialect::Native) => options.push_str(" --dialect native"),
        Some(Dialect::Tags) => options.push_str(" --dialect tags"),
        None => {}
    }
    options
}

impl Findings {
    fn note(&mut self, reply: &Reply, with_tool: bool) {
        self.usage = self.usage.plus(reply.usage);
        self.served.clone_from(&reply.served.model);
        let mentions = |text: &str| text.to_lowercase().contains(COLOUR);
        let call = reply.said.calls.iter().find(|call| call.name == TOOL);
        let seen = mentions(&reply.said.text)
            || call.is_some_and(|call| mentions(&call.arguments.to_string()));
        self.picture = if seen { Health::Works } else { Health::Unused };
        if with_tool {
            self.tools = if call.is_some() { Health::Works } else { Health::Unused };
        }
    }

    fn tell(&self) -> anyhow::Result<()> {
        let mut out = terminal::stdout();
        let Self { model, base_url, profile, wire, .. } = self;
        writeln!(out, "{model} at {base_url}: profile {profile}, wire {wire}")?;
        for problem in &self.problems {
            writeln!(out, "  {problem}")?;
        }
        let picture = match self.picture {
            Health::Works => "seen",
            Health::Unused => "taken, but its colour was not told: does the model see?",
            Health::Refused => "refused",
            Health::Unknown => "not known",
        };
        let tools = match self.tools {
            Health::Works => "called",
            Health::Unused => "taken, but not called; tags in the text may do (--dialect tags)",
            Health::Refused => "refused; tags in the text may do (--dialect tags)",
            Health::Unknown => "not known",
        };
        writeln!(out, "  the picture: {picture}\n  the tool: {tools}")?;
        if let Some(served) = &self.served {
            writeln!(out, "  served by {served}")?;
        }
        writeln!(out, "  {}, {}", usage_text(self.usage), cost_text(self.cost))?;
        match (&self.options, self.ready) {
            (_, true) => writeln!(out, "these options judge")?,
            (Some(options), false) => writeln!(out, "what fits: {options}")?,
            (None, false) => writeln!(out, "nothing that was tried judges")?,
        }
        Ok(())
    }
}

/// A square of one colour, and a tool to tell it with.
fn question(preparation: crate::sending::Preparation, with_tool: bool) -> anyhow::Result<Request> {
    let pixels = image::RgbImage::from_fn(64, 64, |x, y| {
        let inside = (16..48).contains(&x) && (16..48).contains(&y);
        image::Rgb(if inside { [220, 20, 20] } else { [255, 255, 255] })
    });
    let picture = Picture::from_rgb(pixels).context("there is no picture")?;
    let sent = Arc::new(preparation.prepare("Picture", "a square", &picture));
    let words = match with_tool {
        true => format!("Which colour has the square? Call the tool {TOOL} with it."),
        false => "Which colour has the square? Answer in one word.".to_owned(),
    };
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        description: "Tells the colour of the square.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"colour": {
                "type": "string", "enum": ["red", "green", "blue", "yellow"], "description": "The colour.",
            }},
            "required": ["colour"],
        }),
    };
    let task =
        Message::User { parts: vec![Part::Picture(sent), Part::Text(words)], data: Value::Null };
    let rules = Message::System("You look at a picture and tell what you see.".to_owned());
    Ok(Request {
        messages: vec![Arc::new(rules), Arc::new(task)],
        tools: if with_tool { vec![tool].into() } else { Vec::new().into() },
        tool_choice: ToolChoice::Auto,
        dialect: Dialect::Native,
    })
}

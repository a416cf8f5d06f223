use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use deeplook_tools::PixelBox;
use serde_json::{Value, json};

use super::words;
use crate::config::usual_server;
use crate::message::{Dialect, Wire};
use crate::model::parameters::refuse_secrets;
use crate::prompt::Mode;
use crate::run::{Access, JudgeSpec, ToolOptions};

#[derive(Debug, Args)]
#[command(override_usage = "deeplook judge [OPTIONS] <SOURCE> <EDITED> -i <TEXT>")]
#[command(after_help = "\
Examples:
  deeplook judge before.jpg after.png -i \"Change the woman's scarf from red to green\"
  deeplook judge before.jpg after.png -i \"Remove the cup\" --model gemini-3.1-pro-preview
  deeplook judge before.jpg after.png -i \"Remove the cup\" --model qwen3-vl --base-url http://localhost:8000/v1
  deeplook judge before.jpg after.png -i \"Remove the cup\" --mode oracle --box 210,80,260,140 --reference good.png

Without --model (or DEEPLOOK_MODEL) the offline judge `rules` decides: a baseline that needs no key.
The key for a server comes from the environment: GEMINI_API_KEY, OPENAI_API_KEY, ANTHROPIC_API_KEY, or what the
profile names; or from the file that the same name with _FILE behind it names, such as OPENAI_API_KEY_FILE.
`deeplook doctor` tries a server with one tiny question.")]
pub(crate) struct JudgeArgs {
    /// The picture before the edit.
    pub source: PathBuf,
    /// The picture after the edit.
    pub edited: PathBuf,
    #[command(flatten)]
    pub facts: CaseFacts,
    /// By which criterion to judge.
    #[arg(long, value_name = "ID,…|all", value_delimiter = ',', default_value = "all")]
    pub criterion: Vec<String>,
    /// What the judge gets to see: tools to search with, crops and masks from boxes, or one look.
    #[arg(long, value_parser = words::mode(), default_value = "tool")]
    pub mode: Mode,
    #[command(flatten)]
    pub options: JudgeOptions,
    /// Where to write the trace [default: a new folder in traces/runs/].
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// Print one JSON object on stdout, everything else on stderr.
    #[arg(long)]
    pub json: bool,
}

/// What is known about an edit besides its pictures.
#[derive(Debug, Args)]
pub(crate) struct CaseFacts {
    /// What the editor was told.
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub instruction: String,
    /// Where a target is, in pixels of the source; once for each target.
    #[arg(long = "box", value_name = "X1,Y1,X2,Y2", value_parser = parse_box, allow_hyphen_values = true)]
    pub boxes: Vec<PixelBox>,
    /// What a good edit looks like.
    #[arg(long, value_name = "IMAGE")]
    pub reference: Option<PathBuf>,
    /// A phrase for the target; kept in the trace.
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// The type of the instruction, e.g. "Change Count", whose targets are judged together.
    #[arg(long = "type", value_name = "T")]
    pub kind: Option<String>,
}

/// What everything that judges takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct JudgeOptions {
    #[command(flatten)]
    pub model: ModelOptions,
    /// A prompt pack of your own: a folder, or one in this binary.
    #[arg(long, value_name = "PACK")]
    pub prompts: Option<String>,
    /// A variant that the prompt pack has.
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub bounds: BoundOptions,
    #[command(flatten)]
    pub tools: ToolFlags,
}

/// Whom to ask.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelOptions {
    /// The model to ask; `rules` for the offline judge; `simulated` for answers from the truth of a drawn
    /// data set, with errors (--param error=0.1, --param seed=7).
    #[arg(long, value_name = "M", env = "DEEPLOOK_MODEL", default_value = "rules")]
    pub model: String,
    /// Where the server is, e.g. http://localhost:8000/v1 [default: OPENAI_BASE_URL, else the
    /// profile's].
    #[arg(long = "base-url", value_name = "U")]
    pub base_url: Option<String>,
    /// openai, gemini, anthropic, azure, vllm, ollama, lmstudio, openrouter, llamacpp, or a file of
    /// your own [default: guessed from the URL, or from the model where there is none].
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// The form of requests and replies [default: the profile's, for this model].
    #[arg(long, value_parser = words::wire())]
    pub wire: Option<Wire>,
    /// How the model calls tools [default: the profile's].
    #[arg(long, value_parser = words::dialect())]
    pub dialect: Option<Dialect>,
    #[command(flatten)]
    pub sampling: SamplingOptions,
    /// Something else for the server, e.g. top_p=0.9.
    #[arg(long = "param", value_name = "KEY=VALUE")]
    pub params: Vec<String>,
}

/// Settings of the model that change verdicts. What is not given is the server's to choose.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SamplingOptions {
    /// In how much detail the server looks at pictures [default: the profile's; high for OpenAI].
    #[arg(long, value_parser = ["low", "high", "auto", "original"])]
    pub detail: Option<String>,
    /// How long the model thinks, in the server's word: none, minimal, low, medium, high, …
    #[arg(long, value_name = "WORD")]
    pub reasoning_effort: Option<String>,
    /// How freely the model chooses its words; 0 for as little as it can.
    #[arg(long, value_name = "T", value_parser = parse_temperature)]
    pub temperature: Option<f64>,
    /// For servers that can repeat themselves.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The longest reply, thinking included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,
}

impl SamplingOptions {
    /// Adds what was typed to the parameters of a request.
    fn add_to(&self, params: &mut BTreeMap<String, Value>) -> anyhow::Result<()> {
        let typed = [
            ("reasoning_effort", self.reasoning_effort.as_ref().map(|word| json!(word))),
            ("temperature", self.temperature.map(|number| json!(number))),
            ("seed", self.seed.map(|number| json!(number))),
            ("max_tokens", self.max_tokens.map(|number| json!(number))),
        ];
        for (name, value) in typed {
            let Some(value) = value else { continue };
            if params.insert(name.to_owned(), value).is_some() {
                let flag = name.replace('_', "-");
                bail!("--{flag} and --param {name} say the same thing; give it once");
            }
        }
        Ok(())
    }
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err("expected a number from 0 to 2".to_owned()),
    }
}

/// How long and how dear a judgement may be.
#[derive(Debug, Clone, Args)]
pub(crate) struct BoundOptions {
    /// Judge every target on its own, also where the instruction is about their number.
    #[arg(long)]
    pub per_target: bool,
    /// Seconds to wait for a reply.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// The most turns; in the last one the judge must answer [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_turns: Option<u32>,
    /// The most tool calls over all turns [default: 24].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub max_tool_calls: Option<u32>,
    /// The most tokens that a question and all its turns may use; beyond them it has failed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub token_budget: Option<u64>,
    /// Prices of models in a file of your own, which replace the built-in ones.
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
}

/// Which tools there are, and which model files they use.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToolFlags {
    /// What finds objects: a name from `deeplook models list`, an ONNX file of your own, or `none`
    /// [default: grounding-dino-tiny if it was fetched].
    #[arg(long, value_name = "NAME|FILE")]
    pub detector: Option<String>,
    /// What enlarges crops: a name from `deeplook models list`, an ONNX file of your own, or
    /// `lanczos` [default: the photo model if it was fetched].
    #[arg(long, value_name = "NAME|FILE")]
    pub enhancer: Option<String>,
    /// Leave a tool out; once for each.
    #[arg(long, value_name = "TOOL")]
    pub without: Vec<String>,
    /// Other settings of the tools than the usual ones: a TOML file with a table for each tool, as
    /// the traces show them.
    #[arg(long, value_name = "FILE")]
    pub tool_settings: Option<PathBuf>,
}

impl ModelOptions {
    /// A judge with this model and the usual rest, and what opens its server.
    pub(crate) fn judge(&self) -> anyhow::Result<(JudgeSpec, Access)> {
        let Self { model, base_url, profile, wire, dialect, sampling, params } = self;
        let mut params = self::params(params)?;
        sampling.add_to(&mut params)?;
        let mut judge = JudgeSpec {
            model: model.clone(),
            profile: profile.clone(),
            wire: *wire,
            dialect: *dialect,
            detail: sampling.detail.clone(),
            params,
            ..JudgeSpec::default()
        };
        let access = served_at(&mut judge, base_url.as_deref());
        Ok((judge, access))
    }
}

impl JudgeOptions {
    /// The judge that was asked for, and what opens its server.
    pub(crate) fn judge(&self) -> anyhow::Result<(JudgeSpec, Access)> {
        let (mut judge, access) = self.model.judge()?;
        judge.prompts.clone_from(&self.prompts);
        judge.variant.clone_from(&self.variant);
        judge.tools = self.tools.options();
        self.bounds.apply(&mut judge);
        Ok((judge, access))
    }
}

/// Says which server is asked: the one that was named, or else the environment's. What opens it does
/// not belong into the specification.
pub(crate) fn served_at(judge: &mut JudgeSpec, named: Option<&str>) -> Access {
    let url = match named {
        Some(url) => Some(url.to_owned()),
        None if judge.is_offline() => None,
        // The variable is about OpenAI's servers and those that are like them.
        None if judge.profile.as_deref().is_some_and(|name| HOSTED.contains(&name)) => None,
        None => usual_server(),
    };
    let (url, access) = url.map(|url| Access::of_url(&url)).unzip();
    judge.base_url = url;
    access.unwrap_or_default()
}

/// Profiles that have a server of their own, which OPENAI_BASE_URL does not mean.
const HOSTED: [&str; 3] = ["gemini", "anthropic", "openrouter"];

impl BoundOptions {
    pub(crate) fn apply(&self, judge: &mut JudgeSpec) {
        judge.per_target = self.per_target;
        judge.timeout = self.timeout;
        judge.max_turns = self.max_turns;
        judge.max_tool_calls = self.max_tool_calls;
        judge.token_budget = self.token_budget;
        judge.prices.clone_from(&self.prices);
    }
}

impl ToolFlags {
    pub(crate) fn options(&self) -> ToolOptions {
        ToolOptions {
            detector: self.detector.clone(),
            enhancer: self.enhancer.clone(),
            without: self.without.clone(),
            tool_settings: self.tool_settings.clone(),
        }
    }
}

/// The ids of criteria; none for all of them.
pub(crate) fn criteria(typed: &[String]) -> Vec<String> {
    match typed.iter().any(|id| id == "all" || id == "both") {
        true => Vec::new(),
        false => typed.to_vec(),
    }
}

/// `KEY=VALUE`, where a value that is JSON is taken as JSON and anything else as text.
pub(crate) fn params(typed: &[String]) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut params = BTreeMap::new();
    for text in typed {
        let pair = text.split_once('=').map(|(key, value)| (key.trim(), value));
        let (key, value) = pair.filter(|(key, _)| !key.is_empty()).with_context(|| {
            format!("--param {text:?} is not KEY=VALUE; write e.g. --param temperature=0")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        if params.insert(key.to_owned(), value).is_some() {
            bail!("--param {key} is given twice; give it once");
        }
    }
    refuse_secrets(&params).map_err(anyhow::Error::msg)?;
    Ok(params)
}

/// `x1,y1,x2,y2`.
fn parse_box(text: &str) -> Result<PixelBox, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|n| n.trim().parse::<f64>()).collect();
    match numbers.as_deref() {
        Ok(&[x1, y1, x2, y2]) if [x1, y1, x2, y2].iter().all(|n| n.is_finite()) => {
            Ok(PixelBox::new(x1, y1, x2, y2))
        }
        _ => Err("expected four numbers x1,y1,x2,y2 in pixels of the source".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_json_or_text() {
        let read = |typed: &[&str]| {
            let typed: Vec<String> = typed.iter().map(|text| (*text).to_owned()).collect();
            params(&typed).map_err(|error| error.to_string())
        };
        let good = read(&["temperature=0", "reasoning_effort=low", "stop=[\"=\"]"]).unwrap();
        assert_eq!(
            json!(good),
            json!({"temperature": 0, "reasoning_effort": "low", "stop": ["="]})
        );
        for (typed, part) in [
            (&["temp"][..], "KEY=VALUE"),
            (&["=3"], "KEY=VALUE"),
            (&["seed=1", "seed=2"], "seed is given twice"),
            (&["API_KEY=sk-123"], "environment"),
        ] {
            let error = read(typed).unwrap_err();
            assert!(error.contains(part) && !error.contains("sk-123"), "{error}");
        }
    }
}

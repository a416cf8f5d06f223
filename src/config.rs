//! From what was typed to what is used: the one place that resolves defaults, profiles and the
//! environment.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use deeplook_tools::PixelBox;
use serde_json::Value;

use crate::cli::JudgeOptions;
use crate::deliberation::Limits;
use crate::judge::JudgeSettings;
use crate::message::Dialect;
use crate::model::{AnyModel, OpenAi, OpenAiSettings, Prices, Profile, Rules, Secret};
use crate::prompt::{self, Mode, Pack};
use crate::protocol::Targets;
use crate::sending::Preparation;
use crate::trace::ModelRecord;

/// A judge's parts, resolved.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub model: AnyModel,
    pub record: ModelRecord,
    pub pack: Pack,
    pub settings: JudgeSettings,
}

/// Resolves the options that `judge` and everything that judges share. Whoever will not ask needs no
/// key.
pub(crate) fn resolve(
    options: &JudgeOptions,
    mode: Mode,
    will_ask: bool,
) -> anyhow::Result<Resolved> {
    let pack = match &options.prompts {
        Some(folder) => Pack::load(folder)?,
        None => Pack::embedded(prompt::DEFAULT)?,
    };
    let mut settings = JudgeSettings {
        mode,
        targets: if options.per_target { Targets::Literal } else { Targets::Sensible },
        limits: Limits {
            turns: options.max_turns,
            tool_calls: options.max_tool_calls,
            tokens: options.token_budget,
            ..Limits::default()
        },
        ..JudgeSettings::default()
    };
    if options.model == Rules::NAME {
        if options.base_url_flag.is_some()
            || options.profile.is_some()
            || !options.params.is_empty()
        {
            bail!(
                "--base-url, --profile and --param are for a server, and the offline judge `{}` asks none: \
                 name the server's model with --model, or drop them",
                Rules::NAME
            );
        }
        let record = Rules::record(options.dialect.unwrap_or(Dialect::Native));
        return Ok(Resolved { model: AnyModel::Rules(Rules::default()), record, pack, settings });
    }

    let mut prices = Prices::built_in();
    if let Some(file) = &options.prices {
        prices = prices.replaced_by(Prices::load(file)?);
    }
    let base_url = options
        .base_url_flag
        .clone()
        .or_else(|| std::env::var("OPENAI_BASE_URL").ok().filter(|url| !url.is_empty()));
    let mut profile = match &options.profile {
        Some(name) => self::profile(name)?,
        None => Profile::guess(&options.model, base_url.as_deref()),
    };
    if let Some(dialect) = options.dialect {
        profile.dialect = dialect;
    }
    settings.max_images = profile.max_images;
    settings.preparation = preparation(&profile);
    let mut record = ModelRecord {
        id: options.model.clone(),
        base_url: None,
        profile: serde_json::to_value(&profile)?,
        params: params(&options.params)?,
        dialect: profile.dialect,
        boxes: profile.boxes,
        price: None,
    };
    let mut server = OpenAiSettings {
        base_url,
        params: record.params.clone(),
        timeout: Duration::from_secs(options.timeout),
        ..OpenAiSettings::new(options.model.clone(), profile)
    };
    if !will_ask {
        server.key = server.key.or(Secret::new("none"));
    }
    let model = OpenAi::new(server)?;
    record.price = prices.of(&record.id, model.base_url()).cloned();
    record.base_url = Some(model.base_url().to_owned());
    Ok(Resolved { model: AnyModel::OpenAi(Box::new(model)), record, pack, settings })
}

/// A built-in profile by its name, or a user's own by its file.
pub(crate) fn profile(name_or_file: &str) -> anyhow::Result<Profile> {
    Ok(match Profile::names().any(|known| known == name_or_file) {
        true => Profile::named(name_or_file)?,
        false => Profile::load(Path::new(name_or_file))?,
    })
}

/// How pictures are prepared for a server.
pub(crate) fn preparation(profile: &Profile) -> Preparation {
    Preparation {
        max_side: profile.max_image_side,
        format: profile.image_format,
        ..Preparation::default()
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
        if ["api_key", "apikey", "authorization"].contains(&key.to_ascii_lowercase().as_str()) {
            bail!("--param {key} would be kept in the trace; keys come from the environment only");
        }
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        if params.insert(key.to_owned(), value).is_some() {
            bail!("--param {key} is given twice; give it once");
        }
    }
    Ok(params)
}

/// `x1,y1,x2,y2`.
pub(crate) fn parse_box(text: &str) -> Result<PixelBox, String> {
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
    use serde_json::json;

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

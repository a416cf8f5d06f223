//! From a specification of a judge to its parts: the one place that resolves defaults, profiles and
//! what opens a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::deliberation::Limits;
use crate::equipment::ToolOptions;
use crate::judge::JudgeSettings;
use crate::message::{Dialect, Wire};
use crate::model::parameters;
use crate::model::{
    AnyModel, ModelError, OpenAi, OpenAiSettings, Prices, PricesError, Profile, ProfileError,
    Rules, Secret, Simulated, api_version, without_credentials,
};
use crate::prompt::{self, Mode, Pack, PromptError};
use crate::protocol::Targets;
use crate::sending::Preparation;
use crate::trace::ModelRecord;

/// Who judges, and how: everything but what it gets to see. It holds no key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JudgeSpec {
    /// The model to ask, or `rules` for the offline judge.
    pub model: String,
    /// An OpenAI-compatible server, without user and password; absent for the profile's own.
    pub base_url: Option<String>,
    /// The name of a built-in profile, or a file; absent to guess it from model and server.
    pub profile: Option<String>,
    /// The form of requests and replies; absent for the profile's, for this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// How the model calls tools; absent for the profile's way.
    pub dialect: Option<Dialect>,
    /// In how much detail the server looks at pictures; absent for the profile's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Something for the server: temperature, seed, max_tokens, …
    pub params: BTreeMap<String, Value>,
    /// Seconds to wait for a reply.
    pub timeout: u64,
    /// A file of prices, which replace the built-in ones.
    pub prices: Option<PathBuf>,
    /// The prompts: a pack in this program, or a folder; absent for the usual ones.
    pub prompts: Option<String>,
    /// A variant of the prompts; absent for the pack as it is.
    pub variant: Option<String>,
    /// Judge every target on its own, also where the instruction is about their number.
    pub per_target: bool,
    /// The most turns; absent for the usual number.
    pub max_turns: Option<u32>,
    /// The most tool calls over all turns; absent for the usual number.
    pub max_tool_calls: Option<u32>,
    /// The most tokens that a question and all its turns may use.
    pub token_budget: Option<u64>,
    /// Which tools there are.
    pub tools: ToolOptions,
}

impl Default for JudgeSpec {
    fn default() -> Self {
        Self {
            model: Rules::NAME.to_owned(),
            base_url: None,
            profile: None,
            wire: None,
            dialect: None,
            detail: None,
            params: BTreeMap::new(),
            timeout: 300,
            prices: None,
            prompts: None,
            variant: None,
            per_target: false,
            max_turns: None,
            max_tool_calls: None,
            token_budget: None,
            tools: ToolOptions::default(),
        }
    }
}

/// What opens a server. It goes beside a specification and is never in it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The key; absent for the one in the environment variable that the profile names.
    pub key: Option<Secret>,
    /// The server's address with user and password, where it has them.
    pub base_url: Option<Secret>,
}

impl Access {
    /// Parts an address from the user and password in it: what a specification may hold, and what
    /// opens the server.
    pub fn of_url(base_url: &str) -> (String, Self) {
        let shown = without_credentials(base_url);
        let secret = (shown != base_url).then(|| Secret::new(base_url)).flatten();
        (shown, Self { key: None, base_url: secret })
    }
}

/// A specification of a judge that cannot be met.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The offline judge asks no server.
    #[error(
        "a server, a profile and parameters are for a model that is asked, and the offline judge `{}` asks \
         nobody: name the server's model, or drop them",
        Rules::NAME
    )]
    NobodyToAsk,
    /// A value that cannot be.
    #[error("{field}: {problem}")]
    Value {
        /// Which field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A parameter is a secret, which nothing may keep.
    #[error("{0}")]
    Secret(String),
    /// The prompts do not work.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The prices cannot be read.
    #[error(transparent)]
    Prices(#[from] PricesError),
    /// The server cannot be asked like this.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A judge's parts, resolved.
#[derive(Debug)]
pub(crate) struct JudgeParts {
    pub model: AnyModel,
    pub record: ModelRecord,
    pub pack: Pack,
    pub settings: JudgeSettings,
}

impl JudgeParts {
    /// The form of requests and replies; `None` for the offline judge.
    pub(crate) fn wire(&self) -> Option<Wire> {
        match &self.model {
            AnyModel::OpenAi(model) => Some(model.wire()),
            _ => None,
        }
    }

    /// Who is asked, where and how, in one line; `None` for the offline judge.
    pub(crate) fn asked(&self) -> Option<String> {
        let AnyModel::OpenAi(model) = &self.model else { return None };
        let profile = self.record.profile["name"].as_str().unwrap_or("?");
        let (id, base_url, wire) = (&self.record.id, model.base_url(), model.wire());
        Some(format!("asking {id} at {base_url}: profile {profile}, wire {wire}"))
    }
}

impl JudgeSpec {
    /// Whether no server is asked: the offline judge, or simulated answers.
    pub fn is_offline(&self) -> bool {
        self.model == Rules::NAME || self.is_simulated()
    }

    /// Whether answers are made from the truth of the data set.
    pub fn is_simulated(&self) -> bool {
        self.model == Simulated::NAME
    }

    /// Says what cannot be, whatever else is there.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        let wrong = |field: &str, problem: &str| {
            Err(SetupError::Value { field: field.to_owned(), problem: problem.to_owned() })
        };
        if self.timeout == 0 {
            return wrong("timeout", "a reply takes at least a second");
        }
        if self.max_turns.is_some_and(|turns| !(1..=100).contains(&turns)) {
            return wrong("max_turns", "it must be from 1 to 100");
        }
        if self.max_tool_calls.is_some_and(|calls| calls > 1000) {
            return wrong("max_tool_calls", "it must be 1000 at most");
        }
        if self.token_budget == Some(0) {
            return wrong("token_budget", "it must be 1 or more");
        }
        parameters::refuse_secrets(&self.params).map_err(SetupError::Secret)?;
        if self.base_url.as_ref().is_some_and(|url| without_credentials(url) != *url) {
            return wrong("base_url", "it has a user or a password, which nothing may keep");
        }
        let params = !self.params.is_empty() && !self.is_simulated();
        let served = self.base_url.is_some()
            || self.profile.is_some()
            || self.wire.is_some()
            || self.detail.is_some()
            || params;
        if self.is_offline() && served {
            return Err(SetupError::NobodyToAsk);
        }
        Ok(())
    }

    /// The prompts, in their variant.
    pub(crate) fn pack(&self) -> Result<Pack, PromptError> {
        let prompts = self.prompts.as_deref().unwrap_or(prompt::DEFAULT);
        Pack::find_varied(prompts, self.variant.as_deref())
    }

    /// The parts of the judge in one mode. Whoever will not ask needs no key.
    pub(crate) fn resolve(
        &self,
        mode: Mode,
        access: &Access,
        will_ask: bool,
    ) -> Result<JudgeParts, SetupError> {
        self.check()?;
        let pack = self.pack()?;
        let usual = Limits::default();
        let mut settings = JudgeSettings {
            mode,
            targets: if self.per_target { Targets::Literal } else { Targets::Sensible },
            limits: Limits {
                turns: self.max_turns.unwrap_or(usual.turns),
                tool_calls: self.max_tool_calls.unwrap_or(usual.tool_calls),
                tokens: self.token_budget,
                ..usual
            },
            ..JudgeSettings::default()
        };
        if self.is_simulated() {
            let model = Simulated::new(&self.params)?;
            let record = model.record(self.dialect.unwrap_or(Dialect::Native));
            return Ok(JudgeParts { model: AnyModel::Simulated(model), record, pack, settings });
        }
        if self.is_offline() {
            let record = Rules::record(self.dialect.unwrap_or(Dialect::Native));
            let model = AnyModel::Rules(Rules::default());
            return Ok(JudgeParts { model, record, pack, settings });
        }

        let mut prices = Prices::built_in();
        if let Some(file) = &self.prices {
            prices = prices.replaced_by(Prices::load(file)?);
        }
        let open = access.base_url.as_ref().map(|secret| secret.expose().to_owned());
        let base_url = open.or_else(|| self.base_url.clone());
        let mut profile = profile_for(self.profile.as_deref(), &self.model, base_url.as_deref())?;
        if let Some(wire) = self.wire {
            profile.wire = wire;
        }
        if let Some(detail) = &self.detail {
            profile.detail = Some(detail.clone());
        }
        if let Some(dialect) = self.dialect {
            profile.dialect = dialect;
        }
        settings.max_images = profile.max_images;
        settings.preparation = preparation(&profile);
        let mut record = ModelRecord {
            id: self.model.clone(),
            base_url: None,
            profile: json!(profile),
            params: self.params.clone(),
            dialect: profile.dialect,
            boxes: profile.boxes,
            price: None,
        };
        let mut server = OpenAiSettings {
            base_url,
            params: record.params.clone(),
            timeout: Duration::from_secs(self.timeout),
            ..OpenAiSettings::new(self.model.clone(), profile)
        };
        if let Some(key) = &access.key {
            server.key = Some(key.clone());
        }
        if !will_ask {
            server.key = server.key.or(Secret::new("none"));
        }
        let model = OpenAi::new(server)?;
        record.price = prices.of(&record.id, model.base_url()).cloned();
        record.base_url = Some(model.base_url().to_owned());
        Ok(JudgeParts { model: AnyModel::OpenAi(Box::new(model)), record, pack, settings })
    }
}

/// The server that the user's environment names.
pub(crate) fn usual_server() -> Option<String> {
    std::env::var("OPENAI_BASE_URL").ok().filter(|url| !url.is_empty())
}

/// A built-in profile by its name, or a user's own by its file.
pub(crate) fn profile(name_or_file: &str) -> Result<Profile, ProfileError> {
    match Profile::names().any(|known| known == name_or_file) {
        true => Profile::named(name_or_file),
        false => Profile::load(Path::new(name_or_file)),
    }
}

/// The profile of a model: the one that is named, or the one that fits best.
pub(crate) fn profile_for(
    named: Option<&str>,
    model: &str,
    base_url: Option<&str>,
) -> Result<Profile, ProfileError> {
    let mut profile = match named {
        Some(name) if Profile::names().any(|known| known == name) => {
            Profile::named(name)?.for_model(model, base_url)
        }
        Some(file) => Profile::load(Path::new(file))?,
        None => Profile::guess(model, base_url),
    };
    if profile.name == "azure" {
        let typed = base_url.and_then(api_version);
        let usual = || std::env::var("OPENAI_API_VERSION").ok().filter(|text| !text.is_empty());
        profile.api_version = typed.or(profile.api_version).or_else(usual);
    }
    Ok(profile)
}

/// How pictures are prepared for a server.
pub(crate) fn preparation(profile: &Profile) -> Preparation {
    Preparation {
        max_side: profile.max_image_side,
        format: profile.image_format,
        ..Preparation::default()
    }
}

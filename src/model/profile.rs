//! What servers and model families differ in, as data.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use deeplook_tools::BoxConvention;
use serde::{Deserialize, Serialize};

use super::endpoint::without_credentials;
use super::parameters::refuse_secrets_in;
use crate::files;
use crate::message::{Dialect, MediaType, Wire};
use crate::wire::{Habits, LastTurnTools};

/// The habits of a server and of the models behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// By which it is chosen; a user's file may leave it out.
    pub name: String,
    /// Where the server is, up to but without `/chat/completions`, `/responses` or `/messages`.
    pub base_url: Option<String>,
    /// The form of its requests and replies.
    pub wire: Wire,
    /// The environment variable that holds the key.
    pub key_env: Option<String>,
    /// In which header the key goes.
    pub auth: Auth,
    /// The version of the interface, for servers that want it in the address.
    pub api_version: Option<String>,
    /// How tools are called, unless the user says otherwise.
    pub dialect: Dialect,
    /// How the models write boxes.
    pub boxes: BoxConvention,
    /// The server's name for the parameter `max_tokens`, on the wire `chat`.
    pub max_tokens_param: String,
    /// The longest reply where nobody says otherwise, on the wire `messages`, which must have one.
    pub max_tokens: u64,
    /// Whether the model thinks before it answers, and wants its thoughts back, on the wire
    /// `responses`.
    pub reasons: bool,
    /// Whether the server takes a `prompt_cache_key`.
    pub prompt_cache_key: bool,
    /// What happens to the declared tools when they may no longer be used.
    pub last_turn_tools: LastTurnTools,
    /// Whether user messages in a row must be merged into one.
    pub alternate_roles: bool,
    /// The longest side of a picture that is worth sending.
    pub max_image_side: u32,
    /// How many pictures a request may hold; `None` where there is no known limit.
    pub max_images: Option<u32>,
    /// How pictures are encoded.
    pub image_format: MediaType,
    /// In how much detail the server looks at pictures; `None` where it cannot be told.
    pub detail: Option<String>,
}

/// The header for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `Authorization: Bearer …`
    Bearer,
    /// `x-api-key: …`
    XApiKey,
    /// `api-key: …`
    ApiKey,
}

impl Default for Profile {
    /// For any server that speaks the OpenAI form and of which nothing else is known.
    fn default() -> Self {
        Self {
            name: "compatible".to_owned(),
            base_url: None,
            wire: Wire::Chat,
            auth: Auth::Bearer,
            api_version: None,
            key_env: Some("OPENAI_API_KEY".to_owned()),
            dialect: Dialect::Tags,
            boxes: BoxConvention::PIXELS,
            max_tokens_param: "max_tokens".to_owned(),
            max_tokens: 8192,
            reasons: false,
            prompt_cache_key: false,
            last_turn_tools: LastTurnTools::Keep,
            alternate_roles: true,
            max_image_side: 2048,
            max_images: None,
            image_format: MediaType::Png,
            detail: None,
        }
    }
}

/// Why there is no such profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile has this name.
    #[error("there is no profile {name:?}; use one of {known}, or the path of a profile file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What exists.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the profile {path}: {reason}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What happened.
        reason: String,
    },
    /// The file is not a profile; the reason names the line and the key.
    #[error("{path} is not a profile: {reason}")]
    Invalid {
        /// Which file.
        path: String,
        /// What is wrong where.
        reason: String,
    },
}

impl Profile {
    /// The built-in profile `name`.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        TABLE.profile.get(name).cloned().ok_or_else(|| {
            let known = Self::names().collect::<Vec<_>>().join(", ");
            ProfileError::Unknown { name: name.to_owned(), known }
        })
    }

    /// The names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.profile.keys().map(String::as_str)
    }

    /// A profile from a TOML file with the fields of this type as keys. What it leaves out is as in
    /// the profile `compatible`; without a name it is called like the file.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        let shown = path.display().to_string();
        let text = files::read_small_text(path)
            .map_err(|reason| ProfileError::Unreadable { path: shown.clone(), reason })?;
        let own_name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        parse(&text, own_name).map_err(|reason| ProfileError::Invalid { path: shown, reason })
    }

    /// What its wire has to know.
    pub fn habits(&self) -> Habits {
        Habits {
            wire: self.wire,
            max_tokens_param: self.max_tokens_param.clone(),
            max_tokens: self.max_tokens,
            last_turn_tools: self.last_turn_tools,
            alternate_roles: self.alternate_roles,
            detail: self.detail.clone(),
            prompt_cache_key: self.prompt_cache_key,
            reasons: self.reasons,
        }
    }

    /// The profile that fits a server and a model best. A base URL decides about the server, the
    /// model's name only where there is none; where nothing is known the server is merely
    /// `compatible`.
    pub fn guess(model: &str, base_url: Option<&str>) -> Self {
        let name = match base_url {
            Some(url) => {
                let shown = without_credentials(url);
                let host = shown.split_once("://").map_or(&*shown, |(_, rest)| rest);
                let host = format!("{}/", host.split('/').next().unwrap_or_default());
                TABLE.server.iter().find(|s| host.contains(&s.contains)).map(|s| &*s.profile)
            }
            None => {
                let model = model.to_ascii_lowercase();
                let known = TABLE.maker.iter().find(|maker| model.starts_with(&maker.begins));
                Some(known.map_or("openai", |maker| &*maker.profile))
            }
        };
        let profile = name.and_then(|name| TABLE.profile.get(name)).cloned().unwrap_or_default();
        profile.for_model(model, base_url)
    }

    /// What is known of this model on this kind of server: how it writes boxes, whether it thinks,
    /// and which wire it wants.
    pub fn for_model(mut self, model: &str, base_url: Option<&str>) -> Self {
        let model = model.to_ascii_lowercase();
        if let Some(family) = TABLE.family.iter().find(|f| model.contains(&f.contains)) {
            self.boxes = family.boxes;
        }
        if matches!(self.name.as_str(), "openai" | "azure") {
            self.reasons = gpt(&model).is_some_and(|version| version >= 5.0)
                || ["o1", "o3", "o4"].iter().any(|name| model.starts_with(name));
            // An Azure deployment has no other wire than chat completions.
            let has_responses = !base_url.is_some_and(|url| url.contains("/deployments/"));
            if has_responses && gpt(&model).is_some_and(|version| version >= REFUSES_TOOLS) {
                self.wire = Wire::Responses;
            }
        }
        self
    }
}

/// From this version on, OpenAI's models refuse tools on chat completions while they think.
const REFUSES_TOOLS: f32 = 5.2;

/// The version in a name such as `gpt-5.6-terra`.
fn gpt(model: &str) -> Option<f32> {
    let version = model.strip_prefix("gpt-")?;
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    version[..end].parse().ok()
}

/// `profiles.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    profile: BTreeMap<String, Profile>,
    server: Vec<Server>,
    maker: Vec<Maker>,
    family: Vec<Family>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Maker {
    begins: String,
    profile: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    contains: String,
    profile: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    contains: String,
    boxes: BoxConvention,
}

// A test makes sure that the built-in table parses.
static TABLE: LazyLock<Table> = LazyLock::new(|| read_table().unwrap_or_default());

fn read_table() -> Result<Table, toml::de::Error> {
    let mut table: Table = toml::from_str(include_str!("profiles.toml"))?;
    for (name, profile) in &mut table.profile {
        profile.name.clone_from(name);
    }
    Ok(table)
}

fn parse(text: &str, own_name: String) -> Result<Profile, String> {
    let in_words = |error: toml::de::Error| error.to_string();
    let keys: toml::Table = toml::from_str(text).map_err(in_words)?;
    refuse_secrets_in(&keys)?;
    let mut profile: Profile = toml::from_str(text).map_err(in_words)?;
    if !keys.contains_key("name") {
        profile.name = own_name;
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_is_sound() {
        let table = read_table().unwrap();
        for name in [
            "compatible",
            "openai",
            "gemini",
            "anthropic",
            "azure",
            "vllm",
            "ollama",
            "lmstudio",
            "openrouter",
            "llamacpp",
        ] {
            assert_eq!(Profile::named(name).unwrap().name, name);
        }
        assert_eq!(Profile::named("compatible").unwrap(), Profile::default());
        assert!(table.server.iter().all(|s| table.profile.contains_key(&s.profile)));
        assert!(table.maker.iter().all(|m| table.profile.contains_key(&m.profile)));
    }

    #[test]
    fn unknown_names_and_keys_are_named() {
        let error = Profile::named("opnai").unwrap_err().to_string();
        assert!(error.contains("opnai") && error.contains("openai"), "{error}");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "dialect = \"native\"\nmax_image_sid = 5\n").unwrap();
        let error = Profile::load(&path).unwrap_err().to_string();
        assert!(error.contains("max_image_sid") && error.contains("line 2"), "{error}");
        assert!(Profile::load(&folder.path().join("none.toml")).is_err());
    }

    #[test]
    fn a_file_needs_only_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "boxes = \"fraction\"\nkey_env = \"MINE\"\n").unwrap();
        let mine = Profile::load(&path).unwrap();
        assert_eq!((&*mine.name, mine.boxes.to_string()), ("mine", "fraction".to_owned()));
        assert_eq!(mine.max_image_side, Profile::default().max_image_side);
        std::fs::write(&path, "name = \"other\"").unwrap();
        assert_eq!(Profile::load(&path).unwrap().name, "other");
    }

    #[test]
    fn a_file_holds_no_secret_and_no_error_shows_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        for (text, word) in [
            ("api_key = \"hidden-0123\"", "api_key"),
            ("boxes = \"pixels\"\nheaders = { Authorization = \"hidden-0123\" }", "headers"),
            ("key_env = \"sk-hidden-0123\"", "name of an environment variable"),
            ("base_url = \"https://me:hidden-0123@a.org/v1\"", "OPENAI_BASE_URL"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Profile::load(&path).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn guesses() {
        let azure = "https://mine.openai.azure.com/openai/v1";
        let deployment = "https://mine.openai.azure.com/openai/deployments/judge";
        for (model, base_url, name, wire, boxes) in [
            ("gpt-5", None, "openai", "chat", "pixels"),
            ("gpt-5-2025-08-07", None, "openai", "chat", "pixels"),
            ("gpt-4o", None, "openai", "chat", "pixels"),
            ("gpt-5.6-terra", None, "openai", "responses", "pixels"),
            ("gpt-6", None, "openai", "responses", "pixels"),
            ("gpt-5.4", Some(azure), "azure", "responses", "pixels"),
            ("gpt-5.4", Some(deployment), "azure", "chat", "pixels"),
            ("gpt-5.6", Some("https://llm.example.org/v1"), "compatible", "chat", "pixels"),
            ("claude-opus-5", None, "anthropic", "messages", "pixels"),
            ("x", Some("https://api.anthropic.com"), "anthropic", "messages", "pixels"),
            ("gemini-3.8-flash", None, "gemini", "chat", "thousandths-yx"),
            (
                "google/gemini-3.1-pro-preview",
                Some("https://openrouter.ai/api/v1"),
                "openrouter",
                "chat",
                "thousandths-yx",
            ),
            ("gpt-5.6", Some("http://localhost:8080"), "llamacpp", "chat", "pixels"),
            (
                "Qwen/Qwen3-VL-8B-Instruct",
                Some("http://gpu:8000/v1"),
                "vllm",
                "chat",
                "thousandths",
            ),
            ("Qwen/Qwen2.5-VL-7B-Instruct", Some("http://gpu:8000/v1"), "vllm", "chat", "pixels"),
            ("qwen2.5vl:7b", Some("http://localhost:11434/v1"), "ollama", "chat", "pixels"),
            ("some-model", Some("https://llm.example.org/v1"), "compatible", "chat", "pixels"),
            ("m", Some("https://example.org/api.openai.com/v1"), "compatible", "chat", "pixels"),
        ] {
            let profile = Profile::guess(model, base_url);
            let (guessed, boxes_of) = (profile.wire.to_string(), profile.boxes.to_string());
            assert_eq!((&*profile.name, &*guessed, &*boxes_of), (name, wire, boxes), "{model}");
        }
    }

    #[test]
    fn a_named_profile_knows_the_model_too() {
        let named = |name: &str, model| Profile::named(name).unwrap().for_model(model, None);
        assert_eq!(named("vllm", "Qwen3-VL-8B").boxes.to_string(), "thousandths");
        let openai = named("openai", "gpt-5.6");
        assert_eq!((openai.wire, openai.reasons), (Wire::Responses, true));
        assert_eq!(named("vllm", "gpt-5.6").wire, Wire::Chat);
    }
}

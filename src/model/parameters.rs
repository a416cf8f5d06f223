//! Parameters of a request are kept in traces and in `run.json`: a secret must not be among them.

use std::collections::BTreeMap;

use serde_json::Value;

/// What to do with a secret instead.
const ADVICE: &str = "everything here is kept in traces; put the key into an environment variable \
                      (OPENAI_API_KEY, or the one that a profile names as key_env)";

/// Words that name a secret, alone or with others around them.
const SECRET_WORDS: &[&str] = &[
    "apikey",
    "auth",
    "authorization",
    "authentication",
    "bearer",
    "cookie",
    "cookies",
    "credential",
    "credentials",
    "header",
    "headers",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "secrets",
];
/// Names that are a secret's if nothing else stands in them.
const SECRET_NAMES: &[&str] = &["key", "token", "pass"];
/// Before `key` or `token`, these make a secret of it; others do not (`prompt_cache_key`,
/// `stop_token_ids`).
const OPENS: &[&str] = &[
    "access",
    "api",
    "bearer",
    "client",
    "hf",
    "id",
    "openai",
    "private",
    "refresh",
    "secret",
    "session",
    "subscription",
    "x",
];
/// How the keys of well-known services begin.
const KEYS_BEGIN: &[&str] =
    &["sk-", "sk_", "hf_", "gsk_", "xai-", "AIza", "ghp_", "github_pat_", "glpat-", "eyJ"];
/// A shorter text is no key.
const SHORTEST_KEY: usize = 20;

/// Refuses what would keep a secret; the error never repeats a value.
pub(crate) fn refuse_secrets(params: &BTreeMap<String, Value>) -> Result<(), String> {
    params.iter().try_for_each(|(name, value)| check(name, value))
}

/// The same for a table of a settings file, before anything else is said of it: an error may quote
/// the line.
pub(crate) fn refuse_secrets_in(table: &toml::Table) -> Result<(), String> {
    let fields: BTreeMap<String, Value> = table
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), serde_json::to_value(value).ok()?)))
        .collect();
    for (name, value) in &fields {
        match (name.as_str(), value.as_str()) {
            ("key_env", Some(variable)) => is_variable(variable)?,
            ("base_url", Some(url)) => holds_nobody(url)?,
            _ => check(name, value)?,
        }
    }
    Ok(())
}

/// `key_env` names a variable; whoever puts the key itself there is told so without its being shown.
fn is_variable(name: &str) -> Result<(), String> {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = !name.is_empty()
        && name.chars().all(letters)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !is_key(name);
    match is_name {
        true => Ok(()),
        false => Err("key_env must be the name of an environment variable, such as \
                      OPENAI_API_KEY, and not the key itself"
            .to_owned()),
    }
}

/// An address in a file is kept in traces: user and password do not belong there.
fn holds_nobody(url: &str) -> Result<(), String> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or(authority);
    match authority.contains('@') {
        true => Err(format!(
            "base_url holds user or password: {ADVICE}, or set OPENAI_BASE_URL to the whole address"
        )),
        false => Ok(()),
    }
}

/// Takes the secrets out of parameters that somebody has kept all the same.
pub(crate) fn hide_secrets(params: &mut Value) {
    match params {
        Value::String(text) if is_key(text) => "…".clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(hide_secrets),
        Value::Object(fields) => {
            for (name, value) in fields {
                match names_secret(name) && !value.is_null() {
                    true => *value = "…".into(),
                    false => hide_secrets(value),
                }
            }
        }
        _ => {}
    }
}

fn check(name: &str, value: &Value) -> Result<(), String> {
    if names_secret(name) {
        return Err(format!("the parameter {name:?} looks like a secret: {ADVICE}"));
    }
    let within = |inner: &str| format!("{name}.{inner}");
    match value {
        Value::String(text) if is_key(text) => {
            Err(format!("the value of the parameter {name:?} looks like a key: {ADVICE}"))
        }
        Value::Array(items) => items.iter().try_for_each(|item| check(name, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(inner, value)| {
            // The name alone says what it is, and the whole path where it stands.
            check(inner, value).map_err(|error| {
                error.replacen(&format!("{inner:?}"), &format!("{:?}", within(inner)), 1)
            })
        }),
        _ => Ok(()),
    }
}

/// Whether something of this name holds a secret.
fn names_secret(name: &str) -> bool {
    let words = words(name);
    let joined = words.concat();
    let pair = |pair: &[String]| {
        OPENS.contains(&pair[0].as_str()) && matches!(pair[1].as_str(), "key" | "token")
    };
    SECRET_NAMES.contains(&joined.as_str())
        || words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || ["apikey", "accesstoken", "authtoken"].iter().any(|secret| joined.contains(secret))
        || words.windows(2).any(pair)
}

/// Whether a text is itself a key.
fn is_key(text: &str) -> bool {
    let text = text.trim();
    let credentials = ["bearer ", "basic "]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|s| s.eq_ignore_ascii_case(scheme)));
    let one_word = !text.contains(char::is_whitespace);
    text.len() >= SHORTEST_KEY
        && (credentials || one_word && KEYS_BEGIN.iter().any(|begin| text.starts_with(begin)))
}

/// The words of a name in lower case: `Api-Key`, `api_key` and `apiKey` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for name in [
            "api_key",
            "Api-Key",
            "apiKey",
            "APIKEY",
            "X-Api-Key",
            "openai_api_key",
            "key",
            "token",
            "access_token",
            "accessToken",
            "hf_token",
            "authorization",
            "Authorization",
            "auth",
            "headers",
            "extra_headers",
            "password",
            "client_secret",
            "cookie",
            "credentials",
        ] {
            assert!(names_secret(name), "{name}");
        }
        for name in [
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "min_tokens",
            "stop_token_ids",
            "skip_special_tokens",
            "prompt_cache_key",
            "top_k",
            "seed",
            "reasoning_effort",
            "user",
            "safety_identifier",
            "return_tokens_as_token_ids",
            "logit_bias",
            "keep_alive",
            "chat_template_kwargs",
            "author",
            "thinking_token_budget",
        ] {
            assert!(!names_secret(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_refused_wherever_it_stands() {
        let of = |value: Value| refuse_secrets(&serde_json::from_value(value).unwrap());
        let hidden = "sk-0123456789abcdef0123";
        for (params, place) in [
            (json!({"token": hidden}), "\"token\""),
            (json!({"user": hidden}), "\"user\""),
            (json!({"user": format!("Bearer {hidden}")}), "\"user\""),
            (json!({"extra_body": {"api_key": hidden}}), "\"extra_body.api_key\""),
            (json!({"extra_body": {"a": [{"password": 5}]}}), "a.password"),
            (json!({"metadata": {"a": [hidden]}}), "\"metadata.a\""),
        ] {
            let error = of(params).unwrap_err();
            assert!(error.contains(place) && error.contains("environment"), "{error}");
            assert!(!error.contains(hidden), "{error}");
        }
        of(json!({"temperature": 0, "stop": ["sk-"], "response_format": {"type": "json_object"}}))
            .unwrap();
    }
}

//! Where a server is and what opens it: base URLs and keys, and keeping secrets out of texts.

use std::fmt;

use deeplook_tools::scene::cut;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::masking::Masks;

use super::profile::Profile;
use crate::message::Wire;

/// A key. It is never shown: not in `Debug` output, not in errors, not in traces.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// The key without the white space around it; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(SecretString::from(text)))
    }

    /// The key in the environment variable `name`, if it is set.
    pub fn from_env(name: &str) -> Option<Self> {
        Self::new(&std::env::var(name).ok()?)
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether it is more than a word that people put where a local server wants any key at all
    /// (`x`, `none`, `EMPTY`): cut out of a reply, such a word would take honest text with it.
    fn is_telling(&self) -> bool {
        let key = self.expose();
        key.len() >= 8 || (key.len() >= 6 && key.contains(|c: char| !c.is_alphabetic()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An address without what may open the server: user, password, and everything from '?' on.
pub fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) =
        url.split_once("://").map_or(("", url), |(_, rest)| (&url[..url.len() - rest.len()], rest));
    let host = rest.split(['/', '\\']).next().unwrap_or_default();
    let secret = host.rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}{}", &rest[secret..])
}

/// The version that an address asks for, as Azure writes it: `…?api-version=2025-04-01-preview`.
pub(crate) fn api_version(url: &str) -> Option<String> {
    let (_, version) = url.split_once("?api-version=")?;
    let is_version = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let version = version.trim();
    (!version.is_empty() && version.chars().all(is_version)).then(|| version.to_owned())
}

/// The address of a server.
#[derive(Clone)]
pub(super) struct BaseUrl {
    /// With everything in it, without a slash at the end.
    full: SecretString,
    /// Without user and password: what may be shown and stored.
    pub shown: String,
    /// Whether it is this machine.
    pub loopback: bool,
    /// Whether the connection is encrypted.
    pub tls: bool,
    user: Option<Secret>,
    password: Option<Secret>,
}

impl BaseUrl {
    /// Reads what a user typed; `usual_path` follows a server that is named without one. The error
    /// says what is wrong, without user or password.
    pub(super) fn parse(text: &str, usual_path: &str) -> Result<Self, String> {
        let text = text.trim();
        // Azure wants its version there, and `api_version` has read it.
        let text = text.split_once("?api-version=").map_or(text, |(address, _)| address);
        let mut text = text.trim_end_matches('/');
        for path in ["/chat/completions", "/responses", "/messages"] {
            text = text.strip_suffix(path).unwrap_or(text).trim_end_matches('/');
        }
        let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
        let bare = bare.rsplit_once('@').map_or(bare, |(_, host)| host);
        let bare = bare.split_once('?').map_or(bare, |(path, _)| path);
        if matches!(bare, "" | "http:" | "https:") || bare.starts_with(['/', ':']) {
            return Err(
                "the base URL names no server: write e.g. http://localhost:8000/v1".to_owned()
            );
        }
        if !text.contains("://") {
            let scheme = if is_loopback(bare) { "http" } else { "https" };
            return Err(format!("the base URL {bare:?} has no scheme: write {scheme}://{bare}"));
        }
        let mut url = Url::parse(text)
            .map_err(|error| format!("the base URL of {bare:?} cannot be read: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme();
            return Err(format!(
                "the base URL of {bare:?} has the scheme {scheme:?}: use http or https"
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!(
                "the base URL of {bare:?} has a query: leave out everything from '?' on"
            ));
        }
        if matches!(url.path(), "" | "/") {
            url.set_path(usual_path);
        }
        let user = Secret::new(url.username());
        let password = url.password().and_then(Secret::new);
        let full = SecretString::from(url.as_str().trim_end_matches('/'));
        // Both can only fail for URLs without a host, and http URLs have one.
        let _ = (url.set_username(""), url.set_password(None));
        Ok(Self {
            full,
            shown: url.as_str().trim_end_matches('/').to_owned(),
            loopback: url.host_str().is_some_and(is_loopback),
            tls: url.scheme() == "https",
            user,
            password,
        })
    }

    pub(super) fn expose(&self) -> &str {
        self.full.expose_secret()
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Whether a host, perhaps with port and path, is this machine.
fn is_loopback(host: &str) -> bool {
    let name = host.split(['/', '?']).next().unwrap_or(host);
    if name.starts_with("[::1]") {
        return true;
    }
    let name = name.split(':').next().unwrap_or(name);
    let is_own = |address: std::net::Ipv4Addr| address.is_loopback();
    name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_own)
}

/// Whether a key may go to `url` without a word of the user's: that is this machine, or the server
/// of a built-in profile that has the same key.
pub(crate) fn is_known_server(url: &str, key_env: Option<&str>) -> bool {
    let Ok(asked) = BaseUrl::parse(url, "/v1") else { return false };
    let own = |profile: Profile| {
        profile.base_url.as_deref() == Some(&asked.shown) && profile.key_env.as_deref() == key_env
    };
    asked.loopback || Profile::names().any(|name| Profile::named(name).is_ok_and(own))
}

/// Who is asked, as error messages need to know it, and what must not be in them.
#[derive(Debug)]
pub(super) struct Peer {
    pub model: String,
    pub wire: Wire,
    pub base_url: BaseUrl,
    pub key: Option<Secret>,
    pub key_env: Option<String>,
    pub timeout: std::time::Duration,
    masks: Masks,
}

/// The longest text of an error that is kept.
const LONGEST: usize = 500;

impl Peer {
    pub(super) fn new(
        model: String,
        wire: Wire,
        base_url: BaseUrl,
        key: Option<Secret>,
        key_env: Option<String>,
        timeout: std::time::Duration,
    ) -> Self {
        let BaseUrl { user, password, .. } = &base_url;
        let given = key.iter().chain(user).chain(password);
        let secrets = given.filter(|secret| secret.is_telling()).map(Secret::expose);
        // What goes out in the header of a URL with user and password.
        let telling = |pair: &(&Secret, &Secret)| pair.0.is_telling() || pair.1.is_telling();
        let pair = user.as_ref().zip(password.as_ref()).filter(telling);
        let basic = pair.map(|(user, password)| format!("{}:{}", user.expose(), password.expose()));
        let masks = Masks::new(secrets, basic.as_deref());
        Self { model, wire, base_url, key, key_env, timeout, masks }
    }

    /// A reply without our own secrets, should the server repeat them. What is JSON is looked
    /// through as it will be read: an escape hides nothing.
    pub(super) fn without_secrets(&self, body: Vec<u8>) -> Vec<u8> {
        if let Ok(mut json) = serde_json::from_slice::<Value>(&body) {
            return match self.masks.mask_json(&mut json) {
                true => json.to_string().into_bytes(),
                false => body,
            };
        }
        match self.masks.mask(&String::from_utf8_lossy(&body)) {
            Some(masked) => masked.into_bytes(),
            None => body,
        }
    }

    /// `text` from anywhere on one line, without secrets and not too long.
    pub(super) fn clean(&self, text: &str) -> String {
        let masked = self.masks.mask(text);
        let text = masked.as_deref().unwrap_or(text);
        let mut line = String::with_capacity(text.len().min(4 * LONGEST));
        for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
            if !word.is_empty() {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
        }
        cut(&line, LONGEST - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_tidied() {
        for (typed, shown, loopback) in [
            ("https://api.openai.com/v1/", "https://api.openai.com/v1", false),
            (" http://localhost:8000/v1// ", "http://localhost:8000/v1", true),
            ("http://127.0.0.1:1234", "http://127.0.0.1:1234/v1", true),
            ("http://127.0.0.1:1234/", "http://127.0.0.1:1234/v1", true),
            ("http://127.0.0.1:1234/api", "http://127.0.0.1:1234/api", true),
            ("http://[::1]:1234/v1", "http://[::1]:1234/v1", true),
            ("https://a.org/v1/chat/completions", "https://a.org/v1", false),
            ("https://a.org/v1/responses/", "https://a.org/v1", false),
            ("https://a.org/v1/messages", "https://a.org/v1", false),
            ("https://a.org/openai/v1?api-version=preview", "https://a.org/openai/v1", false),
            ("https://localhost.evil.org/v1", "https://localhost.evil.org/v1", false),
        ] {
            let url = BaseUrl::parse(typed, "/v1").unwrap();
            assert_eq!((&*url.shown, url.loopback), (shown, loopback));
            assert_eq!(url.expose(), shown);
        }
    }

    #[test]
    fn user_and_password_are_used_but_not_shown() {
        let url = BaseUrl::parse("https://me:hunter2@a.org/v1/", "/v1").unwrap();
        assert_eq!(url.shown, "https://a.org/v1");
        assert_eq!(url.expose(), "https://me:hunter2@a.org/v1");
        assert!(!format!("{url:?}").contains("hunter2"));
        for bad in
            ["me:hunter2@a.org/v1", "ftp://me:hunter2@a.org", "https://me:hunter2@a.org?k=hunter2"]
        {
            let error = BaseUrl::parse(bad, "/v1").unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("a.org"), "{error}");
        }
    }

    #[test]
    fn a_missing_scheme_is_answered_with_the_right_one() {
        let error = BaseUrl::parse("localhost:8000/v1", "/v1").unwrap_err();
        assert!(error.ends_with("write http://localhost:8000/v1"), "{error}");
        let error = BaseUrl::parse("a.org/v1", "/v1").unwrap_err();
        assert!(error.ends_with("write https://a.org/v1"), "{error}");
    }

    #[test]
    fn a_url_without_a_server_is_no_url() {
        for bad in ["", "http://", "https:///v1", "http://:8000/v1", "://", "http:", "/v1"] {
            let error = BaseUrl::parse(bad, "/v1").unwrap_err();
            assert!(error.contains("http://localhost:8000/v1"), "{bad}: {error}");
        }
    }

    #[test]
    fn only_this_machine_and_servers_with_their_own_keys_are_known() {
        let known = |url: &str, key: &str| is_known_server(url, Some(key));
        assert!(known("https://api.openai.com/v1/", "OPENAI_API_KEY"));
        assert!(known("http://localhost:9/v1", "MINE") && known("http://127.8.0.1/v1", "MINE"));
        assert!(!known("https://api.openai.com/v1", "GEMINI_API_KEY"));
        for url in [
            "https://llm.example.org/v1",
            "http://127.example.org/v1",
            "https://example.org/api.openai.com/v1",
            "https://api.openai.com:8443/v1",
            "https://localhost.example.org",
            "https://localhost@example.org/v1",
            "nonsense",
        ] {
            assert!(!known(url, "OPENAI_API_KEY"), "{url}");
        }
    }

    #[test]
    fn an_address_can_be_told_without_what_opens_it() {
        for (typed, told) in [
            ("https://a.org/v1", "https://a.org/v1"),
            ("https://me:secret@a.org/v1", "https://a.org/v1"),
            ("me:secret@a.org/v1", "a.org/v1"),
            ("https://me:p@ss@a.org", "https://a.org"),
            ("https://a.org/@v1", "https://a.org/@v1"),
            ("https://a.org/v1?key=secret", "https://a.org/v1"),
            ("http://me:secret@a.org\\v1", "http://a.org\\v1"),
        ] {
            assert_eq!(without_credentials(typed), told);
        }
    }

    #[test]
    fn keys_are_trimmed_and_hidden() {
        let key = Secret::new(" sk-123\n").unwrap();
        assert_eq!(key.expose(), "sk-123");
        assert_eq!(format!("{key:?}"), "Secret(…)");
        assert!(Secret::new(" \n").is_none());
        for (key, telling) in
            [("k", false), ("EMPTY", false), ("ollama", false), ("sk-123", true), ("hunter2", true)]
        {
            assert_eq!(Secret::new(key).map(|key| key.is_telling()), Some(telling), "{key}");
        }
    }
}

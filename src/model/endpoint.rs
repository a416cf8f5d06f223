//! Where a server is and what opens it: base URLs and keys, and keeping secrets out of texts.

use std::fmt;

use deeplook_tools::scene::cut;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

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

    pub(super) fn expose(&self) -> &str {
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
    password: Option<Secret>,
}

impl BaseUrl {
    /// Reads what a user typed; the error says what is wrong, without user or password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim().trim_end_matches('/');
        let text = text.strip_suffix("/chat/completions").unwrap_or(text).trim_end_matches('/');
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
        let password = url.password().or(Some(url.username())).and_then(Secret::new);
        let full = SecretString::from(url.as_str().trim_end_matches('/'));
        // Both can only fail for URLs without a host, and http URLs have one.
        let _ = (url.set_username(""), url.set_password(None));
        Ok(Self {
            full,
            shown: url.as_str().trim_end_matches('/').to_owned(),
            loopback: url.host_str().is_some_and(is_loopback),
            tls: url.scheme() == "https",
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
    name == "localhost" || name.ends_with(".localhost") || name.starts_with("127.")
}

/// Who is asked, as error messages need to know it, and what must not be in them.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub model: String,
    pub base_url: BaseUrl,
    pub key: Option<Secret>,
    pub key_env: Option<String>,
    pub timeout: std::time::Duration,
}

/// The longest text of an error that is kept.
const LONGEST: usize = 500;

impl Peer {
    /// What must not be in a text.
    fn secrets(&self) -> impl Iterator<Item = &str> {
        let given = self.key.iter().chain(&self.base_url.password);
        given.filter(|secret| secret.is_telling()).map(Secret::expose)
    }

    /// A reply without our own secrets, should the server repeat them.
    pub(super) fn without_secrets(&self, body: Vec<u8>) -> Vec<u8> {
        let holds = |secret: &str| body.windows(secret.len()).any(|part| part == secret.as_bytes());
        if !self.secrets().any(holds) {
            return body;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        self.secrets().fold(text, |text, secret| text.replace(secret, "…")).into_bytes()
    }

    /// `text` from anywhere on one line, without secrets and not too long.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = self.secrets().fold(text.to_owned(), |text, secret| text.replace(secret, "…"));
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
            ("http://127.0.0.1:1234", "http://127.0.0.1:1234", true),
            ("http://[::1]:1234/v1", "http://[::1]:1234/v1", true),
            ("https://a.org/v1/chat/completions", "https://a.org/v1", false),
            ("https://localhost.evil.org/v1", "https://localhost.evil.org/v1", false),
        ] {
            let url = BaseUrl::parse(typed).unwrap();
            assert_eq!((&*url.shown, url.loopback), (shown, loopback));
            assert_eq!(url.expose(), shown);
        }
    }

    #[test]
    fn user_and_password_are_used_but_not_shown() {
        let url = BaseUrl::parse("https://me:hunter2@a.org/v1/").unwrap();
        assert_eq!(url.shown, "https://a.org/v1");
        assert_eq!(url.expose(), "https://me:hunter2@a.org/v1");
        assert!(!format!("{url:?}").contains("hunter2"));
        for bad in
            ["me:hunter2@a.org/v1", "ftp://me:hunter2@a.org", "https://me:hunter2@a.org?k=hunter2"]
        {
            let error = BaseUrl::parse(bad).unwrap_err();
            assert!(!error.contains("hunter2") && error.contains("a.org"), "{error}");
        }
    }

    #[test]
    fn a_missing_scheme_is_answered_with_the_right_one() {
        let error = BaseUrl::parse("localhost:8000/v1").unwrap_err();
        assert!(error.ends_with("write http://localhost:8000/v1"), "{error}");
        let error = BaseUrl::parse("a.org/v1").unwrap_err();
        assert!(error.ends_with("write https://a.org/v1"), "{error}");
    }

    #[test]
    fn a_url_without_a_server_is_no_url() {
        for bad in ["", "http://", "https:///v1", "http://:8000/v1", "://", "http:", "/v1"] {
            let error = BaseUrl::parse(bad).unwrap_err();
            assert!(error.contains("http://localhost:8000/v1"), "{bad}: {error}");
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

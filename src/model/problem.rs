//! What went wrong in an attempt, whether asking again can help, and what the user can do.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::ModelError;
use super::endpoint::Peer;
use crate::wire::NoReply;

/// An attempt that came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What happened, on one line and without secrets.
    pub text: String,
    /// Whether to ask again.
    pub remedy: Remedy,
}

/// What can be done about a [`Problem`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Remedy {
    /// Ask again, after what the server asked for if it did.
    Wait(Option<Duration>),
    /// Ask again, but not often: each time costs a whole reply or the whole timeout. With what to
    /// say in the end.
    Reask(String),
    /// Nobody is there. Ask again, but not for long where nobody ever was.
    Knock {
        /// Whether the server has answered before.
        was_there: bool,
    },
    /// Asking again is no use.
    GiveUp(ModelError),
}

/// What an error body says, in any of the forms that servers use.
struct Said {
    /// For people.
    message: String,
    /// Message, code, type and details in lower case, to look for words in.
    all: String,
}

impl Problem {
    /// From a body with status 200 that is no reply.
    pub(super) fn no_reply(peer: &Peer, why: NoReply) -> Self {
        let (text, remedy) = match why {
            // Servers that fail late have said 200 already; the code is in the body.
            NoReply::Error(error) => {
                let code = error.get("code").and_then(Value::as_u64).unwrap_or_default();
                let code = u16::try_from(code).ok().filter(|code| (400..600).contains(code));
                let said = Said::of_json(&error);
                let status = code.and_then(|code| StatusCode::from_u16(code).ok());
                return Self { status: Some(200), ..Self::told(peer, status, &said, said.wait()) };
            }
            NoReply::Malformed(error) => {
                (format!("the reply is not whole JSON: {error}"), Remedy::Wait(None))
            }
            NoReply::NoMessage => ("the reply holds no message".to_owned(), Remedy::Wait(None)),
            NoReply::Empty(Some(reason))
                if ["length", "max_tokens", "max_output_tokens"].contains(&reason.as_str()) =>
            {
                (
                    "the model used up its tokens before it said anything".to_owned(),
                    Remedy::Reask(
                        "raise `--param max_tokens=…` or lower its reasoning effort".to_owned(),
                    ),
                )
            }
            NoReply::Empty(reason) => (
                format!(
                    "the model sent an empty reply (finish reason {})",
                    reason.as_deref().unwrap_or("unknown")
                ),
                Remedy::Reask("try again later, or another --model".to_owned()),
            ),
            NoReply::Filtered(reason) => {
                let text = format!("a content filter of the server stopped the reply ({reason})");
                (text.clone(), Remedy::GiveUp(ModelError::Filtered(text)))
            }
        };
        Self { status: Some(200), text: peer.clean(&text), remedy }
    }

    /// From a response with an error status.
    pub(super) fn status(
        peer: &Peer,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let mut said = Said::of_body(body);
        if let Some(to) = headers.get("location").and_then(|to| to.to_str().ok()) {
            said.message = format!("it redirects to {to} {}", said.message);
        }
        let wait = header_wait(headers, SystemTime::now()).or_else(|| said.wait());
        Self::told(peer, Some(status), &said, wait)
    }

    /// The server sends more than a reply can be.
    pub(super) fn endless(peer: &Peer, most: usize) -> Self {
        let text = format!("{} sent more than {} MiB", peer.base_url.shown, most >> 20);
        let error = ModelError::Server(format!("{text}; is this a chat server?"));
        Self { status: None, text, remedy: Remedy::GiveUp(error) }
    }

    /// From an attempt that got no whole response.
    pub(super) fn transport(peer: &Peer, error: &reqwest::Error, was_there: bool) -> Self {
        let server = &peer.base_url.shown;
        if error.is_timeout() && !error.is_connect() {
            let seconds = peer.timeout.as_secs_f64();
            return Self {
                status: None,
                text: format!("{server} did not answer within {seconds} s"),
                remedy: Remedy::Reask("raise --timeout if the model needs longer".to_owned()),
            };
        }
        // The URL stays out of it; it may hold a password.
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            causes.push(inner.to_string());
            cause = inner.source();
        }
        let what = if error.is_connect() {
            format!("cannot connect to {server}")
        } else if error.is_body() || error.is_decode() {
            format!("{server} broke off its reply")
        } else {
            format!("{server} broke the connection")
        };
        let status = error.status().map(|status| status.as_u16());
        let text = peer.clean(&format!("{what}: {}", causes.join(": ")));
        let remedy = match error.is_connect() {
            // It took its time already.
            true if error.is_timeout() && !was_there => {
                Remedy::GiveUp(ModelError::Unreachable(format!("{text}; {CHECK_SERVER}")))
            }
            true => Remedy::Knock { was_there },
            false => Remedy::Wait(None),
        };
        Self { status, text, remedy }
    }

    /// From what the server said, and its status if that is known.
    fn told(peer: &Peer, status: Option<StatusCode>, said: &Said, wait: Option<Duration>) -> Self {
        let shown = match status {
            Some(status) => format!("{status}: {}", said.message),
            None => said.message.clone(),
        };
        let text = peer.clean(&shown);
        let code = status.map(|status| status.as_u16());
        let remedy = remedy(peer, code.unwrap_or_default(), said, &text, wait);
        Self { status: code, text, remedy }
    }
}

fn remedy(peer: &Peer, status: u16, said: &Said, text: &str, wait: Option<Duration>) -> Remedy {
    let server = &peer.base_url.shown;
    let refused = |advice: &str| {
        Remedy::GiveUp(ModelError::Refused(format!("{server} says {text}; {advice}")))
    };
    if said.has(FILTER) || (status == 403 && said.has(&["flagged", "moderation"])) {
        let reason = format!("a content filter of {server} refused the request: {text}");
        return Remedy::GiveUp(ModelError::Filtered(reason));
    }
    if status == 401 || (status < 500 && said.has(BAD_KEY)) {
        return refused(&key_advice(peer));
    }
    if status == 402 || said.has(QUOTA) {
        return refused("add credit or raise the limit of the account, or use another key");
    }
    if matches!(status, 0 | 400 | 413 | 422) && said.has(CONTEXT) {
        return refused(
            "the conversation does not fit into the model's context: allow fewer turns (--max-turns) or smaller \
             pictures, or give the server a longer context",
        );
    }
    if matches!(status, 0 | 400..500) {
        let known = KNOWN.iter().find(|(words, _)| said.has(words));
        if let Some((_, advice)) = known {
            return refused(&advice.replace("MODEL", &format!("{:?}", peer.model)));
        }
    }
    if said.has(TOO_MANY_PICTURES) {
        return refused(
            "the server takes fewer pictures: allow fewer turns (--max-turns), or raise its limit (vLLM: \
             --limit-mm-per-prompt)",
        );
    }
    if said.has(BLIND) {
        return refused("the model does not take pictures here: choose one that does with --model");
    }
    if status < 500 && said.has(NO_TOOLS) {
        return refused("the server offers no function calling for this model: use --dialect tags");
    }
    if status >= 500 && said.has(BROKEN_GRAMMAR) {
        // Bad output of the model, not a broken server.
        return Remedy::Reask(
            "the model cannot keep to the server's form of tool calls: use --dialect tags"
                .to_owned(),
        );
    }
    match status {
        // A 200 with an error of unknown kind, and what passes by itself.
        0 | 408 | 409 | 425 | 429 | 500.. => Remedy::Wait(wait),
        403 => refused(&key_advice(peer)),
        404 | 405 => refused(&format!(
            "check --model ({:?}) and --base-url, and whether the server speaks --wire {}",
            peer.model, peer.wire
        )),
        413 => {
            refused("the request is too large: allow fewer turns, or send smaller or JPEG pictures")
        }
        300..400 => refused("use the address it redirects to as --base-url"),
        _ => refused("the server will not take this request"),
    }
}

/// What to do where nobody answers.
pub(super) const CHECK_SERVER: &str = "check --base-url and that the server runs";

/// Refusals that are known by their words, and what to type. The first that fits is told.
const KNOWN: &[(&[&str], &str)] = &[
    (
        &[
            "function tools with reasoning_effort",
            "use /v1/responses",
            "only supported in v1/responses",
        ],
        "type --wire responses (or --dialect tags, or --reasoning-effort none)",
    ),
    (
        &["proto field is not repeating"],
        "the server does not take the tools' schemas: type --dialect tags",
    ),
    (
        &["use 'max_completion_tokens' instead", "use max_completion_tokens"],
        "type --profile openai, which calls the limit so",
    ),
    (
        &[
            "cannot find field",
            "unrecognized request argument",
            "unknown parameter",
            "unknown_parameter",
            "unsupported parameter",
            "unsupported_parameter",
            "unsupported value",
            "unsupported_value",
            "extra inputs are not permitted",
            "is deprecated for this model",
        ],
        "leave out the --param of that name (or --temperature, --seed, --reasoning-effort, --detail), or choose \
         the server's own --profile",
    ),
    (
        &["many-image requests"],
        "so many pictures must be smaller: allow fewer turns (--max-turns), or set max_image_side = 2000 in a \
         profile of your own (--profile FILE)",
    ),
    (
        &[
            "image exceeds",
            "image dimensions exceed",
            "image too large",
            "image is too large",
            "exceeds the maximum image size",
            "image size exceeds",
        ],
        "send smaller pictures: set max_image_side, or image_format = \"jpeg\", in a profile of your own (--profile \
         FILE)",
    ),
    (
        &[
            "model_not_found",
            "model not found",
            "not_found_error",
            "is not found for api version",
            "no longer available",
            "decommissioned",
            "has been deprecated",
            "has been shut down",
            "has been retired",
            "does not exist or you do not have access",
        ],
        "the server has no model MODEL, or no longer: name one of today with --model",
    ),
];

const FILTER: &[&str] = &[
    "content_filter",
    "content filter",
    "content_policy",
    "content policy",
    "responsibleaipolicy",
    "content management policy",
    "data_inspection_failed",
    "prohibited_content",
    "moderation_blocked",
];
const BAD_KEY: &[&str] =
    &["invalid_api_key", "api key not valid", "api_key_invalid", "missing api key"];
const QUOTA: &[&str] =
    &["insufficient_quota", "billing_hard_limit", "insufficient credits", "insufficient balance"];
const CONTEXT: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context size",
    "context window",
    "prompt is too long",
    "input token count",
];
const TOO_MANY_PICTURES: &[&str] =
    &["image(s) may be provided", "limit-mm-per-prompt", "limit_mm_per_prompt", "too many images"];
const BLIND: &[&str] = &[
    "image input is not supported",
    "mmproj",
    "does not support image",
    "not a multimodal model",
    "image_url is only supported",
    "support image input",
    "not support vision",
];
const NO_TOOLS: &[&str] = &[
    "enable-auto-tool-choice",
    "tool-call-parser",
    "does not support tools",
    "support tool use",
    "requires --jinja",
];
const BROKEN_GRAMMAR: &[&str] = &[
    "failed to parse input",
    "does not match the expected",
    "invalid diff",
    "parsing tool call",
    "parse tool call",
];

fn key_advice(peer: &Peer) -> String {
    let variable = peer.key_env.as_deref().unwrap_or("the profile's key_env");
    if peer.key.is_some() {
        format!("check the key in the environment variable {variable}")
    } else {
        format!("the server wants a key: set the environment variable {variable}")
    }
}

impl Said {
    fn of_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            // Gemini puts the object into a list.
            Ok(Value::Array(mut items)) if !items.is_empty() => {
                Self::of_json(&items.swap_remove(0))
            }
            Ok(json) => Self::of_json(&json),
            Err(_) => Self::of_text(&String::from_utf8_lossy(body)),
        }
    }

    fn of_json(json: &Value) -> Self {
        let inner = json.get("error").filter(|error| !error.is_null()).unwrap_or(json);
        let message = match inner {
            Value::String(text) => text.clone(),
            _ => ["/message", "/detail", "/error_description", "/metadata/raw"]
                .iter()
                .find_map(|path| inner.pointer(path)?.as_str().map(str::to_owned))
                .unwrap_or_else(|| inner.to_string()),
        };
        // Some servers repeat the whole request; its words are not theirs.
        let all: String = json.to_string().chars().take(4000).collect();
        Self { message, all: all.to_lowercase() }
    }

    /// Proxies answer with pages for people: their text without the markup.
    fn of_text(text: &str) -> Self {
        let mut plain = String::new();
        let mut inside = false;
        for c in text.chars().take(20_000) {
            match c {
                '<' => inside = true,
                '>' if inside => {
                    inside = false;
                    plain.push(' ');
                }
                c if !inside => plain.push(c),
                _ => {}
            }
        }
        let plain = plain.trim();
        let message = if plain.is_empty() { "(no explanation)" } else { plain }.to_owned();
        Self { all: message.to_lowercase(), message }
    }

    fn has(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.all.contains(word))
    }

    /// How long the server asks to wait: Gemini's `"retryDelay": "12s"`, OpenAI's "try again in
    /// 1.5s".
    fn wait(&self) -> Option<Duration> {
        ["\"retrydelay\":\"", "try again in ", "retry in "]
            .iter()
            .find_map(|before| duration(self.all.split_once(before)?.1))
    }
}

/// How long the headers ask to wait: `retry-after-ms`, or `Retry-After` in seconds or as a date.
fn header_wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let get = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |number: f64| Duration::try_from_secs_f64(number).ok();
    if let Some(ms) = get("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return seconds(ms / 1000.0);
    }
    let text = get("retry-after")?;
    match text.parse() {
        Ok(number) => seconds(number),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        }
    }
}

/// A duration such as `12s`, `1m3.5s` or `350ms` at the beginning of `text`.
fn duration(mut text: &str) -> Option<Duration> {
    let mut total = None;
    loop {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let Ok(number) = number.parse::<f64>() else { break };
        let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let Some((unit, factor)) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))
        else {
            break;
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        text = &rest[unit.len()..];
    }
    Duration::try_from_secs_f64(total?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_texts() {
        for (text, seconds) in [
            ("12s\"", Some(12.0)),
            ("1.5s. visit", Some(1.5)),
            ("350ms", Some(0.35)),
            ("1m3.5s", Some(63.5)),
            ("2h0m1s", Some(7201.0)),
            ("soon", None),
            ("5", None),
        ] {
            assert_eq!(duration(text).map(|d| d.as_secs_f64()), seconds, "{text}");
        }
    }

    #[test]
    fn waits_in_headers() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (name, value, seconds) in [
            ("retry-after", "3", Some(3.0)),
            ("retry-after", "0.25", Some(0.25)),
            ("retry-after-ms", "1500", Some(1.5)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT", Some(3.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT", Some(0.0)),
            ("retry-after", "-3", None),
            ("retry-after", "inf", None),
            ("retry-after", "soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let wait = header_wait(&headers, now).map(|wait| wait.as_secs_f64());
            assert_eq!(wait, seconds, "{name}: {value}");
        }
    }

    #[test]
    fn waits_in_bodies() {
        let gemini = br#"[{"error":{"code":429,"message":"quota","details":[{"@type":"RetryInfo","retryDelay":"12s"}]}}]"#;
        assert_eq!(Said::of_body(gemini).wait(), Some(Duration::from_secs(12)));
        let openai =
            br#"{"error":{"message":"Rate limit reached. Please try again in 1.5s. Visit"}}"#;
        assert_eq!(Said::of_body(openai).wait(), Some(Duration::from_millis(1500)));
    }
}

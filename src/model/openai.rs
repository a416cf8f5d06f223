//! Any server that speaks OpenAI's chat completions.
//!
//! The client library brings the connection and its settings. What it sends and reads is our own
//! ([`super::wire`], `reply`), and so are the retries under it (`retry`).

use std::collections::{BTreeMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use http::{HeaderMap, HeaderValue, header};
use secrecy::SecretString;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower_service::Service;

use super::endpoint::{BaseUrl, Peer, Secret};
use super::gate::Gate;
use super::problem::Problem;
use super::profile::Profile;
use super::retry::RetryPolicy;
use super::wire::{Renderer, call_ids};
use super::{ChatModel, FailedAttempt, ModelError, key_file, reply};
use crate::hash::Hash;
use crate::message::{Message, Reply, Request};

/// What is needed to ask a model.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// The server's name for the model.
    pub model: String,
    /// Where the server is; `None` for the profile's own place.
    pub base_url: Option<String>,
    /// The key, from the environment; local servers need none.
    pub key: Option<Secret>,
    /// The habits of server and model.
    pub profile: Profile,
    /// Further parameters of every request: temperature, seed, max_tokens, …
    pub params: BTreeMap<String, Value>,
    /// The longest that one attempt may take.
    pub timeout: Duration,
    /// How often to ask again.
    pub retry: RetryPolicy,
}

impl OpenAiSettings {
    /// The usual settings for `model` under `profile`, with the key from the environment.
    pub fn new(model: impl Into<String>, profile: Profile) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            key: profile.key_env.as_deref().and_then(Secret::from_env),
            profile,
            params: BTreeMap::new(),
            timeout: Duration::from_secs(300),
            retry: RetryPolicy::default(),
        }
    }
}

/// A model behind a server that speaks OpenAI's chat completions.
pub struct OpenAi {
    http: reqwest::Client,
    endpoint: Endpoint,
    peer: Arc<Peer>,
    renderer: Renderer,
    retry: RetryPolicy,
    gate: Arc<Gate>,
}

impl std::fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAi").field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl OpenAi {
    /// Checks the settings; nothing is sent yet.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let OpenAiSettings { model, base_url, key, profile, params, timeout, retry } = settings;
        if model.trim().is_empty() {
            return Err(ModelError::Refused("no model is named: use --model".to_owned()));
        }
        let own_place = base_url.is_none();
        let base_url = base_url.or_else(|| profile.base_url.clone()).ok_or_else(|| {
            let name = &profile.name;
            ModelError::Refused(format!("the profile {name:?} names no server: use --base-url"))
        })?;
        let base_url = BaseUrl::parse(&base_url).map_err(ModelError::Refused)?;
        let key_env = profile.key_env.clone();
        let key = match (key, &key_env) {
            (None, Some(variable)) => key_file::find(variable).map_err(ModelError::Refused)?,
            (key, _) => key,
        };
        if let (None, Some(variable)) = (&key, &key_env)
            && own_place
            && base_url.tls
        {
            let server = &base_url.shown;
            return Err(ModelError::Refused(format!(
                "{server} wants a key: set the environment variable {variable}, or {variable}_FILE to the \
                 path of a file that holds it"
            )));
        }
        let peer = Arc::new(Peer::new(model, base_url, key, key_env, timeout));
        let endpoint = Endpoint::new(&peer)?;
        let renderer = Renderer::new(&peer.model, profile, params).map_err(ModelError::Refused)?;
        let gate = Arc::default();
        Ok(Self { http: connection(&peer)?, endpoint, peer, renderer, retry, gate })
    }

    /// The same model behind a gate that limits its requests.
    pub fn behind(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// The server's address, without user and password.
    pub fn base_url(&self) -> &str {
        &self.peer.base_url.shown
    }
}

impl ChatModel for OpenAi {
    async fn ask(
        &self,
        request: &Request,
        on_attempt: &(dyn Fn(FailedAttempt) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        let body = self.renderer.body(request).map_err(|error| {
            ModelError::Refused(format!("the request cannot be rendered: {error}"))
        })?;
        let _asking = self.gate.asking();
        let (failed, mut failures) = unbounded_channel();
        let transport = Transport {
            http: self.http.clone(),
            peer: Arc::clone(&self.peer),
            retry: self.retry.clone(),
            taken: Arc::new(taken_ids(request)),
            gate: Arc::clone(&self.gate),
            with_server: Arc::default(),
            failed,
        };
        let with_server = Arc::clone(&transport.with_server);
        let client =
            Client::build(self.http.clone(), self.endpoint.clone()).with_http_service(transport);
        let chat = client.chat();
        let mut asking = std::pin::pin!(chat.create_byot::<_, Reply>(body));
        let mut given_back = std::pin::pin!(self.gate.given_back(&with_server));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(failure) = failures.recv() => on_attempt(failure),
                outcome = &mut asking => break outcome,
                () = &mut given_back => return Err(ModelError::Stopped),
            }
        };
        while let Ok(failure) = failures.try_recv() {
            on_attempt(failure);
        }
        outcome.map_err(|error| match error {
            OpenAIError::Boxed(error) => match error.downcast::<ModelError>() {
                Ok(error) => *error,
                Err(other) => ModelError::Server(self.peer.clean(&other.to_string())),
            },
            other => ModelError::Server(self.peer.clean(&other.to_string())),
        })
    }

    fn fingerprint(&self, request: &Request) -> Option<Hash> {
        let body = self.renderer.body(request).ok()?;
        Hash::of_json(&(self.base_url(), body)).ok()
    }
}

/// The call ids that the conversation has already.
fn taken_ids(request: &Request) -> HashSet<String> {
    let replies = request.messages.iter().filter_map(|message| match &**message {
        Message::Assistant(raw) => Some(raw),
        _ => None,
    });
    replies.flat_map(call_ids).map(str::to_owned).collect()
}

fn connection(peer: &Peer) -> Result<reqwest::Client, ModelError> {
    // Fails where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("deeplook/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(peer.timeout.min(Duration::from_secs(20)))
        .timeout(peer.timeout)
        .tcp_keepalive(Duration::from_secs(30))
        // A redirected POST loses its body, and the key must not travel on.
        .redirect(reqwest::redirect::Policy::none());
    if peer.base_url.loopback {
        builder = builder.no_proxy();
    }
    if !peer.base_url.tls {
        // No certificates are needed, and a machine may have none.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        let reason = std::error::Error::source(&error).unwrap_or(&error).to_string();
        let reason = peer.clean(&reason);
        ModelError::Refused(format!(
            "no connection can be set up: {reason}; https needs the system's CA certificates"
        ))
    })
}

/// The client library's view of the server.
#[derive(Clone)]
struct Endpoint {
    peer: Arc<Peer>,
    headers: HeaderMap,
    key: SecretString,
}

impl Endpoint {
    fn new(peer: &Arc<Peer>) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        let key = peer.key.as_ref().map_or("", Secret::expose);
        if !key.is_empty() {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                let variable = peer.key_env.as_deref().unwrap_or("the environment");
                ModelError::Refused(format!(
                    "the key in {variable} holds characters that no key has"
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Self { key: SecretString::from(key), peer: Arc::clone(peer), headers })
    }
}

impl Config for Endpoint {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.peer.base_url.expose())
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.peer.base_url.shown
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

/// Under the client library: makes attempts, reads each response to its end, and hands up a
/// [`Reply`], already judged and repaired, as the body of the response.
#[derive(Clone)]
struct Transport {
    http: reqwest::Client,
    peer: Arc<Peer>,
    retry: RetryPolicy,
    taken: Arc<HashSet<String>>,
    gate: Arc<Gate>,
    /// Whether an attempt is under way.
    with_server: Arc<AtomicBool>,
    failed: UnboundedSender<FailedAttempt>,
}

/// More than this is no reply of a model; what comes beyond it is not read.
const LARGEST_REPLY: usize = 16 << 20;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<HttpRequestFactory> for Transport {
    type Response = reqwest::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<reqwest::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            // Nobody listening means that nobody wants to know.
            let report = |failure| drop(this.failed.send(failure));
            let reply = this.retry.run(report, || this.attempt(&factory)).await?;
            let body = serde_json::to_vec(&reply)?;
            Ok(http::Response::new(body).into())
        })
    }
}

impl Transport {
    async fn attempt(&self, factory: &HttpRequestFactory) -> Result<Reply, Problem> {
        let pass = self.gate.enter().await;
        self.with_server.store(true, Ordering::Relaxed);
        let answer = self.exchange(factory).await;
        self.with_server.store(false, Ordering::Relaxed);
        match &answer {
            Ok(Reply { usage, .. }) => {
                let completion = usage.completion_tokens.unwrap_or(0);
                pass.served(usage.prompt_tokens.map(|n| n.saturating_add(completion)));
            }
            Err(Problem { status: Some(429), .. }) => pass.refused(),
            Err(_) => drop(pass),
        }
        answer
    }

    async fn exchange(&self, factory: &HttpRequestFactory) -> Result<Reply, Problem> {
        let request =
            factory.build().await.map_err(|error| Problem::unsendable(&self.peer, &error))?;
        let transport = |error: reqwest::Error| Problem::transport(&self.peer, &error);
        let mut response = self.http.execute(request).await.map_err(transport)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(transport)? {
            body.extend_from_slice(&chunk);
            if body.len() > LARGEST_REPLY {
                return Err(Problem::endless(&self.peer, LARGEST_REPLY));
            }
        }
        // A server may repeat what it was sent; a key must not get into a trace that way.
        let body = self.peer.without_secrets(body);
        if !status.is_success() {
            return Err(Problem::status(&self.peer, status, &headers, &body));
        }
        reply::read(&body, &self.taken).map_err(|why| Problem::no_reply(&self.peer, why))
    }
}

//! A model behind a server, whatever wire it speaks.
//!
//! What is sent and read is the wire's business ([`crate::wire`]); connections, attempts and keys are ours.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::Url;
use serde_json::Value;

use super::endpoint::{BaseUrl, Peer, Secret};
use super::gate::Gate;
use super::parameters::refuse_secrets;
use super::problem::Problem;
use super::profile::{Auth, Profile};
use super::retry::RetryPolicy;
use super::{ChatModel, FailedAttempt, ModelError, key_file};
use crate::hash::Hash;
use crate::message::{Message, Reply, Request, Wire};
use crate::wire::{self, Renderer};

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

/// A model behind a server.
pub struct OpenAi {
    http: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    wire: Wire,
    peer: Peer,
    renderer: Renderer,
    retry: RetryPolicy,
    gate: Arc<Gate>,
    /// Whether the server has answered at all.
    was_there: AtomicBool,
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
        let base_url = BaseUrl::parse(&base_url, usual_path(&profile, &base_url))
            .map_err(ModelError::Refused)?;
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
        let peer = Peer::new(model, profile.wire, base_url, key, key_env, timeout);
        refuse_secrets(&params).map_err(ModelError::Refused)?;
        let habits = profile.habits();
        let wire = habits.wire;
        let renderer = Renderer::new(&peer.model, habits, params).map_err(ModelError::Refused)?;
        Ok(Self {
            http: connection(&peer)?,
            url: address(&peer, wire, profile.api_version.as_deref())?,
            headers: headers(&peer, wire, profile.auth)?,
            wire,
            peer,
            renderer,
            retry,
            gate: Arc::default(),
            was_there: AtomicBool::new(false),
        })
    }

    /// The same model behind a gate that limits its requests.
    pub fn behind(self, gate: Arc<Gate>) -> Self {
        Self { gate, ..self }
    }

    /// The form of its requests and replies.
    pub fn wire(&self) -> Wire {
        self.wire
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
        let unsendable =
            |error| ModelError::Refused(format!("the request cannot be rendered: {error}"));
        let body = self.renderer.body(request).map_err(unsendable)?;
        let body = Bytes::from(serde_json::to_vec(&body).map_err(unsendable)?);
        let taken = taken_ids(request);
        let _asking = self.gate.asking();
        let with_server = AtomicBool::new(false);
        tokio::select! {
            biased;
            outcome = self.retry.run(on_attempt, || self.attempt(&body, &taken, &with_server)) => outcome,
            () = self.gate.given_back(&with_server) => Err(ModelError::Stopped),
        }
    }

    fn fingerprint(&self, request: &Request) -> Option<Hash> {
        let body = self.renderer.body(request).ok()?;
        Hash::of_json(&(self.base_url(), body)).ok()
    }
}

/// More than this is no reply of a model; what comes beyond it is not read.
const LARGEST_REPLY: usize = 16 << 20;

impl OpenAi {
    async fn attempt(
        &self,
        body: &Bytes,
        taken: &HashSet<&str>,
        with_server: &AtomicBool,
    ) -> Result<Reply, Problem> {
        let pass = self.gate.enter().await;
        with_server.store(true, Ordering::Relaxed);
        let answer = self.exchange(body.clone(), taken).await;
        with_server.store(false, Ordering::Relaxed);
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

    /// Sends the body and reads the response to its end.
    async fn exchange(&self, body: Bytes, taken: &HashSet<&str>) -> Result<Reply, Problem> {
        let was_there = || self.was_there.load(Ordering::Relaxed);
        let transport = |error: reqwest::Error| Problem::transport(&self.peer, &error, was_there());
        let request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let mut response = request.send().await.map_err(transport)?;
        self.was_there.store(true, Ordering::Relaxed);
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
        let mut reply = wire::read(self.wire, &body, taken)
            .map_err(|why| Problem::no_reply(&self.peer, why))?;
        let id = ["x-request-id", "request-id"].iter().find_map(|name| headers.get(*name));
        reply.served.request_id = id.and_then(|id| id.to_str().ok()).map(|id| self.peer.clean(id));
        Ok(reply)
    }
}

/// The call ids that the conversation has already.
fn taken_ids(request: &Request) -> HashSet<&str> {
    let replies = request.messages.iter().filter_map(|message| match &**message {
        Message::Assistant(reply) => Some(reply),
        _ => None,
    });
    replies.flat_map(|reply| &reply.said.calls).map(|call| call.id.as_str()).collect()
}

fn connection(peer: &Peer) -> Result<reqwest::Client, ModelError> {
    // Fails where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("deeplook/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(peer.timeout.min(Duration::from_secs(4)))
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

/// Where requests go, with the user and password that the base URL may have.
fn address(peer: &Peer, wire: Wire, version: Option<&str>) -> Result<Url, ModelError> {
    let url = format!("{}{}", peer.base_url.expose(), wire::path(wire));
    let mut url =
        Url::parse(&url).map_err(|error| ModelError::Refused(peer.clean(&error.to_string())))?;
    match version {
        Some(version) => drop(url.query_pairs_mut().append_pair("api-version", version)),
        None if url.path().contains("/deployments/") => {
            return Err(ModelError::Refused(format!(
                "{} is an Azure deployment, which wants a version: add ?api-version=… to the address, or set \
                 the environment variable OPENAI_API_VERSION",
                peer.base_url.shown
            )));
        }
        None => {}
    }
    Ok(url)
}

/// The path of a server that is named without one: as in the profile's own address, if it is the
/// same server.
fn usual_path<'p>(profile: &'p Profile, base_url: &str) -> &'p str {
    let own = profile.base_url.as_deref().and_then(|own| own.split_once("://"));
    let own = own.map(|(_, rest)| rest.split_at(rest.find('/').unwrap_or(rest.len())));
    match own {
        Some((host, path)) if base_url.contains(host) => path,
        _ if profile.name == "azure" => "/openai/v1",
        _ => "/v1",
    }
}

fn headers(peer: &Peer, wire: Wire, auth: Auth) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if wire == Wire::Messages {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = &peer.key {
        let key = key.expose();
        let (name, value) = match auth {
            Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {key}")),
            Auth::XApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
            Auth::ApiKey => (HeaderName::from_static("api-key"), key.to_owned()),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            let variable = peer.key_env.as_deref().unwrap_or("the environment");
            ModelError::Refused(format!("the key in {variable} holds characters that no key has"))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

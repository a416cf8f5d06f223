//! The pages on loopback, for the person at this machine and nobody else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ASSETS;
use super::index::Index;
use super::page::Pages;
use super::patience::{Impatient, Patience};
use super::query;
use crate::hash::Hash;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// On every answer.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// What the pictures that are on their way may take together, in KiB. One always may.
const ROOM: u32 = 512 << 10;
/// Pages that are made at a time: each reads a whole trace.
const PAGES: usize = 4;

struct Viewer {
    index: Index,
    pages: Pages,
    room: Arc<Semaphore>,
    making: Semaphore,
}

/// The bytes of a picture, and the room that they take until they are sent.
struct Sent {
    bytes: Vec<u8>,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Serves `index` until `stop`; `ready` is told the address as soon as it answers. Port 0 takes
/// any that is free.
pub(crate) async fn serve(
    index: Index,
    port: u16,
    ready: impl FnOnce(SocketAddr) -> io::Result<()>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let room = Arc::new(Semaphore::new(ROOM as usize));
    let (pages, making) = (Pages::new(None)?, Semaphore::new(PAGES));
    let viewer = Arc::new(Viewer { index, pages, room, making });
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| anyhow::anyhow!("cannot listen on port {port} ({error}); name another port, or none for any that is free"))?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/", get(list))
        .route("/index.html", get(list))
        .route("/data", get(data))
        .route("/case/{page}", get(case))
        .route("/blobs/{name}", get(blob))
        .route("/assets/{name}", get(asset))
        .fallback(async || (StatusCode::NOT_FOUND, "there is no such page\n"))
        .layer(middleware::from_fn_with_state(address.port(), guard))
        .with_state(viewer);
    let listener = Impatient::new(listener, Patience::default());
    ready(address)?;
    // Whoever stops it waits for nobody: half a request may never be finished.
    tokio::select! {
        served = async { axum::serve(listener, router).await } => Ok(served?),
        () = stop => Ok(()),
    }
}

/// Lets in only what a browser of this machine asks for on purpose.
async fn guard(State(port): State<u16>, request: Request, next: Next) -> Response {
    let mut response = if !is_ours(request.headers(), port) {
        // A page from elsewhere can give our address its own name, but not our name.
        (StatusCode::FORBIDDEN, "open the address that `deeplook view` printed\n").into_response()
    } else if !matches!(*request.method(), Method::GET | Method::HEAD) {
        (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], "").into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the request names this server, and only once.
fn is_ours(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let (name, given) = match host.and_then(|host| host.rsplit_once(':')) {
        Some((name, given)) => (name, given.parse().ok()),
        None => return false,
    };
    hosts.next().is_none()
        && given == Some(port)
        && ["127.0.0.1", "localhost", "[::1]"].iter().any(|ours| name.eq_ignore_ascii_case(ours))
}

type Viewed = State<Arc<Viewer>>;

async fn list(State(viewer): Viewed) -> Response {
    html(viewer.pages.list(&viewer.index, 0).map(Some))
}

async fn case(State(viewer): Viewed, Path(page): Path<String>) -> Response {
    let number = page.strip_suffix(".html").and_then(|number| number.parse().ok());
    let Some(number) = number else { return not_found() };
    let making = Arc::clone(&viewer);
    let _turn = making.making.acquire().await;
    // Reading a trace blocks.
    let rendered = tokio::task::spawn_blocking(move || {
        viewer.pages.case(&viewer.index, number, &viewer.index.pictures)
    })
    .await;
    match rendered {
        Ok(rendered) => html(rendered),
        Err(error) => broken(&error),
    }
}

async fn data(State(viewer): Viewed, Query(asked): Query<query::Query>) -> Response {
    match serde_json::to_string(&viewer.index.answer(&asked)) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => broken(&error),
    }
}

async fn blob(State(viewer): Viewed, Path(name): Path<String>) -> Response {
    let hash = name.split('.').next().unwrap_or_default().to_owned();
    let Ok(hash) = Hash::try_from(hash) else { return not_found() };
    let room = match viewer.index.pictures.weight(&hash) {
        Ok(bytes) => u32::try_from(bytes >> 10).unwrap_or(ROOM).min(ROOM),
        Err(problem) => return (StatusCode::NOT_FOUND, format!("{problem}\n")).into_response(),
    };
    // Never closed, so that it is never without.
    let room = Arc::clone(&viewer.room).acquire_many_owned(room).await.ok();
    let got = tokio::task::spawn_blocking(move || viewer.index.pictures.get(&hash)).await;
    match got {
        Ok(Ok(picture)) => {
            let sent = Sent { bytes: picture.bytes, _room: room };
            let headers = [
                (header::CONTENT_TYPE, picture.media),
                (header::CONTENT_DISPOSITION, "inline"),
                // Its name is its content.
                (header::CACHE_CONTROL, "private, max-age=31536000, immutable"),
            ];
            (headers, Body::from(Bytes::from_owner(sent))).into_response()
        }
        Ok(Err(problem)) => (StatusCode::NOT_FOUND, format!("{problem}\n")).into_response(),
        Err(error) => broken(&error),
    }
}

async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == name) {
        Some((_, media, content)) => ([(header::CONTENT_TYPE, *media)], *content).into_response(),
        None => not_found(),
    }
}

fn html(rendered: Result<Option<String>, minijinja::Error>) -> Response {
    match rendered {
        Ok(Some(page)) => {
            ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page).into_response()
        }
        Ok(None) => not_found(),
        Err(error) => broken(&error),
    }
}

fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "there is no such page\n").into_response()
}

fn broken(error: &dyn std::error::Error) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("the page cannot be made: {error}\n"))
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_hosts() {
        let ours = |hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
            }
            is_ours(&headers, 4000)
        };
        for host in ["127.0.0.1:4000", "localhost:4000", "LOCALHOST:4000", "[::1]:4000"] {
            assert!(ours(&[host]), "{host}");
        }
        for host in [
            "evil.example:4000",
            "127.0.0.1:4001",
            "127.0.0.1",
            "localhost.evil.example:4000",
            "127.0.0.1:4000.evil.example",
            "evil.example:80@127.0.0.1:4000",
            "",
        ] {
            assert!(!ours(&[host]), "{host}");
        }
        assert!(!ours(&[]));
        assert!(!ours(&["127.0.0.1:4000", "evil.example:4000"]));
    }
}

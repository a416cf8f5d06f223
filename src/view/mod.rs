//! Traces as web pages: served on this machine, or written as files that open from disk.
//!
//! Everything in a trace is somebody else's text and somebody else's picture. Texts become text
//! nodes and nothing else (templates escape, scripts never parse HTML), pictures are served by
//! hash and by what their bytes are, and the policy of every page allows no script, style, picture
//! or connection but the viewer's own.

mod conversation;
mod export;
mod index;
mod page;
mod patience;
mod pictures;
mod query;
mod server;

pub(crate) use export::export;
pub(crate) use index::Index;
pub(crate) use server::serve;

/// What our pages call themselves.
const GENERATOR: &str = concat!("deeplook ", env!("CARGO_PKG_VERSION"));

/// The files that pages need: name, media type, content.
const ASSETS: [(&str, &str, &str); 6] = [
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("common.js", "text/javascript; charset=utf-8", include_str!("assets/common.js")),
    ("local.js", "text/javascript; charset=utf-8", include_str!("assets/local.js")),
    ("list.js", "text/javascript; charset=utf-8", include_str!("assets/list.js")),
    ("stage.js", "text/javascript; charset=utf-8", include_str!("assets/stage.js")),
    ("case.js", "text/javascript; charset=utf-8", include_str!("assets/case.js")),
];

/// Rows in one file of an exported list.
const ROWS_IN_A_CHUNK: usize = 1000;

/// How many files the rows of an exported list take.
fn chunks(index: &Index) -> usize {
    index.len().div_ceil(ROWS_IN_A_CHUNK)
}

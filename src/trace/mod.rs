//! The record of a judgement: what was asked, said, looked at and decided.
//!
//! A *bundle* is one judgement: `manifest.json` (all that could change a verdict), `events.jsonl`
//! (append-only, numbered) and the blobs that they name by hash. A *run* is a folder of bundles
//! that share one `blobs/` store. `traces/README.md` has the format on one page.

mod archive;
mod blobs;
mod chat;
mod events;
mod find;
mod folder;
mod manifest;
mod named;
mod prompts;
mod reader;
mod reducer;
mod results;
mod rubrics;
mod schema;
mod seal;
mod sink;
mod soundness;
pub(crate) mod stored;

pub(crate) use self::prompts::pack_of;
pub use crate::model::ModelRecord;
pub use archive::{ArchiveError, pack, unpack};
pub use blobs::BlobStore;
pub(crate) use blobs::LARGEST as LARGEST_BLOB;
pub use chat::{ChatPictures, conversations};
pub use events::{
    Asked, AttemptFailed, Decided, Event, Finished, GaveUp, Observed, Replied, Seen, StoredMessage,
    StoredPart, StoredPicture, ToolAnswer, Unknown, What,
};
pub use find::{FoundRun, find};
pub use folder::RunFolder;
pub(crate) use folder::bundle_name;
pub use manifest::{CaseRecord, FileRecord, Manifest, PartRecord, Preprocessing, ToolsRecord};
pub use named::blobs_named;
pub(crate) use reader::is_unbegun;
pub use reader::{Bundle, Flaw, TraceError};
pub use reducer::{Account, Judgement, PartJudgement, TurnAccount, reduce};
pub use results::{
    OutcomeName, PartLine, ResultLine, ResultsError, RunResults, read_results, read_run,
};
pub use rubrics::Rubrics;
pub use schema::schema;
pub(crate) use sink::Recorder;
pub use sink::{Blob, Kept, Memory, OpenTrace, Sink, Waiting};
pub(crate) use soundness::Worths;
pub use stored::{FORMAT, FormatVersion, Inputs, PackRecord, ViewRecord};

//! What a judgement leaves on disk: the manifest, the blobs, and the end.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Judge, JudgeError, Judged, Plan};
use crate::case::{EditCase, InputPicture};
use crate::hash::Hash;
use crate::message::SentPicture;
use crate::protocol::Brief;
use crate::trace::{
    self, BlobStore, CaseRecord, Event, FORMAT, FileRecord, Finished, Manifest, PackRecord,
    PartRecord, Preprocessing, ResultLine, RunFolder, ToolsRecord, TraceWriter, What,
};
use crate::verdict::Outcome;

/// A file for the blob store: its hash, its bytes, its extension.
type Blob = (Hash, Arc<[u8]>, String);

impl<M> Judge<M> {
    /// Records that there is nothing to judge: a picture is missing or cannot be read, or the case
    /// does not fit the mode. It survives a power cut after [`RunFolder::sync`].
    pub async fn record_missing(
        &self,
        case: CaseRecord,
        criterion: &str,
        repeat: u32,
        reason: String,
        run: &RunFolder,
    ) -> Result<Judged, JudgeError> {
        let plan = self.plan(criterion)?;
        let manifest = self.manifest(case, &plan, Vec::new(), repeat);
        let writer = start(run, self.pack_files(), &manifest).await?;
        finish(writer, &manifest, Outcome::Missing { reason }, &|_| ()).await
    }

    /// Everything that can change a verdict, whatever the case: what must be the same in a run.
    pub fn described(&self) -> Value {
        json!({
            "deeplook": env!("CARGO_PKG_VERSION"),
            "model": self.record,
            "pack": self.pack_record(),
            "tools": {
                "specs": self.toolbox.specs(self.record.boxes),
                "settings": self.toolbox.settings(),
                "unavailable": self.toolbox.unavailable(),
            },
            "limits": self.settings.limits,
            "preprocessing": self.preprocessing(),
        })
    }

    pub(super) fn manifest(
        &self,
        case: CaseRecord,
        plan: &Plan<'_>,
        parts: Vec<PartRecord>,
        repeat: u32,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            deeplook: env!("CARGO_PKG_VERSION").to_owned(),
            case,
            criterion: plan.criterion.id.clone(),
            mode: self.settings.mode,
            repeat,
            parts,
            model: self.record.clone(),
            pack: self.pack_record(),
            tools: ToolsRecord {
                specs: plan.specs.clone(),
                settings: plan.toolbox.settings(),
                unavailable: plan.toolbox.unavailable().clone(),
            },
            limits: self.settings.limits,
            preprocessing: self.preprocessing(),
            parent: None,
        }
    }

    fn preprocessing(&self) -> Preprocessing {
        Preprocessing {
            sending: self.settings.preparation,
            max_images: self.settings.max_images,
            targets: self.settings.targets,
        }
    }

    fn pack_record(&self) -> PackRecord {
        let files = self.pack.files().map(|(name, bytes)| (name.to_owned(), Hash::of(bytes)));
        PackRecord {
            name: self.pack.name.clone(),
            version: self.pack.version.clone(),
            hash: self.pack.hash.clone(),
            files: files.collect(),
        }
    }

    /// The files that a judgement of `case` starts from.
    pub(super) fn inputs<'a>(
        &self,
        case: &EditCase,
        sent: impl Iterator<Item = &'a Arc<SentPicture>>,
    ) -> Vec<Blob> {
        let mut blobs = self.pack_files();
        let pictures = [Some(&case.source), Some(&case.edited), case.reference.as_ref()];
        blobs.extend(pictures.into_iter().flatten().map(|input| {
            let extension = deeplook_tools::picture::extension_of(input.bytes()).unwrap_or("png");
            (input.hash().clone(), input.shared_bytes(), extension.to_owned())
        }));
        blobs.extend(sent.map(|sent| {
            (sent.hash.clone(), Arc::clone(&sent.bytes), sent.media.extension().to_owned())
        }));
        blobs
    }

    fn pack_files(&self) -> Vec<Blob> {
        let file = |(name, bytes): (&str, &[u8])| {
            let extension = name.rsplit_once('.').map_or("txt", |(_, extension)| extension);
            (Hash::of(bytes), Arc::from(bytes), extension.to_owned())
        };
        self.pack.files().map(file).collect()
    }
}

pub(super) fn parts(briefs: &[Brief]) -> Vec<PartRecord> {
    let part = |brief: &Brief| PartRecord {
        name: brief.name.clone(),
        boxes: brief.boxes.clone(),
        crop: brief.crop,
        notes: brief.notes.clone(),
    };
    briefs.iter().map(part).collect()
}

pub(super) fn of_case(case: &EditCase) -> CaseRecord {
    let file = |input: &InputPicture| FileRecord {
        blob: input.hash().clone(),
        size: input.picture().size(),
    };
    CaseRecord {
        id: case.id.clone(),
        editor: case.editor.clone(),
        instruction: case.instruction.clone(),
        kind: case.kind.clone(),
        target: case.target.clone(),
        boxes: case.boxes.clone(),
        source: Some(file(&case.source)),
        edited: Some(file(&case.edited)),
        reference: case.reference.as_ref().map(file),
    }
}

/// Keeps the blobs and starts the trace.
pub(super) async fn start(
    run: &RunFolder,
    blobs: Vec<Blob>,
    manifest: &Manifest,
) -> io::Result<TraceWriter> {
    let (run, manifest) = (run.clone(), manifest.clone());
    on_disk(move || {
        let store = run.blobs();
        for (hash, bytes, extension) in blobs {
            store.put_hashed(&hash, &bytes, &extension)?;
        }
        run.start(&manifest)
    })
    .await
}

/// Records the end and closes the trace.
pub(super) async fn finish(
    writer: TraceWriter,
    manifest: &Manifest,
    outcome: Outcome,
    watch: &(dyn Fn(&Event) + Send + Sync),
) -> Result<Judged, JudgeError> {
    writer.record(What::Finished(Finished { outcome }), watch)?;
    let trace = writer.folder().to_owned();
    let (events, digest) = on_disk(move || writer.close()).await?;
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let line = ResultLine::of(manifest, &events, &format!("judgements/{name}"), &digest);
    Ok(Judged { judgement: trace::reduce(manifest, &events), trace, digest, line })
}

/// Keeps pictures that a tool made.
pub(super) async fn keep(
    store: &BlobStore,
    pictures: impl FnOnce(&BlobStore) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let store = store.clone();
    on_disk(move || pictures(&store)).await
}

/// Does what waits for the disk where it holds up no other judgement.
pub(super) async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

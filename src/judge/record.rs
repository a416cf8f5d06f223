//! What a judgement leaves in its sink: the manifest, the files, and the end.

use std::io;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Judge, JudgeError, Judged, Plan};
use crate::case::{EditCase, InputPicture};
use crate::hash::Hash;
use crate::message::SentPicture;
use crate::protocol::Brief;
use crate::trace::{
    self, Blob, CaseRecord, Event, FORMAT, FileRecord, Finished, Manifest, PackRecord, PartRecord,
    Preprocessing, Recorder, ResultLine, Sink, ToolsRecord, What, stored,
};
use crate::verdict::Outcome;

impl<M> Judge<M> {
    /// Records the outcome of a judgement in which nobody was asked: a picture is missing or cannot be
    /// read, or the case does not fit the mode. It survives a power cut after [`Sink::sync`].
    pub async fn record_unasked(
        &self,
        case: CaseRecord,
        criterion: &str,
        repeat: u32,
        outcome: Outcome,
        sink: &dyn Sink,
    ) -> Result<Judged, JudgeError> {
        let plan = self.plan(criterion)?;
        let manifest = self.manifest(case, &plan, Vec::new(), repeat);
        let recorder = start(sink, || self.pack_files(), &manifest).await?;
        finish(recorder, &manifest, outcome, &|_| ()).await
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
            "limits": stored::Limits::from(self.settings.limits),
            "preprocessing": self.preprocessing(None),
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
            commit: option_env!("DEEPLOOK_COMMIT").map(str::to_owned),
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
            preprocessing: self.preprocessing(Some(plan)),
            parent: None,
        }
    }

    /// How pictures are prepared, and in a judgement each of them.
    fn preprocessing(&self, plan: Option<&Plan<'_>>) -> Preprocessing {
        Preprocessing {
            sending: self.settings.preparation,
            max_images: self.settings.max_images,
            targets: self.settings.targets,
            views: plan.map(|plan| plan.shown.views.iter().map(Into::into).collect()),
        }
    }

    fn pack_record(&self) -> PackRecord {
        let files = self.pack.files().map(|(name, bytes)| (name.to_owned(), Hash::of(bytes)));
        PackRecord {
            name: self.pack.name.clone(),
            version: self.pack.version.clone(),
            hash: self.pack.hash.clone(),
            variant: self.pack.rubric().variant.clone(),
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
        let pictures = [&case.source, &case.edited].into_iter().chain(case.others.values());
        blobs.extend(pictures.map(|input| {
            let extension = deeplook_tools::picture::extension_of(input.bytes()).unwrap_or("png");
            Blob {
                hash: input.hash().clone(),
                bytes: input.shared_bytes(),
                extension: extension.to_owned(),
            }
        }));
        blobs.extend(sent.map(|sent| as_sent(sent)));
        blobs
    }

    pub(super) fn pack_files(&self) -> Vec<Blob> {
        let file = |(name, bytes): (&str, &[u8])| {
            let extension = name.rsplit_once('.').map_or("txt", |(_, extension)| extension);
            Blob { hash: Hash::of(bytes), bytes: Arc::from(bytes), extension: extension.to_owned() }
        };
        self.pack.files().map(file).collect()
    }
}

/// The file of a picture as it is sent.
pub(super) fn as_sent(sent: &SentPicture) -> Blob {
    Blob {
        hash: sent.hash.clone(),
        bytes: Arc::clone(&sent.bytes),
        extension: sent.media.extension().to_owned(),
    }
}

pub(super) fn parts(briefs: &[Brief]) -> Vec<PartRecord> {
    let part = |brief: &Brief| PartRecord {
        name: brief.name.clone(),
        boxes: brief.boxes.clone(),
        crop: brief.crop,
        notes: brief.notes.clone(),
        question: brief.question.as_ref().map(|question| question.id.clone()),
    };
    briefs.iter().map(part).collect()
}

pub(super) fn of_case(case: &EditCase) -> CaseRecord {
    let file = |input: &InputPicture| {
        Some(FileRecord { blob: input.hash().clone(), size: input.picture().size() })
    };
    let others = case.others.iter().map(|(name, input)| (name, file(input)));
    case.with_pictures(file(&case.source), file(&case.edited), others.collect())
}

/// Keeps the files that a trace starts from, if they are wanted, and starts it.
pub(super) async fn start(
    sink: &dyn Sink,
    files: impl FnOnce() -> Vec<Blob>,
    manifest: &Manifest,
) -> io::Result<Recorder> {
    if sink.keeps_files() {
        sink.keep(files()).await?;
    }
    Ok(Recorder::new(sink.start(manifest).await?))
}

/// Records the end and closes the trace.
pub(super) async fn finish(
    recorder: Recorder,
    manifest: &Manifest,
    outcome: Outcome,
    watch: &(dyn Fn(&Event) + Send + Sync),
) -> Result<Judged, JudgeError> {
    recorder.record(What::Finished(Finished { outcome }), watch)?;
    let (events, kept) = recorder.close()?;
    let account = trace::reduce(manifest, &events);
    let line = ResultLine::of(&account, kept.as_ref());
    let judgement = account.judgement;
    Ok(Judged { judgement, events, kept, line })
}

//! The page of one judgement: everything that its trace says, in the order in which people ask.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use deeplook_tools::{PixelBox, Size};
use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde::Serialize;
use serde_json::Value;

use super::conversation::{Conversation, OutcomeView, PartView, PictureView, pretty, seconds};
use super::index::{Entry, Index, IndexRow};
use super::pictures::PictureNames;
use crate::answer::AnswerForm;
use crate::case::Facts;
use crate::hash::Hash;
use crate::received;
use crate::trace::{Bundle, FileRecord, Manifest, reduce};
use crate::transcript::{cost_text, usage_text};
use crate::visible::{honest_json, visible};

/// The most siblings that a page names, and the most bytes of a raw file on it.
const MOST_SIBLINGS: usize = 60;
const MOST_RAW_BYTES: u64 = 4 << 20;

/// Makes pages.
pub(super) struct Pages {
    templates: Environment<'static>,
    /// Set where pages must carry their policy themselves.
    policy: Option<&'static str>,
    /// What packs say about a criterion; reading a pack for every page would take longest of all.
    criteria: Mutex<BTreeMap<(Hash, String), Arc<CriterionView>>>,
}

/// What a page must know about a criterion.
struct CriterionView {
    name: String,
    form: AnswerForm,
    /// The prompts in the trace could not be read.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct PageView<'a> {
    row: &'a IndexRow,
    total: usize,
    previous: Option<usize>,
    next: Option<usize>,
    notices: Vec<String>,
    judged: Option<JudgedView>,
    siblings: Vec<&'a IndexRow>,
    more_siblings: usize,
    manifest: Option<String>,
    events: Vec<RawEvent>,
}

/// What can only be told with a manifest.
#[derive(Debug, Serialize)]
struct JudgedView {
    criterion: String,
    outcome: OutcomeView,
    pictures: Vec<StagePicture>,
    facts: Vec<(&'static str, String)>,
    parts: Vec<PartView>,
}

/// One of the pictures of the case, with what is drawn over it.
#[derive(Debug, Serialize)]
struct StagePicture {
    picture: PictureView,
    boxes: Vec<[f64; 4]>,
}

#[derive(Debug, Serialize)]
struct RawEvent {
    name: String,
    json: String,
}

impl Pages {
    pub(super) fn new(policy: Option<&'static str>) -> Result<Self, minijinja::Error> {
        let mut templates = Environment::new();
        // Names that end in .html are escaped.
        templates.add_template("head.html", include_str!("assets/head.html"))?;
        templates.add_template("case.html", include_str!("assets/case.html"))?;
        templates.add_template("picture.html", include_str!("assets/picture.html"))?;
        templates.add_template("list.html", include_str!("assets/list.html"))?;
        Ok(Self { templates, policy, criteria: Mutex::default() })
    }

    /// The list's page; `chunks` is how many files of rows there are where no server answers.
    pub(super) fn list(&self, index: &Index, chunks: usize) -> Result<String, minijinja::Error> {
        self.templates.get_template("list.html")?.render(context! {
            title => index.title.as_str(),
            total => index.len(),
            chunks,
            policy => self.policy,
            generator => super::GENERATOR,
        })
    }

    /// The page of judgement `n`, if there is one.
    pub(super) fn case(
        &self,
        index: &Index,
        n: usize,
        pictures: &dyn PictureNames,
    ) -> Result<Option<String>, minijinja::Error> {
        let Some(entry) = index.entries.get(n) else { return Ok(None) };
        let page = self.view(index, entry, pictures);
        let chunks = self.policy.map(|_| super::chunks(index));
        let rendered = self.templates.get_template("case.html")?.render(context! {
            page => Serde(&page),
            title => index.title.as_str(),
            chunks,
            policy => self.policy,
            generator => super::GENERATOR,
        })?;
        Ok(Some(rendered))
    }

    fn view<'a>(
        &self,
        index: &'a Index,
        entry: &'a Entry,
        pictures: &dyn PictureNames,
    ) -> PageView<'a> {
        let row = &entry.row;
        let n = row.n;
        let mut notices = Vec::new();
        let judged =
            match &entry.bundle {
                Some(folder) => self.judged(index, entry, folder, pictures, &mut notices),
                None => {
                    notices.push(match row.outcome {
                    "unreadable" => row.reason.clone(),
                    _ => "There is no trace of this judgement here, only its line in results.jsonl."
                        .to_owned(),
                });
                    None
                }
            };
        // The same edit first, then what other editors made of the case.
        let mut siblings: Vec<&IndexRow> = index.siblings(n).filter(|other| other.n != n).collect();
        siblings.sort_by_key(|other| other.editor != row.editor);
        let more_siblings = siblings.len().saturating_sub(MOST_SIBLINGS);
        siblings.truncate(MOST_SIBLINGS);
        let (manifest, events) = entry.bundle.as_deref().map(raw).unwrap_or_default();
        PageView {
            row,
            total: index.len(),
            previous: n.checked_sub(1),
            next: Some(n + 1).filter(|&next| next < index.len()),
            notices,
            judged,
            siblings,
            more_siblings,
            manifest,
            events,
        }
    }

    fn judged(
        &self,
        index: &Index,
        entry: &Entry,
        folder: &Path,
        pictures: &dyn PictureNames,
        notices: &mut Vec<String>,
    ) -> Option<JudgedView> {
        let bundle = match Bundle::read(folder) {
            Ok(bundle) => bundle,
            Err(error) => {
                notices.push(index.told(&error));
                return manifest_only(folder, pictures);
            }
        };
        let manifest = &bundle.manifest;
        let account = reduce(manifest, &bundle.events);
        let judgement = &account.judgement;
        let criterion = self.criterion(&bundle);
        notices.extend(criterion.problem.clone());
        if !bundle.complete {
            notices.push(
                "This judgement was interrupted: the trace ends before its end, and there is no outcome."
                    .to_owned(),
            );
        }
        if let Some(flaw) = bundle.flaws.first() {
            notices.push(format!(
                "{} lines of events.jsonl are not as they were written; the first is line {}: {}. `deeplook replay` tells more.",
                bundle.flaws.len(),
                flaw.line,
                visible(&flaw.problem)
            ));
        }
        for kind in &judgement.unknown {
            notices.push(format!(
                "This trace is of a newer deeplook: it holds events of the kind {:?}, which are not shown.",
                visible(kind)
            ));
        }
        let outcome = judgement.outcome.as_ref();
        if let Some(line) = &entry.line {
            let told = line.label.as_deref();
            if told != judgement.label() {
                notices.push(format!(
                    "results.jsonl says {:?} here, the trace says {:?}: one of them was changed.",
                    told.map_or("no label".to_owned(), visible),
                    judgement.label().map_or("no label".to_owned(), visible),
                ));
            } else if line.digest.as_ref().is_some_and(|digest| *digest != bundle.digest) {
                notices.push(
                    "The digest in results.jsonl is not the one of this trace: one of them was changed."
                        .to_owned(),
                );
            }
        }
        let conversation = Conversation { pictures, form: &criterion.form };
        let mut facts = facts(manifest);
        facts.extend(times(account.span));
        facts.push(("Tokens", usage_text(judgement.usage)));
        facts.push(("Cost", cost_text(judgement.cost)));
        facts.push(("Turns", judgement.turns.to_string()));
        facts.push(("Tool calls", judgement.tool_calls.to_string()));
        facts.push(("Digest", bundle.digest.to_string()));
        Some(JudgedView {
            criterion: criterion.name.clone(),
            outcome: OutcomeView::of(outcome),
            pictures: stage(pictures, manifest),
            facts,
            parts: conversation.parts(&account),
        })
    }

    /// Name and labels of the bundle's criterion, from the prompts in the trace.
    fn criterion(&self, bundle: &Bundle) -> Arc<CriterionView> {
        let record = &bundle.manifest.pack;
        let id = &bundle.manifest.criterion;
        let key = (record.hash.clone(), id.clone());
        let lock = || self.criteria.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return Arc::clone(known);
        }
        let read = bundle.prompts().and_then(|pack| {
            let criterion = pack.criterion(id).map_err(|e| e.to_string())?;
            Ok((visible(&criterion.name), criterion.form()))
        });
        let view = Arc::new(match read {
            Ok((name, form)) => CriterionView { name, form, problem: None },
            Err(problem) => CriterionView {
                name: visible(id),
                form: AnswerForm::new::<String>([]),
                problem: Some(format!(
                    "The prompts of this trace cannot be read, so that labels in replies are not marked: {}",
                    visible(&problem)
                )),
            },
        });
        // Only what was read: a missing blob of one run may be there in the next.
        if view.problem.is_none() {
            lock().insert(key, Arc::clone(&view));
        }
        view
    }
}

/// What can be told of a bundle of which only the manifest can be read.
fn manifest_only(folder: &Path, pictures: &dyn PictureNames) -> Option<JudgedView> {
    let manifest = Bundle::manifest_in(folder).ok()?;
    Some(JudgedView {
        criterion: visible(&manifest.criterion),
        outcome: OutcomeView::named("unreadable"),
        pictures: stage(pictures, &manifest),
        facts: facts(&manifest),
        parts: Vec::new(),
    })
}

/// What stands beside the pictures.
fn facts(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let (case, model, pack) = (&manifest.case, &manifest.model, &manifest.pack);
    let mut facts = Vec::new();
    let mut fact = |name, text: Option<String>| {
        if let Some(text) = text {
            facts.push((name, visible(&text)));
        }
    };
    let known = |name| case.facts.text(name).map(std::borrow::Cow::into_owned);
    fact("Type", known(Facts::TYPE));
    fact("Target", known(Facts::TARGET));
    fact("Editor", case.editor.clone());
    fact("Mode", Some(manifest.mode.to_string()));
    fact("Model", Some(model.id.clone()));
    fact("Server", model.base_url.clone());
    let params = model.params.iter().map(|(name, value)| format!("{name}={value}"));
    fact("Parameters", Some(params.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty()));
    fact("Prompts", Some(format!("{}/{}", pack.name, pack.version)));
    fact("Repeat", Some(manifest.repeat.to_string()).filter(|_| manifest.repeat > 0));
    let without = manifest.tools.unavailable.iter().map(|(tool, why)| format!("{tool}: {why}"));
    fact("Without", Some(without.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty()));
    fact("Forked from", manifest.parent.as_ref().map(Hash::to_string));
    fact("deeplook", Some(manifest.deeplook.clone()));
    fact("Commit", manifest.commit.clone());
    facts
}

/// When it began and how long it took.
fn times(span: Option<(u64, u64)>) -> Vec<(&'static str, String)> {
    let Some((first, last)) = span else { return Vec::new() };
    let took = ("Time", seconds(last.saturating_sub(first)));
    // A year beyond 9999 cannot be written.
    let writable = first < 253_402_300_800_000;
    let begun = UNIX_EPOCH.checked_add(Duration::from_millis(first)).filter(|_| writable);
    let begun = begun.map(|at| ("Begun", humantime::format_rfc3339_seconds(at).to_string()));
    begun.into_iter().chain([took]).collect()
}

/// The pictures of the case; boxes are in pixels of the source and lie over pictures of its size.
fn stage(pictures: &dyn PictureNames, manifest: &Manifest) -> Vec<StagePicture> {
    let case = &manifest.case;
    let source_size = case.source.as_ref().map(|file| file.size);
    let mut stage = Vec::new();
    let reference = case.reference().and_then(Option::as_ref);
    for (id, name, file) in [
        ("source", "Original", case.source.as_ref()),
        ("edited", "Edited", case.edited.as_ref()),
        ("reference", "Reference", reference),
    ] {
        if file.is_none() && id == "reference" {
            continue;
        }
        let same = file.map(|file| file.size) == source_size;
        let boxes =
            if same { case.targets().iter().map(corner_and_size).collect() } else { Vec::new() };
        stage.push(StagePicture { picture: stage_picture(pictures, id, name, file), boxes });
    }
    stage
}

fn corner_and_size(area: &PixelBox) -> [f64; 4] {
    [area.x1, area.y1, area.width(), area.height()]
}

fn stage_picture(
    pictures: &dyn PictureNames,
    id: &str,
    name: &str,
    file: Option<&FileRecord>,
) -> PictureView {
    let found = match file {
        Some(file) => pictures.file_name(&file.blob),
        None => Err("the file could not be read when it was to be judged".to_owned()),
    };
    let Size { width, height } = file.map_or(Size { width: 0, height: 0 }, |file| file.size);
    PictureView {
        id: id.to_owned(),
        name: name.to_owned(),
        caption: String::new(),
        width,
        height,
        problem: found.as_ref().err().cloned(),
        file: found.ok(),
        unsent: false,
        is_evidence: false,
    }
}

/// The files of a bundle as they are, also where they cannot be understood.
fn raw(folder: &Path) -> (Option<String>, Vec<RawEvent>) {
    let text = |name: &str| {
        let mut bytes = Vec::new();
        let file = received::open(&folder.join(name)).ok()?;
        file.take(MOST_RAW_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let lines = text("events.jsonl").unwrap_or_default();
    let event = |(number, line): (usize, &str)| match serde_json::from_str::<Value>(line) {
        Ok(value) => {
            let kind = value["event"].as_object().and_then(|event| event.keys().next());
            let name = kind.map_or("unknown", String::as_str);
            RawEvent { name: format!("{number} {}", visible(name)), json: pretty(&value) }
        }
        Err(error) => {
            RawEvent { name: format!("{number} is not whole: {error}"), json: visible(line) }
        }
    };
    let events = lines.lines().enumerate().map(event).collect();
    (text("manifest.json").map(|manifest| honest_json(&manifest)), events)
}

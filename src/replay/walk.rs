//! The way through a trace: today's deliberation says what comes next, and the record must agree.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::vec;

use deeplook_tools::Toolbox;
use serde::Serialize;
use serde_json::{Value, json};

use super::Tools;
use super::compare::differences;
use super::evidence::Store;
use super::look::Live;
use super::rebuild::{self, Packs};
use super::report::{Divergence, PixelDifference, Replayed};
use crate::deliberation::{Deliberation, Step};
use crate::judge::measuring::{self, NOT_ASKED};
use crate::judge::session::{asked, decided};
use crate::judge::{Judge, Opened, Plan, Told, overall};
use crate::measure::Measure;
use crate::message::SentPicture;
use crate::prompt::{Criterion, Skip};
use crate::trace::{
    Account, Asked, Bundle, Event, Finished, GaveUp, Manifest, Observed, PartRecord, ToolAnswer,
    What, blobs_named, reduce,
};
use crate::verdict::Outcome;

/// Part and turn, where there are any.
pub(super) type Place = (Option<usize>, Option<u32>);

pub(super) const NOWHERE: Place = (None, None);

/// The record ends here, or is not about what comes next: there is nothing more to compare.
struct Stop;

/// A replay under way.
pub(super) struct Walk<'a> {
    pub(super) bundle: &'a Bundle,
    pub(super) store: &'a Store,
    /// What the record tells, for what is taken from it unseen.
    pub(super) account: Account<'a>,
    /// What comes next, with its place; what only a newer version knows is passed over, and said.
    events: vec::IntoIter<(usize, &'a Event)>,
    /// Where the last one was.
    line: usize,
    questions: u32,
    pub(super) looks: u32,
    divergences: Vec<Divergence>,
    within_tolerance: Vec<Divergence>,
    not_rerun: BTreeMap<String, String>,
}

/// A part before its first question.
struct Part {
    deliberation: Deliberation,
    pictures: Vec<Arc<SentPicture>>,
    expected: Option<String>,
    live: Option<Live>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(bundle: &'a Bundle, store: &'a Store) -> Self {
        let events = bundle.events.iter().enumerate();
        let (newer, events): (Vec<_>, Vec<_>) =
            events.partition(|(_, event)| matches!(event.event, What::Unknown(_)));
        let newer = newer.into_iter().map(|(_, event)| {
            let kind = event.event.kind();
            (format!("events of the kind {kind:?}"), "only a newer deeplook knows them".to_owned())
        });
        Self {
            bundle,
            store,
            account: reduce(&bundle.manifest, &bundle.events),
            events: events.into_iter(),
            line: 0,
            questions: 0,
            looks: 0,
            divergences: Vec::new(),
            within_tolerance: Vec::new(),
            not_rerun: newer.collect(),
        }
    }

    pub(super) fn into_report(self) -> Replayed {
        let manifest = &self.bundle.manifest;
        Replayed {
            trace: self.bundle.folder.clone(),
            digest: self.bundle.digest.clone(),
            case: manifest.case.id.clone(),
            editor: manifest.case.editor.clone(),
            criterion: manifest.criterion.clone(),
            outcome: self.account.judgement.outcome,
            complete: self.bundle.complete,
            questions: self.questions,
            looks: self.looks,
            divergences: self.divergences,
            within_tolerance: self.within_tolerance,
            not_rerun: self.not_rerun,
        }
    }

    /// Lines that are not as they were written, and blobs that are not what their names say.
    pub(super) fn check_files(&mut self) {
        for flaw in &self.bundle.flaws {
            let field = format!("events.jsonl line {}", flaw.line);
            let problem = json!(flaw.problem);
            self.differs(NOWHERE, field, json!("as it was written"), problem, false);
        }
        for (hash, place) in blobs_named(&self.bundle.manifest, &self.bundle.events) {
            if let Some(problem) = self.store.problem(hash) {
                self.differs(
                    NOWHERE,
                    format!("blob of {place}"),
                    json!(hash),
                    json!(problem),
                    false,
                );
            }
        }
    }

    /// Goes through the whole trace, as far as it can be followed.
    pub(super) fn follow(&mut self, tools: Tools<'_>, packs: &Packs) {
        // What stopped it was reported where it was found.
        let _ = self.judgement(tools, packs);
    }

    fn judgement(&mut self, tools: Tools<'_>, packs: &Packs) -> Result<(), Stop> {
        let manifest = &self.bundle.manifest;
        let pack = packs.of(manifest, self.store);
        let pack = pack.map_err(|why| self.impossible("manifest.pack", why))?;
        let mut record = manifest.pack.clone();
        (record.name, record.version) = (pack.name.clone(), pack.version.clone());
        record.hash = pack.hash.clone();
        self.compare(NOWHERE, "manifest.pack", &manifest.pack, &record);

        let criterion = pack.criterion(&manifest.criterion).ok();
        let measure =
            criterion.and_then(|criterion| Some((criterion, criterion.measure.as_ref()?)));
        let skip = criterion.and_then(|criterion| criterion.skip.as_ref());
        let outcome = if manifest.parts.is_empty() {
            None
        } else if let (Some(skip), [PartRecord { name, .. }]) = (skip, &manifest.parts[..])
            && name == NOT_ASKED
        {
            Some(self.not_asked(skip)?)
        } else if let Some((criterion, measure)) = measure {
            Some(self.measured(criterion, measure, matches!(tools, Tools::Live(_)))?)
        } else {
            let toolbox = match tools {
                Tools::Recorded => Toolbox::default(),
                Tools::Live(make) => make(&manifest.tools),
            };
            let judge = rebuild::judge(manifest, pack, toolbox);
            Some(match tools {
                Tools::Recorded => self.recorded_parts(&judge)?,
                Tools::Live(_) => self.live_parts(&judge)?,
            })
        };
        let What::Finished(finished) = self.next("finished")? else {
            return Err(self.out_of_step("finished"));
        };
        match (outcome, &finished.outcome) {
            // Why nobody was asked is not in the trace: a file that is not there leaves none, and neither
            // does a process that died.
            (None, Outcome::Missing { .. } | Outcome::Failed { .. }) => {}
            (None, other) => {
                let before = json!(other);
                self.differs(NOWHERE, "finished".to_owned(), before, json!("missing"), false);
            }
            (Some(outcome), _) => {
                self.compare(NOWHERE, "finished", finished, &Finished { outcome });
            }
        }
        Ok(())
    }

    /// Nobody was asked, because another criterion had decided.
    fn not_asked(&mut self, skip: &Skip) -> Result<Outcome, Stop> {
        let What::Decided(recorded) = self.next("decided")? else {
            return Err(self.out_of_step("decided"));
        };
        let score = recorded.outcome.score();
        self.compare((Some(0), None), "decided: score", &score, &Some(skip.worth));
        Ok(recorded.outcome.clone())
    }

    /// Something was measured: again today, or as the record has it.
    fn measured(
        &mut self,
        criterion: &Criterion,
        measure: &Measure,
        live: bool,
    ) -> Result<Outcome, Stop> {
        let place = (Some(0), Some(1));
        let recorded = match self.peek() {
            Some(What::Observed(observed)) => {
                self.events.next();
                self.looks += 1;
                Some(observed)
            }
            _ => None,
        };
        let What::Decided(ended) = self.next("decided")? else {
            return Err(self.out_of_step("decided"));
        };
        let today = match live {
            true => match rebuild::case(&self.bundle.manifest, self.store).ok().flatten() {
                Some(case) => Some(measure.of(&case)),
                None => {
                    let why = "its pictures cannot be read".to_owned();
                    return Err(self.impossible("manifest.case", why));
                }
            },
            false => recorded.and_then(measuring::as_observed).map(Ok),
        };
        // Where nothing was measured, only its pictures tell why.
        let Some(today) = today else { return Ok(ended.outcome.clone()) };
        if live {
            let elapsed_ms = recorded.map_or(0, |recorded| recorded.elapsed_ms);
            let again = measuring::observed(measure, &today)
                .map(|observed| Observed { elapsed_ms, ..observed });
            self.compare(place, "observed", &recorded.cloned(), &again);
        }
        let again = measuring::decided(criterion, &today);
        self.compare(place, "decided", ended, &again);
        Ok(again.outcome)
    }

    /// Follows each part with the pictures of the record.
    fn recorded_parts(&mut self, judge: &Judge<()>) -> Result<Outcome, Stop> {
        let manifest = &self.bundle.manifest;
        let plan = judge.plan(&manifest.criterion);
        let plan = plan.map_err(|why| self.impossible("manifest.criterion", why.to_string()))?;
        let case = &manifest.case;
        let mut outcomes = Vec::new();
        for (index, part) in manifest.parts.iter().enumerate() {
            let pictures = rebuild::task_pictures(&self.account.turns[index]);
            let question = part.question.as_ref();
            let question = question.and_then(|id| case.questions.iter().find(|one| one.id == *id));
            let told = Told {
                instruction: &case.instruction,
                facts: &case.facts,
                notes: &part.notes,
                question: question.map(|question| question.text.as_str()),
            };
            let deliberation = judge.deliberation(&plan, &told, &pictures);
            let deliberation =
                deliberation.map_err(|why| self.impossible("manifest.pack", why.to_string()))?;
            let expected = question.and_then(|question| question.expected.clone());
            let part = Part { deliberation, pictures, expected, live: None };
            outcomes.push(self.part(index, &plan, part)?);
        }
        Ok(overall(plan.criterion, outcomes))
    }

    /// Prepares the case as today, compares with the manifest, and follows each part.
    fn live_parts(&mut self, judge: &Judge<()>) -> Result<Outcome, Stop> {
        let manifest = &self.bundle.manifest;
        let case = rebuild::case(manifest, self.store).ok().flatten();
        // A bad blob was reported; a good one that cannot be decoded was not.
        let Some(case) = case else {
            return Err(self.impossible("manifest.case", "its pictures cannot be read".to_owned()));
        };
        let prepared = judge.prepare(&case, &manifest.criterion);
        let prepared = prepared.map_err(|why| self.impossible("case", why.to_string()))?;
        let today = as_far_as_known(prepared.manifest(), manifest);
        self.compare(NOWHERE, "manifest", manifest, &today);
        let (plan, opened) = prepared.into_parts();
        let mut outcomes = Vec::new();
        for (index, opened) in opened.into_iter().enumerate() {
            let Opened { deliberation, scene, pictures, question } = opened;
            let expected = question.and_then(|question| question.expected);
            let live = Live {
                toolbox: Arc::clone(&plan.toolbox),
                scene,
                preparation: manifest.preprocessing.sending,
                max_images: manifest.preprocessing.max_images,
                sent: pictures.len() as u32,
            };
            let part = Part { deliberation, pictures, expected, live: Some(live) };
            outcomes.push(self.part(index, &plan, part)?);
        }
        Ok(overall(plan.criterion, outcomes))
    }

    fn part(&mut self, part: usize, plan: &Plan<'_>, opened: Part) -> Result<Outcome, Stop> {
        let Part { mut deliberation, pictures, expected, mut live } = opened;
        let mut told = 0;
        let mut digest_differs = false;
        loop {
            let step = deliberation.next_step();
            let turn = deliberation.turn();
            let place = (Some(part), Some(turn));
            if !matches!(step, Step::Done(_)) && self.gave_up(place, &mut deliberation) {
                continue;
            }
            match step {
                Step::AskModel(request) => {
                    let What::Asked(recorded) = self.next("asked")? else {
                        return Err(self.out_of_step("asked"));
                    };
                    self.questions += 1;
                    let today = asked(part, turn, &request, told);
                    told = request.messages.len();
                    self.compare_questions(place, recorded, &today, &pictures, &mut digest_differs);
                    self.attempts(place)?;
                    if self.gave_up(place, &mut deliberation) {
                        continue;
                    }
                    let What::Replied(replied) = self.next("replied")? else {
                        return Err(self.out_of_step("replied"));
                    };
                    self.compare(
                        place,
                        "replied: place",
                        &(replied.part, replied.turn),
                        &(part, turn),
                    );
                    deliberation.replied(&replied.reply);
                }
                Step::UseTools { calls, refused } => {
                    let mut observations = Vec::new();
                    let mut failed = false;
                    for call in calls {
                        failed = self.gave_up(place, &mut deliberation);
                        if failed {
                            break;
                        }
                        let observed = self.observed(place)?;
                        self.compare(place, "observed: call", &observed.call, &call);
                        observations.push(self.look(place, call, &observed.answer, live.as_mut()));
                    }
                    if failed {
                        continue;
                    }
                    for beyond in refused {
                        let observed = self.observed(place)?;
                        self.compare(place, "observed: call", &observed.call, &beyond.call);
                        let today = ToolAnswer::Refused { text: beyond.text };
                        self.compare(place, "observed: answer", &observed.answer, &today);
                    }
                    deliberation.observed(observations);
                }
                Step::Done(ending) => {
                    let today =
                        decided(part, ending, &deliberation, plan.criterion, expected.as_deref());
                    let What::Decided(recorded) = self.next("decided")? else {
                        return Err(self.out_of_step("decided"));
                    };
                    self.compare(place, "decided", recorded, &today);
                    return Ok(today.outcome);
                }
            }
        }
    }

    /// Lets the part fail where the record says that it did, for a reason outside of it.
    fn gave_up(&mut self, (part, turn): Place, deliberation: &mut Deliberation) -> bool {
        let Some(What::GaveUp(recorded)) = self.peek() else { return false };
        self.pass();
        let reason = recorded.reason.clone();
        let today = GaveUp {
            part: part.unwrap_or_default(),
            turn: turn.unwrap_or_default(),
            reason: reason.clone(),
        };
        self.compare((part, turn), "gave_up", recorded, &today);
        deliberation.fail(reason);
        true
    }

    /// Attempts that came to nothing: they must be about this question, and counted.
    fn attempts(&mut self, place: Place) -> Result<(), Stop> {
        let mut number = 0;
        while let Some(What::AttemptFailed(failed)) = self.peek() {
            self.pass();
            number += 1;
            let found = (Some(failed.part), Some(failed.turn), failed.attempt.attempt);
            let expected = (place.0, place.1, number);
            self.compare(place, "attempt_failed: place and number", &found, &expected);
        }
        Ok(())
    }

    fn observed(&mut self, place: Place) -> Result<&'a Observed, Stop> {
        let What::Observed(observed) = self.next("observed")? else {
            return Err(self.out_of_step("observed"));
        };
        let found = (Some(observed.part), Some(observed.turn));
        self.compare(place, "observed: place", &found, &place);
        Ok(observed)
    }

    fn compare_questions(
        &mut self,
        place: Place,
        recorded: &Asked,
        today: &Asked,
        pictures: &[Arc<SentPicture>],
        digest_differs: &mut bool,
    ) {
        if recorded == today {
            return;
        }
        let found = differences(recorded, today);
        let only_digest = found.iter().all(|(path, ..)| path == "digest");
        for (path, before, after) in found {
            // A difference in what was said before makes every later digest another one.
            if path == "digest" && (!only_digest || std::mem::replace(digest_differs, true)) {
                *digest_differs = true;
                continue;
            }
            let hash = |value: &Value| serde_json::from_value(value.clone()).ok();
            let picture = path.ends_with(".picture.blob").then(|| hash(&before).zip(hash(&after)));
            let field = format!("asked: {path}");
            match picture.flatten() {
                Some((before, after)) => {
                    let sent = pictures.iter().find(|sent| sent.hash == after);
                    let bytes = sent.map_or(&[][..], |sent| &sent.bytes);
                    self.compare_pictures(place, field, false, &before, &after, bytes);
                }
                None => self.differs(place, field, before, after, false),
            }
        }
    }

    /// The next event; where there is none, the trace was interrupted here.
    fn next(&mut self, expected: &str) -> Result<&'a What, Stop> {
        match self.pass() {
            Some(event) => Ok(&event.event),
            None if self.bundle.complete => Err(self.out_of_step(expected)),
            None => Err(Stop),
        }
    }

    fn peek(&self) -> Option<&'a What> {
        self.events.as_slice().first().map(|(_, event)| &event.event)
    }

    fn pass(&mut self) -> Option<&'a Event> {
        let (index, event) = self.events.next()?;
        self.line = index + 1;
        Some(event)
    }

    /// Says that the last event is not what comes next in today's loop.
    fn out_of_step(&mut self, expected: &str) -> Stop {
        let line = self.line.max(1);
        let found = self.bundle.events.get(line - 1).map_or("nothing", |event| event.event.kind());
        let field = format!("events.jsonl line {line}");
        self.differs(NOWHERE, field, json!(found), json!(expected), false);
        Stop
    }

    /// Says that today nothing can be made of something that was once used.
    fn impossible(&mut self, field: &str, why: String) -> Stop {
        self.differs(NOWHERE, field.to_owned(), json!("it was used"), json!(why), false);
        Stop
    }

    pub(super) fn not_rerun(&mut self, tool: &str, why: String) {
        self.not_rerun.insert(tool.to_owned(), why);
    }

    /// Reports every place in which two values differ.
    pub(super) fn compare<T: Serialize + PartialEq>(
        &mut self,
        place: Place,
        field: &str,
        before: &T,
        after: &T,
    ) {
        if before == after {
            return;
        }
        for (path, before, after) in differences(before, after) {
            let dot = if path.is_empty() || path.starts_with('[') { "" } else { "." };
            self.differs(place, format!("{field}{dot}{path}"), before, after, false);
        }
    }

    pub(super) fn differs(
        &mut self,
        (part, turn): Place,
        field: String,
        before: Value,
        after: Value,
        tolerated: bool,
    ) {
        let divergence = Divergence { part, turn, field, before, after, pixels: None };
        self.list(tolerated).push(divergence);
    }

    /// Adds to the last report how much and where the pictures differ.
    pub(super) fn last_pixels(&mut self, pixels: Option<PixelDifference>, tolerated: bool) {
        if let Some(last) = self.list(tolerated).last_mut() {
            last.pixels = pixels;
        }
    }

    fn list(&mut self, tolerated: bool) -> &mut Vec<Divergence> {
        if tolerated { &mut self.within_tolerance } else { &mut self.divergences }
    }
}

/// Today's manifest with what cannot be known from the trace taken from the record: who made it, which
/// repetition it is, and what was not there.
fn as_far_as_known(mut today: Manifest, recorded: &Manifest) -> Manifest {
    today.format = recorded.format;
    today.deeplook.clone_from(&recorded.deeplook);
    today.commit.clone_from(&recorded.commit);
    if recorded.preprocessing.views.is_none() {
        today.preprocessing.views = None;
    }
    today.repeat = recorded.repeat;
    today.parent.clone_from(&recorded.parent);
    today.tools.unavailable.clone_from(&recorded.tools.unavailable);
    for (name, settings) in &mut today.tools.settings {
        let runtime = recorded.tools.settings.get(name).map(|s| &s["detector"]["runtime"]);
        if let (Some(now), Some(runtime)) = (settings.pointer_mut("/detector/runtime"), runtime) {
            now.clone_from(runtime);
        }
    }
    today
}

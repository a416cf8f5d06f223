//! A run whose observations are judged again, by other prompts or another model: no tool runs, and
//! nothing is searched for a second time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use deeplook_tools::{BoxConvention, Toolbox};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::error::RunError;
use super::record::{RunRecord, differences};
use crate::case::Case;
use crate::config::JudgeParts;
use crate::dataset::{Edits, Entry, PictureFile};
use crate::deliberation::Limits;
use crate::judge::Recalled;
use crate::key::JudgementKey;
use crate::message::Dialect;
use crate::prompt::Mode;
use crate::protocol::Targets;
use crate::received;
use crate::replay::{Recaller, impossible_setting};
use crate::trace::{
    self, Bundle, CaseRecord, FileRecord, Manifest, ResultLine, RunFolder, RunResults, ToolsRecord,
};

/// What was seen in a run.
#[derive(Debug)]
pub(crate) struct Recordings {
    /// The folder of the run.
    pub folder: PathBuf,
    /// What was judged, with pictures from the run's own blobs.
    pub cases: Vec<Entry>,
    /// What is not judged again, and why.
    pub notes: Vec<String>,
    traces: BTreeMap<JudgementKey, PathBuf>,
    /// How its traces were made, or that they were not all made alike.
    modes: BTreeMap<Mode, Result<Setup, String>>,
    recaller: Recaller,
}

/// What must be as it was for recorded turns to make sense.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Setup {
    limits: Limits,
    targets: Targets,
    dialect: Dialect,
    #[serde(serialize_with = "in_words")]
    boxes: BoxConvention,
    /// Empty where a criterion has none.
    tools: ToolsRecord,
}

fn in_words<S: serde::Serializer>(boxes: &BoxConvention, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(boxes)
}

/// A judgement of the run.
struct Recorded {
    key: JudgementKey,
    folder: PathBuf,
    case: CaseRecord,
    setup: Setup,
}

impl Recordings {
    /// Reads which traces there are; what was seen is read when it is needed.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let RunResults { lines, unreadable } = trace::read_run(folder)?;
        let left_out = |error| format!("left out, because it cannot be read: {error}");
        let mut notes: Vec<String> = unreadable.iter().map(left_out).collect();
        let keys: Vec<(JudgementKey, &ResultLine)> =
            lines.iter().filter_map(|line| Some((line.key()?, line))).collect();
        if keys.is_empty() {
            bail!(
                "{} has no judgement of an edit by a named editor; name a run that `deeplook eval` made",
                folder.display()
            );
        }
        if keys.len() < lines.len() {
            let count = lines.len() - keys.len();
            notes.push(format!("{count} of its judgements name no editor and are left out"));
        }
        let planned = RunRecord::read(folder)?.map(|record| record.planned);
        let unmade = planned.map_or(0, |planned| {
            let made: BTreeSet<&JudgementKey> = keys.iter().map(|(key, _)| key).collect();
            planned.keys().filter(|key| !made.contains(key)).count()
        });
        if unmade > 0 {
            notes.push(format!("it is not finished: {unmade} of its judgements have no trace"));
        }
        let read = |(key, line): (JudgementKey, &ResultLine)| recorded(folder, key, line);
        let read: Vec<_> = keys.into_par_iter().map(read).collect();
        let count = read.len();
        let mut first = None;
        let all: Vec<Recorded> = read
            .into_iter()
            .filter_map(|one| one.map_err(|why| first.get_or_insert(why)).ok())
            .collect();
        if let Some(why) = first {
            if all.is_empty() {
                return Err(why.context(format!("no trace of {} can be used", folder.display())));
            }
            let broken = count - all.len();
            notes.push(format!("{broken} of its traces cannot be used, such as that of {why:#}"));
        }
        let mut recordings = Self {
            folder: folder.to_owned(),
            cases: cases(folder, &all)?,
            notes,
            traces: BTreeMap::new(),
            modes: BTreeMap::new(),
            recaller: Recaller::default(),
        };
        for one in all {
            recordings.add(one);
        }
        Ok(recordings)
    }

    fn add(&mut self, Recorded { key, folder, setup, .. }: Recorded) {
        let mode = key.mode;
        match self.modes.get_mut(&mode) {
            None => drop(self.modes.insert(mode, Ok(setup))),
            Some(Ok(known)) if known.tools.specs.is_empty() => *known = setup,
            Some(Ok(known)) => {
                let same = Setup {
                    tools: match setup.tools.specs.is_empty() {
                        true => known.tools.clone(),
                        false => setup.tools.clone(),
                    },
                    ..setup
                };
                let found = differences(
                    &BTreeMap::from([(mode, json!(known))]),
                    &BTreeMap::from([(mode, json!(same))]),
                );
                if let Some(first) = found.first() {
                    self.modes.insert(mode, Err(first.to_string()));
                }
            }
            Some(Err(_)) => {}
        }
        self.traces.insert(key, folder);
    }

    /// Makes a judge like that of the traces, but for its prompts and its model: their bounds, and
    /// tools that are declared as they were and never used.
    pub(crate) fn equip(&self, mode: Mode, parts: &mut JudgeParts) -> Result<Toolbox, RunError> {
        let run = self.folder.display();
        let setup = match self.modes.get(&mode) {
            Some(Ok(setup)) => setup,
            Some(Err(difference)) => {
                return Err(anyhow!(
                    "the traces of {run} were not all made alike ({difference}); judge again from one kind of them"
                )
                .into());
            }
            None => {
                let modes: Vec<String> = self.modes.keys().map(Mode::to_string).collect();
                let (run, modes) = (self.folder.clone(), modes.join(","));
                return Err(RunError::NotInThisMode { run, mode, modes });
            }
        };
        let record = &parts.record;
        if !setup.tools.specs.is_empty() && record.dialect != setup.dialect {
            let dialect = json!(setup.dialect).as_str().unwrap_or_default().to_owned();
            return Err(RunError::OtherDialect { run: self.folder.clone(), dialect });
        }
        if !setup.tools.specs.is_empty() && record.boxes != setup.boxes {
            return Err(anyhow!(
                "{} writes boxes as {}, and the observations in {run} have them as {}; choose a model that writes \
                 them so, or another profile",
                record.id,
                record.boxes,
                setup.boxes
            )
            .into());
        }
        parts.settings.limits = setup.limits;
        parts.settings.targets = setup.targets;
        let mut toolbox = Toolbox::default().as_recorded(&setup.tools.specs, &setup.tools.settings);
        for (name, why) in &setup.tools.unavailable {
            toolbox = toolbox.without(name, why);
        }
        Ok(toolbox)
    }

    /// What was seen in the judgement `key`, which is now made with `today`. A repetition that was
    /// not made begins with what the first one saw. The error says why there is nothing.
    pub(crate) fn recall(&self, key: &JudgementKey, today: &Manifest) -> Result<Recalled, String> {
        let first = || self.traces.get(&JudgementKey { repeat: 0, ..key.clone() });
        let trace = self.traces.get(key).or_else(first);
        let trace = trace.ok_or_else(|| format!("{} has no trace of it", self.folder.display()))?;
        self.recaller.observations(trace, today)
    }
}

fn recorded(folder: &Path, key: JudgementKey, line: &ResultLine) -> anyhow::Result<Recorded> {
    let named = line.trace.as_deref().unwrap_or_default();
    let Some(trace) = received::folder_below(folder, named) else {
        bail!("{key}: its line names no trace of its run");
    };
    let manifest = Bundle::manifest_in(&trace).with_context(|| key.to_string())?;
    if let Some(problem) = impossible_setting(&manifest) {
        bail!("{key}: {problem}");
    }
    let Manifest { case, limits, preprocessing, model, tools, .. } = manifest;
    let setup = Setup {
        limits,
        targets: preprocessing.targets,
        dialect: model.dialect,
        boxes: model.boxes,
        tools,
    };
    Ok(Recorded { key, folder: trace, case, setup })
}

/// The cases of a run, by name, with the pictures that it has kept.
fn cases(run: &Path, all: &[Recorded]) -> anyhow::Result<Vec<Entry>> {
    let mut cases: BTreeMap<&str, Case<PictureFile, Edits>> = BTreeMap::new();
    let blobs = RunFolder::new(run).blobs();
    for Recorded { key, folder, case: recorded, .. } in all {
        let file = |what: &str, file: Option<&FileRecord>| match file {
            None => PictureFile::Missing(format!("there was no {what} to judge")),
            Some(file) => match blobs.find(&file.blob) {
                Ok(path) => PictureFile::Found(path),
                Err(problem) => PictureFile::Missing(problem.to_string()),
            },
        };
        let source = file("source", recorded.source.as_ref());
        let edited = file("edited", recorded.edited.as_ref());
        let others = recorded.others.iter();
        let others = others.map(|(name, one)| (name, file(name, one.as_ref()))).collect();
        let now = recorded.with_pictures(source.clone(), Edits::new(), others);
        let now = Case { editor: None, ..now };
        let case = cases.entry(&key.case).or_insert_with(|| now.clone());
        // Where one judgement has the pictures and another has not, they are there.
        if case.edited.get(&key.editor).is_none_or(|known| known.path().is_none()) {
            case.edited.insert(key.editor.as_str(), edited.clone());
        }
        if case.source.path().is_none() {
            case.source.clone_from(&source);
        }
        let said = |case: &Case<PictureFile, Edits>| {
            let Case { instruction, facts, regions, questions, .. } = case.clone();
            (instruction, facts, regions, questions)
        };
        let same = said(&now) == said(case)
            && (source.path().is_none() || source == case.source)
            && (edited.path().is_none() || Some(&edited) == case.edited.get(&key.editor));
        if !same {
            bail!(
                "the case {:?} in {} is not the one of other traces there; judge again from a run of one data set",
                key.case,
                folder.display()
            );
        }
    }
    Ok(cases.into_values().map(|case| Entry { line: 0, case }).collect())
}

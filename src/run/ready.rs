//! From a specification to everything that is known before anybody is asked and anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use deeplook_tools::Toolbox;
use serde_json::json;

use super::changes::changed;
use super::error::RunError;
use super::ledger::Ledger;
use super::progress::Progress;
use super::record::{Planned, RunRecord};
use super::recordings::Recordings;
use super::runner::Judges;
use super::select::Job;
use super::spec::RunSpec;
use super::{Run, folder};
use crate::config::SetupError;
use crate::dataset::{DataSet, Entry};
use crate::equipment;
use crate::judge::Judge;
use crate::key::JudgementKey;
use crate::model::{AnyModel, Gate, GateLimits, Price, Truth};
use crate::prompt::{Ask, Criterion, Mode, Pack, Rubric};

/// Everything that is known before anybody is asked and anything is written.
pub(super) struct Ready {
    pub recordings: Option<Recordings>,
    pub cases: Vec<Entry>,
    /// Records of the data set that make no case.
    pub unusable: usize,
    pub gate: Arc<Gate>,
    pub judges: Judges,
    pub price: Option<Price>,
    /// Who is asked, where and how; absent for the offline judge.
    pub asked: Option<String>,
    /// The tools that cannot be had, with the reason.
    pub unavailable: BTreeMap<String, String>,
    pub record: RunRecord,
    /// All judgements of our shard, also those that are there.
    jobs: Vec<Job>,
    /// The folder of the run; `None` where its traces go to a sink of somebody's own.
    pub folder: Option<PathBuf>,
}

impl Ready {
    /// Reads and checks all that `run` needs. Whoever will not ask needs no key.
    pub(super) fn new(run: &mut Run<'_>, will_ask: bool) -> Result<Self, RunError> {
        run.spec.check()?;
        let recordings = run.spec.data.from_traces.as_deref().map(Recordings::open).transpose()?;
        let set = open(run, recordings.as_ref())?;
        let spec = &run.spec;
        let gate = Arc::new(Gate::new(GateLimits {
            concurrency: spec.pace.concurrency as usize,
            requests_per_minute: spec.pace.requests_per_minute,
            tokens_per_minute: spec.pace.tokens_per_minute,
        }));
        // What is right is known beside the data, and only to who stands in for a model.
        let truth = match spec.judge.is_simulated() {
            true => Truth::beside(&set.root).map_err(SetupError::Model)?,
            false => Truth::default(),
        };
        let truth = Arc::new(truth);
        let resolved = resolve(run, &gate, recordings.as_ref(), &truth, will_ask)?;
        if spec.budget.cost.is_some() && resolved.price.is_none() {
            return Err(RunError::NoPrice { model: spec.judge.model.clone() });
        }
        let (planned, jobs) = plan(spec, &resolved, &set.cases)?;
        let settings = resolved.judges.iter().map(|(mode, judge)| {
            let mut settings = judge.described();
            if let Some(recordings) = &recordings {
                settings["from_traces"] = json!(absolute(&recordings.folder)?);
            }
            Ok::<_, RunError>((*mode, settings))
        });
        let settings = settings.collect::<Result<_, _>>()?;
        let edits = spec.data.edits.as_ref().map(absolute).transpose()?;
        let record = RunRecord::new(absolute(&set.file)?, edits, planned, settings);
        let folder = match &run.sink {
            None => Some(folder::find(spec, &set.root, &record)?),
            Some(_) => None,
        };
        Ok(Self {
            recordings,
            cases: set.cases,
            unusable: set.unusable,
            gate,
            judges: resolved.judges,
            price: resolved.price,
            asked: resolved.asked,
            unavailable: resolved.unavailable,
            record,
            jobs,
            folder,
        })
    }

    /// The jobs without an outcome, and those that are wanted again.
    pub(super) fn to_do(&self, spec: &RunSpec, ledger: &Ledger) -> Result<Vec<Job>, RunError> {
        let changed = changed(&self.jobs, &self.cases, ledger);
        if let (Some((place, what)), false) = (changed.first(), spec.again.changed) {
            let (count, first) = (changed.len(), self.jobs[*place].key.clone());
            return Err(RunError::Changed { count, first, what: what.clone() });
        }
        let changed: BTreeSet<usize> = changed.into_iter().map(|(place, _)| place).collect();
        let again = |job: &Job| match ledger.lines().get(&job.key).and_then(|line| line.outcome()) {
            Some(outcome) => spec.again.outcomes.contains(&outcome),
            None => true,
        };
        let wanted = self.jobs.iter().enumerate();
        let mut wanted: BTreeSet<usize> = wanted
            .filter(|(place, job)| changed.contains(place) || again(job))
            .map(|(place, _)| place)
            .collect();
        // What another judgement decides about is made again with it: deciders come first in the list.
        let mut keys: BTreeSet<&JudgementKey> =
            wanted.iter().map(|place| &self.jobs[*place].key).collect();
        for (place, job) in self.jobs.iter().enumerate() {
            if decider(&self.judges, &job.key).is_some_and(|key| keys.contains(&key)) {
                wanted.insert(place);
                keys.insert(&job.key);
            }
        }
        Ok(wanted.into_iter().map(|place| self.jobs[place].clone()).collect())
    }
}

/// What is judged.
struct OpenSet {
    file: PathBuf,
    root: PathBuf,
    cases: Vec<Entry>,
    unusable: usize,
}

/// Opens the data set; what is wrong with it is told, and stops us unless it may be so.
fn open(run: &mut Run<'_>, recordings: Option<&Recordings>) -> Result<OpenSet, RunError> {
    let path = match (&run.spec.data.path, recordings) {
        (Some(path), _) => path,
        // What a run has judged, as a data set. That there is one or the other was checked.
        (None, recordings) => {
            let (root, cases) =
                recordings.map(|one| (one.folder.clone(), one.cases.clone())).unwrap_or_default();
            return Ok(OpenSet { file: root.join("results.jsonl"), root, cases, unusable: 0 });
        }
    };
    let set = DataSet::open(path, &run.spec.data.options())?;
    (run.tell)(Progress::Opened(&set));
    let broken = set.problems.errors();
    if broken > 0 && !run.spec.data.allow_partial {
        return Err(RunError::Broken { broken });
    }
    if set.edits() == 0 {
        return Err(RunError::NoEdits { file: set.file });
    }
    let unusable = set.records.saturating_sub(set.cases.len());
    Ok(OpenSet { file: set.file, root: set.root, cases: set.cases, unusable })
}

/// The judges of all modes, and what is known of them.
struct Resolved {
    judges: Judges,
    rubric: Arc<Rubric>,
    criteria: Vec<String>,
    price: Option<Price>,
    asked: Option<String>,
    unavailable: BTreeMap<String, String>,
}

fn resolve(
    run: &Run<'_>,
    gate: &Arc<Gate>,
    recordings: Option<&Recordings>,
    truth: &Arc<Truth>,
    will_ask: bool,
) -> Result<Resolved, RunError> {
    let Run { spec, access, .. } = run;
    // One toolbox for all modes that have tools: a detector is large.
    let with_tools = spec.modes.iter().find(|mode| **mode != Mode::Plain && recordings.is_none());
    let equipped: Arc<Toolbox> = match (&run.toolbox, with_tools) {
        (Some(own), _) => Arc::clone(own),
        (None, Some(mode)) => Arc::new(equipment::for_judge(*mode, &spec.judge.tools)?),
        (None, None) => Arc::default(),
    };
    let plain: Arc<Toolbox> = Arc::new(Toolbox::standard());
    let prompts = spec.judge.pack().map_err(SetupError::Prompt)?;
    let criteria = chosen(&prompts, &spec.criteria)?;
    // Whoever only measures needs no key.
    let asks = criteria
        .iter()
        .any(|id| prompts.criterion(id).is_ok_and(|criterion| criterion.measure.is_none()));
    let mut resolved = Resolved {
        judges: Judges::new(),
        rubric: Arc::clone(prompts.rubric()),
        criteria,
        price: None,
        asked: None,
        unavailable: equipped.unavailable().clone(),
    };
    for &mode in &spec.modes {
        let mut parts = spec.judge.resolve(mode, access, will_ask && asks)?;
        let toolbox = match recordings {
            Some(recordings) => Arc::new(recordings.equip(mode, &mut parts)?),
            None if mode == Mode::Plain => Arc::clone(&plain),
            None => Arc::clone(&equipped),
        };
        resolved.price = parts.record.price.clone();
        resolved.asked = parts.asked();
        let model = match parts.model {
            AnyModel::OpenAi(model) => AnyModel::OpenAi(Box::new(model.behind(Arc::clone(gate)))),
            rules @ AnyModel::Rules(_) => rules,
            AnyModel::Simulated(model) => {
                let model = model.knowing(Arc::clone(truth));
                parts.record = model.record(parts.record.dialect);
                AnyModel::Simulated(model)
            }
        };
        let judge = Judge::new(model, parts.record, parts.pack, toolbox, parts.settings);
        for criterion in &resolved.criteria {
            judge.can_judge_by(criterion)?;
        }
        resolved.judges.insert(mode, judge);
    }
    Ok(resolved)
}

/// The ids of the criteria to judge by: those that are named, or all.
pub(crate) fn chosen(pack: &Pack, wanted: &[String]) -> Result<Vec<String>, RunError> {
    let ids = || pack.criteria().iter().map(|criterion| criterion.id.clone());
    if wanted.is_empty() {
        return Ok(ids().collect());
    }
    for id in wanted {
        pack.criterion(id).map_err(SetupError::Prompt)?;
    }
    Ok(ids().filter(|id| wanted.contains(id)).collect())
}

/// Which judgements are wanted, and those of our shard as jobs.
fn plan(
    spec: &RunSpec,
    resolved: &Resolved,
    cases: &[Entry],
) -> Result<(Planned, Vec<Job>), RunError> {
    let edits = spec.select.edits(cases)?;
    let criteria: Vec<&Criterion> =
        resolved.criteria.iter().filter_map(|id| resolved.rubric.criterion(id)).collect();
    let unmarked = |(place, _): &&(usize, Vec<&str>)| {
        let case = &cases[*place].case;
        let oracle = criteria.iter().filter(|one| one.applies_to(&case.facts));
        oracle.filter_map(|one| one.modes.get(&Mode::Oracle)).any(|shown| match &shown.ask {
            Ask::Targets { region, .. } => case.region(region).is_empty(),
            Ask::Whole | Ask::Questions => false,
        })
    };
    let without = edits.iter().filter(unmarked).count();
    if without > 0 && spec.modes.contains(&Mode::Oracle) && !spec.data.allow_partial {
        return Err(RunError::NoBoxes { without, all: edits.len() });
    }
    let conditional = criteria.iter().filter(|one| !one.applies.is_empty());
    let named = |(place, editors): &(usize, Vec<&str>)| {
        let editors = editors.iter().map(|&editor| editor.to_owned());
        (cases[*place].case.id.clone(), editors.collect())
    };
    let planned = Planned {
        criteria: resolved.criteria.iter().cloned().collect(),
        applies: conditional.map(|one| (one.id.clone(), one.applies.clone())).collect(),
        modes: spec.modes.clone(),
        repeats: spec.repeats,
        edits: edits.iter().map(named).collect(),
        facts: edits.iter().map(|(place, _)| cases[*place].known()).collect(),
        shard: spec.select.shard,
    };
    let mut jobs = Vec::new();
    for (place, editors) in edits {
        let id = &cases[place].case.id;
        let ours = |editor: &&str| spec.select.shard.is_none_or(|shard| shard.has(id, editor));
        for editor in editors.into_iter().filter(ours) {
            let mut keys: Vec<JudgementKey> = planned.keys_of(id, editor).collect();
            // Whatever decides about another comes before it.
            keys.sort_by_key(|key| resolved.rubric.deciders(&key.criterion));
            jobs.extend(keys.into_iter().map(|key| Job { case: place, key }));
        }
    }
    if jobs.is_empty() && spec.select.shard.is_none() {
        return Err(RunError::Nothing);
    }
    Ok((planned, jobs))
}

/// The judgement that decides whether this one is asked for, if there is one.
pub(super) fn decider(judges: &Judges, key: &JudgementKey) -> Option<JudgementKey> {
    let criterion = judges.get(&key.mode)?.pack().criterion(&key.criterion).ok()?;
    let skip = criterion.skip.as_ref()?;
    Some(JudgementKey { criterion: skip.criterion.clone(), ..key.clone() })
}

fn absolute(path: &PathBuf) -> anyhow::Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}

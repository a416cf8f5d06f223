//! By what the judgements of a run were made: the packs that its traces keep.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use super::reader::Bundle;
use super::results::ResultLine;
use crate::prompt::{Pack, Rubric};

/// What the judgements of a run were made by. Every analysis reads this, and never a pack of its own.
#[derive(Debug, Clone)]
pub struct Rubrics {
    /// By the name of the prompts, as lines have it.
    own: BTreeMap<String, Arc<Rubric>>,
    otherwise: Arc<Rubric>,
    /// What was not found, in words.
    pub notes: Vec<String>,
}

impl Rubrics {
    /// The same for every line.
    pub fn only(rubric: Arc<Rubric>) -> Self {
        Self { own: BTreeMap::new(), otherwise: rubric, notes: Vec::new() }
    }

    /// Those of the run at `path`, from one trace for each of the prompts that its lines name. Lines
    /// without prompts, and prompts that are nowhere to be found, are read by `otherwise`.
    pub fn of_run(path: &Path, lines: &[ResultLine], otherwise: &Arc<Rubric>) -> Self {
        let mut rubrics = Self::only(Arc::clone(otherwise));
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
        let mut named: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for line in lines {
            if let Some(prompts) = line.prompts.as_deref() {
                named.entry(prompts).or_default().extend(line.trace.as_deref());
            }
        }
        for (prompts, traces) in named {
            match rubric(folder, prompts, &traces) {
                Some(rubric) => drop(rubrics.own.insert(prompts.to_owned(), rubric)),
                None => rubrics.notes.push(format!(
                    "{}: no trace has the prompts {prompts}; its lines are read by another pack",
                    path.display()
                )),
            }
        }
        rubrics
    }

    /// What a line with these prompts was judged by.
    pub fn of(&self, prompts: Option<&str>) -> &Arc<Rubric> {
        prompts.and_then(|prompts| self.own.get(prompts)).unwrap_or(&self.otherwise)
    }
}

/// So many traces are tried: where the first ones are damaged, a later one may not be.
const MOST_TRIED: usize = 5;

fn rubric(folder: &Path, prompts: &str, traces: &[&str]) -> Option<Arc<Rubric>> {
    let inside = |trace: &&&str| {
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        !trace.is_empty() && Path::new(trace).components().all(is_name)
    };
    let recorded = traces
        .iter()
        .filter(inside)
        .take(MOST_TRIED)
        .find_map(|trace| Bundle::read(&folder.join(trace)).ok()?.prompts().ok());
    // A released pack is never edited: its hash says that it is the one in this program.
    let built_in = || {
        let (id, hash) = prompts.rsplit_once('@')?;
        let pack = Pack::embedded(id).ok()?;
        pack.hash.as_str().starts_with(hash).then_some(pack)
    };
    Some(Arc::clone(recorded.or_else(built_in)?.rubric()))
}

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
    /// By the name of the prompts and their variant, as lines have them.
    own: BTreeMap<(String, Option<String>), Arc<Rubric>>,
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
        let mut named: BTreeMap<(&str, Option<&str>), Vec<&str>> = BTreeMap::new();
        for line in lines {
            if let Some(prompts) = line.prompts.as_deref() {
                let key = (prompts, line.variant.as_deref());
                named.entry(key).or_default().extend(line.trace.as_deref());
            }
        }
        for ((prompts, variant), traces) in named {
            match rubric(folder, prompts, variant, &traces) {
                Some(rubric) => {
                    let key = (prompts.to_owned(), variant.map(str::to_owned));
                    rubrics.own.insert(key, rubric);
                }
                None => rubrics.notes.push(format!(
                    "{}: no trace has the prompts {prompts}; its lines are read by another pack",
                    path.display()
                )),
            }
        }
        rubrics
    }

    /// What a line was judged by.
    pub fn of(&self, line: &ResultLine) -> &Arc<Rubric> {
        let key = line.prompts.clone().map(|prompts| (prompts, line.variant.clone()));
        key.and_then(|key| self.own.get(&key)).unwrap_or(&self.otherwise)
    }

    /// What the first of these lines that names its prompts was judged by.
    pub fn of_first(&self, lines: &[ResultLine]) -> &Arc<Rubric> {
        let first = lines.iter().find(|line| line.prompts.is_some());
        first.map_or(&self.otherwise, |line| self.of(line))
    }
}

/// So many traces are tried: where the first ones are damaged, a later one may not be.
const MOST_TRIED: usize = 5;

fn rubric(
    folder: &Path,
    prompts: &str,
    variant: Option<&str>,
    traces: &[&str],
) -> Option<Arc<Rubric>> {
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
        pack.hash.as_str().starts_with(hash).then_some(pack)?.varied(variant).ok()
    };
    Some(Arc::clone(recorded.or_else(built_in)?.rubric()))
}

//! `deeplook experiment`: prompts, models, modes and tools against each other on the same edits.

mod report;
mod run;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::agreement::{Labels, Ranking, Truth};
use crate::cli::ExperimentCommand;
use crate::dataset::Entry;
use crate::experiment::analysis::RightAnswers;
use crate::experiment::sample::Choice;
use crate::prompt::Pack;

/// What an experiment's folder is known by.
const RECORD: &str = "experiment.json";

pub(super) fn run(command: &ExperimentCommand) -> anyhow::Result<ExitCode> {
    match command {
        ExperimentCommand::Run(args) => run::run(args),
        ExperimentCommand::Report { folder, labels, out, json } => {
            report::run(folder, labels.as_deref(), out.as_deref(), *json)
        }
        ExperimentCommand::Watch(args) => watch::run(args),
    }
}

/// `experiment.json`: what the report must know.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    name: String,
    /// What is right, if a file says it: its copy in the experiment's folder.
    labels: Option<PathBuf>,
    /// The number of the cell that the others are compared with.
    baseline: usize,
    cells: Vec<CellRecord>,
    /// How many edits every cell judges.
    edits: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct CellRecord {
    name: String,
    /// The folder of its run, under the experiment's.
    run: PathBuf,
}

/// What is right: what most annotators say, as a label, or as a number where there are no labels.
fn truth(path: &Path, rankings: &[Ranking]) -> anyhow::Result<RightAnswers> {
    let labels = Labels::read(path, rankings)?;
    let mut truth = RightAnswers::new();
    for item in labels.items.keys() {
        let Some(rank) = labels.truth(item, Truth::Majority) else { continue };
        let ranking = Ranking::find(rankings, &item.criterion);
        let known = ranking.map_or(&[][..], |ranking| &ranking.labels);
        let label = known.iter().find(|(_, other)| *other == rank).map(|(name, _)| name.clone());
        let label = label.or_else(|| known.is_empty().then(|| rank.to_string()));
        truth.extend(label.map(|label| (item.clone(), label)));
    }
    Ok(truth)
}

/// What people's labels are read by: the criteria of a pack.
fn rankings(pack: &str, variant: Option<&str>) -> anyhow::Result<Vec<Ranking>> {
    Ok(Ranking::of_rubric(Pack::find_varied(pack, variant)?.rubric()))
}

/// The edits of some cases, to choose from.
fn choices(cases: &[Entry], truth: &RightAnswers) -> Vec<Choice> {
    let mut labels: BTreeMap<(&str, &str), &String> = BTreeMap::new();
    for (item, label) in truth {
        labels.entry((&item.case, &item.editor)).or_insert(label);
    }
    let mut choices = Vec::new();
    for entry in cases {
        let case = &entry.case;
        let area = entry.smallest_share();
        for editor in entry.edits().keys() {
            let label = labels.get(&(case.id.as_str(), editor));
            choices.push(Choice {
                case: case.id.clone(),
                editor: editor.to_owned(),
                facts: case.facts.clone(),
                label: label.map(|label| (*label).clone()),
                area,
            });
        }
    }
    choices
}

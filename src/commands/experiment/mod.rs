//! `deeplook experiment`: prompts, models, modes and tools against each other on the same edits.

mod report;
mod run;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use crate::agreement::{Labels, Scale, Truth as Annotators};
use crate::cli::ExperimentCommand;
use crate::dataset::Case;
use crate::experiment::analysis::Truth;
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
    /// What is right, if a file says it.
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

/// What is right: what most annotators say.
fn truth(path: &Path) -> anyhow::Result<Truth> {
    let pack = Pack::embedded(crate::prompt::DEFAULT)?;
    let labels = Labels::read(path, &Scale::of_pack(&pack))?;
    let mut truth = Truth::new();
    for item in labels.items.keys() {
        let rank = labels.truth(item, Annotators::Majority);
        let criterion = pack.criterion(&item.criterion)?;
        let label = criterion.labels().iter().find(|label| Some(f64::from(label.rank)) == rank);
        if let Some(label) = label {
            let unit = (item.case.clone(), item.editor.clone(), item.criterion.clone());
            truth.insert(unit, label.name.clone());
        }
    }
    Ok(truth)
}

/// The edits of some cases, to choose from.
fn choices(cases: &[Case], truth: &Truth) -> Vec<Choice> {
    let mut choices = Vec::new();
    for case in cases {
        let area = case.boxes.iter().map(|area| area.area()).reduce(f64::min);
        for editor in case.edits.keys() {
            let unit = (case.id.clone(), editor.clone(), String::new());
            let label = truth.range(unit..).next();
            let label = label.filter(|((of, by, _), _)| *of == case.id && by == editor);
            choices.push(Choice {
                case: case.id.clone(),
                editor: editor.clone(),
                kind: case.kind.clone(),
                label: label.map(|(_, label)| label.clone()),
                area,
            });
        }
    }
    choices
}

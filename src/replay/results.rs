//! `results.jsonl` beside the traces: what it says must follow from them.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::walk::{NOWHERE, Walk};
use crate::trace::ResultLine;

/// The lines of each run that was looked into, by the folder of their trace.
#[derive(Debug, Default)]
pub(super) struct Results(Mutex<HashMap<PathBuf, Arc<Lines>>>);

type Lines = HashMap<String, Vec<ResultLine>>;

impl Results {
    fn of(&self, run: &Path) -> Arc<Lines> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = known.entry(run.to_owned());
        Arc::clone(lines.or_insert_with(|| Arc::new(read(run).unwrap_or_default())))
    }
}

impl Walk<'_> {
    /// Compares the line of the run's results, if there is one, with what the trace amounts to.
    pub(super) fn check_results(&mut self, results: &Results) {
        let bundle = self.bundle;
        let Ok(whole) = std::path::absolute(&bundle.folder) else { return };
        let (Some(name), Some(judgements)) = (whole.file_name(), whole.parent()) else { return };
        let (Some(folder), Some(run)) = (judgements.file_name(), judgements.parent()) else {
            return;
        };
        let trace = format!("{}/{}", folder.to_string_lossy(), name.to_string_lossy());
        let lines = results.of(run);
        let today = ResultLine::of(&bundle.manifest, &bundle.events, &trace, &bundle.digest);
        for line in lines.get(&trace).into_iter().flatten() {
            self.compare(NOWHERE, "results.jsonl", line, &today);
        }
    }
}

/// The traces that the results of a run name and that are not there.
pub fn missing_traces(run: &Path) -> Vec<String> {
    let named = read(run).unwrap_or_default().into_keys();
    let gone = named.filter(|trace| !run.join(trace).join("manifest.json").is_file());
    gone.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A line that cannot be read is not about any trace.
fn read(run: &Path) -> io::Result<Lines> {
    let mut lines = Lines::new();
    for line in BufReader::new(File::open(run.join("results.jsonl"))?).lines() {
        let Ok(line) = serde_json::from_str::<ResultLine>(&line?) else { continue };
        if let Some(trace) = line.trace.clone() {
            lines.entry(trace).or_default().push(line);
        }
    }
    Ok(lines)
}

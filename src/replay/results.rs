//! `results.jsonl` beside the traces: what it says must follow from them.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::walk::{NOWHERE, Walk};
use crate::received::{self, LARGEST_RESULTS};
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
        let today = ResultLine::of(&self.account, Some(&bundle.kept()));
        for line in lines.get(&trace).into_iter().flatten() {
            self.compare(NOWHERE, "results.jsonl", line, &today);
        }
    }
}

/// The traces that the results of a run name and that are not there.
pub fn missing_traces(run: &Path) -> Vec<String> {
    let named = read(run).unwrap_or_default().into_keys();
    let is_gone = |trace: &String| {
        let folder = received::folder_below(run, trace);
        folder.is_none_or(|folder| !received::is_there(&folder.join("manifest.json")))
    };
    let gone = named.filter(is_gone);
    gone.collect::<BTreeSet<_>>().into_iter().collect()
}

/// A line that cannot be read is not about any trace.
fn read(run: &Path) -> io::Result<Lines> {
    let mut lines = Lines::new();
    let text = received::read(&run.join("results.jsonl"), LARGEST_RESULTS)?;
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<ResultLine>(line) else { continue };
        if let Some(trace) = line.trace.clone() {
            lines.entry(trace).or_default().push(line);
        }
    }
    Ok(lines)
}

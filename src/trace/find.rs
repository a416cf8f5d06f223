//! Finding traces: a bundle, a run, or any folder that holds them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::reader::{TraceError, is_unbegun};
use crate::received;

/// How deep folders of runs may lie in each other.
const DEEPEST: usize = 8;

/// A folder with bundles that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRun {
    /// The folder of the run; for a bundle that is in none, the bundle's own.
    pub folder: PathBuf,
    /// The folders of its bundles, by name.
    pub bundles: Vec<PathBuf>,
    /// The folders of judgements that were interrupted before anything was recorded.
    pub unbegun: Vec<PathBuf>,
    /// Its `results.jsonl`, if it has one and the whole run was asked for.
    pub results: Option<PathBuf>,
}

impl FoundRun {
    fn of(folder: PathBuf, judgements: Vec<PathBuf>, results: Option<PathBuf>) -> Self {
        let (unbegun, bundles) = judgements.into_iter().partition(|folder| is_unbegun(folder));
        Self { folder, bundles, unbegun, results }
    }
}

/// Everything that `path` holds: one bundle, one run, or the runs and bundles below it. Links are
/// not followed: a trace from elsewhere must not lead anywhere else.
pub fn find(path: &Path) -> Result<Vec<FoundRun>, TraceError> {
    let unreadable = |source| TraceError::Unreadable { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::NotADirectory.into()));
    }
    let mut found = Vec::new();
    let run = run_of(path);
    if is_bundle(path) || run.is_some() && is_unbegun(path) {
        let folder = run.unwrap_or_else(|| path.to_owned());
        found.push(FoundRun::of(folder, vec![path.to_owned()], None));
    } else {
        search(path, DEEPEST, &mut found)?;
    }
    if found.is_empty() {
        return Err(TraceError::Nothing { path: path.to_owned() });
    }
    Ok(found)
}

fn is_bundle(folder: &Path) -> bool {
    // Also what cannot be opened: whoever reads it says so.
    ["manifest.json", "events.jsonl"].iter().any(|name| received::is_there(&folder.join(name)))
}

/// The run that a bundle is in.
fn run_of(bundle: &Path) -> Option<PathBuf> {
    let whole = fs::canonicalize(bundle).ok()?;
    let judgements = whole.parent().filter(|parent| parent.ends_with("judgements"))?;
    judgements.parent().map(Path::to_owned)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<FoundRun>) -> Result<(), TraceError> {
    let judgements = folder.join("judgements");
    let results = folder.join("results.jsonl");
    let results = received::is_there(&results).then_some(results);
    let has_judgements = received::is_folder(&judgements);
    if has_judgements || results.is_some() {
        let bundles = if has_judgements { folders_in(&judgements)? } else { Vec::new() };
        found.push(FoundRun::of(folder.to_owned(), bundles, results));
        return Ok(());
    }
    let mut alone = Vec::new();
    for inner in folders_in(folder)? {
        if is_bundle(&inner) {
            alone.push(inner);
        } else if depth > 0 {
            search(&inner, depth - 1, found)?;
        }
    }
    found.extend(alone.into_iter().map(|bundle| FoundRun::of(bundle.clone(), vec![bundle], None)));
    Ok(())
}

/// The folders in a folder, by name, without hidden ones and links.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let unreadable = |source| TraceError::Unreadable { path: folder.to_owned(), source };
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !hidden && entry.file_type().map_err(unreadable)?.is_dir() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(path: &Path) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("manifest.json"), "{}").unwrap();
    }

    #[test]
    fn bundles_runs_and_folders_of_them_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        bundle(&root.join("deep/run a/judgements/one"));
        bundle(&root.join("deep/run a/judgements/two"));
        fs::write(root.join("deep/run a/results.jsonl"), "").unwrap();
        bundle(&root.join("sent/alone"));
        let runs = find(&root).unwrap();
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[0].folder, root.join("deep/run a"));
        assert_eq!(runs[0].bundles.len(), 2);
        assert!(runs[0].results.is_some());
        assert_eq!(runs[1].bundles, [root.join("sent/alone")]);

        let one = find(&root.join("deep/run a/judgements/one")).unwrap();
        assert_eq!(one[0].folder, root.join("deep/run a"));
        assert_eq!(one[0].bundles, [root.join("deep/run a/judgements/one")]);
        assert_eq!(one[0].results, None);
    }

    #[test]
    fn what_was_killed_before_its_first_event_is_no_bundle() {
        let root = tempfile::tempdir().unwrap();
        let run = fs::canonicalize(root.path()).unwrap();
        bundle(&run.join("judgements/whole"));
        let empty = run.join("judgements/empty");
        fs::create_dir(&empty).unwrap();
        let begun = run.join("judgements/no-manifest");
        fs::create_dir(&begun).unwrap();
        fs::write(begun.join("events.jsonl"), "").unwrap();
        fs::write(begun.join(".manifest.json.1-0.part"), "{").unwrap();
        let found = find(&run).unwrap();
        assert_eq!(found[0].bundles, [run.join("judgements/whole")]);
        assert_eq!(found[0].unbegun, [empty.clone(), begun]);
        let found = find(&empty).unwrap();
        assert_eq!((found[0].bundles.len(), &found[0].unbegun), (0, &vec![empty]));
    }

    #[test]
    fn what_holds_no_trace_is_an_error_and_links_lead_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(matches!(find(&empty), Err(TraceError::Nothing { .. })));
        assert!(matches!(find(&root.path().join("no")), Err(TraceError::Unreadable { .. })));
        bundle(&root.path().join("other/judgements/one"));
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path().join("other"), empty.join("link")).unwrap();
        assert!(matches!(find(&empty), Err(TraceError::Nothing { .. })));
    }
}

//! The list: one row for each judgement, made of `results.jsonl` or, where a run has none, of its
//! traces. Rows stay in memory; the traces themselves are only read when somebody looks at one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use super::pictures::Pictures;
use super::query::{Codes, Values};
use crate::received::{self, LARGEST_RESULTS};
use crate::trace::{Bundle, FoundRun, OutcomeName, ResultLine, TraceError, Worths, find};
use crate::visible::visible;

/// Everything that can be looked at.
#[derive(Debug)]
pub(crate) struct Index {
    /// What was asked for, for the title.
    pub(super) title: String,
    root: PathBuf,
    pub(super) entries: Vec<Entry>,
    /// What the filters offer.
    pub(super) values: Values,
    pub(super) pictures: Pictures,
    by_case: BTreeMap<String, Vec<usize>>,
}

/// A judgement in the list.
#[derive(Debug)]
pub(super) struct Entry {
    /// What the list shows of it.
    pub(super) row: IndexRow,
    /// Where its trace is; lines from elsewhere have none.
    pub(super) bundle: Option<PathBuf>,
    /// The line of `results.jsonl`, if it came from there.
    pub(super) line: Option<ResultLine>,
    /// What the search looks through, in lower case.
    pub(super) searched: String,
    /// The place of its case among all cases.
    pub(super) case_rank: usize,
    /// What the filters compare.
    pub(super) codes: Codes,
}

/// What the list shows of a judgement. All texts are fit for showing.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct IndexRow {
    /// Its number, which is its address.
    pub(super) n: usize,
    pub(super) run: String,
    pub(super) case: String,
    pub(super) editor: String,
    pub(super) instruction: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) criterion: String,
    pub(super) mode: String,
    pub(super) model: String,
    pub(super) repeat: u32,
    /// One of the four outcomes, or `interrupted`, or `unreadable`.
    pub(super) outcome: &'static str,
    pub(super) label: String,
    pub(super) score: Option<f64>,
    /// 3 is best, 0 is worst.
    pub(super) level: Option<u8>,
    /// Why there is no verdict.
    pub(super) reason: String,
    pub(super) turns: Option<u32>,
    pub(super) tokens: Option<u64>,
    pub(super) seconds: Option<f64>,
    pub(super) cost: Option<f64>,
    /// `repeats` or `judges` where other verdicts on the same edit differ.
    pub(super) differ: &'static str,
}

impl Index {
    /// The judgements under `path`; `progress` is told of each trace that had to be read.
    pub(crate) fn open(path: &Path, progress: &(dyn Fn() + Sync)) -> Result<Self, TraceError> {
        let root = fs::canonicalize(path)
            .map_err(|source| TraceError::Unreadable { path: path.to_owned(), source })?;
        let runs = find(&root)?;
        let mut entries = Vec::new();
        let mut pictures = Pictures::default();
        for run in &runs {
            let name = run.folder.strip_prefix(&root).unwrap_or(Path::new(""));
            let name = visible(&name.display().to_string());
            let (read, left) = lines_of(&root, run);
            let left: Vec<Entry> = left
                .into_par_iter()
                .map(|bundle| {
                    let entry = entry_of(&root, bundle);
                    progress();
                    entry
                })
                .collect();
            let told: BTreeSet<&PathBuf> =
                read.iter().filter_map(|entry| entry.bundle.as_ref()).collect();
            let unbegun = run.unbegun.iter().filter(|folder| !told.contains(folder));
            let unbegun: Vec<Entry> = unbegun.map(|folder| Entry::unbegun(folder)).collect();
            for mut entry in read.into_iter().chain(left).chain(unbegun) {
                entry.row.run.clone_from(&name);
                entries.push(entry);
            }
            let own = run.bundles.iter().chain([&run.folder]).map(|folder| folder.join("blobs"));
            let own: BTreeSet<PathBuf> = own.filter(|blobs| received::is_folder(blobs)).collect();
            own.into_iter().for_each(|blobs| pictures.add(blobs));
        }
        rank_cases(&mut entries);
        // What belongs together stands together.
        entries.sort_by(|a, b| order(a).cmp(&order(b)));
        let mut by_case: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (n, entry) in entries.iter_mut().enumerate() {
            entry.row.n = n;
            by_case.entry(entry.row.case.clone()).or_default().push(n);
        }
        mark_differences(&mut entries);
        let values = Values::number(&mut entries);
        let title = root.file_name().unwrap_or_default().to_string_lossy();
        let title = visible(&title);
        Ok(Self { title, root, entries, values, pictures, by_case })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An error in words for a page.
    pub(super) fn told(&self, error: &TraceError) -> String {
        visible(&below(&self.root, error))
    }

    /// The judgements of the same case.
    pub(super) fn siblings(&self, n: usize) -> impl Iterator<Item = &IndexRow> {
        let numbers = self.entries.get(n).and_then(|entry| self.by_case.get(&entry.row.case));
        numbers.into_iter().flatten().map(|&n| &self.entries[n].row)
    }
}

/// An error with paths as seen from `root`: where it lies on this machine is nobody's business.
fn below(root: &Path, error: &TraceError) -> String {
    let root = format!("{}{}", root.display(), std::path::MAIN_SEPARATOR);
    error.to_string().replace(&root, "")
}

/// The order of the list before anybody sorts it.
fn order(entry: &Entry) -> impl Ord + '_ {
    let row = &entry.row;
    (&row.run, entry.case_rank, &row.editor, &row.criterion, &row.mode, &row.model, row.repeat)
}

fn rank_cases(entries: &mut [Entry]) {
    let cases: BTreeSet<&str> = entries.iter().map(|entry| entry.row.case.as_str()).collect();
    let mut cases: Vec<(Vec<(u128, String)>, String)> =
        cases.into_iter().map(|case| (natural(case), case.to_owned())).collect();
    cases.sort();
    let ranks: BTreeMap<&str, usize> =
        cases.iter().enumerate().map(|(rank, (_, case))| (case.as_str(), rank)).collect();
    for entry in entries {
        entry.case_rank = ranks.get(entry.row.case.as_str()).copied().unwrap_or_default();
    }
}

/// Names in the order in which people count: `case 9` before `case 10`.
fn natural(text: &str) -> Vec<(u128, String)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let word = rest[digits..].find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len() - digits);
        let number = rest[..digits].parse().unwrap_or(if digits == 0 { 0 } else { u128::MAX });
        pieces.push((number, rest[digits..digits + word].to_lowercase()));
        rest = &rest[digits + word..];
    }
    pieces
}

/// The entries that `results.jsonl` has, and the bundles that it does not tell of: those of a run
/// that is under way or was stopped.
fn lines_of(root: &Path, run: &FoundRun) -> (Vec<Entry>, Vec<PathBuf>) {
    let mut left: BTreeSet<&PathBuf> = run.bundles.iter().collect();
    let (mut entries, mut worths) = (Vec::new(), Worths::default());
    if let Some(path) = &run.results {
        let text = received::read(path, LARGEST_RESULTS).unwrap_or_else(|source| {
            let error = TraceError::Unreadable { path: path.clone(), source };
            entries.push(Entry::unreadable("results.jsonl", None, &below(root, &error)));
            Vec::new()
        });
        // A last line without its end was cut off in the middle; its trace tells of it.
        for (number, line) in text.split_inclusive(|&b| b == b'\n').enumerate() {
            if !line.ends_with(b"\n") || line.trim_ascii().is_empty() {
                continue;
            }
            let read =
                serde_json::from_slice::<ResultLine>(line).map_err(|error| error.to_string());
            match read.and_then(|line| worths.check(&line).map(|()| line)) {
                Ok(line) => {
                    let bundle = line.trace.as_deref().map(|trace| inside(&run.folder, trace));
                    let (bundle, problem) = match bundle {
                        Some(Ok(bundle)) => (Some(bundle), None),
                        Some(Err(problem)) => (None, Some(problem)),
                        None => (None, None),
                    };
                    if let Some(bundle) = &bundle {
                        left.remove(bundle);
                    }
                    let mut entry = Entry::new(line, bundle);
                    if let Some(problem) = problem {
                        entry.row.reason = problem;
                    }
                    entries.push(entry);
                }
                Err(error) => {
                    let name = format!("results.jsonl, line {}", number + 1);
                    entries.push(Entry::unreadable(&name, None, &error));
                }
            }
        }
    }
    (entries, left.into_iter().cloned().collect())
}

/// The folder `trace` of a run, also one that is gone; a path that leads out of the run, itself or
/// through a link, is refused.
fn inside(run: &Path, trace: &str) -> Result<PathBuf, String> {
    let bundle = run.join(trace);
    let stays = received::stays_below(Path::new(trace));
    if !stays || received::is_there(&bundle) && received::folder_below(run, trace).is_none() {
        return Err(format!("its trace, {}, is not in the run: refused", visible(trace)));
    }
    Ok(bundle)
}

fn entry_of(root: &Path, bundle: PathBuf) -> Entry {
    let read = Bundle::read(&bundle).map_err(|error| below(root, &error));
    let line = read.and_then(|read| {
        let line = ResultLine::of_bundle(&read);
        let sound = Worths::default().check(&line);
        sound.map(|()| line).map_err(|problem| format!("it tells what cannot be: {problem}"))
    });
    match line {
        Ok(line) => Entry { line: None, ..Entry::new(line, Some(bundle)) },
        Err(problem) => {
            let name = bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Entry::unreadable(&name, Some(bundle), &problem)
        }
    }
}

impl Entry {
    fn new(line: ResultLine, bundle: Option<PathBuf>) -> Self {
        let shown = |text: &Option<String>| text.as_deref().map(visible).unwrap_or_default();
        let usage = line.usage;
        let tokens = usage.prompt_tokens.or(usage.completion_tokens).map(|_| {
            let count = |tokens: Option<u64>| tokens.unwrap_or(0);
            count(usage.prompt_tokens).saturating_add(count(usage.completion_tokens))
        });
        let row = IndexRow {
            case: visible(&line.case),
            editor: shown(&line.editor),
            instruction: shown(&line.instruction),
            kind: shown(&line.kind),
            criterion: visible(&line.criterion),
            mode: line.mode.map(|mode| mode.to_string()).unwrap_or_default(),
            model: shown(&line.model),
            repeat: line.repeat,
            outcome: outcome_name(line.outcome()),
            label: shown(&line.label),
            score: line.score,
            level: line.score.map(level),
            reason: shown(&line.reason),
            turns: line.turns,
            tokens,
            seconds: line.seconds,
            cost: line.cost,
            ..IndexRow::default()
        };
        let searched = searched(&row);
        Self { row, bundle, line: Some(line), searched, case_rank: 0, codes: Codes::default() }
    }

    /// A judgement that was interrupted before anything was recorded.
    fn unbegun(folder: &Path) -> Self {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let reason = "it was interrupted before anything was recorded";
        let mut entry = Self::unreadable(&name, Some(folder.to_owned()), reason);
        entry.row.outcome = outcome_name(None);
        entry
    }

    fn unreadable(name: &str, bundle: Option<PathBuf>, problem: &str) -> Self {
        let row = IndexRow {
            case: visible(name),
            outcome: "unreadable",
            reason: visible(problem),
            ..IndexRow::default()
        };
        let searched = searched(&row);
        Self { row, bundle, line: None, searched, case_rank: 0, codes: Codes::default() }
    }
}

fn searched(row: &IndexRow) -> String {
    [&row.case, &row.instruction, &row.editor, &row.label, &row.model, &row.reason]
        .map(|text| text.to_lowercase())
        .join("\n")
}

/// `interrupted` where there is no outcome.
pub(super) fn outcome_name(outcome: Option<OutcomeName>) -> &'static str {
    match outcome {
        Some(OutcomeName::Verdict) => "verdict",
        Some(OutcomeName::Abstained) => "abstained",
        Some(OutcomeName::Failed) => "failed",
        Some(OutcomeName::Missing) => "missing",
        None => "interrupted",
    }
}

/// Scores in the four steps that have colours, as in the terminal.
pub(super) fn level(score: f64) -> u8 {
    match score {
        score if score >= 99.0 => 3,
        score if score >= 60.0 => 2,
        score if score >= 30.0 => 1,
        _ => 0,
    }
}

/// Marks verdicts on the same edit by the same criterion that are not the same label: among
/// repetitions of one judge, else between judges (models, modes, runs).
fn mark_differences(entries: &mut [Entry]) {
    let mut marks = Vec::new();
    let mut mark = |name: &'static str, key: fn(&IndexRow) -> [&str; 6]| {
        let mut groups: BTreeMap<[&str; 6], Vec<&IndexRow>> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.row.outcome == "verdict") {
            groups.entry(key(&entry.row)).or_default().push(&entry.row);
        }
        for group in groups.values() {
            if group.iter().any(|row| row.label != group[0].label) {
                marks.extend(group.iter().map(|row| (row.n, name)));
            }
        }
    };
    mark("judges", |row| [&row.case, &row.editor, &row.criterion, "", "", ""]);
    // Later, so that it wins: that one judge is not sure says more.
    mark("repeats", |row| {
        [&row.case, &row.editor, &row.criterion, &row.run, &row.model, &row.mode]
    });
    for (n, name) in marks {
        entries[n].row.differ = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_as_people_do() {
        let mut names = vec!["case 10", "case 9", "Case 1", "x", "2", "10"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["Case 1", "case 9", "case 10", "x", "2", "10"]);
        assert_eq!(natural("99999999999999999999999999999999999999999999")[0].0, u128::MAX);
    }

    #[test]
    fn a_trace_outside_of_its_run_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let run = root.join("run");
        fs::create_dir_all(run.join("judgements/one")).unwrap();
        fs::create_dir_all(root.join("other")).unwrap();
        assert_eq!(inside(&run, "judgements/one"), Ok(run.join("judgements/one")));
        for trace in ["../other", "/etc", "judgements/../../other", "", ".", "judgements/./.."] {
            assert!(inside(&run, trace).is_err(), "{trace}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("other"), run.join("judgements/link")).unwrap();
            assert!(inside(&run, "judgements/link").is_err());
        }
    }

    #[test]
    fn differences_are_told_apart() {
        let entry = |model: &str, repeat: u32, label: &str| {
            let line = serde_json::json!({
                "case": "1", "criterion": "if", "model": model, "repeat": repeat, "label": label,
            });
            Entry::new(serde_json::from_value(line).unwrap(), None)
        };
        let mut entries = vec![entry("a", 0, "Good"), entry("a", 1, "Bad"), entry("b", 0, "Good")];
        for (n, entry) in entries.iter_mut().enumerate() {
            entry.row.n = n;
        }
        mark_differences(&mut entries);
        let differ: Vec<&str> = entries.iter().map(|entry| entry.row.differ).collect();
        assert_eq!(differ, ["repeats", "repeats", "judges"]);
    }
}

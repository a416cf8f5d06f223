//! The outputs of editors by a pattern of their names, such as `out/{editor}/{id}_*.png`.
//!
//! `{editor}` names who edited, `{id}` and `{source}` the case (`{source}` is the name of its source
//! picture without the ending), and any other name a fact of it, such as `{type}`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use rayon::prelude::*;

use super::cases::stem;
use super::edits::{self, EditorFiles, SOMEBODY};
use super::pattern::{Fitting, Pattern};
use super::problem::{DataSetError, Problems, listed, shown};
use super::root::Root;
use super::{Entry, PictureFile};

const EDITOR: &str = "editor";

/// Which outputs are looked for.
pub(super) struct Wanted<'a> {
    /// Where the pattern starts.
    pub(super) base: &'a Path,
    pub(super) pattern: &'a str,
    /// Folders that look like an editor's and are none.
    pub(super) except: &'a [String],
}

/// Finds the outputs and puts them into the cases; `None` where no file fits the pattern.
pub(super) fn find(
    wanted: &Wanted<'_>,
    cases: &mut [Entry],
    problems: &mut Problems,
) -> Result<Option<Vec<EditorFiles>>, DataSetError> {
    let fail = |what: String| DataSetError::Edits { folder: wanted.pattern.into(), what };
    let pattern = Pattern::parse(wanted.pattern).map_err(fail)?;
    let names: Vec<&str> = pattern.names().into_iter().filter(|name| *name != EDITOR).collect();
    if names.is_empty() {
        return Err(fail("it does not say which case a file belongs to; add {id}".to_owned()));
    }
    let mut by_key: HashMap<Vec<String>, Vec<usize>> = HashMap::new();
    for (place, entry) in cases.iter().enumerate() {
        if let Some(key) = names.iter().map(|name| value(entry, name)).collect() {
            by_key.entry(key).or_default().push(place);
        }
    }
    if by_key.is_empty() {
        let known = cases.first().map(|entry| &entry.case.facts).into_iter().flatten();
        let known = ["id", "source"].into_iter().chain(known.map(|(name, _)| name));
        return Err(fail(format!(
            "no case has {}; there are {}",
            names.join(" and "),
            listed(known)
        )));
    }
    let files = pattern.find(wanted.base).map_err(fail)?;
    if files.is_empty() {
        return Ok(None);
    }
    let somebody = pattern.start(wanted.base).file_name().map(|name| name.to_string_lossy().into());
    let somebody: String = somebody.unwrap_or_else(|| SOMEBODY.to_owned());
    let root = Root::new(&pattern.start(wanted.base)).map_err(|error| fail(error.to_string()))?;
    // An editor whose folder lies in that of a task has nothing to do with other tasks.
    let before = pattern.names_before(EDITOR);
    let of_case = |entry: &Entry| before.iter().map(|name| value(entry, name)).collect::<Vec<_>>();
    let groups: Vec<Vec<Option<String>>> = cases.iter().map(of_case).collect();
    let mut editors: BTreeMap<String, Outputs> = BTreeMap::new();
    for (at, file) in files.iter().enumerate() {
        let read = owners(file, &names, &by_key, &somebody);
        let meant: usize = read.values().map(BTreeSet::len).sum();
        for (editor, places) in
            read.into_iter().filter(|(editor, _)| !wanted.except.contains(editor))
        {
            let outputs = editors.entry(editor).or_insert_with(|| Outputs::new(cases.len()));
            if places.is_empty() {
                outputs.extra.push(at);
            }
            for place in &places {
                outputs.groups.insert(groups[*place].clone());
                outputs.of_case[*place].push((at, meant));
            }
        }
    }
    editors.retain(|_, outputs| outputs.of_case.iter().any(|files| !files.is_empty()));
    if editors.is_empty() {
        let found = files.iter().take(3).map(|file| file.path.to_str().unwrap_or_default());
        return Err(fail(format!("no file that fits belongs to a case; found {}", listed(found))));
    }
    let mut summaries = Vec::new();
    for (editor, outputs) in editors {
        let name = |at: usize| name_of(&files[at], wanted.base);
        let mut summary = EditorFiles { editor, ..EditorFiles::default() };
        summary.extra = outputs.extra.len();
        summary.extra_names = outputs.extra.iter().take(3).map(|at| name(*at)).collect();
        let found: Vec<PictureFile> = outputs
            .of_case
            .par_iter()
            .map(|candidates| match candidates[..] {
                [] => PictureFile::Missing(format!("no file fits {}", shown(wanted.pattern))),
                [(at, 1)] => edits::looked_at(&files[at].path, &shown(&name(at)), &root),
                [(at, cases)] => PictureFile::Ambiguous(format!(
                    "{} could be the output for {cases} cases; make the pattern more exact",
                    shown(&name(at))
                )),
                _ => {
                    let names: Vec<String> = candidates.iter().map(|(at, _)| name(*at)).collect();
                    PictureFile::Ambiguous(format!(
                        "several files could be it: {}; make the pattern more exact",
                        listed(names.iter().map(String::as_str))
                    ))
                }
            })
            .collect();
        for ((entry, output), group) in cases.iter_mut().zip(found).zip(&groups) {
            if outputs.groups.contains(group) {
                summary.take(entry, output, problems);
            }
        }
        summaries.push(summary);
    }
    Ok(Some(summaries))
}

/// The files of an editor.
struct Outputs {
    /// For each case the files that could be its output, and how many cases each could belong to.
    of_case: Vec<Vec<(usize, usize)>>,
    /// Files of no case.
    extra: Vec<usize>,
    /// What stands before the editor's name in their paths.
    groups: BTreeSet<Vec<Option<String>>>,
}

impl Outputs {
    fn new(cases: usize) -> Self {
        Self { of_case: vec![Vec::new(); cases], extra: Vec::new(), groups: BTreeSet::new() }
    }
}

/// By whom a file may be, and the cases that it may belong to.
fn owners(
    file: &Fitting,
    names: &[&str],
    by_key: &HashMap<Vec<String>, Vec<usize>>,
    somebody: &str,
) -> BTreeMap<String, BTreeSet<usize>> {
    let mut owners: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for gaps in &file.readings {
        let key: Option<Vec<String>> = names.iter().map(|name| gaps.get(*name).cloned()).collect();
        let editor = gaps.get(EDITOR).map_or(somebody, String::as_str);
        let places = key.and_then(|key| by_key.get(&key)).into_iter().flatten();
        owners.entry(editor.to_owned()).or_default().extend(places);
    }
    // A reading that leads to nobody's case says nothing beside one that leads to somebody's.
    if owners.values().any(|places| !places.is_empty()) {
        owners.retain(|_, places| !places.is_empty());
    }
    owners
}

fn value(entry: &Entry, name: &str) -> Option<String> {
    match name {
        "id" => Some(entry.case.id.clone()),
        "source" => {
            let file = entry.case.source.path()?.file_name()?.to_string_lossy().into_owned();
            Some(stem(&file))
        }
        name => entry.case.facts.text(name).map(|text| text.into_owned()),
    }
}

fn name_of(file: &Fitting, base: &Path) -> String {
    file.path.strip_prefix(base).unwrap_or(&file.path).to_string_lossy().into_owned()
}

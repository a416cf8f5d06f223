//! Parts of a run that were made in several places become one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};

use super::error::RunError;
use super::ledger::{Ledger, Unwritten, bundle_names};
use super::lock::RunLock;
use super::record::{Planned, RunRecord, differences, is_vacant};
use crate::files;
use crate::hash::Hash;
use crate::key::JudgementKey;
use crate::received::{self, LARGEST_RESULTS};
use crate::trace::{LARGEST_BLOB, ResultLine, RunFolder, is_unbegun};

/// What came of it.
#[derive(Debug)]
pub(crate) struct Merged {
    pub lines: usize,
    /// Wanted, and in none of the parts.
    pub missing: Vec<JudgementKey>,
    /// In several parts with different traces: the first part's is taken.
    pub double: Vec<JudgementKey>,
    /// What is wrong with the files of the parts.
    pub notes: Vec<String>,
}

/// A part as it was found.
struct Part {
    run: RunFolder,
    record: RunRecord,
    ledger: Ledger,
    /// Nobody may work in it meanwhile.
    _lock: RunLock,
}

/// Joins `parts` into the folder `into`. Parts with other settings are refused unless `mix`, and so
/// are judgements that several parts made unless `keep_first`.
pub(crate) fn merge(
    parts: &[PathBuf],
    into: &Path,
    mix: bool,
    keep_first: bool,
) -> Result<Merged, RunError> {
    let mut seen = BTreeSet::new();
    for path in parts {
        if !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            return Err(anyhow!("{} is named twice", path.display()).into());
        }
    }
    let mut all = Vec::new();
    // What was merged before is the first part.
    match RunRecord::read(into)? {
        Some(record) => all.push(Part::take(into, record)?),
        None if !is_vacant(into) => {
            return Err(RunError::NotARun { folder: into.to_owned() });
        }
        None => {}
    }
    let there = all.len();
    for path in parts {
        all.push(open(path, into)?);
    }
    let parts = all;
    let Some(first) = parts.first() else {
        return Err(anyhow!("there is nothing to merge; name the parts").into());
    };
    let mut record = first.record.clone();
    for part in &parts[1..] {
        let found = differences(&record.settings, &part.record.settings);
        if !found.is_empty() && !mix {
            return Err(RunError::OtherParts {
                part: part.run.path().to_owned(),
                first: first.run.path().to_owned(),
                differences: found,
            });
        }
        // Whoever goes on in the whole must know the oldest of its parts.
        record.format = record.format.min(part.record.format);
        record.settings.extend(part.record.settings.clone());
        join(&mut record.planned, &part.record.planned);
    }
    record.planned.shard = None;

    let mut taken: BTreeMap<JudgementKey, (usize, &ResultLine)> = BTreeMap::new();
    let mut double = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        for (key, line) in part.ledger.lines() {
            match taken.get(key) {
                None => drop(taken.insert(key.clone(), (place, line))),
                Some((_, known)) if known.digest == line.digest => {}
                Some(_) => double.push(key.clone()),
            }
        }
    }
    if !double.is_empty() && !keep_first {
        return Err(RunError::Overlapping { double });
    }

    files::create_folder(into)?;
    let _lock = if there == 0 { Some(RunLock::take(into)?) } else { None };
    let missing: Vec<JudgementKey> =
        record.planned.keys().filter(|key| !taken.contains_key(key)).collect();
    record.write(into)?;
    for part in &parts[there..] {
        bring_blobs(part, into)?;
    }
    let (mut new, mut brought) = (Vec::new(), BTreeSet::new());
    for (owner, line) in taken.values().filter(|(owner, _)| *owner >= there) {
        let mut line = (*line).clone();
        if let Some(trace) = &mut line.trace {
            brought.insert((*owner, trace.clone()));
            *trace = bring_bundle(&parts[*owner], into, trace)?;
        }
        new.push(line);
    }
    // What else was tried is evidence too, but for judgements that are another part's.
    let owners: BTreeMap<&str, usize> = taken
        .values()
        .filter_map(|(owner, line)| Some((base(line.trace.as_deref()?), *owner)))
        .collect();
    for (place, part) in parts.iter().enumerate().skip(there) {
        for name in bundle_names(&part.run)? {
            let trace = format!("judgements/{name}");
            let ours = owners.get(base(&trace)).is_none_or(|owner| *owner == place);
            // What was killed before anything was recorded is no evidence of anything.
            let ours = ours && !is_unbegun(&part.run.path().join(&trace));
            if ours && !brought.contains(&(place, trace.clone())) {
                bring_bundle(part, into, &trace)?;
            }
        }
    }
    let mut ledger = Ledger::open(&RunFolder::new(into))?;
    let new: Vec<ResultLine> = new
        .into_iter()
        .filter(|line| line.key().is_some_and(|key| ledger.lines().get(&key) != Some(line)))
        .collect();
    let written = ledger.add(&new).and_then(Unwritten::write);
    written.with_context(|| format!("cannot write to {}", into.display()))?;
    let told = |part: &Part| {
        let folder = part.run.path().display().to_string();
        part.ledger.notes.iter().map(move |note| format!("{folder}: {note}")).collect::<Vec<_>>()
    };
    let notes = parts.iter().flat_map(told).collect();
    Ok(Merged { lines: ledger.lines().len(), missing, double, notes })
}

impl Part {
    fn take(path: &Path, record: RunRecord) -> anyhow::Result<Self> {
        let lock = RunLock::take(path)?;
        let run = RunFolder::new(path);
        let ledger = Ledger::open(&run)?;
        Ok(Self { run, record, ledger, _lock: lock })
    }
}

fn open(path: &Path, into: &Path) -> anyhow::Result<Part> {
    if !path.is_dir() {
        bail!("{} is not the folder of a run", path.display());
    }
    if fs::canonicalize(path).ok().is_some_and(|path| fs::canonicalize(into).ok() == Some(path)) {
        bail!("{} is a part and the place to merge into; name another place", path.display());
    }
    let record = RunRecord::read(path)?.with_context(|| {
        format!("{} is not the folder of a run: it has no run.json", path.display())
    })?;
    Part::take(path, record)
}

fn join(all: &mut Planned, part: &Planned) {
    all.criteria.extend(part.criteria.iter().cloned());
    all.modes.extend(part.modes.iter().copied());
    all.repeats = all.repeats.max(part.repeats);
    all.facts.extend(part.facts.clone());
    for (case, editors) in &part.edits {
        all.edits.entry(case.clone()).or_default().extend(editors.iter().cloned());
    }
}

fn bring_blobs(part: &Part, into: &Path) -> anyhow::Result<()> {
    let (from, into) = (part.run.path().join("blobs"), into.join("blobs"));
    let names = match fs::read_dir(&from) {
        Ok(entries) if received::is_folder(&from) => {
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?
        }
        _ => Vec::new(),
    };
    received::create_folder(&into)?;
    for name in names {
        let (from, to) = (from.join(&name), into.join(&name));
        // Anything else is no blob, whatever its name.
        if received::is_file(&from) && !is_same(&from, &to)? {
            link(&from, &to)?;
        }
    }
    Ok(files::sync_folder(&into)?)
}

/// Whether a blob is there already. One of two that differ is not what its name says: it makes room
/// for the other.
fn is_same(from: &Path, to: &Path) -> anyhow::Result<bool> {
    if is_linked(from, to) {
        return Ok(true);
    }
    let read = |path: &Path| received::read(path, LARGEST_BLOB);
    let (Ok(there), Ok(ours)) = (read(to), read(from)) else { return Ok(false) };
    let named = to.file_stem().unwrap_or_default().to_string_lossy();
    if there != ours && Hash::of(&there).as_str() != named {
        fs::remove_file(to).with_context(|| format!("cannot replace {}", to.display()))?;
        return Ok(false);
    }
    Ok(true)
}

/// Whether these are two names of one file.
fn is_linked(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |path: &Path| fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()));
        id(one).is_some_and(|known| id(other) == Some(known))
    }
    #[cfg(not(unix))]
    {
        let _ = (one, other);
        false
    }
}

/// The name that all traces of a judgement share: without the number of the later ones, which is
/// shorter than the hash before it.
fn base(trace: &str) -> &str {
    match trace.rsplit_once('-') {
        Some((base, number)) if number.len() < 8 && number.parse::<u32>().is_ok() => base,
        _ => trace,
    }
}

/// Brings a trace under its own name, or under a free one where another trace has it. Returns where
/// it is now.
fn bring_bundle(part: &Part, into: &Path, trace: &str) -> anyhow::Result<String> {
    const FILES: [&str; 2] = ["manifest.json", "events.jsonl"];
    let from = part.run.path().join(trace);
    if received::is_there(&from) && received::folder_below(part.run.path(), trace).is_none() {
        bail!("{} is not a folder of its run but a link or a file; remove it", from.display());
    }
    received::create_folder(&into.join("judgements"))?;
    let read = |path: PathBuf| received::read(&path, LARGEST_RESULTS);
    for number in 1u32.. {
        let place = if number == 1 { trace.to_owned() } else { format!("{trace}-{number}") };
        let to = into.join(&place);
        // A merge that was killed may have brought one of the files: the other follows.
        let fits = |file: &&str| match read(to.join(file)) {
            Ok(there) => read(from.join(file)).is_ok_and(|own| own == there),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let taken = received::is_there(&to) && !received::is_folder(&to);
        if taken || !FILES.iter().all(fits) {
            continue;
        }
        files::create_folder(&to)?;
        for file in FILES {
            // A judgement that was killed early may have no events.
            if received::is_file(&from.join(file)) {
                link(&from.join(file), &to.join(file))?;
            }
        }
        return Ok(place);
    }
    bail!("there is no free name for {trace} in {}", into.display())
}

/// A second name for the same file, or a copy where that cannot be. What is there stays.
fn link(from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => {
            received::read(from, LARGEST_RESULTS).and_then(|bytes| files::replace(to, &bytes))
        }
    };
    copied.with_context(|| format!("cannot bring {} to {}", from.display(), to.display()))
}

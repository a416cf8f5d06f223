//! Parts of a run that were made in several places become one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::job::JobKey;
use super::ledger::{Ledger, Unwritten, bundle_names};
use super::lock::RunLock;
use super::record::{Planned, RunRecord, differences, is_vacant};
use crate::files;
use crate::trace::{ResultLine, RunFolder};

/// What came of it.
#[derive(Debug)]
pub(crate) struct Merged {
    pub lines: usize,
    /// Wanted, and in none of the parts.
    pub missing: Vec<JobKey>,
    /// In several parts with different traces: the first part's is taken.
    pub double: Vec<JobKey>,
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
) -> anyhow::Result<Merged> {
    let mut seen = BTreeSet::new();
    for path in parts {
        if !seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            bail!("{} is named twice", path.display());
        }
    }
    let mut all = Vec::new();
    // What was merged before is the first part.
    match RunRecord::read(into)? {
        Some(record) => all.push(Part::take(into, record)?),
        None if !is_vacant(into) => {
            bail!("{} is not empty and not a run; name another folder", into.display());
        }
        None => {}
    }
    let there = all.len();
    for path in parts {
        all.push(open(path, into)?);
    }
    let parts = all;
    let Some(first) = parts.first() else { bail!("there is nothing to merge; name the parts") };
    let mut record = first.record.clone();
    for part in &parts[1..] {
        let found = differences(&record.settings, &part.record.settings);
        if !found.is_empty() && !mix {
            let named: Vec<String> = found.iter().map(|one| format!("\n  {one}")).collect();
            bail!(
                "{} was judged with other settings than {}, and means over both would mean nothing:{}\n\
                 merge them all the same with --mix",
                part.run.path().display(),
                first.run.path().display(),
                named.concat()
            );
        }
        record.settings.extend(part.record.settings.clone());
        join(&mut record.planned, &part.record.planned);
    }
    record.planned.shard = None;

    let mut taken: BTreeMap<JobKey, (usize, &ResultLine)> = BTreeMap::new();
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
        let named: Vec<String> = double.iter().take(5).map(|key| format!("\n  {key}")).collect();
        bail!(
            "{} judgements were made in several parts, with different traces:{}\n\
             take those of the part that is named first with --keep-first",
            double.len(),
            named.concat()
        );
    }

    files::create_folder(into)?;
    let _lock = if there == 0 { Some(RunLock::take(into)?) } else { None };
    let missing: Vec<JobKey> =
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
            if ours && !brought.contains(&(place, trace.clone())) {
                bring_bundle(part, into, &trace)?;
            }
        }
    }
    let mut ledger = Ledger::open(&RunFolder::new(into))?;
    let new: Vec<ResultLine> = new
        .into_iter()
        .filter(|line| JobKey::of(line).is_some_and(|key| ledger.lines().get(&key) != Some(line)))
        .collect();
    let written = ledger.add(&new).and_then(Unwritten::write);
    written.with_context(|| format!("cannot write to {}", into.display()))?;
    Ok(Merged { lines: ledger.lines().len(), missing, double })
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
        bail!("{} is a part and the place to merge into; name another --into", path.display());
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
    all.types.extend(part.types.clone());
    for (case, editors) in &part.edits {
        all.edits.entry(case.clone()).or_default().extend(editors.iter().cloned());
    }
}

fn bring_blobs(part: &Part, into: &Path) -> anyhow::Result<()> {
    let (from, into) = (part.run.path().join("blobs"), into.join("blobs"));
    let names = match fs::read_dir(&from) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?,
        Err(_) => Vec::new(),
    };
    files::create_folder(&into)?;
    for name in names {
        link(&from.join(&name), &into.join(&name))?;
    }
    Ok(files::sync_folder(&into)?)
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
    let read = |folder: &Path| FILES.map(|file| fs::read(folder.join(file)).ok());
    for number in 1u32.. {
        let place = if number == 1 { trace.to_owned() } else { format!("{trace}-{number}") };
        let to = into.join(&place);
        if !to.exists() {
            files::create_folder(&to)?;
        } else if fs::read_dir(&to)?.next().is_some() && read(&to) != read(&from) {
            continue;
        }
        for file in FILES {
            // A judgement that was killed early may have neither.
            if from.join(file).is_file() {
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
        Err(_) => fs::read(from).and_then(|bytes| files::replace(to, &bytes)),
    };
    copied.with_context(|| format!("cannot bring {} to {}", from.display(), to.display()))
}

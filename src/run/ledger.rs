//! `results.jsonl`: one line for each finished judgement, on the disk before anybody is told of it.
//!
//! The traces are the truth. A line that a kill has cut or prevented is made again from its trace
//! when the run is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use rayon::prelude::*;

use super::job::JobKey;
use crate::files;
use crate::judge::Spent;
use crate::trace::{Bundle, ResultLine, RunFolder, bundle_name};

/// The lines of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    lines: BTreeMap<JobKey, ResultLine>,
    /// What was spent, also on judgements that have no line.
    spent: Spent,
    /// What was mended when it was opened.
    pub notes: Vec<String>,
}

/// A bundle that no line tells of.
struct Unlisted {
    line: ResultLine,
    complete: bool,
    /// 1 for the first bundle of its judgement, 2 for the next.
    number: u32,
}

impl Ledger {
    /// The lines of the run, mended: one for each judgement whose trace is finished.
    pub(crate) fn open(run: &RunFolder) -> anyhow::Result<Self> {
        let (ledger, mended) = Self::read(run, true)?;
        if mended {
            ledger.write_all().with_context(|| cannot_write(&ledger.path))?;
        }
        Ok(ledger)
    }

    /// The same for whoever only looks: nothing is written.
    pub(crate) fn look(run: &RunFolder) -> anyhow::Result<Self> {
        Ok(Self::read(run, false)?.0)
    }

    /// The lines, and whether they must be written again.
    fn read(run: &RunFolder, aside: bool) -> anyhow::Result<(Self, bool)> {
        let mut ledger = Self::empty(run);
        let mut mended = ledger.read_lines(aside)?;
        let listed: BTreeSet<String> =
            ledger.lines.values().filter_map(|line| line.trace.clone()).collect();
        mended |= ledger.add_unlisted(run, &listed)?;
        Ok((ledger, mended))
    }

    /// Makes every line again from its trace. A line whose trace is damaged or gone is lost: it is
    /// returned, and the file as it was is kept.
    pub(crate) fn rebuild(run: &RunFolder) -> anyhow::Result<(Self, Vec<JobKey>)> {
        let mut before = Self::empty(run);
        before.read_lines(true)?;
        let mut ledger = Self::empty(run);
        ledger.add_unlisted(run, &BTreeSet::new())?;
        let worse = |(key, line): (&JobKey, &ResultLine)| {
            // An older trace of the same judgement is no stand-in for a later one.
            let now = ledger.lines.get(key);
            let gone = now.is_none_or(|now| now.trace != line.trace);
            gone.then(|| key.clone())
        };
        let lost: Vec<JobKey> = before.lines.iter().filter_map(worse).collect();
        if !lost.is_empty() {
            let text = fs::read(&ledger.path).unwrap_or_default();
            let aside = put_aside(&ledger.path, &text)?;
            ledger.notes.push(format!("the file as it was is {}", aside.display()));
        }
        ledger.write_all().with_context(|| cannot_write(&ledger.path))?;
        Ok((ledger, lost))
    }

    fn empty(run: &RunFolder) -> Self {
        Self {
            path: run.path().join("results.jsonl"),
            lines: BTreeMap::new(),
            spent: Spent::default(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn lines(&self) -> &BTreeMap<JobKey, ResultLine> {
        &self.lines
    }

    /// What the run has cost so far, also what came to nothing.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// Takes in the lines of judgements that are finished, each in place of an older one. They are
    /// on the disk when what is returned is written.
    pub(crate) fn add(&mut self, lines: &[ResultLine]) -> io::Result<Unwritten> {
        let mut text = Vec::new();
        let mut whole = false;
        for line in lines {
            let Some(key) = JobKey::of(line) else { continue };
            write_line(&mut text, line)?;
            whole |= self.lines.insert(key, line.clone()).is_some();
        }
        if whole {
            text = self.text()?;
        }
        Ok(Unwritten { path: self.path.clone(), text, whole })
    }

    fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        for line in self.lines.values() {
            write_line(&mut text, line)?;
        }
        Ok(text)
    }

    fn write_all(&self) -> io::Result<()> {
        files::replace(&self.path, &self.text()?)
    }

    /// Reads what is there; says whether it must be written again. What cannot be read is put aside
    /// first if it will be.
    fn read_lines(&mut self, aside: bool) -> anyhow::Result<bool> {
        let text = match fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.path.display()));
            }
        };
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut mended = whole < text.len();
        if mended {
            self.notes
                .push("the last line of results.jsonl was cut; its trace is looked at".into());
        }
        let (mut broken, mut double) = (0, 0);
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let read = serde_json::from_slice::<ResultLine>(line).ok().filter(is_ours);
            match read.and_then(|line| Some((JobKey::of(&line)?, line))) {
                Some((key, line)) => {
                    self.charge(&line);
                    double += usize::from(self.lines.insert(key, line).is_some());
                }
                None => broken += 1,
            }
        }
        if broken > 0 && aside {
            let aside = put_aside(&self.path, &text)?;
            self.notes.push(format!(
                "{broken} lines of results.jsonl could not be read and are made again from their traces; the file \
                 as it was is {}",
                aside.display()
            ));
        }
        if double > 0 {
            self.notes.push(format!("{double} judgements had two lines; the later ones are kept"));
        }
        mended |= broken + double > 0;
        Ok(mended)
    }

    /// Takes in the bundles that no line tells of; says whether there are new lines.
    fn add_unlisted(&mut self, run: &RunFolder, listed: &BTreeSet<String>) -> anyhow::Result<bool> {
        let names = bundle_names(run)?;
        let unlisted: Vec<&String> =
            names.iter().filter(|name| !listed.contains(&format!("judgements/{name}"))).collect();
        let read: Vec<(&String, Option<Unlisted>)> =
            unlisted.into_par_iter().map(|name| (name, unlisted_bundle(run, name))).collect();
        let mut numbers: BTreeMap<JobKey, u32> = BTreeMap::new();
        let (mut found, mut interrupted) = (0, 0);
        for (name, bundle) in read {
            let Some(Unlisted { line, complete, number }) = bundle else {
                interrupted += 1;
                continue;
            };
            self.charge(&line);
            let Some(key) = JobKey::of(&line).filter(|_| complete) else {
                interrupted += 1;
                continue;
            };
            // The latest finished one counts; the older ones stay as evidence.
            let known = numbers.get(&key).copied().or_else(|| {
                let listed = self.lines.get(&key)?.trace.as_deref()?;
                Some(number_of(listed.strip_prefix("judgements/")?, &base_of(name, number)))
            });
            if known.is_none_or(|known| known < number) {
                numbers.insert(key.clone(), number);
                self.lines.insert(key, line);
                found += 1;
            }
        }
        if found > 0 {
            self.notes.push(format!("{found} finished judgements had no line yet"));
        }
        if interrupted > 0 {
            self.notes.push(format!("{interrupted} traces of interrupted judgements are kept"));
        }
        Ok(found > 0)
    }

    fn charge(&mut self, line: &ResultLine) {
        self.spent.calls += u64::from(line.turns.unwrap_or(0).saturating_sub(line.cached));
        self.spent.cost += line.paid.unwrap_or(0.0);
    }
}

/// Lines that are not on the disk yet.
#[must_use = "the lines are only on the disk when this is written"]
pub(crate) struct Unwritten {
    path: PathBuf,
    text: Vec<u8>,
    /// Whether the text is all of the file.
    whole: bool,
}

impl Unwritten {
    pub(crate) fn write(self) -> io::Result<()> {
        let Self { path, text, whole } = self;
        if whole {
            return files::replace(&path, &text);
        }
        let mut file = File::options().append(true).create(true).open(&path)?;
        let before = file.metadata()?.len();
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        if written.is_err() {
            // The disk may be full: half a line helps nobody, and the trace has it all.
            let _ = file.set_len(before);
        }
        if before == 0 && written.is_ok() {
            path.parent().map_or(Ok(()), files::sync_folder)?;
        }
        written
    }
}

/// A line that tells of a trace in this run, and no score that no label has.
fn is_ours(line: &ResultLine) -> bool {
    let own = |trace: &String| {
        let mut parts = Path::new(trace).components();
        let folder = parts.next() == Some(Component::Normal("judgements".as_ref()));
        folder && matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
    };
    line.trace.as_ref().is_none_or(own)
        && line.score.is_none_or(|score| (0.0..=100.0).contains(&score))
}

/// Keeps a file of lines as it was.
fn put_aside(path: &Path, text: &[u8]) -> anyhow::Result<PathBuf> {
    let aside = path.with_extension("jsonl.damaged");
    files::replace(&aside, text).with_context(|| cannot_write(&aside))?;
    Ok(aside)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; is the disk full?", path.display())
}

fn write_line(text: &mut Vec<u8>, line: &ResultLine) -> io::Result<()> {
    serde_json::to_writer(&mut *text, line)?;
    text.push(b'\n');
    Ok(())
}

/// The names of all bundles.
pub(super) fn bundle_names(run: &RunFolder) -> anyhow::Result<Vec<String>> {
    let folder = run.path().join("judgements");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// `None` for a folder in which nothing happened yet, or whose files are damaged.
fn unlisted_bundle(run: &RunFolder, name: &str) -> Option<Unlisted> {
    let trace = format!("judgements/{name}");
    let bundle = Bundle::read(&run.path().join(&trace)).ok()?;
    let line = ResultLine::of(&bundle.manifest, &bundle.events, &trace, &bundle.digest);
    let number = number_of(name, &bundle_name(&bundle.manifest));
    // What was changed afterwards is no evidence.
    let complete = bundle.complete && bundle.flaws.is_empty();
    Some(Unlisted { line, complete, number })
}

/// The number of a bundle among those of its judgement, whose first one is called `base`.
fn number_of(name: &str, base: &str) -> u32 {
    let rest = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn base_of(name: &str, number: u32) -> String {
    name.strip_suffix(&format!("-{number}")).unwrap_or(name).to_owned()
}

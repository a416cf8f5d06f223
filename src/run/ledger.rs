//! `results.jsonl`: one line for each finished judgement, on the disk before anybody is told of it.
//!
//! The traces are the truth. A line that a kill has cut or prevented is made again from its trace
//! when the run is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};
use rayon::prelude::*;

use crate::files;
use crate::judge::Spent;
use crate::key::JudgementKey;
use crate::received::{self, LARGEST_RESULTS};
use crate::trace::{Bundle, ResultLine, RunFolder, Worths, bundle_name};

/// How many lines that cannot be used are named.
const MOST_NAMED: usize = 5;

/// The lines of a run; by default one that is nowhere on the disk.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The file; of a run that is nowhere on the disk, none.
    path: PathBuf,
    lines: BTreeMap<JudgementKey, ResultLine>,
    /// How long the file is, when everything is written that was taken in.
    length: u64,
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
    /// Why what it tells cannot be true.
    problem: Option<String>,
}

impl Ledger {
    /// The lines of the run, mended: one for each judgement whose trace is finished.
    pub(crate) fn open(run: &RunFolder) -> anyhow::Result<Self> {
        let (mut ledger, mended) = Self::read(run, true)?;
        if mended {
            let written = ledger.write_all();
            written.with_context(|| cannot_write(&ledger.path))?;
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
    pub(crate) fn rebuild(run: &RunFolder) -> anyhow::Result<(Self, Vec<JudgementKey>)> {
        let mut before = Self::empty(run);
        before.read_lines(true)?;
        let mut ledger = Self::empty(run);
        ledger.add_unlisted(run, &BTreeSet::new())?;
        let worse = |(key, line): (&JudgementKey, &ResultLine)| {
            // An older trace of the same judgement is no stand-in for a later one.
            let now = ledger.lines.get(key);
            let gone = now.is_none_or(|now| now.trace != line.trace);
            gone.then(|| key.clone())
        };
        let lost: Vec<JudgementKey> = before.lines.iter().filter_map(worse).collect();
        if !lost.is_empty() {
            let text = received::read(&ledger.path, LARGEST_RESULTS).unwrap_or_default();
            let aside = put_aside(&ledger.path, &text)?;
            ledger.notes.push(format!("the file as it was is {}", aside.display()));
        }
        let written = ledger.write_all();
        written.with_context(|| cannot_write(&ledger.path))?;
        Ok((ledger, lost))
    }

    fn empty(run: &RunFolder) -> Self {
        Self {
            path: run.path().join("results.jsonl"),
            lines: BTreeMap::new(),
            length: 0,
            spent: Spent::default(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn lines(&self) -> &BTreeMap<JudgementKey, ResultLine> {
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
            let Some(key) = line.key() else { continue };
            write_line(&mut text, line)?;
            whole |= self.lines.insert(key, line.clone()).is_some();
        }
        let before = self.length;
        if whole {
            text = self.text()?;
            self.length = 0;
        }
        self.length += text.len() as u64;
        Ok(Unwritten { path: self.path.clone(), text, whole, before })
    }

    fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        for line in self.lines.values() {
            write_line(&mut text, line)?;
        }
        Ok(text)
    }

    fn write_all(&mut self) -> io::Result<()> {
        let text = self.text()?;
        self.length = text.len() as u64;
        files::replace(&self.path, &text)
    }

    /// Whether all that was written is still there: the file of lines, and the traces `made` since.
    pub(crate) fn is_kept(&self, made: &[String]) -> io::Result<()> {
        let Some(run) = self.path.parent() else { return Ok(()) };
        if self.length > 0 && fs::metadata(&self.path).map_or(0, |meta| meta.len()) != self.length {
            return Err(files::removed(&self.path));
        }
        let gone = |trace: &&String| !run.join(trace).join("events.jsonl").is_file();
        match made.iter().find(gone) {
            Some(trace) => Err(files::removed(&run.join(trace))),
            None => Ok(()),
        }
    }

    /// Reads what is there; says whether it must be written again. What cannot be read is put aside
    /// first if it will be.
    fn read_lines(&mut self, aside: bool) -> anyhow::Result<bool> {
        let text = match received::read(&self.path, LARGEST_RESULTS) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.path.display()));
            }
        };
        self.length = text.len() as u64;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut mended = whole < text.len();
        if mended {
            self.notes
                .push("the last line of results.jsonl was cut; its trace is looked at".into());
        }
        let (mut broken, mut double) = (0, 0);
        let mut worths = Worths::default();
        for (number, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            match sound_line(line, &mut worths) {
                Ok((key, line)) => {
                    self.charge(&line);
                    double += usize::from(self.lines.insert(key, line).is_some());
                }
                Err(problem) => {
                    broken += 1;
                    if broken <= MOST_NAMED {
                        self.notes.push(format!("results.jsonl, line {}: {problem}", number + 1));
                    }
                }
            }
        }
        if broken > 0 {
            let lines = if broken == 1 { "1 line".to_owned() } else { format!("{broken} lines") };
            let mut note = format!(
                "{lines} of results.jsonl cannot be used; what it tells of is taken from its trace, or judged again"
            );
            if aside {
                let aside = put_aside(&self.path, &text)?;
                note.push_str(&format!("; the file as it was is {}", aside.display()));
            }
            self.notes.push(note);
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
        let mut numbers: BTreeMap<JudgementKey, u32> = BTreeMap::new();
        let (mut found, mut interrupted, mut unsound) = (0, 0, 0);
        for (name, bundle) in read {
            let Some(Unlisted { line, complete, number, problem }) = bundle else {
                interrupted += 1;
                continue;
            };
            if let Some(problem) = problem {
                unsound += 1;
                if unsound <= MOST_NAMED {
                    let told = "the trace is kept, but not believed";
                    self.notes.push(format!("judgements/{name}: {problem}; {told}"));
                }
                continue;
            }
            self.charge(&line);
            let Some(key) = line.key().filter(|_| complete) else {
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
        self.spent.unknown |= line.paid.is_none();
    }
}

/// Lines that are not on the disk yet.
#[must_use = "the lines are only on the disk when this is written"]
pub(crate) struct Unwritten {
    path: PathBuf,
    text: Vec<u8>,
    /// Whether the text is all of the file.
    whole: bool,
    /// How long the file is before.
    before: u64,
}

impl Unwritten {
    pub(crate) fn write(self) -> io::Result<()> {
        let Self { path, text, whole, before } = self;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        // The run is ours alone: another length means that somebody took lines away.
        if before > 0 && fs::metadata(&path).map_or(0, |meta| meta.len()) != before {
            return Err(files::removed(&path));
        }
        if whole {
            return files::replace(&path, &text);
        }
        let mut file = received::append(&path)?;
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

/// A line that can be true and tells of a trace in this run; the error says why it is none.
fn sound_line(text: &[u8], worths: &mut Worths) -> Result<(JudgementKey, ResultLine), String> {
    let line: ResultLine =
        serde_json::from_slice(text).map_err(|error| format!("it cannot be read: {error}"))?;
    if !is_ours(&line) {
        return Err("its trace is not in this run".to_owned());
    }
    worths.check(&line)?;
    let key = line.key().ok_or("it does not say which judgement it is")?;
    Ok((key, line))
}

fn is_ours(line: &ResultLine) -> bool {
    let own = |trace: &String| {
        let mut parts = Path::new(trace).components();
        let folder = parts.next() == Some(Component::Normal("judgements".as_ref()));
        folder && matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
    };
    line.trace.as_ref().is_none_or(own)
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
        Ok(_) if !received::is_folder(&folder) => {
            bail!("{} is a link; put the folder itself in its place", folder.display())
        }
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", folder.display()));
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// `None` for a folder in which nothing happened yet, or whose files are damaged.
fn unlisted_bundle(run: &RunFolder, name: &str) -> Option<Unlisted> {
    let bundle = Bundle::read(&run.path().join("judgements").join(name)).ok()?;
    let line = ResultLine::of_bundle(&bundle);
    let number = number_of(name, &bundle_name(&bundle.manifest));
    // What tells of numbers that cannot be, or was changed afterwards, is no evidence.
    let problem = Worths::default().check(&line).err();
    let complete = bundle.complete && bundle.flaws.is_empty();
    Some(Unlisted { line, complete, number, problem })
}

/// The number of a bundle among those of its judgement, whose first one is called `base`.
fn number_of(name: &str, base: &str) -> u32 {
    let rest = name.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    rest.and_then(|number| number.parse().ok()).unwrap_or(1)
}

fn base_of(name: &str, number: u32) -> String {
    name.strip_suffix(&format!("-{number}")).unwrap_or(name).to_owned()
}

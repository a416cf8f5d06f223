//! Rows become cases: every field checked, every file looked for.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map};
use std::sync::{Arc, Mutex, PoisonError};

use deeplook_tools::picture::size_of_file;
use rayon::prelude::*;
use serde_json::Value;

use super::boxes::{self, BoxForm, Written};
use super::fields::{Field, Names};
use super::problem::{DataSetError, Problems, Severity, shown, shown_json};
use super::root::{PathProblem, Root};
use super::rows::Row;
use super::source::Source;
use super::{Edits, Entry, PictureFile};
use super::{brought, dlebench};
use crate::case::{Case, Facts, Named, REFERENCE, TARGET};

/// A longer instruction is a mistake, such as a whole file in its place.
const LONGEST_INSTRUCTION: usize = 50_000;

/// What reads the rows of one file.
pub(super) struct Reader<'a> {
    root: &'a Root,
    names: &'a Names,
    /// The folders of DLEBench, in which its bare file names are.
    folders: [&'static str; 2],
    /// What the file says of edits does not matter.
    without_edits: bool,
    /// Names of fields and editors, which a million cases have in common.
    shared: Mutex<HashSet<Arc<str>>>,
}

/// The editor of a case that names one output and nobody who made it.
const SOMEBODY: &str = "edited";
const LONGEST_ID: usize = 200;

/// Names that may be slips: the first line, what is probably meant, and how many lines have it.
type Slips<'a> = BTreeMap<&'a str, (usize, Field, usize)>;

/// What was made of rows.
pub(super) struct Read {
    pub(super) cases: Vec<Entry>,
    /// How boxes were read, where nobody said it.
    pub(super) boxes_read: Option<String>,
}

/// A case that may still lack a name, and what is wrong with it.
struct Draft {
    written: Vec<Written>,
    line: usize,
    case: Case<PictureFile, Edits>,
    problems: Vec<(Severity, String)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a Root, names: &'a Names, without_edits: bool) -> Self {
        // Where a file has our own field, its paths start beside it and nowhere else.
        let theirs = names.name(Field::Source) != Field::Source.name();
        let folders = if theirs { dlebench::FOLDERS } else { ["", ""] };
        Self { root, names, folders, without_edits, shared: Mutex::default() }
    }

    /// The cases, in the file's order. A row that cannot be one is a problem.
    pub(super) fn read(
        &self,
        source: &Source,
        is_there: &dyn Fn(&str) -> bool,
        problems: &mut Problems,
    ) -> Result<Read, DataSetError> {
        let mut good = Vec::new();
        let mut slips = Slips::default();
        // What cannot be read was told when the fields were looked for.
        source.read(true, is_there, &mut Problems::default(), &mut |rows| {
            let drafts: Vec<Result<Draft, String>> =
                rows.par_iter().map(|row| self.draft(row)).collect();
            for (row, draft) in rows.iter().zip(drafts) {
                self.note_slips(row, &mut slips);
                match draft {
                    Ok(draft) => good.push(draft),
                    Err(what) => problems.error(row.line, None, what),
                }
            }
        })?;
        let form = self.form_of(&good).map_err(|what| DataSetError::Fields {
            path: source.file.clone(),
            what: format!(
                "cannot tell how {} is meant: {what}; say it with --map boxes={}:xyxy or :xywh",
                shown(self.names.name(Field::Boxes)),
                self.names.name(Field::Boxes)
            ),
        })?;
        let boxes_read = self.said_of_boxes(form, &good);
        self.name(&mut good);
        let repeated = repeated(&good);
        let entry = |Draft { line, mut case, written, problems: own }: Draft| {
            for (severity, what) in own {
                let id = Some(case.id.as_str());
                match severity {
                    Severity::Error => problems.error(line, id, what),
                    Severity::Warning => problems.warning(line, id, what),
                }
            }
            if let Some(earlier) = repeated.get(&line) {
                let what = format!(
                    "this id stands on line {earlier} already; give each case its own, and all editors of a case one line with \"edits\""
                );
                problems.error(line, Some(&case.id), what);
                return None;
            }
            let targets: Vec<_> = written.into_iter().map(|written| written.area(form)).collect();
            for (index, area) in targets.iter().enumerate() {
                if area.is_empty() {
                    let hint = if form == BoxForm::Corners {
                        "; if these are x, y, width, height, say --map boxes=NAME:xywh"
                    } else {
                        ""
                    };
                    let what = format!(
                        "box {} is {area}, which is empty: x2 must be more than x1, and y2 more than y1{hint}",
                        index + 1
                    );
                    problems.error(line, Some(&case.id), what);
                }
            }
            if !targets.is_empty() {
                case.regions.insert(self.shared(TARGET), targets);
                case.regions.shrink_to_fit();
            }
            Some(Entry { line, case })
        };
        // In the same room, and nothing beyond it.
        let mut cases: Vec<Entry> = good.into_iter().filter_map(entry).collect();
        cases.shrink_to_fit();
        for (name, (line, field, count)) in slips {
            let field = field.name();
            let what = format!(
                "the field {} is not known and not used ({count} lines have it); did you mean {field:?}? Rename it, or say --map {field}={name:?}",
                shown(name)
            );
            problems.warning(line, None, what);
        }
        Ok(Read { cases, boxes_read })
    }

    /// How four bare numbers were read, where nobody said it.
    fn said_of_boxes(&self, form: BoxForm, drafts: &[Draft]) -> Option<String> {
        let bare = |written: &Written| matches!(written, Written::Bare(_));
        let bare = drafts.iter().any(|draft| draft.written.iter().any(bare));
        let name = self.names.name(Field::Boxes);
        (bare && self.names.form.is_none()).then(|| {
            format!(
                "four numbers of {} are read as {form}, by the pictures' sizes; --map boxes={name}:{form} says it",
                shown(name)
            )
        })
    }

    /// One row, by itself. The error says why it cannot be a case at all.
    fn draft(&self, row: &Row) -> Result<Draft, String> {
        let mut problems = Vec::new();
        let id = self.id(row)?;
        let instruction = self.text(Field::Instruction, row)?.unwrap_or_default();
        if instruction.trim().is_empty() {
            return Err(format!("{} is empty or absent", self.quoted(Field::Instruction)));
        }
        if instruction.len() > LONGEST_INSTRUCTION {
            return Err(format!(
                "{} has {} bytes, more than {LONGEST_INSTRUCTION}; is it an instruction?",
                self.quoted(Field::Instruction),
                instruction.len()
            ));
        }
        let source = self
            .text(Field::Source, row)?
            .ok_or_else(|| format!("{} is empty or absent", self.quoted(Field::Source)))?;
        let mut look = |what: &str, name: &str, folder: &str| {
            let file = self.look(name, folder);
            if let Some(why) = file.problem() {
                problems.push((Severity::Error, format!("{what}: {why}")));
            }
            file
        };
        let (source_name, [sources, references]) = (source, self.folders);
        let source = look("source", &source_name, sources);
        let reference =
            self.text(Field::Reference, row)?.map(|name| look("reference", &name, references));
        let mut others = Named::new();
        for (name, path) in
            self.brought(Field::Pictures, row, brought::pictures)?.unwrap_or_default()
        {
            let file = look(&format!("picture {}", shown(&name)), &path, "");
            others.insert(self.shared(&name), file);
        }
        if let Some(reference) = reference {
            others.insert(self.shared(REFERENCE), reference);
        }
        let mut edits = Edits::new();
        if !self.without_edits {
            for (editor, name) in self.edits(row)? {
                let file = look(&format!("edit by {}", shown(&editor)), &name, "");
                edits.insert(self.shared(&editor), file);
            }
        }
        let written = match self.names.get(Field::Boxes, &row.fields) {
            Some(value) => boxes::read(value)
                .inspect_err(|what| problems.push((Severity::Error, what.clone())))
                .unwrap_or_default(),
            None => Vec::new(),
        };
        let regions = self.brought(Field::Regions, row, brought::regions)?.unwrap_or_default();
        let questions =
            self.brought(Field::Questions, row, brought::questions)?.unwrap_or_default();
        let given = self.names.get(Field::Facts, &row.fields);
        let left_out = |what| problems.push((Severity::Warning, what));
        let mut facts = brought::facts(
            &row.fields,
            &self.names.unused,
            given,
            |name| self.shared(name),
            left_out,
        );
        let kind = self.text(Field::Type, row)?;
        facts.insert_some(self.shared(Facts::TYPE), kind.as_deref().map(dlebench::spelled));
        // A column that is only taken for the type is known by its own name, too.
        let column = self.names.name(Field::Type);
        if !Field::Type.is_surely(column) {
            facts.insert_some(self.shared(column), kind.as_deref());
        }
        facts.insert_some(self.shared(Facts::TARGET), self.text(Field::Target, row)?);
        // For each of a million cases.
        facts.shrink_to_fit();
        edits.shrink_to_fit();
        others.shrink_to_fit();
        let case = Case {
            others,
            facts,
            regions,
            questions,
            id: id.unwrap_or_else(|| stem(&source_name)),
            ..Case::new(source, edits, instruction)
        };
        Ok(Draft { line: row.line, written, case, problems })
    }

    /// What a field brings, read by `read`.
    fn brought<T>(
        &self,
        field: Field,
        row: &Row,
        read: fn(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let value = self.names.get(field, &row.fields);
        value.map(read).transpose().map_err(|what| self.of(field, &what))
    }

    fn of(&self, field: Field, what: &str) -> String {
        format!("{}: {what}", self.quoted(field))
    }

    fn quoted(&self, field: Field) -> String {
        format!("the field {}", shown(self.names.name(field)))
    }

    /// A text; blank is absent. A list of texts is what some sets write for several targets.
    fn text(&self, field: Field, row: &Row) -> Result<Option<String>, String> {
        let value = match self.names.get(field, &row.fields) {
            None => return Ok(None),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(items)) if field == Field::Target => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.map(|texts| texts.join(", ")).ok_or_else(|| self.no_text(field, row))?
            }
            Some(_) => return Err(self.no_text(field, row)),
        };
        Ok((!value.trim().is_empty()).then_some(value))
    }

    fn no_text(&self, field: Field, row: &Row) -> String {
        let value = self.names.get(field, &row.fields).cloned().unwrap_or_default();
        format!("{} is {}, not a text", self.quoted(field), shown_json(&value))
    }

    /// The id that a row gives itself; numbers count as texts.
    fn id(&self, row: &Row) -> Result<Option<String>, String> {
        if !self.names.has(Field::Id) {
            return Ok(None);
        }
        let id = match self.names.get(Field::Id, &row.fields) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(self.no_text(Field::Id, row)),
            None => String::new(),
        };
        let quoted = self.quoted(Field::Id);
        if id.is_empty() {
            Err(format!("{quoted} is empty or absent, and other cases have it"))
        } else if id.chars().count() > LONGEST_ID || id.chars().any(char::is_control) {
            Err(format!(
                "{quoted} is {}: at most {LONGEST_ID} characters, and no control characters",
                shown(&id)
            ))
        } else {
            Ok(Some(id))
        }
    }

    /// The outputs that a row names, by editor.
    fn edits(&self, row: &Row) -> Result<BTreeMap<String, String>, String> {
        let mut edits = BTreeMap::new();
        if let Some(edited) = self.text(Field::Edited, row)? {
            let editor = self.text(Field::Editor, row)?.unwrap_or_else(|| SOMEBODY.to_owned());
            edits.insert(editor, edited);
        }
        let given = match self.names.get(Field::Edits, &row.fields) {
            None => return Ok(edits),
            // A cell of a table.
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(value) => value.clone(),
        };
        let form = || format!("{} must be {{\"EDITOR\": \"PATH\", …}}", self.quoted(Field::Edits));
        for (editor, name) in given.as_object().ok_or_else(form)? {
            let path = match name {
                Value::Null => continue,
                Value::String(path) if !editor.trim().is_empty() => path,
                _ => return Err(form()),
            };
            if edits.insert(editor.clone(), path.clone()).is_some_and(|other| other != *path) {
                return Err(format!("it names two edits by {}", shown(editor)));
            }
        }
        Ok(edits)
    }

    /// Looks for a file, first in the folder where a benchmark keeps such files.
    fn look(&self, name: &str, folder: &str) -> PictureFile {
        let beside = self.root.file(name);
        let in_folder = match folder {
            "" => None,
            folder => self.root.file(&format!("{folder}/{name}")).ok(),
        };
        if let Some(path) = in_folder {
            return PictureFile::Found(path);
        }
        let place = if folder.is_empty() { String::new() } else { format!(" (nor in {folder}/)") };
        match beside {
            Ok(path) => PictureFile::Found(path),
            Err(PathProblem::Missing) => PictureFile::Missing(format!(
                "there is no file {} in {}{place}",
                shown(name),
                self.root.in_words()
            )),
            Err(PathProblem::Refused(why) | PathProblem::Unreadable(why)) => {
                PictureFile::Unreadable(format!("{}: {why}", shown(name)))
            }
        }
    }

    /// What bare boxes mean: the name of their field says it, or the pictures do.
    fn form_of(&self, drafts: &[Draft]) -> Result<BoxForm, String> {
        if let Some(form) = self.names.form {
            return Ok(form);
        }
        let bare = |draft: &Draft| -> Vec<[f64; 4]> {
            let numbers = |written: &Written| match written {
                Written::Bare(numbers) => Some(*numbers),
                Written::Named(_) => None,
            };
            draft.written.iter().filter_map(numbers).collect()
        };
        let bare: Vec<_> = drafts
            .par_iter()
            .filter(|draft| !bare(draft).is_empty())
            .flat_map_iter(|draft| {
                let size = draft.case.source.path().and_then(|path| size_of_file(path).ok());
                bare(draft).into_iter().map(move |numbers| (numbers, size))
            })
            .collect();
        if bare.is_empty() { Ok(BoxForm::Corners) } else { boxes::form_of(bare) }
    }

    /// A name that is kept once, however many cases have it.
    fn shared(&self, name: &str) -> Arc<str> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared.get(name) {
            return Arc::clone(known);
        }
        let name = Arc::from(name);
        shared.insert(Arc::clone(&name));
        name
    }

    /// Where cases have no ids of their own they have the stem of their source, with a number where
    /// several of them share a picture.
    fn name(&self, drafts: &mut [Draft]) {
        if self.names.has(Field::Id) {
            return;
        }
        let mut sharing: HashMap<String, usize> = HashMap::new();
        for draft in drafts.iter() {
            *sharing.entry(draft.case.id.clone()).or_default() += 1;
        }
        let mut taken: HashSet<String> = sharing.keys().cloned().collect();
        // The number that each shared name goes on with: a million cases may share one picture.
        let mut next: HashMap<String, usize> = HashMap::new();
        for draft in drafts {
            let case = &mut draft.case;
            if sharing.get(&case.id).is_some_and(|count| *count > 1) {
                let number = next.entry(case.id.clone()).or_insert(1);
                while taken.contains(&format!("{}-{number}", case.id)) {
                    *number += 1;
                }
                case.id = format!("{}-{number}", case.id);
                *number += 1;
                taken.insert(case.id.clone());
            }
        }
    }

    /// A field that nothing is made of may be one of ours with a slip in it: told once.
    fn note_slips(&self, row: &Row, slips: &mut Slips<'a>) {
        for name in self.names.resembling() {
            if row.fields.contains_key(name)
                && let Some(field) = self.names.meant_by(name, &row.fields)
            {
                slips.entry(name).or_insert((row.line, field, 0)).2 += 1;
            }
        }
    }
}

/// The lines whose id stands on an earlier line, and which that is.
fn repeated(drafts: &[Draft]) -> HashMap<usize, usize> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut repeated = HashMap::new();
    for Draft { line, case, .. } in drafts {
        match first.entry(&case.id) {
            hash_map::Entry::Occupied(earlier) => {
                repeated.insert(*line, *earlier.get());
            }
            hash_map::Entry::Vacant(free) => {
                free.insert(*line);
            }
        }
    }
    repeated
}

/// The name of a file without folders and extension.
pub(super) fn stem(name: &str) -> String {
    let name = name.trim().replace('\\', "/");
    let file = name.rsplit('/').next().unwrap_or(&name);
    match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => file.to_owned(),
    }
}

//! What only the pictures themselves can tell about a data set.

use std::path::Path;

use deeplook_tools::picture::size_of_file;
use deeplook_tools::{PictureError, Size};
use rayon::prelude::*;

use super::problem::{Problems, Severity, shown};
use super::{DataSet, Entry, PictureFile};
use crate::case::InputPicture;
use crate::protocol::box_problem;

/// What was found out about one case.
type Findings = Vec<(Severity, String)>;

impl DataSet {
    /// Reads the headers of the sources: whether they are pictures, and whether the boxes lie in
    /// them. Thousands take a fraction of a second.
    pub fn check_headers(&mut self) {
        let found = self.cases.par_iter().map(|entry| {
            let mut findings = Findings::new();
            if let Some(path) = entry.case.source.path() {
                match size_of_file(path) {
                    Ok(size) => check_boxes(entry, size, &mut findings),
                    Err(error) => findings.push(unreadable("source", path, &error)),
                }
            }
            findings
        });
        self.report(found.collect());
    }

    /// Decodes every picture, and compares those of each case; `done` is called after each case.
    pub fn check_pictures(&mut self, done: &(dyn Fn() + Sync)) {
        let found = self.cases.par_iter().map(|entry| {
            let mut findings = Findings::new();
            check_case(entry, &mut findings);
            done();
            findings
        });
        self.report(found.collect());
    }

    fn report(&mut self, findings: Vec<Findings>) {
        let Self { cases, problems, .. } = self;
        for (entry, findings) in cases.iter().zip(findings) {
            for (severity, message) in findings {
                add(problems, entry, severity, message);
            }
        }
    }
}

fn add(problems: &mut Problems, entry: &Entry, severity: Severity, message: String) {
    let case = Some(entry.case.id.clone());
    let line = entry.line;
    match severity {
        Severity::Error => problems.error(line, case.as_deref(), message),
        Severity::Warning => problems.warning(line, case.as_deref(), message),
    }
}

fn unreadable(what: &str, path: &Path, error: &PictureError) -> (Severity, String) {
    let name = shown(&path.to_string_lossy());
    (Severity::Error, format!("{what}: cannot read the picture {name}: {}", error.problem))
}

/// An empty box was told when the file was read.
fn check_boxes(entry: &Entry, size: Size, findings: &mut Findings) {
    for (index, area) in
        entry.case.targets().iter().enumerate().filter(|(_, area)| !area.is_empty())
    {
        if let Some(problem) = box_problem(area, size) {
            let what = format!("box {} is {area} in a picture of {size}: {problem}", index + 1);
            findings.push((Severity::Error, what));
        }
    }
}

fn check_case(entry: &Entry, findings: &mut Findings) {
    let mut load = |what: &str, file: &PictureFile| {
        let path = file.path()?;
        InputPicture::load(path).map_err(|error| findings.push(unreadable(what, path, &error))).ok()
    };
    let source = load("source", &entry.case.source);
    let reference = entry.case.reference().and_then(|file| load("reference", file));
    let mut warn = Findings::new();
    let mut compare =
        |one: &str, picture: &InputPicture, other: &str, with: &InputPicture, meaning: &str| {
            if let Some(how) = sameness(picture, with) {
                warn.push((Severity::Warning, format!("{one} is {how} {other}: {meaning}")));
            }
        };
    if let (Some(source), Some(reference)) = (&source, &reference) {
        let meaning = "then nothing was to be done, or one of them is the wrong file";
        compare("the reference", reference, "as the source", source, meaning);
    }
    for (editor, file) in entry.edits() {
        let what = format!("edit by {}", shown(editor));
        let Some(edited) = load(&what, file) else { continue };
        let one = format!("the {what}");
        if let Some(source) = &source {
            let meaning = "the editor did nothing, or its input was filed as its output";
            compare(&one, &edited, "as the source", source, meaning);
        }
        if let Some(reference) = &reference {
            let meaning =
                "the edit is perfect by construction, or the reference was filed as an output";
            compare(&one, &edited, "as the reference", reference, meaning);
        }
    }
    if let Some(source) = &source {
        check_boxes(entry, source.picture().size(), findings);
    }
    findings.extend(warn);
}

fn sameness(one: &InputPicture, other: &InputPicture) -> Option<&'static str> {
    if one.hash() == other.hash() {
        Some("the same file, byte for byte,")
    } else if one.picture() == other.picture() {
        Some("in every pixel the same")
    } else {
        None
    }
}

//! From files to a [`Pack`]. Collects all that is wrong rather than stopping at the first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::file::{CriterionEntry, PackFile, Templates, VariantEntry};
use super::format1::OldFile;
use super::lint::{Check, Finding};
use super::role::Role;
use super::rules::{RuleEntry, RulesFile};
use super::source::{self, Files};
use super::template::{self, Fault};
use super::{Criterion, Pack, Rubric, Rule, Variant, making};

pub(super) const PACK: &str = "pack.toml";
pub(super) const RULES: &str = "rules.toml";
/// The newest format that is read.
const FORMAT: u32 = 2;

/// The pack of these files, in this variant, or everything that keeps it from being one.
pub(super) fn parse(files: Files, variant: Option<&str>) -> Result<Pack, Vec<Finding>> {
    let mut findings = Vec::new();
    let file = pack_file(&files, &mut findings);
    // A pack of format 1 always has rules; today one can do without.
    let no_rules = !files.contains_key(RULES) && file.as_ref().is_some_and(|f| f.format > 1);
    let rules: Option<RulesFile> = match no_rules {
        true => Some(RulesFile::default()),
        false => read_toml(&files, RULES, &mut findings),
    };
    let environment = compile(&files, &mut findings);
    let (Some(file), Some(rules), Some(environment)) = (file, rules, environment) else {
        return Err(findings);
    };
    let variants: Vec<Variant> = file.variants.iter().map(Variant::of).collect();
    let (file, mut rubric) = make(file, variant, &files, &mut findings)?;
    let text = text_of(&files, PACK).unwrap_or_default();
    for (criterion, entry) in rubric.criteria.iter_mut().zip(&file.criteria) {
        criterion.templates =
            templates_of(&file.templates, entry, criterion, text, &files, &mut findings);
    }
    let rules_text = text_of(&files, RULES).unwrap_or_default();
    let rules = self::rules(rules, rules_text, &rubric.criteria, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let texts = rubric.criteria.iter().map(|criterion| {
        let own = rules.iter().filter(|rule| rule.criteria.contains(&criterion.id));
        let texts = own.map(|rule| (rule.id.clone(), rule.text.clone())).collect();
        (criterion.id.clone(), Arc::new(texts))
    });
    Ok(Pack {
        name: file.name,
        version: file.version,
        about: file.about,
        hash: source::hash(&files),
        variants,
        texts: texts.collect(),
        files,
        rubric: Arc::new(rubric),
        rules,
        environment,
    })
}

/// The rubric of these files: no template is looked at.
pub(super) fn rubric(files: &Files, variant: Option<&str>) -> Result<Rubric, Vec<Finding>> {
    let mut findings = Vec::new();
    let file = pack_file(files, &mut findings).ok_or_else(|| std::mem::take(&mut findings))?;
    let (_, rubric) = make(file, variant, files, &mut findings)?;
    if findings.is_empty() { Ok(rubric) } else { Err(findings) }
}

/// `pack.toml`, whatever its format.
fn pack_file(files: &Files, findings: &mut Vec<Finding>) -> Option<PackFile> {
    #[derive(Deserialize)]
    struct Head {
        format: Option<u32>,
    }
    let head: Head = read_toml(files, PACK, findings)?;
    let converted = match head.format {
        None | Some(1) => read_toml::<OldFile>(files, PACK, findings)?.converted(),
        Some(FORMAT) => return read_toml(files, PACK, findings),
        Some(other) => {
            let message = format!(
                "format = {other} is none that this version of deeplook reads; it reads up to {FORMAT}"
            );
            findings.push(Finding::new(Check::Format, PACK, None, message));
            return None;
        }
    };
    match converted {
        Ok(file) => Some(file),
        Err(error) => {
            findings.push(Finding::new(Check::Format, PACK, None, error.to_string()));
            None
        }
    }
}

/// The file with the changes of a variant, and its rubric.
fn make(
    file: PackFile,
    variant: Option<&str>,
    files: &Files,
    findings: &mut Vec<Finding>,
) -> Result<(PackFile, Rubric), Vec<Finding>> {
    let text = text_of(files, PACK).unwrap_or_default();
    check_name("name", &file.name, findings);
    check_name("version", &file.version, findings);
    check_variants(&file, text, findings);
    let chosen = variant.map(|name| {
        file.variants.iter().find(|entry| entry.name.get_ref() == name).cloned().ok_or_else(|| {
            let known: Vec<&str> =
                file.variants.iter().map(|entry| entry.name.get_ref().as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("there is no variant {name:?}; there are: {known}");
            vec![Finding::new(Check::Format, PACK, None, message)]
        })
    });
    let chosen = chosen.transpose()?;
    let file = match &chosen {
        Some(chosen) => file.varied(chosen),
        None => file,
    };
    let (mut rubric, found) = making::rubric(&file, text);
    findings.extend(found);
    rubric.variant = variant.map(str::to_owned);
    Ok((file, rubric))
}

impl Variant {
    fn of(entry: &VariantEntry) -> Self {
        Self { name: entry.name.get_ref().clone(), about: entry.about.clone() }
    }
}

fn check_variants(file: &PackFile, text: &str, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for variant in &file.variants {
        let name = variant.name.get_ref();
        let mut wrong = |at: usize, message: String| {
            findings.push(Finding::new(Check::Format, PACK, Some(line_at(text, at)), message));
        };
        if !seen.insert(name) || name.trim().is_empty() {
            let message =
                format!("a variant is called {name:?}, which is empty or taken; rename it");
            wrong(variant.name.span().start, message);
        }
        for entry in &variant.criteria {
            let id = entry.id.get_ref();
            if !file.criteria.iter().any(|known| known.id.get_ref() == id) {
                let message = format!("the variant {name:?} changes {id:?}, which is no criterion");
                wrong(entry.id.span().start, message);
            }
        }
        for entry in &variant.composites {
            let id = entry.id.get_ref();
            if !file.composites.iter().any(|known| known.id.get_ref() == id) {
                let message = format!("the variant {name:?} changes {id:?}, which is no composite");
                wrong(entry.id.span().start, message);
            }
        }
    }
}

/// A file's text, if it is there and is text.
pub(super) fn text_of<'a>(files: &'a Files, name: &str) -> Option<&'a str> {
    files.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
}

/// The templates among the files, with their texts.
pub(super) fn templates(files: &Files) -> impl Iterator<Item = (&str, &str)> {
    files
        .keys()
        .filter(|name| name.ends_with(".j2"))
        .filter_map(|name| text_of(files, name).map(|text| (name.as_str(), text)))
}

/// The line of a place in a text, counted from 1.
pub(super) fn line_at(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count()
}

fn read_toml<T: DeserializeOwned>(
    files: &Files,
    name: &str,
    findings: &mut Vec<Finding>,
) -> Option<T> {
    let mut wrong = |line, message| {
        findings.push(Finding::new(Check::Format, name, line, message));
        None
    };
    let Some(bytes) = files.get(name) else {
        return wrong(None, "the file is missing; every pack has one".to_owned());
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return wrong(None, "this is not UTF-8 text; save it as UTF-8".to_owned());
    };
    match toml::from_str(text) {
        Ok(value) => Some(value),
        Err(error) => {
            let line = error.span().map(|span| line_at(text, span.start));
            wrong(line, format!("{}; see prompts/README.md", error.message().trim()))
        }
    }
}

/// All templates, compiled; `None` if one of them cannot be.
fn compile(files: &Files, findings: &mut Vec<Finding>) -> Option<minijinja::Environment<'static>> {
    let before = findings.len();
    let mut environment = match template::environment() {
        Ok(environment) => environment,
        Err(error) => {
            findings.push(Finding::new(Check::Template, PACK, None, error.to_string()));
            return None;
        }
    };
    for name in files.keys().filter(|name| name.ends_with(".j2")) {
        let mut wrong = |line, message| {
            findings.push(Finding::new(Check::Template, name, line, message));
        };
        let Some(text) = text_of(files, name) else {
            wrong(None, "this is not UTF-8 text; save it as UTF-8".to_owned());
            continue;
        };
        let uses = match template::scan(text) {
            Ok(uses) => uses,
            Err((line, message)) => {
                wrong(Some(line), message);
                continue;
            }
        };
        for (include, line) in uses.includes {
            if let Some(message) = missing_template(files, &include) {
                wrong(Some(line), message);
            }
        }
        if let Err(error) = environment.add_template_owned(name.clone(), text.to_owned()) {
            let Fault { line, message, .. } = Fault::of(&error, name);
            wrong(line, format!("{message}; correct the template"));
        }
    }
    (findings.len() == before).then_some(environment)
}

/// What to say where no file is the template `name`.
fn missing_template(files: &Files, name: &str) -> Option<String> {
    (!name.ends_with(".j2") || !files.contains_key(name))
        .then(|| format!("there is no template {name:?}; add it or correct its name"))
}

fn check_name(key: &str, name: &str, findings: &mut Vec<Finding>) {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(fine) {
        let message =
            format!("{key} = {name:?} is no {key}; use lower-case letters, digits and dashes");
        findings.push(Finding::new(Check::Format, PACK, None, message));
    }
}

/// The templates of a criterion by role; those that it needs must be there.
fn templates_of(
    for_all: &Templates,
    entry: &CriterionEntry,
    criterion: &Criterion,
    text: &str,
    files: &Files,
    findings: &mut Vec<Finding>,
) -> BTreeMap<Role, String> {
    if criterion.measure.is_some() {
        return BTreeMap::new();
    }
    let named = for_all.iter().chain(&entry.templates).map(|(role, name)| (*role, name));
    let named: BTreeMap<Role, &toml::Spanned<String>> = named.collect();
    let tools = criterion.modes.values().any(|mode| mode.tools);
    let id = &criterion.id;
    for role in Role::ALL.into_iter().filter(|role| role.is_needed(tools)) {
        if !named.contains_key(&role) {
            let line = Some(line_at(text, entry.id.span().start));
            let message =
                format!("the criterion {id:?} has no {role} template; name one under templates");
            findings.push(Finding::new(Check::Template, PACK, line, message));
        }
    }
    for name in named.values() {
        if let Some(message) = missing_template(files, name.get_ref()) {
            let line = Some(line_at(text, name.span().start));
            findings.push(Finding::new(Check::Template, PACK, line, message));
        }
    }
    named.into_iter().map(|(role, name)| (role, name.get_ref().clone())).collect()
}

fn rules(
    file: RulesFile,
    text: &str,
    criteria: &[Criterion],
    findings: &mut Vec<Finding>,
) -> Vec<Rule> {
    let mut seen = BTreeSet::new();
    file.rules
        .into_iter()
        .map(|entry| {
            let line = line_at(text, entry.id.span().start);
            let RuleEntry { id, criteria: own, section, ours, note, text } = entry;
            let id = id.into_inner();
            let mut wrong =
                |message| findings.push(Finding::new(Check::Rule, RULES, Some(line), message));
            if !seen.insert(id.clone()) {
                wrong(format!("there are two rules {id:?}; rename one"));
            }
            if own.is_empty() {
                wrong(format!("the rule {id:?} belongs to no criterion; name one under criteria"));
            }
            for criterion in own.iter().filter(|own| !criteria.iter().any(|c| c.id == **own)) {
                wrong(format!(
                    "the rule {id:?} belongs to {criterion:?}, which is no criterion; correct it"
                ));
            }
            if [&id, &section, &text].iter().any(|field| field.trim().is_empty()) {
                wrong(format!("the rule {id:?} has an empty id, section or text; fill it in"));
            }
            if ours && note.is_none() {
                wrong(format!("the rule {id:?} is ours without a note; say why under note"));
            }
            Rule { id, criteria: own, section, ours, note, text, line }
        })
        .collect()
}

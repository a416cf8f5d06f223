//! From files to a [`Pack`]. Collects all that is wrong rather than stopping at the first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;

use super::lint::{Check, Finding};
use super::pack::{CriterionEntry, PackFile, Role, RuleEntry, RulesFile};
use super::source::{self, Files};
use super::template::{self, Fault};
use super::{Criterion, Pack, Rule};

const PACK: &str = "pack.toml";
pub(super) const RULES: &str = "rules.toml";

/// The pack of these files, or everything that keeps it from being one.
pub(super) fn parse(files: Files) -> Result<Pack, Vec<Finding>> {
    let mut findings = Vec::new();
    let pack: Option<PackFile> = read_toml(&files, PACK, &mut findings);
    let rules: Option<RulesFile> = read_toml(&files, RULES, &mut findings);
    let environment = compile(&files, &mut findings);
    let (Some(pack), Some(rules), Some(environment)) = (pack, rules, environment) else {
        return Err(findings);
    };
    check_name("name", &pack.name, &mut findings);
    check_name("version", &pack.version, &mut findings);
    if pack.criteria.is_empty() {
        let message = "there is no [[criterion]]; add one".to_owned();
        findings.push(Finding::new(Check::Format, PACK, None, message));
    }
    let pack_text = text_of(&files, PACK).unwrap_or_default();
    let criteria = criteria(&pack, pack_text, &files, &mut findings);
    let rules_text = text_of(&files, RULES).unwrap_or_default();
    let rules = self::rules(rules, rules_text, &criteria, &mut findings);
    if !findings.is_empty() {
        return Err(findings);
    }
    let texts = criteria.iter().map(|criterion| {
        let own = rules.iter().filter(|rule| rule.criteria.contains(&criterion.id));
        let texts = own.map(|rule| (rule.id.clone(), rule.text.clone())).collect();
        (criterion.id.clone(), Arc::new(texts))
    });
    Ok(Pack {
        name: pack.name,
        version: pack.version,
        about: pack.about,
        hash: source::hash(&files),
        texts: texts.collect(),
        files,
        criteria,
        rules,
        environment,
    })
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
fn line_at(text: &str, place: usize) -> usize {
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

fn criteria(
    pack: &PackFile,
    text: &str,
    files: &Files,
    findings: &mut Vec<Finding>,
) -> Vec<Criterion> {
    let mut seen = BTreeSet::new();
    pack.criteria
        .iter()
        .map(|entry| {
            let line = Some(line_at(text, entry.id.span().start));
            let id = entry.id.get_ref();
            let mut wrong = |check, line, message| {
                findings.push(Finding::new(check, PACK, line, message));
            };
            if !seen.insert(id) {
                wrong(Check::Format, line, format!("there are two criteria {id:?}; rename one"));
            }
            let templates = templates_of(pack, entry);
            for role in Role::ALL {
                match templates.get(&role) {
                    None => wrong(
                        Check::Template,
                        line,
                        format!("the criterion {id:?} has no {role} template; name one under templates"),
                    ),
                    Some(name) => {
                        if let Some(message) = missing_template(files, name.get_ref()) {
                            let line = Some(line_at(text, name.span().start));
                            wrong(Check::Template, line, message);
                        }
                    }
                }
            }
            if entry.modes.is_empty() {
                wrong(Check::Format, line, format!("the criterion {id:?} has no mode; add one under modes"));
            }
            let criterion = Criterion {
                id: id.clone(),
                name: entry.name.clone(),
                answer: entry.answer.clone(),
                score: entry.score.clone(),
                modes: entry.modes.clone(),
                templates: templates.into_iter().map(|(role, name)| (role, name.get_ref().clone())).collect(),
            };
            let labels = criterion.labels();
            let names: BTreeSet<&str> = labels.iter().map(|label| label.name.as_str()).collect();
            if labels.len() < 2 || names.len() < labels.len() || names.contains("") {
                wrong(Check::Label, line, format!("the criterion {id:?} needs two or more different labels; name them under answer"));
            }
            if let Some(problem) = criterion.score.problem_with(labels) {
                wrong(Check::Label, line, format!("the score of {id:?}: {problem}"));
            }
            criterion
        })
        .collect()
}

fn templates_of<'a>(
    pack: &'a PackFile,
    criterion: &'a CriterionEntry,
) -> BTreeMap<Role, &'a Spanned<String>> {
    pack.templates.iter().chain(&criterion.templates).map(|(role, name)| (*role, name)).collect()
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

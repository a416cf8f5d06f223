//! What is wrong with a pack, before a model sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use deeplook_tools::ToolSpec;
use serde::Serialize;
use serde_json::json;

use super::criterion::{Ask, Criterion};
use super::parse::{self, RULES};
use super::role::Role;
use super::source::Files;
use super::template::{self, Fault};
use super::{Pack, Prompt, PromptError};

/// Something wrong with a pack: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The file of the pack.
    pub file: String,
    /// The line in it, from 1, where there is one.
    pub line: Option<usize>,
    /// What it is about.
    pub check: Check,
    /// What is wrong and what to do.
    pub message: String,
}

/// What a [`Finding`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// `pack.toml` or `rules.toml` cannot be read or makes no sense.
    Format,
    /// A template is missing, unused, or cannot be rendered.
    Template,
    /// A variable that is not there, or that nothing uses.
    Variable,
    /// A rule that does not exist, or that no prompt of its criterion shows.
    Rule,
    /// A label that is missing, misspelt, of another criterion, or beside a number.
    Label,
}

impl Finding {
    pub(super) fn new(check: Check, file: &str, line: Option<usize>, message: String) -> Self {
        Self { file: file.to_owned(), line, check, message }
    }

    pub(super) fn of_fault(fault: Fault, role: Role) -> Self {
        let Fault { file, line, message, undefined } = fault;
        let (check, message) = if undefined {
            let known = [role.variables(), &Role::COMMON].concat().join(", ");
            (Check::Variable, format!("{message}; a {role} template can use {known}"))
        } else {
            (Check::Template, message)
        };
        Self { file, line, check, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// All that is wrong with a pack of these files and with its variants, in the order of files and
/// lines.
pub fn lint(files: &Files) -> Vec<Finding> {
    let mut findings = match parse::parse(files.clone(), None) {
        Ok(pack) => check_all(pack),
        Err(findings) => findings,
    };
    findings.sort();
    findings.dedup();
    findings
}

/// The pack as it is, then whatever else is wrong in its variants.
fn check_all(pack: Pack) -> Vec<Finding> {
    let mut packs = vec![pack];
    let mut findings = check(&packs[0]);
    let variants: Vec<String> = packs[0].variants.iter().map(|one| one.name.clone()).collect();
    for name in variants {
        let found = match parse::parse(packs[0].files.clone(), Some(&name)) {
            Ok(pack) => {
                let found = check(&pack);
                packs.push(pack);
                found
            }
            Err(found) => found,
        };
        let new: Vec<Finding> = found.into_iter().filter(|one| !findings.contains(one)).collect();
        findings.extend(new.into_iter().map(|one| {
            let message = format!("in the variant {name:?}: {}", one.message);
            Finding { message, ..one }
        }));
    }
    findings.extend(Graph::of(&packs[0]).unreferenced(&packs));
    // Where a prompt cannot be rendered, nobody knows what it would show.
    if !findings
        .iter()
        .any(|one| matches!(one.check, Check::Rule | Check::Variable | Check::Template))
    {
        findings.extend(unplaced_rules(&packs));
    }
    findings
}

fn check(pack: &Pack) -> Vec<Finding> {
    let graph = Graph::of(pack);
    let mut findings = graph.variables(pack);
    findings.extend(graph.unknown_rules(pack));
    for criterion in pack.criteria() {
        findings.extend(graph.unexplained(pack, criterion));
    }
    // What is known to fail need not be tried.
    if findings.iter().any(|finding| matches!(finding.check, Check::Rule | Check::Variable)) {
        return findings;
    }
    for criterion in pack.criteria() {
        let (prompts, faults) = render_all(pack, criterion);
        findings.extend(labels(pack, criterion, &prompts));
        findings.extend(faults);
    }
    findings
}

/// The prompts of a criterion, and why some could not be rendered.
fn render_all(pack: &Pack, criterion: &Criterion) -> (Vec<Prompt>, Vec<Finding>) {
    let (mut prompts, mut faults) = (Vec::new(), Vec::new());
    for prompt in pack.prompts_of(criterion, &sample_tools()) {
        match prompt {
            Ok(prompt) => prompts.push(prompt),
            Err(PromptError::Wrong(findings)) => faults.extend(findings),
            Err(error) => {
                let message = error.to_string();
                faults.push(Finding::new(Check::Template, "pack.toml", None, message));
            }
        }
    }
    (prompts, faults)
}

/// Tools of all the names that templates may ask for.
fn sample_tools() -> Vec<ToolSpec> {
    ["localize_differences", "detect_object", "zoom_in", "another_tool"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: "What it is for.".to_owned(),
            parameters: json!({"type": "object"}),
        })
        .into()
}

/// Which template uses what.
struct Graph<'a> {
    uses: BTreeMap<&'a str, template::Uses>,
}

impl<'a> Graph<'a> {
    fn of(pack: &'a Pack) -> Self {
        let uses = parse::templates(&pack.files)
            .map(|(name, text)| (name, template::scan(text).unwrap_or_default()));
        Self { uses: uses.collect() }
    }

    /// The template and all that it includes.
    fn reachable(&self, name: &str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            if let Some((name, uses)) = self.uses.get_key_value(name)
                && reached.insert(*name)
            {
                next.extend(uses.includes.iter().map(|(include, _)| include.as_str()));
            }
        }
        reached
    }

    /// Variables that a template asks for and does not get, or that no template of a role uses and
    /// one must.
    fn variables(&self, pack: &Pack) -> Vec<Finding> {
        let mut findings = Vec::new();
        for role in Role::ALL {
            let with = pack.criteria().iter().filter(|c| c.templates.contains_key(&role));
            let starts = with.clone().filter_map(|c| c.templates.get(&role));
            let known = [role.variables(), &Role::COMMON].concat();
            let mut used = BTreeSet::new();
            for name in starts.clone().flat_map(|start| self.reachable(start)) {
                let Ok(template) = pack.environment.get_template(name) else { continue };
                for variable in template.undeclared_variables(false) {
                    if variable == "loop" {
                        continue;
                    }
                    if !known.contains(&variable.as_str()) {
                        let known = known.join(", ");
                        let line =
                            parse::text_of(&pack.files, name).and_then(|t| line_of(t, &variable));
                        let message = format!(
                            "the variable {variable:?} does not exist in a {role} prompt; use one of {known}"
                        );
                        findings.push(Finding::new(Check::Variable, name, line, message));
                    }
                    used.insert(variable);
                }
            }
            let needed: BTreeSet<&str> =
                with.flat_map(|criterion| needed(role, criterion)).collect();
            let unused = needed.into_iter().filter(|variable| !used.contains(*variable));
            for (variable, start) in unused.zip(starts.cycle()) {
                let message = format!("no {role} prompt uses the variable {variable:?}; place it");
                findings.push(Finding::new(Check::Variable, start, None, message));
            }
        }
        findings
    }

    /// Templates that neither the pack nor a variant uses.
    fn unreferenced(&self, packs: &[Pack]) -> Vec<Finding> {
        let criteria = packs.iter().flat_map(Pack::criteria);
        let starts = criteria.flat_map(|criterion| criterion.templates.values());
        let reached: BTreeSet<&str> = starts.flat_map(|start| self.reachable(start)).collect();
        let lost = self.uses.keys().filter(|name| !reached.contains(**name));
        lost.map(|name| {
            let message =
                "nothing uses this template; name it in pack.toml, include it or delete it";
            Finding::new(Check::Template, name, None, message.to_owned())
        })
        .collect()
    }

    /// Labels and keys that neither the templates of the first message nor the rules speak of. The
    /// list that comes from `pack.toml` itself explains nothing.
    fn unexplained(&self, pack: &Pack, criterion: &Criterion) -> Vec<Finding> {
        let roles = [Role::System, Role::Task].into_iter();
        let starts: Vec<&String> =
            roles.filter_map(|role| criterion.templates.get(&role)).collect();
        let Some(start) = starts.first() else { return Vec::new() };
        let names: BTreeSet<&str> = starts.iter().flat_map(|name| self.reachable(name)).collect();
        let templates = names.iter().filter_map(|name| parse::text_of(&pack.files, name));
        let rules = pack.rules.iter().filter(|rule| rule.criteria.contains(&criterion.id));
        let texts: Vec<&str> = templates.chain(rules.map(|rule| rule.text.as_str())).collect();
        let labels = criterion.labels().iter().map(|label| ("label", &label.name));
        let keys = criterion.keys().iter().map(|key| ("key", &key.name));
        labels
            .chain(keys)
            .filter(|(_, name)| !texts.iter().any(|text| text.contains(name.as_str())))
            .map(|(what, name)| {
                let id = &criterion.id;
                let message = format!(
                    "the base prompt of {id:?} does not explain the {what} {name:?}; add it"
                );
                Finding::new(Check::Label, start, None, message)
            })
            .collect()
    }

    fn unknown_rules(&self, pack: &Pack) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, uses) in &self.uses {
            for (id, line) in &uses.rules {
                if !pack.rules.iter().any(|rule| rule.id == *id) {
                    let message =
                        format!("there is no rule {id:?}; add it to {RULES} or correct the id");
                    findings.push(Finding::new(Check::Rule, name, Some(*line), message));
                }
            }
        }
        findings
    }
}

/// The first line with this word in it.
fn line_of(text: &str, word: &str) -> Option<usize> {
    let has =
        |line: &str| line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == word);
    text.lines().position(has).map(|line| line + 1)
}

/// The variables that the prompts of a criterion must show.
fn needed(role: Role, criterion: &Criterion) -> Vec<&'static str> {
    let modes = || criterion.modes.values();
    let looks = modes().any(|mode| mode.tools);
    let measured = modes().any(|m| m.frame || m.views.iter().any(|v| v.treatment.area().is_some()));
    let wanted: &[(&'static str, bool)] = match role {
        Role::System | Role::LastTurn | Role::NoMoreTools => &[],
        Role::Tools => &[("dialect", true), ("tools", true)],
        Role::Task => &[
            ("instruction", criterion.instruction),
            ("notes", measured),
            ("question", modes().any(|mode| mode.ask == Ask::Questions)),
        ],
        Role::Reminder => &[("dialect", looks), ("tools_allowed", looks), ("turns_left", looks)],
        Role::Repair => &[("problem", true)],
    };
    wanted.iter().filter_map(|(name, wanted)| wanted.then_some(*name)).collect()
}

/// Rules that no prompt of their criteria shows, in the pack or a variant.
fn unplaced_rules(packs: &[Pack]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for criterion in packs.iter().take(1).flat_map(Pack::criteria) {
        let in_packs = packs
            .iter()
            .filter_map(|pack| Some(render_all(pack, pack.criterion(&criterion.id).ok()?).0));
        let prompts: Vec<Prompt> = in_packs.flatten().collect();
        let rules = packs.iter().take(1).flat_map(Pack::rules);
        for rule in rules.filter(|rule| rule.criteria.contains(&criterion.id)) {
            if prompts.iter().any(|prompt| prompt.placed.contains(&rule.id)) {
                continue;
            }
            let (criterion, id) = (&criterion.id, &rule.id);
            let message = format!(
                "no prompt of {criterion:?} shows the rule {id:?}; place it with {{{{ rule({id:?}) }}}} or delete it"
            );
            findings.push(Finding::new(Check::Rule, RULES, Some(rule.line), message));
        }
    }
    findings
}

/// Labels as the prompts of a criterion write them.
fn labels(pack: &Pack, criterion: &Criterion, prompts: &[Prompt]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // "No" is a label here and a word everywhere.
    let names = |criterion: &'_ Criterion| -> Vec<String> {
        let names = criterion.labels().iter().map(|label| label.name.clone());
        names.filter(|name| name.contains(' ')).collect()
    };
    let own = names(criterion);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let others: Vec<String> = pack.criteria().iter().flat_map(names).collect();
    let others = others.iter().map(String::as_str);
    let others: BTreeSet<&str> = others.filter(|name| !own.contains(name)).collect();
    for prompt in prompts {
        let mut wrong = |message| {
            findings.push(Finding::new(Check::Label, &prompt.file, None, message));
        };
        let (id, title, text) = (&prompt.criterion, &prompt.title, &prompt.text);
        for &label in &own {
            for seen in misspellings(text, label).filter(|seen| !own.contains(&seen.as_str())) {
                wrong(format!(
                    "the {title} prompt of {id:?} writes {seen:?}; the label is {label:?}"
                ));
            }
            if let Some(seen) = beside_number(text, label) {
                wrong(format!(
                    "the {title} prompt of {id:?} puts a number to a label, {seen:?}; take it out"
                ));
            }
        }
        for label in others.iter().filter(|label| text.contains(**label)) {
            wrong(format!(
                "the {title} prompt of {id:?} names {label:?}, a label of another criterion; take it out"
            ));
        }
    }
    findings
}

/// Words in `text` that look like `label` without being it.
fn misspellings(text: &str, label: &str) -> impl Iterator<Item = String> {
    let length = label.split_whitespace().count().max(1);
    let words: Vec<&str> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    let near = |seen: &String| {
        // A short label has no room for slips: "No" is not a misspelt "Yes".
        let slips = (label.chars().count() / 5).min(2);
        seen != label && (seen.eq_ignore_ascii_case(label) || distance(seen, label) <= slips)
    };
    let found: BTreeSet<String> = words.windows(length).map(|w| w.join(" ")).filter(near).collect();
    found.into_iter()
}

/// How many letters must be put in, taken out or changed to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The label with a number directly before or after it, such as "Score 4 (Label)", on one line.
fn beside_number(text: &str, label: &str) -> Option<String> {
    const BETWEEN: [&str; 5] = ["score", "rank", "level", "grade", "points"];
    let is_number =
        |word: Option<&str>| word.is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()));
    let words = |text: &'_ str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).filter(|word| !BETWEEN.contains(&word.as_str())).collect()
    };
    text.lines().find_map(|line| {
        line.match_indices(label).find_map(|(at, _)| {
            let (before, after) = (words(&line[..at]), words(&line[at + label.len()..]));
            let beside = is_number(before.last().map(String::as_str))
                || is_number(after.first().map(String::as_str));
            beside.then(|| line.trim().to_owned())
        })
    })
}

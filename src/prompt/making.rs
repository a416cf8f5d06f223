//! From what `pack.toml` says to what a pack is. All that is wrong is collected, with its line.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Spanned;

use super::criterion::{
    AnswerKind, Ask, Criterion, Gate, Key, KeyValue, Label, Mode, ModeView, PictureView, Skip,
    TextPlace,
};
use super::file::{
    AnswerEntry, AskName, CriterionEntry, FactValues, FormName, FunctionName, GateEntry, KeyEntry,
    MeasureEntry, PackFile, ScaleEntry, ScoreEntry, SkipEntry,
};
use super::lint::{Check, Finding};
use super::parse::{PACK, line_at};
use super::rubric::Rubric;
use super::score::{Scale, ScoreFunction};
use super::views;
use crate::answer::{plain, same_value};
use crate::case::{Condition, TARGET};
use crate::measure::Measure;

/// Makes a rubric of the file and collects what is wrong.
pub(super) struct Making<'a> {
    text: &'a str,
    pub(super) pictures: BTreeMap<String, String>,
    pub(super) findings: Vec<Finding>,
}

/// The names of the pictures that every case can have.
const PICTURES: [(&str, &str); 3] = [
    ("source", deeplook_tools::scene::ORIGINAL),
    ("edited", deeplook_tools::scene::EDITED),
    ("reference", deeplook_tools::scene::REFERENCE),
];

/// The rubric of a file, as far as it can be made, and what is wrong with it.
pub(super) fn rubric(file: &PackFile, text: &str) -> (Rubric, Vec<Finding>) {
    let known = PICTURES.map(|(picture, name)| (picture.to_owned(), name.to_owned()));
    let mut pictures = BTreeMap::from(known);
    pictures.extend(file.pictures.clone());
    let mut making = Making { text, pictures, findings: Vec::new() };
    let criteria = making.criteria(&file.criteria);
    let composites = making.composites(&file.composites, &criteria);
    let report = making.report(&file.report, &criteria, &composites);
    making.skips(&file.criteria, &criteria);
    let Making { pictures, findings, .. } = making;
    (Rubric { variant: None, pictures, criteria, composites, report }, findings)
}

impl Making<'_> {
    pub(super) fn wrong(&mut self, check: Check, at: usize, message: String) {
        let line = Some(line_at(self.text, at));
        self.findings.push(Finding::new(check, PACK, line, message));
    }

    fn criteria(&mut self, entries: &[CriterionEntry]) -> Vec<Criterion> {
        if entries.is_empty() {
            let message = "there is no [[criterion]]; add one".to_owned();
            self.findings.push(Finding::new(Check::Format, PACK, None, message));
        }
        let mut seen = BTreeSet::new();
        let mut criteria = Vec::new();
        for entry in entries {
            let (id, at) = (entry.id.get_ref(), entry.id.span().start);
            if !seen.insert(id) {
                self.wrong(Check::Format, at, format!("there are two criteria {id:?}; rename one"));
            }
            if id == "all" || id == "both" || id.contains(',') || id.trim() != id || id.is_empty() {
                let message = format!("{id:?} cannot name a criterion; use a short word");
                self.wrong(Check::Format, at, message);
            }
            criteria.push(self.criterion(entry));
        }
        criteria
    }

    fn criterion(&mut self, entry: &CriterionEntry) -> Criterion {
        let (id, at) = (entry.id.get_ref().clone(), entry.id.span().start);
        if entry.name.as_ref().is_none_or(|name| name.trim().is_empty()) {
            self.wrong(Check::Format, at, format!("the criterion {id:?} has no name; add one"));
        }
        if entry.modes.is_empty() && entry.measure.is_none() {
            let message = format!("the criterion {id:?} has no mode; add one under modes");
            self.wrong(Check::Format, at, message);
        }
        let modes: BTreeMap<_, _> = entry
            .modes
            .iter()
            .map(|(mode, shown)| {
                let ask = self.ask(entry, shown.ask.or(entry.ask).unwrap_or(AskName::Whole));
                let views = views::of_mode(self, *mode, shown, &ask, &entry.id);
                let tools = shown.tools.unwrap_or(false);
                let frame =
                    shown.frame.unwrap_or(tools || views.iter().any(PictureView::is_placed));
                let view = ModeView {
                    ask,
                    views,
                    tools,
                    frame,
                    text: shown.text.unwrap_or_default(),
                    captions: shown.captions.unwrap_or(true),
                };
                (*mode, view)
            })
            .collect();
        let scale = self.scale(entry.scale, &entry.id);
        let measure = entry.measure.as_ref().map(|measure| self.measure(entry, measure));
        let (modes, answer, score) = match &measure {
            // The same number, whatever a judge would get to see.
            Some(_) => (measured_modes(), AnswerKind::Number, ScoreFunction::Measured),
            None => {
                let answer = self.answer(&entry.answer, &entry.id);
                let score = self.score(&entry.score, &answer, &modes, &entry.id);
                (modes, answer, score)
            }
        };
        if scale.highest.is_none() && measure.is_none() {
            let message =
                format!("the scale of {id:?} has no highest, and its score needs one; add it");
            self.wrong(Check::Format, at, message);
        }
        Criterion {
            name: entry.name.clone().unwrap_or_default(),
            applies: self.conditions(&entry.applies, at),
            instruction: entry.instruction.unwrap_or(true),
            measure,
            answer,
            score,
            scale,
            combine: entry.combine.unwrap_or_default(),
            repeats: entry.repeats.unwrap_or_default(),
            skip: entry.skip.as_ref().map(|skip| {
                let SkipEntry { criterion, at_most, worth } = skip.get_ref().clone();
                Skip { criterion, at_most, worth }
            }),
            modes,
            templates: BTreeMap::new(),
            id,
        }
    }

    fn measure(&mut self, entry: &CriterionEntry, spanned: &Spanned<MeasureEntry>) -> Measure {
        let (id, at) = (entry.id.get_ref(), spanned.span().start);
        let asks = entry.answer.form.is_some()
            || entry.answer.labels.is_some()
            || entry.answer.keys.is_some()
            || entry.score.function.is_some()
            || entry.ask.is_some()
            || !entry.modes.is_empty();
        if asks {
            let message = format!(
                "{id:?} is measured, and asks nobody; drop its ask, answer, score and modes"
            );
            self.wrong(Check::Format, at, message);
        }
        let MeasureEntry { function, pictures, region, settings } = spanned.get_ref().clone();
        let pictures = pictures.unwrap_or_default();
        self.known_pictures(&pictures, at);
        let measure = Measure {
            name: function.unwrap_or_default(),
            pictures,
            region,
            settings: settings.into_iter().collect(),
        };
        if let Err(problem) = measure.check() {
            self.wrong(Check::Format, at, format!("the measure of {id:?}: {problem}"));
        }
        measure
    }

    /// Pictures that a pack speaks of are named in it.
    pub(super) fn known_pictures<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a String>,
        at: usize,
    ) {
        for picture in names {
            if !self.pictures.contains_key(picture) {
                let known = self.pictures.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                let message = format!(
                    "no case has a picture {picture:?}; name it under pictures, or use one of {known}"
                );
                self.wrong(Check::Format, at, message);
            }
        }
    }

    fn ask(&mut self, entry: &CriterionEntry, ask: AskName) -> Ask {
        match ask {
            AskName::Whole => Ask::Whole,
            AskName::Questions => Ask::Questions,
            AskName::Targets => Ask::Targets {
                region: entry.region.clone().unwrap_or_else(|| TARGET.to_owned()),
                together: self.conditions(&entry.together, entry.id.span().start),
            },
        }
    }

    pub(super) fn conditions(&mut self, facts: &FactValues, at: usize) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (name, values) in facts {
            if values.is_empty() {
                let message = format!("the fact {name:?} has no values here; name one or more");
                self.wrong(Check::Format, at, message);
            }
            for value in values {
                match scalar(value) {
                    Some(value) => conditions.push(Condition { name: name.clone(), value }),
                    None => self.wrong(
                        Check::Format,
                        at,
                        format!("a fact is a text or a number; {name:?} cannot be {value}"),
                    ),
                }
            }
        }
        conditions
    }

    fn answer(&mut self, entry: &AnswerEntry, id: &Spanned<String>) -> AnswerKind {
        let (name, at) = (id.get_ref(), id.span().start);
        let keys_given = entry.keys.is_some() || entry.gates.is_some();
        let form = entry.form.unwrap_or(if keys_given { FormName::Keys } else { FormName::Label });
        match form {
            FormName::Label => {
                if keys_given {
                    let message =
                        format!("the answer of {name:?} is a label and has keys; drop either");
                    self.wrong(Check::Label, at, message);
                }
                let labels = entry.labels.clone().unwrap_or_default();
                let names: BTreeSet<&str> = labels.iter().map(|l| l.name.as_str()).collect();
                if labels.len() < 2 || names.len() < labels.len() || names.contains("") {
                    let message = format!(
                        "the criterion {name:?} needs two or more different labels; name them under answer"
                    );
                    self.wrong(Check::Label, at, message);
                }
                AnswerKind::Label { labels }
            }
            FormName::Keys => {
                if entry.labels.is_some() {
                    let message =
                        format!("the answer of {name:?} has keys and labels; drop either");
                    self.wrong(Check::Label, at, message);
                }
                let mut keys: Vec<Key> = Vec::new();
                for key in entry.keys.iter().flatten() {
                    let made = self.key(key);
                    let same = |other: &Key| other.is_called(&made.name);
                    if keys.iter().any(same) {
                        let message = format!("there are two keys {:?}; rename one", made.name);
                        self.wrong(Check::Label, key.span().start, message);
                    }
                    keys.push(made);
                }
                if keys.is_empty() {
                    let message = format!(
                        "the criterion {name:?} needs one key or more; name them under answer"
                    );
                    self.wrong(Check::Label, at, message);
                }
                let gates = entry.gates.iter().flatten();
                let gates = gates.map(|gate| self.gate(gate, &keys)).collect();
                AnswerKind::Keys { keys, gates }
            }
        }
    }

    fn key(&mut self, entry: &Spanned<KeyEntry>) -> Key {
        let at = entry.span().start;
        let KeyEntry { name, at: path, values, worth } = entry.get_ref();
        let mut wrong = |message| self.wrong(Check::Label, at, message);
        if plain(name).is_empty() {
            wrong("a key has an empty name; give it one".to_owned());
        }
        if values.is_empty() {
            wrong(format!("the key {name:?} has no values; list what may be answered"));
        }
        let mut made: Vec<KeyValue> = Vec::new();
        for value in values {
            if !(value.is_string() || value.is_number() || value.is_boolean()) {
                wrong(format!(
                    "a value of {name:?} is {value}; use texts, numbers, true and false"
                ));
                continue;
            }
            if made.iter().any(|known| same_value(&known.value, value)) {
                wrong(format!("the key {name:?} has the value {value} twice; drop one"));
            }
            let worth = match worth {
                Some(worth) => worth.iter().find(|(k, _)| is_written(value, k)).map(|(_, w)| *w),
                None => value.as_f64(),
            };
            made.push(KeyValue { value: value.clone(), worth });
        }
        for known in worth.iter().flat_map(BTreeMap::keys) {
            if !made.iter().any(|one| is_written(&one.value, known)) {
                wrong(format!("{known:?} has a worth and is no value of {name:?}; correct it"));
            }
        }
        Key { name: name.clone(), at: path.clone(), values: made }
    }

    fn gate(&mut self, entry: &Spanned<GateEntry>, keys: &[Key]) -> Gate {
        let at = entry.span().start;
        let GateEntry { key, unless, worth } = entry.get_ref();
        let is = match &unless.is {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        let named = |name: &str| keys.iter().find(|known| known.is_called(name));
        for name in [key, &unless.key] {
            if named(name).is_none() {
                let message = format!("a gate speaks of {name:?}, which is no key; correct it");
                self.wrong(Check::Label, at, message);
            }
        }
        if let Some(other) = named(&unless.key) {
            for value in &is {
                if !other.values.iter().any(|known| same_value(&known.value, value)) {
                    let message =
                        format!("a gate waits for {value}, which {:?} cannot be", other.name);
                    self.wrong(Check::Label, at, message);
                }
            }
        }
        let canonical = |name: &String| named(name).map_or(name, |key| &key.name).clone();
        Gate { key: canonical(key), unless: canonical(&unless.key), is, worth: *worth }
    }

    pub(super) fn scale(&mut self, entry: Option<ScaleEntry>, id: &Spanned<String>) -> Scale {
        let Some(entry) = entry else { return Scale::default() };
        let scale = Scale {
            lowest: entry.lowest.unwrap_or(0.0),
            highest: entry.highest,
            decimals: entry.decimals.unwrap_or(2).min(9),
        };
        if scale.highest.is_some_and(|highest| !(scale.lowest < highest)) {
            let message =
                format!("the scale of {:?} has its lowest not below its highest", id.get_ref());
            self.wrong(Check::Format, id.span().start, message);
        }
        scale
    }

    fn score(
        &mut self,
        entry: &ScoreEntry,
        answer: &AnswerKind,
        modes: &BTreeMap<Mode, ModeView>,
        id: &Spanned<String>,
    ) -> ScoreFunction {
        let (name, at) = (id.get_ref(), id.span().start);
        let mut wrong = |message: String| {
            self.wrong(Check::Label, at, format!("the score of {name:?}: {message}"))
        };
        let ScoreEntry { function, lowest, highest, of, root, empty } = entry.clone();
        let ranks = [("lowest", lowest.is_some()), ("highest", highest.is_some())];
        let groups = [("of", of.is_some()), ("root", root.is_some()), ("empty", empty.is_some())];
        let mut refuse = |given: &[(&str, bool)], takes: &str| {
            if let Some((key, _)) = given.iter().find(|(_, given)| *given) {
                wrong(format!("it takes {takes}, not {key:?}"));
            }
        };
        let keys: &[Key] = match answer {
            AnswerKind::Label { .. } | AnswerKind::Number => &[],
            AnswerKind::Keys { keys, .. } => keys,
        };
        match (function, answer) {
            (Some(FunctionName::LinearRank), AnswerKind::Label { labels }) => {
                refuse(&groups, "lowest and highest");
                let ranks = || labels.iter().map(|label| label.rank);
                let lowest = lowest.or_else(|| ranks().min()).unwrap_or(0);
                let highest = highest.or_else(|| ranks().max()).unwrap_or(1);
                if let Some(problem) = rank_problem(lowest, highest, labels) {
                    wrong(problem);
                }
                ScoreFunction::LinearRank { lowest, highest }
            }
            (Some(FunctionName::EqualsExpected), AnswerKind::Label { .. }) => {
                refuse(&[ranks, [groups[0], groups[1]]].concat(), "nothing");
                if modes.values().any(|mode| mode.ask != Ask::Questions) {
                    wrong(
                        "only questions have an expected answer; set ask = \"questions\""
                            .to_owned(),
                    );
                }
                ScoreFunction::EqualsExpected
            }
            (
                Some(
                    function
                    @ (FunctionName::Product | FunctionName::Mean | FunctionName::Smallest),
                ),
                AnswerKind::Keys { .. },
            ) => {
                refuse(&ranks, "of, root and empty");
                let all = || -> Vec<String> { keys.iter().map(|key| key.name.clone()).collect() };
                let groups = of.unwrap_or_else(|| match function {
                    FunctionName::Smallest => all().into_iter().map(|key| vec![key]).collect(),
                    _ => vec![all()],
                });
                if function == FunctionName::Mean && (root.is_some() || groups.len() > 1) {
                    wrong("a mean has one group and no root; use \"product\"".to_owned());
                }
                if function == FunctionName::Smallest && root.is_some() {
                    wrong("the smallest takes no root; leave it out".to_owned());
                }
                if root == Some(0) || groups.is_empty() || groups.iter().any(Vec::is_empty) {
                    wrong("it needs groups with keys in them, and a root of 1 or more".to_owned());
                }
                let of = groups.iter().map(|group| {
                    let keys = group.iter().map(|name| {
                        let known = keys.iter().find(|key| key.is_called(name));
                        match known {
                            None => wrong(format!("{name:?} is no key of the answer; correct it")),
                            Some(key) if key.values.iter().all(|one| one.worth.is_none()) => wrong(
                                format!("no value of {name:?} has a worth; add it under the key"),
                            ),
                            Some(_) => {}
                        }
                        known.map_or(name, |key| &key.name).clone()
                    });
                    keys.collect()
                });
                let of = of.collect();
                match function {
                    FunctionName::Smallest => ScoreFunction::Smallest { of, empty },
                    _ => ScoreFunction::Product { of, root: root.unwrap_or(1), empty },
                }
            }
            (None, _) => {
                wrong("it has no function; add function = \"linear_rank\" or another".to_owned());
                ScoreFunction::EqualsExpected
            }
            (Some(_), AnswerKind::Label { .. }) => {
                wrong("labels take \"linear_rank\" or \"equals_expected\"".to_owned());
                ScoreFunction::EqualsExpected
            }
            (Some(_), AnswerKind::Keys { .. } | AnswerKind::Number) => {
                wrong("keys take \"product\", \"mean\" or \"smallest\"".to_owned());
                ScoreFunction::EqualsExpected
            }
        }
    }
}

/// What is measured is shown to nobody.
fn measured_modes() -> BTreeMap<Mode, ModeView> {
    let nothing = || ModeView {
        ask: Ask::Whole,
        views: Vec::new(),
        tools: false,
        frame: false,
        text: TextPlace::First,
        captions: true,
    };
    [Mode::Tool, Mode::Oracle, Mode::Plain].map(|mode| (mode, nothing())).into()
}

/// What is wrong with these bounds for these labels, if anything.
fn rank_problem(lowest: u32, highest: u32, labels: &[Label]) -> Option<String> {
    if lowest >= highest {
        return Some(format!("lowest = {lowest} is not below highest = {highest}; swap them"));
    }
    labels.iter().find(|label| !(lowest..=highest).contains(&label.rank)).map(|label| {
        format!(
            "the rank {} of {:?} is not within {lowest} to {highest}; change one of them",
            label.rank, label.name
        )
    })
}

/// A text or a number as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Whether this text stands for the value.
fn is_written(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => plain(own) == plain(text),
        Value::Number(number) => text.parse().ok() == number.as_f64(),
        Value::Bool(own) => text.parse() == Ok(*own),
        _ => false,
    }
}

//! `pack.toml` of format 2 as it is written. An unknown key is an error; what is missing is told
//! when the pack is made of it, because a variant has only what it changes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::criterion::{Adaptive, Label, Mode, Place, Repeats, Sizes, TextPlace};
use super::report::Average;
use super::role::Role;
use crate::verdict::Combine;

/// Facts by name, each with the values that meet a condition.
pub(super) type FactValues = BTreeMap<String, Vec<Value>>;

/// `pack.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackFile {
    /// Read beforehand, to know that this is how to read the rest.
    pub(super) format: u32,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) about: String,
    /// The names that a model reads.
    #[serde(default)]
    pub(super) pictures: BTreeMap<String, String>,
    /// For all criteria.
    #[serde(default)]
    pub(super) templates: Templates,
    #[serde(default, rename = "criterion")]
    pub(super) criteria: Vec<CriterionEntry>,
    #[serde(default, rename = "composite")]
    pub(super) composites: Vec<CompositeEntry>,
    #[serde(default)]
    pub(super) report: ReportEntry,
    #[serde(default, rename = "variant")]
    pub(super) variants: Vec<VariantEntry>,
}

pub(super) type Templates = BTreeMap<Role, Spanned<String>>;

/// A `[[variant]]`: what it changes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantEntry {
    pub(super) name: Spanned<String>,
    pub(super) about: String,
    #[serde(default)]
    pub(super) pictures: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) templates: Templates,
    #[serde(default, rename = "criterion")]
    pub(super) criteria: Vec<CriterionEntry>,
    #[serde(default, rename = "composite")]
    pub(super) composites: Vec<CompositeEntry>,
    #[serde(default)]
    pub(super) report: ReportEntry,
}

/// A `[[criterion]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CriterionEntry {
    pub(super) id: Spanned<String>,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) applies: FactValues,
    pub(super) instruction: Option<bool>,
    pub(super) ask: Option<AskName>,
    pub(super) region: Option<String>,
    #[serde(default)]
    pub(super) together: FactValues,
    pub(super) combine: Option<Combine>,
    pub(super) repeats: Option<Repeats>,
    pub(super) skip: Option<Spanned<SkipEntry>>,
    pub(super) measure: Option<Spanned<MeasureEntry>>,
    /// These go before the ones for all criteria.
    #[serde(default)]
    pub(super) templates: Templates,
    #[serde(default)]
    pub(super) answer: AnswerEntry,
    #[serde(default)]
    pub(super) score: ScoreEntry,
    pub(super) scale: Option<ScaleEntry>,
    #[serde(default)]
    pub(super) modes: BTreeMap<Mode, ModeEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AskName {
    Whole,
    Targets,
    Questions,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkipEntry {
    pub(super) criterion: String,
    pub(super) at_most: f64,
    pub(super) worth: f64,
}

/// `[criterion.measure]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasureEntry {
    pub(super) function: Option<String>,
    pub(super) pictures: Option<Vec<String>>,
    pub(super) region: Option<String>,
    #[serde(default)]
    pub(super) settings: BTreeMap<String, Value>,
}

/// `[criterion.answer]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerEntry {
    pub(super) form: Option<FormName>,
    pub(super) labels: Option<Vec<Label>>,
    pub(super) keys: Option<Vec<Spanned<KeyEntry>>>,
    pub(super) gates: Option<Vec<Spanned<GateEntry>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FormName {
    Label,
    Keys,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyEntry {
    pub(super) name: String,
    #[serde(default)]
    pub(super) at: Vec<String>,
    pub(super) values: Vec<Value>,
    /// By the value as text.
    pub(super) worth: Option<BTreeMap<String, f64>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GateEntry {
    pub(super) key: String,
    pub(super) unless: UnlessEntry,
    pub(super) worth: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnlessEntry {
    pub(super) key: String,
    /// A value, or a list of them.
    pub(super) is: Value,
}

/// `[criterion.score]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScoreEntry {
    pub(super) function: Option<FunctionName>,
    pub(super) lowest: Option<u32>,
    pub(super) highest: Option<u32>,
    pub(super) of: Option<Vec<Vec<String>>>,
    pub(super) root: Option<u32>,
    pub(super) empty: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FunctionName {
    LinearRank,
    EqualsExpected,
    Product,
    Mean,
    Smallest,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScaleEntry {
    pub(super) lowest: Option<f64>,
    pub(super) highest: Option<f64>,
    pub(super) decimals: Option<usize>,
}

/// `[criterion.modes.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeEntry {
    pub(super) ask: Option<AskName>,
    pub(super) tools: Option<bool>,
    pub(super) frame: Option<bool>,
    pub(super) views: Option<Vec<Spanned<ViewEntry>>>,
    pub(super) text: Option<TextPlace>,
    pub(super) captions: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewEntry {
    pub(super) picture: String,
    #[serde(default, rename = "as")]
    pub(super) treatment: TreatmentName,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) optional: bool,
    pub(super) region: Option<String>,
    pub(super) place: Option<Place>,
    pub(super) margin: Option<f64>,
    pub(super) margin_share: Option<f64>,
    pub(super) context: Option<Adaptive>,
    pub(super) canvas: Option<u32>,
    pub(super) enlarge_to: Option<u32>,
    pub(super) enlarge_place: Option<u32>,
    pub(super) enlarge_most: Option<f64>,
    pub(super) over: Option<String>,
    pub(super) long_edge: Option<u32>,
    pub(super) fit: Option<String>,
    #[serde(default)]
    pub(super) sizes: Sizes,
    pub(super) jpeg: Option<u8>,
    pub(super) caption: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TreatmentName {
    #[default]
    Whole,
    Crop,
    Mask,
    Overlay,
    Mark,
}

/// A `[[composite]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompositeEntry {
    pub(super) id: Spanned<String>,
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) applies: FactValues,
    pub(super) function: Option<CompositeName>,
    pub(super) root: Option<u32>,
    pub(super) of: Option<Vec<String>>,
    /// Instead of the four before, where facts choose how it comes about.
    pub(super) formulas: Option<Vec<FormulaEntry>>,
    pub(super) scale: Option<ScaleEntry>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormulaEntry {
    #[serde(default)]
    pub(super) applies: FactValues,
    pub(super) function: Option<CompositeName>,
    pub(super) root: Option<u32>,
    #[serde(default)]
    pub(super) of: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CompositeName {
    Mean,
    Product,
}

/// `[report]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportEntry {
    pub(super) group: Option<String>,
    pub(super) order: Option<Vec<String>>,
    pub(super) average: Option<Average>,
    pub(super) within: Option<String>,
    pub(super) also: Option<Vec<String>>,
    pub(super) headline: Option<Spanned<String>>,
}

impl PackFile {
    /// The same with what a variant changes: tables are merged, lists and single values replaced.
    pub(super) fn varied(mut self, variant: &VariantEntry) -> Self {
        let VariantEntry { pictures, templates, criteria, composites, report, .. } =
            variant.clone();
        self.pictures.extend(pictures);
        self.templates.extend(templates);
        self.report = report.over(self.report);
        for change in criteria {
            let same = |entry: &&mut CriterionEntry| entry.id.get_ref() == change.id.get_ref();
            if let Some(entry) = self.criteria.iter_mut().find(same) {
                *entry = change.over(entry.clone());
            }
        }
        for change in composites {
            let same = |entry: &&mut CompositeEntry| entry.id.get_ref() == change.id.get_ref();
            if let Some(entry) = self.composites.iter_mut().find(same) {
                *entry = change.over(entry.clone());
            }
        }
        self
    }
}

fn merged<K: Ord, V>(change: BTreeMap<K, V>, mut base: BTreeMap<K, V>) -> BTreeMap<K, V> {
    base.extend(change);
    base
}

impl CriterionEntry {
    fn over(self, base: Self) -> Self {
        let mut modes = base.modes;
        for (mode, change) in self.modes {
            let entry = modes.entry(mode).or_default();
            let ModeEntry { ask, tools, frame, views, text, captions } = change;
            entry.ask = ask.or(entry.ask);
            entry.tools = tools.or(entry.tools);
            entry.frame = frame.or(entry.frame);
            entry.views = views.or(entry.views.take());
            entry.text = text.or(entry.text);
            entry.captions = captions.or(entry.captions);
        }
        Self {
            id: base.id,
            name: self.name.or(base.name),
            applies: merged(self.applies, base.applies),
            instruction: self.instruction.or(base.instruction),
            ask: self.ask.or(base.ask),
            region: self.region.or(base.region),
            together: merged(self.together, base.together),
            combine: self.combine.or(base.combine),
            repeats: self.repeats.or(base.repeats),
            skip: self.skip.or(base.skip),
            measure: measure_over(self.measure, base.measure),
            templates: merged(self.templates, base.templates),
            answer: AnswerEntry {
                form: self.answer.form.or(base.answer.form),
                labels: self.answer.labels.or(base.answer.labels),
                keys: self.answer.keys.or(base.answer.keys),
                gates: self.answer.gates.or(base.answer.gates),
            },
            score: ScoreEntry {
                function: self.score.function.or(base.score.function),
                lowest: self.score.lowest.or(base.score.lowest),
                highest: self.score.highest.or(base.score.highest),
                of: self.score.of.or(base.score.of),
                root: self.score.root.or(base.score.root),
                empty: self.score.empty.or(base.score.empty),
            },
            scale: scale_over(self.scale, base.scale),
            modes,
        }
    }
}

fn measure_over(
    change: Option<Spanned<MeasureEntry>>,
    base: Option<Spanned<MeasureEntry>>,
) -> Option<Spanned<MeasureEntry>> {
    let (Some(change), Some(base)) = (&change, &base) else { return change.or(base) };
    let (span, change, base) = (change.span(), change.get_ref().clone(), base.get_ref().clone());
    let measure = MeasureEntry {
        function: change.function.or(base.function),
        pictures: change.pictures.or(base.pictures),
        region: change.region.or(base.region),
        settings: merged(change.settings, base.settings),
    };
    Some(Spanned::new(span, measure))
}

fn scale_over(change: Option<ScaleEntry>, base: Option<ScaleEntry>) -> Option<ScaleEntry> {
    let (Some(change), Some(base)) = (change, base) else { return change.or(base) };
    Some(ScaleEntry {
        lowest: change.lowest.or(base.lowest),
        highest: change.highest.or(base.highest),
        decimals: change.decimals.or(base.decimals),
    })
}

impl CompositeEntry {
    fn over(self, base: Self) -> Self {
        Self {
            id: base.id,
            name: self.name.or(base.name),
            applies: merged(self.applies, base.applies),
            function: self.function.or(base.function),
            root: self.root.or(base.root),
            of: self.of.or(base.of),
            formulas: self.formulas.or(base.formulas),
            scale: scale_over(self.scale, base.scale),
        }
    }
}

impl ReportEntry {
    fn over(self, base: Self) -> Self {
        Self {
            group: self.group.or(base.group),
            order: self.order.or(base.order),
            average: self.average.or(base.average),
            within: self.within.or(base.within),
            also: self.also.or(base.also),
            headline: self.headline.or(base.headline),
        }
    }
}

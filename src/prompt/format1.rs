//! Packs of format 1, read into the form of today. Such packs are in traces and in users' folders, and
//! a released pack is never edited; what they left unsaid stands in `format1.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::criterion::{Label, Mode};
use super::file::{
    AnswerEntry, AskName, CompositeEntry, CompositeName, CriterionEntry, FactValues, FormName,
    FunctionName, ModeEntry, PackFile, ReportEntry, ScoreEntry, Templates, TreatmentName,
    ViewEntry,
};
use crate::verdict::Combine;

const UNSAID: &str = include_str!("format1.toml");

/// `pack.toml` of format 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OldFile {
    name: String,
    version: String,
    about: String,
    #[serde(default)]
    templates: Templates,
    #[serde(rename = "criterion")]
    criteria: Vec<OldCriterion>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldCriterion {
    id: Spanned<String>,
    name: String,
    #[serde(default)]
    templates: Templates,
    answer: OldAnswer,
    score: OldScore,
    modes: BTreeMap<Mode, OldMode>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case", deny_unknown_fields)]
enum OldAnswer {
    Label { labels: Vec<Label> },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "function", rename_all = "snake_case", deny_unknown_fields)]
enum OldScore {
    LinearRank { lowest: u32, highest: u32 },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldMode {
    pictures: Vec<OldPicture>,
    tools: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OldPicture {
    Original,
    Edited,
    Reference,
    OriginalCrop,
    EditedCrop,
    ReferenceCrop,
    OriginalMasked,
    EditedMasked,
    ReferenceMasked,
}

/// `format1.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsaid {
    region: String,
    combine: Combine,
    together: FactValues,
    composite: OldComposite,
    report: ReportEntry,
    views: BTreeMap<OldPicture, ViewEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct OldComposite {
    id: String,
    name: String,
}

impl OldFile {
    /// The same pack as it would be written today.
    pub(super) fn converted(self) -> Result<PackFile, toml::de::Error> {
        let unsaid: Unsaid = toml::from_str(UNSAID)?;
        let Self { name, version, about, templates, criteria } = self;
        let ids: Vec<String> = criteria.iter().map(|entry| entry.id.get_ref().clone()).collect();
        let free = ids.len() > 1 && !ids.contains(&unsaid.composite.id);
        let composites = criteria.first().filter(|_| free).map(|first| CompositeEntry {
            id: Spanned::new(first.id.span(), unsaid.composite.id.clone()),
            name: Some(unsaid.composite.name.clone()),
            applies: FactValues::new(),
            function: Some(CompositeName::Mean),
            root: None,
            of: Some(ids),
            formulas: None,
            scale: None,
        });
        let composites: Vec<CompositeEntry> = composites.into_iter().collect();
        let mut report = unsaid.report.clone();
        report.headline = composites.first().map(|one| one.id.clone());
        Ok(PackFile {
            format: 1,
            name,
            version,
            about,
            pictures: BTreeMap::new(),
            templates,
            criteria: criteria.into_iter().map(|entry| entry.converted(&unsaid)).collect(),
            composites,
            report,
            variants: Vec::new(),
        })
    }
}

impl OldCriterion {
    fn converted(self, unsaid: &Unsaid) -> CriterionEntry {
        let Self { id, name, templates, answer, score, modes } = self;
        let OldAnswer::Label { labels } = answer;
        let OldScore::LinearRank { lowest, highest } = score;
        let mode = |(mode, old): (Mode, OldMode)| (mode, old.converted(unsaid, &id));
        CriterionEntry {
            modes: modes.into_iter().map(mode).collect(),
            id,
            name: Some(name),
            applies: FactValues::new(),
            instruction: None,
            ask: None,
            region: Some(unsaid.region.clone()),
            together: unsaid.together.clone(),
            combine: Some(unsaid.combine),
            repeats: None,
            skip: None,
            measure: None,
            templates,
            answer: AnswerEntry {
                form: Some(FormName::Label),
                labels: Some(labels),
                ..AnswerEntry::default()
            },
            score: ScoreEntry {
                function: Some(FunctionName::LinearRank),
                lowest: Some(lowest),
                highest: Some(highest),
                ..ScoreEntry::default()
            },
            scale: None,
        }
    }
}

impl OldMode {
    /// Who was shown crops was asked about each target on its own.
    fn converted(self, unsaid: &Unsaid, id: &Spanned<String>) -> ModeEntry {
        let views = self.pictures.iter().filter_map(|picture| unsaid.views.get(picture));
        let views: Vec<Spanned<ViewEntry>> =
            views.map(|view| Spanned::new(id.span(), view.clone())).collect();
        let crops = views.iter().any(|view| view.get_ref().treatment == TreatmentName::Crop);
        ModeEntry {
            ask: Some(if crops { AskName::Targets } else { AskName::Whole }),
            tools: Some(self.tools),
            frame: None,
            views: Some(views),
            text: None,
            captions: None,
        }
    }
}

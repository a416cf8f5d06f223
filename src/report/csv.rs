//! The report as one long, tidy table: a row for each score.

use super::ReportError;
use super::model::Report;
use super::points::Points;
use super::tables;

const HEAD: [&str; 17] = [
    "group",
    "run",
    "model",
    "mode",
    "prompts",
    "editor",
    "criterion",
    "type",
    "cases",
    "n",
    "verdicts",
    "coverage",
    "mean",
    "low",
    "high",
    "worst",
    "best",
];

pub(super) fn render(report: &Report) -> Result<String, ReportError> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(HEAD)?;
    let points = |points: Option<Points>| points.map_or(String::new(), |points| points.to_string());
    for group in &report.groups {
        let key = &group.group;
        let name = [
            key.title(),
            key.run.clone(),
            key.model.clone().unwrap_or_default(),
            key.mode.map(|mode| mode.to_string()).unwrap_or_default(),
            key.prompts.clone().unwrap_or_default(),
        ];
        for (editor, criterion, kind, score) in tables::every_score(group) {
            let row = [
                editor.to_owned(),
                criterion.to_lowercase(),
                kind.to_owned(),
                score.cases.to_string(),
                score.n.to_string(),
                score.verdicts.to_string(),
                score.coverage.map_or(String::new(), |part| format!("{part:.4}")),
                points(score.score),
                points(score.interval.map(|interval| interval.low)),
                points(score.interval.map(|interval| interval.high)),
                points(score.worst),
                points(score.best),
            ];
            out.write_record(name.iter().chain(&row))?;
        }
    }
    let bytes = out.into_inner().map_err(|error| ReportError::Csv(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

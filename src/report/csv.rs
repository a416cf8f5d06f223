//! The report as one long, tidy table: a row for each score.

use std::borrow::Cow;

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
            out.write_record(name.iter().chain(&row).map(|cell| harmless(cell).into_owned()))?;
        }
    }
    let bytes = out.into_inner().map_err(|error| ReportError::Csv(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A cell that no spreadsheet takes for a formula. Numbers stay numbers.
fn harmless(cell: &str) -> Cow<'_, str> {
    const FORMULAS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '＠'];
    let is_number = cell.parse::<f64>().is_ok_and(f64::is_finite);
    match cell.starts_with(FORMULAS) && !is_number {
        true => Cow::Owned(format!("'{cell}")),
        false => Cow::Borrowed(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_name_is_no_formula() {
        for name in ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x", "\t=1", "\r=1", "-inf", "＝1"]
        {
            assert_eq!(harmless(name), format!("'{name}"));
        }
        for name in ["", "a=b", "-12.50", "+3", "gpt-5", "'=1"] {
            assert_eq!(harmless(name), name);
        }
    }
}

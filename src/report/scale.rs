//! How the score depends on the size of the target.

use std::collections::BTreeMap;

use serde::Serialize;

use super::judged::JudgedResult;
use super::model::CriterionName;
use super::scores::EditorScores;
use crate::prompt::Scale;
use crate::stats::{self, Correlation};

/// Samples in the sliding window, as in the paper.
pub(super) const WINDOW: usize = 10;

/// The scale analysis of one editor by one criterion.
#[derive(Debug, Clone, Serialize)]
pub struct SizeAnalysis {
    /// Who edited.
    pub editor: String,
    /// By which criterion.
    pub criterion: String,
    /// Cases with a verdict and a target of known size.
    pub cases: usize,
    /// The score against the logarithm of the target's relative width, case by case.
    pub width: Association,
    /// The same with its height.
    pub height: Association,
    /// The same with its area.
    pub area: Association,
    /// The mean score in a window that slides over the cases from the smallest target to the largest.
    pub window: Window,
    /// The cases, from the smallest target to the largest.
    #[serde(skip)]
    pub points: Vec<ScalePoint>,
    /// What the scores mean.
    #[serde(skip)]
    pub bounds: Scale,
}

/// A correlation by Pearson.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Association {
    /// From −1 to 1.
    pub r: Option<f64>,
    /// How probable one at least as strong would be if there were none.
    pub p: Option<f64>,
    /// Why there is no r.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The sliding window.
#[derive(Debug, Clone, Serialize)]
pub struct Window {
    /// Cases in it.
    pub size: usize,
    /// The correlation of its means. Neighbouring windows share nine of ten cases, so a p value
    /// would promise too much, and there is none.
    pub r: Option<f64>,
    /// For each position: the mean of the logarithms (base 10) of the relative area, and the mean score.
    pub means: Vec<[f64; 2]>,
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct ScalePoint {
    /// The logarithm (base 10) of the target's width as a part of the picture's.
    pub log_width: f64,
    /// The same of its height.
    pub log_height: f64,
    /// The mean score of the case.
    pub score: f64,
}

impl ScalePoint {
    fn log_area(&self) -> f64 {
        self.log_width + self.log_height
    }
}

impl SizeAnalysis {
    /// All that have a target of known size, in the order of the editors.
    pub(super) fn all(
        lines: &[JudgedResult<'_>],
        editors: &[EditorScores],
        criteria: &[CriterionName],
    ) -> Vec<Self> {
        type Case<'a> = (f64, f64, f64, usize);
        let mut cases: BTreeMap<(&str, &str), BTreeMap<&str, Case<'_>>> = BTreeMap::new();
        for judged in lines {
            let (Some([width, height]), Some(score)) = (judged.line.target_scale, judged.score)
            else {
                continue;
            };
            if !(width > 0.0 && height > 0.0 && width.is_finite() && height.is_finite()) {
                continue;
            }
            let case = cases
                .entry((judged.editor, &judged.criterion))
                .or_default()
                .entry(&judged.line.case)
                .or_insert((libm::log10(width), libm::log10(height), 0.0, 0));
            case.2 += score;
            case.3 += 1;
        }
        let mut all = Vec::new();
        for editor in editors {
            for scores in &editor.criteria {
                let key = (editor.editor.as_str(), scores.criterion.as_str());
                let Some(cases) = cases.get(&key) else { continue };
                let points = cases.values().map(|(log_width, log_height, sum, count)| ScalePoint {
                    log_width: *log_width,
                    log_height: *log_height,
                    score: sum / *count as f64,
                });
                let known = criteria.iter().find(|known| known.id == scores.criterion);
                let bounds = known.map_or_else(Scale::default, |known| known.scale);
                all.push(Self::of(key.0, key.1, points.collect(), bounds));
            }
        }
        all
    }

    fn of(editor: &str, criterion: &str, mut points: Vec<ScalePoint>, bounds: Scale) -> Self {
        // Stable: cases of the same size stay in the order of their names.
        points.sort_by(|a, b| a.log_area().total_cmp(&b.log_area()));
        let against = |of: fn(&ScalePoint) -> f64| {
            let pairs: Vec<(f64, f64)> = points.iter().map(|p| (of(p), p.score)).collect();
            Association::of(stats::pearson(&pairs))
        };
        let window_mean = |window: &[ScalePoint]| {
            let mean = |of: fn(&ScalePoint) -> f64| {
                window.iter().map(of).sum::<f64>() / window.len() as f64
            };
            [mean(ScalePoint::log_area), mean(|point| point.score)]
        };
        let means: Vec<[f64; 2]> = points.windows(WINDOW).map(window_mean).collect();
        let pairs: Vec<(f64, f64)> = means.iter().map(|[x, y]| (*x, *y)).collect();
        Self {
            editor: editor.to_owned(),
            criterion: criterion.to_owned(),
            cases: points.len(),
            width: against(|point| point.log_width),
            height: against(|point| point.log_height),
            area: against(ScalePoint::log_area),
            window: Window { size: WINDOW, r: stats::pearson(&pairs).ok().map(|c| c.r), means },
            points,
            bounds,
        }
    }
}

impl Association {
    fn of(correlation: Result<Correlation, stats::Undefined>) -> Self {
        match correlation {
            Ok(Correlation { r, p }) => Self { r: Some(r), p: p.ok(), undefined: None },
            Err(why) => Self { undefined: Some(why.to_string()), ..Self::default() },
        }
    }
}

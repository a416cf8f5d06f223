//! An experiment as one self-contained page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::value::Serde;
use serde::Serialize;

use super::analysis::{Analysis, CellScore, Comparison, Flip};
use crate::report::{encoded, trace_link};
use crate::stats::Finding;

#[derive(Serialize)]
struct Page<'a> {
    name: &'a str,
    baseline: &'a str,
    known: bool,
    scores: Vec<ShownScore<'a>>,
    plot: Option<String>,
    comparisons: Vec<ShownComparison<'a>>,
}

#[derive(Serialize)]
struct ShownScore<'a> {
    cell: &'a str,
    /// The folder of its run.
    link: Option<String>,
    criterion: &'a str,
    agreement: String,
    off_by: String,
    verdicts: String,
    turns: String,
    tokens: String,
    cost: String,
}

#[derive(Serialize)]
struct ShownComparison<'a> {
    id: String,
    finding: String,
    difference: String,
    p: String,
    types: Vec<String>,
    flips: Vec<ShownFlip<'a>>,
    of: &'a Comparison,
}

#[derive(Serialize)]
struct ShownFlip<'a> {
    of: &'a Flip,
    /// The traces.
    before: Option<String>,
    after: Option<String>,
}

/// The ways to the cells' runs, by name.
type Links = BTreeMap<String, String>;

/// The page; `known` says whether anybody said what is right, and `links` where the cells' runs are,
/// seen from the page.
pub(crate) fn render(
    name: &str,
    analysis: &Analysis,
    known: bool,
    links: &Links,
) -> Result<String, minijinja::Error> {
    let mut templates = minijinja::Environment::new();
    templates.add_template("experiment.html", include_str!("experiment.html"))?;
    let page = Page {
        name,
        baseline: &analysis.baseline,
        known,
        scores: analysis.scores.iter().map(|score| shown(score, links)).collect(),
        plot: plot(&analysis.scores),
        comparisons: analysis
            .comparisons
            .iter()
            .enumerate()
            .map(|(number, of)| shown_comparison(number, of, &analysis.baseline, links))
            .collect(),
    };
    templates.get_template("experiment.html")?.render(minijinja::context! { page => Serde(&page) })
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

fn shown<'a>(score: &'a CellScore, links: &Links) -> ShownScore<'a> {
    ShownScore {
        cell: &score.cell,
        link: links.get(&score.cell).map(|way| format!("{}/", encoded(way))),
        criterion: &score.criterion,
        agreement: score.agreement.to_string(),
        off_by: number(score.off_by, 2),
        verdicts: format!("{} of {}", score.coverage.answered, score.coverage.all),
        turns: number(score.turns, 1),
        tokens: number(score.tokens, 0),
        cost: score.cost.map_or("–".to_owned(), |cost| format!("${cost:.4}")),
    }
}

fn shown_comparison<'a>(
    number: usize,
    of: &'a Comparison,
    baseline: &str,
    links: &Links,
) -> ShownComparison<'a> {
    let trace =
        |cell: &str, trace: &Option<String>| trace_link(links.get(cell)?, trace.as_deref()?);
    let flip = |flip: &'a Flip| ShownFlip {
        of: flip,
        before: trace(baseline, &flip.before_trace),
        after: trace(&of.cell, &flip.after_trace),
    };
    let types = |list: &[super::analysis::TypeDifference], word: &str| -> Vec<String> {
        let line = |one: &super::analysis::TypeDifference| {
            let kind = if one.kind.is_empty() { "edits without a type" } else { &one.kind };
            format!("{word} on {kind}: {} (not corrected)", one.difference)
        };
        list.iter().map(line).collect()
    };
    ShownComparison {
        id: format!("c{number}"),
        finding: of.finding.to_string(),
        difference: of.difference.to_string(),
        p: of.corrected_p.map_or("–".to_owned(), |p| format!("{p:.3}")),
        types: [shifted(of), types(&of.worse_on, "worse"), types(&of.better_on, "better")].concat(),
        flips: of.flips.iter().map(flip).collect(),
        of,
    }
}

/// What is known of nearness and of scores that moved, in words.
fn shifted(of: &Comparison) -> Vec<String> {
    let p = |p: Option<f64>| p.map_or("–".to_owned(), |p| format!("{p:.3}"));
    let mut lines = Vec::new();
    if of.nearer.difference.value.is_ok() {
        let nearer = &of.nearer;
        lines.push(format!("nearer by {} (p {})", nearer.difference, p(nearer.corrected_p)));
    }
    let shift = &of.shift;
    if shift.finding != Finding::NoEvidence {
        lines.push(format!(
            "scores moved by {} points, whatever is right (p {})",
            shift.difference,
            p(shift.corrected_p)
        ));
    }
    lines
}

/// Cost against agreement, one dot for each cell and criterion; `None` where nothing has both or
/// nothing cost anything.
fn plot(scores: &[CellScore]) -> Option<String> {
    const WIDTH: f64 = 640.0;
    const HEIGHT: f64 = 300.0;
    const LEFT: f64 = 50.0;
    const BOTTOM: f64 = 40.0;
    let dots: Vec<(f64, f64, &CellScore)> = scores
        .iter()
        .filter_map(|score| Some((score.cost?, score.agreement.value.ok()?, score)))
        .collect();
    let most = dots.iter().map(|(cost, ..)| *cost).reduce(f64::max).filter(|most| *most > 0.0)?;
    let most = 1.1 * most;
    let x = |cost: f64| LEFT + cost / most * (WIDTH - LEFT - 20.0);
    let height = |agreement: f64| 15.0 + (1.0 - agreement) * (HEIGHT - BOTTOM - 15.0);
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"cost against agreement\">"
    );
    for tenth in (0..=10).step_by(2) {
        let share = f64::from(tenth) / 10.0;
        let at = height(share);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            WIDTH - 20.0,
            LEFT - 6.0,
            at + 3.0,
            100.0 * share
        );
    }
    for fifth in 0..=4 {
        let cost = most * f64::from(fifth) / 4.0;
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">${cost:.4}</text>",
            x(cost),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let _ = write!(
        svg,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">a judgement costs</text>",
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 6.0
    );
    let mut taken = Vec::new();
    let first = scores.first().map_or("", |score| score.criterion.as_str());
    for (cost, agreement, score) in dots {
        let (x, y) = (x(cost), height(agreement));
        let class = if score.criterion == first { "first" } else { "second" };
        if let Some((low, high)) = score.agreement.interval.map(|i| (height(i.low), height(i.high)))
        {
            let _ =
                write!(svg, "<path class=\"whisker {class}\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
        }
        let name = format!("{}, {}", score.cell, score.criterion);
        // A letter is some six units wide; names that would leave the plot stand left of their dot.
        let width = 6.0 * name.chars().count() as f64;
        let (anchor, at) = match x + 8.0 + width > WIDTH {
            true => ("end", x - 8.0),
            false => ("start", x + 8.0),
        };
        let left = if anchor == "end" { at - width } else { at };
        let row = free_row(&mut taken, left, left + width, y + 4.0);
        let name = crate::report::escape(&name);
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\"><title>{name}</title></circle>\
             <text x=\"{at:.1}\" y=\"{row:.1}\" text-anchor=\"{anchor}\">{name}</text>"
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// The height nearest below `wanted` at which a name from `left` to `right` covers no other one.
fn free_row(taken: &mut Vec<[f64; 3]>, left: f64, right: f64, wanted: f64) -> f64 {
    const ROW: f64 = 12.0;
    let mut row = wanted;
    while taken.iter().any(|[l, r, y]| left < *r && *l < right && (row - y).abs() < ROW) {
        row += ROW / 2.0;
    }
    taken.push([left, right, row]);
    row
}

//! The figures of the page: plots with their legends, and bars that are plain HTML so that their
//! texts stay readable on a phone.

use std::fmt::Write as _;

use super::judged::Standing;
use super::model::{Count, Group, Score};
use super::plot::{self, Extent, Series, escape};
use super::scale::SizeAnalysis;
use super::tables::SectionId;
use crate::prompt;

/// More lines than this hide each other in a radar.
const MOST_LINES: usize = plot::COLOURS;

/// The figures of a part of the report, as HTML.
pub(super) fn of(section: SectionId, group: &Group) -> Vec<String> {
    match section {
        SectionId::Leaderboard => vec![averages(group)],
        SectionId::Types => radars(group),
        SectionId::Labels => labels(group),
        SectionId::Sizes => scales(group),
        SectionId::Outcomes => vec![outcomes(group)],
        SectionId::Others
        | SectionId::Cells
        | SectionId::Keys
        | SectionId::Effort
        | SectionId::Behaviour => Vec::new(),
    }
}

fn figure(caption: &str, content: &str) -> String {
    format!("<figure>{content}<figcaption>{}</figcaption></figure>", escape(caption))
}

/// Names with a swatch of the colour that each has.
fn legend<'a>(entries: impl Iterator<Item = (String, &'a str)>) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    for (class, name) in entries {
        let _ = write!(html, "<li><i class=\"{class}\"></i>{}</li>", escape(name));
    }
    html + "</ul>"
}

/// Each average as a dot on its interval, between the worst and the best that its scale has.
fn averages(group: &Group) -> String {
    let mut html = String::from("<div class=\"tracks\">");
    for editor in &group.editors {
        let _ = write!(html, "<b>{}</b>", escape(&editor.editor));
        let criteria = group.criteria.iter().zip(&editor.criteria);
        let criteria = criteria.map(|(known, one)| (known.short(), known.scale, &one.average));
        let composites = group.composites.iter().zip(&editor.composites);
        let composites =
            composites.map(|(known, one)| (known.name.clone(), known.scale, &one.average));
        for (name, scale, score) in criteria.chain(composites) {
            let _ = write!(html, "<span>{}</span>{}", escape(&name), track(score, &scale));
        }
    }
    let scales = group.criteria.iter().map(|known| known.scale);
    let mut scales = scales.chain(group.composites.iter().map(|known| known.scale));
    let first = scales.next().unwrap_or_default();
    if let Some(highest) = first.highest
        && scales.all(|scale| scale == first)
    {
        let middle = f64::midpoint(first.lowest, highest);
        let _ = write!(
            html,
            "<b></b><span></span><div class=\"ticks\"><i>{}</i><i>{middle}</i><i>{highest}</i></div>",
            first.lowest
        );
    }
    html.push_str("</div>");
    figure(
        "Averages with their 95 % intervals, and in grey where they could be for want of verdicts",
        &html,
    )
}

fn track(score: &Score, scale: &prompt::Scale) -> String {
    let mut html = String::from("<div class=\"track\">");
    let percent = |points: super::Points| scale.share(points.value()).map(|share| 100.0 * share);
    let mut span = |class: &str, low: Option<super::Points>, high: Option<super::Points>| {
        let (Some(low), Some(high)) = (low.and_then(percent), high.and_then(percent)) else {
            return;
        };
        let _ = write!(
            html,
            "<i class=\"{class}\" style=\"left:{low:.2}%;width:{:.2}%\"></i>",
            (high - low).max(0.0)
        );
    };
    if score.worst != score.best {
        span("bounds", score.worst, score.best);
    }
    let interval = score.interval.as_ref();
    span("interval", interval.map(|one| one.low), interval.map(|one| one.high));
    match (score.score, score.score.and_then(percent)) {
        (Some(points), Some(at)) => {
            let _ = write!(html, "<i class=\"dot\" style=\"left:{at:.2}%\"></i>");
            let end = |of: fn(&super::PrintedInterval) -> super::Points| {
                interval.and_then(|one| percent(of(one))).unwrap_or(at)
            };
            let (low, high) = (end(|one| one.low), end(|one| one.high));
            // Where there is room, also on a phone.
            let (side, reach) = if high > 70.0 { ("before", low) } else { ("behind", high) };
            let _ = write!(html, "<em class=\"{side}\" style=\"left:{reach:.2}%\">{points}</em>");
        }
        // A scale without an end has no place for a dot.
        (Some(points), None) => {
            let _ = write!(html, "<em class=\"behind\" style=\"left:0\">{points}</em>");
        }
        (None, _) => html.push_str("<em class=\"behind\" style=\"left:0\">no verdict</em>"),
    }
    html + "</div>"
}

fn radars(group: &Group) -> Vec<String> {
    let shown = &group.editors[..group.editors.len().min(MOST_LINES)];
    let one = |(c, criterion): (usize, &super::model::CriterionName)| {
        let series: Vec<Series<'_>> = shown
            .iter()
            .map(|editor| Series {
                name: &editor.editor,
                values: editor.criteria[c]
                    .types
                    .iter()
                    .map(|cell| Some(100.0 * criterion.scale.share(cell.score.score?.value())?))
                    .collect(),
            })
            .collect();
        let title = format!("{} by {}", criterion.name, group.by);
        let svg = plot::radar(&title, &group.types, &series)?;
        let names =
            shown.iter().enumerate().map(|(s, e)| (format!("line s{s}"), e.editor.as_str()));
        let caption = match group.editors.len() {
            all if all > MOST_LINES => format!("{title}: the best {MOST_LINES} of {all} editors"),
            _ => title,
        };
        Some(figure(&caption, &(svg + &legend(names))))
    };
    group.criteria.iter().enumerate().filter_map(one).collect()
}

fn labels(group: &Group) -> Vec<String> {
    let one = |(c, criterion): (usize, &super::model::CriterionName)| {
        let class = |place: usize| match criterion.labels.get(place) {
            Some(label) => format!("l{}", plot::shade(label.score, &criterion.scale)),
            None => String::new(),
        };
        let rows = group.editors.iter().map(|e| (e.editor.clone(), &e.criteria[c].labels));
        let names =
            criterion.labels.iter().enumerate().map(|(l, label)| (class(l), label.name.as_str()));
        let html = legend(names) + &bars(rows, class, "no verdict");
        figure(&format!("{}: labels in percent of the verdicts", criterion.name), &html)
    };
    let labelled = group.criteria.iter().enumerate();
    labelled.filter(|(_, criterion)| !criterion.labels.is_empty()).map(one).collect()
}

fn outcomes(group: &Group) -> String {
    let class = |place: usize| match Standing::ALL.get(place) {
        Some(standing) => format!("o-{}", standing.name()),
        None => String::new(),
    };
    let rows = group
        .outcomes
        .iter()
        .map(|one| (format!("{} · {}", one.editor, one.criterion.to_uppercase()), &one.counts));
    let names = Standing::ALL.iter().enumerate().map(|(place, one)| (class(place), one.name()));
    let html = legend(names) + &bars(rows, class, "no judgement");
    figure("How judgements ended, in percent", &html)
}

/// Bars that are all as long, each divided by its counts.
fn bars<'a>(
    rows: impl Iterator<Item = (String, &'a Vec<Count>)>,
    class: impl Fn(usize) -> String,
    none: &str,
) -> String {
    let mut html = String::from("<div class=\"bars\">");
    for (name, counts) in rows {
        let all: usize = counts.iter().map(|count| count.count).sum();
        let _ = write!(html, "<span>{}</span><div class=\"bar\">", escape(&name));
        if all == 0 {
            html.push_str(none);
        }
        for (place, count) in counts.iter().enumerate().filter(|(_, count)| count.count > 0) {
            let part = 100.0 * count.count as f64 / all as f64;
            // A thin slice has no room for its number; it is in the table.
            let text = if part >= 6.0 { format!("{part:.0}") } else { String::new() };
            let _ = write!(
                html,
                "<i class=\"{}\" style=\"width:{part:.3}%\" title=\"{}: {} of {all}\">{text}</i>",
                class(place),
                escape(&count.name),
                count.count
            );
        }
        let _ = write!(html, "</div><span class=\"count\">{all}</span>");
    }
    html + "</div>"
}

fn scales(group: &Group) -> Vec<String> {
    let points = || group.scale.iter().flat_map(|scale| &scale.points);
    let width = Extent::of(points().map(|point| point.log_width));
    let height = Extent::of(points().map(|point| point.log_height));
    let area = Extent::of(points().map(|point| point.log_width + point.log_height));
    let one = |(place, criterion): (usize, &super::model::CriterionName)| {
        let mine: Vec<&SizeAnalysis> =
            group.scale.iter().filter(|scale| scale.criterion == criterion.id).collect();
        if mine.is_empty() {
            return None;
        }
        let names = criterion
            .labels
            .iter()
            .map(|l| (format!("l{}", plot::shade(l.score, &criterion.scale)), l.name.as_str()));
        let mut html = format!(
            "<details class=\"plots\"{}><summary>{}: each dot is a case</summary>{}<div class=\"grid\">",
            if place == 0 { " open" } else { "" },
            escape(&criterion.name),
            legend(names)
        );
        for scale in mine {
            let plots = plot::scatter(scale, width, height) + &plot::window(scale, area);
            let caption = escape(&format!("{} · {} cases", scale.editor, scale.cases));
            let _ = write!(html, "<figure><figcaption>{caption}</figcaption>{plots}</figure>");
        }
        Some(html + "</div></details>")
    };
    group.criteria.iter().enumerate().filter_map(one).collect()
}

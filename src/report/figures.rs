//! The figures of the page: plots with their legends, and bars that are plain HTML so that their
//! texts stay readable on a phone.

use std::fmt::Write as _;

use super::judged::Standing;
use super::model::{Count, Group, Score};
use super::plot::{self, Extent, Series, escape};
use super::scale::Scale;
use super::tables::SectionId;

/// More lines than this hide each other in a radar.
const MOST_LINES: usize = plot::COLOURS;

/// The figures of a part of the report, as HTML.
pub(super) fn of(section: SectionId, group: &Group) -> Vec<String> {
    match section {
        SectionId::Leaderboard => vec![averages(group)],
        SectionId::Types => radars(group),
        SectionId::Labels => labels(group),
        SectionId::Scale => scales(group),
        SectionId::Outcomes => vec![outcomes(group)],
        SectionId::Cells | SectionId::Effort | SectionId::Behaviour => Vec::new(),
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

/// Each average as a dot on its interval.
fn averages(group: &Group) -> String {
    let mut html = String::from("<div class=\"tracks\">");
    for editor in &group.editors {
        let _ = write!(html, "<b>{}</b>", escape(&editor.editor));
        let rows =
            editor.criteria.iter().map(|scores| (scores.criterion.to_uppercase(), &scores.average));
        let overall = (group.criteria.len() > 1).then(|| ("Overall".to_owned(), &editor.overall));
        for (name, score) in rows.chain(overall) {
            let _ = write!(html, "<span>{}</span>{}", escape(&name), track(score));
        }
    }
    html.push_str(
        "<b></b><span></span><div class=\"ticks\"><i>0</i><i>50</i><i>100</i></div></div>",
    );
    figure(
        "Averages with their 95 % intervals, and in grey where they could be for want of verdicts",
        &html,
    )
}

fn track(score: &Score) -> String {
    let mut html = String::from("<div class=\"track\">");
    let mut span = |class: &str, low: f64, high: f64| {
        let _ = write!(
            html,
            "<i class=\"{class}\" style=\"left:{low:.2}%;width:{:.2}%\"></i>",
            (high - low).max(0.0)
        );
    };
    if let (Some(worst), Some(best)) = (score.worst, score.best)
        && worst != best
    {
        span("bounds", worst.value(), best.value());
    }
    if let Some(interval) = score.interval {
        span("interval", interval.low.value(), interval.high.value());
    }
    match score.score {
        Some(points) => {
            let at = points.value();
            let _ = write!(html, "<i class=\"dot\" style=\"left:{at:.2}%\"></i>");
            let low = score.interval.map_or(at, |interval| interval.low.value());
            let high = score.interval.map_or(at, |interval| interval.high.value());
            // Where there is room, also on a phone.
            let (side, reach) = if high > 70.0 { ("before", low) } else { ("behind", high) };
            let _ = write!(html, "<em class=\"{side}\" style=\"left:{reach:.2}%\">{points}</em>");
        }
        None => html.push_str("<em class=\"behind\" style=\"left:0\">no verdict</em>"),
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
                    .map(|cell| cell.score.score.map(super::Points::value))
                    .collect(),
            })
            .collect();
        let title = format!("{} by type", criterion.name);
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
            Some(label) => format!("l{}", plot::shade(label.score)),
            None => String::new(),
        };
        let rows = group.editors.iter().map(|e| (e.editor.clone(), &e.criteria[c].labels));
        let names =
            criterion.labels.iter().enumerate().map(|(l, label)| (class(l), label.name.as_str()));
        let html = legend(names) + &bars(rows, class, "no verdict");
        figure(&format!("{}: labels in percent of the verdicts", criterion.name), &html)
    };
    group.criteria.iter().enumerate().map(one).collect()
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
        let mine: Vec<&Scale> =
            group.scale.iter().filter(|scale| scale.criterion == criterion.id).collect();
        if mine.is_empty() {
            return None;
        }
        let names = criterion
            .labels
            .iter()
            .map(|l| (format!("l{}", plot::shade(l.score)), l.name.as_str()));
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

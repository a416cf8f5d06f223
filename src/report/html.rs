//! The report as one self-contained page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minijinja::value::Serde;
use serde::Serialize;

use super::judged::{Standing, standing};
use super::model::{Group, Report};
use super::plot::escape;
use super::tables::{self, SectionId, Table, lists};
use super::{ReportError, Run, figures};
use crate::trace::ResultLine;

#[derive(Serialize)]
struct Page {
    judgements: usize,
    method: Vec<String>,
    side_by_side: Option<String>,
    groups: Vec<ShownGroup>,
}

#[derive(Serialize)]
struct ShownGroup {
    id: String,
    title: String,
    notes: Vec<String>,
    sections: Vec<ShownSection>,
    cases_id: String,
    cases: String,
}

#[derive(Serialize)]
struct ShownSection {
    title: String,
    about: String,
    figures: Vec<String>,
    tables: Vec<String>,
}

pub(super) fn render(report: &Report, runs: &[Run]) -> Result<String, ReportError> {
    let groups = report.groups.iter().enumerate().map(|(g, group)| ShownGroup {
        id: format!("g{g}"),
        title: group.group.title(),
        notes: group.notes.clone(),
        sections: tables::sections(group, g)
            .into_iter()
            // Here every score says by itself what it stands on.
            .filter(|section| section.id != SectionId::Cells)
            .map(|section| ShownSection {
                title: section.title,
                about: section.about,
                figures: figures::of(section.id, group),
                tables: section.tables.iter().map(table).collect(),
            })
            .collect(),
        cases_id: lists::group(g),
        cases: runs.get(group.group.place).map(|run| cases(g, group, run)).unwrap_or_default(),
    });
    let page = Page {
        judgements: report.judgements,
        method: super::method(report),
        side_by_side: tables::side_by_side(report).as_ref().map(table),
        groups: groups.collect(),
    };
    let mut templates = minijinja::Environment::new();
    templates.add_template("report.html", include_str!("report.html"))?;
    Ok(templates.get_template("report.html")?.render(Serde(&page))?)
}

fn table(table: &Table) -> String {
    let mut html = String::from("<div class=\"wide\"><table>");
    if !table.title.is_empty() {
        let _ = write!(html, "<caption>{}</caption>", escape(&table.title));
    }
    let class = |column: usize| if column < table.names { " class=\"name\"" } else { "" };
    html.push_str("<thead><tr>");
    for (column, name) in table.head.iter().enumerate() {
        let _ = write!(html, "<th{}>{}</th>", class(column), escape(name));
    }
    html.push_str("</tr></thead>\n<tbody>");
    for (place, row) in table.rows.iter().enumerate() {
        html.push_str(if table.is_total(place) { "<tr class=\"total\">" } else { "<tr>" });
        for (column, cell) in row.iter().enumerate() {
            let text = escape(&cell.text);
            let _ = write!(html, "<td{}>", class(column));
            let _ = match &cell.cases {
                Some(list) => write!(html, "<a href=\"#{list}\">{text}</a>"),
                None => write!(html, "{text}"),
            };
            for small in cell.interval.iter().chain(&cell.small) {
                let _ = write!(html, "<small>{}</small>", escape(small));
            }
            html.push_str("</td>");
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>\n"
}

/// The lists of cases that numbers link to. The name of a list stands inside its fold: following a
/// link opens it.
fn cases(g: usize, group: &Group, run: &Run) -> String {
    let mut html = String::new();
    for (e, editor) in group.editors.iter().enumerate() {
        let _ = write!(
            html,
            "<details><summary>{}</summary><div id=\"{}\">",
            escape(&editor.editor),
            lists::editor(g, e)
        );
        for (c, scores) in editor.criteria.iter().enumerate() {
            let _ = write!(
                html,
                "<h4 id=\"{}\">{} · {}</h4>",
                lists::criterion(g, e, c),
                escape(&editor.editor),
                escape(&scores.criterion.to_uppercase())
            );
            for (t, cell) in scores.types.iter().enumerate().filter(|(_, c)| !c.lines.is_empty()) {
                let _ = write!(
                    html,
                    "<details><summary>{}: {}</summary><div id=\"{}\">",
                    escape(&cell.kind),
                    cell.lines.len(),
                    lists::cell(g, e, c, t)
                );
                write_by_end(&mut html, run, &cell.lines);
                html.push_str("</div></details>");
            }
        }
        html.push_str("</div></details>");
    }
    let mut list = |id: String, title: &str, lines: &[usize]| {
        let _ = write!(
            html,
            "<details><summary>{}: {}</summary><div id=\"{id}\">",
            escape(title),
            lines.len()
        );
        write_links(&mut html, run, lines);
        html.push_str("</div></details>");
    };
    for (r, reason) in group.reasons.iter().enumerate() {
        let title = format!("{}: {}", reason.outcome.name(), reason.reason);
        list(lists::reason(g, r), &title, &reason.lines);
    }
    for (c, one) in group.behaviour.iter().enumerate() {
        let criterion = one.criterion.to_uppercase();
        let looked = &one.looked_at_target;
        list(lists::elsewhere(g, c), &format!("{criterion}, looked elsewhere"), &looked.lines);
        let unfounded = &one.without_evidence;
        list(lists::unfounded(g, c), &format!("{criterion}, no evidence"), &unfounded.lines);
    }
    html
}

/// The judgements by label, the others by how they ended.
fn write_by_end(html: &mut String, run: &Run, lines: &[usize]) {
    let mut by_end: BTreeMap<(Standing, String), Vec<usize>> = BTreeMap::new();
    for &index in lines {
        let Some(line) = run.lines.get(index) else { continue };
        let standing = standing(line);
        let score = || line.score.filter(|_| standing == Standing::Verdict);
        let end = line.label.clone().or_else(|| Some(format!("worth {:.2}", score()?)));
        let end = end.unwrap_or_else(|| standing.name().to_owned());
        by_end.entry((standing, end)).or_default().push(index);
    }
    for ((_, end), lines) in by_end {
        let _ = write!(html, "<p><b>{}</b> ({}) ", escape(&end), lines.len());
        write_links(html, run, &lines);
        html.push_str("</p>");
    }
}

fn write_links(html: &mut String, run: &Run, lines: &[usize]) {
    for line in lines.iter().filter_map(|index| run.lines.get(*index)) {
        let mut name = escape(&line.case);
        if line.repeat > 0 {
            let _ = write!(name, " ({})", line.repeat + 1);
        }
        let _ = match link(run, line) {
            Some(link) => write!(html, "<a href=\"{link}\">{name}</a> "),
            None => write!(html, "<span>{name}</span> "),
        };
    }
}

/// Where the trace of a line is. What a line says is not trusted: it stays below the run's folder.
fn link(run: &Run, line: &ResultLine) -> Option<String> {
    trace_link(run.link.as_deref()?, line.trace.as_deref()?)
}

/// Where a trace is, from the way to its run.
pub(crate) fn trace_link(folder: &str, trace: &str) -> Option<String> {
    let inside = trace.split('/').all(|name| !matches!(name, "" | "." | ".."));
    inside.then(|| format!("{}/", encoded(&format!("{folder}/{trace}"))))
}

/// A path as it can stand in a link.
pub(crate) fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_link_is_a_path_and_nothing_else() {
        assert_eq!(encoded("../run 1/judgements/a-b"), "../run%201/judgements/a-b");
        assert_eq!(encoded("javascript:alert(1)"), "javascript%3Aalert%281%29");
        assert_eq!(encoded("\"><script>"), "%22%3E%3Cscript%3E");
    }
}

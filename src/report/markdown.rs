//! The report in GitHub's Markdown.

use std::fmt::Write as _;

use super::model::Report;
use super::tables::{self, Cell, Section, Table};

pub(super) fn render(report: &Report) -> String {
    let mut out = String::from("# deeplook report\n\n");
    for note in super::method(report) {
        let _ = writeln!(out, "- {note}");
    }
    if let Some(table) = tables::side_by_side(report) {
        out.push_str("\n## Side by side\n\n");
        write_table(&mut out, &table);
    }
    for (g, group) in report.groups.iter().enumerate() {
        let _ = writeln!(out, "\n## {}\n", escape(&group.group.title()));
        for note in &group.notes {
            let _ = writeln!(out, "> {}\n>", escape(note));
        }
        for section in tables::sections(group, g) {
            write_section(&mut out, &section);
        }
    }
    out
}

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "\n### {}\n", section.title);
    if !section.about.is_empty() {
        let _ = writeln!(out, "{}\n", escape(&section.about));
    }
    for table in &section.tables {
        if !table.title.is_empty() {
            let _ = writeln!(out, "**{}**\n", escape(&table.title));
        }
        write_table(out, table);
        out.push('\n');
    }
}

fn write_table(out: &mut String, table: &Table) {
    let cells: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(|cell| text(cell, table)).collect()).collect();
    let head: Vec<String> = table.head.iter().map(|name| escape(name)).collect();
    // Columns of one width: the source is read in terminals as often as it is rendered.
    let width = |column: usize| {
        let of = |row: &Vec<String>| row.get(column).map_or(0, |cell| cell.chars().count());
        cells.iter().map(of).chain([of(&head), 3]).max().unwrap_or(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut line = |row: &[String]| {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column < table.names {
                true => write!(out, "| {cell:<width$} "),
                false => write!(out, "| {cell:>width$} "),
            };
        }
        out.push_str("|\n");
    };
    line(&head);
    let rule = |(column, width): (usize, &usize)| match column < table.names {
        true => "-".repeat(*width),
        false => format!("{}:", "-".repeat(width - 1)),
    };
    line(&widths.iter().enumerate().map(rule).collect::<Vec<_>>());
    for row in &cells {
        line(row);
    }
}

fn text(cell: &Cell, table: &Table) -> String {
    let mut text = escape(&cell.text);
    let beside = cell.beside(table.room).join("; ");
    if beside.starts_with('[') {
        let _ = write!(text, " {beside}");
    } else if !beside.is_empty() {
        let _ = write!(text, " ({})", escape(&beside));
    }
    text
}

/// What a name says, and nothing that Markdown or HTML would make of it. What means nothing where it
/// stands is left alone, for those who read the source.
fn escape(text: &str) -> String {
    let is_link = text.contains("](");
    let chars: Vec<char> = text.chars().collect();
    let is_word = |place: Option<usize>| {
        place.and_then(|place| chars.get(place)).is_some_and(|c| c.is_alphanumeric())
    };
    let mut out = String::with_capacity(text.len());
    for (place, &c) in chars.iter().enumerate() {
        match c {
            '_' if is_word(place.checked_sub(1)) && is_word(Some(place + 1)) => out.push('_'),
            '[' if !is_link => out.push('['),
            '\\' | '|' | '*' | '_' | '`' | '[' | '~' | '$' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("a|b\nc"), "a\\|b c");
        assert_eq!(escape("[x](javascript:y)"), "\\[x](javascript:y)");
        assert_eq!(escape("<img src=x>"), "&lt;img src=x&gt;");
        assert_eq!(escape("*bold* _soft_"), "\\*bold\\* \\_soft\\_");
        assert_eq!(escape("zoom_in [1, 2]"), "zoom_in [1, 2]");
    }
}

//! The report's tables for a paper: booktabs, one `table` each.

use std::fmt::Write as _;

use super::model::Report;
use super::tables::{self, Cell, SectionId, Table};

const HEAD: &str = "\
% The tables of a deeplook report. As it is, this is a whole document (run LaTeX twice); for a paper, take the
% tables and \\usepackage{booktabs,longtable,graphicx}.
\\documentclass{article}
\\usepackage[utf8]{inputenc}
\\usepackage[T1]{fontenc}
\\usepackage[a4paper,landscape,margin=2cm]{geometry}
\\usepackage{booktabs,longtable,graphicx}
\\begin{document}
";

pub(super) fn render(report: &Report) -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\\begin{itemize}\n");
    for note in super::method(report) {
        let _ = writeln!(out, "\\item {}", escape(&note));
    }
    out.push_str("\\end{itemize}\n");
    if let Some(table) = tables::side_by_side(report) {
        out.push_str("\\section*{Side by side}\n");
        write_table(&mut out, &table, &table.title);
    }
    for (g, group) in report.groups.iter().enumerate() {
        let title = group.group.title();
        let _ = writeln!(out, "\\clearpage\n\\section*{{{}}}", escape(&title));
        for note in &group.notes {
            let _ = writeln!(out, "{}\\par", escape(note));
        }
        for section in tables::sections(group, g) {
            for table in &section.tables {
                let caption = match table.title.as_str() {
                    "" => section.title.clone(),
                    title => format!("{}: {title}", section.title),
                };
                match section.id {
                    SectionId::Cells | SectionId::Outcomes => {
                        write_long_table(&mut out, table, &caption);
                    }
                    _ => write_table(&mut out, table, &format!("{caption}. {}", section.about)),
                }
            }
        }
    }
    out.push_str("\\end{document}\n");
    out
}

fn columns(table: &Table) -> String {
    (0..table.head.len()).map(|column| if column < table.names { 'l' } else { 'r' }).collect()
}

fn head(table: &Table) -> String {
    let names: Vec<String> = table.head.iter().map(|name| escape(name)).collect();
    format!("\\toprule\n{} \\\\\n\\midrule\n", names.join(" & "))
}

fn rows(out: &mut String, table: &Table) {
    for (place, row) in table.rows.iter().enumerate() {
        if place > 0 && table.is_total(place) && !table.is_total(place - 1) {
            out.push_str("\\midrule\n");
        }
        let cells: Vec<String> = row.iter().map(|cell| text(cell, table)).collect();
        let _ = writeln!(out, "{} \\\\", cells.join(" & "));
    }
}

/// On one page, made narrower if it would not fit.
fn write_table(out: &mut String, table: &Table, caption: &str) {
    let _ = write!(
        out,
        "\\begin{{table}}[htbp]\n\\centering\n\\caption{{{}}}\n\
         \\resizebox{{\\ifdim\\width>\\linewidth \\linewidth\\else\\width\\fi}}{{!}}{{%\n\
         \\begin{{tabular}}{{{}}}\n{}",
        escape(caption.trim_end()),
        columns(table),
        head(table)
    );
    rows(out, table);
    out.push_str("\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
}

/// Over as many pages as it takes.
fn write_long_table(out: &mut String, table: &Table, caption: &str) {
    let columns = match table.head.iter().position(|name| name == "Reason") {
        // Reasons are sentences.
        Some(_) => "lp{0.7\\linewidth}r".to_owned(),
        None => columns(table),
    };
    let _ = write!(
        out,
        "{{\\small\n\\begin{{longtable}}{{{columns}}}\n\\caption{{{}}}\\\\\n{}\\endhead\n\\bottomrule\n\\endfoot\n",
        escape(caption),
        head(table)
    );
    rows(out, table);
    out.push_str("\\end{longtable}}\n");
}

fn text(cell: &Cell, table: &Table) -> String {
    let mut text = escape(&cell.text);
    let beside = cell.beside(table.room).join("; ");
    if !beside.is_empty() {
        let _ = write!(text, " {{\\scriptsize {}}}", escape(&beside));
    }
    text
}

/// What TeX prints as this text, whatever is in it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => out.extend(['\\', c]),
            // At the beginning of a row or an item it would be an argument.
            '[' => out.push_str("{[}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '`' => out.push_str("\\textasciigrave{}"),
            '-' => out.push_str("-{}"),
            '–' => out.push_str("--"),
            '−' => out.push_str("$-$"),
            '·' => out.push_str("\\textperiodcentered{}"),
            '“' => out.push_str("``"),
            '”' => out.push_str("''"),
            '’' => out.push('\''),
            '\'' => out.push_str("\\textquotesingle{}"),
            c if c.is_control() => out.push(' '),
            // Whatever engine and fonts: a letter that they may not have is named, never an error.
            c if !c.is_ascii() && !('\u{c0}'..='\u{17f}').contains(&c) => {
                let _ = write!(out, "{{[}}U+{:04X}]", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_in_a_name_is_a_command() {
        assert_eq!(escape("100 % of a_b & c#d"), "100 \\% of a\\_b \\& c\\#d");
        assert_eq!(escape("\\input{x}"), "\\textbackslash{}input\\{x\\}");
        assert_eq!(escape("$x^2$ ~"), "\\$x\\textasciicircum{}2\\$ \\textasciitilde{}");
        assert_eq!(escape("a\nb"), "a b");
        assert_eq!(escape("é 猫"), "é {[}U+732B]");
        assert_eq!(escape("--model"), "-{}-{}model");
    }
}

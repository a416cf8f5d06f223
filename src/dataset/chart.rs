//! Bars that count something: as text for a terminal, as SVG for a file.

use std::fmt::Write as _;

use deeplook_tools::scene::cut;

/// One histogram or table of counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
    /// A table on the terminal says the same.
    pub(crate) in_table: bool,
}

/// A name and how often it occurs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) count: usize,
}

const LONGEST_NAME: usize = 24;

impl Chart {
    fn most(&self) -> usize {
        self.bars.iter().map(|bar| bar.count).max().unwrap_or(0).max(1)
    }

    /// As lines of a terminal.
    pub(crate) fn text(&self) -> String {
        const WIDTH: usize = 40;
        let mut text = format!("{}\n", plain(&self.title));
        let names: Vec<String> =
            self.bars.iter().map(|bar| cut(&plain(&bar.name), LONGEST_NAME)).collect();
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for (bar, name) in self.bars.iter().zip(&names) {
            // What is there is seen, however little.
            let long = (bar.count * WIDTH / self.most()).max(usize::from(bar.count > 0));
            let _ = writeln!(text, "  {name:>widest$} {} {}", "█".repeat(long), bar.count);
        }
        text
    }
}

/// All charts as one picture, which follows light and dark.
pub(crate) fn svg(title: &str, charts: &[Chart]) -> String {
    const WIDTH: usize = 720;
    const LEFT: usize = 190;
    const ROW: usize = 20;
    let mut body = String::new();
    let mut y = 34;
    let _ = write!(body, "<text class=\"title\" x=\"12\" y=\"{y}\">{}</text>", escaped(title));
    for chart in charts {
        y += 40;
        let _ = write!(
            body,
            "<text class=\"head\" x=\"12\" y=\"{y}\">{}</text>",
            escaped(&chart.title)
        );
        y += 8;
        for bar in &chart.bars {
            let long = (bar.count * (WIDTH - LEFT - 80)).div_ceil(chart.most());
            let _ = write!(
                body,
                "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text><rect x=\"{LEFT}\" y=\"{}\" width=\"{long}\" height=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                LEFT - 8,
                y + 15,
                escaped(&cut(&bar.name, LONGEST_NAME)),
                y + 3,
                ROW - 5,
                LEFT + long + 6,
                y + 15,
                bar.count
            );
            y += ROW;
        }
    }
    let height = y + 20;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\"><style>\
         svg{{background:#fff;font:13px system-ui,sans-serif}}text{{fill:#222}}rect{{fill:#2f6fb0}}\
         .title{{font-size:18px;font-weight:600}}.head{{font-weight:600}}.name{{text-anchor:end}}\
         @media(prefers-color-scheme:dark){{svg{{background:#16181c}}text{{fill:#ddd}}rect{{fill:#5b9bdc}}}}\
         </style>{body}</svg>\n"
    )
}

/// A page around the picture.
pub(crate) fn html(title: &str, charts: &[Chart]) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\n<body style=\"margin:1em\">{}</body></html>\n",
        escaped(title),
        svg(title, charts)
    )
}

/// Untrusted text without what could steer a terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '�' } else { c }).collect()
}

fn escaped(text: &str) -> String {
    crate::report::escape(&plain(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_names_are_harmless_and_everything_is_seen() {
        let bars = [("<script>\u{1b}[31m", 1), ("many", 1000), ("none", 0)]
            .map(|(name, count)| Bar { name: name.to_owned(), count });
        let chart = Chart { title: "a & b".to_owned(), bars: bars.into(), in_table: false };
        let page = html("x", std::slice::from_ref(&chart));
        assert!(!page.contains("<script>") && !page.contains('\u{1b}'), "{page}");
        assert!(page.contains("a &amp; b") && page.contains(">1000<"), "{page}");
        let text = chart.text();
        assert!(!text.contains('\u{1b}'), "{text}");
        let bar = |line: usize| text.lines().nth(line).unwrap().matches('█').count();
        assert_eq!((bar(1), bar(2), bar(3)), (1, 40, 0), "{text}");
    }
}

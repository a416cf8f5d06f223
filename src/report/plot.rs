//! Plots as SVG, drawn by hand: no script, no outside resource, colours from the page's style so that
//! they follow light, dark and print.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::scale::{ScalePoint, SizeAnalysis};
use super::tables::{p_value, three};
use crate::prompt::Scale;

/// A line in a radar: a name, and on each axis how far its value lies between the worst (0) and the
/// best (100).
pub(super) struct Series<'a> {
    pub name: &'a str,
    pub values: Vec<Option<f64>>,
}

/// Colours that lines can have.
pub(super) const COLOURS: usize = 10;

/// Text that is safe within SVG and HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a long text.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A radar: one axis for each type, one line for each editor. Fewer than three axes are no radar.
pub(super) fn radar(title: &str, axes: &[String], series: &[Series<'_>]) -> Option<String> {
    const RADIUS: f64 = 132.0;
    const X: f64 = 230.0;
    const Y: f64 = 178.0;
    if axes.len() < 3 {
        return None;
    }
    let at = |axis: usize, value: f64| {
        let angle = TAU * axis as f64 / axes.len() as f64;
        let reach = RADIUS * value / 100.0;
        (X + reach * libm::sin(angle), Y - reach * libm::cos(angle))
    };
    let mut svg = format!(
        "<svg class=\"plot radar\" viewBox=\"0 0 460 356\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for ring in [25.0, 50.0, 75.0, 100.0] {
        let corners: Vec<String> = (0..axes.len())
            .map(|axis| at(axis, ring))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = write!(svg, "<polygon class=\"grid\" points=\"{}\"/>", corners.join(" "));
    }
    for (axis, name) in axes.iter().enumerate() {
        let (x, y) = at(axis, 100.0);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{X:.1}\" y1=\"{Y:.1}\" x2=\"{x:.1}\" y2=\"{y:.1}\"/>"
        );
        let (x, y) = at(axis, if axis == 0 { 112.0 } else { 109.0 });
        let anchor = match x - X {
            side if side.abs() < 20.0 => "middle",
            side if side > 0.0 => "start",
            _ => "end",
        };
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            y + 4.0,
            escape(&short(name, 18))
        );
    }
    for (place, one) in series.iter().enumerate() {
        let _ = write!(
            svg,
            "<path class=\"line s{}\" d=\"{}\"><title>{}</title></path>",
            place % COLOURS,
            radar_path(&one.values, at),
            escape(one.name)
        );
        for (x, y) in one.values.iter().enumerate().filter_map(|(axis, v)| Some(at(axis, (*v)?))) {
            let _ = write!(
                svg,
                "<circle class=\"s{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>",
                place % COLOURS
            );
        }
    }
    // Over the lines, or they hide it.
    for ring in [25, 50, 75, 100] {
        let (x, y) = at(0, f64::from(ring));
        let _ = write!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{ring}</text>",
            x + 3.0,
            y + 9.0
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// A closed line where every axis has a value. A gap stays a gap: it is no zero.
fn radar_path(values: &[Option<f64>], at: impl Fn(usize, f64) -> (f64, f64)) -> String {
    let mut path = String::new();
    let complete = values.iter().all(Option::is_some);
    // Around, and back to the first.
    let around = values.iter().enumerate().chain(values.iter().enumerate().take(1));
    let mut pen_down = false;
    for (axis, value) in around {
        let Some(value) = value else {
            pen_down = false;
            continue;
        };
        let (x, y) = at(axis, *value);
        let _ = write!(path, "{}{x:.1} {y:.1}", if pen_down { "L" } else { "M" });
        pen_down = true;
    }
    if complete { path + "Z" } else { path }
}

/// From where to where the sizes of all targets reach, as powers of ten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    low: f64,
    high: f64,
}

impl Extent {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        let margin = (0.04 * (high - low)).max(0.05);
        Self { low: low - margin, high: high + margin }
    }

    fn at(self, value: f64, from: f64, to: f64) -> f64 {
        from + (to - from) * (value - self.low) / (self.high - self.low)
    }

    /// Powers of ten, with steps between them where there are only a few, at most six.
    fn ticks(self) -> Vec<(f64, String)> {
        let of = |steps: &[f64]| {
            let mut ticks = Vec::new();
            for power in self.low.floor() as i32..=self.high.ceil() as i32 {
                for step in steps {
                    let place = f64::from(power) + libm::log10(*step);
                    if (self.low..=self.high).contains(&place) {
                        ticks.push((place, percent(step * libm::pow(10.0, f64::from(power)))));
                    }
                }
            }
            ticks
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() <= 6 { fine } else { of(&[1.0]) }
    }
}

/// A part as a short percentage: `0.2 %`.
fn percent(part: f64) -> String {
    let value = 100.0 * part;
    let decimals = (-libm::floor(libm::log10(value)).min(0.0)).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$} %")
}

const LEFT: f64 = 44.0;
const RIGHT: f64 = 312.0;

fn frame(svg: &mut String, top: f64, bottom: f64) {
    let _ = write!(
        svg,
        "<rect class=\"frame\" x=\"{LEFT}\" y=\"{top}\" width=\"{}\" height=\"{}\"/>",
        RIGHT - LEFT,
        bottom - top
    );
}

fn x_ticks(svg: &mut String, extent: Extent, top: f64, bottom: f64) {
    for (place, name) in extent.ticks() {
        let x = extent.at(place, LEFT, RIGHT);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            bottom + 12.0
        );
    }
}

fn y_tick(svg: &mut String, y: f64, name: &str) {
    let _ = write!(
        svg,
        "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
         <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
        LEFT - 4.0,
        y + 3.5
    );
}

/// The colour of a score, from the worst (0) to the best (3); that of the best where there is no most.
pub(super) fn shade(score: f64, scale: &Scale) -> usize {
    (scale.share(score).unwrap_or(1.0) * 3.0).round().clamp(0.0, 3.0) as usize
}

/// Cases by the relative width and height of their target, coloured by score.
pub(super) fn scatter(scale: &SizeAnalysis, width: Extent, height: Extent) -> String {
    const TOP: f64 = 8.0;
    const BOTTOM: f64 = 196.0;
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 320 228\" role=\"img\" aria-label=\"{}\">",
        escape(&format!("{}: score by width and height of the target", scale.editor))
    );
    frame(&mut svg, TOP, BOTTOM);
    x_ticks(&mut svg, width, TOP, BOTTOM);
    for (place, name) in height.ticks() {
        y_tick(&mut svg, height.at(place, BOTTOM, TOP), &name);
    }
    for colour in 0..4 {
        // One path for all dots of a colour: a few bytes each, however many there are.
        let mut path = String::new();
        let mine = |point: &&ScalePoint| shade(point.score, &scale.bounds) == colour;
        for point in scale.points.iter().filter(mine) {
            let x = width.at(point.log_width, LEFT, RIGHT);
            let y = height.at(point.log_height, BOTTOM, TOP);
            let _ = write!(path, "M{x:.1} {y:.1}h0");
        }
        if !path.is_empty() {
            let _ = write!(svg, "<path class=\"dots l{colour}\" d=\"{path}\"/>");
        }
    }
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{:.1}\" y=\"224\" text-anchor=\"middle\">width of the target</text>\
         <text class=\"axis\" transform=\"translate(9 {:.1}) rotate(-90)\" text-anchor=\"middle\">height</text></svg>",
        (LEFT + RIGHT) / 2.0,
        (TOP + BOTTOM) / 2.0
    );
    svg
}

/// The mean score in a sliding window against the area of the target.
pub(super) fn window(scale: &SizeAnalysis, area: Extent) -> String {
    const TOP: f64 = 18.0;
    const BOTTOM: f64 = 104.0;
    let mut svg = format!(
        "<svg class=\"plot\" viewBox=\"0 0 320 136\" role=\"img\" aria-label=\"{}\">",
        escape(&format!("{}: mean score by area of the target", scale.editor))
    );
    frame(&mut svg, TOP, BOTTOM);
    x_ticks(&mut svg, area, TOP, BOTTOM);
    let y = |score: f64| BOTTOM + (TOP - BOTTOM) * scale.bounds.share(score).unwrap_or(0.0);
    let Scale { lowest, highest, .. } = scale.bounds;
    let highest = highest.unwrap_or(lowest + 1.0);
    for score in [lowest, f64::midpoint(lowest, highest), highest] {
        y_tick(&mut svg, y(score), &score.to_string());
    }
    let mut path = String::new();
    for [log_area, score] in &scale.window.means {
        let x = area.at(*log_area, LEFT, RIGHT);
        let _ = write!(path, "{}{x:.1} {:.1}", if path.is_empty() { "M" } else { "L" }, y(*score));
    }
    let _ = write!(svg, "<path class=\"line ink\" d=\"{path}\"/>");
    let association = match (scale.area.r, &scale.area.undefined) {
        (Some(r), _) => format!("r = {}, {}", three(r), p_value(scale.area.p)),
        (None, why) => format!("no r: {}", why.as_deref().unwrap_or("undefined")),
    };
    let _ = write!(
        svg,
        "<text class=\"axis\" x=\"{LEFT}\" y=\"12\">mean score of {} neighbours</text>\
         <text class=\"axis\" x=\"{RIGHT}\" y=\"12\" text-anchor=\"end\">{}</text>\
         <text class=\"axis\" x=\"{:.1}\" y=\"132\" text-anchor=\"middle\">area of the target</text></svg>",
        scale.window.size,
        escape(&association),
        (LEFT + RIGHT) / 2.0
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_in_a_radar_is_no_zero() {
        let at = |axis: usize, value: f64| (axis as f64, value);
        let values = [Some(10.0), None, Some(30.0), Some(40.0)];
        assert_eq!(radar_path(&values, at), "M0.0 10.0M2.0 30.0L3.0 40.0L0.0 10.0");
        assert_eq!(radar_path(&[Some(1.0); 3], at), "M0.0 1.0L1.0 1.0L2.0 1.0L0.0 1.0Z");
        assert_eq!(radar_path(&[None; 3], at), "");
    }

    #[test]
    fn few_axes_are_no_radar_and_names_are_text() {
        let axes = ["a", "b", "<script>"].map(str::to_owned);
        let series = [Series { name: "\"x\"", values: vec![Some(1.0); 3] }];
        assert!(radar("t", &axes[..2], &series).is_none());
        let svg = radar("t", &axes, &series).unwrap();
        assert!(svg.contains("&lt;script&gt;") && svg.contains("&quot;x&quot;"), "{svg}");
        assert!(!svg.contains("<script"));
    }

    #[test]
    fn ticks_are_few_and_round() {
        let names = |low, high| {
            let ticks = Extent { low, high }.ticks();
            ticks.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(-2.1, -0.9), ["1 %", "2 %", "5 %", "10 %"]);
        assert_eq!(names(-4.5, 0.0), ["0.01 %", "0.1 %", "1 %", "10 %", "100 %"]);
        assert!(Extent::of([-1.0].into_iter()).at(-1.0, 0.0, 1.0) == 0.5);
    }
}

//! What a data set consists of: types, targets, how small they are, and who edited.

use std::borrow::Cow;
use std::collections::BTreeMap;

use deeplook_tools::Size;
use deeplook_tools::picture::size_of_file;
use rayon::prelude::*;
use serde::Serialize;

use super::chart::{Bar, Chart};
use super::{DataSet, EditorFiles};
use crate::case::Facts;

/// A data set in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// How many cases.
    pub cases: usize,
    /// How many edits, also those whose pictures are not there.
    pub edits: usize,
    /// Cases whose source picture could not be measured: they are in no histogram.
    pub unmeasured: usize,
    /// The types of instruction, most frequent first.
    pub types: Vec<TypeStats>,
    /// How many cases have so many targets.
    pub targets: BTreeMap<usize, usize>,
    /// The areas of targets, in percent of their pictures.
    pub areas: Histogram,
    /// The shorter sides of targets, in pixels.
    pub sides: Histogram,
    /// The longer sides of the source pictures, in pixels.
    pub pictures: Histogram,
    /// Who edited, and how much of it is there.
    pub editors: Vec<EditorFiles>,
}

/// One type of instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TypeStats {
    /// Its name; `None` for cases without one.
    pub kind: Option<String>,
    /// How many cases.
    pub cases: usize,
    /// How many targets are annotated in them.
    pub targets: usize,
    /// The median area of these, in percent of their pictures.
    pub median_area: Option<f64>,
}

/// How values are distributed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Histogram {
    /// How many values.
    pub count: usize,
    /// The smallest.
    pub min: Option<f64>,
    /// Half of them are below.
    pub median: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How many lie in which interval, from the first that is not empty to the last.
    pub bins: Vec<Bin>,
}

/// An interval of a histogram, without its upper end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bin {
    /// Where it begins.
    pub from: f64,
    /// Where it ends; `None` where it does not.
    pub to: Option<f64>,
    /// How many values are in it.
    pub count: usize,
}

impl Histogram {
    /// Counts `values` between `edges`, the first of which is below all of them.
    fn new(mut values: Vec<f64>, edges: &[f64]) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let upto = |edge: f64| values.partition_point(|value| *value < edge);
        let mut bins: Vec<Bin> = edges
            .iter()
            .enumerate()
            .map(|(at, from)| {
                let to = edges.get(at + 1).copied();
                Bin { from: *from, to, count: to.map_or(values.len(), upto) - upto(*from) }
            })
            .collect();
        let last = bins.iter().rposition(|bin| bin.count > 0).map_or(0, |at| at + 1);
        bins.truncate(last);
        let first = bins.iter().position(|bin| bin.count > 0).unwrap_or(0);
        bins.drain(..first);
        Self {
            count: values.len(),
            min: values.first().copied(),
            median: median(&values),
            max: values.last().copied(),
            bins,
        }
    }

    fn chart(&self, title: &str, unit: &str) -> Chart {
        let bar = |bin: &Bin| Bar {
            name: match bin.to {
                Some(to) => format!("{}–{to}", bin.from),
                None => format!("{} and more", bin.from),
            },
            count: bin.count,
        };
        let range = match (self.min, self.median, self.max) {
            (Some(min), Some(median), Some(max)) => {
                format!("; {}–{} {unit}, median {}", short(min), short(max), short(median))
            }
            _ => String::new(),
        };
        Chart {
            title: format!("{title}{range}"),
            bars: self.bins.iter().map(bar).collect(),
            in_table: false,
        }
    }
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

/// A number with three digits that count.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

const AREA_EDGES: [f64; 11] = [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 100.0];
const SIDE_EDGES: [f64; 10] = [0.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];
const PICTURE_EDGES: [f64; 8] = [0.0, 256.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0, 4096.0];

impl Stats {
    /// Measures a data set. Only the headers of the sources are read.
    pub fn of(set: &DataSet) -> Self {
        let sizes: Vec<Option<Size>> = set
            .cases
            .par_iter()
            .map(|entry| entry.case.source.path().and_then(|path| size_of_file(path).ok()))
            .collect();
        let mut by_type: BTreeMap<Option<String>, (usize, usize, Vec<f64>)> = BTreeMap::new();
        let mut targets = BTreeMap::new();
        let (mut areas, mut sides, mut pictures) = (Vec::new(), Vec::new(), Vec::new());
        for (entry, size) in set.cases.iter().zip(&sizes) {
            let (case, targets_of) = (&entry.case, entry.case.targets());
            let kind = case.facts.text(Facts::TYPE).map(Cow::into_owned);
            *targets.entry(targets_of.len()).or_default() += 1;
            let (cases, boxes, own_areas) = by_type.entry(kind).or_default();
            *cases += 1;
            *boxes += targets_of.len();
            sides.extend(targets_of.iter().map(|area| area.width().min(area.height()).max(0.0)));
            if let Some(size) = size {
                let percent = |area: f64| 100.0 * area / size.area() as f64;
                let own = targets_of.iter().map(|area| percent(area.area()));
                own_areas.extend(own.clone());
                areas.extend(own);
                pictures.push(f64::from(size.long_side()));
            }
        }
        let type_of = |(kind, (cases, targets, mut areas)): (_, (_, _, Vec<f64>))| {
            areas.sort_by(f64::total_cmp);
            TypeStats { kind, cases, targets, median_area: median(&areas) }
        };
        let mut types: Vec<TypeStats> = by_type.into_iter().map(type_of).collect();
        types.sort_by(|a, b| b.cases.cmp(&a.cases).then_with(|| a.kind.cmp(&b.kind)));
        Self {
            cases: set.cases.len(),
            edits: set.edits(),
            unmeasured: sizes.iter().filter(|size| size.is_none()).count(),
            types,
            targets,
            areas: Histogram::new(areas, &AREA_EDGES),
            sides: Histogram::new(sides, &SIDE_EDGES),
            pictures: Histogram::new(pictures, &PICTURE_EDGES),
            editors: set.editors.clone(),
        }
    }

    /// The same to look at.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let types = self.types.iter().map(|of| Bar {
            name: of.kind.clone().unwrap_or_else(|| "(no type)".to_owned()),
            count: of.cases,
        });
        let targets = self
            .targets
            .iter()
            .map(|(number, count)| Bar { name: number.to_string(), count: *count });
        let mut charts = vec![
            Chart { title: "cases by type".to_owned(), bars: types.collect(), in_table: true },
            Chart {
                title: "cases by number of targets".to_owned(),
                bars: targets.collect(),
                in_table: false,
            },
            self.areas.chart("targets by area in % of the picture", "%"),
            self.sides.chart("targets by shorter side in pixels", "px"),
            self.pictures.chart("source pictures by longer side in pixels", "px"),
        ];
        let found = |editor: &EditorFiles| Bar { name: editor.editor.clone(), count: editor.found };
        charts.push(Chart {
            title: "pictures found by editor".to_owned(),
            bars: self.editors.iter().map(found).collect(),
            in_table: true,
        });
        charts.retain(|chart| !chart.bars.is_empty());
        charts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_bins_and_none_is_lost() {
        let all = Histogram::new(vec![0.0, 8.0, 15.9, 16.0, 5000.0, f64::NAN], &SIDE_EDGES);
        let counts: Vec<_> = all.bins.iter().map(|bin| (bin.from, bin.count)).collect();
        assert_eq!(counts[..3], [(0.0, 1), (8.0, 2), (16.0, 1)]);
        assert_eq!(counts.last(), Some(&(2048.0, 1)));
        assert_eq!((all.count, all.median), (5, Some(15.9)));
        assert_eq!(all.bins.iter().map(|bin| bin.count).sum::<usize>(), all.count);
        let none = Histogram::new(Vec::new(), &SIDE_EDGES);
        assert_eq!((none.count, none.median, none.bins.len()), (0, None, 0));
    }
}

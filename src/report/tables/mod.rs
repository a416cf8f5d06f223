//! The report as tables of texts, for every format that people read.

mod conduct;
mod scores;

use super::judged::GroupKey;
use super::model::{Group, Report};
use super::scale::WINDOW;

use self::scores::score_cell;
pub(super) use self::scores::{every_score, p_value, three};

/// A part of the report.
#[derive(Debug, Clone, Default)]
pub(super) struct Section {
    pub id: SectionId,
    pub title: String,
    pub about: String,
    pub tables: Vec<Table>,
}

/// Which part it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SectionId {
    #[default]
    Leaderboard,
    Types,
    Others,
    Cells,
    Labels,
    Keys,
    Sizes,
    Outcomes,
    Effort,
    Behaviour,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub title: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// How many columns at the left hold names.
    pub names: usize,
    /// How many rows at the bottom sum up the others.
    pub totals: usize,
    /// How much of its cells is shown where there is little room.
    pub room: Room,
}

/// How much of a cell there is room for; what is left out stands in another table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Room {
    #[default]
    All,
    Intervals,
    Numbers,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub text: String,
    /// How far the number could be off by chance.
    pub interval: Option<String>,
    /// What else the number stands on.
    pub small: Vec<String>,
    /// Which list of cases it comes from.
    pub cases: Option<String>,
}

impl Table {
    /// Whether the row sums up others.
    pub(super) fn is_total(&self, row: usize) -> bool {
        row + self.totals >= self.rows.len()
    }
}

impl Cell {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn small(mut self, text: impl Into<String>) -> Self {
        self.small.push(text.into());
        self
    }

    /// What stands beside the text where there is this much room.
    pub(super) fn beside(&self, room: Room) -> Vec<&str> {
        let interval = self.interval.iter().filter(|_| room != Room::Numbers);
        let small = self.small.iter().filter(|_| room == Room::All);
        interval.chain(small).map(String::as_str).collect()
    }

    fn of(mut self, list: impl Into<String>) -> Self {
        self.cases = Some(list.into());
        self
    }
}

/// What stands where there is no number.
pub(super) const NONE: &str = "–";

/// The names of the lists of cases.
pub(super) mod lists {
    pub(in super::super) fn group(group: usize) -> String {
        format!("g{group}-cases")
    }

    pub(in super::super) fn editor(group: usize, editor: usize) -> String {
        format!("g{group}-e{editor}")
    }

    pub(in super::super) fn criterion(group: usize, editor: usize, criterion: usize) -> String {
        format!("g{group}-e{editor}-c{criterion}")
    }

    pub(in super::super) fn cell(
        group: usize,
        editor: usize,
        criterion: usize,
        kind: usize,
    ) -> String {
        format!("g{group}-e{editor}-c{criterion}-t{kind}")
    }

    pub(in super::super) fn reason(group: usize, reason: usize) -> String {
        format!("g{group}-r{reason}")
    }

    pub(in super::super) fn elsewhere(group: usize, criterion: usize) -> String {
        format!("g{group}-c{criterion}-elsewhere")
    }

    pub(in super::super) fn unfounded(group: usize, criterion: usize) -> String {
        format!("g{group}-c{criterion}-unfounded")
    }
}

/// The groups beside each other, if there are several.
pub(super) fn side_by_side(report: &Report) -> Option<Table> {
    if report.groups.len() < 2 {
        return None;
    }
    let mut editors: Vec<&str> = Vec::new();
    let mut criteria: Vec<&str> = Vec::new();
    for group in &report.groups {
        for editor in &group.editors {
            if !editors.contains(&editor.editor.as_str()) {
                editors.push(&editor.editor);
            }
        }
        for criterion in &group.criteria {
            if !criteria.contains(&criterion.id.as_str()) {
                criteria.push(&criterion.id);
            }
        }
    }
    let mut rows = Vec::new();
    let headline = report.groups.iter().any(|group| !group.composites.is_empty());
    for name in editors {
        for criterion in criteria.iter().map(|id| Some(*id)).chain(headline.then_some(None)) {
            let cells = report.groups.iter().enumerate().map(|(g, group)| {
                let place = group.editors.iter().position(|editor| editor.editor == name);
                let Some((e, editor)) = place.map(|e| (e, &group.editors[e])) else {
                    return Cell::new(NONE);
                };
                let Some(id) = criterion else {
                    return score_cell(&editor.overall).of(lists::editor(g, e));
                };
                match editor.criteria.iter().enumerate().find(|(_, scores)| scores.criterion == id)
                {
                    Some((c, scores)) => score_cell(&scores.average).of(lists::criterion(g, e, c)),
                    None => Cell::new(NONE),
                }
            });
            let what = criterion.map_or("Overall".to_owned(), str::to_uppercase);
            rows.push([Cell::new(name), Cell::new(what)].into_iter().chain(cells).collect());
        }
    }
    let head = ["Editor", "Average"].map(str::to_owned).into_iter();
    Some(Table {
        title: "Averages, each in its own group".to_owned(),
        head: head.chain(short_titles(report)).collect(),
        rows,
        names: 2,
        room: Room::Intervals,
        ..Table::default()
    })
}

/// What tells the groups apart.
pub(super) fn short_titles(report: &Report) -> Vec<String> {
    let part = |key: &GroupKey, place: usize| match place {
        0 => Some(key.run.clone()),
        1 => key.model.clone(),
        2 => key.mode.map(|mode| format!("{mode} mode")),
        _ => key.prompts.clone(),
    };
    let keys = || report.groups.iter().map(|group| &group.group);
    let telling: Vec<usize> = (0..4)
        .filter(|place| keys().skip(1).zip(keys()).any(|(a, b)| part(a, *place) != part(b, *place)))
        .collect();
    keys()
        .map(|key| match telling.as_slice() {
            // The same run given twice.
            [] => key.title(),
            telling => {
                let parts = telling.iter().map(|p| part(key, *p).unwrap_or_else(|| NONE.into()));
                parts.collect::<Vec<_>>().join(" · ")
            }
        })
        .collect()
}

/// All tables of one group.
pub(super) fn sections(group: &Group, g: usize) -> Vec<Section> {
    let mut sections = vec![
        Section {
            id: SectionId::Leaderboard,
            title: "Leaderboard".to_owned(),
            about: leaderboard_words(group),
            tables: vec![scores::leaderboard(group, g)],
        },
        Section {
            id: SectionId::Types,
            title: format!("Scores by {}", group.by),
            about: "Over verdicts only.".into(),
            tables: scores::by_type(group, g),
        },
        Section {
            id: SectionId::Others,
            title: "Scores by other facts".to_owned(),
            about: "Over verdicts only.".into(),
            tables: scores::by_others(group),
        },
        Section {
            id: SectionId::Cells,
            title: "Every score and what it stands on".to_owned(),
            about: String::new(),
            tables: vec![scores::cells(group)],
        },
        Section {
            id: SectionId::Labels,
            title: "What goes wrong".to_owned(),
            about: "How often each label was given, in percent of the verdicts.".into(),
            tables: scores::labels(group, g),
        },
        Section {
            id: SectionId::Keys,
            title: "Parts of the answers".to_owned(),
            about: "What each key of an answer is worth on the mean, from 0 to 1, before any gate."
                .into(),
            tables: scores::keys(group, g),
        },
    ];
    sections.retain(|section| !section.tables.is_empty());
    if !group.scale.is_empty() {
        sections.push(Section {
            id: SectionId::Sizes,
            title: "Size of the target".to_owned(),
            about: format!(
                "Pearson's r between a case's score and the logarithm of its target's relative width, height and \
                 area (the smallest target, where there are several), case by case, with its p value. Window: r of \
                 the means over {} cases that follow each other in area; they share cases, so there is no p value.",
                WINDOW
            ),
            tables: vec![scores::scale(group, g)],
        });
    }
    sections.push(Section {
        id: SectionId::Outcomes,
        title: "Outcomes".to_owned(),
        about: "Only a verdict has a score. The others lower the coverage and widen the bounds."
            .into(),
        tables: conduct::outcomes(group, g),
    });
    if group.behaviour.iter().any(|one| one.turns.known + one.seconds.known > 0) {
        sections.push(Section {
            id: SectionId::Effort,
            title: "Turns, tokens, cost".to_owned(),
            about: "Sums over the judgements in which they are known.".into(),
            tables: vec![conduct::effort(group, g)],
        });
        sections.push(Section {
            id: SectionId::Behaviour,
            title: "What the judge did".to_owned(),
            about: "A look is at the target if a region that was cut out or detected holds at least half of an \
                    annotated target."
                .into(),
            tables: conduct::behaviour(group, g),
        });
    }
    sections
}

fn leaderboard_words(group: &Group) -> String {
    let mut words = Vec::new();
    let grouped = group.editors.iter().flat_map(|editor| &editor.criteria);
    if grouped.into_iter().any(|scores| scores.average.types.is_some()) {
        words.push(format!(
            "Average: the plain mean over the values of {0}. Weighted: the mean over all cases, so that a {0} weighs \
             as many cases as it has.",
            group.by
        ));
    }
    for criterion in group.criteria.iter().filter(|criterion| criterion.pooled) {
        words.push(format!("{}: every part of a judgement counts once.", criterion.short()));
    }
    words.extend(group.composites.iter().map(|one| format!("{}: {}.", one.name, one.made_of)));
    words.join(" ")
}

/// A part as a percentage.
fn percent(part: Option<f64>) -> String {
    part.map_or(NONE.to_owned(), |part| format!("{:.2} %", 100.0 * part))
}

//! `deeplook agree`: how far a judge agrees with people, or any raters with each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde_json::{Map, Value, json};

use super::grid::Grid;
use super::read_run;
use crate::agreement::page::{self, Shown};
use crate::agreement::{
    Agreement, Cell, Confusion, Judge, JudgeAgreement, Judgement, Labels, Measure, Measured,
    Ranking, RatingTable, TableAgreement, Values,
};
use crate::case::Facts;
use crate::cli::{AgreeArgs, AgreementFloor};
use crate::dataset::{DataSet, Entry};
use crate::files;
use crate::key::Item;
use crate::prompt::{Pack, Rubric};
use crate::report::{self, GroupKey, JudgedGroup, JudgedResult, Run, encoded};
use crate::stats::{Bootstrap, Coverage};
use crate::terminal::{self, Style};
use crate::trace::ResultLine;
use crate::visible::visible_line;

pub(super) fn run(args: &AgreeArgs) -> anyhow::Result<ExitCode> {
    let pack = Pack::find_varied(&args.prompts, args.variant.as_deref())?;
    match (&args.table, &args.labels) {
        (Some(table), _) => of_table(args, table, &Ranking::of_rubric(pack.rubric())),
        (None, Some(labels)) => of_judges(args, labels, pack.rubric()),
        (None, None) => bail!("no labels given; add --labels FILE, or --table FILE"),
    }
}

/// Numbers may fall short of a floor by what rounding does.
const ROUNDING: f64 = 1e-9;

fn of_table(args: &AgreeArgs, path: &Path, rankings: &[Ranking]) -> anyhow::Result<ExitCode> {
    let bootstrap = Bootstrap::default();
    let table = RatingTable::read(path, rankings)?;
    let agreement = table.agreement(&bootstrap);
    if args.json {
        let mut object = object(&agreement.all)?;
        object.insert("raters".to_owned(), json!(table.raters));
        object.insert("values".to_owned(), json!(in_words(&table.values)));
        if let Some([pearson, spearman]) = agreement.p_values {
            let p = json!({"pearson": pearson.ok(), "spearman": spearman.ok()});
            object.insert("p".to_owned(), p);
        }
        if !agreement.pairs.is_empty() {
            object.insert("pairs".to_owned(), json!(agreement.pairs));
        }
        object.insert("intervals".to_owned(), json!(about_intervals(&bootstrap, "items")));
        super::print_json(&object)?;
    } else {
        print_table(&table, &agreement, &bootstrap)?;
    }
    let below = args.min_agreement.and_then(|floor| below(&agreement.all, floor));
    super::gate(&below.into_iter().collect::<Vec<_>>())
}

fn print_table(
    table: &RatingTable,
    agreement: &TableAgreement,
    bootstrap: &Bootstrap,
) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    writeln!(
        out,
        "{} items with at least two ratings · {} raters: {} · {}",
        agreement.all.n,
        table.raters.len(),
        table.raters.join(", "),
        in_words(&table.values)
    )?;
    writeln!(out, "{}\n", about_intervals(bootstrap, "items"))?;
    let mut grid = Grid::new(2, ["measure", "", "reason"]);
    for (measure, estimate) in &agreement.all.estimates {
        let reason = estimate.value.err().map(|why| why.to_string()).unwrap_or_default();
        grid.row(vec![measure.title().to_owned(), estimate.to_string(), reason]);
    }
    write!(out, "{grid}")?;
    if !agreement.pairs.is_empty() {
        writeln!(
            out,
            "\nAll but α are means over the pairs of raters for which they are defined:\n"
        )?;
        let mut grid = Grid::new(1, head(&["raters", "n"]));
        for pair in &agreement.pairs {
            grid.row(numbers(vec![pair.raters.join(" – ")], None, &pair.agreement, &PAIRS));
        }
        write!(out, "{grid}")?;
    }
    Ok(())
}

const PAIRS: [Measure; 5] = Measure::OF_PAIRS;

fn in_words(values: &Values) -> String {
    match values {
        Values::Words => "words without an order".to_owned(),
        Values::Labels(criterion) => {
            format!("labels of the criterion {criterion}, by rank from 1 (worst)")
        }
        Values::Whole => "whole numbers".to_owned(),
        Values::Numbers | Values::OtherScale => "numbers".to_owned(),
    }
}

fn about_intervals(bootstrap: &Bootstrap, over: &str) -> String {
    format!(
        "[95 % intervals: bootstrap over {over}, {} resamples, seed {}; none where too many of these leave a number undefined]",
        bootstrap.resamples, bootstrap.seed
    )
}

fn object(measured: &Measured) -> anyhow::Result<Map<String, Value>> {
    Ok(serde_json::from_value(serde_json::to_value(measured)?)?)
}

fn of_judges(args: &AgreeArgs, path: &Path, otherwise: &Arc<Rubric>) -> anyhow::Result<ExitCode> {
    let bootstrap = Bootstrap::default();
    let read = |path: &PathBuf| read_run(path, otherwise);
    let runs: Vec<Run> = args.runs.iter().map(read).collect::<Result<_, _>>()?;
    let groups = report::groups(&runs)?;
    let rankings = rankings(&groups)?;
    let labels = Labels::read(path, &rankings)?;
    let judges = judges(&groups, &rankings)?;
    if !judges
        .iter()
        .flat_map(|judge| &judge.judgements)
        .any(|one| labels.items.contains_key(&one.item))
    {
        bail!("no judgement has a label: {}", apart(&judges, &labels));
    }
    let agreement = Agreement::new(&judges, &labels, args.truth, &rankings, &bootstrap);
    if let Some(out) = &args.out {
        let set = pictures(args, path)?;
        let lines = lines_of(&groups);
        let shown = |place: usize, item: &Item| {
            let line = lines.get(&(place, item.clone())).copied();
            shown(line, item, set.as_ref(), out)
        };
        let intervals = about_intervals(&bootstrap, "cases");
        let page = page::render(&agreement, &judges, &labels, &rankings, intervals, &shown)?;
        files::write_atomically(out, page.as_bytes())?;
        writeln!(terminal::stderr(), "wrote {}", out.display())?;
    }
    if args.json {
        let mut all = Map::new();
        // Of one judge the numbers over everything stand where those of a table do.
        if let [judge] = &agreement.judges[..] {
            let people = agreement.among_annotators.first().map(|cell| cell.agreement.clone());
            if let (Some(cell), Some(mut people)) = (judge.cells.first(), people) {
                people.estimates.remove(&Measure::Exact);
                all = object(&cell.agreement.clone().with(people))?;
            }
        }
        all.extend(serde_json::from_value::<Map<String, Value>>(serde_json::to_value(
            &agreement,
        )?)?);
        all.insert(
            "mae_scale".to_owned(),
            json!("label ranks, from 1 (worst); points of score where there are no labels"),
        );
        all.insert("intervals".to_owned(), json!(about_intervals(&bootstrap, "cases")));
        super::print_json(&all)?;
    } else {
        print_judges(&agreement, &bootstrap)?;
    }
    super::gate(&gates(args, &agreement))
}

/// Cases by their ids.
type Cases = HashMap<String, Entry>;

/// The data set whose pictures a page shows: the one that was named, else that beside the labels.
fn pictures(args: &AgreeArgs, labels: &Path) -> anyhow::Result<Option<Cases>> {
    let beside = labels.with_file_name("cases.jsonl");
    let path = match &args.data {
        Some(path) => path.clone(),
        None if beside.is_file() => beside,
        None => return Ok(None),
    };
    let set = DataSet::open(&path, &args.reading.data(Some(&path))?.options())?;
    Ok(Some(set.cases.into_iter().map(|entry| (entry.case.id.clone(), entry)).collect()))
}

/// The first line of each judge on each item.
fn lines_of<'a>(groups: &Groups<'a>) -> BTreeMap<(usize, Item), &'a ResultLine> {
    let mut lines = BTreeMap::new();
    for (place, group) in groups.values().enumerate() {
        for one in &group.judgements {
            lines.entry((place, item_of(one))).or_insert(one.line);
        }
    }
    lines
}

/// What a page shows of an item.
fn shown(line: Option<&ResultLine>, item: &Item, set: Option<&Cases>, out: &Path) -> Shown {
    let entry = set.and_then(|set| set.get(&item.case));
    let instruction = line.and_then(|line| line.instruction.clone());
    let file = |name: &str, path: Option<&Path>| {
        let link = super::report::link(path?, Some(out)).ok().flatten()?;
        Some((name.to_owned(), encoded(&link)))
    };
    let pictures = entry.map(|entry| {
        let edited = entry.edits().get(&item.editor).and_then(|file| file.path());
        let source = file("source", entry.case.source.path());
        source.into_iter().chain(file("edited", edited)).collect()
    });
    Shown {
        instruction: instruction.or_else(|| entry.map(|entry| entry.case.instruction.clone())),
        reasoning: line.and_then(|line| Some(line.facts.text("reasoning")?.into_owned())),
        pictures: pictures.unwrap_or_default(),
    }
}

/// What a judgement is of.
fn item_of(one: &JudgedResult<'_>) -> Item {
    Item {
        criterion: one.criterion.clone(),
        case: one.line.case.clone(),
        editor: one.line.editor.clone().unwrap_or_default(),
    }
}

/// How judgements and labels miss each other.
fn apart(judges: &[Judge], labels: &Labels) -> String {
    let judged = judges.iter().flat_map(|judge| &judge.judgements).map(|one| &one.item).next();
    let example = |item: Option<&Item>| match item {
        None => "nothing".to_owned(),
        Some(Item { criterion, case, editor }) => {
            format!("case {case:?}, editor {editor:?}, criterion {criterion:?}")
        }
    };
    format!(
        "there are judgements such as {}, and labels such as {}; case, editor and criterion must be the same",
        example(judged),
        example(labels.items.keys().next())
    )
}

/// What is compared of each criterion, by the packs that the runs were made with. One criterion with
/// two sets of labels cannot be compared with one set of people's.
fn rankings(groups: &Groups<'_>) -> anyhow::Result<Vec<Ranking>> {
    let mut rankings: Vec<Ranking> = Vec::new();
    for group in groups.values() {
        for ranking in Ranking::of_rubric(&group.rubric) {
            match rankings.iter().find(|known| known.criterion == ranking.criterion) {
                None => rankings.push(ranking),
                Some(known) if known.labels == ranking.labels => {}
                Some(known) => bail!(
                    "the criterion {:?} has the labels {} in one run and {} in another; compare runs of one pack at a time",
                    known.criterion,
                    known.names(),
                    ranking.names()
                ),
            }
        }
    }
    let criteria = groups.values().flat_map(|group| &group.judgements).map(|one| &one.criterion);
    for criterion in criteria.collect::<BTreeSet<_>>() {
        if Ranking::find(&rankings, criterion).is_none() {
            rankings.push(Ranking::of_numbers(criterion));
        }
    }
    Ok(rankings)
}

type Groups<'a> = BTreeMap<GroupKey, JudgedGroup<'a>>;

/// The judges in these groups, each with all of its judgements.
fn judges(groups: &Groups<'_>, rankings: &[Ranking]) -> anyhow::Result<Vec<Judge>> {
    let mut judges = Vec::new();
    for (name, group) in groups {
        let by = group.rubric.report.group.as_deref().unwrap_or(Facts::TYPE);
        let mut judgements = Vec::new();
        for one in &group.judgements {
            let ranking = Ranking::find(rankings, &one.criterion);
            let labelled = ranking.is_some_and(|ranking| !ranking.labels.is_empty());
            let rank = match &one.line.label {
                Some(label) if labelled && one.score.is_some() => {
                    let rank = ranking.and_then(|ranking| ranking.rank(label));
                    Some(rank.ok_or_else(|| {
                        anyhow::anyhow!(
                            "{}: {label:?} is no label of the criterion {:?}; its labels are {}",
                            name.run,
                            one.criterion,
                            ranking.map(Ranking::names).unwrap_or_default()
                        )
                    })?)
                }
                _ => one.score,
            };
            judgements.push(Judgement {
                item: item_of(one),
                kind: one.fact(by).into_owned(),
                rank,
            });
        }
        judges.push(Judge { name: name.clone(), judgements });
    }
    Ok(judges)
}

fn print_judges(agreement: &Agreement, bootstrap: &Bootstrap) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    let bold = Style::BOLD;
    let truth = agreement.truth.in_words();
    writeln!(
        out,
        "{} labelled items by {} annotators: {}",
        agreement.labelled,
        agreement.annotators.len(),
        visible_line(&agreement.annotators.join(", "))
    )?;
    writeln!(
        out,
        "MAE is in ranks of labels, 1 is the worst (of answers without labels in points of score). κ, exact and the\n\
         confusion take the truth as the nearest label, and the worse one where two are as near ({} truths lie\n\
         between labels). People ρ is how far people agree with each other, as the mean of each pair of them: what a\n\
         judge can reach at best. Numbers of people on a scale of their own are compared in their order alone.\n{}",
        agreement.between_labels,
        about_intervals(bootstrap, "cases")
    )?;
    for judge in &agreement.judges {
        writeln!(out, "\n{bold}{}{bold:#} ({truth})\n", visible_line(&judge.judge.title()))?;
        write!(out, "{}", cells(&judge.cells))?;
        write!(out, "{}", reasons(&judge.cells))?;
        writeln!(
            out,
            "  {} judgements of what nobody labelled, {} labelled items never judged, {} labels of other editors or criteria",
            judge.without_label, judge.never_judged, judge.of_others
        )?;
        for confusion in &judge.confusion {
            writeln!(
                out,
                "\n  confusion, {} (rows: people, {truth}; columns: the judge)\n",
                visible_line(&confusion.criterion)
            )?;
            write!(out, "{}", matrix(confusion))?;
        }
        if !judge.with_itself.is_empty() {
            writeln!(out, "\n  repetitions of this judge with each other\n")?;
            write!(out, "{}", raters(&judge.with_itself))?;
        }
    }
    print_differences(&mut out, agreement)?;
    writeln!(
        out,
        "\n{bold}Annotators with each other{bold:#} (Krippendorff's α; exact: equal pairs of labels)\n"
    )?;
    write!(out, "{}", raters(&agreement.among_annotators))?;
    write!(out, "{}", reasons(&agreement.among_annotators))?;
    Ok(())
}

fn print_differences(out: &mut impl std::io::Write, agreement: &Agreement) -> anyhow::Result<()> {
    let bold = Style::BOLD;
    if agreement.judges.len() > 1 {
        writeln!(out, "\n{bold}Side by side{bold:#} ({})\n", agreement.truth.in_words())?;
        let mut grid = Grid::new(2, head(&["criterion", "judge", "n", "coverage"]));
        for (number, judge) in agreement.judges.iter().enumerate() {
            let whole = |cell: &&Cell| cell.kind.is_none() && cell.editor.is_none();
            for cell in judge.cells.iter().filter(whole) {
                let names = vec![
                    all(cell.criterion.as_deref()),
                    format!("{}: {}", number + 1, judge.judge.title()),
                ];
                grid.row(numbers(names, cell.coverage, &cell.agreement, &PAIRS));
            }
        }
        write!(out, "{grid}")?;
        writeln!(
            out,
            "\n{bold}Paired differences{bold:#}, on what both gave a verdict on ({})\n",
            agreement.truth.in_words()
        )?;
        let mut grid = Grid::new(2, head(&["criterion", "judges", "n"]));
        for one in &agreement.differences {
            let [first, second] = one.judges.map(|judge| judge + 1);
            let names = vec![all(one.criterion.as_deref()), format!("{first} − {second}")];
            grid.row(numbers(names, None, &one.difference, &PAIRS));
        }
        write!(out, "{grid}")?;
    }
    Ok(())
}

/// These columns and then the measures of pairs.
fn head<'a>(first: &[&'a str]) -> Vec<&'a str> {
    first.iter().copied().chain(PAIRS.map(Measure::title)).collect()
}

fn all(name: Option<&str>) -> String {
    name.unwrap_or("all").to_owned()
}

fn numbers(
    mut row: Vec<String>,
    coverage: Option<Coverage>,
    measured: &Measured,
    measures: &[Measure],
) -> Vec<String> {
    row.push(measured.n.to_string());
    row.extend(coverage.map(percent));
    row.extend(measures.iter().map(|measure| measured.get(*measure).to_string()));
    row
}

fn percent(coverage: Coverage) -> String {
    match coverage.fraction() {
        Ok(fraction) => format!("{:.2} % of {}", 100.0 * fraction, coverage.all),
        Err(_) => "–".to_owned(),
    }
}

/// Of what a cell is.
fn names(cell: &Cell) -> Vec<String> {
    [&cell.criterion, &cell.editor, &cell.kind].map(|name| all(name.as_deref())).into()
}

fn cells(cells: &[Cell]) -> Grid {
    let mut columns = head(&["criterion", "editor", "type", "n", "coverage"]);
    columns.push("people ρ");
    let mut grid = Grid::new(3, columns);
    for cell in cells {
        let mut row = numbers(names(cell), cell.coverage, &cell.agreement, &PAIRS);
        row.push(cell.ceiling.map_or("–".to_owned(), |ceiling| ceiling.to_string()));
        grid.row(row);
    }
    grid
}

fn raters(cells: &[Cell]) -> Grid {
    let measures = [&Measure::OF_RATERS[..], &[Measure::Exact]].concat();
    let columns = ["criterion", "editor", "type", "n"].into_iter();
    let columns = columns.chain(measures.iter().map(|m| m.title())).chain(["pairs ρ"]);
    let mut grid = Grid::new(3, columns);
    for cell in cells {
        let mut row = names(cell);
        row.push(cell.agreement.n.to_string());
        row.extend(measures.iter().map(|measure| cell.agreement.get(*measure).to_string()));
        row.push(cell.ceiling.map_or("–".to_owned(), |ceiling| ceiling.to_string()));
        grid.row(row);
    }
    grid
}

fn matrix(confusion: &Confusion) -> Grid {
    let labels = confusion.labels.iter().map(String::as_str);
    let mut grid = Grid::new(1, [""].into_iter().chain(labels).chain(["no verdict"]));
    for (label, counts) in confusion.labels.iter().zip(&confusion.counts) {
        let counts = counts.iter().map(usize::to_string);
        grid.row([label.clone()].into_iter().chain(counts).collect());
    }
    grid
}

/// Why there are dashes in these cells: a line for each reason.
fn reasons(cells: &[Cell]) -> String {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for cell in cells {
        let mut of_cell: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (measure, why) in cell.agreement.undefined() {
            of_cell.entry(why.to_string()).or_default().push(measure.title());
        }
        for (why, measures) in of_cell {
            let place = [cell.criterion.as_deref(), cell.editor.as_deref(), cell.kind.as_deref()];
            let place: Vec<&str> = place.into_iter().flatten().collect();
            let place = if place.is_empty() { "all".to_owned() } else { place.join(", ") };
            reasons.entry(why).or_default().push(format!("{place} ({})", measures.join(", ")));
        }
    }
    reasons.iter().map(|(why, where_)| format!("  –: {why}: {}\n", where_.join("; "))).collect()
}

/// What is below what was asked for.
fn gates(args: &AgreeArgs, agreement: &Agreement) -> Vec<String> {
    let mut complaints = Vec::new();
    for judge in &agreement.judges {
        complaints.extend(
            gates_of(args, judge)
                .into_iter()
                .map(|what| format!("{}: {what}", judge.judge.title())),
        );
    }
    complaints
}

/// Whether a cell is a criterion's, over all editors and types.
fn is_criterion(cell: &Cell) -> bool {
    cell.criterion.is_some() && cell.editor.is_none() && cell.kind.is_none()
}

fn gates_of(args: &AgreeArgs, judge: &JudgeAgreement) -> Vec<String> {
    let asked = args.min_coverage.is_some() || args.min_agreement.is_some();
    let criteria: Vec<&Cell> = judge.cells.iter().filter(|cell| is_criterion(cell)).collect();
    if asked && criteria.is_empty() {
        return vec!["nothing that it judged has a label".to_owned()];
    }
    let mut complaints = Vec::new();
    for cell in criteria {
        let name = all(cell.criterion.as_deref());
        let coverage = cell.coverage.unwrap_or_default();
        if let Some(floor) = args.min_coverage
            && coverage.fraction().unwrap_or(0.0) + ROUNDING < floor
        {
            complaints.push(format!(
                "{name}: coverage {} is below --min-coverage {:.2} %",
                percent(coverage),
                100.0 * floor
            ));
        }
        let below = args.min_agreement.and_then(|floor| below(&cell.agreement, floor));
        complaints.extend(below.map(|what| format!("{name}: {what}")));
    }
    complaints
}

fn below(measured: &Measured, floor: AgreementFloor) -> Option<String> {
    let AgreementFloor { measure, least } = floor;
    match measured.get(measure).value {
        Ok(value) if value + ROUNDING >= least => None,
        Ok(value) => {
            Some(format!("{} {value:.4} is below --min-agreement {least}", measure.title()))
        }
        Err(why) => Some(format!(
            "{} is undefined ({why}), so that --min-agreement {least} is not shown to hold",
            measure.title()
        )),
    }
}

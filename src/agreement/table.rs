//! Any table of ratings: rows are items, columns are raters, an empty cell is a missing rating.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::measures::{Columns, Measure, Measured, Values, alphas, measured};
use super::ranking::Ranking;
use crate::received;
use crate::stats::{Bootstrap, Ratings, Statistic, Undefined, pearson, spearman};

/// A table of ratings.
#[derive(Debug, Clone)]
pub struct RatingTable {
    /// Names of the columns.
    pub raters: Vec<String>,
    /// What the cells are.
    pub values: Values,
    rows: Vec<Vec<Option<f64>>>,
}

/// What a table says.
#[derive(Debug, Clone)]
pub struct TableAgreement {
    /// All measures. With more than two raters those of two columns are means over the pairs of
    /// raters for which they are defined; `n` counts the items that have at least two ratings.
    pub all: Measured,
    /// With more than two raters: each pair of them.
    pub pairs: Vec<RaterPair>,
    /// With two raters: how probable a Pearson and a Spearman correlation at least as strong would be
    /// by chance.
    pub p_values: Option<[Statistic; 2]>,
}

/// Two raters.
#[derive(Debug, Clone, Serialize)]
pub struct RaterPair {
    /// Their names.
    pub raters: [String; 2],
    /// On the items that both rated.
    pub agreement: Measured,
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file system said no.
    #[error("cannot read {}: {source}; give a CSV file", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a table of ratings.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, counted from 1.
        line: Option<u64>,
        /// What is wrong and what to do.
        problem: String,
    },
}

/// Every rater is compared with every other one.
const MOST_RATERS: usize = 1000;
/// A first column of one of these names names the rows.
const NAMES_OF_ROWS: [&str; 3] = ["item", "case", "id"];

impl RatingTable {
    /// Reads a CSV file. Words are labels of one of `rankings`, or have no order.
    pub fn read(path: &Path, rankings: &[Ranking]) -> Result<Self, TableError> {
        let bytes = received::read_named(path, received::LARGEST_TABLE)
            .map_err(|source| TableError::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&bytes, rankings).map_err(|(line, problem)| TableError::Malformed {
            path: path.to_owned(),
            line,
            problem,
        })
    }

    /// The error is a line, if it is about one, and what is wrong with it.
    fn parse(bytes: &[u8], rankings: &[Ranking]) -> Result<Self, (Option<u64>, String)> {
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .trim(csv::Trim::All)
            .has_headers(true)
            .from_reader(bytes);
        let broken = |error: csv::Error| {
            (error.position().map(csv::Position::line), format!("it is not CSV: {error}"))
        };
        let header = reader.headers().map_err(broken)?.clone();
        if header.is_empty() {
            return Err((None, "it is empty; the first row must name the raters".to_owned()));
        }
        if header.len() > MOST_RATERS {
            let count = header.len();
            return Err((None, format!("it has {count} columns, more than {MOST_RATERS} raters")));
        }
        let named = header
            .get(0)
            .is_some_and(|name| NAMES_OF_ROWS.iter().any(|known| known.eq_ignore_ascii_case(name)));
        let skip = usize::from(named);
        let mut cells: Vec<(u64, Vec<String>)> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(broken)?;
            let line = record.position().map_or(0, csv::Position::line);
            if record.len() != header.len() {
                return Err((
                    Some(line),
                    format!(
                        "it has {} cells and the header has {}; leave a cell empty where a rating is missing",
                        record.len(),
                        header.len()
                    ),
                ));
            }
            cells.push((line, record.iter().skip(skip).map(str::to_owned).collect()));
        }
        let raters: Vec<String> = header.iter().skip(skip).map(str::to_owned).collect();
        let (values, of_cell) = understand(&cells, &raters, rankings)?;
        let row = |row: &Vec<String>| row.iter().map(|cell| of_cell.get(cell).copied()).collect();
        Ok(Self { raters, values, rows: cells.iter().map(|(_, cells)| row(cells)).collect() })
    }

    /// All measures, with bootstrap intervals over items.
    pub fn agreement(&self, bootstrap: &Bootstrap) -> TableAgreement {
        let units: Vec<Vec<f64>> =
            self.rows.iter().map(|row| row.iter().flatten().copied().collect()).collect();
        let ratings = Ratings::new(&units);
        let couples = self.couples();
        let ordered = self.values != Values::Words;
        let measures = [&Measure::OF_PAIRS[..], &Measure::OF_RATERS[..]].concat();
        let all = measured(&measures, ratings.pairable(), units.len(), bootstrap, |drawn| {
            let each: Vec<[Statistic; 5]> =
                couples.iter().map(|couple| couple.measure(drawn)).collect();
            let mut numbers: Vec<Statistic> =
                (0..Measure::OF_PAIRS.len()).map(|i| mean_defined(&each, i)).collect();
            numbers.extend(alphas(&ratings, ordered, &ratings.weights(|i| f64::from(drawn[i]))));
            numbers
        });
        let pairs = match couples.len() {
            0 | 1 => Vec::new(),
            _ => couples.iter().map(|couple| self.one_pair(couple, bootstrap)).collect(),
        };
        let p_values = match &couples[..] {
            [couple] if ordered => Some(self.p_values(couple)),
            _ => None,
        };
        TableAgreement { all, pairs, p_values }
    }

    fn couples(&self) -> Vec<Couple> {
        let mut couples = Vec::new();
        for first in 0..self.raters.len() {
            for second in first + 1..self.raters.len() {
                let both = |row: &Vec<Option<f64>>| row[first].zip(row[second]);
                let (rows, pairs): (Vec<usize>, Vec<(f64, f64)>) = self
                    .rows
                    .iter()
                    .map(both)
                    .enumerate()
                    .filter_map(|(i, b)| Some((i, b?)))
                    .unzip();
                let columns = Columns::new(&pairs, self.values.clone());
                couples.push(Couple { raters: [first, second], rows, columns });
            }
        }
        couples
    }

    fn p_values(&self, couple: &Couple) -> [Statistic; 2] {
        let [first, second] = couple.raters;
        let pairs: Vec<(f64, f64)> =
            self.rows.iter().filter_map(|row| row[first].zip(row[second])).collect();
        [pearson(&pairs), spearman(&pairs)].map(|found| found.and_then(|found| found.p))
    }

    fn one_pair(&self, couple: &Couple, bootstrap: &Bootstrap) -> RaterPair {
        let (n, rows) = (couple.rows.len(), self.rows.len());
        RaterPair {
            raters: couple.raters.map(|rater| self.raters[rater].clone()),
            agreement: measured(&Measure::OF_PAIRS, n, rows, bootstrap, |drawn| {
                couple.measure(drawn).to_vec()
            }),
        }
    }
}

/// Two raters on the rows that both have rated.
struct Couple {
    raters: [usize; 2],
    rows: Vec<usize>,
    columns: Columns,
}

impl Couple {
    fn measure(&self, drawn: &[u32]) -> [Statistic; 5] {
        self.columns.measure(|i| f64::from(drawn[self.rows[i]]))
    }
}

/// The mean of the measure at place `i` over the pairs of raters that have it.
fn mean_defined(each: &[[Statistic; 5]], i: usize) -> Statistic {
    let defined: Vec<f64> = each.iter().filter_map(|one| one[i].ok()).collect();
    match (defined.is_empty(), each.first()) {
        (true, Some(one)) => one[i],
        (true, None) => Err(Undefined::TooFew { n: 0, needed: 1 }),
        (false, _) => crate::stats::mean(&defined),
    }
}

/// What the cells are, and the value of each text that occurs in them.
type Understood = (Values, BTreeMap<String, f64>);

fn understand(
    rows: &[(u64, Vec<String>)],
    raters: &[String],
    rankings: &[Ranking],
) -> Result<Understood, (Option<u64>, String)> {
    let filled = || {
        rows.iter().flat_map(|(line, cells)| {
            cells.iter().zip(raters).filter(|(cell, _)| !cell.is_empty()).map(move |c| (*line, c))
        })
    };
    let number = |cell: &str| cell.parse::<f64>().ok().filter(|number| number.is_finite());
    let first_number = filled().find(|(_, (cell, _))| number(cell).is_some());
    if let Some((_, (example, _))) = first_number {
        let mut values = BTreeMap::new();
        for (line, (cell, rater)) in filled() {
            let Some(number) = number(cell) else {
                return Err((
                    Some(line),
                    format!(
                        "the rating {cell:?} of {rater:?} is not a number, and others such as {example:?} are; write all as numbers or all as labels, and nothing where one is missing"
                    ),
                ));
            };
            values.insert(cell.clone(), number);
        }
        let whole = values.values().all(|number| number.fract() == 0.0);
        return Ok((if whole { Values::Whole } else { Values::Numbers }, values));
    }
    let words: BTreeSet<&str> = filled().map(|(_, (cell, _))| cell.as_str()).collect();
    if words.is_empty() {
        return Ok((Values::Whole, BTreeMap::new()));
    }
    for ranking in rankings {
        let ranks: Option<BTreeMap<String, f64>> =
            words.iter().map(|word| Some(((*word).to_owned(), ranking.rank(word)?))).collect();
        if let Some(ranks) = ranks {
            return Ok((Values::Labels(ranking.criterion.clone()), ranks));
        }
    }
    let codes = words.iter().enumerate().map(|(code, word)| ((*word).to_owned(), code as f64));
    Ok((Values::Words, codes.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rankings() -> Vec<Ranking> {
        let ranking = |criterion: &str, labels: [&str; 2]| Ranking {
            criterion: criterion.to_owned(),
            name: String::new(),
            labels: labels.map(str::to_owned).into_iter().zip([1.0, 4.0]).collect(),
        };
        vec![ranking("if", ["Bad", "Good"]), ranking("vc", ["Broken", "Whole"])]
    }

    fn table(text: &str) -> Result<RatingTable, (Option<u64>, String)> {
        RatingTable::parse(text.as_bytes(), &rankings())
    }

    fn agreement(text: &str) -> Measured {
        table(text).unwrap().agreement(&Bootstrap::default()).all
    }

    #[test]
    fn the_first_column_may_name_the_rows() {
        for name in ["item", "Case", "ID"] {
            let found = table(&format!("{name},a,b\n7,1,2\n8,,3\n")).unwrap();
            assert_eq!(found.raters, ["a", "b"]);
            assert_eq!(found.rows, [vec![Some(1.0), Some(2.0)], vec![None, Some(3.0)]]);
        }
        let found = table("\u{feff}a,b\r\n 1 , 2 \r\n").unwrap();
        assert_eq!((found.raters.len(), found.values, found.rows.len()), (2, Values::Whole, 1));
    }

    #[test]
    fn cells_are_labels_words_or_numbers() {
        let values = |text: &str| table(text).unwrap().values;
        assert_eq!(values("a,b\nbad,GOOD\n"), Values::Labels("if".to_owned()));
        assert_eq!(values("a,b\nWhole,Broken\n"), Values::Labels("vc".to_owned()));
        assert_eq!(values("a,b\nWhole,Good\n"), Values::Words);
        assert_eq!(values("a,b\n1.0,2\n"), Values::Whole);
        assert_eq!(values("a,b\n1.5,2\n"), Values::Numbers);
        assert_eq!(values("a,b\n,\n"), Values::Whole);
        let found = agreement("a,b\nBad,Good\nGood,Good\n");
        assert_eq!(found.get(Measure::Mae).value, Ok(1.5));
    }

    #[test]
    fn bad_tables_are_refused_with_their_line() {
        let refused = |text: &str| table(text).unwrap_err();
        assert_eq!(refused("").0, None);
        assert_eq!(refused("a,b\n1,2\n1\n").0, Some(3));
        for odd in ["nan", "inf", "good", "1,5"] {
            let (line, problem) = refused(&format!("a,b\n1,2\n\"{odd}\",2\n"));
            assert_eq!(line, Some(3));
            assert!(problem.contains(odd) && problem.contains("\"a\""), "{problem}");
        }
    }

    #[test]
    fn words_have_no_order() {
        let found = agreement("a,b\nred,red\nblue,red\nblue,blue\n");
        assert_eq!(found.get(Measure::Exact).value, Ok(2.0 / 3.0));
        assert!(found.get(Measure::AlphaNominal).value.is_ok());
        let reasons: Vec<Undefined> = found.undefined().map(|(_, why)| why).collect();
        assert_eq!(reasons, [Undefined::NoOrder; 6]);
    }

    #[test]
    fn no_items_one_item_one_rater() {
        let found = agreement("a,b\n");
        assert_eq!((found.n, found.undefined().count()), (0, 8));
        let found = agreement("a\n1\n2\n");
        assert_eq!((found.n, found.undefined().count()), (0, 8));
        let found = agreement("a,b\n1,1\n2,\n");
        assert_eq!((found.n, found.get(Measure::Exact).value), (1, Ok(1.0)));
    }

    #[test]
    fn of_three_raters_every_pair_counts_the_same() {
        let three = table("a,b,c\n1,1,2\n2,2,1\n3,3,\n").unwrap();
        let found = three.agreement(&Bootstrap::default());
        assert_eq!(found.pairs.len(), 3);
        let exact: Vec<Statistic> =
            found.pairs.iter().map(|pair| pair.agreement.get(Measure::Exact).value).collect();
        assert_eq!(exact, [Ok(1.0), Ok(0.0), Ok(0.0)]);
        assert_eq!(found.all.get(Measure::Exact).value, Ok(1.0 / 3.0));
        assert_eq!(found.pairs.iter().map(|pair| pair.agreement.n).collect::<Vec<_>>(), [3, 2, 2]);
    }
}

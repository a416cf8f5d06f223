//! Columns for the terminal: names to the left, numbers to the right.

use std::fmt;

use crate::visible::visible_line;

/// A table of texts.
#[derive(Debug, Default)]
pub(super) struct Grid {
    rows: Vec<Vec<String>>,
    names: usize,
}

impl Grid {
    /// A grid with this head; its first `names` columns are names.
    pub(super) fn new<'a>(names: usize, head: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![head.into_iter().map(str::to_owned).collect()], names }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells.iter().map(|cell| visible_line(cell)).collect());
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                match column < self.names {
                    true => format!("{cell:width$}"),
                    false => format!("{cell:>width$}"),
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(f, "  {}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut grid = Grid::new(1, ["type", "n", "ρ"]);
        grid.row(vec!["Change Color".to_owned(), "12".to_owned(), "0.81".to_owned()]);
        assert_eq!(grid.to_string(), "  type           n     ρ\n  Change Color  12  0.81\n");
    }
}

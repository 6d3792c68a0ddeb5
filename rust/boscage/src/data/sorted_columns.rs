//! The training features, sorted once for all trees.

use std::sync::OnceLock;

use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted_column::SortedColumn;
use crate::data::ties::Ties;
use crate::error::Result;

/// Features by column: each row's value as its rank among the distinct values of the column, and the rows in
/// sorted order. Trees compare ranks; thresholds are in the user's units.
#[derive(Debug)]
pub(crate) struct SortedColumns {
    n_rows: usize,
    columns: Vec<SortedColumn>,
    tells_rows_apart: bool,
    /// Computed on first use.
    ties: OnceLock<Ties>,
}

impl SortedColumns {
    /// Sorts every column.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(rows: Rows<'_>, threads: &Threads, control: &Control) -> Result<Self> {
        let n_rows = rows.n_rows();
        let column = |d| SortedColumn::new((0..n_rows).map(|i| rows.at(i, d)), control);
        let columns: Vec<SortedColumn> =
            threads.map(rows.n_features(), column).into_iter().collect::<Result<_>>()?;
        let tells_rows_apart = columns.iter().any(|column| !column.has_ties());
        Ok(Self { n_rows, columns, tells_rows_apart, ties: OnceLock::new() })
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.columns.len()
    }

    /// Whether some feature has distinct values in all rows.
    pub(crate) fn tells_rows_apart(&self) -> bool {
        self.tells_rows_apart
    }

    /// A feature.
    pub(crate) fn column(&self, feature: u32) -> &SortedColumn {
        &self.columns[feature as usize]
    }

    /// Whether a feature varies among some rows, of which there is at least one.
    pub(crate) fn varies(&self, feature: u32, rows: &[u32]) -> bool {
        let column = self.column(feature);
        let first = column.rank(rows[0]);
        rows.iter().any(|&row| column.rank(row) != first)
    }

    /// The features in which rows share values.
    pub(crate) fn ties(&self) -> &Ties {
        self.ties.get_or_init(|| Ties::new(&self.columns))
    }
}

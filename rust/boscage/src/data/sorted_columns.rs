//! The training features, sorted once for all trees.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::control::{Control, Threads};
use crate::data::Rows;
use crate::data::sorted_column::SortedColumn;
use crate::data::ties::Ties;
use crate::error::Result;

/// Features by column: each row's value as its rank among the distinct values of the column, and the rows in
/// sorted order. Trees compare ranks; thresholds are in the user's units.
///
/// Features of which values are missing have two columns, one for each side to which missing values may go. The first
/// `n_features` columns are those of the features; in these, missing values go left. Columns in which they go right
/// come after them. Samplers split along columns, each as a feature of its own with half the feature's weight.
#[derive(Debug)]
pub(crate) struct SortedColumns {
    n_rows: usize,
    n_features: usize,
    columns: Vec<SortedColumn>,
    /// The features of the columns after the first `n_features`.
    features_again: Vec<u32>,
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
        let mut columns: Vec<SortedColumn> =
            threads.map(rows.n_features(), column).into_iter().collect::<Result<_>>()?;
        let tells_rows_apart = columns.iter().any(|column| !column.has_ties());
        let (n_features, features) = (columns.len(), 0..columns.len() as u32);
        let features_again: Vec<u32> = features.filter(|&d| columns[d as usize].has_missing()).collect();
        let again = features_again.iter().filter_map(|&d| columns[d as usize].with_missing_highest());
        let again: Vec<SortedColumn> = again.collect();
        columns.extend(again);
        Ok(Self { n_rows, n_features, columns, features_again, tells_rows_apart, ties: OnceLock::new() })
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of columns: one for each feature, and another one if values of it are missing.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether values are missing.
    pub(crate) fn has_missing(&self) -> bool {
        !self.features_again.is_empty()
    }

    /// The feature of a column.
    pub(crate) fn feature_of(&self, column: u32) -> u32 {
        match (column as usize).checked_sub(self.n_features) {
            None => column,
            Some(again) => self.features_again[again],
        }
    }

    /// Logarithm of the weight of a column, given those of the features unless these are equal. Both sides of missing
    /// values are equally probable.
    pub(crate) fn log_weight(&self, column: u32, of_features: Option<&[f64]>) -> f64 {
        let of_feature = of_features.map_or(0.0, |logs| logs[self.feature_of(column) as usize]);
        if self.column(column).has_missing() { of_feature - std::f64::consts::LN_2 } else { of_feature }
    }

    /// [`Self::log_weight`] of all columns; None if all columns have equal weights.
    pub(crate) fn log_weights<'w>(&self, of_features: Option<&'w [f64]>) -> Option<Cow<'w, [f64]>> {
        if self.has_missing() {
            let columns = 0..self.n_columns() as u32;
            return Some(columns.map(|column| self.log_weight(column, of_features)).collect());
        }
        of_features.map(Cow::Borrowed)
    }

    /// Whether some feature has distinct values in all rows.
    pub(crate) fn tells_rows_apart(&self) -> bool {
        self.tells_rows_apart
    }

    /// A column.
    pub(crate) fn column(&self, column: u32) -> &SortedColumn {
        &self.columns[column as usize]
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

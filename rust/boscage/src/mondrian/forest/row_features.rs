//! The features of rows as the user gave them: kept beside coordinates where these differ, and read from model files.

use crate::data::{RowId, Rows, SparseRow};
use crate::error::Result;
use crate::mondrian::forest::row_values::RowValues;

/// The features of rows, by number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowFeatures {
    Dense(RowValues),
    Sparse(Vec<SparseRow>),
}

/// A row's features, to be read one by one.
#[derive(Debug)]
pub(crate) enum RowView<'a> {
    Dense(Vec<f64>),
    Sparse(&'a SparseRow),
}

impl RowView<'_> {
    pub(crate) fn at(&self, feature: usize) -> f64 {
        match self {
            Self::Dense(values) => values[feature],
            Self::Sparse(row) => row.at(feature as u32),
        }
    }
}

impl RowFeatures {
    /// No dense rows.
    pub(crate) const DENSE: Self = Self::Dense(RowValues::F32(Vec::new()));
    /// No sparse rows.
    pub(crate) const SPARSE: Self = Self::Sparse(Vec::new());

    /// The table as rows.
    pub(crate) fn rows(&self, n_features: usize) -> Result<Rows<'_>> {
        match self {
            Self::Dense(values) => values.rows(n_features),
            Self::Sparse(rows) => Rows::from_sparse(rows, n_features),
        }
    }

    /// Writes rows to their places in a table of `capacity` rows at least.
    pub(crate) fn place(&mut self, new: &[RowId], rows: Rows<'_>, capacity: usize) {
        match self {
            Self::Dense(values) => values.place(new, rows, capacity),
            Self::Sparse(table) => {
                if table.len() < capacity {
                    table.resize(capacity, SparseRow::default());
                }
                for (i, &row) in new.iter().enumerate() {
                    table[row as usize] = rows.sparse_row(i);
                }
            }
        }
    }

    /// A row's values.
    pub(crate) fn row(&self, row: RowId, n_features: usize) -> Vec<f64> {
        match self {
            Self::Dense(values) => values.row(row, n_features),
            Self::Sparse(rows) => {
                let mut all = vec![0.0; n_features];
                for &(feature, value) in rows[row as usize].values() {
                    all[feature as usize] = value;
                }
                all
            }
        }
    }

    /// A row, to be read value by value.
    pub(crate) fn view(&self, row: RowId, n_features: usize) -> RowView<'_> {
        match self {
            Self::Dense(values) => RowView::Dense(values.row(row, n_features)),
            Self::Sparse(rows) => RowView::Sparse(&rows[row as usize]),
        }
    }

    /// A table of some of the rows.
    pub(crate) fn of_rows(&self, rows: impl Iterator<Item = RowId>, n_features: usize) -> Self {
        match self {
            Self::Dense(values) => Self::Dense(values.of_rows(rows, n_features)),
            Self::Sparse(table) => Self::Sparse(rows.map(|row| table[row as usize].clone()).collect()),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Dense(values) => values.bytes(),
            Self::Sparse(rows) => {
                size_of_val::<[_]>(rows) + rows.iter().map(|row| size_of_val(row.values())).sum::<usize>()
            }
        }
    }
}

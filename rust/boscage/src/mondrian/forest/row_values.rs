//! Values of rows in the narrowest type that holds every one of them exactly.

use crate::data::RowId;
use crate::data::{Rows, Scalar};
use crate::error::Result;

/// Values row after row, in the narrowest type that holds every one of them exactly.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RowValues {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl RowValues {
    /// The table as rows.
    pub(crate) fn rows(&self, n_features: usize) -> Result<Rows<'_>> {
        match self {
            Self::F32(values) => Rows::from_f32_with_missing(values, n_features),
            Self::F64(values) => Rows::from_f64_with_missing(values, n_features),
        }
    }

    /// Writes rows to their places.
    pub(crate) fn place(&mut self, new: &[RowId], rows: Rows<'_>, capacity: usize) {
        let n_features = rows.n_features();
        if let Self::F32(values) = self {
            match rows.to_exact() {
                Some(from) => return place(values, new, from, n_features, capacity),
                None => *self = Self::F64(values.iter().map(|&value| f64::from(value)).collect()),
            }
        }
        if let Self::F64(values) = self {
            let from: Vec<f64> = rows.to_exact().expect("f64 holds every value");
            place(values, new, from, n_features, capacity);
        }
    }

    pub(crate) fn row(&self, row: RowId, n_features: usize) -> Vec<f64> {
        match self {
            Self::F32(values) => row_of(values, row, n_features),
            Self::F64(values) => row_of(values, row, n_features),
        }
    }

    /// A table of some of the rows.
    pub(crate) fn of_rows(&self, rows: impl Iterator<Item = RowId>, n_features: usize) -> Self {
        match self {
            Self::F32(values) => Self::F32(rows_of(values, rows, n_features)),
            Self::F64(values) => Self::F64(rows_of(values, rows, n_features)),
        }
    }

    /// Appends values, which the table's type must hold exactly.
    pub(crate) fn extend<S: Scalar>(&mut self, values: impl Iterator<Item = S>) {
        match self {
            Self::F32(own) => own.extend(values.map(f32::of)),
            Self::F64(own) => own.extend(values.map(f64::of)),
        }
    }

    /// All values, one after the other.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::F32(own) => Box::new(own.iter().map(|&value| f64::from(value))),
            Self::F64(own) => Box::new(own.iter().copied()),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::F32(values) => size_of_val::<[f32]>(values),
            Self::F64(values) => size_of_val::<[f64]>(values),
        }
    }
}

/// A row's values in a table.
pub(crate) fn row_of<S: Scalar>(table: &[S], row: RowId, n_features: usize) -> Vec<f64> {
    table[row as usize * n_features..][..n_features].iter().map(|&value| value.into()).collect()
}

/// Some rows of a table.
pub(crate) fn rows_of<S: Scalar>(
    table: &[S],
    rows: impl Iterator<Item = RowId>,
    n_features: usize,
) -> Vec<S> {
    rows.flat_map(|row| &table[row as usize * n_features..][..n_features]).copied().collect()
}

/// Writes rows to their places in a table, which grows to `capacity` rows if it has fewer.
pub(crate) fn place<S: Scalar>(
    table: &mut Vec<S>,
    rows: &[RowId],
    values: Vec<S>,
    n_features: usize,
    capacity: usize,
) {
    if table.is_empty() {
        // The first rows take the first places.
        *table = values;
        return;
    }
    if table.len() < capacity * n_features {
        table.resize(capacity * n_features, S::ZERO);
    }
    for (&row, from) in rows.iter().zip(values.chunks_exact(n_features)) {
        table[row as usize * n_features..][..n_features].copy_from_slice(from);
    }
}

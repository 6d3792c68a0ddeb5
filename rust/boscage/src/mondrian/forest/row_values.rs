//! The features of rows as the user gave them: kept beside coordinates where the domain has maps or values are missing,
//! and read from model files.

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

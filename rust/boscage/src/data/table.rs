//! The values of rows as trees read them: by row, or by feature.

use super::rows::Scalar;

/// The values of rows, read by row or by feature.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table<'a, S> {
    by_row: &'a [S],
    /// The transpose, if many rows are read.
    by_column: Option<&'a [S]>,
    n_features: usize,
}

impl<'a, S: Scalar> Table<'a, S> {
    /// A table in which rows are contiguous.
    pub(crate) fn new(by_row: &'a [S], n_features: usize) -> Self {
        Self { by_row, by_column: None, n_features }
    }

    /// The same table with its transpose.
    pub(crate) fn with_transpose(self, by_column: &'a [S]) -> Self {
        Self { by_column: Some(by_column), ..self }
    }

    /// One row.
    pub(crate) fn row(&self, row: u32) -> &'a [S] {
        &self.by_row[row as usize * self.n_features..][..self.n_features]
    }

    /// Whether a subtree of `n_rows` rows is fitted faster on a copy of these rows. It is if the table is far
    /// larger than the second-level cache and these rows fit into it, unless they are very few.
    pub(crate) fn is_worth_copying(&self, n_rows: usize) -> bool {
        const CACHE: usize = 256 << 10;
        const FEW: usize = 16;
        let bytes = |values: usize| values * size_of::<S>();
        self.by_column.is_some()
            && bytes(self.by_row.len()) > 8 * CACHE
            && n_rows > FEW
            && bytes(n_rows * self.n_features) <= CACHE
    }

    /// A copy of some rows.
    pub(crate) fn copy(&self, rows: &[u32]) -> Vec<S> {
        /// Rows fetched together, so that their cache misses overlap.
        const SOME: usize = 16;
        let mut values = Vec::with_capacity(rows.len() * self.n_features);
        for some in rows.chunks(SOME) {
            for &row in some {
                fetch(self.row(row));
            }
            for &row in some {
                values.extend_from_slice(self.row(row));
            }
        }
        values
    }

    /// One feature, to read `n_rows` rows of it: from the transpose, unless so few whole rows stay in the
    /// cache.
    pub(crate) fn column(&self, feature: u32, n_rows: usize) -> FeatureColumn<'a, S> {
        /// Bytes of a few rows.
        const CACHE: usize = 32 << 10;
        match self.by_column {
            Some(by_column) if n_rows * self.n_features * size_of::<S>() > CACHE => {
                let len = self.by_row.len() / self.n_features;
                FeatureColumn { values: &by_column[feature as usize * len..], stride: 1 }
            }
            _ => FeatureColumn { values: &self.by_row[feature as usize..], stride: self.n_features },
        }
    }
}

/// One feature of every row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeatureColumn<'a, S> {
    values: &'a [S],
    stride: usize,
}

impl<S: Scalar> FeatureColumn<'_, S> {
    pub(crate) fn at(&self, row: u32) -> f64 {
        self.value(row).into()
    }

    /// The value in the table's type.
    pub(crate) fn value(&self, row: u32) -> S {
        self.values[row as usize * self.stride]
    }
}

/// Reads one value of every cache line, so that all values are in the cache: sequential reads are prefetched,
/// while each scattered read waits for memory.
pub(crate) fn fetch<T: Copy>(values: &[T]) {
    const LINE: usize = 64;
    for &value in values.iter().step_by((LINE / size_of::<T>()).max(1)) {
        std::hint::black_box(value);
    }
}

/// The transpose of `values`: from row-major to column-major order.
pub(crate) fn transpose<S: Scalar>(values: &[S], n_features: usize) -> Vec<S> {
    /// Block sizes that fit the first-level cache, so that neither reads nor writes have a long stride.
    const BLOCK: usize = 32;
    let n_rows = values.len() / n_features;
    let mut out = vec![S::ZERO; values.len()];
    for row_block in (0..n_rows).step_by(BLOCK) {
        for column_block in (0..n_features).step_by(BLOCK) {
            for i in row_block..(row_block + BLOCK).min(n_rows) {
                for d in column_block..(column_block + BLOCK).min(n_features) {
                    out[d * n_rows + i] = values[i * n_features + d];
                }
            }
        }
    }
    out
}

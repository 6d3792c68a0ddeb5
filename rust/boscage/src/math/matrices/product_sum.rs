//! Sums of products of columns with themselves, `S = sum_i w_i v_i v_i'`, of some thousand rows.

use crate::control::{Run, Threads};
use crate::error::Result;
use crate::math::matrices::blocks::{AT_ONCE, BLOCK, Group, LANES, subtract, transposed};
use crate::math::vectors::with_vectors;

/// Columns that are added at a time: they stay in the fast memory.
pub(crate) const COLUMNS: usize = crate::math::matrices::blocks::DEPTH;

/// The lower triangle of such a sum. Each entry has one order of its terms, so that it does not depend on the number of threads.
#[derive(Debug, Clone)]
pub(crate) struct ProductSum {
    n_rows: usize,
    /// Some rows each, to the end of the diagonal block, times -1.
    blocks: Vec<Vec<f64>>,
}

impl ProductSum {
    /// The sum of no products.
    pub(crate) fn new(n_rows: usize) -> Self {
        let blocks = (0..n_rows.div_ceil(BLOCK)).map(|block| vec![0.0; BLOCK * BLOCK * (block + 1)]);
        Self { n_rows, blocks: blocks.collect() }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Adds those of at most [`COLUMNS`] columns, which are `n_rows x n_columns`; weights are 1 unless they are given.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn add(
        &mut self,
        columns: &[f64],
        weights: Option<&[f64]>,
        threads: &Threads,
        run: &Run<'_>,
    ) -> Result<()> {
        let n_columns = columns.len() / self.n_rows;
        let mut padded = columns.to_vec();
        padded.resize(self.blocks.len() * BLOCK * n_columns, 0.0);
        let rows = |first: usize| padded[first * n_columns..].chunks_exact(n_columns);
        let turned: Vec<Vec<Group>> = threads.try_map(self.blocks.len(), run.control, |block| {
            let mut groups = transposed(rows(block * BLOCK).take(BLOCK), n_columns);
            if let Some(weights) = weights {
                for (own, weight) in groups.iter_mut().flat_map(|group| group.iter_mut().zip(weights)) {
                    *own = own.map(|value| weight * value);
                }
            }
            groups
        })?;
        self.blocks = threads.try_map(self.blocks.len(), run.control, |block| {
            let mut own = self.blocks[block].clone();
            let width = (block + 1) * BLOCK;
            let rows: Vec<&[f64]> = rows(block * BLOCK).take(BLOCK).collect();
            with_vectors!(|| {
                for (some, out) in rows.chunks_exact(AT_ONCE).zip(own.chunks_exact_mut(AT_ONCE * width)) {
                    let some: [&[f64]; AT_ONCE] = std::array::from_fn(|i| some[i]);
                    for (i, group) in turned[..=block].iter().flatten().enumerate() {
                        subtract::<AT_ONCE>(some, group, out, (width, i * LANES));
                    }
                }
            });
            own
        })?;
        Ok(())
    }

    /// Writes the entries of some rows from the given one on, up to the diagonal.
    pub(crate) fn write(&self, first: usize, rows: &mut [&mut [f64]]) {
        for (row, entries) in (first..).zip(rows) {
            let block = &self.blocks[row / BLOCK];
            let own = &block[row % BLOCK * (block.len() / BLOCK)..];
            entries.iter_mut().zip(own).for_each(|(entry, &own)| *entry = -own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    #[test]
    fn entries_are_sums_of_products_for_any_number_of_threads() {
        let mut stream = Stream::new(2, 0);
        for (n_rows, n_columns) in [(1, 1), (5, 9), (64, 3), (130, 40)] {
            let columns: Vec<f64> = (0..n_rows * n_columns).map(|_| stream.unit() - 0.5).collect();
            let weights: Vec<f64> = (0..n_columns).map(|i| 0.5 + i as f64).collect();
            for weights in [None, Some(&weights[..])] {
                let found = [1, 3].map(|n_threads| {
                    let (threads, run) = (Threads::new(n_threads), Run { n_threads, ..Run::default() });
                    let mut sum = ProductSum::new(n_rows);
                    sum.add(&columns, weights, &threads, &run).unwrap();
                    sum.add(&columns, weights, &threads, &run).unwrap();
                    sum
                });
                assert_eq!(found[0].blocks, found[1].blocks);
                for i in 0..n_rows {
                    let mut entries = vec![0.0; i + 1];
                    found[0].write(i, &mut [&mut entries]);
                    for (j, entry) in entries.iter().enumerate() {
                        let of = |row: usize, k: usize| columns[row * n_columns + k];
                        let term = |k: usize| weights.map_or(1.0, |w| w[k]) * of(i, k) * of(j, k);
                        let expected = 2.0 * (0..n_columns).map(term).sum::<f64>();
                        assert!((entry - expected).abs() < 1e-12 * n_columns as f64, "{entry}");
                    }
                }
            }
        }
    }
}

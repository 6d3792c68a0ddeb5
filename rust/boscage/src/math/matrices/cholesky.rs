//! Symmetric positive definite matrices of some thousand rows, by their triangular factor.
//!
//! `M = L L'`, in square blocks (Golub and Van Loan 2013, section 4.2): with the blocks to the left known, a block column of
//! `L` follows from
//!
//! `L_jj L_jj' = M_jj - sum_k L_jk L_jk'` and `L_ij = (M_ij - sum_k L_ik L_jk') L_jj'^-1`, where `k < j < i`.
//!
//! Nearly all the work is products of blocks, which [`subtract`] does with the processor's vectors. Each sum has one order,
//! so that results do not depend on the number of threads.

use crate::control::{Run, Threads};
use crate::error::Result;
use crate::math::matrices::blocks::{AT_ONCE, BLOCK, DEPTH, Group, LANES, subtract, transposed};
use crate::math::vectors::with_vectors;

/// Groups of columns that one thread solves for at a time.
const GROUPS: usize = 4;

/// The lower triangle `L` of `M = L L'`.
#[derive(Debug)]
pub(crate) struct CholeskyFactor {
    rows: Vec<BlockRow>,
}

/// Some rows of the factor.
#[derive(Debug)]
struct BlockRow {
    /// Row after row, to the end of the diagonal block.
    entries: Vec<f64>,
    /// The inverse of the diagonal block, row after row, times -1.
    inverse: Vec<f64>,
}

impl BlockRow {
    fn width(&self) -> usize {
        self.entries.len() / BLOCK
    }

    fn row(&self, i: usize) -> &[f64] {
        let width = self.width();
        &self.entries[i * width..(i + 1) * width]
    }
}

impl CholeskyFactor {
    /// `fill` turns zeros into the entries of some rows from the given one on, up to the diagonal. The matrix must be positive
    /// definite by more than rounding: there is an `s^2` on its diagonal.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        n_rows: usize,
        run: &Run<'_>,
        fill: impl Fn(usize, &mut [&mut [f64]]) + Sync,
    ) -> Result<Self> {
        let threads = Threads::new(run.n_threads);
        let n_blocks = n_rows.div_ceil(BLOCK);
        let rows = threads.try_map(n_blocks, run.control, |block| {
            let width = (block + 1) * BLOCK;
            let mut entries = vec![0.0; BLOCK * width];
            let first = block * BLOCK;
            let rows = (first..).zip(entries.chunks_exact_mut(width));
            let mut rows: Vec<&mut [f64]> = rows.map(|(at, row)| &mut row[..=at]).collect();
            // Rows that fill the last block are those of an identity.
            let (own, others) = rows.split_at_mut(BLOCK.min(n_rows - first));
            fill(first, own);
            for row in others {
                row[row.len() - 1] = 1.0;
            }
            BlockRow { entries, inverse: Vec::new() }
        })?;
        let mut factor = Self { rows };
        for column in 0..n_blocks {
            factor.set_column(column, &threads, run)?;
        }
        Ok(factor)
    }

    /// Sets a block column, given those before it.
    fn set_column(&mut self, column: usize, threads: &Threads, run: &Run<'_>) -> Result<()> {
        let own = &self.rows[column];
        let before = transposed((0..BLOCK).map(|i| &own.row(i)[..column * BLOCK]), column * BLOCK);
        let diagonal = factor_of(self.block(column, column, &before));
        let inverse = negative_inverse(&diagonal);
        let turned = transposed(inverse.chunks_exact(BLOCK), BLOCK);
        let others = threads.try_map(self.rows.len() - column - 1, run.control, |i| {
            let block = self.block(column + 1 + i, column, &before);
            let mut product = vec![0.0; BLOCK * BLOCK];
            with_vectors!(|| {
                for (first, some) in product.chunks_exact_mut(AT_ONCE * BLOCK).enumerate() {
                    let rows = std::array::from_fn(|r| &block[(first * AT_ONCE + r) * BLOCK..][..BLOCK]);
                    for (group, columns) in turned.iter().enumerate() {
                        subtract::<AT_ONCE>(rows, columns, some, (BLOCK, group * LANES));
                    }
                }
            });
            product
        })?;
        self.rows[column].inverse = inverse;
        for (row, block) in self.rows[column..].iter_mut().zip(std::iter::once(diagonal).chain(others)) {
            let width = row.width();
            let places = row.entries.chunks_exact_mut(width).map(|row| &mut row[column * BLOCK..][..BLOCK]);
            places.zip(block.chunks_exact(BLOCK)).for_each(|(place, own)| place.copy_from_slice(own));
        }
        Ok(())
    }

    /// What is left of a block of the matrix without the products of the blocks to its left with those of the block row of
    /// `column`, whose entries `before` are given column by column.
    fn block(&self, row: usize, column: usize, before: &[Group]) -> Vec<f64> {
        let row = &self.rows[row];
        let mut rest: Vec<f64> =
            (0..BLOCK).flat_map(|i| &row.row(i)[column * BLOCK..][..BLOCK]).copied().collect();
        with_vectors!(|| {
            for first in (0..column * BLOCK).step_by(DEPTH) {
                let some = first..(column * BLOCK).min(first + DEPTH);
                for (i, rest) in rest.chunks_exact_mut(AT_ONCE * BLOCK).enumerate() {
                    let rows = std::array::from_fn(|r| &row.row(i * AT_ONCE + r)[some.clone()]);
                    for (group, columns) in before.iter().enumerate() {
                        subtract::<AT_ONCE>(rows, &columns[some.clone()], rest, (BLOCK, group * LANES));
                    }
                }
            }
        });
        rest
    }

    /// `M^-1 B` for columns `B`, which are `n_rows x n_columns`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(&self, columns: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.replace(columns, n_columns, run, |groups| {
            self.half_solve(0, groups);
            self.solve_back(groups);
        })
    }

    /// `L^-1 B`, as [`solve`](Self::solve).
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve_lower(&self, columns: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.replace(columns, n_columns, run, |groups| self.half_solve(0, groups))
    }

    /// `L'^-1 B`, as [`solve`](Self::solve).
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve_upper(&self, columns: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.replace(columns, n_columns, run, |groups| self.solve_back(groups))
    }

    /// What `replace` makes of columns, some groups at a time.
    fn replace(
        &self,
        columns: &[f64],
        n_columns: usize,
        run: &Run<'_>,
        replace: impl Fn(&mut [Group]) + Sync,
    ) -> Result<Vec<f64>> {
        let groups: Vec<usize> = (0..n_columns).step_by(LANES).collect();
        let solved = run.map_ranges(groups.len(), GROUPS, |some| {
            let of_group = |&first: &usize| {
                let rows = columns.chunks_exact(n_columns).map(|row| lanes(&row[first..]));
                self.padded(rows)
            };
            let mut groups: Vec<Group> = groups[some].iter().map(of_group).collect();
            replace(&mut groups);
            Ok(groups)
        })?;
        let mut out = vec![0.0; columns.len()];
        for (group, first) in solved.iter().flatten().zip(groups) {
            for (row, own) in out.chunks_exact_mut(n_columns).zip(group) {
                row[first..].iter_mut().zip(own).for_each(|(out, &own)| *out = own);
            }
        }
        Ok(out)
    }

    /// Entries of the diagonal of `M^-1`, of some rows.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn diagonal_of_inverse(&self, rows: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        // Columns of an identity, which are 0 above their rows: similar ones are solved together.
        let mut sorted: Vec<usize> = (0..rows.len()).collect();
        sorted.sort_by_key(|&i| rows[i]);
        let some = run.map_ranges(sorted.len(), GROUPS * LANES, |some| {
            let own = &sorted[some];
            let first = rows[own[0]] / BLOCK;
            let mut groups: Vec<Group> = own.chunks(LANES).map(|_| self.padded([].into_iter())).collect();
            for (k, &i) in own.iter().enumerate() {
                groups[k / LANES][rows[i]][k % LANES] = 1.0;
            }
            self.half_solve(first, &mut groups);
            let square = |k: usize| {
                let own = groups[k / LANES][first * BLOCK..].iter();
                own.map(|row| row[k % LANES] * row[k % LANES]).sum::<f64>()
            };
            Ok((0..own.len()).map(square).collect::<Vec<f64>>())
        })?;
        let mut squares = vec![0.0; rows.len()];
        sorted.into_iter().zip(some.concat()).for_each(|(i, square)| squares[i] = square);
        Ok(squares)
    }

    /// Rows, and zeros to the end of the last block.
    fn padded(&self, rows: impl Iterator<Item = [f64; LANES]>) -> Group {
        let mut group: Group = rows.collect();
        group.resize(self.rows.len() * BLOCK, [0.0; LANES]);
        group
    }

    /// `L^-1 B`, where `B` is 0 above a block row.
    fn half_solve(&self, first: usize, groups: &mut [Group]) {
        with_vectors!(|| {
            for (block, row) in self.rows.iter().enumerate().skip(first) {
                let start = block * BLOCK;
                // Parts of sums are the same wherever the zeros end.
                for begin in (first * BLOCK / DEPTH * DEPTH..start).step_by(DEPTH) {
                    let some = begin..start.min(begin + DEPTH);
                    for group in &mut *groups {
                        let (known, rest) = group.split_at_mut(start);
                        for (i, out) in rest[..BLOCK].chunks_exact_mut(AT_ONCE).enumerate() {
                            let rows = std::array::from_fn(|r| &row.row(i * AT_ONCE + r)[some.clone()]);
                            subtract::<AT_ONCE>(
                                rows,
                                &known[some.clone()],
                                out.as_flattened_mut(),
                                (LANES, 0),
                            );
                        }
                    }
                }
                let rows = |i: usize| &row.inverse[i * BLOCK..(i + 1) * BLOCK];
                for group in &mut *groups {
                    multiply(rows, &mut group[start..start + BLOCK]);
                }
            }
        });
    }

    /// `L'^-1 B`.
    fn solve_back(&self, groups: &mut [Group]) {
        let mut turned = vec![0.0; BLOCK * BLOCK];
        with_vectors!(|| {
            for (block, row) in self.rows.iter().enumerate().rev() {
                let start = block * BLOCK;
                turn(|k, i| row.inverse[k * BLOCK + i], &mut turned);
                for group in &mut *groups {
                    multiply(|i| &turned[i * BLOCK..(i + 1) * BLOCK], &mut group[start..start + BLOCK]);
                }
                for above in (0..start).step_by(BLOCK) {
                    turn(|k, i| row.entries[k * row.width() + above + i], &mut turned);
                    for group in &mut *groups {
                        let (rest, known) = group.split_at_mut(start);
                        for (i, out) in rest[above..above + BLOCK].chunks_exact_mut(AT_ONCE).enumerate() {
                            let rows = std::array::from_fn(|r| &turned[(i * AT_ONCE + r) * BLOCK..][..BLOCK]);
                            subtract::<AT_ONCE>(rows, &known[..BLOCK], out.as_flattened_mut(), (LANES, 0));
                        }
                    }
                }
            }
        });
    }
}

/// Replaces a block of columns by its product with a matrix times -1, of which the rows are given.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for the processor's vectors")]
#[inline(always)]
fn multiply<'a>(row: impl Fn(usize) -> &'a [f64], columns: &mut [[f64; LANES]]) {
    let mut own = [[0.0; LANES]; BLOCK];
    own.copy_from_slice(columns);
    columns.fill([0.0; LANES]);
    for (i, out) in columns.chunks_exact_mut(AT_ONCE).enumerate() {
        let rows = std::array::from_fn(|r| row(i * AT_ONCE + r));
        subtract::<AT_ONCE>(rows, &own, out.as_flattened_mut(), (LANES, 0));
    }
}

/// A block with rows for columns.
fn turn(entry: impl Fn(usize, usize) -> f64, turned: &mut [f64]) {
    for k in 0..BLOCK {
        (0..BLOCK).for_each(|i| turned[i * BLOCK + k] = entry(k, i));
    }
}

/// The first numbers of a slice, and zeros for those that it lacks.
fn lanes(numbers: &[f64]) -> [f64; LANES] {
    let mut lanes = [0.0; LANES];
    lanes.iter_mut().zip(numbers).for_each(|(lane, &number)| *lane = number);
    lanes
}

/// The factor of a block, of which the lower triangle is read.
fn factor_of(mut block: Vec<f64>) -> Vec<f64> {
    for i in 0..BLOCK {
        let (before, own) = block.split_at_mut(i * BLOCK);
        for j in 0..=i {
            let other = if j < i { &before[j * BLOCK..(j + 1) * BLOCK] } else { &[] };
            let known: f64 = (0..j).map(|k| own[k] * if j < i { other[k] } else { own[k] }).sum();
            let rest = own[j] - known;
            own[j] = if j < i { rest / other[j] } else { rest.sqrt() };
        }
        own[i + 1..BLOCK].fill(0.0);
    }
    block
}

/// The inverse of a lower triangle, times -1.
fn negative_inverse(lower: &[f64]) -> Vec<f64> {
    let mut inverse = vec![0.0; BLOCK * BLOCK];
    for j in 0..BLOCK {
        inverse[j * BLOCK + j] = -1.0 / lower[j * BLOCK + j];
        for i in j + 1..BLOCK {
            let known: f64 = (j..i).map(|k| lower[i * BLOCK + k] * inverse[k * BLOCK + j]).sum();
            inverse[i * BLOCK + j] = -known / lower[i * BLOCK + i];
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::keyed::Stream;

    /// Products of random vectors, and a multiple of the identity.
    fn matrix(n: usize) -> Vec<f64> {
        let mut stream = Stream::new(3, n);
        let width = n / 2 + 1;
        let x: Vec<f64> = (0..n * width).map(|_| stream.unit() - 0.3).collect();
        let entry = |i: usize, j: usize| -> f64 {
            let product: f64 = (0..width).map(|k| x[i * width + k] * x[j * width + k]).sum();
            product + f64::from(u8::from(i == j)) * 0.1
        };
        (0..n * n).map(|k| entry(k / n, k % n)).collect()
    }

    fn factor(matrix: &[f64], n: usize, n_threads: usize) -> CholeskyFactor {
        let run = Run { n_threads, ..Run::default() };
        CholeskyFactor::new(n, &run, |first, rows| {
            for (row, entries) in (first..).zip(rows) {
                entries.copy_from_slice(&matrix[row * n..=row * n + row]);
            }
        })
        .unwrap()
    }

    #[test]
    fn solutions_solve_and_the_diagonal_is_that_of_the_inverse() {
        let run = Run::default();
        for (n, n_columns) in [(1, 1), (5, 3), (64, 8), (65, 9), (200, 1), (331, 40)] {
            let matrix = matrix(n);
            let factor = factor(&matrix, n, 1);
            let mut stream = Stream::new(4, n);
            let columns: Vec<f64> = (0..n * n_columns).map(|_| stream.unit() - 0.5).collect();
            let solved = factor.solve(&columns, n_columns, &run).unwrap();
            for i in 0..n {
                for c in 0..n_columns {
                    let found: f64 = (0..n).map(|j| matrix[i * n + j] * solved[j * n_columns + c]).sum();
                    assert!((found - columns[i * n_columns + c]).abs() < 1e-10, "{n}: {found}");
                }
            }
            let identity: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k / n == k % n))).collect();
            let inverse = factor.solve(&identity, n, &run).unwrap();
            let some: Vec<usize> = (0..n).rev().step_by(2).collect();
            let diagonal = factor.diagonal_of_inverse(&some, &run).unwrap();
            for (&i, found) in some.iter().zip(diagonal) {
                let expected = inverse[i * n + i];
                assert!((found - expected).abs() < 1e-10 * expected, "{n}: {found} and {expected}");
            }
        }
    }

    /// An entry does not depend on the others that are asked for.
    #[test]
    fn entries_of_the_inverse_are_found_each_for_itself() {
        let n = 700;
        let (factor, run) = (factor(&matrix(n), n, 1), Run::default());
        let all: Vec<usize> = (0..n).collect();
        let expected = factor.diagonal_of_inverse(&all, &run).unwrap();
        for step in [7, 131] {
            let some: Vec<usize> = all.iter().copied().rev().step_by(step).collect();
            let found = factor.diagonal_of_inverse(&some, &run).unwrap();
            assert!(some.iter().zip(found).all(|(&row, found)| found == expected[row]));
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let (n, n_columns) = (300, 70);
        let matrix = matrix(n);
        let columns: Vec<f64> = (0..n * n_columns).map(|i| (i as f64).sin()).collect();
        let rows: Vec<usize> = (0..n).collect();
        let of = |n_threads: usize| {
            let run = Run { n_threads, ..Run::default() };
            let factor = factor(&matrix, n, n_threads);
            let solved = factor.solve(&columns, n_columns, &run).unwrap();
            (solved, factor.diagonal_of_inverse(&rows, &run).unwrap())
        };
        assert_eq!(of(1), of(3));
    }
}

//! The function with the covariance of infinitely many trees.
//!
//! *The rate.* A sample of some dozens of trees adds noise to the covariance. Without it, the best rate of the clock is greater
//! than for such a sample ([`RATE`]).
//!
//! *The noise.* The best noise differs much: next to none where classes have clear borders, and more than the variance of the
//! function where many labels are wrong. It is the one of [`NOISES`] under which the squared error of left-out codes is least,
//! as a walk from the middle finds it. The walk looks at [`NOISE_ROWS`] rows, chosen by their contents, as a model of their own.

use std::cmp::Ordering;

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::classification::calibration;
use crate::mondrian::classification::class_counts::ClassCounts;
use crate::mondrian::classification::class_table::ClassTable;
use crate::mondrian::classification::joint::codes::{Codes, common_order};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::limit::{
    ExponentialCovariance, LimitFactor, LimitFunction, LimitRows, WeightedRows,
};

/// The rate of the clock in units of the sum of the feature weights.
const RATE: f64 = 0.2;
/// Variances of the noise, about half a power of 10 apart, and the one that is tried first.
const NOISES: [f64; 7] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0];
const FIRST_NOISE: usize = 3;
/// Rows that choose the noise (at most).
const NOISE_ROWS: usize = 500;

/// The rows of a forest, or some of them, and their covariance.
pub(super) struct Problem {
    pub(super) codes: Codes,
    pub(super) rows: LimitRows,
    pub(super) covariance: ExponentialCovariance,
}

/// The solved equations of a problem.
struct Solution {
    factor: LimitFactor,
    /// The rows' weights for the codes of all classes but the last, and then for a value of 1 at every row.
    weights: Vec<f64>,
}

/// The equations of a forest, solved.
pub(super) struct LimitEquations {
    problem: Problem,
    /// The variance of its noise.
    pub(super) noise: f64,
    solution: Solution,
}

impl LimitEquations {
    /// `noise` is that of the same rows, if it has been chosen.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn new<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        noise: Option<f64>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = common_order(forest, storage, classes);
        let noise = match noise {
            Some(noise) => noise,
            None => Problem::of_judges(forest, storage, classes, &order).best_noise(run)?,
        };
        let problem = Problem::new(forest, storage, classes, order);
        let covariances = |first: usize, entries: &mut [&mut [f64]]| {
            problem.rows.covariances(first, &problem.covariance, entries);
        };
        let solution = Solution::new(&problem.codes, covariances, noise, run)?;
        Ok(Self { problem, noise, solution })
    }

    /// The function's values for rows of the forest, each by the others: `n_rows x n_classes`.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn left_out(&self, rows: &[RowId], run: &Run<'_>) -> Result<Vec<f64>> {
        let (codes, places) = (&self.problem.codes, self.problem.first_copies(rows));
        Ok(codes.left_out(&places, &self.solution.residuals(codes, &places, run)?))
    }

    pub(super) fn function(self) -> LimitFunction<ExponentialCovariance> {
        let n_columns = self.problem.codes.n_columns();
        let weights = self.solution.weights.chunks_exact(n_columns + 1).flat_map(|row| &row[..n_columns]);
        let weights = weights.copied().collect();
        LimitFunction::new(self.problem.rows, self.problem.covariance, n_columns, weights)
    }
}

impl Problem {
    /// Of rows in their common order.
    pub(super) fn new<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        order: Vec<RowId>,
    ) -> Self {
        let table = Table::new(&storage.values, forest.domain.n_coordinates());
        let codes = Codes::new(forest, classes, order);
        let rows = LimitRows::new(table, &codes.order, forest.domain.rates());
        let rate = RATE * forest.domain.total_weight();
        Self { codes, rows, covariance: ExponentialCovariance::new(rate, forest.settings.lifetime) }
    }

    /// Of the rows that choose the noise.
    pub(super) fn of_judges<S: Scalar>(
        forest: &Forest<ClassCounts>,
        storage: &Storage<S, ClassCounts>,
        classes: &ClassTable,
        order: &[RowId],
    ) -> Self {
        let mut judges = calibration::choose(forest, classes, NOISE_ROWS).into_usable(forest, classes);
        judges.sort_unstable();
        let is_judge = |row: &RowId| judges.binary_search(row).is_ok();
        Self::new(forest, storage, classes, order.iter().copied().filter(is_judge).collect())
    }

    pub(super) fn weighted(&self) -> WeightedRows<'_> {
        WeightedRows { rows: &self.rows, weights: self.codes.row_weights.as_deref() }
    }

    /// The places of rows, or of the first of their copies.
    pub(super) fn first_copies(&self, rows: &[RowId]) -> Vec<usize> {
        rows.iter().map(|&row| self.first_copy(self.codes.place(row))).collect()
    }

    /// The first of the rows that are the same as one in all that counts: which of them has which place depends on their arrival,
    /// and their numbers differ by rounding.
    fn first_copy(&self, place: usize) -> usize {
        let codes = &self.codes;
        let is_same = |other: usize| {
            codes.class(other) == codes.class(place)
                && codes.weight(other) == codes.weight(place)
                && self.rows.are_copies(other, place)
        };
        (0..place).rev().take_while(|&other| is_same(other)).last().unwrap_or(place)
    }

    /// One of [`NOISES`].
    pub(super) fn best_noise(&self, run: &Run<'_>) -> Result<f64> {
        let n_rows = self.rows.n_rows();
        if n_rows < 2 {
            return Ok(NOISES[FIRST_NOISE]);
        }
        let covariances = run.map(n_rows, |row| {
            let mut entries = vec![0.0; row + 1];
            self.rows.covariances(row, &self.covariance, &mut [&mut entries]);
            Ok(entries)
        })?;
        let places: Vec<usize> = (0..n_rows).collect();
        best_noise(|noise| {
            let fill = |first: usize, rows: &mut [&mut [f64]]| {
                rows.iter_mut().zip(&covariances[first..]).for_each(|(row, own)| row.copy_from_slice(own));
            };
            let solution = Solution::new(&self.codes, fill, noise, run)?;
            Ok(self.codes.squares(&places, &solution.residuals(&self.codes, &places, run)?))
        })
    }
}

/// The one of [`NOISES`] with the least error, as a walk from the middle finds it.
pub(super) fn best_noise(mut error: impl FnMut(f64) -> Result<f64>) -> Result<f64> {
    let mut best = (FIRST_NOISE, error(NOISES[FIRST_NOISE])?);
    for step in [-1, 1] {
        let start = best.0;
        while let Some(next) = best.0.checked_add_signed(step).filter(|next| *next < NOISES.len()) {
            let error = error(NOISES[next])?;
            // Not less, and not a number either.
            if error.partial_cmp(&best.1) != Some(Ordering::Less) {
                break;
            }
            best = (next, error);
        }
        // Errors that fall to one side are not tried on the other.
        if best.0 != start {
            break;
        }
    }
    Ok(NOISES[best.0])
}

impl Solution {
    fn new(
        codes: &Codes,
        covariances: impl Fn(usize, &mut [&mut [f64]]) + Sync,
        noise: f64,
        run: &Run<'_>,
    ) -> Result<Self> {
        let factor =
            LimitFactor::new(codes.order.len(), covariances, (noise, codes.row_weights.as_deref()), run)?;
        let of_row = |row: &[f64]| row.iter().copied().chain([1.0]).collect::<Vec<f64>>();
        let values: Vec<f64> = codes.values().chunks_exact(codes.n_columns()).flat_map(of_row).collect();
        let weights = factor.weights(&values, codes.n_classes(), run)?;
        Ok(Self { factor, weights })
    }

    /// What the other rows leave unexplained of each row's code, `n_places x n_columns`.
    ///
    /// The codes of the other rows have other shares `q` of the classes. So the code of row `i` would be `z_k = 1[i is of class k] - q_k`.
    /// What the others predict differs from it by `(b_k + (p_k - q_k) c) / B_ii`. Here `b_k` is the row's weight for the codes of class `k`
    /// with the shares `p` of all rows, `c` is its weight for ones, and `B` is the inverse of the system's matrix.
    fn residuals(&self, codes: &Codes, places: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        let n_columns = codes.n_columns();
        let shares = codes.shares();
        let precisions = self.factor.precisions(places, run)?;
        let mut residuals = Vec::with_capacity(places.len() * n_columns);
        for (&place, precision) in places.iter().zip(precisions) {
            let weights = &self.weights[place * (n_columns + 1)..(place + 1) * (n_columns + 1)];
            let others = codes.shares_without(place).zip(&shares).take(n_columns).zip(weights);
            residuals
                .extend(others.map(|((q, p), weight)| (weight + (p - q) * weights[n_columns]) / precision));
        }
        Ok(residuals)
    }
}

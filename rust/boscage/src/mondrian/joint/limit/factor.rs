//! The system of many right-hand sides and left-out rows, by a factor of its matrix.
//!
//! Let `A = K + s^2 W^-1` and `B = A^-1`. Leaving out row `i` needs no other system: the prediction of a value `y_i` by
//! the others is `y_i - (B y)_i / B_ii` (Rasmussen and Williams 2006, section 5.4.2).

use crate::control::Run;
use crate::error::Result;
use crate::math::cholesky::CholeskyFactor;

/// The factor of the matrix of some rows and a noise.
pub(crate) struct LimitFactor {
    factor: CholeskyFactor,
}

impl LimitFactor {
    /// `covariances` fills in those of a row with the rows before it, and with itself; entries are 0 before. The noise of a row of
    /// weight `w` has the variance `noise_variance / w`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        n_rows: usize,
        covariances: impl Fn(usize, &mut [f64]) + Sync,
        (noise_variance, weights): (f64, Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        let factor = CholeskyFactor::new(n_rows, run, |row, entries| {
            covariances(row, entries);
            entries[row] += noise_variance / weights.map_or(1.0, |weights| weights[row]);
        })?;
        Ok(Self { factor })
    }

    /// The rows' weights `B y` for columns of values, `n_rows x n_columns`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights(&self, values: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.factor.solve(values, n_columns, run)
    }

    /// The rows' weights for `L` values of each, without a row if it is given: it weighs nothing.
    ///
    /// With the weights `a = B y` of all rows, those without row `i` are `a - B_i a_i / B_ii`, where `B_i` is a column of `B`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights_without<const L: usize>(
        &self,
        values: &[[f64; L]],
        left_out: Option<usize>,
        run: &Run<'_>,
    ) -> Result<Vec<[f64; L]>> {
        let solved = self.weights(values.as_flattened(), L, run)?;
        let mut weights = solved.as_chunks().0.to_vec();
        if let Some(row) = left_out {
            let mut unit = vec![0.0; values.len()];
            unit[row] = 1.0;
            let column = self.weights(&unit, 1, run)?;
            let share = weights[row].map(|weight| weight / column[row]);
            for (weights, entry) in weights.iter_mut().zip(&column) {
                (0..L).for_each(|lane| weights[lane] -= entry * share[lane]);
            }
            weights[row] = [0.0; L];
        }
        Ok(weights)
    }

    /// The entries `B_ii` of some rows.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn precisions(&self, rows: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        self.factor.diagonal_of_inverse(rows, run)
    }
}

//! The system of many right-hand sides and left-out rows, by a factor of its matrix.
//!
//! Let `A = K + s^2 W^-1` and `B = A^-1`. Leaving out row `i` needs no other system: the prediction of a value `y_i` by
//! the others is `y_i - (B y)_i / B_ii` (Rasmussen and Williams 2006, section 5.4.2).

use crate::control::Run;
use crate::error::Result;
use crate::math::matrices::cholesky::CholeskyFactor;

/// The factor of the matrix of some rows and a noise.
pub(crate) struct LimitFactor {
    factor: CholeskyFactor,
}

impl LimitFactor {
    /// `covariances` fills in those of some rows from the given one on, of each with the rows before it and with itself; entries
    /// are 0 before. The noise of a row of weight `w` has the variance `noise_variance / w`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        n_rows: usize,
        covariances: impl Fn(usize, &mut [&mut [f64]]) + Sync,
        (noise_variance, weights): (f64, Option<&[f64]>),
        run: &Run<'_>,
    ) -> Result<Self> {
        let factor = CholeskyFactor::new(n_rows, run, |first, rows| {
            covariances(first, rows);
            for (row, entries) in (first..).zip(rows) {
                entries[row] += noise_variance / weights.map_or(1.0, |weights| weights[row]);
            }
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
        let Some(row) = left_out else {
            return Ok(self.weights(values.as_flattened(), L, run)?.as_chunks().0.to_vec());
        };
        // `B_i` are the weights for a 1 at row `i` alone; the factor is read once for them and the values' weights.
        let of_row = |(place, own): (usize, &[f64; L])| {
            own.iter().copied().chain([f64::from(u8::from(place == row))]).collect::<Vec<f64>>()
        };
        let columns: Vec<f64> = values.iter().enumerate().flat_map(of_row).collect();
        let solved = self.weights(&columns, L + 1, run)?;
        let at_row = &solved[row * (L + 1)..(row + 1) * (L + 1)];
        let mut weights: Vec<[f64; L]> = solved
            .chunks_exact(L + 1)
            .map(|own| std::array::from_fn(|lane| own[lane] - own[L] * (at_row[lane] / at_row[L])))
            .collect();
        weights[row] = [0.0; L];
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

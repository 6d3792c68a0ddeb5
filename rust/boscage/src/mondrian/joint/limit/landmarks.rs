//! Many rows by way of some of them.
//!
//! A factor of the matrix of `n` rows takes a time that grows with `n^3`. Let `U` be `m` of the rows, the landmarks. The process
//! is replaced by what their values determine of it (the Nyström method of Williams and Seeger 2001; the subset of regressors of
//! Quinonero-Candela and Rasmussen 2005, section 5): with `L L' = K_UU` and `v(x) = L^-1 k_U(x)` its covariance is
//!
//! `Q(x, x') = k_U(x)' K_UU^-1 k_U(x') = v(x)' v(x')`.
//!
//! That is a linear regression in `m` features. Let `S = sum_i w_i v_i v_i'` over the rows of weights `w`, `p_y = sum_i w_i v_i y_i`,
//! and `B = S + s^2 I`. The mean at `x` is `k_U(x)' c`, where `L' c = B^-1 p_y`: a function of the same form as that of all rows
//! (`LimitFunction`). With `A = Q + s^2 W^-1`, Woodbury's formula gives
//!
//! `z' A^-1 y = (z' W y - p_z' B^-1 p_y) / s^2`.
//!
//! The time grows with `n m^2`. Without row `i`, `B` and `p_y` lack its terms, so that a solution changes by a multiple of
//! `B^-1 v_i` (Sherman and Morrison 1950).

use crate::control::{Run, Threads};
use crate::error::Result;
use crate::math::matrices::cholesky::CholeskyFactor;
use crate::math::matrices::product_sum::{COLUMNS, ProductSum};
use crate::mondrian::joint::limit::{Covariance, LimitFunction, LimitRows};

/// What is added to the landmarks' variances, as a share of them: some may lie close together.
const JITTER: f64 = 1e-9;

/// Points for which covariances are found at the same time.
const AT_ONCE: usize = 32;

/// Rows, with their weights unless all are 1.
#[derive(Clone, Copy)]
pub(crate) struct WeightedRows<'a> {
    pub(crate) rows: &'a LimitRows,
    pub(crate) weights: Option<&'a [f64]>,
}

impl WeightedRows<'_> {
    pub(crate) fn weight(&self, place: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[place])
    }
}

/// Landmarks among rows, with a covariance.
#[derive(Debug)]
pub(crate) struct Landmarks<C> {
    rows: LimitRows,
    covariance: C,
    /// Of the covariances of the landmarks.
    factor: CholeskyFactor,
}

impl<C: Covariance + Clone + Sync> Landmarks<C> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(rows: LimitRows, covariance: C, run: &Run<'_>) -> Result<Self> {
        let factor = CholeskyFactor::new(rows.n_rows(), run, |first, entries| {
            rows.covariances(first, &covariance, entries);
            for (row, entries) in (first..).zip(entries) {
                entries[row] *= 1.0 + JITTER;
            }
        })?;
        Ok(Self { rows, covariance, factor })
    }

    /// The sum `S` over all rows.
    ///
    /// # Errors
    /// An interrupt.
    fn products(&self, of: WeightedRows<'_>, run: &Run<'_>) -> Result<ProductSum> {
        let threads = Threads::new(run.n_threads);
        let mut sum = ProductSum::new(self.rows.n_rows());
        for first in (0..of.rows.n_rows()).step_by(COLUMNS) {
            let some = first..of.rows.n_rows().min(first + COLUMNS);
            let weights = of.weights.map(|weights| &weights[some.clone()]);
            let features = self.features(of.rows, &some.collect::<Vec<_>>(), run)?;
            sum.add(&features, weights, &threads, run)?;
        }
        Ok(sum)
    }

    /// The features `v` of rows at some places: a column each.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn features(&self, of: &LimitRows, places: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        let covariances = self.covariances(of, places, run)?;
        let (m, n) = (self.rows.n_rows(), places.len());
        let mut columns = vec![0.0; m * n];
        for (column, own) in covariances.chunks_exact(m).enumerate() {
            own.iter().enumerate().for_each(|(row, &value)| columns[row * n + column] = value);
        }
        self.factor.solve_lower(&columns, n, run)
    }

    /// The covariances of rows at some places with the landmarks: a row each.
    ///
    /// # Errors
    /// An interrupt.
    fn covariances(&self, of: &LimitRows, places: &[usize], run: &Run<'_>) -> Result<Vec<f64>> {
        let m = self.rows.n_rows();
        let chunks = run.map_ranges(places.len(), AT_ONCE, |range| {
            let some = &places[range];
            let mut own = vec![0.0; some.len() * m];
            let mut each: Vec<&mut [f64]> = own.chunks_exact_mut(m).collect();
            self.rows.covariances_with((of, some), &self.covariance, &mut each);
            Ok(own)
        })?;
        Ok(chunks.concat())
    }

    /// The sums `p` over rows at some places, for values of all rows: a column for each of them.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn with_values(
        &self,
        of: WeightedRows<'_>,
        places: &[usize],
        values: &[Vec<f64>],
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let (m, n_values) = (self.rows.n_rows(), values.len());
        let chunks = run.map_ranges(places.len(), COLUMNS, |range| {
            let some = &places[range];
            let alone = Run { n_threads: 1, ..*run };
            let covariances = self.covariances(of.rows, some, &alone)?;
            let mut sums = vec![0.0; m * n_values];
            for (&place, own) in some.iter().zip(covariances.chunks_exact(m)) {
                let weight = of.weight(place);
                for (column, values) in values.iter().enumerate() {
                    let value = weight * values[place];
                    let sums = sums.iter_mut().skip(column).step_by(n_values);
                    sums.zip(own).for_each(|(sum, covariance)| *sum += value * covariance);
                }
            }
            Ok(sums)
        })?;
        let mut sums = vec![0.0; m * n_values];
        for own in chunks {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        self.factor.solve_lower(&sums, n_values, run)
    }

    /// The weights `c` of landmarks in functions, of which each has a column of weights of the features.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights_of(&self, features: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.factor.solve_upper(features, n_columns, run)
    }

    /// The sums of covariances with landmarks, given these weights of theirs in the first sum, and then those in others.
    pub(crate) fn function(&self, first: &[f64], others: &[Vec<f64>]) -> LimitFunction<C> {
        LimitFunction::of_columns(self.rows.clone(), self.covariance.clone(), first, others)
    }
}

/// The factor of `B`.
#[derive(Debug)]
pub(crate) struct LandmarkFactor {
    factor: CholeskyFactor,
    products: ProductSum,
    noise_variance: f64,
}

impl LandmarkFactor {
    /// For all rows.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<C: Covariance + Clone + Sync>(
        landmarks: &Landmarks<C>,
        of: WeightedRows<'_>,
        noise_variance: f64,
        run: &Run<'_>,
    ) -> Result<Self> {
        Self::of_products(landmarks.products(of, run)?, noise_variance, run)
    }

    /// Without rows of these features, a column each, and weights.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn without(&self, features: &[f64], weights: &[f64], run: &Run<'_>) -> Result<Self> {
        let mut products = self.products.clone();
        let threads = Threads::new(run.n_threads);
        let n_columns = weights.len();
        for first in (0..n_columns).step_by(COLUMNS) {
            let some = first..n_columns.min(first + COLUMNS);
            let columns: Vec<f64> =
                features.chunks_exact(n_columns).flat_map(|row| &row[some.clone()]).copied().collect();
            let negative: Vec<f64> = weights[some].iter().map(|weight| -weight).collect();
            products.add(&columns, Some(&negative), &threads, run)?;
        }
        Self::of_products(products, self.noise_variance, run)
    }

    /// Sets another noise.
    ///
    /// # Errors
    /// An interrupt: it is then as before.
    pub(crate) fn set_noise(&mut self, noise_variance: f64, run: &Run<'_>) -> Result<()> {
        self.factor = factor(&self.products, noise_variance, run)?;
        self.noise_variance = noise_variance;
        Ok(())
    }

    fn of_products(products: ProductSum, noise_variance: f64, run: &Run<'_>) -> Result<Self> {
        Ok(Self { factor: factor(&products, noise_variance, run)?, products, noise_variance })
    }

    /// `B^-1 p` for columns `p`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(&self, columns: &[f64], n_columns: usize, run: &Run<'_>) -> Result<Vec<f64>> {
        self.factor.solve(columns, n_columns, run)
    }

    /// `B^-1 p` without a row of these features and weight, whose terms `p` lacks already.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve_without(
        &self,
        (features, weight): (&[f64], f64),
        columns: &[f64],
        n_columns: usize,
        run: &Run<'_>,
    ) -> Result<Vec<f64>> {
        let both: Vec<f64> = columns
            .chunks_exact(n_columns)
            .zip(features)
            .flat_map(|(own, feature)| own.iter().chain([feature]))
            .copied()
            .collect();
        let solved = self.solve(&both, n_columns + 1, run)?;
        let along = |column: usize| -> f64 {
            let own = solved.iter().skip(column).step_by(n_columns + 1);
            own.zip(features).map(|(own, feature)| own * feature).sum()
        };
        let rest = 1.0 - weight * along(n_columns);
        let shares: Vec<f64> = (0..n_columns).map(|column| weight * along(column) / rest).collect();
        let without = solved.chunks_exact(n_columns + 1).flat_map(|own| {
            let (own, change) = own.split_at(n_columns);
            own.iter().zip(&shares).map(move |(own, share)| own + share * change[0])
        });
        Ok(without.collect())
    }

    /// `z_i' A^-1 z_j` for all pairs of values, given their products `z_i' W z_j`, and the columns `p` and `B^-1 p`.
    pub(crate) fn products(&self, of_values: &[f64], columns: &[f64], solved: &[f64]) -> Vec<f64> {
        let n = columns.len() / self.products.n_rows();
        let explained = |i: usize, j: usize| -> f64 {
            columns.chunks_exact(n).zip(solved.chunks_exact(n)).map(|(p, q)| p[i] * q[j]).sum()
        };
        (0..n * n).map(|k| (of_values[k] - explained(k / n, k % n)) / self.noise_variance).collect()
    }
}

/// The factor of `B`, given `S`.
fn factor(products: &ProductSum, noise_variance: f64, run: &Run<'_>) -> Result<CholeskyFactor> {
    CholeskyFactor::new(products.n_rows(), run, |first, rows| {
        products.write(first, rows);
        for (row, entries) in (first..).zip(rows) {
            entries[row] += noise_variance;
        }
    })
}

#[cfg(test)]
mod tests;

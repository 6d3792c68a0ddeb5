//! The covariance of a sum of infinitely many trees.
//!
//! Two rows are still together at time `t` with probability `exp(-t d)`, where `d` is their distance: the sum over features
//! of rate times difference. So with ever more trees, `K` of `mondrian::joint` goes to
//!
//! `K(x, x') = integral of v'(t) exp(-t d(x, x')) dt`
//!
//! from 0 to the lifetime. (Balog et al. 2016 show this for one lifetime, where the limit is the Laplace kernel.) Some dozens of
//! trees are a noisy estimate of it, which costs accuracy where targets are smooth. Here the limit itself is used: a number
//! for every pair of rows (`matrix`), and for every test row its covariances with all rows. Both are a function of the
//! distance alone, which depends on the clock (`logistic`, `exponential`).
//!
//! The equations of many rows are solved by way of some of them (`landmark_rows`, `landmarks`).
//!
//! A node of equal targets, or of too few rows, is not split. The limit has no such nodes.

mod exponential;
mod factor;
mod landmark_rows;
mod landmarks;
mod logistic;
mod matrix;
mod rows;

use crate::control::Run;
use crate::data::Rows;
use crate::error::Result;
use crate::mondrian::joint::LeftOutPlace;
use crate::mondrian::joint::conjugate_gradients::{Products, RowNoise};
use crate::mondrian::process::domain::{CoordinateBuffer, Domain};
use matrix::SymmetricMatrix;

pub(crate) use exponential::ExponentialCovariance;
pub(crate) use factor::LimitFactor;
pub(crate) use landmark_rows::LandmarkRows;
pub(crate) use landmarks::{LandmarkFactor, Landmarks, WeightedRows};
pub(crate) use logistic::LogisticCovariance;
pub(crate) use rows::LimitRows;

/// A covariance that depends on the distance alone.
pub(crate) trait Covariance {
    /// The covariance at distance 0.
    fn of_itself(&self) -> f64;

    /// Replaces distances by covariances.
    fn replace(&self, distances: &mut [f64]);
}

/// The distances of all pairs of rows.
pub(crate) struct PairDistances(SymmetricMatrix);

impl PairDistances {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(rows: &LimitRows, run: &Run<'_>) -> Result<Self> {
        let fill = |first: usize, before: &mut [&mut [f64]]| rows.add_distances_before(first, before);
        Ok(Self(SymmetricMatrix::new(rows.n_rows(), 0.0, run, fill)?))
    }
}

/// The system of some rows and a noise.
pub(crate) struct LimitSystem<'a> {
    matrix: SymmetricMatrix,
    noise: RowNoise,
    run: &'a Run<'a>,
}

impl<'a> LimitSystem<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(
        rows: &LimitRows,
        covariance: &(impl Covariance + Sync),
        (noise_variance, weights): (f64, Option<&[f64]>),
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let fill =
            |first: usize, before: &mut [&mut [f64]]| rows.covariances_before(first, covariance, before);
        let matrix = SymmetricMatrix::new(rows.n_rows(), covariance.of_itself(), run, fill)?;
        Ok(Self { matrix, noise: RowNoise::new(noise_variance, weights), run })
    }

    /// The same, of rows whose distances are known: several covariances of some rows then take less time.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn of_distances(
        distances: &PairDistances,
        covariance: &(impl Covariance + Sync),
        (noise_variance, weights): (f64, Option<&[f64]>),
        run: &'a Run<'a>,
    ) -> Result<Self> {
        let replace = |distances: &mut [f64]| covariance.replace(distances);
        let matrix = distances.0.with(covariance.of_itself(), run, replace)?;
        Ok(Self { matrix, noise: RowNoise::new(noise_variance, weights), run })
    }

    /// The rows' weights in the common order, as `targets` are, for `L` problems at once: rows that are left out of one weigh
    /// nothing in it. Until what is left of the targets is less than a share of them.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights<const L: usize>(
        &self,
        targets: &[[f64; L]],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let products = Products { covariance: &|weights| self.means(weights), near_inverse: None };
        Ok(self.noise.weights(products, targets, &left_out, (1, tolerance))?.weights)
    }

    /// Predictions of rows that are left out of some of `L` problems, for noise variances from the largest to the smallest, which is
    /// the system's. `next` takes each one's number and predictions, until it returns false.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn left_out_by_noise<const L: usize>(
        &self,
        targets: &[[f64; L]],
        left_out: (impl Fn(usize, usize) -> bool, &[LeftOutPlace]),
        noises: (&[f64], f64),
        mut next: impl FnMut(usize, &[f64]) -> bool,
    ) -> Result<()> {
        let (is_left_out, places) = left_out;
        let product = |weights: &[[f64; L]]| self.means(weights);
        self.noise.left_out_by_noise(&product, (targets, &is_left_out), places, noises, &mut next)
    }

    /// The means at the rows, given their weights.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn means<const L: usize>(&self, weights: &[[f64; L]]) -> Result<Vec<[f64; L]>> {
        self.matrix.product(weights, self.run)
    }
}

/// Sums of covariances with rows, as functions of a point: the posterior mean of a system, and several more.
#[derive(Debug, Clone)]
pub(crate) struct LimitFunction<C> {
    rows: LimitRows,
    covariance: C,
    n_columns: usize,
    /// In the order of the rows: `n_rows x n_columns`.
    weights: Vec<f64>,
}

impl<C: Covariance + Sync> LimitFunction<C> {
    pub(crate) fn new(rows: LimitRows, covariance: C, n_columns: usize, weights: Vec<f64>) -> Self {
        Self { rows, covariance, n_columns, weights }
    }

    /// The same, given the rows' weights in the first sum, and then those in the others.
    pub(crate) fn of_columns(rows: LimitRows, covariance: C, first: &[f64], others: &[Vec<f64>]) -> Self {
        let of_row =
            |row: usize| std::iter::once(first[row]).chain(others.iter().map(move |other| other[row]));
        let weights = (0..first.len()).flat_map(of_row).collect();
        Self::new(rows, covariance, 1 + others.len(), weights)
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The sums at rows without missing values: `n_rows x n_columns`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn at_rows(&self, domain: &Domain, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        /// Rows for which a thread works at a time.
        const CHUNK: usize = 32;
        let n = rows.n_rows();
        if self.rows.n_rows() == 0 {
            return Ok(vec![0.0; n * self.n_columns]);
        }
        let chunks = run.map_ranges(n, CHUNK, |range| {
            let rows = rows.slice(range.start, range.end);
            let mut buffer = CoordinateBuffer::default();
            let coordinates = domain.coordinates(rows, &mut buffer)?;
            let mut covariances = vec![0.0; rows.n_rows() * self.rows.n_rows()];
            let mut each: Vec<&mut [f64]> = covariances.chunks_exact_mut(self.rows.n_rows()).collect();
            self.rows.add_distances_of(|i, d| coordinates.at(i, d), &mut each);
            self.covariance.replace(&mut covariances);
            Ok(covariances
                .chunks_exact(self.rows.n_rows())
                .flat_map(|own| self.sums(own))
                .collect::<Vec<f64>>())
        })?;
        Ok(chunks.concat())
    }

    /// The sums at a point, given its covariances.
    fn sums(&self, covariances: &[f64]) -> Vec<f64> {
        if self.n_columns == 1 {
            return vec![
                covariances.iter().zip(&self.weights).map(|(covariance, weight)| covariance * weight).sum(),
            ];
        }
        let mut sums = vec![0.0; self.n_columns];
        for (covariance, weights) in covariances.iter().zip(self.weights.chunks_exact(self.n_columns)) {
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum += covariance * weight;
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests;

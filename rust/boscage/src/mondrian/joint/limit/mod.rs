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
//! A node of equal targets, or of too few rows, is not split. The limit has no such nodes.

mod exponential;
mod factor;
mod logistic;
mod matrix;

use crate::control::Run;
use crate::data::{RowId, Rows, Scalar, Table};
use crate::error::Result;
use crate::math::vectors::with_vectors;
use crate::mondrian::joint::LeftOutPlace;
use crate::mondrian::joint::conjugate_gradients::RowNoise;
use crate::mondrian::process::domain::Domain;
use matrix::SymmetricMatrix;

pub(crate) use exponential::ExponentialCovariance;
pub(crate) use factor::LimitFactor;
pub(crate) use logistic::LogisticCovariance;

/// Features whose distances are added in one pass over the rows.
const AT_ONCE: usize = 4;

/// A covariance that depends on the distance alone.
pub(crate) trait Covariance {
    /// The covariance at distance 0.
    fn of_itself(&self) -> f64;

    /// Replaces distances by covariances.
    fn replace(&self, distances: &mut [f64]);
}

/// Rows in a common order.
#[derive(Debug, Clone)]
pub(crate) struct LimitRows {
    /// The features that are ever cut.
    features: Vec<Feature>,
    n_rows: usize,
}

#[derive(Debug, Clone)]
struct Feature {
    number: usize,
    /// From where coordinates are counted: small differences of large numbers stay exact.
    origin: f64,
    rate: f64,
    /// The rows' places in units of the distance.
    places: Vec<f64>,
}

impl Feature {
    fn place(&self, coordinate: f64) -> f64 {
        self.rate * (coordinate - self.origin)
    }
}

impl LimitRows {
    /// `rates` are those of the coordinates, which `table` has.
    pub(crate) fn new<S: Scalar>(table: Table<'_, S>, order: &[RowId], rates: &[f64]) -> Self {
        let cut = rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0);
        let features = cut.map(|(number, &rate)| {
            let of = |row: &RowId| -> f64 { table.row(*row)[number].into() };
            let feature = Feature { number, origin: order.first().map_or(0.0, of), rate, places: Vec::new() };
            Feature { places: order.iter().map(|row| feature.place(of(row))).collect(), ..feature }
        });
        Self { features: features.collect(), n_rows: order.len() }
    }

    /// The distances of a point, given by its coordinates, from all rows.
    fn to_point(&self, x: impl Fn(usize) -> f64, distances: &mut Vec<f64>) {
        distances.clear();
        distances.resize(self.n_rows, 0.0);
        add_distances(&self.features, |feature| feature.place(x(feature.number)), distances);
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Whether two rows have the same covariances.
    pub(crate) fn are_copies(&self, a: usize, b: usize) -> bool {
        self.features.iter().all(|feature| feature.places[a] == feature.places[b])
    }

    /// Turns zeros into the covariances of a row with the rows before it, and with itself.
    pub(crate) fn covariances(&self, row: usize, covariance: &impl Covariance, entries: &mut [f64]) {
        let (before, own) = entries.split_at_mut(row);
        self.covariances_before(row, covariance, before);
        own[0] = covariance.of_itself();
    }

    fn covariances_before(&self, row: usize, covariance: &impl Covariance, entries: &mut [f64]) {
        add_distances(&self.features, |feature| feature.places[row], entries);
        covariance.replace(entries);
    }
}

/// Adds the distances of a point from the first rows. The point has a place in each feature.
fn add_distances(features: &[Feature], place: impl Fn(&Feature) -> f64, distances: &mut [f64]) {
    let (some, rest) = features.as_chunks();
    for some in some {
        add_to_distances::<AT_ONCE>(some, &place, distances);
    }
    for one in rest {
        add_to_distances(std::array::from_ref(one), &place, distances);
    }
}

fn add_to_distances<const N: usize>(
    features: &[Feature; N],
    place: impl Fn(&Feature) -> f64,
    distances: &mut [f64],
) {
    let places = features.each_ref().map(|feature| &feature.places[..distances.len()]);
    let own = features.each_ref().map(place);
    with_vectors!(move || {
        for (row, distance) in distances.iter_mut().enumerate() {
            for i in 0..N {
                *distance += (places[i][row] - own[i]).abs();
            }
        }
    });
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
        let matrix = SymmetricMatrix::new(rows.n_rows, covariance.of_itself(), run, |row, before| {
            rows.covariances_before(row, covariance, before);
        })?;
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
        self.noise.weights(&|weights| self.means(weights), targets, &left_out, (1, tolerance))
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

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The sums at rows without missing values: `n_rows x n_columns`.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn at_rows(&self, domain: &Domain, rows: Rows<'_>, run: &Run<'_>) -> Result<Vec<f64>> {
        /// Rows for which a thread works at a time.
        const CHUNK: usize = 64;
        let n = rows.n_rows();
        let chunks = run.map(n.div_ceil(CHUNK), |chunk| {
            let rows = rows.slice(chunk * CHUNK, n.min((chunk + 1) * CHUNK));
            let coordinates = domain.coordinates(rows);
            let (mut buffer, mut sums) = (Vec::new(), Vec::with_capacity(rows.n_rows() * self.n_columns));
            for i in 0..rows.n_rows() {
                match &coordinates {
                    Some(all) => {
                        self.add_point(|d| f64::from(all[i * rows.n_features() + d]), &mut buffer, &mut sums);
                    }
                    None => self.add_point(|d| rows.at(i, d), &mut buffer, &mut sums),
                }
            }
            Ok(sums)
        })?;
        Ok(chunks.concat())
    }

    /// Appends the sums at a point, given by its coordinates.
    fn add_point(&self, x: impl Fn(usize) -> f64, buffer: &mut Vec<f64>, sums: &mut Vec<f64>) {
        self.rows.to_point(x, buffer);
        self.covariance.replace(buffer);
        if self.n_columns == 1 {
            sums.push(buffer.iter().zip(&self.weights).map(|(covariance, weight)| covariance * weight).sum());
            return;
        }
        let start = sums.len();
        sums.resize(start + self.n_columns, 0.0);
        for (covariance, weights) in buffer.iter().zip(self.weights.chunks_exact(self.n_columns)) {
            for (sum, weight) in sums[start..].iter_mut().zip(weights) {
                *sum += covariance * weight;
            }
        }
    }
}

#[cfg(test)]
mod tests;

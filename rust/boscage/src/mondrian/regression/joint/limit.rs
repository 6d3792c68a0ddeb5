//! The model of infinitely many trees: rows, and a covariance that is known in closed form.

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::LeftOutPlace;
use crate::mondrian::joint::limit::{LimitFactor, LimitRows, LimitSystem, LogisticCovariance, PairDistances};
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::moments::NodeMoments;

/// The smallest noise as a share of `gamma_1`: with less, rows that coincide get weights that cancel to the
/// last bit.
const LEAST_NOISE: f64 = 1e-9;

/// The noise variance of the equations.
pub(super) fn noise_of(hyper: &Hyperparameters) -> f64 {
    hyper.noise_variance.max(LEAST_NOISE * hyper.gamma1)
}

/// The model of infinitely many trees, without its hyperparameters.
#[derive(Clone)]
pub(crate) struct Limit {
    rows: LimitRows,
    lifetime: f64,
}

impl Limit {
    /// Of the rows in an order.
    pub(crate) fn new<S: Scalar>(
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        order: &[RowId],
    ) -> Self {
        let table = Table::new(&storage.values, forest.domain.n_coordinates());
        let rows = LimitRows::new(table, order, forest.domain.rates());
        Self { rows, lifetime: forest.settings.lifetime }
    }

    pub(super) fn rows(&self) -> &LimitRows {
        &self.rows
    }

    pub(super) fn covariance(&self, hyper: &Hyperparameters) -> LogisticCovariance {
        covariance(hyper, self.lifetime)
    }

    /// # Errors
    /// An interrupt.
    pub(super) fn factor(
        &self,
        weights: Option<&[f64]>,
        hyper: &Hyperparameters,
        run: &Run<'_>,
    ) -> Result<LimitFactor> {
        let covariance = self.covariance(hyper);
        let covariances =
            |first: usize, entries: &mut [&mut [f64]]| self.rows.covariances(first, &covariance, entries);
        LimitFactor::new(self.rows.n_rows(), covariances, (noise_of(hyper), weights), run)
    }

    /// # Errors
    /// An interrupt.
    pub(crate) fn system<'a>(
        &self,
        weights: Option<&[f64]>,
        hyper: &Hyperparameters,
        run: &'a Run<'a>,
    ) -> Result<LimitSystem<'a>> {
        LimitSystem::new(&self.rows, &self.covariance(hyper), (noise_of(hyper), weights), run)
    }

    /// # Errors
    /// An interrupt.
    pub(crate) fn measured(&self, run: &Run<'_>) -> Result<MeasuredLimit> {
        Ok(MeasuredLimit { distances: PairDistances::new(&self.rows, run)?, lifetime: self.lifetime })
    }
}

fn covariance(hyper: &Hyperparameters, lifetime: f64) -> LogisticCovariance {
    LogisticCovariance::new(hyper.gamma1, hyper.gamma2, lifetime)
}

/// The same model of rows whose distances are known, to try several hyperparameters.
pub(crate) struct MeasuredLimit {
    distances: PairDistances,
    lifetime: f64,
}

impl MeasuredLimit {
    /// Predictions of left-out rows at hyperparameters that differ in the noise's share of `gamma_1` only, from the largest to
    /// the smallest; see [`LimitSystem::left_out_by_noise`]. `rows` are the targets of `L` problems, which rows are not in a
    /// problem, and which are predicted.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn left_out_by_noise<const L: usize>(
        &self,
        weights: Option<&[f64]>,
        points: &[Hyperparameters],
        (targets, is_left_out, places): (&[[f64; L]], impl Fn(usize, usize) -> bool, &[LeftOutPlace]),
        tolerance: f64,
        run: &Run<'_>,
        next: impl FnMut(usize, &[f64]) -> bool,
    ) -> Result<()> {
        let Some(last) = points.last() else { return Ok(()) };
        // A factor on both does not change the mean.
        let of = |hyper: &Hyperparameters| noise_of(hyper) * last.gamma1 / hyper.gamma1;
        let noises: Vec<f64> = points.iter().map(of).collect();
        let (covariance, noise) = (covariance(last, self.lifetime), (noise_of(last), weights));
        let system = LimitSystem::of_distances(&self.distances, &covariance, noise, run)?;
        system.left_out_by_noise(targets, (is_left_out, places), (&noises, tolerance), next)
    }
}

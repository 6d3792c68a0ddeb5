//! The equations of the joint model with the covariance of infinitely many trees, for many rows: by way of landmarks.

use std::sync::Arc;

use crate::control::Run;
use crate::data::{RowId, Scalar, Table};
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::kernel::LANDMARKS;
use crate::mondrian::joint::limit::{
    LandmarkFactor, LandmarkRows, Landmarks, LimitFunction, LogisticCovariance, WeightedRows,
};
use crate::mondrian::regression::hierarchy::belief_propagation::Hyperparameters;
use crate::mondrian::regression::joint::Solved;
use crate::mondrian::regression::joint::limit::{Limit, noise_of};
use crate::mondrian::regression::moments::NodeMoments;

/// The model of infinitely many trees, and the rows by way of which it is solved.
#[derive(Clone)]
pub(crate) struct LandmarkModel {
    limit: Limit,
    landmarks: LandmarkRows,
    /// The factors of some hyperparameters, if they are known.
    known: Option<Arc<LandmarkFactors>>,
}

impl LandmarkModel {
    /// Of the rows in their common order, of which `limit` is.
    pub(crate) fn new<S: Scalar>(
        limit: Limit,
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        order: &[RowId],
    ) -> Self {
        let table = Table::new(&storage.values, forest.domain.n_coordinates());
        Self {
            limit,
            landmarks: LandmarkRows::new(forest.settings.seed, LANDMARKS, table, order),
            known: None,
        }
    }

    /// The same, given factors of the same rows.
    pub(crate) fn knowing(self, known: Option<Arc<LandmarkFactors>>) -> Self {
        Self { known, ..self }
    }

    /// The model that the others have without the row at a place, if it is another one.
    pub(super) fn without(&self, place: usize) -> Option<Self> {
        let landmarks = self.landmarks.without(place)?;
        Some(Self { landmarks, ..self.clone().knowing(None) })
    }

    /// # Errors
    /// An interrupt.
    pub(crate) fn equations<'a>(
        &'a self,
        weights: Option<&'a [f64]>,
        hyper: &Hyperparameters,
        run: &Run<'_>,
    ) -> Result<LandmarkEquations<'a>> {
        let rows = WeightedRows { rows: self.limit.rows(), weights };
        let factors = match &self.known {
            Some(known) if known.hyper == *hyper => Arc::clone(known),
            _ => {
                let landmarks = Landmarks::new(
                    rows.rows.at(&self.landmarks.places()),
                    self.limit.covariance(hyper),
                    run,
                )?;
                let of_rows = LandmarkFactor::new(&landmarks, rows, noise_of(hyper), run)?;
                Arc::new(LandmarkFactors { hyper: *hyper, landmarks, of_rows })
            }
        };
        Ok(LandmarkEquations { rows, factors })
    }
}

/// The factors of the equations for some hyperparameters, which take nearly all the time.
#[derive(Debug)]
pub(crate) struct LandmarkFactors {
    hyper: Hyperparameters,
    landmarks: Landmarks<LogisticCovariance>,
    of_rows: LandmarkFactor,
}

/// The equations for some hyperparameters.
pub(crate) struct LandmarkEquations<'a> {
    rows: WeightedRows<'a>,
    factors: Arc<LandmarkFactors>,
}

impl LandmarkEquations<'_> {
    pub(crate) fn factors(&self) -> &Arc<LandmarkFactors> {
        &self.factors
    }

    /// The weights of the landmarks for some values of all rows, without the row at a place if it is given.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn solve(
        &self,
        values: &[Vec<f64>],
        left_out: Option<usize>,
        run: &Run<'_>,
    ) -> Result<Solved> {
        let n = values.len();
        let LandmarkFactors { landmarks, of_rows, .. } = &*self.factors;
        let others: Vec<usize> =
            (0..self.rows.rows.n_rows()).filter(|&place| Some(place) != left_out).collect();
        let columns = landmarks.with_values(self.rows, &others, values, run)?;
        let solved = match left_out {
            None => of_rows.solve(&columns, n, run)?,
            Some(place) => {
                let features = landmarks.features(self.rows.rows, &[place], run)?;
                of_rows.solve_without((&features, self.rows.weight(place)), &columns, n, run)?
            }
        };
        let of_pair = |i: usize, j: usize| -> f64 {
            let term = |&place: &usize| self.rows.weight(place) * values[i][place] * values[j][place];
            others.iter().map(term).sum()
        };
        let of_values: Vec<f64> = (0..n * n).map(|k| of_pair(k / n, k % n)).collect();
        let products = of_rows.products(&of_values, &columns, &solved);
        let by_landmark = landmarks.weights_of(&solved, n, run)?;
        let weights = (0..n).map(|side| by_landmark.iter().skip(side).step_by(n).copied().collect());
        Ok(Solved { weights: weights.collect(), products })
    }

    /// The means at some rows, given their places, by the others, for a value of all rows.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn left_out(&self, places: &[usize], value: &[f64], run: &Run<'_>) -> Result<Vec<f64>> {
        let LandmarkFactors { landmarks, of_rows, .. } = &*self.factors;
        let mut is_left_out = vec![false; self.rows.rows.n_rows()];
        for &place in places {
            is_left_out[place] = true;
        }
        let others: Vec<usize> = (0..is_left_out.len()).filter(|&place| !is_left_out[place]).collect();
        let columns = landmarks.with_values(self.rows, &others, &[value.to_vec()], run)?;
        let features = landmarks.features(self.rows.rows, places, run)?;
        let weights: Vec<f64> = places.iter().map(|&place| self.rows.weight(place)).collect();
        let own = of_rows.without(&features, &weights, run)?.solve(&columns, 1, run)?;
        let mut means = vec![0.0; places.len()];
        for (features, own) in features.chunks_exact(places.len()).zip(own) {
            means.iter_mut().zip(features).for_each(|(mean, feature)| *mean += feature * own);
        }
        Ok(means)
    }

    /// The mean, given the landmarks' weights, and then the sums of columns.
    pub(super) fn function(
        &self,
        weights: &[f64],
        columns: &[Vec<f64>],
    ) -> LimitFunction<LogisticCovariance> {
        self.factors.landmarks.function(weights, columns)
    }
}

#[cfg(test)]
mod tests;

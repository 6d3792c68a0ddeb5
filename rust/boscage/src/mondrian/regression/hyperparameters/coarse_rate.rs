//! The rate at which the coarse part of the prior is spent.
//!
//! The lower the rate, the wider are predictions beside the rows. But a row among the others branches off early, too, where
//! there are many features. Where noise is small beside the targets' variance, what is left of the coarse part then makes
//! predictions much too wide. So the rate is the lowest, by powers of two, under which rows that are left out have nearly the
//! variance that they have without the coarse part, which is the one that the rule has fitted.

use crate::data::Scalar;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_time::likely_branch;
use crate::mondrian::regression::hyperparameters::far_prior::FarPrior;
use crate::mondrian::regression::hyperparameters::trial::Trial;

/// The largest rate in units of the lowest, as a power of two.
const DOUBLINGS: i32 = 10;
/// The log density (in nats, in the mean of the rows) that may be lost.
const LOSS: f64 = 0.01;

impl<S: Scalar> Trial<'_, S> {
    /// The hyperparameters with a coarse part that brings what the prior lacks far away, given the chosen rows' errors and their variances by tree.
    pub(super) fn complete(
        &self,
        hyper: &Hyperparameters,
        far: FarPrior,
        errors: &[Vec<(f64, f64)>],
    ) -> Hyperparameters {
        let variances = variances(errors);
        let with_rate = |doublings: i32| {
            let coarse_rate = far.coarse_rate * f64::from(doublings).exp2();
            FarPrior { coarse_rate, ..far }.complete(hyper)
        };
        let costs_little =
            |hyper: &Hyperparameters| self.loss(hyper.coarse, &variances, errors.len()) <= LOSS;
        (0..DOUBLINGS).map(with_rate).find(costs_little).unwrap_or_else(|| with_rate(DOUBLINGS))
    }

    /// By how much the log density falls in the mean, if the chosen rows' variances under the first trees are right without a
    /// coarse part.
    fn loss(&self, coarse: CoarsePrior, variances: &[f64], n_trees: usize) -> f64 {
        let loss = |(row, (variance, weight)): (usize, (&f64, &f64))| {
            let left: f64 = (0..n_trees).map(|tree| self.left_of(coarse, tree, row)).sum();
            let factor = 1.0 + left / n_trees as f64 / variance;
            weight * 0.5 * (factor.ln() + 1.0 / factor - 1.0)
        };
        let rows = variances.iter().zip(&self.weights).enumerate();
        rows.map(loss).sum::<f64>() / variances.len() as f64
    }

    /// What is left of the coarse part where a chosen row branches off in a tree.
    fn left_of(&self, coarse: CoarsePrior, tree: usize, row: usize) -> f64 {
        let place = &self.places[tree][row];
        let spent = match (&place.others, &place.branch) {
            (None, _) => {
                let parent = place.path.len().checked_sub(2).map(|above| place.path[above]);
                Some(coarse.clock(parent.map_or(0.0, |parent| self.trees[tree].arena.time(parent))))
            }
            (Some(_), Some(stop)) => {
                likely_branch(stop, coarse.rate, 0.0).map(|clock| 2.0 * coarse.variance * clock)
            }
            (Some(_), None) => None,
        };
        spent.map_or(0.0, |spent| coarse.clock(self.forest.settings.lifetime) - spent)
    }
}

/// The variance of each row's mixture, from errors and their variances by tree.
fn variances(errors: &[Vec<(f64, f64)>]) -> Vec<f64> {
    let n_trees = errors.len() as f64;
    let of_row = |row: usize| {
        let of_trees = || errors.iter().map(|tree| tree[row]);
        let mean = of_trees().map(|(miss, _)| miss).sum::<f64>() / n_trees;
        of_trees().map(|(miss, variance)| variance + (miss - mean) * (miss - mean)).sum::<f64>() / n_trees
    };
    (0..errors[0].len()).map(of_row).collect()
}

//! All trees of a forest as one model: a target is the sum of the trees' functions, and does not come from
//! one of them.
//!
//! In a mixture of trees, each tree alone explains the targets. Its function has to be as smooth as a single
//! tree's must be, and the mean of all functions is smoother still. In the joint model, a target is the sum
//! of one function for each of the `T` trees, and noise. The function of a tree is a Brownian motion, as in
//! the hierarchy, with a `T`-th of its variance. The sum is then a Gaussian process with the covariance `K`
//! of `mondrian::joint`, whose clock is the hierarchy's. The posterior mean is `mu_H + K(x, .) a`, where
//! `(K + s^2 I) a = y - mu_H`. A trend (`regression::trend`) adds a linear function of the features.
//!
//! Up to some thousand rows, the covariance is that of infinitely many trees (`mondrian::joint::limit`), of which the forest's
//! own are a sample. Then the mean does not have the noise of the sample. With more rows it is that as some of the rows know it, or that
//! of the trees, which knows details better: rows that are left out decide. The spread about the mean is that of the
//! forest's trees.
//!
//! - `equations` has the covariances: that of trees, that of infinitely many trees (`limit`), and the latter for many rows
//!   (`landmarks`).
//! - `solution` has the weights `a`, with those of a trend.
//! - `tree_sums` has the sums of `a` at the nodes of the trees, and `tree_mean` the mean by them: one pass down each tree.
//! - `without_rows` has the covariance of the trees without a row.

pub(crate) mod equations;
pub(crate) mod landmarks;
pub(crate) mod limit;
pub(crate) mod solution;
pub(crate) mod tree_mean;
pub(crate) mod tree_sums;
pub(crate) mod without_rows;

use crate::data::{RowId, Scalar};
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::row_order::in_order;
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::moments::NodeMoments;

/// A joint model in standard units, which are the same for shifted and scaled targets. The coarse part of the prior is not
/// in its kernel: its mean, all that is used of it, goes to `mu_H` far away with or without that part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standard {
    /// With `mu_H = 0` and `gamma_1 = 1`.
    pub(crate) hyper: Hyperparameters,
    mu: f64,
    unit: f64,
}

impl Standard {
    pub(crate) fn new(hyper: &Hyperparameters) -> Self {
        let noise_variance = coarse(hyper.noise_variance / hyper.gamma1);
        Self {
            hyper: Hyperparameters {
                mu: 0.0,
                gamma1: 1.0,
                noise_variance,
                delay: 0.0,
                coarse: CoarsePrior::NONE,
                ..*hyper
            },
            mu: hyper.mu,
            unit: hyper.gamma1.sqrt(),
        }
    }

    /// The same units with other hyperparameters, given in them.
    pub(crate) fn with(self, hyper: Hyperparameters) -> Self {
        Self { hyper, ..self }
    }

    pub(crate) fn target(&self, y: f64) -> f64 {
        (y - self.mu) / self.unit
    }

    /// A variance of targets in the model's units.
    pub(crate) fn variance_of(&self, variance: f64) -> f64 {
        variance / (self.unit * self.unit)
    }

    /// The hyperparameters in the targets' units. The model that [`new`](Self::new) makes of them is this one to the last bit if
    /// `new` made this one: the unit is the root of its square.
    pub(crate) fn in_units(&self) -> Hyperparameters {
        let square = self.unit * self.unit;
        let Hyperparameters { gamma1, noise_variance, .. } = self.hyper;
        Hyperparameters {
            mu: self.mu,
            gamma1: square * gamma1,
            noise_variance: square * noise_variance,
            ..self.hyper
        }
    }

    /// A difference of targets in the model's units.
    fn difference_of(&self, difference: f64) -> f64 {
        difference / self.unit
    }

    /// A difference of targets, given in the model's units.
    pub(crate) fn difference(&self, standard: f64) -> f64 {
        self.unit * standard
    }

    /// A target, given in the model's units.
    pub(crate) fn mean(&self, standard: f64) -> f64 {
        self.mu + self.difference(standard)
    }
}

/// What equations give for several right-hand sides `y_i`.
pub(super) struct Solved {
    /// By side, each share of the weights: of the rows, or of the landmarks.
    pub(super) weights: Vec<Vec<f64>>,
    /// `y_i' A^-1 y_j`, row after row.
    pub(super) products: Vec<f64>,
}

/// A number with the last half of its digits rounded off, in which the rounding of targets would show.
fn coarse(value: f64) -> f64 {
    const LAST: u64 = 1 << 28;
    f64::from_bits((value.to_bits() + LAST / 2) & !(LAST - 1))
}

/// The rows in an order that depends neither on that of their arrival nor on shifts and scales of the targets.
pub(crate) fn common_order<S: Scalar>(
    forest: &Forest<NodeMoments>,
    storage: &Storage<S, NodeMoments>,
) -> Vec<RowId> {
    let tree = &storage.trees[0];
    let centre = tree.arena.root().map_or(0.0, |root| tree.statistics.moments(root).mean);
    in_order(forest, storage, |a, b| (a - centre).abs().total_cmp(&(b - centre).abs()).then(a.total_cmp(&b)))
}

#[cfg(test)]
pub(super) mod tests;

//! All trees of a forest as one model: a target is the sum of the trees' functions, not drawn from one of them.
//!
//! In a mixture of trees, each tree alone explains the targets. Its function has to be as smooth as a single tree's
//! must be, and the mean of all functions is smoother still. In the joint model, a target is the sum of one function
//! for each of the `T` trees, and noise. The function of a tree is a Brownian motion, as in the hierarchy, with a
//! `T`-th of its variance. The sum is then a Gaussian process with the covariance `K` of `mondrian::joint`, whose clock is the
//! hierarchy's. The posterior mean is `mu_H + K(x, .) a`, where `(K + s^2 I) a = y - mu_H`.

use crate::control::Run;
use crate::data::RowId;
use crate::data::Scalar;
use crate::error::Result;
use crate::mondrian::forest::Forest;
use crate::mondrian::forest::storage::Storage;
use crate::mondrian::joint::row_order::in_order;
use crate::mondrian::joint::{System, Trees};
use crate::mondrian::prediction::shared_path::SharedPath;
use crate::mondrian::prediction::stop::{Branch, Stop};
use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};
use crate::mondrian::regression::hierarchy::branch_clock::branch_clock;
use crate::mondrian::regression::hierarchy::branch_time;
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::arena::NodeId;

/// The share of the targets' norm that may remain unexplained when weights are found that predict.
const TOLERANCE: f64 = 1e-10;
/// The smallest noise as a share of `gamma_1`: with less, rows that coincide get weights that cancel to the
/// last bit.
const LEAST_NOISE: f64 = 1e-9;

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

    /// A difference of targets, given in the model's units.
    pub(crate) fn difference(&self, standard: f64) -> f64 {
        self.unit * standard
    }

    /// A target, given in the model's units.
    pub(crate) fn mean(&self, standard: f64) -> f64 {
        self.mu + self.difference(standard)
    }
}

/// A number with the last half of its digits rounded off, in which the rounding of targets would show.
fn coarse(value: f64) -> f64 {
    const LAST: u64 = 1 << 28;
    f64::from_bits((value.to_bits() + LAST / 2) & !(LAST - 1))
}

/// The model with its hyperparameters, of targets whose mean is 0.
pub(crate) struct Joint<'a> {
    hyper: Hyperparameters,
    system: System<'a>,
}

impl<'a> Joint<'a> {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new(trees: &'a Trees, hyper: Hyperparameters, run: &'a Run<'a>) -> Result<Self> {
        let noise_variance = hyper.noise_variance.max(LEAST_NOISE * hyper.gamma1);
        let system = System::new(trees, |time| hyper.clock(time), noise_variance, run)?;
        Ok(Self { hyper, system })
    }

    /// The sums of weights by tree and node.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn sums<const L: usize>(&self, weights: &[[f64; L]]) -> Result<Vec<Vec<[f64; L]>>> {
        self.system.sums(weights)
    }

    /// Each tree's share of the rows' weights, for the same targets in `L` problems, out of which other rows are left.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn weights<const L: usize>(
        &self,
        targets: &[f64],
        left_out: impl Fn(usize, usize) -> bool,
        tolerance: f64,
    ) -> Result<Vec<[f64; L]>> {
        let targets: Vec<[f64; L]> = targets.iter().map(|&y| [y; L]).collect();
        self.system.weights(&targets, left_out, tolerance)
    }

    /// A tree's share of the mean of a row that it holds with weight 0, `path` leading to its leaf;
    /// `branch` is where the row branches off from the leaf's other rows.
    pub(crate) fn left_out(
        &self,
        tree: usize,
        sum: impl Fn(NodeId) -> f64,
        path: &[NodeId],
        branch: Option<&Stop>,
    ) -> f64 {
        let spans = self.system.spans(tree);
        let whole: f64 = path.iter().map(|&node| spans[node.index()] * sum(node)).sum();
        match (branch, path.last()) {
            (Some(stop), Some(&leaf)) => {
                let span = spans[leaf.index()];
                let Hyperparameters { gamma1, gamma2, delay, .. } = self.hyper;
                let gain = |probability| {
                    gamma1 * branch_time::expected_clock(stop, gamma2, delay, probability)
                        - self.hyper.clock(stop.after)
                };
                whole - (span - branch_time::expected_span(stop, span, gain)) * sum(leaf)
            }
            _ => whole,
        }
    }
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

/// The joint model of a forest, which weights are solved for.
pub(crate) struct JointWeights {
    trees: Trees,
    order: Vec<RowId>,
    targets: Vec<f64>,
}

impl JointWeights {
    /// # Errors
    /// An interrupt.
    pub(crate) fn new<S: Scalar>(
        forest: &Forest<NodeMoments>,
        storage: &Storage<S, NodeMoments>,
        run: &Run<'_>,
    ) -> Result<Self> {
        let order = common_order(forest, storage);
        let trees = Trees::new(&storage.trees, &order, forest.settings.lifetime, run)?;
        let targets = order.iter().map(|&row| forest.targets[row as usize]).collect();
        Ok(Self { trees, order, targets })
    }

    /// The weights and sums that determine means, without one row if it is given.
    ///
    /// # Errors
    /// An interrupt.
    pub(crate) fn solve(&self, model: &Standard, left_out: Option<RowId>, run: &Run<'_>) -> Result<Solution> {
        let without = |place: usize, _| Some(self.order[place]) == left_out;
        let joint = Joint::new(&self.trees, model.hyper, run)?;
        let targets: Vec<f64> = self.targets.iter().map(|&y| model.target(y)).collect();
        let weights = joint.weights::<1>(&targets, without, TOLERANCE)?;
        let sums = joint.sums(&weights)?.into_iter().map(|tree| tree.concat()).collect();
        let weights = weights.concat();
        let mut by_row = vec![0.0; self.order.iter().max().map_or(0, |&row| row as usize + 1)];
        for (&row, &weight) in self.order.iter().zip(&weights) {
            by_row[row as usize] = weight;
        }
        Ok(Solution { weights: by_row, sums })
    }
}

/// Weights of the rows, each tree's share of them, and their sums by tree and node.
#[derive(Debug, Clone)]
pub(crate) struct Solution {
    pub(crate) weights: Vec<f64>,
    pub(crate) sums: Vec<Vec<f64>>,
}

/// The joint model at a stop of a test row's path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedStop {
    clock: f64,
    /// The tree's share of the mean down to there, of a row that does not branch off before.
    mean: f64,
}

/// A tree's share of the mean of a row: sums by node, each times the expected clock that the row and the
/// node's rows share below the node's parent. The tree is given by its number.
pub(crate) fn mean(
    (tree, sum): (usize, impl Fn(NodeId) -> f64),
    hyper: &Hyperparameters,
    stops: &[Stop],
    path: &mut SharedPath<PassedStop>,
) -> f64 {
    let mut together = 1.0;
    let mut mean = 0.0;
    let mut above = 0.0;
    for (i, stop) in stops.iter().enumerate() {
        let PassedStop { clock, mean: shared } = path.at(i, (tree, stop.node), |before| {
            let before = before.unwrap_or(PassedStop { clock: 0.0, mean: 0.0 });
            let clock = hyper.clock(stop.time);
            let span = (clock - before.clock).max(0.0);
            PassedStop { clock, mean: before.mean + span * sum(stop.node) }
        });
        if stop.branch == Branch::Never && together == 1.0 {
            mean = shared;
        } else {
            let span = (clock - above).max(0.0);
            let gain = |probability| branch_clock(stop, hyper, probability, 0, 1).mean - above;
            mean += together * branch_time::expected_span(stop, span, gain) * sum(stop.node);
            together *= 1.0 - branch_time::branch_probability(stop);
        }
        above = clock;
    }
    mean
}

#[cfg(test)]
mod tests;

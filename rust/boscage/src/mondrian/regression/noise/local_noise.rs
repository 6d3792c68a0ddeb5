//! Noise that differs from place to place: each node has a factor, smoothed down the tree as the means are.
//!
//! Take the distance of a row from the prediction of the tree without it, in predicted standard deviations. Where the
//! variances of the hierarchy are right, this distance has the same mean everywhere. So its average over the rows of a
//! node is the factor by which predicted standard deviations are wrong there. (Distances are more robust to heavy tails
//! than their squares.) From the root down, the factor of node `j` is
//!
//! `s_j = (a s_parent + sum of distances in j) / (a + n_j)`:
//!
//! the parent's factor counts as much as `a` rows, and a row of weight `w` as `w` rows. Distances are divided by their mean in the tree, since the
//! hyperparameters already set the common scale.
//!
//! The square of a node's factor multiplies all variances of the node, that of its mean as well as the noise. So
//! posterior means do not change. Neither does the prior, far away from the data, where the factor is one. What the coarse part of
//! the prior spends below a branch is not multiplied: it says how far targets range elsewhere. Nor is how far a mean moves with the
//! time at which a test row branches off.

use crate::data::{RowTargets, Scalar};
use crate::mondrian::regression::hierarchy::belief_propagation;
use crate::mondrian::regression::hierarchy::belief_propagation::{Above, Hyperparameters, Messages};
use crate::mondrian::regression::moments::NodeMoments;
use crate::mondrian::tree::Tree;
use crate::mondrian::tree::arena::{NodeId, NodeKind};

/// The factors on the variances of a tree's nodes, given in preorder; a parent's counts for `prior` rows.
pub(crate) fn estimate<S: Scalar>(
    (tree, order): (&Tree<S, NodeMoments>, &[NodeId]),
    observed: (RowTargets<'_, f64>, &NodeMoments),
    told: (&Messages, &Hyperparameters),
    prior: f64,
) -> Vec<f64> {
    sizes_of(tree, observed, told, (order, order), |_| None).smooth(tree, order, prior)
}

/// The sizes of a tree's errors at some nodes, children after parents, given all of its nodes; `known` are those at stubs.
pub(crate) fn sizes_of<S: Scalar>(
    tree: &Tree<S, NodeMoments>,
    (targets, moments): (RowTargets<'_, f64>, &NodeMoments),
    (messages, hyper): (&Messages, &Hyperparameters),
    (order, all): (&[NodeId], &[NodeId]),
    known: impl Fn(NodeId) -> Option<(f64, f64)>,
) -> Sizes {
    let above = belief_propagation::beliefs(tree, messages, hyper, all);
    let rows = |leaf, rows: &mut Vec<(f64, f64)>| {
        rows.extend(tree.arena.leaf_rows(leaf).map(|row| (targets.of(row), targets.weight(row))));
        (moments.moments(leaf).mean, moments.weight(leaf, rows.len()))
    };
    Sizes::of(tree, order, (&above, hyper.noise_variance), rows, known)
}

/// The least factor on distances. Where targets are equal, it falls from node to node, the faster the greater the weights, and
/// its square would underflow.
const LEAST: f64 = 1e-6;

/// The factor on distances at a node whose parent has this one, given the sum of its distances, in units of their mean, and
/// their number.
pub(crate) fn smoothed(parent: f64, (sum, count): (f64, f64), prior: f64) -> f64 {
    ((prior * parent + sum) / (prior + count)).max(LEAST)
}

/// The sizes of leave-one-out errors, summed over every node's rows with their weights.
pub(crate) struct Sizes {
    sums: Vec<f64>,
    /// Weights of these rows.
    counts: Vec<f64>,
    /// Their mean in the tree.
    typical: f64,
}

/// The size of an error, given its square over its variance.
pub(crate) fn size(ratio: f64) -> f64 {
    ratio.sqrt()
}

/// The squared leave-one-out error over its variance, for a row, given with its weight `w`, of a leaf with this mean, whose
/// rows count as `n`: with residual `r` from the leaf's posterior mean and that mean's posterior variance `V`, the left-out
/// residual is `r / k`, `k = 1 - w V / s^2`, and its variance `s^2 + V / k`, which is `s^2 / k` where `w = 1`.
pub(crate) fn ratio(
    (y, weight): (f64, f64),
    (mean, n): (f64, f64),
    above: Above,
    noise_variance: f64,
) -> f64 {
    let all = noise_variance + n * above.variance;
    let k = (noise_variance + (n - weight) * above.variance) / all;
    let apart = (y - mean) + (mean - above.mean) * (noise_variance / all);
    let square = apart * apart / (noise_variance * k);
    if weight == 1.0 { square } else { square * all / (noise_variance + (n - weight + 1.0) * above.variance) }
}

impl Sizes {
    /// The sizes for the rows whose targets and weights `rows` writes for each leaf; it also returns their mean and weight.
    /// `above` are the beliefs about nodes given these rows, and `known` the sums of sizes and weights at stubs.
    fn of<S: Scalar>(
        tree: &Tree<S, NodeMoments>,
        order: &[NodeId],
        (above, noise_variance): (&[Above], f64),
        rows: impl Fn(NodeId, &mut Vec<(f64, f64)>) -> (f64, f64),
        known: impl Fn(NodeId) -> Option<(f64, f64)>,
    ) -> Self {
        let arena = &tree.arena;
        let (mut sums, mut counts) = (vec![0.0; arena.n_indices()], vec![0.0; arena.n_indices()]);
        let (mut own, mut sizes) = (Vec::new(), Vec::new());
        for &node in order.iter().rev() {
            if node.is_leaf()
                && let Some(known) = known(node)
            {
                (sums[node.index()], counts[node.index()]) = known;
                continue;
            }
            (sums[node.index()], counts[node.index()]) =
                match arena.kind(node) {
                    NodeKind::Split(left, right) => {
                        let [left, right] = [left, right].map(NodeId::index);
                        (sums[left] + sums[right], counts[left] + counts[right])
                    }
                    NodeKind::Leaf => {
                        own.clear();
                        let of_leaf = rows(node, &mut own);
                        sizes.clear();
                        sizes.extend(own.iter().map(|&row| {
                            row.1 * size(ratio(row, of_leaf, above[node.index()], noise_variance))
                        }));
                        // Sorted, so that the order of arrival does not matter.
                        sizes.sort_unstable_by(f64::total_cmp);
                        (sizes.iter().sum(), of_leaf.1)
                    }
                };
        }
        let typical = order.first().map_or(0.0, |root| sums[root.index()] / counts[root.index()]);
        Self { sums, counts, typical }
    }

    /// The sum of sizes at a node, and that of weights.
    pub(crate) fn at(&self, node: NodeId) -> (f64, f64) {
        (self.sums[node.index()], self.counts[node.index()])
    }

    /// The factors on the variances of all nodes.
    pub(crate) fn smooth<S: Scalar>(
        &self,
        tree: &Tree<S, NodeMoments>,
        order: &[NodeId],
        prior: f64,
    ) -> Vec<f64> {
        let arena = &tree.arena;
        let mut scales = vec![1.0; arena.n_indices()];
        let vary = self.typical > 0.0;
        if !vary {
            return scales;
        }
        for &node in order {
            let own = (self.sums[node.index()] / self.typical, self.counts[node.index()]);
            let own = smoothed(scales[node.index()], own, prior);
            scales[node.index()] = own;
            if let NodeKind::Split(left, right) = arena.kind(node) {
                scales[left.index()] = own;
                scales[right.index()] = own;
            }
        }
        for scale in &mut scales {
            *scale *= *scale;
        }
        scales
    }
}

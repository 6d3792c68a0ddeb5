//! Noise that differs from place to place: each node's own, smoothed down the tree as the means are.
//!
//! A row's distance from what the tree without it predicts, in predicted standard deviations, has the same
//! mean everywhere where the hierarchy's variances are right. Its average over a node's rows says by what
//! factor they are wrong there (distances, not their squares, for the sake of heavy tails). From the root
//! down, `s_j = (a s_parent + sum of distances in j) / (a + n_j)`: `a` rows' worth of the parent's factor.
//! Distances are relative to their mean in the tree: what all rows have in common is the hyperparameters'
//! business.
//!
//! All variances of a node are multiplied by the square of its factor, that of its mean as well as the noise.
//! So posterior means stay as they are, and so does the prior, far away from the data, where the factor is one.

use super::forest::{Forest, Kept, Run};
use super::gaussian::{self, Above, Hyperparameters, Messages};
use super::numbers::{Moments, Numbers};
use super::tree::Tree;
use crate::data::Scalar;
use crate::error::Result;
use crate::tree::{Kind, NodeId};

/// Rows that a parent's factor counts for (at least), `a` above.
pub(crate) const PRIOR: f64 = 10.0;

/// The factor on a node's variances, by tree and node; a parent's counts for `prior` rows.
///
/// # Errors
/// An interrupt.
pub(crate) fn estimate<S: Scalar>(
    forest: &Forest<Numbers>,
    kept: &Kept<S, Numbers>,
    messages: &[Messages],
    hyper: &Hyperparameters,
    prior: f64,
    run: &Run<'_>,
) -> Result<Vec<Vec<f64>>> {
    let lifetime = forest.settings.lifetime;
    run.map(kept.trees.len(), |i| {
        let tree = &kept.trees[i];
        let order = tree.arena.preorder();
        let above = gaussian::beliefs(tree, &messages[i], hyper, lifetime, &order);
        Ok(Sizes::of(tree, &order, &above, hyper.noise_variance, &forest.targets).smooth(tree, &order, prior))
    })
}

/// The sizes of what trees without a row make of it, summed over every node's rows.
pub(crate) struct Sizes {
    sums: Vec<f64>,
    /// Their mean in the tree.
    typical: f64,
}

/// The size of a distance from what was predicted, given its square over the variance.
fn size(ratio: f64) -> f64 {
    ratio.sqrt()
}

/// With residual `r` from a leaf's posterior mean and that mean's posterior variance `V`, the left-out
/// residual is `r / k` and its variance `s^2 / k`, `k = 1 - V / s^2`.
fn ratio(y: f64, own: Moments, n: f64, above: Above, noise_variance: f64) -> f64 {
    let all = noise_variance + n * above.variance;
    let k = (noise_variance + (n - 1.0) * above.variance) / all;
    let apart = (y - own.mean) + (own.mean - above.mean) * (noise_variance / all);
    apart * apart / (noise_variance * k)
}

impl Sizes {
    pub(crate) fn of<S: Scalar>(
        tree: &Tree<S, Numbers>,
        order: &[NodeId],
        above: &[Above],
        noise_variance: f64,
        targets: &[f64],
    ) -> Self {
        let arena = &tree.arena;
        let mut sums = vec![0.0; arena.n_indices()];
        let mut own = Vec::new();
        for &node in order.iter().rev() {
            sums[node.index()] = match arena.kind(node) {
                Kind::Split(left, right) => sums[left.index()] + sums[right.index()],
                Kind::Leaf => {
                    let (moments, n) = (tree.statistics.moments(node), arena.n_rows(node) as f64);
                    own.clear();
                    own.extend(arena.leaf_rows(node).map(|row| {
                        size(ratio(targets[row as usize], moments, n, above[node.index()], noise_variance))
                    }));
                    // In an order that does not depend on that of the rows' coming.
                    own.sort_unstable_by(f64::total_cmp);
                    own.iter().sum()
                }
            };
        }
        let root = order.first().copied();
        let typical = root.map_or(0.0, |root| sums[root.index()] / arena.n_rows(root) as f64);
        Self { sums, typical }
    }

    /// The factor on the variances at a leaf, without what one of its rows, of target `y`, says; `path` leads
    /// to the leaf from the root.
    pub(crate) fn without<S: Scalar>(
        &self,
        y: f64,
        path: &[NodeId],
        tree: &Tree<S, Numbers>,
        above: &[Above],
        noise_variance: f64,
        prior: f64,
    ) -> f64 {
        let (Some(&leaf), true) = (path.last(), self.typical > 0.0) else {
            return 1.0;
        };
        let arena = &tree.arena;
        let (moments, n) = (tree.statistics.moments(leaf), arena.n_rows(leaf) as f64);
        let own = size(ratio(y, moments, n, above[leaf.index()], noise_variance));
        let mut scale = 1.0;
        for &node in path {
            let others = (self.sums[node.index()] - own).max(0.0) / self.typical;
            scale = (prior * scale + others) / (prior + arena.n_rows(node) as f64 - 1.0);
        }
        scale * scale
    }

    fn smooth<S: Scalar>(&self, tree: &Tree<S, Numbers>, order: &[NodeId], prior: f64) -> Vec<f64> {
        let arena = &tree.arena;
        let mut scales = vec![1.0; arena.n_indices()];
        if self.typical.is_nan() || self.typical <= 0.0 {
            return scales;
        }
        for &node in order {
            let sizes = self.sums[node.index()] / self.typical;
            let own = (prior * scales[node.index()] + sizes) / (prior + arena.n_rows(node) as f64);
            scales[node.index()] = own;
            if let Kind::Split(left, right) = arena.kind(node) {
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

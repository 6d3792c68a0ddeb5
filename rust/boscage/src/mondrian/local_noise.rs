//! Noise that differs from place to place: each node's own, smoothed down the tree as the means are.
//!
//! A row's residual from its leaf's posterior mean, inflated by what fitting took from it, estimates the
//! noise there: with posterior variance `V` of the leaf's mean and noise `s^2`, a residual `r` has
//! expectation `E[r^2] = s^2 - V` under the model, so `e^2 = r^2 / (1 - V / s^2)` is unbiased for `s^2`.
//! From the root down, `s_j^2 = (a s_parent^2 + sum of e^2 in j) / (a + n_j)`: the posterior mean of a
//! scaled inverse chi-squared prior centred at the parent with `a` degrees of freedom.

use super::forest::{Forest, Kept};
use super::gaussian::{self, Hyperparameters, Messages};
use super::numbers::Numbers;
use super::tree::Tree;
use crate::control::map;
use crate::data::Scalar;
use crate::tree::{Kind, NodeId};

/// Degrees of freedom that a parent's noise counts for, `a` above.
const PRIOR: f64 = 20.0;

/// The noise variance at every node, by tree and node.
pub(crate) fn estimate<S: Scalar>(
    forest: &Forest<Numbers>,
    kept: &Kept<S, Numbers>,
    messages: &[Messages],
    hyper: &Hyperparameters,
    n_threads: usize,
) -> Vec<Vec<f64>> {
    let lifetime = forest.settings.lifetime;
    map(n_threads, kept.trees.len(), |i| {
        let tree = &kept.trees[i];
        let order = tree.arena.preorder();
        let posterior = gaussian::posterior(tree, &messages[i], hyper, lifetime, &order);
        smooth(tree, &order, &posterior, hyper.noise_variance)
    })
}

fn smooth<S: Scalar>(
    tree: &Tree<S, Numbers>,
    order: &[NodeId],
    posterior: &[(f64, f64)],
    noise_variance: f64,
) -> Vec<f64> {
    let arena = &tree.arena;
    // Sums from the leaves up, by node.
    let mut sums = vec![0.0; arena.capacity()];
    for (&node, &(mean, variance)) in order.iter().zip(posterior).rev() {
        sums[node.index()] = match arena.kind(node) {
            Kind::Split(left, right) => {
                sums[arena.below_skips(left).index()] + sums[arena.below_skips(right).index()]
            }
            _ => {
                let moments = tree.statistics.moments(node);
                let apart = moments.mean - mean;
                let residual = moments.squares + arena.n_rows(node) as f64 * apart * apart;
                residual / (1.0 - variance / noise_variance).max(0.05)
            }
        };
    }
    let mut noise = vec![noise_variance; arena.capacity()];
    for &node in order {
        let prior = noise[node.index()];
        let own = (PRIOR * prior + sums[node.index()]) / (PRIOR + arena.n_rows(node) as f64);
        noise[node.index()] = own;
        if let Kind::Split(left, right) = arena.kind(node) {
            noise[arena.below_skips(left).index()] = own;
            noise[arena.below_skips(right).index()] = own;
        }
    }
    noise
}

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

/// The noise variance at every node, by tree and site.
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
    let below = |child| arena.site(arena.below_skips(child)).index();
    // Sums from the leaves up, by site.
    let mut sums = vec![0.0; arena.n_sites()];
    for (&node, &(mean, variance)) in order.iter().zip(posterior).rev() {
        sums[arena.site(node).index()] = match arena.kind(node) {
            Kind::Split(left, right) => sums[below(left)] + sums[below(right)],
            _ => {
                let site = arena.site(node);
                let moments = tree.statistics.moments(site);
                let apart = moments.mean - mean;
                let residual = moments.squares + arena.n_rows_at(site) as f64 * apart * apart;
                residual / (1.0 - variance / noise_variance).max(0.05)
            }
        };
    }
    let mut noise = vec![noise_variance; arena.n_sites()];
    for &node in order {
        let site = arena.site(node);
        let prior = noise[site.index()];
        let own = (PRIOR * prior + sums[site.index()]) / (PRIOR + arena.n_rows_at(site) as f64);
        noise[site.index()] = own;
        if let Kind::Split(left, right) = arena.kind(node) {
            noise[below(left)] = own;
            noise[below(right)] = own;
        }
    }
    noise
}

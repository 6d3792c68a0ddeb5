//! Hyperparameters by the thesis' heuristic (section 6.3.2).

use crate::mondrian::regression::hierarchy::belief_propagation::{CoarsePrior, Hyperparameters};

/// The heuristic of section 6.3.2: `gamma_1 (1/2 + 1/K)` is the variance of the targets, the noise is
/// `gamma_1 / K` with `K = min(2000, 2 N)`, and `gamma_2 = W / (20 log2 N)`, `W` being the sum of the
/// weights (`D` in the thesis).
pub(crate) fn heuristic(mean: f64, variance: f64, n: f64, total_weight: f64) -> Hyperparameters {
    // No rows have no variance, and hardly any are as many as the formula is about.
    let n = n.max(1.0);
    let k = (2.0 * n).min(2000.0);
    // Targets that are all the same still need a proper prior.
    let variance = variance.max(f64::EPSILON * f64::EPSILON * mean * mean).max(1e-300);
    let gamma1 = variance / (0.5 + 1.0 / k);
    let gamma2 = total_weight / (20.0 * n.max(2.0).log2());
    Hyperparameters {
        mu: mean,
        gamma1,
        gamma2,
        noise_variance: gamma1 / k,
        delay: 0.0,
        coarse: CoarsePrior::NONE,
    }
}

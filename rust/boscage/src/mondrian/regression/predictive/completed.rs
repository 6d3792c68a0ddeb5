//! The predictive distribution of a row that lacks values: the mixture of those of its completions.

use crate::mondrian::regression::hierarchy::tree_predictive::Component;

/// Mean and variance of a mixture of distributions of equal weights, given theirs.
pub(in crate::mondrian::regression) fn mixed_moments(moments: &[(f64, f64)]) -> (f64, f64) {
    let n = moments.len() as f64;
    let mean = moments.iter().map(|(mean, _)| mean).sum::<f64>() / n;
    let variance = moments.iter().map(|(own, variance)| variance + (own - mean).powi(2)).sum::<f64>() / n;
    (mean, variance)
}

/// The components of a mixture of mixtures of equal weights.
pub(in crate::mondrian::regression) fn mixture(mixtures: &[Vec<Component>]) -> Vec<Component> {
    let n = mixtures.len() as f64;
    let all = mixtures.iter().flatten();
    all.map(|component| Component { weight: component.weight / n, ..*component }).collect()
}

//! Normal leaves of rows with weights: the noise of a row of weight `w` has variance `sigma^2 / w`.
//!
//! Given the other trees, a leaf's value depends on its rows through the sum of their weights and the weighted sum of
//! their residuals, which stand for the number of rows and the sum of residuals in the closed forms of eq. 4.9.

use std::ops::{Add, Sub};

use crate::bart::leaves::model::LeafModel;
use crate::bart::leaves::normal::LeafPosterior;
use crate::bart::prior::noise::log_likelihood;
use crate::random::keyed::Stream;

/// The sum of weights of some rows, and the weighted sum of their residuals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct WeightedSum {
    weight: f64,
    sum: f64,
}

impl WeightedSum {
    /// Differences of sums may have a weight just below zero.
    fn weight(self) -> f64 {
        self.weight.max(0.0)
    }
}

impl Add for WeightedSum {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, sum: self.sum + other.sum }
    }
}

impl Sub for WeightedSum {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { weight: self.weight - other.weight, sum: self.sum - other.sum }
    }
}

/// Targets, their weights, and the posterior of leaf values.
#[derive(Debug, Clone)]
pub(crate) struct WeightedNormal {
    pub(crate) targets: Vec<f64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) leaf: LeafPosterior,
    /// Half the sum of the logarithms of the weights, which is part of every log likelihood.
    half_log_weights: f64,
}

impl WeightedNormal {
    pub(crate) fn new(targets: Vec<f64>, weights: Vec<f64>, leaf: LeafPosterior) -> Self {
        let half_log_weights = 0.5 * weights.iter().map(|&w| libm::log(w)).sum::<f64>();
        Self { targets, weights, leaf, half_log_weights }
    }

    /// The weighted sum of squared residuals.
    pub(crate) fn squares(&self, sums: &[f64]) -> f64 {
        let rows = self.targets.iter().zip(&self.weights).zip(sums);
        rows.map(|((y, w), sum)| w * (y - sum) * (y - sum)).sum()
    }
}

impl LeafModel for WeightedNormal {
    type Stats = WeightedSum;

    fn n_rows(&self) -> usize {
        self.targets.len()
    }

    fn stats(&self, row: usize, others: f64) -> WeightedSum {
        let weight = self.weights[row];
        WeightedSum { weight, sum: weight * (self.targets[row] - others) }
    }

    fn log_marginal(&self, stats: WeightedSum) -> f64 {
        self.leaf.log_likelihood(stats.weight(), stats.sum)
    }

    fn draw(&self, stats: WeightedSum, stream: &mut Stream) -> f64 {
        self.leaf.draw(stats.weight(), stats.sum, stream)
    }

    fn log_likelihood(&self, sums: &[f64]) -> f64 {
        log_likelihood(sums.len(), self.squares(sums), self.leaf.noise.sqrt()) + self.half_log_weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// Compares the marginal likelihood with the integral of eq. 4.9 on a grid.
    #[test]
    fn the_likelihood_is_the_integral_over_the_leafs_value() {
        let (sigma, sigma_mu): (f64, f64) = (0.7, 0.4);
        let (targets, weights) = (vec![0.3, -0.2, 1.1], vec![0.2, 1.5, 1.3]);
        let model = WeightedNormal::new(targets, weights, LeafPosterior::new(sigma, sigma_mu));
        let density =
            |x: f64, mean: f64, sd: f64| libm::exp(-0.5 * ((x - mean) / sd).powi(2)) / (TAU.sqrt() * sd);
        let step = 1e-3;
        let total: f64 = (-6000..6000)
            .map(|i| {
                let mu = f64::from(i) * step;
                step * libm::exp(model.log_likelihood(&[mu; 3]) - model.log_likelihood(&[0.0; 3]))
                    * density(mu, 0.0, sigma_mu)
            })
            .sum();
        let rows = (0..3).map(|row| model.stats(row, 0.0)).fold(WeightedSum::default(), Add::add);
        assert!((model.log_marginal(rows) - total.ln()).abs() < 1e-9);
        let rows = model.targets.iter().zip(&model.weights);
        let expected: f64 = rows.map(|(&y, w)| density(y, 0.5, sigma / w.sqrt()).ln()).sum();
        assert!((model.log_likelihood(&[0.5; 3]) - expected).abs() < 1e-12);
    }
}

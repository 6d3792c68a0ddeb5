//! Leaves whose targets are residuals with noise of known variance (eq. 4.9).

use std::cell::Cell;

use crate::bayes::leaf::model::{ConjugateLeaf, SubtractedCut};
use crate::random::keyed::Stream;

use crate::bart::state::row_passes::total;
use crate::bart::state::row_passes_simd::LANES;
use crate::random::distributions::normal;

/// Leaves with `R_n ~ N(mu, sigma^2)` and `mu ~ N(0, sigma_mu^2)` (eq. 4.5).
///
/// Let a leaf have `n` residuals with sum `s`, and let `v = sigma^2 + n sigma_mu^2`. The marginal likelihood is
/// `prod N(R_n | 0, sigma^2) sqrt(sigma^2 / v) exp(sigma_mu^2 s^2 / (2 sigma^2 v))`, and the posterior is
/// `N(sigma_mu^2 s / v, sigma^2 sigma_mu^2 / v)`. If rows have weights, `n` is the sum of weights and `s` the weighted sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct LeafPosterior {
    pub(crate) noise: f64,
    pub(crate) spread: f64,
}

impl LeafPosterior {
    /// The posterior for given `sigma` and `sigma_mu`.
    pub(crate) fn new(sigma: f64, sigma_mu: f64) -> Self {
        Self { noise: sigma * sigma, spread: sigma_mu * sigma_mu }
    }

    /// Logarithm of the marginal likelihood (eq. 4.9) without its first product, which is the same for all trees.
    pub(crate) fn log_likelihood(&self, n: f64, sum: f64) -> f64 {
        let (constant, factor) = self.terms(n);
        constant + factor * sum * sum
    }

    /// The log likelihood for sum zero, and the coefficient of the squared sum.
    fn terms(&self, n: f64) -> (f64, f64) {
        let v = self.noise + n * self.spread;
        (0.5 * libm::log(self.noise / v), 0.5 * self.spread / (self.noise * v))
    }

    /// Draws `mu`.
    pub(crate) fn draw(&self, n: f64, sum: f64, stream: &mut Stream) -> f64 {
        let v = self.noise + n * self.spread;
        self.spread * sum / v + (self.noise * self.spread / v).sqrt() * normal(stream)
    }
}

/// Marginal likelihoods of leaves, with a table by number of rows, since a sweep needs the same terms
/// repeatedly.
#[derive(Debug, Default)]
pub(crate) struct LeafLikelihoods {
    posterior: LeafPosterior,
    /// By number of rows; NaN until computed.
    terms: Vec<Cell<(f64, f64)>>,
}

impl LeafLikelihoods {
    /// Clears the table, and makes room for leaves with up to this many rows.
    pub(crate) fn reset(&mut self, posterior: LeafPosterior, n_rows: usize) {
        self.posterior = posterior;
        self.terms.clear();
        self.terms.resize(n_rows + 1, Cell::new((f64::NAN, f64::NAN)));
    }

    /// Equal to [`LeafPosterior::log_likelihood`], bit for bit.
    pub(crate) fn log(&self, n: u32, sum: f64) -> f64 {
        let known = &self.terms[n as usize];
        if known.get().0.is_nan() {
            known.set(self.posterior.terms(f64::from(n)));
        }
        let (constant, factor) = known.get();
        constant + factor * sum * sum
    }
}

/// The same model as a leaf model of Bayesian trees, for given residuals.
#[derive(Debug)]
pub(crate) struct ResidualLeaf<'a> {
    pub(crate) posterior: LeafPosterior,
    pub(crate) residuals: &'a [f64],
}

/// Number and sum of residuals.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ResidualSum {
    n: u32,
    sum: f64,
}

impl ConjugateLeaf for ResidualLeaf<'_> {
    type Stats = ResidualSum;
    type MovingCut<'a>
        = SubtractedCut<'a, Self>
    where
        Self: 'a;

    fn empty(&self) -> ResidualSum {
        ResidualSum::default()
    }

    fn add(&self, stats: &mut ResidualSum, row: u32) {
        stats.n += 1;
        stats.sum += self.residuals[row as usize];
    }

    /// Summed in several lanes, so that additions do not depend on each other.
    fn of_rows(&self, rows: impl IntoIterator<Item = u32>) -> ResidualSum {
        let mut rows = rows.into_iter();
        let (mut n, mut lanes) = (0, [0.0; LANES]);
        'all: loop {
            for lane in &mut lanes {
                let Some(row) = rows.next() else { break 'all };
                *lane += self.residuals[row as usize];
                n += 1;
            }
        }
        ResidualSum { n, sum: total(&lanes) }
    }

    fn rest(&self, all: &ResidualSum, part: &ResidualSum) -> ResidualSum {
        ResidualSum { n: all.n - part.n, sum: all.sum - part.sum }
    }

    fn log_likelihood(&self, stats: &ResidualSum) -> f64 {
        self.posterior.log_likelihood(f64::from(stats.n), stats.sum)
    }

    fn moving_cut<'a>(&'a self, all: &ResidualSum) -> SubtractedCut<'a, Self> {
        SubtractedCut::new(self, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    /// Compares the closed form with the integral of eq. 4.9 on a grid, without the omitted product.
    #[test]
    fn likelihood_and_posterior_are_integrals_over_mu() {
        let residuals = [0.3, -0.2, 1.1];
        let (sigma, sigma_mu) = (0.7, 0.4);
        let leaf = LeafPosterior::new(sigma, sigma_mu);
        let density =
            |x: f64, mean: f64, sd: f64| libm::exp(-0.5 * ((x - mean) / sd).powi(2)) / (TAU.sqrt() * sd);
        let (mut total, mut mean) = (0.0, 0.0);
        let step = 1e-3;
        for i in -6000..6000 {
            let mu = f64::from(i) * step;
            let of_rows: f64 =
                residuals.iter().map(|&r| density(r, mu, sigma) / density(r, 0.0, sigma)).product();
            total += step * of_rows * density(mu, 0.0, sigma_mu);
            mean += step * mu * of_rows * density(mu, 0.0, sigma_mu);
        }
        let sum = residuals.iter().sum();
        assert!((leaf.log_likelihood(3.0, sum) - total.ln()).abs() < 1e-9);
        let mut likelihoods = LeafLikelihoods::default();
        likelihoods.reset(leaf, 3);
        // Once computed, and once read from the table.
        for _ in 0..2 {
            assert_eq!(likelihoods.log(3, sum), leaf.log_likelihood(3.0, sum));
        }
        let mut stream = Stream::new(1, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| leaf.draw(3.0, sum, &mut stream)).collect();
        let found = draws.iter().sum::<f64>() / 1e5;
        assert!((found - mean / total).abs() < 5.0 * sigma_mu / 1e5f64.sqrt(), "{found}");
    }
}

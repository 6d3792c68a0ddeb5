//! The observed targets given the sum of trees: numbers with normal noise (eq. 4.2), or two classes (probit).

use crate::bart::prior::noise::{VariancePrior, log_likelihood};
use crate::bart::state::row_passes::squares;
use crate::math::special_functions::normal_cdf;
use crate::random::distributions::normal_above;
use crate::random::keyed::Stream;

/// Targets in the units of the chain, `(y - centre) / scale`, and the scales of the priors.
#[derive(Debug)]
pub(crate) struct ScaledProblem<R> {
    pub(crate) targets: Vec<f64>,
    pub(crate) centre: f64,
    pub(crate) scale: f64,
    /// The starting value of the noise.
    pub(crate) sigma: f64,
    pub(crate) sigma_mu: f64,
    pub(crate) response: R,
}

/// The part of a Gibbs sweep other than the trees. Given it, targets are normal with standard deviation
/// `sigma`.
pub(crate) trait Response {
    /// Draws `sigma` (Algorithm 4.1, line 4) and latent targets, given targets minus the sum of trees.
    fn draw(&mut self, residuals: &mut [f64], sigma: f64, stream: &mut Stream) -> f64;

    /// Logarithm of the likelihood of the observations.
    fn log_likelihood(&self, residuals: &[f64], sigma: f64) -> f64;

    /// Latent targets.
    fn latent(&self) -> &[f64] {
        &[]
    }

    /// Sets the latent targets; their number must not change.
    fn set_latent(&mut self, latent: &[f64]) {
        let _ = latent;
    }
}

/// Normal noise (eq. 4.2) with a known standard deviation or a prior.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NormalResponse {
    pub(crate) prior: Option<VariancePrior>,
}

impl Response for NormalResponse {
    fn draw(&mut self, residuals: &mut [f64], sigma: f64, stream: &mut Stream) -> f64 {
        self.prior.map_or(sigma, |prior| prior.draw(residuals.len(), squares(residuals), stream))
    }

    fn log_likelihood(&self, residuals: &[f64], sigma: f64) -> f64 {
        log_likelihood(residuals.len(), squares(residuals), sigma)
    }
}

/// Classes as signs of the latent `offset + f(x) + e`, `e ~ N(0, 1)`, which is sampled (Albert and Chib
/// 1993).
#[derive(Debug, Clone)]
pub(crate) struct ProbitResponse {
    pub(crate) positive: Vec<bool>,
    pub(crate) offset: f64,
    /// The current targets of the trees: the latent numbers minus `offset`.
    pub(crate) latent: Vec<f64>,
}

impl Response for ProbitResponse {
    fn draw(&mut self, residuals: &mut [f64], sigma: f64, stream: &mut Stream) -> f64 {
        for ((r, z), &positive) in residuals.iter_mut().zip(&mut self.latent).zip(&self.positive) {
            let f = *z - *r;
            *r = latent_residual(positive, self.offset + f, stream);
            *z = f + *r;
        }
        sigma
    }

    fn latent(&self) -> &[f64] {
        &self.latent
    }

    fn set_latent(&mut self, latent: &[f64]) {
        self.latent.copy_from_slice(latent);
    }

    fn log_likelihood(&self, residuals: &[f64], _: f64) -> f64 {
        let rows = residuals.iter().zip(&self.latent).zip(&self.positive);
        rows.map(|((r, z), &positive)| log_probability(positive, self.offset + z - r)).sum()
    }
}

/// Draws a latent number of a row's class, minus its mean.
pub(crate) fn latent_residual(positive: bool, mean: f64, stream: &mut Stream) -> f64 {
    if positive { normal_above(-mean, stream) } else { -normal_above(mean, stream) }
}

/// Logarithm of the probability of a row's class, given the mean of its latent numbers.
pub(crate) fn log_probability(positive: bool, mean: f64) -> f64 {
    libm::log(normal_cdf(if positive { mean } else { -mean }).max(f64::MIN_POSITIVE))
}

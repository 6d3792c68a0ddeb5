//! The state of a chain: sums of trees and all other unknowns.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::kernels::context::Odds;
use crate::bart::kernels::table::StepCounts;
use crate::bart::leaves::model::LeafModel;
use crate::bart::response::{Response, ScaledProblem};
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;

/// The state of a chain, and a sweep over it.
pub(crate) trait ChainState {
    /// Draws all unknowns once (Algorithm 4.1, lines 4 to 8).
    ///
    /// An interrupt, or marginal likelihoods that are not finite; after either the state is invalid.
    /// An interrupt, or a model whose marginal likelihoods are not finite; the state is invalid after either.
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()>;

    /// All trees, those of the first sum first.
    fn trees(&self) -> Vec<&TreeState>;

    /// Sets the logarithms of the features' weights for later sweeps.
    fn set_log_weights(&mut self, log_weights: &[f64]);

    /// The unit of leaf values, in the user's units.
    fn scale(&self) -> f64 {
        1.0
    }

    /// Standard deviation of the noise in the user's units.
    fn sigma(&self) -> f64 {
        1.0
    }

    /// Shrinkage of leaf values, if it is sampled.
    fn k(&self) -> Option<f64> {
        None
    }

    /// Logarithm of the likelihood of the observations.
    fn log_likelihood(&self) -> f64;

    /// How often each kind of step was tried, and how often it changed a tree.
    fn acceptance(&self) -> StepCounts;

    /// All numbers of the state except the trees.
    fn numbers(&self) -> Vec<f64>;

    /// Restores the trees and numbers of an earlier state. Returns false if their number is wrong.
    fn restore(&mut self, trees: Vec<TreeState>, numbers: &[f64], acceptance: StepCounts) -> bool;
}

/// Normal leaves, in the units of the chain.
#[derive(Debug)]
pub(crate) struct NormalChainState<'a, R> {
    pub(crate) backfitter: NormalBackfitter<'a>,
    pub(crate) response: R,
    pub(crate) scale: f64,
}

impl<'a, R: Response + Clone> NormalChainState<'a, R> {
    pub(crate) fn new(backfitter: NormalBackfitter<'a>, problem: &ScaledProblem<R>) -> Self {
        Self { backfitter, response: problem.response.clone(), scale: problem.scale }
    }
}

impl<R: Response> ChainState for NormalChainState<'_, R> {
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        let backfitter = &mut self.backfitter;
        backfitter.sigma = self.response.draw(&mut backfitter.residuals, backfitter.sigma, stream);
        backfitter.sweep(stream, control)
    }

    fn trees(&self) -> Vec<&TreeState> {
        self.backfitter.trees.iter().collect()
    }

    fn set_log_weights(&mut self, log_weights: &[f64]) {
        Odds::set_log_weights(&mut self.backfitter.odds, log_weights);
    }

    fn scale(&self) -> f64 {
        self.scale
    }

    fn sigma(&self) -> f64 {
        self.scale * self.backfitter.sigma
    }

    fn k(&self) -> Option<f64> {
        self.backfitter.learned_k()
    }

    fn log_likelihood(&self) -> f64 {
        let residuals = &self.backfitter.residuals;
        let log_likelihood = self.response.log_likelihood(residuals, self.backfitter.sigma);
        log_likelihood - residuals.len() as f64 * libm::log(self.scale)
    }

    fn acceptance(&self) -> StepCounts {
        self.backfitter.acceptance
    }

    fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.backfitter.sigma];
        numbers.extend(&self.backfitter.residuals);
        numbers.extend(self.response.latent());
        numbers.extend(self.backfitter.spread.learned());
        numbers
    }

    fn restore(&mut self, trees: Vec<TreeState>, numbers: &[f64], acceptance: StepCounts) -> bool {
        let n = self.backfitter.residuals.len();
        let latent = n + 1..n + 1 + self.response.latent().len();
        let (spread, end) = match self.backfitter.spread.learned() {
            Some(_) => (numbers.get(latent.end).copied(), latent.end + 1),
            None => (Some(self.backfitter.spread.sigma_mu), latent.end),
        };
        let Some(sigma_mu) = spread.filter(|spread| *spread > 0.0) else { return false };
        if trees.len() != self.backfitter.trees.len() || numbers.len() != end || numbers[0] <= 0.0 {
            return false;
        }
        (self.backfitter.trees, self.backfitter.acceptance) = (trees, acceptance);
        (self.backfitter.sigma, self.backfitter.spread.sigma_mu) = (numbers[0], sigma_mu);
        self.backfitter.residuals.copy_from_slice(&numbers[1..=n]);
        self.response.set_latent(&numbers[latent]);
        true
    }
}

/// A single sum of trees with leaves of any kind.
#[derive(Debug)]
pub(crate) struct GeneralChainState<'a, M: LeafModel> {
    pub(crate) backfitter: GeneralBackfitter<'a, M>,
    pub(crate) model: M,
}

impl<M: LeafModel> ChainState for GeneralChainState<'_, M> {
    fn sweep(&mut self, stream: &mut Stream, control: &Control) -> Result<()> {
        self.model.update(&self.backfitter.sums, stream);
        self.backfitter.sweep(&self.model, stream, control)
    }

    fn trees(&self) -> Vec<&TreeState> {
        self.backfitter.trees.iter().collect()
    }

    fn set_log_weights(&mut self, log_weights: &[f64]) {
        Odds::set_log_weights(&mut self.backfitter.odds, log_weights);
    }

    fn log_likelihood(&self) -> f64 {
        self.model.log_likelihood(&self.backfitter.sums)
    }

    fn acceptance(&self) -> StepCounts {
        self.backfitter.acceptance
    }

    fn numbers(&self) -> Vec<f64> {
        self.backfitter.sums.clone()
    }

    fn restore(&mut self, trees: Vec<TreeState>, numbers: &[f64], acceptance: StepCounts) -> bool {
        let fits = trees.len() == self.backfitter.trees.len() && numbers.len() == self.backfitter.sums.len();
        if fits {
            (self.backfitter.trees, self.backfitter.acceptance) = (trees, acceptance);
            self.backfitter.sums.copy_from_slice(numbers);
        }
        fits
    }
}

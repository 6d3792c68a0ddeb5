//! The state of a chain with normal leaves.

use crate::bart::backfitting::normal::NormalBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::kernel_table::StepCounts;
use crate::bart::kernels::context::Odds;
use crate::bart::response::{Response, ScaledProblem};
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;

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

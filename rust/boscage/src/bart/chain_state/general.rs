//! The state of a chain with leaves of any kind.

use crate::bart::backfitting::general::GeneralBackfitter;
use crate::bart::chain_state::ChainState;
use crate::bart::kernel_table::StepCounts;
use crate::bart::kernels::context::Odds;
use crate::bart::leaves::model::LeafModel;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;

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

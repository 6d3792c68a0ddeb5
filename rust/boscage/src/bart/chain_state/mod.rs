//! The state of a chain: sums of trees and all other unknowns (Algorithm 4.1).
//!
//! A sweep draws the unknowns of the likelihood given all trees, and then each tree given the others, by
//! [`backfitting`](crate::bart::backfitting). What is drawn beside trees depends on the likelihood:
//!
//! - `normal`: the noise `sigma` (line 4), or the latent numbers of two classes;
//! - `weighted_normal`: the same for rows with weights, of which two classes have several latent numbers each
//!   (`weighted_classes`);
//! - `multinomial`: a latent number for each row, given which the sums of the classes are independent;
//! - `general`: what a [`LeafModel`](crate::bart::leaves::model::LeafModel) updates.

pub(crate) mod general;
pub(crate) mod multinomial;
pub(crate) mod normal;
pub(crate) mod weighted_classes;
pub(crate) mod weighted_normal;

use crate::bart::kernel_table::StepCounts;
use crate::bart::state::tree::TreeState;
use crate::control::Control;
use crate::error::Result;
use crate::random::keyed::Stream;

/// The state of a chain, and a sweep over it.
pub(crate) trait ChainState {
    /// Draws all unknowns once (Algorithm 4.1, lines 4 to 8).
    ///
    /// # Errors
    /// An interrupt, or marginal likelihoods that are not finite; after either the state is invalid.
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

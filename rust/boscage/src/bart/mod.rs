//! Bayesian additive regression trees (thesis chapter 4): a target is a sum of many small trees, and noise (eq. 4.2).
//!
//! The posterior (eq. 4.6) is sampled by Bayesian backfitting (Algorithm 4.1): a sweep draws the noise given all trees,
//! and then each tree given what the other trees leave of the targets (eq. 4.7), its leaf values integrated out (eqs. 4.8
//! and 4.9), and last its leaf values.
//!
//! From the bottom up: `settings` and `prior` hold the priors (section 4.2.4). `state` is a tree as a chain holds it, with
//! the leaf of every row, and the passes over rows, where the time goes. `leaves` says how likely the rows of a leaf are:
//! normal leaves have their own fast code; any other [`LeafModel`] is swept over by the same kernels. `kernels` are the
//! ways to change a tree, listed in one table. `backfitting` sweeps over all trees. `response` is what lies between the sum
//! of trees and the data: noise, or the sign of a latent number. A `sampler` joins these to the state of a chain, and a
//! `chain` runs it, keeps draws and goes on later. `draws` holds drawn trees compactly and predicts from them; `regressor`,
//! `classifier` and `sum_of_trees` are what users call.

pub(crate) mod backfitting;
pub(crate) mod chain;
pub(crate) mod classifier;
pub(crate) mod draws;
pub(crate) mod export;
pub(crate) mod kernels;
pub(crate) mod leaves;
pub(crate) mod prior;
pub(crate) mod regressor;
pub(crate) mod response;
pub(crate) mod sampler;
pub(crate) mod settings;
pub(crate) mod state;
pub(crate) mod sum_of_trees;

#[cfg(test)]
pub(crate) mod tests;

pub use chain::{BartTrace, Sweep, Watch};
pub use classifier::BartClassifier;
pub use export::DrawnTree;
pub use kernels::table::{BartStep, Kernel, Kernels, StepCounts};
pub use leaves::model::LeafModel;
pub use leaves::poisson::{Events, PoissonLeaves};
pub use regressor::BartRegressor;
pub use settings::{BartSettings, Sparsity};
pub use sum_of_trees::SumOfTrees;

//! Bayesian additive regression trees (thesis chapter 4): sums of trees, sampled one tree after the other.
//!
//! `settings` and `noise` hold the priors of section 4.2.4. A chain (`chain`) has a forest of trees with their rows
//! (`tree_state`), which a `sweep` changes (Algorithm 4.1): by `growprune`, on sums that `passes` over rows gather
//! (`few_leaves` in vectors), or by the samplers of Bayesian trees given partial residuals (`whole_tree`; of a
//! `subtree` alone `regrow` and `edit`), Particle Gibbs from the prior by its own (`particles`), which also draws the
//! trees that chains start from. `response` is what lies between the sum and the data. What is kept of it are `draws`,
//! from which `regressor` and `classifier` predict.
//!
//! Kernels ask `evidence` about leaves. Those that are not normal implement `leaf_model` (`log_linear`,
//! `multinomial`, a user's), and are swept over by `model_forest`. `sampler` is what all of these are to a chain.
//! `dimension_order` draws along which feature a node is cut. `sparse` learns the weights of features, for which
//! `constant` finds those that do not vary in a node.

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

//! Bayesian additive regression trees (thesis chapter 4): sums of trees, sampled one tree after the other.
//!
//! `settings` and `noise` hold the priors of section 4.2.4. A chain (`chain`) has a forest of trees with their rows
//! (`tree_state`), which a `sweep` changes (Algorithm 4.1): by `growprune`, on sums that `passes` over rows gather,
//! or by the samplers of Bayesian trees given partial residuals (`whole_tree`). `response` is what lies between the
//! sum and the data. What is kept of it are `draws`, from which `regressor` and `classifier` predict.

mod chain;
mod classifier;
mod context;
mod draws;
mod evidence;
mod export;
mod growprune;
mod leaf;
mod noise;
mod passes;
mod random;
mod regressor;
mod regrow;
mod response;
mod settings;
mod shift;
mod sweep;
mod tree_state;
mod whole_tree;

#[cfg(test)]
mod tests;

pub(crate) use chain::SumsOfTrees;
pub(crate) use draws::{DrawnNode, Draws, LEAF};

pub use chain::BartTrace;
pub use classifier::BartClassifier;
pub use export::DrawnTree;
pub use regressor::BartRegressor;
pub use settings::{BartSettings, Kernels};

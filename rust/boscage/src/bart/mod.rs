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
//! `dimension_order` draws along which dimension a node is cut. `sparse` learns the weights of dimensions, for which
//! `constant` finds those that do not vary in a node.

mod chain;
mod classifier;
mod constant;
mod context;
mod dimension_order;
mod draws;
mod edit;
mod evidence;
mod export;
mod few_leaves;
mod growprune;
mod guide;
mod leaf;
mod leaf_model;
mod log_linear;
mod model_forest;
mod multinomial;
mod noise;
mod particles;
mod passes;
mod random;
mod regressor;
mod regrow;
mod reroute;
mod response;
mod sampler;
mod settings;
mod shift;
mod sparse;
mod subtree;
mod sum_of_trees;
mod sweep;
mod tree_state;
mod whole_tree;

#[cfg(test)]
mod feature_tests;
#[cfg(test)]
mod joint_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod tests;

pub(crate) use chain::{ChainEnd, SumsOfTrees};
pub(crate) use draws::{DrawnNode, Draws, LEAF};
pub(crate) use settings::MOST_BY_FEATURE;
pub(crate) use sweep::N_MOVES;
pub(crate) use tree_state::{Kind, TreeState};

pub use chain::{BartTrace, Sweep, Watch};
pub use classifier::BartClassifier;
pub use export::DrawnTree;
pub use leaf_model::LeafModel;
pub use log_linear::{Events, PoissonLeaves};
pub use regressor::BartRegressor;
pub use settings::{BartSettings, Kernels, Sparsity};
pub use sum_of_trees::SumOfTrees;

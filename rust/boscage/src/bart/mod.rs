//! Bayesian additive regression trees (thesis chapter 4): a target is a sum of many small trees, and noise (eq. 4.2).
//!
//! The model of a target `y` at features `x` is `y = sum_m g(x; T_m, mu_m) + e`, `e ~ N(0, sigma^2)`
//! (eq. 4.2), where `g` is the value of the leaf of tree `T_m` that contains `x` (eq. 4.1). The prior of each
//! tree is that of chapter 3 (eqs. 4.3 and 4.4), and leaf values have independent normal priors (eq. 4.5), so
//! narrow that each tree explains a small part of the targets.
//!
//! The posterior (eq. 4.6) is sampled by Bayesian backfitting (Algorithm 4.1). A sweep draws the noise given
//! all trees, and then each tree given the others: a kernel changes the tree given its partial residuals
//! (eq. 4.7) under the posterior with the leaf values integrated out (eqs. 4.8 and 4.9), and then the leaf
//! values are drawn.
//!
//! From the bottom up:
//!
//! - `kernel_table` names the kernels, the ways to change a tree.
//! - `settings` and `prior` hold the priors (section 4.2.4).
//! - `state` is a tree as a chain holds it, with the leaf of every row, and the passes over rows, in which a
//!   sweep spends most of its time.
//! - `leaves` computes marginal likelihoods and draws of leaf values. Normal leaves have specialised code;
//!   the same kernels change trees with leaves of any other [`LeafModel`].
//! - `kernels` change one tree given the others.
//! - `backfitting` is a sweep over all trees.
//! - `response` relates the sum of trees to the data: normal noise, or the sign of a latent number.
//! - `chain_state` joins these to the state of a chain. `chain` runs it, keeps draws, and continues a chain of
//!   an earlier fit.
//! - `draws` stores drawn trees compactly and predicts from them. `posterior` returns them as arrays, explains
//!   their predictions, and has the public models.

pub(crate) mod backfitting;
pub(crate) mod chain;
pub(crate) mod chain_state;
pub(crate) mod draws;
pub(crate) mod kernel_table;
pub(crate) mod kernels;
pub(crate) mod leaves;
pub(crate) mod posterior;
pub(crate) mod prior;
pub(crate) mod response;
pub(crate) mod settings;
pub(crate) mod state;

#[cfg(test)]
pub(crate) mod tests;

pub use chain::{BartTrace, Sweep, Watch};
pub use kernel_table::{BartStep, Kernel, Kernels, StepCounts};
pub use leaves::model::LeafModel;
pub use leaves::poisson::{Events, PoissonLeaves};
pub use posterior::classifier::BartClassifier;
pub use posterior::export::{DrawnTree, SharedTree};
pub use posterior::regressor::BartRegressor;
pub use posterior::sum_of_trees::SumOfTrees;
pub use settings::{BartSettings, Sparsity};

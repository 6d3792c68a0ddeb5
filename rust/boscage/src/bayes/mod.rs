//! Bayesian decision trees (thesis chapter 3): a prior over trees, conjugate leaves, and samplers of the posterior.
//!
//! The joint density of the targets `Y` and a tree `T` given the features `X` (eq. 3.1) is
//!
//! `p(Y, T | X) = p(T | X) prod_{leaves j} l(Y_j | X_j)`,
//!
//! the prior of the tree times the marginal likelihood of each leaf. Under the prior (eq. 3.4) a node of
//! depth `d` whose rows can be split is split with probability `alpha_s / (1 + d)^beta_s` (eq. 3.3), along a
//! feature drawn from those that vary among its rows, at a threshold drawn uniformly from the range of that
//! feature. The parameters of the leaves are integrated out in closed form (eq. 3.2 for classes). Thresholds
//! in the same gap between rows split the rows alike, so the samplers choose among gaps, and then draw the
//! threshold uniformly in its gap.
//!
//! Values of features may be missing. A feature with missing values is two columns of the table, one for each side
//! to which these values may go (`data/sorted_columns`). A cut that separates missing from present values is one more
//! gap (`data/sorted_column` has the prior). Samplers know only columns, each of which has a weight; finished trees
//! have features and sides again (`tree`).
//!
//! - `prior` has the prior of trees, `leaf` the models of the leaves, `cuts` the gaps of a node with their
//!   weights, and `target` joins them to the posterior that is sampled.
//! - `smc` grows weighted trees from the root (Algorithm 3.1), or does so with one tree retained (conditional
//!   SMC, Algorithm 4.2). `mcmc` changes whole trees (Chipman et al. 1998).
//! - Both samplers return trees in preorder (`tree`). `log_posterior` computes the posterior probability of each.
//! - `posterior` gives these trees their weights, predicts from them, and has the public models.
//! - `testing` computes the exact posterior on small data, by a recursion over sets of rows, for the tests.

pub(crate) mod cuts;
pub(crate) mod leaf;
pub(crate) mod log_posterior;
pub(crate) mod mcmc;
pub(crate) mod posterior;
pub(crate) mod prior;
pub(crate) mod smc;
pub(crate) mod target;
pub(crate) mod tree;

#[cfg(test)]
pub(crate) mod testing;

pub use leaf::normal::NormalPrior;
pub use mcmc::moves::Move;
pub use mcmc::{Acceptance, Draw, McmcSettings};
pub use posterior::bayesian_trees::BayesianTrees;
pub use posterior::classifier::BayesianTreeClassifier;
pub use posterior::regressor::{BayesianTreeRegressor, Students};
pub use posterior::weighted_trees::{ChainReport, IslandReport, PosteriorTree, Report, Sampler};
pub use prior::{ChipmanPrior, TreePrior};
pub use smc::island::Stage;
pub use smc::proposals::Proposal;
pub use smc::resampling::Resampling;
pub use smc::settings::{CandidateOrder, Expansion, IslandWeights, SmcSettings};

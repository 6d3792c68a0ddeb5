//! Bayesian decision trees (thesis chapter 3): a prior over trees, conjugate leaves, and samplers of the posterior.
//!
//! The joint density of targets and tree is the prior of the tree (eq. 3.4) times the marginal likelihoods of its leaves
//! (eq. 3.1). `prior` says how readily nodes split (eq. 3.3), `leaf` how likely the rows of a leaf are (eq. 3.2 for
//! classes), `cuts` which cuts the rows of a node allow, and `target` joins them.
//!
//! `smc` grows weighted trees from the root (Algorithm 3.1), plainly or with one tree retained (Algorithm 4.2); `mcmc`
//! changes whole trees (Chipman et al. 1998). Both give `weighted_trees` in preorder (`tree`), of which `log_posterior` says
//! how probable each is. `posterior` predicts from them whatever their leaves are, `classifier` and `regressor` for classes
//! and for numbers. `testing` has the exact posterior on small data, by a recursion over sets of rows.

pub(crate) mod classifier;
pub(crate) mod cuts;
pub(crate) mod leaf;
pub(crate) mod log_posterior;
pub(crate) mod mcmc;
pub(crate) mod posterior;
pub(crate) mod prior;
pub(crate) mod regressor;
pub(crate) mod smc;
pub(crate) mod target;
pub(crate) mod tree;
pub(crate) mod weighted_trees;

#[cfg(test)]
pub(crate) mod testing;

pub use classifier::BayesianTreeClassifier;
pub use leaf::normal::NormalPrior;
pub use mcmc::moves::Move;
pub use mcmc::{Acceptance, Draw, McmcSettings};
pub use posterior::BayesianTrees;
pub use prior::{ChipmanPrior, TreePrior};
pub use regressor::{BayesianTreeRegressor, Students};
pub use smc::island::Stage;
pub use smc::proposals::Proposal;
pub use smc::resampling::Resampling;
pub use smc::settings::{CandidateOrder, Expansion, IslandWeights, SmcSettings};
pub use weighted_trees::{ChainReport, IslandReport, PosteriorTree, Report, Sampler};

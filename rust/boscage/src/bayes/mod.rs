//! Bayesian decision trees (thesis chapter 3): a prior over trees, conjugate leaves, and samplers.
//!
//! `prior` and `leaf` say what is believed, `table` (with `ties`) and `candidates` what rows allow, `target` is the
//! posterior of these. `smc` grows weighted trees from the root (`proposals`, `weights`, `nodes`, `particle`);
//! `mcmc` changes whole trees (`state`). `log_posterior` says how probable the trees of both are.

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

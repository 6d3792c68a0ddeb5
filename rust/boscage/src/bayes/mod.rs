//! Bayesian decision trees (thesis chapter 3): a prior over trees, conjugate leaves, and samplers.
//!
//! `prior` and `leaf` say what is believed, `table` (with `ties`) and `candidates` what rows allow, `target` is the
//! posterior of these. `smc` grows weighted trees from the root (`proposals`, `weights`, `nodes`, `particle`);
//! `mcmc` changes whole trees (`state`). `log_posterior` says how probable the trees of both are.

mod candidates;
mod classifier;
mod dirichlet;
mod ensemble;
mod leaf;
mod limits;
mod log_posterior;
mod mcmc;
mod nodes;
mod normal;
mod particle;
mod posterior;
mod prior;
mod proposals;
mod regressor;
mod row_set;
mod smc;
mod state;
mod table;
mod target;
mod ties;
mod tree;
mod weights;

#[cfg(test)]
pub(crate) mod exact;
#[cfg(test)]
pub(crate) mod visits;

pub(crate) use classifier::Classes;
pub(crate) use dirichlet::{Counts, check_alpha};
pub(crate) use ensemble::Ensemble;
pub(crate) use leaf::{LeafModel, Sweep};
pub(crate) use limits::{
    Bounds, MOST_KEPT, MOST_PARTICLES, MOST_RUNS, MOST_STEPS, SHAPES, WORTH, check, check_count,
    check_product, check_squares, check_within,
};
pub(crate) use mcmc::step;
pub(crate) use nodes::{Cut, Root};
pub(crate) use normal::Moments;
pub(crate) use posterior::check_lengths;
pub(crate) use smc::{Island, sample_conditionally};
pub(crate) use state::{Rule, State, StateNode};
pub(crate) use table::Table;
pub(crate) use target::Target;
pub(crate) use tree::{Split, Tree, TreeNode};
pub(crate) use weights::{draw_by_weight, log_sum_exp, multinomial, normalised};

pub use classifier::BayesianTreeClassifier;
pub use ensemble::{ChainReport, IslandReport, PosteriorTree, Report, Sampler};
pub use mcmc::{Acceptance, Draw, McmcSettings, Move};
pub use normal::NormalPrior;
pub use posterior::BayesianTrees;
pub use prior::{ChipmanPrior, TreePrior};
pub use proposals::Proposal;
pub use regressor::{BayesianTreeRegressor, Students};
pub use smc::{CandidateOrder, Expansion, IslandWeights, SmcSettings, Stage};
pub use weights::Resampling;

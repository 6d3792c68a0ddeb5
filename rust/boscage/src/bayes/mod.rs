//! Bayesian decision trees (thesis chapter 3): a prior over trees, conjugate leaves, and samplers.
//!
//! `prior` and `leaf` say what is believed, `table` and `candidates` what rows allow, `target` is the
//! posterior of these. `smc` grows weighted trees from the root (`proposals`, `weights`, `nodes`, `particle`);
//! `mcmc` changes whole trees (`state`).

mod candidates;
mod dirichlet;
mod leaf;
mod mcmc;
mod nodes;
mod normal;
mod particle;
mod prior;
mod proposals;
mod smc;
mod state;
mod table;
mod target;
mod tree;
mod weights;

#[cfg(test)]
mod exact;

pub use mcmc::{Acceptance, Draw, McmcSettings, Move};
pub use normal::NormalPrior;
pub use prior::{ChipmanPrior, TreePrior};
pub use proposals::Proposal;
pub use smc::{CandidateOrder, Expansion, SmcSettings, Stage};
pub use weights::Resampling;

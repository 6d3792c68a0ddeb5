//! Settings of Sequential Monte Carlo.

use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::resampling::Resampling;
use crate::error::{Error, Result};
use crate::validate::{MAX_CHAINS, MAX_DRAWS, MAX_PARTICLES, check_count, check_product};

/// How many nodes a particle decides about in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expansion {
    /// One (node-wise).
    #[default]
    Node,
    /// All that are eligible (layer-wise).
    Layer,
}

/// Which node is decided about first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CandidateOrder {
    /// The oldest.
    #[default]
    BreadthFirst,
    /// The one with the lowest marginal likelihood.
    MarginalLikelihood,
}

/// The weights of islands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IslandWeights {
    /// Equal weights.
    #[default]
    Uniform,
    /// In proportion to their estimates of the evidence.
    Evidence,
}

/// Settings of Sequential Monte Carlo (Algorithm 3.1).
#[derive(Debug, Clone, PartialEq)]
pub struct SmcSettings {
    /// Particles, on each island.
    pub n_particles: usize,
    /// Independent runs.
    pub n_islands: usize,
    /// The proposal kernel.
    pub proposal: Proposal,
    /// How many nodes are decided about in a stage.
    pub expansion: Expansion,
    /// Which node comes first.
    pub candidate_order: CandidateOrder,
    /// The resampling scheme.
    pub resampling: Resampling,
    /// Particles are resampled when the effective sample size is below this share of `n_particles`.
    pub ess_threshold: f64,
    /// Greatest number of stages. In a tree that is unfinished then, undecided nodes are leaves; the evidence is that of a
    /// prior whose trees end there, too.
    pub max_stages: usize,
    /// How islands are combined.
    pub island_weights: IslandWeights,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for SmcSettings {
    fn default() -> Self {
        Self {
            n_particles: 10,
            n_islands: 5,
            proposal: Proposal::default(),
            expansion: Expansion::default(),
            candidate_order: CandidateOrder::default(),
            resampling: Resampling::default(),
            ess_threshold: 0.5,
            max_stages: 5000,
            island_weights: IslandWeights::default(),
            seed: 0,
        }
    }
}

impl SmcSettings {
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        check_count("n_particles", self.n_particles, MAX_PARTICLES)?;
        check_count("n_islands", self.n_islands, MAX_CHAINS)?;
        check_product("n_particles * n_islands", &[self.n_particles, self.n_islands], MAX_DRAWS)?;
        check_count("max_stages", self.max_stages, (usize::MAX, "at least 1"))?;
        if let Proposal::OptimalSubset(n) | Proposal::Exploring(n) = self.proposal {
            let name = "the number of features that a proposal considers";
            check_count(name, n, (usize::MAX, "at least 1"))?;
        }
        if !(0.0..=1.0).contains(&self.ess_threshold) {
            return Err(Error::InvalidSetting {
                name: "ess_threshold",
                expected: "from 0 to 1",
                found: self.ess_threshold.to_string(),
            });
        }
        Ok(())
    }
}

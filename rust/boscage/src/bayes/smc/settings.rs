//! Settings of Sequential Monte Carlo.

use crate::bayes::smc::proposals::Proposal;
use crate::bayes::smc::resampling::Resampling;
use crate::error::{Error, Result};
use crate::validate::{
    MAX_CHAINS, MAX_DRAWS, MAX_PARTICLES, check, check_count, check_numbers, check_product,
};

/// Number of nodes that a particle decides about in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Expansion {
    /// One node (node-wise expansion).
    #[default]
    Node,
    /// All nodes that are eligible (layer-wise expansion).
    Layer,
}

/// The order in which nodes are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CandidateOrder {
    /// The oldest node first.
    #[default]
    BreadthFirst,
    /// The node with the lowest marginal likelihood first.
    MarginalLikelihood,
}

/// The weights of islands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IslandWeights {
    /// Equal weights.
    #[default]
    Uniform,
    /// Weights proportional to the islands' estimates of the evidence.
    Evidence,
}

/// Settings of Sequential Monte Carlo (Algorithm 3.1).
#[derive(Debug, Clone, PartialEq)]
pub struct SmcSettings {
    /// Number of particles of each island.
    pub n_particles: usize,
    /// Number of islands, that is independent runs.
    pub n_islands: usize,
    /// The only island to run, from 0; None runs all. Fits of single islands can be joined to that of all islands. Not with
    /// [`Expansion::Layer`]: the order in which a particle draws for the nodes of a layer depends on the other islands.
    pub island: Option<usize>,
    /// The proposal kernel.
    pub proposal: Proposal,
    /// Number of nodes to decide about in a stage.
    pub expansion: Expansion,
    /// The order of nodes.
    pub candidate_order: CandidateOrder,
    /// The resampling scheme.
    pub resampling: Resampling,
    /// Particles are resampled if the effective sample size is below this share of `n_particles`.
    pub ess_threshold: f64,
    /// Largest number of stages. Nodes that are undecided after the last stage become leaves; the evidence is
    /// then that of a prior truncated in the same way.
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
            island: None,
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
        check_numbers("island", self.island, self.n_islands)?;
        let can_be_alone = self.island.is_none() || self.expansion == Expansion::Node;
        check("island", can_be_alone, "None if layers are expanded", &self.island.unwrap_or_default())?;
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

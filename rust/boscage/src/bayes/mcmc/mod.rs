//! Markov chain Monte Carlo over whole trees (Chipman et al. 1998), with which the thesis compares SMC
//! (section 3.4.2).
//!
//! The stationary distribution is the posterior `p(T | Y, X)`, proportional to the prior of eq. 3.4 times the
//! leaf likelihoods of eq. 3.1. Each step tries one of four moves: grow splits a leaf, prune joins two
//! leaves, change gives an inner node another rule, and swap exchanges the rules of a node and its child. New
//! rules are drawn from the prior, so that their density cancels in the Metropolis-Hastings ratio; what
//! remains are the likelihoods, the split probabilities of eq. 3.3, the priors of the rules below, and the
//! numbers of nodes to choose from.
//!
//! `state` is a tree with the rows of its nodes, and `moves` are the four moves. Chains start from draws of
//! the prior and have their own random streams, so that they run in parallel and results do not depend on
//! threads.

pub(crate) mod moves;
pub(crate) mod state;

#[cfg(test)]
pub(crate) mod tests;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::moves::step;
use crate::bayes::mcmc::state::TreeWithRows;
use crate::bayes::target::TargetPosterior;
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::{Error, Result};
use crate::random::keyed::Stream;
use crate::validate::{MAX_CHAINS, MAX_DRAWS, MAX_STEPS, check, check_count, check_numbers, check_product};

/// Settings of MCMC.
#[derive(Debug, Clone, PartialEq)]
pub struct McmcSettings {
    /// Number of chains; each starts from a draw of the prior.
    pub n_chains: usize,
    /// The only chain to run, from 0; None runs all. Fits of single chains can be joined to that of all chains.
    pub chain: Option<usize>,
    /// Trees kept from each chain.
    pub n_draws: usize,
    /// Steps between two kept trees.
    pub thin: usize,
    /// Steps before the first kept tree.
    pub n_burn: usize,
    /// Probabilities to try grow, prune, change and swap. The first two are positive, since no other move
    /// changes the number of leaves.
    pub moves: [f64; 4],
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for McmcSettings {
    fn default() -> Self {
        Self { n_chains: 4, chain: None, n_draws: 250, thin: 20, n_burn: 5000, moves: [0.25; 4], seed: 0 }
    }
}

impl McmcSettings {
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        check_count("n_chains", self.n_chains, MAX_CHAINS)?;
        check_numbers("chain", self.chain, self.n_chains)?;
        check_count("n_draws", self.n_draws, MAX_DRAWS)?;
        check_product("n_chains * n_draws", &[self.n_chains, self.n_draws], MAX_DRAWS)?;
        check_count("thin", self.thin, MAX_STEPS)?;
        check("n_burn", self.n_burn <= MAX_STEPS.0, "at most 1000000000", &self.n_burn)?;
        let sum: f64 = self.moves.iter().sum();
        let are_probabilities = self.moves.iter().all(|p| *p >= 0.0) && (sum - 1.0).abs() <= 1e-9;
        if !are_probabilities || self.moves[..2].contains(&0.0) {
            return Err(Error::InvalidSetting {
                name: "moves",
                expected: "four probabilities that sum to one, the first two (grow and prune) positive",
                found: format!("{:?}", self.moves),
            });
        }
        Ok(())
    }
}

/// Summary of the state of a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Logarithm of the prior density of the tree (eq. 3.4).
    pub log_prior: f64,
    /// Logarithm of the likelihood of the targets, leaves integrated out.
    pub log_likelihood: f64,
    /// Number of leaves.
    pub n_leaves: u32,
    /// Largest number of cuts above a leaf.
    pub depth: u32,
}

/// How often a move was tried, and how often it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acceptance {
    /// Steps that chose the move.
    pub tried: u64,
    /// Steps that changed the tree.
    pub made: u64,
}

impl Acceptance {
    /// Counts a step.
    pub(crate) fn note(&mut self, made: bool) {
        self.tried += 1;
        self.made += u64::from(made);
    }
}

/// The draws of a chain.
#[derive(Debug, Clone)]
pub(crate) struct McmcChain<S> {
    pub(crate) trees: Vec<PreorderTree<S>>,
    pub(crate) draws: Vec<Draw>,
    /// By move, in the order of [`Move`], over all steps.
    pub(crate) acceptance: [Acceptance; 4],
}

/// Runs chains whose stationary distribution is the posterior.
///
/// # Errors
/// Settings outside their domain; an interrupt.
pub(crate) fn sample<L: ConjugateLeaf>(
    target: &TargetPosterior<'_, L>,
    settings: &McmcSettings,
    threads: &Threads,
    control: &Control,
) -> Result<Vec<McmcChain<L::Stats>>> {
    settings.check()?;
    let numbers = check_numbers("chain", settings.chain, settings.n_chains)?;
    let n_steps = settings.n_burn + settings.n_draws * settings.thin;
    control.expect(numbers.len() as u64 * n_steps as u64);
    let chains = threads.map(numbers.len(), |i| {
        let mut stream = Stream::new(settings.seed, numbers.start + i);
        let start = TreeWithRows::from_prior(target, &mut stream, control)?;
        chain(start, settings, &mut stream, control)
    });
    chains.into_iter().collect()
}

fn chain<L: ConjugateLeaf>(
    mut state: TreeWithRows<'_, L>,
    settings: &McmcSettings,
    stream: &mut Stream,
    control: &Control,
) -> Result<McmcChain<L::Stats>> {
    let mut chain = McmcChain { trees: Vec::new(), draws: Vec::new(), acceptance: Default::default() };
    for draw in 0..settings.n_draws {
        let n_steps = settings.thin + if draw == 0 { settings.n_burn } else { 0 };
        for _ in 0..n_steps {
            control.check()?;
            let (which, made) = step(&mut state, &settings.moves, stream);
            chain.acceptance[which as usize].note(made);
            control.advance(1);
        }
        chain.trees.push(state.tree());
        chain.draws.push(summary(&state));
    }
    Ok(chain)
}

pub(crate) fn summary<L: ConjugateLeaf>(state: &TreeWithRows<'_, L>) -> Draw {
    let ids = state.subtree(TreeWithRows::<L>::ROOT);
    let leaves = ids.iter().map(|&id| state.get(id)).filter(|node| node.split.is_none());
    Draw {
        log_prior: ids.iter().map(|&id| state.log_prior(state.get(id))).sum(),
        log_likelihood: leaves.clone().map(|leaf| leaf.log_likelihood).sum(),
        n_leaves: leaves.clone().count() as u32,
        depth: leaves.map(|leaf| leaf.depth).max().expect("a tree has a leaf"),
    }
}

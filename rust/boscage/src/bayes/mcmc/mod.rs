//! Markov chain Monte Carlo over whole trees: the moves of Chipman et al. (1998).

pub(crate) mod state;

#[cfg(test)]
pub(crate) mod tests;

use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::state::{NodeWithRows, Rule, TreeWithRows};
use crate::bayes::target::Target;
use crate::bayes::tree::PreorderTree;
use crate::control::{Control, Threads};
use crate::error::{Error, Result};
use crate::random::keyed::Stream;
use crate::validate::{MAX_CHAINS, MAX_DRAWS, MAX_STEPS, check, check_count, check_product};

/// How a chain changes its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Splits a leaf, by a rule from the prior.
    Grow,
    /// Makes a leaf of a node whose children are leaves.
    Prune,
    /// Gives an inner node another rule, from the prior.
    Change,
    /// Exchanges the rules of an inner node and of its child.
    Swap,
}

const MOVES: [Move; 4] = [Move::Grow, Move::Prune, Move::Change, Move::Swap];

/// How chains are run.
#[derive(Debug, Clone, PartialEq)]
pub struct McmcSettings {
    /// Chains, each starting from a tree drawn from the prior.
    pub n_chains: usize,
    /// Trees kept of each chain.
    pub n_draws: usize,
    /// Steps from one tree that is kept to the next.
    pub thin: usize,
    /// Steps before the first tree that is kept.
    pub n_burn: usize,
    /// Probabilities to try to grow, prune, change and swap; the first two are positive, since no other move changes
    /// how many leaves there are.
    pub moves: [f64; 4],
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for McmcSettings {
    fn default() -> Self {
        Self { n_chains: 4, n_draws: 250, thin: 20, n_burn: 5000, moves: [0.25; 4], seed: 0 }
    }
}

impl McmcSettings {
    /// # Errors
    /// [`Error::InvalidSetting`].
    pub fn check(&self) -> Result<()> {
        check_count("n_chains", self.n_chains, MAX_CHAINS)?;
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

/// Where a chain is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Logarithm of the prior density of the tree (eq. 3.4).
    pub log_prior: f64,
    /// Logarithm of the likelihood of the targets, leaves integrated out.
    pub log_likelihood: f64,
    /// Number of leaves.
    pub n_leaves: u32,
    /// Cuts above the deepest leaf.
    pub depth: u32,
}

/// How often a move was tried and made.
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

/// What a chain has drawn.
#[derive(Debug, Clone)]
pub(crate) struct McmcChain<S> {
    pub(crate) trees: Vec<PreorderTree<S>>,
    pub(crate) draws: Vec<Draw>,
    /// In the order of [`Move`], over all steps.
    pub(crate) acceptance: [Acceptance; 4],
}

/// Runs chains whose stationary distribution is the posterior.
///
/// # Errors
/// Settings outside their domain; an interrupt.
pub(crate) fn sample<L: ConjugateLeaf>(
    target: &Target<'_, L>,
    settings: &McmcSettings,
    threads: &Threads,
    control: &Control,
) -> Result<Vec<McmcChain<L::Stats>>> {
    settings.check()?;
    let n_steps = settings.n_burn + settings.n_draws * settings.thin;
    control.expect(settings.n_chains as u64 * n_steps as u64);
    let chains = threads.map(settings.n_chains, |i| {
        let mut stream = Stream::new(settings.seed, i);
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

/// One Metropolis-Hastings step: which move was tried, and whether it was made.
pub(crate) fn step<L: ConjugateLeaf>(
    state: &mut TreeWithRows<'_, L>,
    moves: &[f64; 4],
    stream: &mut Stream,
) -> (Move, bool) {
    let u = stream.unit();
    let mut sum = 0.0;
    let chosen = MOVES.into_iter().zip(moves).find(|(_, p)| {
        sum += **p;
        u < sum
    });
    let which = chosen.map_or(Move::Swap, |(which, _)| which);
    let made = match which {
        Move::Grow => grow(state, moves, stream),
        Move::Prune => prune(state, moves, stream),
        Move::Change => change(state, stream),
        Move::Swap => swap(state, stream),
    };
    (which, made)
}

/// Accepts with probability `min(1, exp(log_ratio))`.
fn accept(log_ratio: f64, stream: &mut Stream) -> bool {
    libm::log(1.0 - stream.unit()) < log_ratio
}

fn one_of(ids: &[usize], stream: &mut Stream) -> Option<usize> {
    (!ids.is_empty()).then(|| ids[stream.below(ids.len())])
}

fn is_splittable<S>(node: &NodeWithRows<S>) -> bool {
    node.split.is_none() && !node.extents.is_empty()
}

/// Splitting a leaf over leaving it, times `P(prune it) / P(grow it)`. The rule comes from the prior, so that
/// its density is in the posterior and in the proposal alike; `n_splittable` counts the leaves that could have
/// been grown before, `n_prunable` the nodes that can be pruned afterwards.
fn log_growth<L: ConjugateLeaf>(
    state: &TreeWithRows<'_, L>,
    id: usize,
    children: [&NodeWithRows<L::Stats>; 2],
    (n_splittable, n_prunable): (usize, usize),
    moves: &[f64; 4],
) -> f64 {
    let node = state.get(id);
    let (log_split, log_stop) = state.target.log_split_stop(node.depth);
    let after = log_split + children.map(|child| state.log_factor(child)).iter().sum::<f64>();
    let before = log_stop + node.log_likelihood;
    let back = libm::log(moves[Move::Prune as usize] / n_prunable as f64);
    let forth = libm::log(moves[Move::Grow as usize] / n_splittable as f64);
    after - before + back - forth
}

fn grow<L: ConjugateLeaf>(state: &mut TreeWithRows<'_, L>, moves: &[f64; 4], stream: &mut Stream) -> bool {
    let splittable = state.select(is_splittable);
    let Some(id) = one_of(&splittable, stream) else {
        return false;
    };
    let rule = state.draw_rule(id, stream);
    let children = state.children(id, rule);
    // The new node can be pruned; its parent, which now has an inner child, no longer.
    let parent_was = state.get(id).parent.is_some_and(|parent| state.is_prunable(state.get(parent)));
    let n_prunable = state.select(|node| state.is_prunable(node)).len() + 1 - usize::from(parent_was);
    let counts = (splittable.len(), n_prunable);
    let made = accept(log_growth(state, id, children.each_ref(), counts, moves), stream);
    if made {
        state.grow(id, rule, children);
    }
    made
}

fn prune<L: ConjugateLeaf>(state: &mut TreeWithRows<'_, L>, moves: &[f64; 4], stream: &mut Stream) -> bool {
    let prunable = state.select(|node| state.is_prunable(node));
    let Some(id) = one_of(&prunable, stream) else {
        return false;
    };
    let (_, children) = state.get(id).split.expect("a prunable node is an inner one");
    let children = children.map(|child| state.get(child));
    let lost = children.iter().filter(|child| is_splittable(child)).count();
    let n_splittable = state.select(is_splittable).len() + 1 - lost;
    let made = accept(-log_growth(state, id, children, (n_splittable, prunable.len()), moves), stream);
    if made {
        state.prune(id);
    }
    made
}

/// The node's own rule is drawn from the prior, given its rows, which stay; what counts is what the nodes below
/// make of it. The number of inner nodes to choose from stays too.
fn change<L: ConjugateLeaf>(state: &mut TreeWithRows<'_, L>, stream: &mut Stream) -> bool {
    let Some(id) = one_of(&state.select(|node| node.split.is_some()), stream) else {
        return false;
    };
    let rule = state.draw_rule(id, stream);
    move_to(state, id, &[(id, rule)], true, stream)
}

/// The pairs to choose from are the same before and after.
fn swap<L: ConjugateLeaf>(state: &mut TreeWithRows<'_, L>, stream: &mut Stream) -> bool {
    let Some(child) = one_of(&state.select(|node| node.split.is_some() && node.parent.is_some()), stream)
    else {
        return false;
    };
    let rule = |id: usize| state.get(id).split.expect("both are inner nodes").0;
    let parent = state.get(child).parent.expect("the child has a parent");
    let changed = [(parent, rule(child)), (child, rule(parent))];
    move_to(state, parent, &changed, false, stream)
}

/// Accepts or rejects other rules by the ratio of posterior densities, that of the top node's own rule left out
/// if the proposal drew it from there.
fn move_to<L: ConjugateLeaf>(
    state: &mut TreeWithRows<'_, L>,
    top: usize,
    changed: &[(usize, Rule)],
    top_from_prior: bool,
    stream: &mut Stream,
) -> bool {
    let Some(rebuilt) = state.rebuild(top, changed) else {
        return false;
    };
    let skipped = usize::from(top_from_prior);
    let before: f64 = state.subtree(top)[skipped..].iter().map(|&id| state.log_factor(state.get(id))).sum();
    let after: f64 = rebuilt[skipped..].iter().map(|(_, node)| state.log_factor(node)).sum();
    let made = accept(after - before, stream);
    if made {
        state.replace(rebuilt);
    }
    made
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

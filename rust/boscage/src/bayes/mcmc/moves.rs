//! The moves of Chipman et al. (1998), as Metropolis-Hastings steps on the posterior of eqs. 3.1 and 3.4.

use crate::bayes::cuts::Rule;
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::mcmc::state::{NodeWithRows, TreeWithRows};
use crate::random::distributions::accept;
use crate::random::keyed::Stream;

/// The moves that change a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Splits a leaf, by a rule from the prior.
    Grow,
    /// Turns a node whose children are leaves into a leaf.
    Prune,
    /// Gives an inner node another rule, from the prior.
    Change,
    /// Exchanges the rules of an inner node and its child.
    Swap,
}

const MOVES: [Move; 4] = [Move::Grow, Move::Prune, Move::Change, Move::Swap];

/// Does one Metropolis-Hastings step. Returns the move that was tried, and whether it was accepted.
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

fn one_of(ids: &[usize], stream: &mut Stream) -> Option<usize> {
    (!ids.is_empty()).then(|| ids[stream.below(ids.len())])
}

fn is_splittable<L: ConjugateLeaf>(state: &TreeWithRows<'_, L>, node: &NodeWithRows<L::Stats>) -> bool {
    node.split.is_none() && state.can_be_split(node)
}

/// Logarithm of the posterior ratio of a split leaf to the leaf, times `P(prune it) / P(grow it)`. The
/// density of the rule cancels, since the proposal draws it from the prior. `n_splittable` is the number of
/// leaves that can be split before the move, `n_prunable` the number of nodes that can be pruned after it.
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
    let splittable = state.select(|node| is_splittable(state, node));
    let Some(id) = one_of(&splittable, stream) else {
        return false;
    };
    let rule = state.draw_rule(id, stream);
    let children = state.children(id, rule);
    // The new node can be pruned; its parent has an inner child now, and cannot.
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
    let lost = children.iter().filter(|child| is_splittable(state, child)).count();
    let n_splittable = state.select(|node| is_splittable(state, node)).len() + 1 - lost;
    let made = accept(-log_growth(state, id, children, (n_splittable, prunable.len()), moves), stream);
    if made {
        state.prune(id);
    }
    made
}

/// The node's new rule is drawn from the prior given its rows, which stay the same; the ratio therefore
/// consists of the factors of the nodes below. The number of inner nodes to choose from does not change.
fn change<L: ConjugateLeaf>(state: &mut TreeWithRows<'_, L>, stream: &mut Stream) -> bool {
    let Some(id) = one_of(&state.select(|node| node.split.is_some()), stream) else {
        return false;
    };
    let rule = state.draw_rule(id, stream);
    move_to(state, id, &[(id, rule)], true, stream)
}

/// The number of pairs to choose from is the same before and after.
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

/// Accepts or rejects new rules by the ratio of posterior densities, without the density of the top node's
/// rule if the proposal drew that rule from the prior.
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

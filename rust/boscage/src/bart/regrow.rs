//! Another subtree below a node, by importance sampling with the old one retained.
//!
//! This is Particle Gibbs (Algorithm 4.2) that never resamples: a cut that is worse until those below it are made
//! survives until they are. The node is drawn uniformly from all nodes, so a tree's weight is over their number.

use std::ops::Range;
use std::sync::Arc;

use super::context::Context;
use super::random::seed;
use super::settings::BartSettings;
use super::tree_state::TreeState;
use super::whole_tree::{alone, bare, fits, same_cuts};
use crate::bayes::{Expansion, LeafModel, Proposal, Root, SmcSettings, Table, Target, Tree, TreeNode};
use crate::mondrian::Stream;

/// Dimensions that are looked at in a node: enough for what is in most data, few enough not to depend on `p`.
const DIMENSIONS: usize = 10;

/// Nodes that are tried one after the other.
const NODES: usize = 4;

/// The tree with other subtrees, if any were drawn.
pub(super) fn regrow<L: LeafModel>(
    tree: &TreeState,
    leaf: &L,
    context: &Context<'_>,
    settings: &BartSettings,
    stream: &mut Stream,
) -> Option<Tree<L::Stats>> {
    let target = Target { table: context.table, prior: context.odds, leaf };
    let old = bare(tree, leaf);
    let mut new = old.clone();
    for _ in 0..NODES {
        let top = stream.below(new.nodes.len());
        let drawn = below(&target, (&new, top), settings.n_particles, stream);
        // Reversible: to refuse what is too large keeps it so.
        new = Some(drawn).filter(fits).unwrap_or(new);
    }
    Some(new).filter(|new| !same_cuts(new, &old))
}

/// The tree with the subtree of a node drawn anew.
fn below<L: LeafModel>(
    target: &Target<'_, L>,
    (tree, top): (&Tree<L::Stats>, usize),
    n_particles: usize,
    stream: &mut Stream,
) -> Tree<L::Stats> {
    let smc = SmcSettings {
        n_particles,
        proposal: Proposal::Exploring(DIMENSIONS),
        // Without resampling the order of decisions does not matter.
        expansion: Expansion::Layer,
        ess_threshold: 0.0,
        max_stages: usize::MAX,
        seed: seed(stream),
        ..SmcSettings::default()
    };
    let own = top..end(tree, top);
    let retained = Tree { nodes: moved(&tree.nodes[own.clone()], -(top as i64)) };
    let at = (root(tree, top, target.table), &retained);
    let mut island = alone(target, &smc, at);
    let others = tree.nodes.len() - own.len();
    for (weight, tree) in island.weights.iter_mut().zip(&island.trees) {
        *weight /= (others + tree.nodes.len()) as f64;
    }
    graft(tree, own, &island.draw(stream))
}

/// Where the subtree of a node ends.
fn end<S>(tree: &Tree<S>, top: usize) -> usize {
    let (mut open, mut at) = (1, top);
    while open > 0 {
        open = if tree.nodes[at].split.is_some() { open + 1 } else { open - 1 };
        at += 1;
    }
    at
}

/// The rows of a node, and its depth.
fn root<S>(tree: &Tree<S>, top: usize, table: &Table) -> Root {
    let mut root = Root::of_all(table);
    let mut at = 0;
    while at < top {
        let split = tree.nodes[at].split.expect("the way down leads over inner nodes");
        let column = table.column(split.dimension);
        let rank = column.last_rank_below(split.threshold);
        let right = split.right as usize;
        let goes_right = top >= right;
        root.rows.retain(|&row| (column.rank(row) > rank) == goes_right);
        root.depth += 1;
        at = if goes_right { right } else { at + 1 };
    }
    root
}

/// Nodes whose numbers are all so much higher.
fn moved<S>(nodes: &[TreeNode<S>], by: i64) -> Vec<TreeNode<S>> {
    let moved = nodes.iter().map(|node| {
        let split = node.split.map(|mut split| {
            split.right = (i64::from(split.right) + by) as u32;
            split
        });
        TreeNode { split, stats: Arc::clone(&node.stats) }
    });
    moved.collect()
}

/// A tree with another subtree in the place of that of some nodes.
fn graft<S>(tree: &Tree<S>, old: Range<usize>, new: &Tree<S>) -> Tree<S> {
    let by = new.nodes.len() as i64 - old.len() as i64;
    let mut nodes = moved(&tree.nodes[..old.start], 0);
    for node in &mut nodes {
        if let Some(split) = node.split.as_mut().filter(|split| split.right as usize >= old.end) {
            split.right = (i64::from(split.right) + by) as u32;
        }
    }
    nodes.extend(moved(&new.nodes, old.start as i64));
    nodes.extend(moved(&tree.nodes[old.end..], by));
    Tree { nodes }
}

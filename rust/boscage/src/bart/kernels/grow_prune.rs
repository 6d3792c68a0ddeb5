//! `GrowPrune` (Pratola et al. 2013; section 4.3.2): grow and prune, computed from sums over leaves.
//!
//! The rule that splits a leaf is drawn from the prior, so that its density cancels. The Hastings ratio
//! consists of the probabilities of splitting and stopping (eq. 4.3), the marginal likelihoods of eq. 4.9,
//! and the numbers of leaves and nodes to choose from.

use crate::bart::kernels::context::Context;
use crate::bart::leaves::statistics::LeafStatistics;
use crate::bart::state::row_passes::{span, split_labels};
use crate::bart::state::tree::{Node, NodeKind, NodeLabel, TreeState, vary};
use crate::bayes::cuts::{RankCut, Rule};
use crate::bayes::prior::TreePrior;
use crate::data::goes_right;
use crate::random::distributions::accept;
use crate::random::keyed::Stream;

/// The tree that a step changes, with the statistics of its leaves.
pub(crate) struct Work<'a, E> {
    pub(crate) tree: &'a mut TreeState,
    pub(crate) statistics: E,
}

/// Tries to grow or to prune, with probability one half each if both are possible. The step is in balance
/// with the tree's posterior (eq. 4.8). Returns whether it tried to grow, and whether the tree changed.
pub(crate) fn step<E: LeafStatistics>(
    work: &mut Work<'_, E>,
    context: &Context<'_>,
    stream: &mut Stream,
) -> (bool, bool) {
    let can_grow = can_grow(work.tree);
    let can_prune = !work.tree.get(TreeState::ROOT).is_leaf();
    let grows = can_grow && (!can_prune || stream.unit() < 0.5);
    let made = if grows { grow(work, context, stream) } else { can_prune && prune(work, context, stream) };
    (grows, made)
}

fn is_growable(node: &Node) -> bool {
    node.is_leaf() && node.splittable
}

fn can_grow(tree: &TreeState) -> bool {
    tree.has_room(0) && tree.nodes.iter().any(is_growable)
}

/// Logarithm of the ratio of the posterior of the tree with the leaf split to that of the tree with the leaf.
fn log_ratio<E: LeafStatistics>(
    (tree, statistics): (&TreeState, &E),
    id: NodeLabel,
    children: &[(Node, E::Sum); 2],
    sum: E::Sum,
    context: &Context<'_>,
) -> f64 {
    let node = tree.get(id);
    let likelihood = |n, sum| statistics.log_likelihood(n, sum);
    let (log_split, log_stop) = context.odds.log_split_stop(node.depth);
    let mut ratio = log_split - log_stop - likelihood(node.n_rows, sum);
    for (child, sum) in children {
        if child.splittable {
            ratio += context.odds.log_split_stop(child.depth).1;
        }
        ratio += likelihood(child.n_rows, *sum);
    }
    ratio
}

/// Logarithm of the probability to choose one of `n` leaves to grow, in a tree with or without cuts.
fn log_choose_grow(n: usize, can_prune: bool) -> f64 {
    (if can_prune { -std::f64::consts::LN_2 } else { 0.0 }) - libm::log(n as f64)
}

/// Logarithm of the probability to choose one of `n` nodes to prune, in a tree that can or cannot be grown.
fn log_choose_prune(n: usize, can_grow: bool) -> f64 {
    (if can_grow { -std::f64::consts::LN_2 } else { 0.0 }) - libm::log(n as f64)
}

pub(crate) fn pick(mut ids: impl Iterator<Item = NodeLabel>, n: usize, stream: &mut Stream) -> NodeLabel {
    ids.nth(stream.below(n)).expect("one of those counted")
}

fn grow<E: LeafStatistics>(work: &mut Work<'_, E>, context: &Context<'_>, stream: &mut Stream) -> bool {
    let tree = &mut *work.tree;
    let n_growable = tree.select(is_growable).count();
    let id = pick(tree.select(is_growable), n_growable, stream);
    let Some(Cutting { rule, n_left, sides: [left, right] }) =
        draw_rule((tree, &work.statistics), id, context, stream)
    else {
        return false;
    };
    let ranks = context.table.column(rule.cut.feature).ranks();
    let node = *tree.get(id);
    let sum = work.statistics.sum(id);
    let splittable = splittable_sides(tree, id, rule.cut, [n_left, node.n_rows - n_left], context);
    let child = |n_rows, splittable, sum| {
        let child = Node {
            parent: Some(id),
            depth: node.depth + 1,
            n_rows,
            splittable,
            mu: 0.0,
            kind: NodeKind::Leaf,
        };
        (child, sum)
    };
    let children = [child(n_left, splittable[0], left), child(node.n_rows - n_left, splittable[1], right)];

    // The new node can be pruned; its parent has an inner child now, and cannot.
    let parent_was = node.parent.is_some_and(|parent| tree.is_prunable(tree.get(parent)));
    let n_prunable = tree.select(|node| tree.is_prunable(node)).count() + 1 - usize::from(parent_was);
    let n_new = splittable.iter().filter(|&&splittable| splittable).count();
    let could_grow = n_growable - 1 + n_new > 0 && tree.has_room(2);
    let ratio = log_ratio((&*tree, &work.statistics), id, &children, sum, context)
        + log_choose_prune(n_prunable, could_grow)
        - log_choose_grow(n_growable, id != TreeState::ROOT);
    if !accept(ratio, stream) {
        return false;
    }
    let ids = tree.grow(id, rule, children.map(|(child, _)| child));
    split_labels(&mut tree.labels, &ranks, id, rule.cut.rank, ids);
    work.statistics.grown(tree.nodes.len(), id, [(ids[0], left), (ids[1], right)]);
    true
}

fn prune<E: LeafStatistics>(work: &mut Work<'_, E>, context: &Context<'_>, stream: &mut Stream) -> bool {
    let tree = &mut *work.tree;
    let could_grow = can_grow(tree);
    let n_prunable = tree.select(|node| tree.is_prunable(node)).count();
    let id = pick(tree.select(|node| tree.is_prunable(node)), n_prunable, stream);
    let (_, ids) = tree.cut(id);
    let children = ids.map(|id| (*tree.get(id), work.statistics.sum(id)));
    let sum = E::join(children[0].1, children[1].1);
    let lost = children.iter().filter(|(child, _)| child.splittable).count();
    let n_growable = tree.select(is_growable).count() + 1 - lost;
    let ratio = log_ratio((&*tree, &work.statistics), id, &children, sum, context)
        + log_choose_prune(n_prunable, could_grow)
        - log_choose_grow(n_growable, id != TreeState::ROOT);
    if !accept(-ratio, stream) {
        return false;
    }
    tree.prune(id);
    work.statistics.pruned(&mut tree.labels, ids, (id, sum));
    true
}

/// A rule for a leaf, the number of rows on its left, and the statistics of both sides.
struct Cutting<S> {
    rule: Rule,
    n_left: u32,
    sides: [S; 2],
}

/// Draws a rule from the prior (eq. 4.4): a feature that varies in the leaf, and a threshold in the extent of
/// its rows.
fn draw_rule<E: LeafStatistics>(
    (tree, statistics): (&TreeState, &E),
    id: NodeLabel,
    context: &Context<'_>,
    stream: &mut Stream,
) -> Option<Cutting<E::Sum>> {
    let mut order = context.feature_order();
    while let Some(feature) = order.next(stream) {
        let column = context.table.column(feature);
        let cutting = |(rank, threshold): (u32, f64)| {
            let cut = RankCut { feature, rank };
            let (n_left, sides) = statistics.part(tree, id, &column.ranks(), rank);
            Cutting { rule: Rule { cut, threshold }, n_left, sides }
        };
        if column.has_missing() {
            let span = span(column, &tree.labels, id);
            if span.varies() {
                return Some(cutting(column.cut(span, stream.unit())));
            }
            continue;
        }
        // A uniform threshold in the leaf's cell, given that it splits the rows, is uniform in the extent of
        // the rows. So no pass over the rows is needed to find the extent.
        let (low, high) = cell(tree, id, feature, column.ends());
        if low >= high {
            continue;
        }
        let u = stream.unit();
        // If nearly all rows of the table have one value, the feature varies in the leaf only if the leaf has
        // one of the few other rows.
        let is_here = |row: &u32| tree.labels[*row as usize] == id;
        if column.few_uncommon().is_some_and(|rows| !rows.into_iter().flatten().any(is_here)) {
            continue;
        }
        let threshold = ((1.0 - u) * low + u * high).max(low);
        let found = cutting((column.last_rank_below(threshold), threshold));
        if 0 < found.n_left && found.n_left < tree.get(id).n_rows {
            return Some(found);
        }
        let span = span(column, &tree.labels, id);
        if span.varies() {
            return Some(cutting(column.cut(span, stream.unit())));
        }
    }
    None
}

/// The part of a range of a feature that remains after the cuts above a node.
pub(crate) fn cell(
    tree: &TreeState,
    id: NodeLabel,
    feature: u32,
    (mut low, mut high): (f64, f64),
) -> (f64, f64) {
    for (rule, is_left) in tree.rules_above(id, feature) {
        if is_left {
            high = high.min(rule.threshold);
        } else {
            low = low.max(rule.threshold);
        }
    }
    (low, high)
}

/// Whether the rows on each side of a cut can be split further.
fn splittable_sides(
    tree: &TreeState,
    id: NodeLabel,
    cut: RankCut,
    n_rows: [u32; 2],
    context: &Context<'_>,
) -> [bool; 2] {
    let ranks = context.table.column(cut.feature).ranks();
    std::array::from_fn(|side| {
        let is_in = |row: u32| {
            tree.labels[row as usize] == id && usize::from(goes_right(ranks[row as usize], cut.rank)) == side
        };
        vary(context.table, n_rows[side], is_in)
    })
}

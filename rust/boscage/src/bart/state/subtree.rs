//! Conversion of a chain's tree to preorder, the form of the samplers of Bayesian trees, and of its subtrees
//! with their rows, which can be cut out and put back.

use crate::data::goes_right;
use std::ops::Range;
use std::sync::Arc;

use crate::bart::state::tree::{MAX_NODES, TreeState};
use crate::bayes::leaf::model::ConjugateLeaf;
use crate::bayes::target::SubtreeRoot;
use crate::bayes::tree::{PreorderNode, PreorderTree};
use crate::data::sorted::columns::SortedColumns;

/// A chain's tree in preorder, for samplers that read only its cuts.
pub(crate) fn without_statistics<L: ConjugateLeaf>(tree: &TreeState, leaf: &L) -> PreorderTree<L::Stats> {
    let none = Arc::new(leaf.empty());
    tree.to_tree(|_| Arc::clone(&none))
}

/// Whether there are enough labels for all nodes of a tree. Rejecting all larger trees keeps a kernel
/// reversible.
pub(crate) fn fits<S>(tree: &PreorderTree<S>) -> bool {
    tree.nodes.len() <= MAX_NODES
}

/// Whether two trees have the same cuts.
pub(crate) fn same_cuts<S>(a: &PreorderTree<S>, b: &PreorderTree<S>) -> bool {
    a.nodes.len() == b.nodes.len() && a.nodes.iter().zip(&b.nodes).all(|(a, b)| a.split == b.split)
}

/// The index after the last node of a node's subtree.
pub(crate) fn end<S>(tree: &PreorderTree<S>, top: usize) -> usize {
    let (mut open, mut at) = (1, top);
    while open > 0 {
        open = if tree.nodes[at].split.is_some() { open + 1 } else { open - 1 };
        at += 1;
    }
    at
}

/// The rows of a node, and its depth.
pub(crate) fn root<S>(tree: &PreorderTree<S>, top: usize, table: &SortedColumns) -> SubtreeRoot {
    let mut root = SubtreeRoot::of_all(table);
    let mut at = 0;
    while at < top {
        let split = tree.nodes[at].split.expect("ancestors are inner nodes");
        let column = table.column(split.rule.feature);
        let rank = column.last_rank_below(split.rule.threshold);
        let right = split.right as usize;
        let is_right = top >= right;
        root.rows.retain(|&row| goes_right(column.rank(row), rank) == is_right);
        root.depth += 1;
        at = if is_right { right } else { at + 1 };
    }
    root
}

/// The subtree that consists of some nodes.
pub(crate) fn cut_out<S>(tree: &PreorderTree<S>, own: &Range<usize>) -> PreorderTree<S> {
    PreorderTree { nodes: moved(&tree.nodes[own.clone()], -(own.start as i64)) }
}

/// Copies of nodes with shifted indices.
fn moved<S>(nodes: &[PreorderNode<S>], by: i64) -> Vec<PreorderNode<S>> {
    let moved = nodes.iter().map(|node| {
        let split = node.split.map(|mut split| {
            split.right = (i64::from(split.right) + by) as u32;
            split
        });
        PreorderNode { split, stats: Arc::clone(&node.stats) }
    });
    moved.collect()
}

/// A tree in which some nodes are replaced by another subtree.
pub(crate) fn graft<S>(tree: &PreorderTree<S>, old: Range<usize>, new: &PreorderTree<S>) -> PreorderTree<S> {
    let by = new.nodes.len() as i64 - old.len() as i64;
    let mut nodes = moved(&tree.nodes[..old.start], 0);
    for node in &mut nodes {
        if let Some(split) = node.split.as_mut().filter(|split| split.right as usize >= old.end) {
            split.right = (i64::from(split.right) + by) as u32;
        }
    }
    nodes.extend(moved(&new.nodes, old.start as i64));
    nodes.extend(moved(&tree.nodes[old.end..], by));
    PreorderTree { nodes }
}

//! A chain's tree as the samplers of Bayesian trees take it, in preorder, and its subtrees: their rows, cut out of the
//! tree, and put back.

use std::ops::Range;
use std::sync::Arc;

use crate::bart::state::tree::{MOST_NODES, TreeState};
use crate::bayes::leaf::model::LeafModel;
use crate::bayes::smc::nodes::Root;
use crate::bayes::tree::{Tree, TreeNode};
use crate::data::sorted_columns::SortedColumns;

/// A chain's tree in preorder, for samplers that look at its cuts alone.
pub(crate) fn without_statistics<L: LeafModel>(tree: &TreeState, leaf: &L) -> Tree<L::Stats> {
    let none = Arc::new(leaf.empty());
    tree.to_tree(|_| Arc::clone(&none))
}

/// Whether there are numbers for all nodes of a tree. A reversible kernel that rejects all larger trees stays so.
pub(crate) fn fits<S>(tree: &Tree<S>) -> bool {
    tree.nodes.len() <= MOST_NODES
}

/// Whether two trees have the same cuts.
pub(crate) fn same_cuts<S>(a: &Tree<S>, b: &Tree<S>) -> bool {
    a.nodes.len() == b.nodes.len() && a.nodes.iter().zip(&b.nodes).all(|(a, b)| a.split == b.split)
}

/// Where the subtree of a node ends.
pub(crate) fn end<S>(tree: &Tree<S>, top: usize) -> usize {
    let (mut open, mut at) = (1, top);
    while open > 0 {
        open = if tree.nodes[at].split.is_some() { open + 1 } else { open - 1 };
        at += 1;
    }
    at
}

/// The rows of a node, and its depth.
pub(crate) fn root<S>(tree: &Tree<S>, top: usize, table: &SortedColumns) -> Root {
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

/// The subtree of some nodes, alone.
pub(crate) fn cut_out<S>(tree: &Tree<S>, own: &Range<usize>) -> Tree<S> {
    Tree { nodes: moved(&tree.nodes[own.clone()], -(own.start as i64)) }
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
pub(crate) fn graft<S>(tree: &Tree<S>, old: Range<usize>, new: &Tree<S>) -> Tree<S> {
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

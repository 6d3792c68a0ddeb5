//! Finished trees in preorder, as all samplers return them.

use std::sync::Arc;

use crate::data::sorted::columns::SortedColumns;
use crate::data::splits::SideRule;

/// A finished tree. Nodes are in preorder: the root is node 0, and a left child follows its parent.
#[derive(Debug, Clone)]
pub(crate) struct PreorderTree<S> {
    pub(crate) nodes: Vec<PreorderNode<S>>,
}

/// A node, with the statistics of its training rows.
#[derive(Debug, Clone)]
pub(crate) struct PreorderNode<S> {
    pub(crate) split: Option<PreorderSplit>,
    pub(crate) stats: Arc<S>,
}

/// Rows that the rule does not send right go left, to the next node. Samplers split along the columns of
/// [`SortedColumns`]; [`PreorderTree::set_features`] sets features, sides of missing values and categories.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PreorderSplit {
    pub(crate) rule: SideRule,
    /// The right child.
    pub(crate) right: u32,
}

impl PreorderSplit {
    /// A split along a column, whose right child is not known yet.
    pub(crate) fn new(column: u32, threshold: f64) -> Self {
        Self { rule: SideRule::new(column, threshold), right: 0 }
    }
}

impl<S> PreorderTree<S> {
    /// The tree below a root. `node` returns the statistics of a node, and its split with the left and the right child.
    pub(crate) fn from_root<N>(
        root: N,
        node: impl Fn(N) -> (Arc<S>, Option<(PreorderSplit, [N; 2])>),
    ) -> Self {
        let mut nodes: Vec<PreorderNode<S>> = Vec::new();
        let mut stack = vec![(root, None)];
        while let Some((next, parent)) = stack.pop() {
            let at = nodes.len();
            if let Some(parent) = parent {
                let parent: &mut PreorderNode<S> = &mut nodes[parent];
                parent.split.as_mut().expect("only an inner node has children").right = at as u32;
            }
            let (stats, split) = node(next);
            let split = split.map(|(split, [left, right])| {
                // The left child follows its parent; the right child sets its index when it is reached.
                stack.extend([(right, Some(at)), (left, None)]);
                split
            });
            nodes.push(PreorderNode { split, stats });
        }
        Self { nodes }
    }

    /// Number of leaves, and number of cuts above the deepest leaf.
    pub(crate) fn leaves_and_depth(&self) -> (u32, u32) {
        let (mut n_leaves, mut deepest) = (0, 0);
        let mut depth = vec![0; self.nodes.len()];
        // Parents come before their children.
        for (i, node) in self.nodes.iter().enumerate() {
            match node.split {
                Some(split) => {
                    depth[i + 1] = depth[i] + 1;
                    depth[split.right as usize] = depth[i] + 1;
                }
                None => {
                    n_leaves += 1;
                    deepest = deepest.max(depth[i]);
                }
            }
        }
        (n_leaves, deepest)
    }

    /// The tree with other statistics.
    pub(crate) fn with_stats<T>(&self, stats: &mut impl FnMut(&Arc<S>) -> Arc<T>) -> PreorderTree<T> {
        let node = |node: &PreorderNode<S>| PreorderNode { split: node.split, stats: stats(&node.stats) };
        PreorderTree { nodes: self.nodes.iter().map(node).collect() }
    }

    /// Replaces the columns of splits by their features and the sides of missing values.
    pub(crate) fn set_features(&mut self, table: &SortedColumns, n_rows: impl Fn(&S) -> u32) {
        for i in 0..self.nodes.len() {
            let Some(PreorderSplit { rule, right }) = self.nodes[i].split else { continue };
            let of_children = [i + 1, right as usize].map(|child| n_rows(&self.nodes[child].stats));
            let rule = table.side_rule(rule.feature, rule.threshold, of_children);
            self.nodes[i].split = Some(PreorderSplit { rule, right });
        }
    }

    /// The leaf of a row, given on which side of a split it is.
    pub(crate) fn leaf(&self, goes_right: impl Fn(&PreorderSplit) -> bool) -> usize {
        let mut at = 0;
        while let Some(split) = &self.nodes[at].split {
            at = if goes_right(split) { split.right as usize } else { at + 1 };
        }
        at
    }
}

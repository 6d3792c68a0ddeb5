//! Finished trees in preorder, as all samplers return them.

use crate::data::goes_right;
use std::sync::Arc;

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

/// Rows with `x[feature] <= threshold` go left, to the next node; others go right, to node `right`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PreorderSplit {
    pub(crate) feature: u32,
    pub(crate) threshold: f64,
    pub(crate) right: u32,
}

impl<S> PreorderTree<S> {
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

    /// The leaf of a row.
    pub(crate) fn leaf(&self, value: impl Fn(u32) -> f64) -> usize {
        let mut at = 0;
        while let Some(split) = &self.nodes[at].split {
            at =
                if goes_right(value(split.feature), split.threshold) { split.right as usize } else { at + 1 };
        }
        at
    }
}

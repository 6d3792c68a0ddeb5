//! Trees as they come out of the samplers.

use std::sync::Arc;

/// A finished tree; nodes in preorder, the root is node 0 and a left child follows its parent.
#[derive(Debug, Clone)]
pub(crate) struct Tree<S> {
    pub(crate) nodes: Vec<TreeNode<S>>,
}

/// A node, with the statistics of its training rows.
#[derive(Debug, Clone)]
pub(crate) struct TreeNode<S> {
    pub(crate) split: Option<Split>,
    pub(crate) stats: Arc<S>,
}

/// Rows with `x[dimension] <= threshold` go left, to the next node, others to node `right`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Split {
    pub(crate) dimension: u32,
    pub(crate) threshold: f64,
    pub(crate) right: u32,
}

impl<S> Tree<S> {
    /// Number of leaves, and of cuts above the deepest.
    pub(crate) fn leaves_and_depth(&self) -> (u32, u32) {
        let (mut n_leaves, mut deepest) = (0, 0);
        let mut depth = vec![0; self.nodes.len()];
        // A parent comes before its children.
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

    /// The leaf that a row comes to.
    pub(crate) fn leaf(&self, value: impl Fn(u32) -> f64) -> usize {
        let mut at = 0;
        while let Some(split) = &self.nodes[at].split {
            at = if value(split.dimension) <= split.threshold { at + 1 } else { split.right as usize };
        }
        at
    }
}

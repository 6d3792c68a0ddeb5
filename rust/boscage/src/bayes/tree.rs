//! Finished trees in preorder, as all samplers return them.

use std::sync::Arc;

use crate::data::categories::{RightSide, category_goes_right};
use crate::data::sorted_columns::{SideRule, SortedColumns};
use crate::data::value_goes_right;

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

/// Rows with `x[feature] <= threshold` go left, to the next node, or rows of a category that is not on the right side.
/// Others go right, to node `right`. Samplers split along the columns of [`SortedColumns`];
/// [`PreorderTree::set_features`] sets features and sides of missing values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PreorderSplit {
    pub(crate) feature: u32,
    pub(crate) threshold: f64,
    pub(crate) right: u32,
    /// Whether missing values go right; false while trees are sampled.
    pub(crate) missing_right: bool,
    /// Whether the feature has categories, and the threshold is the number of a [`RightSide`]; false while trees are
    /// sampled.
    pub(crate) is_categorical: bool,
}

impl PreorderSplit {
    /// Whether a value, which may be missing, goes right.
    pub(crate) fn sends_right(&self, value: f64) -> bool {
        if self.is_categorical {
            category_goes_right(value, RightSide::from_number(self.threshold), self.missing_right)
        } else {
            value_goes_right(value, self.threshold, self.missing_right)
        }
    }

    /// A split along a column, whose right child is not known yet.
    pub(crate) fn new(feature: u32, threshold: f64) -> Self {
        Self { feature, threshold, right: 0, missing_right: false, is_categorical: false }
    }
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

    /// Replaces the columns of splits by their features and the sides of missing values.
    pub(crate) fn set_features(&mut self, table: &SortedColumns, n_rows: impl Fn(&S) -> u32) {
        for i in 0..self.nodes.len() {
            let Some(PreorderSplit { feature, threshold, right, .. }) = self.nodes[i].split else { continue };
            let of_children = [i + 1, right as usize].map(|child| n_rows(&self.nodes[child].stats));
            let SideRule { feature, threshold, missing_right, is_categorical } =
                table.side_rule(feature, threshold, of_children);
            self.nodes[i].split =
                Some(PreorderSplit { feature, threshold, right, missing_right, is_categorical });
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

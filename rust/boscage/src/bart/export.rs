//! Drawn trees as arrays.

use crate::bart::chain::SumsOfTrees;
use crate::bart::draws::DrawnNode;

/// A tree of a sum as parallel arrays over its nodes in preorder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DrawnTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature of the cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf. Infinite where a split parts missing from present
    /// values.
    pub threshold: Vec<f64>,
    /// Whether rows in which the feature's value is missing go left; false at a leaf. Empty if no value was missing in
    /// training.
    pub missing_go_to_left: Vec<bool>,
    /// Value of a leaf; NaN at other nodes.
    pub value: Vec<f64>,
}

impl SumsOfTrees {
    pub(crate) fn trees(&self, draw: usize) -> Vec<DrawnTree> {
        let n_trees = self.n_trees * self.n_sums();
        (draw * n_trees..(draw + 1) * n_trees).map(|i| arrays(self.draws.tree(i), self.has_missing)).collect()
    }
}

fn arrays(nodes: &[DrawnNode], has_missing: bool) -> DrawnTree {
    let mut out = DrawnTree { parent: vec![-1; nodes.len()], ..DrawnTree::default() };
    for (i, node) in nodes.iter().enumerate() {
        let right = i + node.right as usize;
        let (links, feature, numbers) = if node.is_leaf() {
            ((-1, -1), -1, (f64::NAN, node.value))
        } else {
            out.parent[i + 1] = i as i32;
            out.parent[right] = i as i32;
            ((i as i32 + 1, right as i32), node.feature() as i32, (node.value, f64::NAN))
        };
        out.children_left.push(links.0);
        out.children_right.push(links.1);
        out.feature.push(feature);
        out.threshold.push(numbers.0);
        if has_missing {
            out.missing_go_to_left.push(!node.is_leaf() && !node.missing_right());
        }
        out.value.push(numbers.1);
    }
    out
}

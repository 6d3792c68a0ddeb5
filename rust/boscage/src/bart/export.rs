//! Drawn trees as arrays.

use super::chain::SumsOfTrees;
use super::draws::DrawnNode;

/// A tree of a sum as parallel arrays over its nodes in preorder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DrawnTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature that is cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf.
    pub threshold: Vec<f64>,
    /// A leaf's value; NaN at other nodes.
    pub value: Vec<f64>,
}

impl SumsOfTrees {
    pub(super) fn trees(&self, draw: usize) -> Vec<DrawnTree> {
        let trees = draw * self.n_trees..(draw + 1) * self.n_trees;
        trees.map(|i| arrays(self.draws.tree(i))).collect()
    }
}

fn arrays(nodes: &[DrawnNode]) -> DrawnTree {
    let mut out = DrawnTree { parent: vec![-1; nodes.len()], ..DrawnTree::default() };
    for (i, node) in nodes.iter().enumerate() {
        let (left, right) = match node.is_leaf() {
            true => (-1, -1),
            false => (i as i32 + 1, (i + node.right as usize) as i32),
        };
        out.children_left.push(left);
        out.children_right.push(right);
        if !node.is_leaf() {
            out.parent[left as usize] = i as i32;
            out.parent[right as usize] = i as i32;
        }
        out.feature.push(if node.is_leaf() { -1 } else { node.feature as i32 });
        out.threshold.push(if node.is_leaf() { f64::NAN } else { node.value });
        out.value.push(if node.is_leaf() { node.value } else { f64::NAN });
    }
    out
}

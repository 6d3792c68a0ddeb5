//! Drawn trees as arrays: those of a draw, and those of all draws, of which many have their splits in common.

use std::collections::HashMap;

use crate::bart::chain::SumsOfTrees;
use crate::bart::draws::DrawnNode;
use crate::data::splits::FeatureKinds;
use crate::error::Result;
use crate::validate::check;

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
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf and at a split of categories. Infinite where a split
    /// separates missing from present values.
    pub threshold: Vec<f64>,
    /// Whether rows in which the feature's value is missing go left; false at a leaf. Empty if the model is from an older file,
    /// which does not say it.
    pub missing_go_to_left: Vec<bool>,
    /// The codes of the categories that go right, ascending; none at a leaf or another split. Empty if no feature has
    /// categories.
    pub right_categories: Vec<Vec<u32>>,
    /// Value of a leaf; NaN at other nodes.
    pub value: Vec<f64>,
}

/// Trees with the same splits, as one tree whose leaves add a value to each of several sums.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SharedTree {
    /// Index of the left child; -1 at a leaf.
    pub children_left: Vec<i32>,
    /// Index of the right child; -1 at a leaf.
    pub children_right: Vec<i32>,
    /// Index of the parent; -1 at the root.
    pub parent: Vec<i32>,
    /// Feature of the cut; -1 at a leaf.
    pub feature: Vec<i32>,
    /// Rows with `x[feature] <= threshold` go left; NaN at a leaf.
    pub threshold: Vec<f64>,
    /// Whether missing values go left at each node; false at leaves.
    pub missing_go_to_left: Vec<bool>,
    /// The sums to which the leaves add, ascending: those of the first draw come first.
    pub sums: Vec<u32>,
    /// What each node adds, sum after sum; 0 at splits.
    pub values: Vec<f64>,
}

impl SumsOfTrees {
    /// All trees of all draws, those with the same splits together, in the order of their first draws.
    ///
    /// A proposal that is refused leaves the splits of a tree as they were, and only its leaves are drawn again.
    pub(crate) fn shared_trees(&self) -> Vec<SharedTree> {
        let mut places: HashMap<Vec<(u32, u64)>, usize> = HashMap::new();
        let mut shared: Vec<SharedTree> = Vec::new();
        for i in 0..self.draws.starts.len() {
            let (sum, nodes) = ((i / self.n_trees) as u32, self.draws.tree(i));
            let place = *places.entry(nodes.iter().map(DrawnNode::split).collect()).or_insert(shared.len());
            if place == shared.len() {
                shared.push(SharedTree::new(arrays(nodes, true, &self.kinds)));
            }
            shared[place].add(sum, nodes);
        }
        shared
    }

    /// # Errors
    /// [`Error::InvalidSetting`](crate::Error::InvalidSetting) for a draw that there is not.
    pub(crate) fn trees(&self, draw: usize) -> Result<Vec<DrawnTree>> {
        let n_draws = self.n_draws();
        check("draw", draw < n_draws, "below the number of draws", &format!("{draw} of {n_draws}"))?;
        let n_trees = self.n_trees * self.n_sums();
        let tree = |i| arrays(self.draws.tree(i), self.kinds.has_sides, &self.kinds);
        Ok((draw * n_trees..(draw + 1) * n_trees).map(tree).collect())
    }
}

impl SharedTree {
    /// The splits of a tree, which adds to no sum yet.
    fn new(tree: DrawnTree) -> Self {
        let DrawnTree {
            children_left, children_right, parent, feature, threshold, missing_go_to_left, ..
        } = tree;
        let (sums, values) = (Vec::new(), Vec::new());
        Self { children_left, children_right, parent, feature, threshold, missing_go_to_left, sums, values }
    }

    /// Adds a tree of a sum; sums come in order.
    fn add(&mut self, sum: u32, nodes: &[DrawnNode]) {
        if self.sums.last() != Some(&sum) {
            self.sums.push(sum);
            self.values.resize(self.values.len() + nodes.len(), 0.0);
        }
        let start = self.values.len() - nodes.len();
        for (value, node) in self.values[start..].iter_mut().zip(nodes).filter(|(_, node)| node.is_leaf()) {
            *value += node.value;
        }
    }
}

fn arrays(nodes: &[DrawnNode], has_sides: bool, kinds: &FeatureKinds) -> DrawnTree {
    let mut out = DrawnTree { parent: vec![-1; nodes.len()], ..DrawnTree::default() };
    for (i, node) in nodes.iter().enumerate() {
        let right = i + node.right as usize;
        let (links, feature, numbers) = if node.is_leaf() {
            ((-1, -1), -1, (f64::NAN, node.value))
        } else {
            out.parent[i + 1] = i as i32;
            out.parent[right] = i as i32;
            let numbers = (node.rule().shown_threshold(), f64::NAN);
            ((i as i32 + 1, right as i32), node.feature() as i32, numbers)
        };
        out.children_left.push(links.0);
        out.children_right.push(links.1);
        out.feature.push(feature);
        out.threshold.push(numbers.0);
        if has_sides {
            out.missing_go_to_left.push(!node.is_leaf() && !node.missing_right());
        }
        if kinds.has_categories() {
            let rule = (!node.is_leaf()).then(|| node.rule());
            out.right_categories.push(rule.map_or_else(Vec::new, |rule| kinds.right_categories(&rule)));
        }
        out.value.push(numbers.1);
    }
    out
}

//! A tree with the numbers of rows in its nodes, as the Shapley values of its predictions need it.

use crate::data::splits::SideRule;
use crate::explain::LeafTree;

/// The feature of a leaf.
pub(crate) const LEAF: u32 = u32::MAX;
/// No edge.
pub(super) const NONE: u32 = u32::MAX;

/// A split or leaf. Nodes are in preorder, so that a left child follows its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoveredNode {
    /// The split, whose feature is [`LEAF`] at a leaf.
    pub(crate) rule: SideRule,
    /// The right child; 0 at a leaf.
    pub(crate) right: u32,
    /// The number of rows, or their weight.
    pub(crate) cover: f64,
}

impl CoveredNode {
    pub(crate) fn leaf(cover: f64) -> Self {
        Self { rule: SideRule::new(LEAF, f64::NAN), right: 0, cover }
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.rule.feature == LEAF
    }
}

/// The edge from a node's parent to the node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) parent: u32,
    /// The share of rows that meet the conditions on the parent's feature, down to here.
    pub(super) kept: f64,
    /// The node below the last edge above that has the same feature, or [`NONE`].
    pub(super) before: u32,
}

/// A tree whose leaves hold values, with what Shapley values need of its edges.
#[derive(Debug, Clone)]
pub(crate) struct CoveredTree {
    pub(super) nodes: Vec<CoveredNode>,
    pub(super) edges: Vec<Edge>,
    /// The values of all nodes, node by node; only those of leaves count.
    pub(super) values: Vec<f64>,
    /// The greatest number of different features on a path.
    pub(super) n_on_path: usize,
}

impl CoveredTree {
    pub(crate) fn new(nodes: Vec<CoveredNode>, values: Vec<f64>) -> Self {
        let mut edges = vec![Edge { parent: NONE, kept: 1.0, before: NONE }; nodes.len()];
        // Different features on the path to each node.
        let mut different = vec![0; nodes.len()];
        for (i, node) in nodes.iter().enumerate().filter(|(_, node)| !node.is_leaf()) {
            let before = edge_above(&nodes, &edges, i as u32, node.rule.feature);
            let kept = if before == NONE { 1.0 } else { edges[before as usize].kept };
            let right = node.right as usize;
            let of_right = share_of_right(&nodes, i);
            for (child, share) in [(i + 1, 1.0 - of_right), (right, of_right)] {
                edges[child] = Edge { parent: i as u32, kept: kept * share, before };
                different[child] = different[i] + usize::from(before == NONE);
            }
        }
        let n_on_path = different.into_iter().max().unwrap_or(0);
        Self { nodes, edges, values, n_on_path }
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.values.len() / self.nodes.len()
    }

    /// The tree as arrays.
    pub(crate) fn export(&self) -> LeafTree {
        let mut out =
            LeafTree { values: self.values.clone(), n_values: self.n_outputs(), ..LeafTree::default() };
        for (i, (node, edge)) in self.nodes.iter().zip(&self.edges).enumerate() {
            let (left, right, feature) = if node.is_leaf() {
                (-1, -1, -1)
            } else {
                (i as i32 + 1, node.right as i32, node.rule.feature as i32)
            };
            out.children_left.push(left);
            out.children_right.push(right);
            out.parent.push(if edge.parent == NONE { -1 } else { edge.parent as i32 });
            out.feature.push(feature);
            out.threshold.push(node.rule.threshold);
            out.missing_go_to_left.push(!node.is_leaf() && !node.rule.missing_right);
            out.cover.push(node.cover);
        }
        out
    }

    /// The values of a node.
    pub(crate) fn values_of(&self, node: usize) -> &[f64] {
        let n = self.n_outputs();
        &self.values[node * n..(node + 1) * n]
    }

    /// The leaf of a row.
    pub(crate) fn leaf(&self, x: impl Fn(usize) -> f64) -> usize {
        let mut at = 0;
        while !self.nodes[at].is_leaf() {
            let node = &self.nodes[at];
            at = if node.rule.sends_right(x(node.rule.feature as usize)) {
                node.right as usize
            } else {
                at + 1
            };
        }
        at
    }

    /// Adds the mean of the leaves' values over the rows.
    pub(crate) fn add_mean(&self, base: &mut [f64]) {
        let mut share = vec![1.0; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            if node.is_leaf() {
                let values = self.values_of(i);
                base.iter_mut().zip(values).for_each(|(base, value)| *base += share[i] * value);
                continue;
            }
            let right = node.right as usize;
            let of_right = share_of_right(&self.nodes, i);
            (share[i + 1], share[right]) = (share[i] * (1.0 - of_right), share[i] * of_right);
        }
    }

    /// The features on the path to a node, each with the share of rows that meet all its conditions.
    pub(super) fn on_path(&self, node: usize) -> Vec<(u32, f64)> {
        let mut found: Vec<(u32, f64)> = Vec::new();
        let mut at = node as u32;
        while at != NONE {
            let Edge { parent, kept, .. } = self.edges[at as usize];
            if parent != NONE {
                let feature = self.nodes[parent as usize].rule.feature;
                if found.iter().all(|&(other, _)| other != feature) {
                    found.push((feature, kept));
                }
            }
            at = parent;
        }
        found
    }
}

/// The share of a split's rows that are on its right; half of them where there is no row.
fn share_of_right(nodes: &[CoveredNode], split: usize) -> f64 {
    let CoveredNode { right, cover, .. } = nodes[split];
    if cover > 0.0 { nodes[right as usize].cover / cover } else { 0.5 }
}

/// The node below the last edge above a node that has a feature, or [`NONE`].
fn edge_above(nodes: &[CoveredNode], edges: &[Edge], node: u32, feature: u32) -> u32 {
    let mut at = node;
    while edges[at as usize].parent != NONE {
        let parent = edges[at as usize].parent;
        if nodes[parent as usize].rule.feature == feature {
            return at;
        }
        at = parent;
    }
    NONE
}

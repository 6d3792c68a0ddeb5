//! Draws of sums of trees, kept compactly, and their predictions.

use super::tree_state::{Kind, TreeState};
use crate::control::map;
use crate::data::Rows;
use crate::error::{Error, Result};
use crate::mondrian::Run;

/// Marks a leaf.
pub(crate) const LEAF: u32 = u32::MAX;

/// A node in preorder: a left child follows its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DrawnNode {
    /// The dimension that is cut, or [`LEAF`].
    pub(crate) feature: u32,
    /// How far on the right child is.
    pub(crate) right: u32,
    /// Threshold, or a leaf's value.
    pub(crate) value: f64,
}

impl DrawnNode {
    pub(crate) fn is_leaf(&self) -> bool {
        self.feature == LEAF
    }
}

/// The trees of some draws, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Draws {
    pub(crate) nodes: Vec<DrawnNode>,
    /// Where each tree begins, all trees of the first draw first.
    pub(crate) starts: Vec<usize>,
}

impl Draws {
    /// Adds a tree whose values are `scale` times those of the chain.
    pub(super) fn push(&mut self, tree: &TreeState, scale: f64) {
        self.starts.push(self.nodes.len());
        let mut stack = vec![(TreeState::ROOT, None)];
        while let Some((id, parent)) = stack.pop() {
            let at = self.nodes.len();
            if let Some(parent) = parent {
                let parent: usize = parent;
                self.nodes[parent].right = (at - parent) as u32;
            }
            let node = tree.get(id);
            match node.kind {
                Kind::Inner(rule, [left, right]) => {
                    stack.extend([(right, Some(at)), (left, None)]);
                    let (feature, value) = (rule.cut.dimension, rule.threshold);
                    self.nodes.push(DrawnNode { feature, right: 0, value });
                }
                Kind::Free | Kind::Leaf => {
                    self.nodes.push(DrawnNode { feature: LEAF, right: 0, value: scale * node.mu });
                }
            }
        }
    }

    /// Adds draws of another chain.
    pub(super) fn append(&mut self, other: &Self) {
        let shift = self.nodes.len();
        self.nodes.extend(&other.nodes);
        self.starts.extend(other.starts.iter().map(|start| start + shift));
    }

    /// The nodes of tree `i`.
    pub(crate) fn tree(&self, i: usize) -> &[DrawnNode] {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.nodes.len());
        &self.nodes[self.starts[i]..end]
    }

    /// Adds the values of `n_trees` trees of a draw to sums, one for each row of a block of columns.
    fn add(&self, draw: usize, n_trees: usize, block: &Block, sums: &mut [f64]) {
        for i in draw * n_trees..(draw + 1) * n_trees {
            match self.tree(i) {
                [leaf] => sums.iter_mut().for_each(|sum| *sum += leaf.value),
                [root, left, right] => {
                    let column = block.column(root.feature);
                    for (sum, &x) in sums.iter_mut().zip(column) {
                        *sum += if x <= root.value { left.value } else { right.value };
                    }
                }
                nodes => {
                    for (row, sum) in sums.iter_mut().enumerate() {
                        *sum += value(nodes, |feature| block.column(feature)[row]);
                    }
                }
            }
        }
    }

    /// `f(draw, sums)` for every draw and every block of rows, which it turns into numbers; those of all blocks, in
    /// order.
    pub(super) fn over_rows<R: Send>(
        &self,
        (n_trees, n_features): (usize, usize),
        rows: Rows<'_>,
        run: &Run<'_>,
        f: impl Fn(&mut dyn FnMut(usize, &mut [f64]), usize) -> R + Sync,
    ) -> Result<Vec<R>> {
        check_features(rows, n_features)?;
        run.control.expect(rows.n_rows() as u64);
        let blocks = map(run.n_threads, rows.n_rows().div_ceil(Block::ROWS), |i| {
            run.control.check()?;
            let block = Block::new(rows, i * Block::ROWS);
            let out = f(&mut |draw, sums| self.add(draw, n_trees, &block, sums), block.n_rows);
            run.control.advance(block.n_rows as u64);
            Ok(out)
        });
        blocks.into_iter().collect()
    }
}

fn value(nodes: &[DrawnNode], x: impl Fn(u32) -> f64) -> f64 {
    let mut at = 0;
    loop {
        let node = &nodes[at];
        if node.is_leaf() {
            return node.value;
        }
        at += if x(node.feature) <= node.value { 1 } else { node.right as usize };
    }
}

/// Some rows, column by column.
struct Block {
    n_rows: usize,
    values: Vec<f64>,
}

impl Block {
    /// Few enough that all trees' columns stay in the cache.
    const ROWS: usize = 256;

    fn new(rows: Rows<'_>, start: usize) -> Self {
        let n_rows = Self::ROWS.min(rows.n_rows() - start);
        let columns =
            (0..rows.n_features()).flat_map(|d| (start..start + n_rows).map(move |i| rows.at(i, d)));
        Self { n_rows, values: columns.collect() }
    }

    fn column(&self, feature: u32) -> &[f64] {
        let start = feature as usize * self.n_rows;
        &self.values[start..start + self.n_rows]
    }
}

fn check_features(rows: Rows<'_>, n_features: usize) -> Result<()> {
    if rows.n_features() == n_features {
        return Ok(());
    }
    Err(Error::Length {
        what: "a row of X",
        found: rows.n_features(),
        expected: n_features,
        why: "the features that the model was fitted with",
    })
}
